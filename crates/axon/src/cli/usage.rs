//! What is answered to a command line that starts nothing: help, the version, or what is wrong with
//! it, with the right form where a wrong one is common.

use crate::cli::say;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Prints it, and answers with the exit status: that of the error, or [`say::UNTRIED`] if standard
/// output did not take the help that was asked for.
pub fn answer(error: &Error, cli: &Command) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(form) = right_form(error, &words, cli) {
            say::note!("\nPerhaps: `axon {form}`");
        }
        return say::UNTRIED.into();
    }
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say::note!("cannot write standard output: {error}");
            say::UNTRIED.into()
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The command line as it was probably meant.
fn right_form(error: &Error, words: &[String], cli: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let command = words.iter().find_map(|word| cli.find_subcommand(word))?;
    if let ("link", Some(second)) = (command.get_name(), text(ContextKind::InvalidValue)) {
        let at = words.iter().rposition(|word| word == second).filter(|&at| at >= 2)?;
        return Some(format!("link {},{second} down", words[at - 1]));
    }
    let wrong = text(ContextKind::InvalidArg)?;
    let at = words.iter().rposition(|word| word == wrong)?;
    let mut meant = words.to_vec();
    if let Some(option) = at.checked_sub(1).and_then(|before| words[before].strip_prefix("--")) {
        // An option whose value is joined to it, as its other form has none.
        let known = command.get_arguments().find(|known| known.get_long() == Some(option))?;
        if !known.is_require_equals_set() {
            return None;
        }
        meant[at - 1] = format!("--{option}={wrong}");
        meant.remove(at);
    } else if command.get_name() == "link" && at >= 2 {
        // The ends of a link are one word.
        meant[at - 2] = format!("{},{}", words[at - 2], words[at - 1]);
        meant.remove(at - 1);
    } else {
        return None;
    }
    Some(meant.join(" "))
}
