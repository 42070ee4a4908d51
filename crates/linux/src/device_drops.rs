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
use std::cell::Cell;
use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;

const NETLINK_HEADER_BYTES: usize = 16;
/// Offset of the ifindex in ifinfomsg.
const IFINDEX_AT: usize = 4;
/// Offset of `tx_dropped` in rtnl_link_stats64 (linux/if_link.h).
const TX_DROPPED_AT: usize = 7 * 8;

/// Drops of each of `N` devices, as last read.
pub(crate) struct LastDrops<const N: usize>(Cell<[u64; N]>);

impl<const N: usize> LastDrops<N> {
    /// Creates counts of zero.
    pub(crate) fn new() -> LastDrops<N> {
        LastDrops(Cell::new([0; N]))
    }

    /// Returns the sum, with these counts of devices. The count of a device that cannot be read
    /// stays, so that the sum never decreases.
    pub(crate) fn sum(&self, read: impl Iterator<Item = (usize, io::Result<u64>)>) -> u64 {
        let mut last = self.0.get();
        for (device, count) in read {
            if let (Some(last), Ok(count)) = (last.get_mut(device), count) {
                *last = count.max(*last);
            }
        }
        self.0.set(last);
        last.iter().sum()
    }
}

/// Returns the frames that device `ifindex` has dropped instead of sending them. If `name` is
/// given, the device must have this name, because the ifindex of a deleted device may pass to
/// another one.
///
/// # Errors
/// There is no such device in this namespace.
pub(crate) fn tx_dropped(ifindex: u32, name: Option<&str>) -> io::Result<u64> {
    let protocol = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    send(socket.as_raw_fd(), &request(ifindex), MsgFlags::empty())?;
    let mut buffer = vec![0; 32 * 1024];
    let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
    parse(&buffer[..length], name).ok_or_else(|| ErrorKind::NotFound.into())
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

/// Parses the answer. `None` if the device has another name.
fn parse(datagram: &[u8], name: Option<&str>) -> Option<u64> {
    let message = NetlinkBuffer::new_checked(datagram).ok()?;
    if message.message_type() != libc::RTM_NEWLINK {
        return None;
    }
    let (_, attributes) = message.payload().split_at_checked(size_of::<libc::ifinfomsg>())?;
    let find = |kind| {
        let mut all = NlasIterator::new(attributes).map_while(Result::ok);
        all.find(|attribute| attribute.kind() == kind)
    };
    if let Some(name) = name {
        let found = find(libc::IFLA_IFNAME)?;
        CStr::from_bytes_until_nul(found.value())
            .ok()
            .filter(|found| found.to_bytes() == name.as_bytes())?;
    }
    let statistics = find(libc::IFLA_STATS64)?;
    let dropped = statistics.value().get(TX_DROPPED_AT..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*dropped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_cannot_be_read_stays_and_the_sum_never_decreases() {
        let drops = LastDrops::<2>::new();
        let gone = || Err(ErrorKind::NotFound.into());
        assert_eq!(drops.sum([(0, Ok(5)), (1, Ok(2))].into_iter()), 7);
        assert_eq!(drops.sum([(0, gone()), (1, Ok(3))].into_iter()), 8);
        assert_eq!(drops.sum([(1, gone())].into_iter()), 8);
        assert_eq!(drops.sum([(0, Ok(6)), (1, Ok(0))].into_iter()), 9);
    }

    #[test]
    fn an_answer_that_is_cut_off_or_of_another_device_or_another_message_has_no_count() {
        let mut message = request(7);
        let mut attribute = |kind: u16, value: &[u8]| {
            message.extend((4 + value.len() as u16).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
        };
        attribute(libc::IFLA_IFNAME, b"axon-a0\0");
        let mut values = [0; 25 * 8];
        values[TX_DROPPED_AT..TX_DROPPED_AT + 8].copy_from_slice(&5u64.to_ne_bytes());
        attribute(libc::IFLA_STATS64, &values);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(parse(&message, None), None, "a request");
        message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        assert_eq!(parse(&message, None), Some(5));
        assert_eq!(parse(&message, Some("axon-a0")), Some(5));
        assert_eq!(parse(&message, Some("axon-a")), None);
        assert!((0..message.len()).all(|length| parse(&message[..length], None).is_none()));
    }
}
