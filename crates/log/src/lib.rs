//! Log of a long-running process. Its size is bounded, and its errors never end the process.
//!
//! Lines go to standard error. `eprintln!` panics if a line cannot be written, for instance on a
//! full disk. Here, such a line is lost, and the next line that is written reports the number of
//! lost lines. If standard error is a log file of a lab, the file is replaced before it exceeds
//! [`LOG_BYTES_MAX`]. `s1.log` then becomes `s1.log.old` and replaces the previous file of that
//! name.

#![forbid(unsafe_code)]

use nix::unistd::dup2_stderr;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest log file, in bytes: 1 MiB. One older file may exist next to it.
pub const LOG_BYTES_MAX: u64 = 1 << 20;
/// Last extension in the file name of an older log.
pub const OLD: &str = "old";

static LOG: Mutex<Log> = Mutex::new(Log { file: None, lost: 0 });

/// Log to standard error, or to the file behind it.
struct Log {
    file: Option<Rotated>,
    /// Number of lines lost since the last successful write.
    lost: u64,
}

/// Log file of bounded size.
struct Rotated {
    path: PathBuf,
    out: File,
    bytes: u64,
    bytes_max: u64,
    /// True if standard error, which receives panic messages, is redirected to each new file.
    is_standard_error: bool,
}

/// Writer for one or more lines. It reports no errors.
pub struct Writer(());

/// Returns a writer for `tracing`: `tracing_subscriber::fmt().with_writer(log::writer)`. Each call
/// to its `write` must contain whole lines.
pub fn writer() -> Writer {
    Writer(())
}

/// Writes a line without operating system error numbers: `log::line(format_args!("{error:#}"))`.
pub fn line(text: fmt::Arguments<'_>) {
    lock().write(format!("{}\n", without_os_numbers(&text.to_string())).as_bytes());
}

/// Returns the text without the ` (os error 2)` that the standard library appends to the message of
/// an operating system error. The number adds nothing to the message.
pub fn without_os_numbers(text: &str) -> String {
    const MARK: &str = " (os error ";
    let mut parts = text.split(MARK);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                plain.push_str(rest);
            }
            _ => plain.extend([MARK, part]),
        }
    }
    plain
}

/// From now on, bounds standard error, which appends to `file`, to [`LOG_BYTES_MAX`].
pub fn rotate(file: PathBuf) {
    lock().file = Rotated::open(file, LOG_BYTES_MAX, true).ok();
}

/// Opens a log file for appending, as standard error of a process that calls [`rotate`].
///
/// # Errors
/// The file cannot be opened.
pub fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(file)
}

/// Locks the log. A poisoned lock is still usable, because a panic can at most cut off a line.
fn lock() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Writer {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        lock().write(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn write(&mut self, lines: &[u8]) {
        let lost = match self.lost {
            0 => String::new(),
            count => format!("{count} lines before this one could not be written\n"),
        };
        let bytes = [lost.as_bytes(), lines].concat();
        let written = match &mut self.file {
            Some(file) => file.write(&bytes),
            None => io::stderr().lock().write_all(&bytes),
        };
        self.lost = if written.is_ok() { 0 } else { self.lost + 1 };
    }
}

impl Rotated {
    fn open(path: PathBuf, bytes_max: u64, is_standard_error: bool) -> io::Result<Rotated> {
        let out = open(&path)?;
        let bytes = out.metadata()?.len();
        Ok(Rotated { path, out, bytes, bytes_max, is_standard_error })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes.saturating_add(lines.len() as u64) > self.bytes_max {
            self.begin_anew();
        }
        self.bytes += lines.len() as u64;
        self.out.write_all(lines)
    }

    /// Starts a new file. If the old one cannot be renamed, it is truncated instead, so that lines
    /// are lost but the size stays bounded.
    fn begin_anew(&mut self) {
        let mut old = OsString::from(&self.path);
        old.push(".");
        old.push(OLD);
        match fs::rename(&self.path, old).and_then(|()| open(&self.path)) {
            Ok(new) => {
                // If the redirection fails, panic messages still go to the old file.
                if self.is_standard_error {
                    let _ = dup2_stderr(&new);
                }
                self.out = new;
            }
            Err(_) => {
                let _ = self.out.set_len(0);
            }
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("axon-log-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn numbers_of_errors_of_the_operating_system_are_left_out() {
        let error = io::Error::from_raw_os_error(2);
        let text = format!("a: {error}; b: {error}");
        let plain = "a: No such file or directory; b: No such file or directory";
        assert_eq!(without_os_numbers(&text), plain);
        for other in ["(os error x)", "a (os error 2", "a (os error) b", "a"] {
            assert_eq!(without_os_numbers(other), other);
        }
    }

    fn log(file: &Path, bytes_max: u64) -> Log {
        let file = Rotated::open(file.into(), bytes_max, false).unwrap();
        Log { file: Some(file), lost: 0 }
    }

    #[test]
    fn a_log_that_is_written_for_ever_takes_twice_its_bound_and_keeps_the_newest_lines() {
        let folder = Folder::new("bound");
        let file = folder.0.join("s1.log");
        let mut log = log(&file, 1_000);
        for number in 0..10_000 {
            log.write(format!("line {number}\n").as_bytes());
        }
        let old = fs::read_to_string(folder.0.join("s1.log.old")).unwrap();
        let new = fs::read_to_string(&file).unwrap();
        assert!(old.len() <= 1_000 && new.len() <= 1_000, "{} {}", old.len(), new.len());
        let both = old + &new;
        assert!(both.ends_with("line 9998\nline 9999\n"), "{both}");
        assert!(both.lines().count() > 90, "{both}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn a_full_disk_loses_lines_and_the_next_line_says_how_many() {
        let folder = Folder::new("full");
        let file = folder.0.join("s1.log");
        let mut log = log(Path::new("/dev/full"), 1_000);
        log.write(b"one\n");
        log.write(b"two\n");
        log.file = Some(Rotated::open(file.clone(), 1_000, false).unwrap());
        log.write(b"three\n");
        log.write(b"four\n");
        let text = fs::read_to_string(file).unwrap();
        assert_eq!(text, "2 lines before this one could not be written\nthree\nfour\n");
    }

    #[test]
    fn a_log_that_cannot_be_set_aside_is_emptied() {
        let folder = Folder::new("stuck");
        let file = folder.0.join("s1.log");
        fs::create_dir_all(folder.0.join("s1.log.old/full")).unwrap();
        let mut log = log(&file, 100);
        (0..1_000).for_each(|_| log.write(b"a line\n"));
        assert!(fs::metadata(&file).unwrap().len() <= 100);
    }
}
