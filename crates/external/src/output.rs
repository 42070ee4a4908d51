//! Line-wise output of a program, with a rate limit for long runs.

use std::io::{ErrorKind, PipeReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Consumer of a program's output lines, which have no line ends.
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Maximum length of a line, in bytes. The part beyond it is cut off.
const LINE_BYTES_MAX: usize = 1 << 10;
/// Maximum number of lines in one second. Further lines are counted and left out.
const LINES_PER_SECOND: u32 = 64;

/// Forwards lines from a pipe until its other end is closed, in a separate thread.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn forward(pipe: PipeReader, sink: Sink) -> std::io::Result<()> {
    let began = Instant::now();
    let take = move || copy(pipe, || began.elapsed(), &*sink);
    std::thread::Builder::new().name("program output".into()).spawn(take).map(drop)
}

fn copy(mut from: impl Read, clock: impl Fn() -> Duration, sink: &dyn Fn(&str)) {
    let mut lines = Lines { sink, second: 0, taken: 0, left_out: 0 };
    let mut buffer = [0; 4096];
    let mut line = Vec::new();
    loop {
        let length = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for &byte in &buffer[..length] {
            if byte == b'\n' {
                lines.take(clock(), &line);
                line.clear();
            } else if line.len() < LINE_BYTES_MAX {
                line.push(byte);
            }
        }
    }
    if !line.is_empty() {
        lines.take(clock(), &line);
    }
    lines.summarize();
}

/// Line limiter for the current second.
struct Lines<'a> {
    sink: &'a dyn Fn(&str),
    second: u64,
    taken: u32,
    left_out: u64,
}

impl Lines<'_> {
    fn take(&mut self, now: Duration, line: &[u8]) {
        if now.as_secs() != self.second {
            self.summarize();
            (self.second, self.taken) = (now.as_secs(), 0);
        }
        if self.taken < LINES_PER_SECOND {
            self.taken += 1;
            (self.sink)(&String::from_utf8_lossy(line));
        } else {
            self.left_out += 1;
        }
    }

    fn summarize(&mut self) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            (self.sink)(&format!("{count} more lines of the program are left out"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn so_many_lines_come_in_a_second_and_the_rest_is_counted() {
        let text: String = (0..200).map(|number| format!("line {number}\n")).collect();
        let (taken, read) = (RefCell::new(Vec::new()), Cell::new(0));
        // Half of the lines come in one second, and half in the next.
        let clock = || {
            read.set(read.get() + 1);
            Duration::from_secs(7 + u64::from(read.get() > 100))
        };
        let sink = |line: &str| taken.borrow_mut().push(line.to_owned());
        copy(text.as_bytes(), clock, &sink);
        let taken = taken.into_inner();
        assert_eq!(taken.len(), 2 * (LINES_PER_SECOND as usize + 1));
        assert_eq!(taken[64], "36 more lines of the program are left out");
        assert_eq!((&taken[63][..], &taken[65][..]), ("line 63", "line 100"));
        assert_eq!(taken[129], taken[64]);
    }

    #[test]
    fn a_line_without_an_end_is_cut_and_what_is_no_text_does_no_harm() {
        let taken = RefCell::new(Vec::new());
        let sink = |line: &str| taken.borrow_mut().push(line.to_owned());
        copy(std::io::repeat(b'x').take(1 << 20), || Duration::ZERO, &sink);
        copy(&b"\xff\n"[..], || Duration::ZERO, &sink);
        let taken = taken.into_inner();
        assert_eq!(taken, ["x".repeat(LINE_BYTES_MAX), "\u{fffd}".to_owned()]);
    }
}
