//! A port on a network device: packet sockets, a shared ring for what comes in, batches for
//! what goes out.
//!
//! Two sockets. The receiving one receives every frame of its device in promiscuous mode,
//! except those that this machine sends, with the state of each frame's checksum before it.
//! The sending one is bound without a protocol, so it receives nothing, and goes past the
//! queueing discipline: the node has its own queues.
//!
//! What the kernel does to frames on the way, and what is done about it here:
//! - it takes a VLAN tag out of bytes 12 to 15: the tag is put back;
//! - it leaves TCP and UDP checksums to a device that is not there: they are completed;
//! - it hands over segmentation super-frames: they are refused and counted, and the lab
//!   switches the offload off at the hosts. UDP segmentation is refused likewise.
//! - Frames below 60 bytes are passed as they are: a real device pads what it sends, and
//!   every parser here ignores what follows a packet.

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

/// Slots of a receive ring: what a million frames a second bring until a busy switch looks again,
/// and a good deal more, because others may hold its CPU. 1.7 MiB at an MTU of 1500.
const RING_SLOTS: usize = 1024;
/// The same where nothing may be lost, however busy the machine is.
const RING_SLOTS_LOSSLESS: usize = 2048;

/// Frames that hosts bring in one round, at most: a fraction of a millisecond of work.
const HOST_BURST: usize = 64;

/// A device of this network namespace as a port.
pub struct PacketPort {
    // The ring is unmapped before its socket is closed: fields drop in this order.
    ring: RxRing,
    rx: OwnedFd,
    tx: OwnedFd,
    frame_bytes_max: usize,
    /// Frames taken in one round, at most.
    burst: usize,
    counters: PortCounters,
}

impl PacketPort {
    /// Opens a device of the calling thread's network namespace. It must be up. `lossless` asks
    /// for a ring that holds more.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW, ENODEV or ENETDOWN, ENOMEM.
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

    /// Sends all of `frames`, in order; what the kernel refuses is counted and lost.
    ///
    /// # Errors
    /// The device is down or gone; the port is of no more use.
    pub fn send(&mut self, frames: &[FrameBuf]) -> io::Result<()> {
        send_all(self.tx.as_fd(), frames, &mut self.counters)
    }

    /// Takes the error that a socket holds, which is how a device that went down shows.
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
                // Its offsets count from a frame without the tag, so the sum comes first.
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
