//! Drops at egress queues, by ingress port.
//!
//! HTB counts drops for each class, and each class is an ingress port (`shares.rs`). RTM_GETTCLASS
//! (rtnetlink(7)) lists the classes of a device, each with a tcmsg and nested statistics.

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NlasIterator,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send,
    socket,
};
use std::io;
use std::os::fd::AsRawFd;

/// Length of tcmsg: the family, three bytes of padding, and four words (ifindex, handle, parent,
/// info).
const TCMSG_BYTES: usize = 20;
const IFINDEX_AT: usize = 4;
const HANDLE_AT: usize = 8;
/// Constants from linux/rtnetlink.h and linux/gen_stats.h.
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Offset of the drops in gnet_stats_queue, after queued frames and queued bytes.
const DROPS_AT: usize = 8;

/// Returns the frames and super-packets that the egress of device `ifindex` has dropped, as pairs
/// of ingress port and count, for classes with drops.
///
/// # Errors
/// The kernel's error.
pub(super) fn dropped(ifindex: u32, ports: u16) -> io::Result<Vec<(u16, u64)>> {
    let protocol = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    send(socket.as_raw_fd(), &request(ifindex), MsgFlags::empty())?;
    let (mut dropped, mut buffer) = (Vec::new(), vec![0; 32 * 1024]);
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        if read(&buffer[..length], ports, &mut dropped) {
            return Ok(dropped);
        }
    }
}

fn request(ifindex: u32) -> Vec<u8> {
    let mut message = vec![0; NETLINK_HEADER_BYTES + TCMSG_BYTES];
    let bytes = message.len() as u32;
    let mut packet = NetlinkBuffer::new(&mut message);
    packet.set_length(bytes);
    packet.set_message_type(libc::RTM_GETTCLASS);
    packet.set_flags(NLM_F_REQUEST | NLM_F_DUMP);
    packet.payload_mut()[IFINDEX_AT..HANDLE_AT].copy_from_slice(&ifindex.to_ne_bytes());
    message
}

const NETLINK_HEADER_BYTES: usize = 16;

/// Parses one datagram of the list. Returns whether it was the last one.
fn read(mut datagram: &[u8], ports: u16, out: &mut Vec<(u16, u64)>) -> bool {
    while !datagram.is_empty() {
        let Ok(message) = NetlinkBuffer::new_checked(datagram) else { return true };
        if [NLMSG_DONE, NLMSG_ERROR].contains(&message.message_type()) {
            return true;
        }
        out.extend(class(message.payload()).filter(|(port, drops)| *port < ports && *drops > 0));
        let next = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(next..).unwrap_or(&[]);
    }
    false
}

/// Returns the ingress port of a class, and the number of its drops.
fn class(payload: &[u8]) -> Option<(u16, u64)> {
    let (tcmsg, attributes) = payload.split_at_checked(TCMSG_BYTES)?;
    let handle = u32::from_ne_bytes(*tcmsg[HANDLE_AT..].first_chunk()?);
    // Accept only classes of our qdisc, 1:, and none of a child qdisc.
    let port = (handle as u16).checked_sub(1).filter(|_| handle >> 16 == 1)?;
    let stats = find(attributes, TCA_STATS2)?;
    let queue = find(&stats, TCA_STATS_QUEUE)?;
    let drops = u32::from_ne_bytes(*queue.get(DROPS_AT..)?.first_chunk()?);
    Some((port, drops.into()))
}

fn find(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut all = NlasIterator::new(attributes).map_while(Result::ok);
    all.find(|attribute| attribute.kind() == kind).map(|attribute| attribute.value().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a class with statistics, as a message of a list.
    fn message(handle: u32, drops: u32) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let queue: Vec<u8> = words(&[7, 9_000, drops, 0, 0]);
        let attribute = |kind: u16, value: Vec<u8>| {
            let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes
        };
        let stats = attribute(TCA_STATS2, attribute(TCA_STATS_QUEUE, queue));
        let mut bytes: Vec<u8> = words(&[0, 0, 0, 0, 0, 3, handle, 0, 0]);
        bytes.extend(stats);
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&libc::RTM_NEWTCLASS.to_ne_bytes());
        bytes
    }

    #[test]
    fn classes_say_which_port_lost_how_many() {
        let classes =
            [(0x1_0001, 5), (0x1_0002, 0), (0x1_0003, 9), (0x1_fff0, 14), (0x8001_0001, 1)];
        let datagram = classes.map(|(handle, drops)| message(handle, drops)).concat();
        let mut out = Vec::new();
        assert!(!read(&datagram, 3, &mut out), "there is more");
        assert_eq!(out, [(0, 5), (2, 9)]);
        let mut end = message(0, 0);
        end[4..6].copy_from_slice(&NLMSG_DONE.to_ne_bytes());
        assert!(read(&end, 3, &mut out));
    }

    #[test]
    fn a_list_that_is_cut_off_is_no_panic() {
        let whole = message(0x1_0001, 5);
        for length in 0..whole.len() {
            read(&whole[..length], 3, &mut Vec::new());
        }
    }
}
