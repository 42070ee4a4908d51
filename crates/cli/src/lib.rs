//! Command line of Axon's programs: exit statuses, standard output and standard error, result
//! files, usage errors, and the commit of the build.

#![forbid(unsafe_code)]
// Both macros panic if the reader has gone or the disk is full; see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod file;
pub mod output;
pub mod program;
pub mod reserve;
pub mod say;
pub mod usage;

/// Commit from which the program is built, with `-dirty` appended if the sources differed from it.
/// `unknown` in a debug build, and if there was no repository.
pub const COMMIT: &str = env!("AXON_COMMIT");
