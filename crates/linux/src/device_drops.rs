//! Frames that a network device has dropped instead of sending them.
//!
//! A TAP device drops them while the ring to its process is full, and only the device counts them.
//! RTM_GETLINK (rtnetlink(7)) reads its statistics in the network namespace of the calling thread,
//! which need not be that of `/sys`.

use netlink_packet_core::{NLM_F_REQUEST, NetlinkBuffer, NlasIterator};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send,
    socket,
};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;

const NETLINK_HEADER_BYTES: usize = 16;
/// Offset of the ifindex in ifinfomsg.
const IFINDEX_AT: usize = 4;
/// Offset of `tx_dropped` in rtnl_link_stats64 (linux/if_link.h).
const TX_DROPPED_AT: usize = 7 * 8;

/// Returns the frames that device `ifindex` has dropped instead of sending them.
///
/// # Errors
/// There is no such device in this namespace.
pub(crate) fn tx_dropped(ifindex: u32) -> io::Result<u64> {
    let protocol = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    send(socket.as_raw_fd(), &request(ifindex), MsgFlags::empty())?;
    let mut buffer = vec![0; 32 * 1024];
    let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
    parse(&buffer[..length]).ok_or_else(|| ErrorKind::NotFound.into())
}

fn request(ifindex: u32) -> Vec<u8> {
    let mut message = vec![0; NETLINK_HEADER_BYTES + size_of::<libc::ifinfomsg>()];
    let bytes = message.len() as u32;
    let mut packet = NetlinkBuffer::new(&mut message);
    packet.set_length(bytes);
    packet.set_message_type(libc::RTM_GETLINK);
    packet.set_flags(NLM_F_REQUEST);
    packet.payload_mut()[IFINDEX_AT..IFINDEX_AT + 4].copy_from_slice(&ifindex.to_ne_bytes());
    message
}

/// Parses the answer.
fn parse(datagram: &[u8]) -> Option<u64> {
    let message = NetlinkBuffer::new_checked(datagram).ok()?;
    if message.message_type() != libc::RTM_NEWLINK {
        return None;
    }
    let (_, attributes) = message.payload().split_at_checked(size_of::<libc::ifinfomsg>())?;
    let mut all = NlasIterator::new(attributes).map_while(Result::ok);
    let statistics = all.find(|attribute| attribute.kind() == libc::IFLA_STATS64)?;
    let dropped = statistics.value().get(TX_DROPPED_AT..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*dropped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_off_or_is_another_message_has_no_count() {
        let mut message = request(7);
        let mut values = [0; 25 * 8];
        values[TX_DROPPED_AT..TX_DROPPED_AT + 8].copy_from_slice(&5u64.to_ne_bytes());
        message.extend((4 + values.len() as u16).to_ne_bytes());
        message.extend(libc::IFLA_STATS64.to_ne_bytes());
        message.extend(values);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(parse(&message), None, "a request");
        message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        assert_eq!(parse(&message), Some(5));
        assert!((0..message.len()).all(|length| parse(&message[..length]).is_none()));
    }
}
