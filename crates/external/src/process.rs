//! Process of a program, and the switch's end of its socket pair.

use crate::channel::{Channel, ChannelError};
use crate::output::{self, Sink};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Grace period in which a process may end by itself.
pub(crate) const END: Duration = Duration::from_secs(1);

/// Peer of the switch: a program, usually in a separate process.
#[derive(Debug)]
pub struct Peer {
    /// Channel to the program. It is closed once the program has ended.
    pub(crate) channel: Option<Channel>,
    child: Option<Child>,
}

impl Peer {
    /// Starts a process whose standard input is the socket. Its output and errors go to `sink`,
    /// with a rate limit. Without a `sink`, they go to the standard error of this process. Signals
    /// from a terminal do not reach the process, because it ends when its switch does.
    ///
    /// # Errors
    /// The system cannot start the process.
    pub(crate) fn spawn(mut command: Command, sink: Option<Sink>) -> std::io::Result<Peer> {
        let (near, far) = UnixStream::pair()?;
        command.stdin(Stdio::from(OwnedFd::from(far)));
        match sink {
            Some(sink) => {
                let (reader, writer) = std::io::pipe()?;
                command.stdout(writer.try_clone()?).stderr(writer);
                output::forward(reader, sink)?;
            }
            None => {
                let errors = std::io::stderr().as_fd().try_clone_to_owned()?;
                command.stdout(Stdio::from(errors));
            }
        }
        let child = command.process_group(0).spawn()?;
        Ok(Peer { channel: Some(Channel::new(near)), child: Some(child) })
    }

    /// Wraps a program at the other end of `stream` whose process is managed elsewhere.
    pub fn new(stream: UnixStream) -> Peer {
        Peer { channel: Some(Channel::new(stream)), child: None }
    }

    /// Returns a peer without a program.
    pub(crate) fn none() -> Peer {
        Peer { channel: None, child: None }
    }

    /// Ends the process after a grace period of `patience`. Returns a description of the reason.
    pub(crate) fn end(&mut self, error: &ChannelError, patience: Duration) -> String {
        self.channel = None;
        let status = self.reap(patience);
        match (error, status) {
            (ChannelError::Late, _) => "it did not answer in time".to_owned(),
            (ChannelError::Closed, Some(status)) => format!("it ended: {status}"),
            (ChannelError::Closed, None) => "it ended".to_owned(),
            (ChannelError::Malformed, _) => "it sent what is no message".to_owned(),
            (ChannelError::Io(error), _) => format!("its socket failed: {error}"),
        }
    }

    /// Closes the socket and ends the process after a grace period of `patience`.
    pub(crate) fn close(&mut self, patience: Duration) {
        self.channel = None;
        self.reap(patience);
    }

    fn reap(&mut self, patience: Duration) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        child.wait().ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.close(END);
    }
}
