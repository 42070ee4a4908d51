//! Fuzz targets: one module each, whose `run` takes one input and panics on a finding.
//!
//! `fuzz_targets/` links them to libFuzzer; `tests/seeds.rs` runs their seeds.
#![forbid(unsafe_code)]

pub mod capture;
pub mod dcb;
pub mod fabric;
pub mod header;
pub mod message;
pub mod node;
pub mod pipeline;
pub mod plane;
pub mod probe;
pub mod recording;

/// Takes values from the front of the fuzzer's bytes. Every byte string is a valid story, so
/// no input is wasted.
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// The next byte; `None` at the end.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// The next two bytes as a number.
    pub(crate) fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// A string of bytes: its length in one byte, then so many, or all that are left.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.bytes.len());
        let (string, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Some(string)
    }
}
