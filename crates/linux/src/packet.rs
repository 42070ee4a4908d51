//! Port on a network device. It uses packet sockets, with a shared ring for receiving and batches
//! for sending.
//!
//! There are two sockets. The receiving socket gets every frame on its device in promiscuous mode,
//! except those that this machine sends, with the checksum state before each frame. The sending
//! socket is bound without a protocol, so that it receives nothing. It bypasses the queueing
//! discipline, because the node has its own queues.
//!
//! The kernel makes these changes to frames, which are handled here as follows:
//! - It removes a VLAN tag from bytes 12 to 15. The tag is restored.
//! - It leaves TCP and UDP checksums to a device that does not exist. They are completed.
//! - It delivers segmentation super-frames. They are refused and counted, and the lab disables the
//!   offload at the hosts. Frames with UDP segmentation are also refused.
//! - It does not pad frames below 60 bytes. They are passed unchanged, because a real device pads
//!   the frames that it sends, and every parser here ignores bytes after a packet.

use crate::offload::complete_checksum;
use crate::port::{Pool, Port, PortCounters, send_all};
use crate::ring::RxRing;
use crate::sys;
use axon_node::PortKind;
use axon_wire::FrameBuf;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::vlan::TAG_BYTES;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Number of slots in a receive ring. They hold the frames that arrive at a million per second
/// until a busy switch polls again, with a margin for other load on its CPU. At an MTU of 1500, the
/// ring takes 1.7 MiB.
const RING_SLOTS: usize = 1024;
/// Number of slots in the receive ring of a lossless port, sized for any load on the machine.
const RING_SLOTS_LOSSLESS: usize = 2048;

/// Maximum number of frames from hosts in one round: a fraction of a millisecond of work.
const HOST_BURST: usize = 64;

/// Port on a network device in this namespace.
pub struct PacketPort {
    // Fields drop in this order, so the ring is unmapped before its socket is closed.
    ring: RxRing,
    rx: OwnedFd,
    tx: OwnedFd,
    frame_bytes_max: usize,
    /// Maximum frames received in one round.
    burst: usize,
    counters: PortCounters,
}

impl PacketPort {
    /// Opens a device in the calling thread's network namespace. The device must be up. `lossless`
    /// selects a larger ring.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV or ENETDOWN for a missing or down device, and ENOMEM.
    pub fn open(device: &str, lossless: bool) -> io::Result<PacketPort> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let frame_bytes_max = sys::device_mtu(device)? + ETHERNET_BYTES + TAG_BYTES;
        let rx = sys::packet_socket()?;
        let slots = if lossless { RING_SLOTS_LOSSLESS } else { RING_SLOTS };
        let ring = RxRing::new(rx.as_fd(), frame_bytes_max, slots)?;
        sys::set_packet_option(rx.as_fd(), libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        sys::promiscuous(rx.as_fd(), index)?;
        let tx = sys::packet_socket()?;
        sys::set_packet_option(tx.as_fd(), libc::PACKET_QDISC_BYPASS, &1i32)?;
        sys::bind_packet(tx.as_fd(), index, 0)?;
        sys::bind_packet(rx.as_fd(), index, libc::ETH_P_ALL as u16)?;
        let (burst, counters) = (ring.slots(), PortCounters::default());
        Ok(PacketPort { ring, rx, tx, frame_bytes_max, burst, counters })
    }

    /// Sends all of `frames`, in order. Frames that the kernel refuses are counted and lost.
    ///
    /// # Errors
    /// The device is down or gone. The port is then no longer usable.
    pub fn send(&mut self, frames: &[FrameBuf]) -> io::Result<()> {
        send_all(self.tx.as_fd(), frames, &mut self.counters)
    }

    /// Takes the pending error of a socket, which indicates that the device went down.
    fn pending_error(&self) -> io::Result<()> {
        match nix::sys::socket::getsockopt(&self.rx, nix::sys::socket::sockopt::SocketError)? {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

impl Port for PacketPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.rx.as_fd()
    }

    fn into_sockets(self: Box<Self>) -> Vec<OwnedFd> {
        let PacketPort { ring, rx, tx, .. } = *self;
        drop(ring);
        vec![rx, tx]
    }

    fn has_frame(&self) -> Option<bool> {
        Some(self.ring.has_frame())
    }

    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool> {
        let frame_bytes_max = self.frame_bytes_max;
        for taken in 0..self.burst {
            let counters = &mut self.counters;
            let frame = self.ring.take(|received| {
                let tag_bytes = received.vlan.map_or(0, |_| TAG_BYTES);
                if received.oversized || received.bytes.len() + tag_bytes > frame_bytes_max {
                    counters.rx_oversized += 1;
                    return None;
                }
                counters.rx_tags_restored += u64::from(received.vlan.is_some());
                let Some(partial) = received.checksum else {
                    return Some(pool.frame(received.bytes, received.vlan));
                };
                // The offsets refer to a frame without the tag, so complete the checksum first.
                let mut finished = pool.frame(received.bytes, None);
                let done = complete_checksum(finished.bytes_mut(), partial);
                counters.rx_checksums_completed += u64::from(done);
                if received.vlan.is_none() {
                    return Some(finished);
                }
                let tagged = pool.frame(finished.bytes(), received.vlan);
                pool.recycle(finished);
                Some(tagged)
            });
            let Some(frame) = frame else {
                if taken == 0 {
                    self.pending_error()?;
                }
                return Ok(false);
            };
            if let Some(frame) = frame {
                counters.rx_frames += 1;
                counters.rx_bytes += frame.bytes().len() as u64;
                out.push(frame);
            }
        }
        Ok(true)
    }

    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()> {
        self.send(frames)
    }

    fn set_kind(&mut self, kind: PortKind) {
        let slots = self.ring.slots();
        self.burst = if kind == PortKind::Host { slots.min(HOST_BURST) } else { slots };
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.rx_ring_drops += sys::packet_drops(self.rx.as_fd()).unwrap_or(0);
        self.counters
    }
}
