//! Watches the network devices in a namespace for creation, removal and carrier changes.
//!
//! The kernel announces every change on a NETLINK_ROUTE socket as RTM_NEWLINK or RTM_DELLINK
//! (rtnetlink(7)), so even a short loss of carrier is detected.

use crate::sys;
use netlink_packet_core::{NLA_ALIGNTO, NetlinkBuffer, NlasIterator, parse_u32};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Byte range of the device flags in ifinfomsg (rtnetlink(7)).
const FLAGS: Range<usize> = 8..12;

/// Change of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    /// Name of the device.
    pub device: String,
    /// True if the device is up and has carrier. False if it is down, has no carrier, or is gone.
    pub up: bool,
}

/// Subscription to the devices of one network namespace.
pub struct LinkWatch {
    socket: OwnedFd,
}

impl LinkWatch {
    /// Subscribes in the calling thread's network namespace.
    ///
    /// # Errors
    /// The netlink socket cannot be opened, which is not expected.
    pub fn open() -> io::Result<LinkWatch> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32))?;
        Ok(LinkWatch { socket })
    }

    /// Returns the descriptor to poll for readability.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Appends all changes since the last call, in order. Returns false if some were lost. The
    /// caller must then check every device.
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

/// Returns whether a device exists, is up and has carrier.
pub fn is_up(device: &str) -> bool {
    sys::device_flags(device).is_ok_and(|flags| flags & sys::UP_AND_RUNNING == sys::UP_AND_RUNNING)
}

/// Parses the link messages of a netlink datagram, up to the first truncated one.
///
/// Attributes that are not needed are skipped without decoding. A full parser would reject the
/// message if another kernel used a different length for one of them.
fn parse(mut datagram: &[u8], out: &mut Vec<LinkEvent>) {
    while !datagram.is_empty() {
        let Ok(message) = NetlinkBuffer::new_checked(datagram) else { return };
        out.extend(event(message.message_type(), message.payload()));
        let next = (message.length() as usize).next_multiple_of(NLA_ALIGNTO);
        datagram = datagram.get(next..).unwrap_or(&[]);
    }
}

/// Returns the event from a link message that names its device. The payload is an ifinfomsg
/// (rtnetlink(7)), followed by attributes.
fn event(message_type: u16, payload: &[u8]) -> Option<LinkEvent> {
    let is_there = match message_type {
        libc::RTM_NEWLINK => true,
        libc::RTM_DELLINK => false,
        _ => return None,
    };
    let (info, attributes) = payload.split_at_checked(size_of::<libc::ifinfomsg>())?;
    let flags = parse_u32(info.get(FLAGS)?).ok()?;
    let mut attributes = NlasIterator::new(attributes).map_while(Result::ok);
    let name = attributes.find(|attribute| attribute.kind() == libc::IFLA_IFNAME)?;
    let name = name.value().split(|byte| *byte == 0).next()?;
    let device = String::from_utf8_lossy(name).into_owned();
    Some(LinkEvent { device, up: is_there && flags & sys::UP_AND_RUNNING == sys::UP_AND_RUNNING })
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
    fn a_cut_message_is_no_event_and_an_altered_one_is_one_at_most() {
        let datagram = message(libc::RTM_NEWLINK, 0, "s1-p0");
        let events = |bytes: &[u8]| {
            let mut events = Vec::new();
            parse(bytes, &mut events);
            events
        };
        let whole = LinkEvent { device: "s1-p0".into(), up: false };
        assert_eq!(events(&datagram), std::slice::from_ref(&whole));
        // Ranges of the lengths and types of the message and of its attribute, the flags, and the
        // name.
        let read = [0..6, 24..28, 32..42];
        for at in 0..datagram.len() {
            assert_eq!(events(&datagram[..at]), [], "{at} bytes");
            let mut altered = datagram.clone();
            altered[at] ^= 0xff;
            let events = events(&altered);
            assert!(events.len() <= 1, "byte {at}: {events:?}");
            let matters = read.iter().any(|read| read.contains(&at));
            assert!(matters || events == [whole.clone()], "byte {at}: {events:?}");
        }
    }
}
