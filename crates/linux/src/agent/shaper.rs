//! Sets the shapers of [`HostQueues`] over rtnetlink.

use super::queues::{HostQueues, LIMIT_BYTES, OPEN, number};
use crate::sys;
use axon_wire::constants::ethertype;
use axon_wire::priority::{Priority, PrioritySet};
use netlink_packet_core::{
    DefaultNla, Emitable, ErrorBuffer, NLM_F_ACK, NLM_F_REQUEST, NLMSG_ERROR, NetlinkBuffer,
    NetlinkHeader,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send,
    setsockopt, socket, sockopt,
};
use std::io;
use std::num::NonZero;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Rate of a paused priority, in bytes per second: the lowest rate that TBF accepts.
const PAUSED: u32 = 1;
/// Attributes of TBF, and the link layer type that needs no cells (linux/pkt_sched.h).
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Frame that makes the kernel re-evaluate its queues. It has no receiver. Its EtherType is the
/// local experimental EtherType 2 (IEEE 802 clause 9.2.3).
pub(super) const NUDGE: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[0], frame[6]) = (2, 2);
    [frame[12], frame[13]] = ethertype::PROBE.to_be_bytes();
    frame
};
/// Priority of a packet that bypasses all classes of HTB: the number of the qdisc itself.
const PAST_CLASSES: i32 = 0x1_0000;

/// Shapers of one interface, one for each priority.
pub(super) struct Shapers {
    netlink: OwnedFd,
    nudge: OwnedFd,
    index: u32,
    burst_bytes: u32,
    /// Paused priorities.
    paused: PrioritySet,
    /// Number of times that a priority was paused.
    pub(super) pauses: u64,
    /// Number of requests that the kernel refused.
    pub(super) refused: u64,
}

impl Shapers {
    /// Opens the shapers of `device`. They must exist, and none may be paused.
    pub(super) fn open(device: &str, queues: &HostQueues) -> io::Result<Shapers> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkRoute;
        let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        connect(netlink.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        let index = nix::net::if_::if_nametoindex(device)?;
        let nudge = sys::packet_socket()?;
        sys::bind_packet(nudge.as_fd(), index, 0)?;
        setsockopt(&nudge, sockopt::Priority, &PAST_CLASSES)?;
        Ok(Shapers {
            netlink,
            nudge,
            index,
            burst_bytes: queues.burst_bytes() as u32,
            paused: PrioritySet::EMPTY,
            pauses: 0,
            refused: 0,
        })
    }

    /// Pauses these priorities and resumes all others.
    pub(super) fn pause(&mut self, wanted: PrioritySet) {
        let (paused, released) = (wanted.difference(self.paused), self.paused.difference(wanted));
        self.pauses += paused.len() as u64;
        for priority in paused.union(released).iter() {
            let rate = if wanted.contains(priority) { PAUSED } else { OPEN };
            if let Err(error) = self.set_rate(priority, rate) {
                self.refused += 1;
                tracing::warn!(%error, priority = priority.value(), "a shaper cannot be set");
            }
        }
        self.paused = wanted;
        // The kernel does not re-evaluate a shaper with a higher rate until something is sent.
        if !released.is_empty() && sys::send_many(self.nudge.as_fd(), &[&NUDGE]).is_err() {
            self.refused += 1;
        }
    }

    /// Sets the rate of one shaper, in bytes per second.
    fn set_rate(&self, priority: Priority, rate: u32) -> io::Result<()> {
        let request = request(self.index, number(priority), rate, self.burst_bytes);
        send(self.netlink.as_raw_fd(), &request, MsgFlags::empty())?;
        let mut answer = [0; 1024];
        let length = recv(self.netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        match answered(&answer[..length]) {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(-code)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Builds an RTM_NEWQDISC request for the existing TBF of class `1:number` (rtnetlink(7)). It
/// consists of nlmsghdr, tcmsg, kind and options. The options are a tc_tbf_qopt, with rate, peak
/// rate, limit, bucket size and MTU.
fn request(index: u32, number: u32, rate: u32, burst_bytes: u32) -> Vec<u8> {
    let mut parameters = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&rate.to_ne_bytes());
    parameters.extend_from_slice(&[0; 12]);
    for word in [LIMIT_BYTES, 0, 0] {
        parameters.extend_from_slice(&word.to_ne_bytes());
    }
    let options = attributes(&[
        DefaultNla::new(TCA_TBF_PARMS, parameters),
        DefaultNla::new(TCA_TBF_BURST, burst_bytes.to_ne_bytes().into()),
    ]);
    let mut body = vec![0; 4];
    for word in [index, number << 16, 1 << 16 | number, 0] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    body.extend(attributes(&[
        DefaultNla::new(libc::TCA_KIND, b"tbf\0".into()),
        DefaultNla::new(libc::TCA_OPTIONS, options),
    ]));
    let bytes = NetlinkHeader::default().buffer_len() + body.len();
    let mut message = vec![0; bytes];
    let mut packet = NetlinkBuffer::new(&mut message);
    packet.set_length(bytes as u32);
    packet.set_message_type(libc::RTM_NEWQDISC);
    packet.set_flags(NLM_F_REQUEST | NLM_F_ACK);
    packet.payload_mut().copy_from_slice(&body);
    message
}

/// Serializes attributes, each padded to four bytes.
fn attributes(list: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; list.buffer_len()];
    list.emit(&mut bytes);
    bytes
}

/// Returns the code in an acknowledgement: 0, or a negative error number.
fn answered(message: &[u8]) -> Option<i32> {
    let packet = NetlinkBuffer::new_checked(message).ok()?;
    if packet.message_type() != NLMSG_ERROR {
        return None;
    }
    let error = ErrorBuffer::new_checked(packet.payload()).ok()?;
    Some(error.code().map_or(0, NonZero::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_its_own_length_and_names_class_and_qdisc() {
        let message = request(7, number(Priority::ALL[3]), PAUSED, 1_518);
        assert_eq!(message.len(), 96);
        assert_eq!(message[..4], 96u32.to_ne_bytes());
        let word = |at: usize| u32::from_ne_bytes(*message[at..].first_chunk().unwrap());
        assert_eq!((word(20), word(24), word(28)), (7, 0x13_0000, 0x1_0013));
    }

    #[test]
    fn an_answer_that_is_cut_off_is_none() {
        let mut answer = [0; 36];
        answer[..4].copy_from_slice(&36u32.to_ne_bytes());
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert_eq!(answered(&answer), Some(0));
        answer[16..20].copy_from_slice(&(-1i32).to_ne_bytes());
        assert_eq!(answered(&answer), Some(-1));
        assert!((0..36).all(|bytes| answered(&answer[..bytes]).is_none()));
        answer[..4].copy_from_slice(&19u32.to_ne_bytes());
        assert_eq!(answered(&answer), None, "the header ends before the code does");
    }
}
