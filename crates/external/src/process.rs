//! The process of a program, and the switch's end of its socket pair.

use crate::channel::{Channel, ChannelError};
use crate::output::{self, Sink};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a process may take to end by itself.
pub(crate) const END: Duration = Duration::from_secs(1);

/// The other end of the switch: a program, usually in a process of its own.
#[derive(Debug)]
pub struct Peer {
    /// Closed once the program has ended.
    pub(crate) channel: Option<Channel>,
    child: Option<Child>,
}

impl Peer {
    /// Starts a process, whose standard input becomes the socket. What it prints, errors too, goes
    /// to `sink` as far as a log may grow; without one to the standard error of this process. A
    /// terminal's signals do not reach it: it ends when its switch does.
    ///
    /// # Errors
    /// The system's own.
    pub fn spawn(mut command: Command, sink: Option<Sink>) -> std::io::Result<Peer> {
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

    /// A program at the other end of `stream`, whose process is someone else's concern.
    pub fn new(stream: UnixStream) -> Peer {
        Peer { channel: Some(Channel::new(stream)), child: None }
    }

    /// Nothing at all.
    pub(crate) fn none() -> Peer {
        Peer { channel: None, child: None }
    }

    /// Ends the process, which may still end by itself for so long, and describes why nothing more
    /// comes from it.
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

    /// Ends the process, which may still end by itself for so long: it sees that its socket is
    /// closed.
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
