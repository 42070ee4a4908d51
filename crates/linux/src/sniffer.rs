//! Captures the packets on a device, even if the kernel forwards them.
//!
//! A packet socket gets a copy of each packet before the programs at tc ingress, and of each
//! outgoing packet after the egress queues. Super-packets are captured whole, as hosts and the
//! kernel carry them.

use crate::offload::{append_with_tag, complete_checksum};
use crate::ring::RxRing;
use crate::sys;
use axon_capture::pcap::Direction;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Length of the longest super-packet with a header before it, in bytes.
const PACKET_BYTES_MAX: usize = 65_536 + 256;
/// Number of ring slots, for packets that wait while the process is late.
const SLOTS: usize = 64;

/// Packet captured on a device.
pub struct Seen {
    /// Kernel timestamp, in nanoseconds since 1970.
    pub unix_nanos: u64,
    /// Direction at the device.
    pub direction: Direction,
    /// Bytes of the whole packet.
    pub bytes: Vec<u8>,
}

/// Packet socket that captures the packets on a device.
pub struct Sniffer {
    // Fields drop in this order, so the ring is unmapped before its socket is closed.
    ring: RxRing,
    socket: OwnedFd,
}

impl Sniffer {
    /// Starts capturing on a device in the calling thread's network namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV or ENETDOWN for a missing or down device, and ENOMEM.
    pub(crate) fn open(device: &str) -> io::Result<Sniffer> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let socket = sys::packet_socket()?;
        let ring = RxRing::new(socket.as_fd(), PACKET_BYTES_MAX, SLOTS)?;
        sys::promiscuous(socket.as_fd(), index)?;
        sys::bind_packet(socket.as_fd(), index, libc::ETH_P_ALL as u16)?;
        Ok(Sniffer { ring, socket })
    }

    /// Returns the descriptor to poll for readability.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Appends the packets captured since the last call, at most a ring's worth, each with `mark`.
    pub(crate) fn take<M: Copy>(&mut self, mark: M, out: &mut Vec<(M, Seen)>) {
        for _ in 0..self.ring.slots() {
            let seen = self.ring.take(|frame| {
                let mut whole = frame.bytes.to_vec();
                // The offsets refer to a frame without the tag. A super-packet has no checksum yet.
                let partial = frame.checksum.filter(|_| !frame.oversized);
                partial.map(|partial| complete_checksum(&mut whole, partial));
                let mut bytes = Vec::with_capacity(whole.len() + 4);
                append_with_tag(&mut bytes, &whole, frame.vlan);
                let left = frame.outgoing;
                let direction = if left { Direction::Outbound } else { Direction::Inbound };
                Seen { unix_nanos: frame.unix_nanos, direction, bytes }
            });
            match seen {
                Some(seen) => out.push((mark, seen)),
                None => return,
            }
        }
    }

    /// Returns the number of packets lost since the last call because the ring was full.
    pub(crate) fn missed(&self) -> u64 {
        sys::packet_drops(self.socket.as_fd()).unwrap_or(0)
    }
}
