//! Sees at once when a device of this network namespace comes, goes or changes carrier.
//!
//! The kernel announces every change on a NETLINK_ROUTE socket as RTM_NEWLINK or
//! RTM_DELLINK (rtnetlink(7)), so even a carrier that is lost and back again between two
//! looks is not missed.

use crate::sys;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What became of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    /// Its name.
    pub device: String,
    /// Whether it is up and has carrier; false too if it is gone.
    pub up: bool,
}

/// A subscription to the devices of one network namespace.
pub struct LinkWatch {
    socket: OwnedFd,
}

impl LinkWatch {
    /// Subscribes in the calling thread's network namespace.
    ///
    /// # Errors
    /// What the kernel says to a netlink socket; none is expected.
    pub fn open() -> io::Result<LinkWatch> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32))?;
        Ok(LinkWatch { socket })
    }

    /// What to poll for readability.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Appends all changes since the last call, in order. Returns false if some were lost:
    /// then every device must be looked at.
    pub fn read(&mut self, out: &mut Vec<LinkEvent>) -> bool {
        let mut buffer = [0; 32 * 1024];
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => parse(&buffer[..length], out),
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => return false,
                Err(_) => return true,
            }
        }
    }
}

/// Whether a device is there, up and has carrier now.
pub fn is_up(device: &str) -> bool {
    sys::device_flags(device).is_ok_and(|flags| flags & sys::UP_AND_RUNNING == sys::UP_AND_RUNNING)
}

/// Reads the link messages out of one netlink datagram: nlmsghdr (16 bytes), ifinfomsg (16
/// bytes, flags at 8), then attributes, each with its length, padded to 4 bytes.
fn parse(mut datagram: &[u8], out: &mut Vec<LinkEvent>) {
    while datagram.len() >= 32 {
        let word = |at: usize| {
            datagram.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
        };
        let length = word(0) as usize;
        if length < 32 || length > datagram.len() {
            return;
        }
        let kind = u16::from_ne_bytes([datagram[4], datagram[5]]);
        let flags = word(24);
        if let Some(device) = device_name(&datagram[32..length]) {
            let running = flags & sys::UP_AND_RUNNING == sys::UP_AND_RUNNING;
            match kind {
                libc::RTM_NEWLINK => out.push(LinkEvent { device, up: running }),
                libc::RTM_DELLINK => out.push(LinkEvent { device, up: false }),
                _ => {}
            }
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
}

/// The IFLA_IFNAME among a link message's attributes.
fn device_name(mut attributes: &[u8]) -> Option<String> {
    while let Some([a, b, c, d]) = attributes.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([*a, *b]));
        let value = attributes.get(4..length)?;
        if u16::from_ne_bytes([*c, *d]) == libc::IFLA_IFNAME {
            let name = value.split(|byte| *byte == 0).next()?;
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u32, name: &str) -> Vec<u8> {
        let mut body = vec![0; 32];
        body[4..6].copy_from_slice(&kind.to_ne_bytes());
        body[24..28].copy_from_slice(&flags.to_ne_bytes());
        body.extend_from_slice(&(4 + name.len() as u16 + 1).to_ne_bytes());
        body.extend_from_slice(&libc::IFLA_IFNAME.to_ne_bytes());
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32;
        body[..4].copy_from_slice(&length.to_ne_bytes());
        body
    }

    #[test]
    fn a_datagram_with_two_changes_gives_two_events() {
        let mut datagram = message(libc::RTM_NEWLINK, sys::UP_AND_RUNNING, "s1-p0");
        datagram.extend(message(libc::RTM_DELLINK, sys::UP_AND_RUNNING, "s1-p10"));
        let mut events = Vec::new();
        parse(&datagram, &mut events);
        let event = |device: &str, up| LinkEvent { device: device.into(), up };
        assert_eq!(events, [event("s1-p0", true), event("s1-p10", false)]);
    }

    #[test]
    fn cut_and_altered_messages_are_no_panic() {
        let datagram = message(libc::RTM_NEWLINK, 0, "s1-p0");
        for length in 0..datagram.len() {
            parse(&datagram[..length], &mut Vec::new());
            let mut altered = datagram.clone();
            altered[length] ^= 0xff;
            parse(&altered, &mut Vec::new());
        }
    }
}
