//! Child processes that cannot outlive the demo. Their output goes to files, they have a time
//! limit, and they are killed on drop.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a child is polled.
const LOOK: Duration = Duration::from_millis(5);

/// Request by the user to stop (Ctrl-C or SIGTERM).
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes SIGINT and SIGTERM from now on, in this process only. Children get them as usual. Must
    /// be called before any other thread is started.
    ///
    /// # Errors
    /// The kernel refuses a signal mask or a signalfd(2).
    pub fn on_signals() -> Result<Stop> {
        use nix::sys::signal::{SigSet, Signal};
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block().context("cannot take signals")?;
        let stop = Stop::default();
        let flag = Arc::clone(&stop.0);
        std::thread::spawn(move || {
            // Threads inherit the mask, so the signal waits for this one.
            while signals.wait().is_ok() {
                flag.store(true, Ordering::Relaxed);
            }
        });
        Ok(stop)
    }

    /// Returns an error if the user has requested a stop.
    ///
    /// # Errors
    /// The user has requested a stop.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Sleeps, unless the user requests a stop.
    ///
    /// # Errors
    /// The user has requested a stop.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Child process with its output files.
#[derive(Debug)]
pub struct Process {
    what: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command`. Its output files in `folder` are named after `name`. Its stdin stays open
    /// and silent.
    ///
    /// # Errors
    /// The program does not exist, or its output files cannot be written.
    pub fn start(mut command: Command, folder: &Path, name: &str) -> Result<Process> {
        let stdout = folder.join(format!("{name}.out"));
        let stderr = folder.join(format!("{name}.err"));
        let file = |path: &Path| {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))
        };
        command.stdin(Stdio::piped()).stdout(file(&stdout)?).stderr(file(&stderr)?);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Process { what: name.to_owned(), child, stdout, stderr })
    }

    /// Waits for the process to end. Returns its exit status and output.
    ///
    /// # Errors
    /// The process does not end within `time`, or the user stops the run.
    pub fn finish(mut self, time: Duration, stop: &Stop) -> Result<(ExitStatus, String)> {
        let end = Instant::now() + time;
        loop {
            stop.check()?;
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, self.printed()));
            }
            if Instant::now() >= end {
                bail!("{} did not end within {:?}: {}", self.what, time, self.complaint());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for the process to end successfully, and returns its output.
    ///
    /// # Errors
    /// The errors of [`Process::finish`], or an exit status other than zero.
    pub fn succeed(self, time: Duration, stop: &Stop) -> Result<String> {
        let (what, stderr) = (self.what.clone(), self.stderr.clone());
        let (status, output) = self.finish(time, stop)?;
        if !status.success() {
            let complaint = std::fs::read_to_string(stderr).unwrap_or_default();
            bail!("{what} ended with {status}: {}{}", complaint.trim(), last_line(&output));
        }
        Ok(output)
    }

    /// Closes the stdin of a process that ends when that happens, and returns its stderr.
    ///
    /// # Errors
    /// The process does not end within `time`.
    pub(crate) fn close(mut self, time: Duration) -> Result<String> {
        drop(self.child.stdin.take());
        let end = Instant::now() + time;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= end {
                bail!("{} does not end: {}", self.what, self.complaint());
            }
            std::thread::sleep(LOOK);
        }
        Ok(self.complaint())
    }

    /// Returns the ID of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the stderr of the process so far.
    pub fn complaint(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Returns the stdout of the process so far.
    pub fn printed(&self) -> String {
        let bytes = std::fs::read(&self.stdout).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::ops::Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last_line(text: &str) -> String {
    text.lines().last().map(|line| format!(" ({line})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("axon-papers-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn output_comes_back_and_a_bad_end_is_an_error_with_its_reason() {
        let folder = folder("output");
        let time = Duration::from_secs(10);
        let good = Process::start(shell("echo hello"), &folder, "good").unwrap();
        assert_eq!(good.succeed(time, &Stop::default()).unwrap(), "hello\n");
        let bad = Process::start(shell("echo why >&2; exit 3"), &folder, "bad").unwrap();
        let error = bad.succeed(time, &Stop::default()).unwrap_err().to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_when_its_time_is_over() {
        let folder = folder("kill");
        let process = Process::start(shell("exec sleep 1000"), &folder, "slow").unwrap();
        let pid = process.child.id();
        assert!(process.finish(Duration::ZERO, &Stop::default()).is_err());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_request_to_stop_ends_every_wait() {
        let stop = Stop::default();
        stop.0.store(true, Ordering::Relaxed);
        assert!(stop.sleep(Duration::from_secs(1000)).is_err());
    }
}
