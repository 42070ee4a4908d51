//! Commands to a daemon, over a stream socket next to its status socket. Each command has its own
//! connection, with one line of JSON for the [`Command`] and one for the [`Reply`].
//!
//! The run loop never blocks on a client. A connection holds one command of at most
//! `REQUEST_BYTES_MAX` bytes. If `ASKERS_MAX` connections have no complete command and another
//! client connects, the oldest of them is closed.

use crate::socket;
use anyhow::{Context, Result, bail};
use axon_node::{Command, CommandError, Done, Reply, Request, RequestId};
use serde::Deserialize;
use std::collections::VecDeque;
use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest command, in bytes of JSON including its newline.
pub(crate) const REQUEST_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of connections with an incomplete command.
pub(crate) const ASKERS_MAX: usize = 16;
/// Time for which a client waits for its reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Server that receives commands.
pub struct RequestServer {
    listener: UnixListener,
    /// Clients, oldest first.
    askers: VecDeque<Asker>,
}

/// Client that has connected and whose command is incomplete.
struct Asker {
    stream: UnixStream,
    /// Received part of the command.
    bytes: Vec<u8>,
}

/// Received command, and the connection for its reply.
pub struct Asked {
    /// Received command.
    pub command: Command,
    stream: UnixStream,
}

/// State of the command that a client is sending.
enum Progress {
    /// The command is complete.
    Line,
    /// More data may come.
    Open,
    /// The connection has ended without a command.
    Gone,
}

/// Returns the path of the command socket of the daemon whose status socket is `status`. It is that
/// path with `.ask` appended, so that `leaf.1` and `leaf.2` do not share a socket.
fn beside(status: &Path) -> PathBuf {
    let mut name = status.as_os_str().to_owned();
    name.push(".ask");
    name.into()
}

impl RequestServer {
    /// Listens on the command socket that belongs to the status socket `status`. A socket that a
    /// dead process has left is replaced. Only the daemon's own user may send commands, whatever
    /// the umask.
    ///
    /// # Errors
    /// As [`StatusServer::open`](crate::status::StatusServer::open).
    pub(crate) fn open(status: &Path) -> io::Result<RequestServer> {
        let path = beside(status);
        let listener = socket::listen(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(RequestServer { listener, askers: VecDeque::new() })
    }

    /// Returns the descriptors to poll for readability. They change with [`RequestServer::take`].
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.listener.as_fd()].into_iter().chain(self.askers.iter().map(|one| one.stream.as_fd()))
    }

    /// Returns the received commands. Any other input is answered here.
    pub(crate) fn take(&mut self) -> Vec<Asked> {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.askers.push_back(Asker { stream, bytes: Vec::new() });
            }
        }
        let mut asked = Vec::new();
        for mut asker in std::mem::take(&mut self.askers) {
            match asker.read() {
                Progress::Open => self.askers.push_back(asker),
                Progress::Gone => {}
                Progress::Line => match asker.command() {
                    Ok(command) => asked.push(Asked { command, stream: asker.stream }),
                    Err(reply) => send(asker.stream, &reply),
                },
            }
        }
        while self.askers.len() > ASKERS_MAX {
            self.askers.pop_front();
        }
        asked
    }
}

