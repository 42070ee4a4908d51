//! Answers a command line that starts nothing: prints help, the version, or the usage error.

use crate::say;
use clap::error::Error;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Prints help, the version or the error. After an error, also prints the `hint`, if there is one.
/// Returns the exit status of the error, or [`say::UNTRIED`] if standard output did not accept the
/// help.
pub fn answer(error: &Error, hint: Option<&str>) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        if let Some(hint) = hint {
            say::note!("\n{hint}");
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
