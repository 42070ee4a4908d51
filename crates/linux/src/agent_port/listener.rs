//! Socket at which agents attach: connections, hello messages and their rate limit.

use super::backoff::Backoff;
use super::closer::Closer;
use super::handshake::{self, HELLO_BYTES};
use super::setup::AgentPortSetup;
use crate::socket;
use axon_wire::{Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{MsgFlags, getsockopt, recv, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// Tokens that identify the events of a port's epoll descriptor.
pub(super) mod token {
    pub(in super::super) const LISTENER: u64 = 0;
    pub(in super::super) const HELLO: u64 = 1;
    pub(in super::super) const AGENT: u64 = 2;
    pub(in super::super) const BELL: u64 = 3;
    pub(in super::super) const TIMER: u64 = 4;
    pub(in super::super) const BACKOFF: u64 = 5;
}

/// Creates a disarmed timer.
pub(super) fn timer() -> nix::Result<TimerFd> {
    TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
}

/// Arms a timer. Returns whether that succeeded.
pub(super) fn wake_after(timer: &TimerFd, wait: Span) -> bool {
    let wait = TimeSpec::from_duration(Duration::from_nanos(wait.as_nanos().max(1)));
    timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty()).is_ok()
}

/// Connection after its hello, with the name and process ID of the agent or the reason for refusal.
pub(super) type Greeted = (UnixStream, Result<(String, i32), String>);

/// Socket of an agent port.
pub(super) struct Listener {
    listener: UnixListener,
    /// Connection that has not sent a hello yet.
    hello: Option<UnixStream>,
    uid: Option<u32>,
    backoff: Backoff,
    closer: Closer,
    /// Timer that ends a delay.
    timer: TimerFd,
    is_waiting: bool,
    /// Number of delays in which the port ignored its socket.
    waits: u64,
}

impl Listener {
    /// Listens on the socket in `setup` and registers its descriptors with `epoll`.
    pub(super) fn open(setup: &AgentPortSetup, epoll: &Epoll) -> anyhow::Result<Listener> {
        let listener = socket::listen(&setup.socket)?;
        std::fs::set_permissions(&setup.socket, std::fs::Permissions::from_mode(0o600))?;
        if let Some(uid) = setup.uid {
            std::os::unix::fs::chown(&setup.socket, Some(uid), None)?;
        }
        let timer = timer()?;
        epoll.add(&listener, event(token::LISTENER))?;
        epoll.add(&timer, event(token::BACKOFF))?;
        let backoff = Backoff::new(setup.backoff_max);
        let (closer, uid) = (Closer::default(), setup.uid);
        Ok(Listener {
            listener,
            hello: None,
            uid,
            backoff,
            closer,
            timer,
            is_waiting: false,
            waits: 0,
        })
    }

    /// Returns the number of delays in which the port ignored its socket.
    pub(super) const fn waits(&self) -> u64 {
        self.waits
    }

    /// Accepts one connection. It replaces an earlier one that has not sent a hello.
    pub(super) fn accept(&mut self, now: Time, epoll: &Epoll) {
        let accepted = match self.closer.start() {
            Ok(()) if self.closer.is_behind() => Err(ErrorKind::ResourceBusy.into()),
            Ok(()) => self.listener.accept().map(|(stream, _)| stream),
            Err(error) => Err(error),
        };
        self.accepted(now, accepted, epoll);
    }

    fn accepted(&mut self, now: Time, accepted: io::Result<UnixStream>, epoll: &Epoll) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                // Connections stay queued and would wake the port again at once (EMFILE), so wait.
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
                    let wait = self.backoff.broken(now);
                    self.wait(wait, epoll);
                }
                return;
            }
        };
        let watched =
            stream.set_nonblocking(true).is_ok() && epoll.add(&stream, event(token::HELLO)).is_ok();
        let before = self.hello.replace(stream);
        before.into_iter().for_each(|before| self.close(before, epoll));
        if !watched {
            self.hello.take().into_iter().for_each(|stream| self.close(stream, epoll));
        }
        let wait = self.backoff.connected(now);
        self.wait(wait, epoll);
    }

    /// Records a protocol violation of an agent.
    pub(super) fn broken(&mut self, now: Time, epoll: &Epoll) {
        let wait = self.backoff.broken(now);
        self.wait(wait, epoll);
    }

    /// Ignores the socket for a while by taking it out of epoll.
    fn wait(&mut self, wait: Option<Span>, epoll: &Epoll) {
        if !wait.is_some_and(|wait| wake_after(&self.timer, wait)) {
            return;
        }
        self.waits += 1;
        self.is_waiting = true;
        let _ = epoll.delete(&self.listener);
        self.defer(epoll);
    }

    /// Stops watching the connection that has not sent a hello.
    pub(super) fn defer(&self, epoll: &Epoll) {
        let _ = self.hello.as_ref().map(|hello| epoll.delete(hello));
    }

    /// Watches the deferred connection again, unless the socket is being ignored.
    pub(super) fn resume_deferred(&self, epoll: &Epoll) {
        let hello = self.hello.as_ref().filter(|_| !self.is_waiting);
        let _ = hello.map(|hello| epoll.add(hello, event(token::HELLO)));
    }

    /// Ends a delay: the port accepts connections again.
    pub(super) fn resume(&mut self, epoll: &Epoll) {
        let _ = self.timer.wait();
        self.is_waiting = false;
        let _ = epoll.add(&self.listener, event(token::LISTENER));
        self.resume_deferred(epoll);
    }

    /// Returns the pending connection if it has sent a hello.
    pub(super) fn greet(&mut self, epoll: &Epoll) -> Option<Greeted> {
        let stream = self.hello.take()?;
        let mut bytes = [0; HELLO_BYTES];
        let count = match peek(&stream, &mut bytes) {
            Ok(count @ 1..) => count,
            Err(Errno::EAGAIN) => {
                self.hello = Some(stream);
                return None;
            }
            Ok(0) | Err(_) => {
                self.close(stream, epoll);
                return None;
            }
        };
        let name = handshake::parse_hello(&bytes[..count]);
        let greeted = name.and_then(|name| Ok((name, self.allowed(&stream)?)));
        Some((stream, greeted))
    }

    /// Closes a connection.
    pub(super) fn close(&self, stream: UnixStream, epoll: &Epoll) {
        // The socket may not be registered.
        let _ = epoll.delete(&stream);
        self.closer.close(stream);
    }

    /// Returns the process ID of the agent if its user may attach.
    ///
    /// # Errors
    /// The user of the agent may not attach or cannot be determined.
    fn allowed(&self, stream: &UnixStream) -> Result<i32, String> {
        let peer = getsockopt(stream, sockopt::PeerCredentials)
            .map_err(|error| format!("its user is not known: {error}"))?;
        let own = nix::unistd::geteuid().as_raw();
        let allowed = [Some(0), Some(own), self.uid].contains(&Some(peer.uid()));
        if allowed {
            return Ok(peer.pid());
        }
        let (uid, expected) = (peer.uid(), self.uid.unwrap_or(own));
        Err(format!("user {uid} may not attach agents here; expected user {expected} or root"))
    }
}

