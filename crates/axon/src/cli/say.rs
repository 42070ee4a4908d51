//! Exit statuses and standard output shared by all programs of Axon, and those of `axon` alone.

pub use axon_cli::say::*;

use std::io::IsTerminal;

/// Exit status of a change that was requested but not confirmed by a reply.
pub(crate) const UNANSWERED: u8 = 3;
/// Meaning of exit statuses, as printed by `axon --help`.
pub(crate) const STATUSES: &str = "\
Exit status, of every command:
    0  done, and the answer is yes
    1  the answer is no: the run failed, the fabric is not proved, a case or bound is missed, ...
    2  it could not be tried, or a result could not be written; wrong usage
    3  a change was asked for, and no reply came: it may have been made (`table`)
  130  interrupted
`axon exec` ends as its command does. `switch`, `controller`, `agent` and `attach` run until
SIGTERM or SIGINT, and end with 0 then.";

/// Returns the text before and after a repeated display: in place on a terminal, otherwise one
/// after the other.
pub fn again() -> (&'static str, &'static str) {
    // Cursor home, then erase to the end of the screen (ECMA-48, CUP and ED).
    if std::io::stdout().is_terminal() { ("\x1b[H\x1b[J", "") } else { ("", "\n") }
}
