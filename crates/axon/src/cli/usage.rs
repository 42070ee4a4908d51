//! Suggested command line after a usage error, for common mistakes.

use axon_fabric::assemble::split_port;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error};
use std::process::ExitCode;

/// Prints help, the version or the error, and the command line that was probably intended; see
/// [`axon_cli::usage::answer`].
pub(crate) fn answer(error: &Error, cli: &Command) -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let form = right_form(error, &words, cli).map(|form| format!("Perhaps: `axon {form}`"));
    axon_cli::usage::answer(error, form.as_deref())
}

/// Returns the command line that was probably intended.
fn right_form(error: &Error, words: &[String], cli: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let command = words.iter().find_map(|word| cli.find_subcommand(word))?;
    let mut meant = words.to_vec();
    if let ("link", Some(second)) = (command.get_name(), text(ContextKind::InvalidValue)) {
        if error.get(ContextKind::SuggestedValue).is_some() {
            return None;
        }
        let at = words.iter().rposition(|word| word == second)?;
        join_ends(&mut meant, at.checked_sub(1)?)?;
        meant.insert(at, "down".to_owned());
        return Some(shell_line(&meant));
    }
    let wrong = text(ContextKind::InvalidArg)?;
    let at = words.iter().rposition(|word| word == wrong)?;
    if let Some(option) = at.checked_sub(1).and_then(|before| words[before].strip_prefix("--")) {
        // An option with an attached value, since its other form has none.
        let known = command.get_arguments().find(|known| known.get_long() == Some(option))?;
        if !known.is_require_equals_set() {
            return None;
        }
        meant[at - 1] = format!("--{option}={wrong}");
        meant.remove(at);
    } else if command.get_name() == "link" && is_state(wrong) {
        join_ends(&mut meant, at.checked_sub(2)?)?;
    } else {
        return None;
    }
    Some(shell_line(&meant))
}

/// Joins the two ends of a link, the first of which is the word `first`, into one word; `None` if
/// these are not two nodes.
fn join_ends(words: &mut Vec<String>, first: usize) -> Option<()> {
    let is_node = |word: &String| {
        !word.starts_with('-')
            && !word.contains(',')
            && !is_state(word)
            && split_port(word).is_none()
    };
    let before = words.get(first.checked_sub(1)?)?;
    // The value of an option is not the end of a link.
    let is_value = before.starts_with('-') && !before.contains('=');
    if is_value || !words.get(first..first + 2)?.iter().all(is_node) {
        return None;
    }
    let second = words.remove(first + 1);
    words[first] += &format!(",{second}");
    Some(())
}

/// Returns whether a word is a state of a link.
fn is_state(word: &str) -> bool {
    ["up", "down"].contains(&word)
}

/// Quotes words for a shell.
fn shell_line(words: &[String]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=,./:@+%".contains(&byte);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<String>>().join(" ")
}