impl std::ops::Drop for Listener {
    fn drop(&mut self) {
        self.hello.take().into_iter().for_each(|stream| self.closer.close(stream));
    }
}

fn event(token: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, token)
}

/// Peeks at the data received so far, without consuming it; see [`closer`](super::closer).
pub(super) fn peek(stream: &UnixStream, bytes: &mut [u8]) -> nix::Result<usize> {
    recv(stream.as_raw_fd(), bytes, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{EpollCreateFlags, EpollTimeout};
    use std::io::Write;

    #[test]
    fn who_cannot_be_accepted_now_does_not_wake_the_port_until_a_wait_is_over() {
        let path = std::env::temp_dir().join(format!("axon-accept-{}", std::process::id()));
        let setup =
            AgentPortSetup { backoff_max: Span::from_secs(3600), ..AgentPortSetup::at(&path) };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let mut listener = Listener::open(&setup, &epoll).unwrap();
        let events = || epoll.wait(&mut [EpollEvent::empty(); 8], EpollTimeout::ZERO);
        let _waiting = UnixStream::connect(&path).unwrap();
        assert_eq!(events(), Ok(1));
        listener.accepted(Time::ZERO, Err(ErrorKind::WouldBlock.into()), &epoll);
        assert_eq!((events(), listener.waits), (Ok(1), 0), "it had gone already");
        let no_descriptor = || Err(io::Error::from_raw_os_error(libc::EMFILE));
        (0..30).for_each(|_| listener.accepted(Time::ZERO, no_descriptor(), &epoll));
        assert_eq!((events(), listener.waits), (Ok(0), 30));
        listener.resume(&epoll);
        assert_eq!(events(), Ok(1));
        listener.accept(Time::ZERO, &epoll);
        assert!(listener.hello.is_some());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn while_the_socket_is_left_alone_nobody_is_accepted_and_nothing_wakes_the_port() {
        let path = std::env::temp_dir().join(format!("axon-listener-{}", std::process::id()));
        let longest = Span::from_secs(3600);
        let setup = AgentPortSetup { backoff_max: longest, ..AgentPortSetup::at(&path) };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let mut listener = Listener::open(&setup, &epoll).unwrap();
        let events = || epoll.wait(&mut [EpollEvent::empty(); 8], EpollTimeout::ZERO);
        let mut first = UnixStream::connect(&path).unwrap();
        assert_eq!(events(), Ok(1));
        listener.accept(Time::ZERO, &epoll);
        assert!(listener.greet(&epoll).is_none(), "it has said nothing yet");
        // The last of these delays is one hour.
        (0..30).for_each(|_| listener.broken(Time::ZERO, &epoll));
        first.write_all(&handshake::hello("first")).unwrap();
        let _second = UnixStream::connect(&path).unwrap();
        assert_eq!((events(), listener.waits), (Ok(0), 30));
        listener.resume(&epoll);
        assert_eq!(events(), Ok(2));
        let (_, greeted) = listener.greet(&epoll).unwrap();
        assert_eq!(greeted, Ok(("first".to_owned(), std::process::id() as i32)));
        std::fs::remove_file(&path).unwrap();
    }
}
