//! Words of a command line, read one after the other.

use anyhow::{Context, Result, bail};
use axon_wire::MacAddr;
use std::str::FromStr;

/// Separator of two changes of one transaction.
const AND: &str = "and";

/// Words of one change.
pub(super) struct Words<'a> {
    words: &'a [&'a str],
    at: usize,
}

/// Splits a line at `and` into the words of each change.
pub(super) fn changes<'a>(words: &'a [&'a str]) -> impl Iterator<Item = Words<'a>> {
    words.split(|word| *word == AND).map(|words| Words { words, at: 0 })
}

impl<'a> Words<'a> {
    /// Returns the next word without taking it, if there is one.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    /// Takes the next word, if there is one.
    pub(super) fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the next word if it equals `word`.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes the next word; `expected` describes it in errors.
    pub(super) fn next(&mut self, expected: &str) -> Result<&'a str> {
        let Some(word) = self.take() else {
            bail!("{}: it ends too soon; expected {expected}", self.text());
        };
        Ok(word)
    }

    /// Takes the next word, which must be `word`.
    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        let found = self.next(word)?;
        if found != word {
            bail!("{}: found {found}; expected {word}", self.text());
        }
        Ok(())
    }

    /// Takes and parses the next word; `expected` describes it in errors.
    pub(super) fn parsed<T: FromStr>(&mut self, expected: &str) -> Result<T> {
        let word = self.next(expected)?;
        self.read(word, expected)
    }

    /// Parses a word, or a part of one; `expected` describes it in errors.
    pub(super) fn read<T: FromStr>(&self, word: &str, expected: &str) -> Result<T> {
        let read = word.parse().ok();
        read.with_context(|| format!("{}: found {word}; expected {expected}", self.text()))
    }

    /// Takes the next word as a MAC address.
    pub(super) fn mac(&mut self) -> Result<MacAddr> {
        const EXPECTED: &str = "a MAC address such as 02:00:00:00:00:01";
        let word = self.next(EXPECTED)?;
        let parts: Vec<&str> = word.split(':').collect();
        let byte = |part: &&str| (part.len() == 2).then(|| u8::from_str_radix(part, 16).ok())?;
        let bytes = parts.iter().map(byte).collect::<Option<Vec<u8>>>();
        let bytes = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        let bytes =
            bytes.with_context(|| format!("{}: found {word}; expected {EXPECTED}", self.text()))?;
        Ok(MacAddr(bytes))
    }

    /// Takes the next word as bytes in hexadecimal.
    pub(super) fn hex(&mut self) -> Result<Vec<u8>> {
        const EXPECTED: &str = "bytes in hexadecimal such as 0a000001";
        let word = self.next(EXPECTED)?;
        let pairs: Vec<&[u8]> = word.as_bytes().chunks(2).collect();
        let byte = |pair: &&[u8]| {
            let text = std::str::from_utf8(pair).ok().filter(|text| {
                text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
            })?;
            u8::from_str_radix(text, 16).ok()
        };
        let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>();
        bytes.with_context(|| format!("{}: found {word}; expected {EXPECTED}", self.text()))
    }

    /// Checks that no word follows.
    pub(super) fn end(&self) -> Result<()> {
        match self.peek() {
            Some(word) => bail!(
                "{}: found {word}; expected the end, or `and` and another change",
                self.text()
            ),
            None => Ok(()),
        }
    }

    /// Returns the whole change, for errors.
    pub(super) fn text(&self) -> String {
        if self.words.is_empty() { "a change".into() } else { self.words.join(" ") }
    }
}
