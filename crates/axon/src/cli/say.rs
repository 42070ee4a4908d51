//! Exit statuses and standard output, as all programs of Axon have them, and those of `axon` alone.

pub use axon_cli::say::*;

use std::io::IsTerminal;

/// The exit status where a change was asked for, and no reply says whether it was made.
pub const UNANSWERED: u8 = 3;
/// The rule of exit statuses, as `axon --help` prints it.
pub const STATUSES: &str = "\
Exit status, of every command:
    0  done, and the answer is yes
    1  the answer is no: the run failed, the fabric is not proved, a case or bound is missed, ...
    2  it could not be tried, or a result could not be written; wrong usage
    3  a change was asked for, and no reply came: it may have been made (`table`)
  130  interrupted
`axon exec` ends as its command does. `switch`, `controller`, `agent` and `attach` run until
SIGTERM or SIGINT, and end with 0 then.";

/// What goes before and after a text that is shown again and again: in place on a terminal, else
/// one after the other.
pub fn again() -> (&'static str, &'static str) {
    // Home, then what is on the screen from there goes (ECMA-48, CUP and ED).
    if std::io::stdout().is_terminal() { ("\x1b[H\x1b[J", "") } else { ("", "\n") }
}
