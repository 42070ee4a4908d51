//! Incarnation number of a node. Each number must be higher than the last, because neighbours
//! otherwise treat messages from the node as replays from its previous incarnation.
//!
//! The state file holds the last number. Only one process at a time may use it. That process holds
//! a lock on `FILE.lock`, which the kernel releases when the process ends.

use crate::clock::Clock;
use anyhow::{Context, Result, bail};
use axon_wire::Time;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Highest valid number: nanoseconds since 1970 in the year 2262.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// Incarnation number, and the lock on its state file.
#[derive(Debug)]
pub struct Incarnation {
    /// Incarnation number.
    pub number: u64,
    /// Lock, held until the process ends or this value is dropped.
    _lock: Option<File>,
}

/// Returns the incarnation that starts with `clock`. Its number is the time in nanoseconds since
/// 1970, but always above the last number, which is stored in `file`. Without a file, the number
/// falls back if the wall clock does.
///
/// A file that a crash has left empty or full of zero bytes is reset, and an alarm is logged. On a
/// full disk, the node also starts with an alarm, but its number is not stored.
///
/// # Errors
/// Another process uses the file, its content is invalid, or it cannot be read or written. The
/// error includes the remedy.
pub(crate) fn next(clock: &Clock, file: Option<&Path>) -> Result<Incarnation> {
    let now = clock.unix_nanos(Time::ZERO).max(1);
    let Some(file) = file else {
        return Ok(Incarnation { number: now, _lock: None });
    };
    let lock = lock(file)?;
    let last = last(file)?;
    let number = now.max(last + 1);
    match keep(file, number) {
        Err(error) if is_full(&error) => {
            let file = file.display();
            tracing::error!(%file, %error, "ALARM: the incarnation is not kept");
        }
        kept => kept.with_context(|| format!("cannot write {}", file.display()))?,
    }
    Ok(Incarnation { number, _lock: lock })
}

/// Returns whether the error means that the disk is full or a quota is exhausted.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Locks the state file for this process. Returns no lock if the disk has no room for the lock
/// file.
fn lock(file: &Path) -> Result<Option<File>> {
    let path = beside(file, ".lock");
    let cannot = || format!("cannot lock {}", path.display());
    let lock = match File::options().create(true).append(true).open(&path) {
        Err(error) if is_full(&error) => {
            tracing::error!(file = %path.display(), %error, "ALARM: no lock on the state file");
            return Ok(None);
        }
        opened => opened.with_context(cannot)?,
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => bail!(
            "another process uses the state file {}: end it, or name another file with --state; \
             two nodes with one state file would take each other's numbers",
            file.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

/// Returns the last number in the file, or 0 if there is no file or a crash has left it empty.
fn last(file: &Path) -> Result<u64> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", file.display()));
        }
    };
    if bytes.iter().all(|byte| *byte == 0) {
        let file = file.display();
        tracing::error!(%file, "ALARM: the state file was empty; it is begun anew");
        return Ok(0);
    }
    let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    number.filter(|number| *number < NUMBER_MAX).with_context(|| {
        format!(
            "{} does not hold an incarnation: if it is the node's state file, it is damaged; \
             remove it, and the node counts from the clock; otherwise name another with --state",
            file.display()
        )
    })
}

/// Replaces the file atomically. The new file is on the disk before messages use the new number.
fn keep(file: &Path, number: u64) -> io::Result<()> {
    let new = beside(file, ".new");
    let written = File::create(&new)
        .and_then(|mut out| writeln!(out, "{number}").and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&new, file))
        .and_then(|()| sync_parent(file));
    if written.is_err() && fs::metadata(&new).is_ok_and(|found| found.is_file()) {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Syncs the directory entry of this file to the disk.
pub(crate) fn sync_parent(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Returns the path of this file with an ending added to its name.
pub(crate) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("axon-incarnation-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn state(&self) -> PathBuf {
            self.0.join("s1.state")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn started(file: &Path) -> Result<Incarnation> {
        next(&Clock::start(), Some(file))
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_lower_the_incarnation() {
        let folder = Folder::new("clock");
        let file = folder.state();
        let ahead = NUMBER_MAX - 10;
        fs::write(&file, ahead.to_string()).unwrap();
        assert_eq!(started(&file).unwrap().number, ahead + 1);
        assert_eq!(started(&file).unwrap().number, ahead + 2);
        fs::write(&file, "1000\n").unwrap();
        assert!(started(&file).unwrap().number > 1_001, "the clock's");
    }

    #[test]
    fn of_two_daemons_with_one_state_file_the_second_is_refused_until_the_first_has_ended() {
        let folder = Folder::new("lock");
        let file = folder.state();
        let first = started(&file).unwrap();
        let error = started(&file).unwrap_err().to_string();
        assert!(error.contains("another process uses the state file"), "{error}");
        assert!(error.contains("s1.state") && error.contains("--state"), "{error}");
        drop(first);
        assert!(folder.0.join("s1.state.lock").exists(), "what is left of a lock");
        started(&file).expect("a stale lock holds nobody up");
    }

    #[test]
    fn a_file_that_a_crash_has_left_empty_is_begun_anew_and_any_other_is_refused_and_kept() {
        let folder = Folder::new("damaged");
        let file = folder.state();
        for crashed in [&b""[..], &[0; 20]] {
            fs::write(&file, crashed).unwrap();
            let number = started(&file).unwrap().number;
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("{number}\n"));
        }
        for foreign in [&b"soon"[..], b"12\0\0", b"\xff", b"18446744073709551615", b"-1"] {
            fs::write(&file, foreign).unwrap();
            let error = started(&file).unwrap_err().to_string();
            assert!(error.contains("remove it"), "{error}");
            assert_eq!(fs::read(&file).unwrap(), foreign);
        }
    }

    #[test]
    fn a_full_disk_keeps_no_node_from_starting() {
        let full = Path::new("/dev/full");
        let error = File::options().write(true).open(full).and_then(|mut out| out.write_all(b"1"));
        assert!(is_full(&error.unwrap_err()));
        let folder = Folder::new("full");
        // The temporary file next to the state file is on a full device.
        std::os::unix::fs::symlink(full, folder.0.join("s1.state.new")).unwrap();
        fs::write(folder.state(), "7\n").unwrap();
        assert!(started(&folder.state()).unwrap().number > 7);
        assert_eq!(fs::read_to_string(folder.state()).unwrap(), "7\n");
        assert!(full.exists(), "a device is not ours to remove");
    }
}