impl Asker {
    /// Reads received data, up to one byte beyond the longest command.
    fn read(&mut self) -> Progress {
        let mut chunk = [0; 4096];
        loop {
            let room = (REQUEST_BYTES_MAX + 1 - self.bytes.len()).min(chunk.len());
            match self.stream.read(&mut chunk[..room]) {
                Ok(0) if self.bytes.is_empty() => return Progress::Gone,
                Ok(0) => return Progress::Line,
                Ok(count) => self.bytes.extend(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Open,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Progress::Gone,
            }
            if self.bytes.contains(&b'\n') || self.bytes.len() > REQUEST_BYTES_MAX {
                return Progress::Line;
            }
        }
    }

    /// Parses the command in the first line.
    ///
    /// # Errors
    /// The command is invalid. The error is the reply to it.
    fn command(&self) -> Result<Command, Reply> {
        #[derive(Deserialize)]
        struct Envelope {
            id: RequestId,
            request: serde_json::Value,
        }
        let refused = |id, error| Reply { id, result: Err(error) };
        let line = self.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.len() >= REQUEST_BYTES_MAX {
            let bytes_max = REQUEST_BYTES_MAX as u64;
            return Err(refused(RequestId::default(), CommandError::TooLong { bytes_max }));
        }
        let Envelope { id, request } = serde_json::from_slice(line).map_err(|error| {
            refused(RequestId::default(), CommandError::Unreadable(error.to_string()))
        })?;
        match Request::deserialize(request) {
            Ok(request) => Ok(Command { id, request }),
            Err(error) => Err(refused(id, CommandError::Unknown(error.to_string()))),
        }
    }
}

impl Asked {
    /// Sends the reply, unless the client is gone or its socket has no room.
    pub(crate) fn answer(self, reply: &Reply) {
        send(self.stream, reply);
    }
}

/// Sends a reply without blocking. The socket has room for it, because nothing was sent over it
/// yet.
fn send(mut stream: UnixStream, reply: &Reply) {
    let line = serde_json::to_vec(reply).map_err(io::Error::from);
    let sent = line.and_then(|mut line| {
        line.push(b'\n');
        stream.write_all(&line)
    });
    if let Err(error) = sent {
        tracing::debug!(%error, "a reply was not delivered");
    }
}

/// Error for a command that was sent completely but got no reply. A node that is busy or stopped
/// may execute the command later.
#[derive(Debug, thiserror::Error)]
#[error("no reply: {0}; the command was sent, and may be carried out")]
pub struct NoReply(String);

impl NoReply {
    /// Creates the error with this reason.
    pub fn new(why: impl Into<String>) -> NoReply {
        NoReply(why.into())
    }
}

/// Sends a request to the daemon whose status socket is `status`.
///
/// # Errors
/// Nothing listens there, no reply came within two seconds ([`NoReply`]), or the command was
/// refused ([`CommandError`]).
pub fn ask(status: &Path, request: Request) -> Result<Done> {
    let command = Command { id: RequestId(std::process::id().into()), request };
    let mut line = serde_json::to_vec(&command)?;
    line.push(b'\n');
    if line.len() > REQUEST_BYTES_MAX {
        bail!("the command has {} bytes, more than {REQUEST_BYTES_MAX}", line.len());
    }
    let mut stream = UnixStream::connect(beside(status))
        .with_context(|| format!("no node takes commands at {}", status.display()))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(&line)?;
    let mut text = String::new();
    if let Err(error) = BufReader::new(stream).read_line(&mut text) {
        let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let seconds = REPLY_TIMEOUT.as_secs();
        let late = format!("none within {seconds} s");
        bail!(NoReply::new(if is_late { late } else { error.to_string() }));
    }
    let reply: Reply =
        serde_json::from_str(&text).map_err(|_| NoReply::new("the node has ended"))?;
    Ok(reply.result?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::NodeKind;
    use axon_node::probe::{PlanKind, ProbeId, ProbePlan};
    use axon_wire::Hops;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("axon-request-{name}-{}.sock", std::process::id());
            Place(std::env::temp_dir().join(name))
        }

        fn connect(&self) -> UnixStream {
            let stream = UnixStream::connect(beside(&self.0)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream
        }

        /// Sends these bytes, which are not a command, and returns the reply.
        fn refused(&self, server: &mut RequestServer, bytes: &[u8]) -> Reply {
            let mut stream = self.connect();
            stream.write_all(bytes).unwrap();
            assert!(server.take().is_empty());
            let mut text = String::new();
            BufReader::new(stream).read_line(&mut text).unwrap();
            serde_json::from_str(&text).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(beside(&self.0));
        }
    }

    fn plan() -> ProbePlan {
        ProbePlan::new(PlanKind::Circuit(Hops::to_control()))
    }

    /// Serves one command as a node would that replies `result`.
    fn serve(server: &mut RequestServer, result: &Result<Done, CommandError>) -> Command {
        let asked = next(server);
        let command = asked.command.clone();
        asked.answer(&Reply { id: command.id, result: result.clone() });
        command
    }

    /// Waits for a command.
    fn next(server: &mut RequestServer) -> Asked {
        loop {
            let mut fds: Vec<_> = server
                .fds()
                .map(|fd| nix::poll::PollFd::new(fd, nix::poll::PollFlags::POLLIN))
                .collect();
            nix::poll::poll(&mut fds, nix::poll::PollTimeout::from(10_000u16)).unwrap();
            if let Some(asked) = server.take().pop() {
                return asked;
            }
        }
    }

    #[test]
    fn whoever_asks_has_the_reply_or_the_typed_reason_why_not() {
        let place = Place::new("reply");
        let mut server = RequestServer::open(&place.0).unwrap();
        let refusal = CommandError::Unsupported(NodeKind::Agent);
        for result in [Ok(Done::Probe(ProbeId(7))), Err(refusal.clone())] {
            let path = place.0.clone();
            let asker = std::thread::spawn(move || ask(&path, Request::Probe(plan())));
            assert_eq!(serve(&mut server, &result).request, Request::Probe(plan()));
            let outcome = asker.join().unwrap().map_err(|error| error.downcast().unwrap());
            assert_eq!(outcome, result);
        }
    }

    #[test]
    fn a_command_that_was_taken_and_not_answered_may_be_carried_out() {
        let place = Place::new("ended");
        let nobody = ask(&place.0, Request::Probe(plan())).unwrap_err();
        assert!(!nobody.is::<NoReply>(), "nothing was sent: {nobody:#}");
        let mut server = RequestServer::open(&place.0).unwrap();
        let path = place.0.clone();
        let asker = std::thread::spawn(move || ask(&path, Request::Probe(plan())));
        drop(next(&mut server));
        let error = asker.join().unwrap().unwrap_err();
        assert!(error.is::<NoReply>(), "{error:#}");
    }

    #[test]
    fn two_daemons_whose_socket_names_differ_after_the_last_dot_each_have_their_commands() {
        let (one, other) = (Place::new("leaf.1"), Place::new("leaf.2"));
        let name =
            |n: u8| std::env::temp_dir().join(format!("axon-{}-leaf.{n}", std::process::id()));
        assert_ne!(beside(&name(1)), beside(&name(2)));
        let mut first = RequestServer::open(&one.0).unwrap();
        let _second = RequestServer::open(&other.0).unwrap();
        let path = one.0.clone();
        let asker = std::thread::spawn(move || ask(&path, Request::Probe(plan())));
        serve(&mut first, &Ok(Done::Probe(ProbeId(1))));
        assert_eq!(asker.join().unwrap().unwrap(), Done::Probe(ProbeId(1)));
        let mode = std::fs::metadata(beside(&one.0)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others may not command it");
        let error = RequestServer::open(&one.0).err().expect("the first one listens");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn what_is_no_command_is_answered_with_what_is_wrong() {
        let place = Place::new("garbage");
        let mut server = RequestServer::open(&place.0).unwrap();
        let garbage = place.refused(&mut server, b"{\xff\n");
        assert!(matches!(garbage.result, Err(CommandError::Unreadable(_))), "{garbage:?}");
        let unknown = place.refused(&mut server, b"{\"id\":9,\"request\":{\"Dance\":null}}\n");
        assert_eq!(unknown.id, RequestId(9));
        let Err(CommandError::Unknown(why)) = unknown.result else { panic!("{unknown:?}") };
        assert!(why.contains("Dance"), "{why}");
        let long = place.refused(&mut server, &[b' '; REQUEST_BYTES_MAX + 1]);
        let bytes_max = REQUEST_BYTES_MAX as u64;
        assert_eq!(long.result, Err(CommandError::TooLong { bytes_max }));
    }

    #[test]
    fn an_asker_that_vanishes_or_stays_silent_holds_nobody_up() {
        let place = Place::new("silent");
        let mut server = RequestServer::open(&place.0).unwrap();
        drop(place.connect());
        let mut half = place.connect();
        half.write_all(b"{\"id\":").unwrap();
        assert!(server.take().is_empty());
        assert_eq!(server.fds().count(), 2, "who vanished is forgotten");
        // The client disconnects before its reply.
        let command = Command { id: RequestId(1), request: Request::Probe(plan()) };
        let mut gone = place.connect();
        gone.write_all(&serde_json::to_vec(&command).unwrap()).unwrap();
        gone.write_all(b"\n").unwrap();
        drop(gone);
        let asked = server.take().pop().unwrap();
        assert_eq!(asked.command, command);
        asked.answer(&command.unsupported_by(NodeKind::Agent));
        // Only the latest of the clients without a complete command stay connected.
        let silent: Vec<UnixStream> = (0..ASKERS_MAX).map(|_| place.connect()).collect();
        assert!(server.take().is_empty());
        assert_eq!(server.fds().count(), 1 + silent.len());
        assert_eq!(half.read(&mut [0]).unwrap(), 0, "the oldest made room");
    }
}
