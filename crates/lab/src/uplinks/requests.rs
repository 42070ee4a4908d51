//! Protocol between the supervisor of a lab and the keeper of its devices. It runs over a socket
//! pair. Each message is one record with one network namespace.

use super::super::plan::UplinkPlan;
use super::device::Taken;
use anyhow::{Context, Result, anyhow, bail};
use axon_agent_port::descriptors;
use axon_linux::log;
use axon_linux::namespace::Namespace;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Longest message, in bytes. A device has at most a few hundred addresses.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Request to move this device into the enclosed namespace.
#[derive(Serialize, Deserialize)]
pub(super) struct Request(pub UplinkPlan);

/// Device that was moved, with the namespace it came from; or the error.
#[derive(Serialize, Deserialize)]
pub(super) struct Answer(pub Result<Taken, String>);

/// Creates a pair of sockets that preserves message boundaries and reports a closed peer.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Sends a message with a namespace.
pub(super) fn send(to: BorrowedFd<'_>, what: &impl Serialize, with: &Namespace) -> Result<()> {
    let bytes = serde_json::to_vec(what)?;
    let fds = [with.as_fd().as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&fds)];
    let parts = [IoSlice::new(&bytes)];
    sendmsg::<()>(to.as_raw_fd(), &parts, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Receives a message and its namespace. Returns `None` if the other end is closed.
pub(super) fn receive<T: DeserializeOwned>(from: BorrowedFd<'_>) -> Result<Option<(T, Namespace)>> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let (length, mut fds) = loop {
        match descriptors::receive(from, &mut bytes) {
            Err(error) if error.raw_os_error() == Some(Errno::EINTR as i32) => {}
            // The other end was closed before it had read all data.
            Err(error) if error.raw_os_error() == Some(Errno::ECONNRESET as i32) => {
                return Ok(None);
            }
            received => break received?,
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let fd = fds.pop().context("no namespace comes with a message")?;
    Ok(Some((serde_json::from_slice(&bytes[..length])?, fd.into())))
}

/// Supervisor's end of the socket pair, with the devices that the supervisor has requested.
pub(in super::super) struct Keeper {
    socket: OwnedFd,
    held: Vec<(Taken, Namespace, Namespace)>,
}

impl Keeper {
    /// Creates the supervisor's end on this socket.
    pub(in super::super) fn at(socket: OwnedFd) -> Keeper {
        Keeper { socket, held: Vec::new() }
    }

    /// Makes the keeper move a device into the network namespace of the calling thread.
    ///
    /// # Errors
    /// The keeper reports an error.
    pub(in super::super) fn take(&mut self, uplink: &UplinkPlan) -> Result<()> {
        let switch = Namespace::here()?;
        send(self.socket.as_fd(), &Request(uplink.clone()), &switch)
            .context("the keeper of devices has ended")?;
        let Some((Answer(answer), home)) = receive(self.socket.as_fd())? else {
            bail!("the keeper of devices has ended");
        };
        let taken = answer.map_err(|why| anyhow!(why))?;
        self.held.push((taken, switch, home));
        Ok(())
    }

    /// Returns all devices, in place of a keeper that has ended. Returns the errors. Leaves the
    /// calling thread in another network namespace.
    pub(in super::super) fn give_back_without(&mut self) -> Vec<anyhow::Error> {
        let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let is_there = poll(&mut socket, PollTimeout::ZERO).is_ok_and(|closed| closed == 0);
        if is_there {
            return Vec::new();
        }
        let back = self.held.drain(..).map(|(taken, switch, home)| {
            home.enter()?;
            taken.give_back(&switch, &home)
        });
        back.filter_map(Result::err).collect()
    }
}

/// Covers every way in which the supervisor ends, so that a lab that failed to start also returns
/// its devices.
impl Drop for Keeper {
    fn drop(&mut self) {
        for error in self.give_back_without() {
            log::line(format_args!("{error:#}"));
        }
    }
}
