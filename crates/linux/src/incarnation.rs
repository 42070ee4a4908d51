//! The number of a node's incarnation. Each must have a higher one than the last, or neighbours
//! take its messages for replayed ones of the incarnation before.

use crate::clock::Clock;
use anyhow::{Context, Result};
use axon_wire::Time;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The incarnation of a incarnation that starts with `clock`: nanoseconds since 1970, and above the
/// last one, which is kept in `file`. Without a file it falls back if the wall clock does.
///
/// # Errors
/// The file holds something else, or cannot be read or written.
pub fn next(clock: &Clock, file: Option<&Path>) -> Result<u64> {
    let now = clock.unix_nanos(Time::ZERO).max(1);
    file.map_or(Ok(now), |file| after_last(file, now))
}

/// The greater of `now` and one more than the last; notes it as the last. The file is replaced
/// as a whole and is on the disk before anybody hears of the new number.
fn after_last(file: &Path, now: u64) -> Result<u64> {
    let last: u64 = match fs::read_to_string(file) {
        Ok(text) => text
            .trim()
            .parse()
            .with_context(|| format!("{} does not hold an incarnation", file.display()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    let next = now.max(last.saturating_add(1));
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let written = File::create(&new)
        .and_then(|mut out| writeln!(out, "{next}").and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&new, file));
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_does_not_lower_the_incarnation() {
        let file = std::env::temp_dir().join(format!("axon-incarnation-{}", std::process::id()));
        assert_eq!(after_last(&file, 1_000).unwrap(), 1_000);
        assert_eq!(after_last(&file, 10).unwrap(), 1_001);
        assert_eq!(after_last(&file, 2_000).unwrap(), 2_000);
        fs::write(&file, "soon").unwrap();
        assert!(after_last(&file, 3_000).is_err());
        fs::remove_file(&file).unwrap();
    }
}
