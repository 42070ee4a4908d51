//! Interface between real ports and the run loop, and the pool of frame memory.

use crate::agent_port::AgentStatus;
use crate::offload::append_with_tag;
use crate::sys;
use axon_fabric::model::Fabric;
use axon_node::PortKind;
use axon_switch::agent::Rules;
use axon_wire::FrameBuf;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::vlan::TAG_BYTES;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Returns the MTU that a link between switches needs for hosts with `host_mtu`, in bytes.
///
/// A frame from a host has at most MTU + 14 + 4 bytes (Ethernet header and one VLAN tag). The route
/// before it has at most [`FrameBuf::HEADROOM`] = 128 bytes. A device accepts frames of its MTU +
/// 14 bytes. A probe of that length collects [`RECORDS_BYTES_MAX`] = 512 bytes at its tail.
/// Therefore, the MTU must be `host_mtu + 4 + 128 + 512`. Control messages are bounded by the
/// host's MTU.
pub const fn fabric_mtu(host_mtu: usize) -> usize {
    host_mtu + TAG_BYTES + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
}

/// Returns the MTU of a link between two switches in `fabric`, in bytes. For programmable switches,
/// it allows for the headers that table entries prepend to a host's tagged frame. For others, it is
/// [`fabric_mtu`].
pub fn link_mtu(fabric: &Fabric) -> usize {
    let host_mtu = usize::from(fabric.mtu);
    match &fabric.program {
        Some(program) => host_mtu + TAG_BYTES + program.overhead_bytes(),
        None => fabric_mtu(host_mtu),
    }
}

/// Counters of one port since it was first opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Frames received and passed to the node.
    pub rx_frames: u64,
    /// Bytes received and passed to the node, without FCS.
    pub rx_bytes: u64,
    /// Frames that the kernel dropped because this process was late and the ring full.
    pub rx_ring_drops: u64,
    /// Frames that a capture has missed because this process was late. They are not lost.
    pub capture_missed: u64,
    /// Refused frames: over the MTU, or segmentation-offload super-frames.
    pub rx_oversized: u64,
    /// Completed checksums that a host had left to its device.
    pub rx_checksums_completed: u64,
    /// Frames whose VLAN tag the kernel removed and that was restored.
    pub rx_tags_restored: u64,
    /// Frames sent by the port.
    pub tx_frames: u64,
    /// Bytes sent by the port, without FCS.
    pub tx_bytes: u64,
    /// Frames that the kernel refused to send.
    pub tx_refused: u64,
    /// Pauses of a priority of a host at its interface.
    pub host_pauses: u64,
    /// Failed requests to the kernel to pause or resume queues.
    pub host_pauses_refused: u64,
}

impl PortCounters {
    /// Returns the counters of lost frames, with their names in the status report.
    pub fn lost(&self) -> [(&'static str, u64); 3] {
        [
            ("rx_ring_drops", self.rx_ring_drops),
            ("rx_oversized", self.rx_oversized),
            ("tx_refused", self.tx_refused),
        ]
    }

    /// Adds the counters of another port.
    pub fn add(&mut self, other: PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.rx_ring_drops += other.rx_ring_drops;
        self.capture_missed += other.capture_missed;
        self.rx_oversized += other.rx_oversized;
        self.rx_checksums_completed += other.rx_checksums_completed;
        self.rx_tags_restored += other.rx_tags_restored;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.tx_refused += other.tx_refused;
        self.host_pauses += other.host_pauses;
        self.host_pauses_refused += other.host_pauses_refused;
    }
}

/// Interface for sending and receiving whole Ethernet frames.
pub trait Port {
    /// Returns the descriptor to poll for readability. It stays the same while the port is open.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Returns whether a frame has arrived, or `None` if finding out takes a system call.
    fn has_frame(&self) -> Option<bool> {
        None
    }

    /// Appends received frames to `out`, at most one ring's worth. Returns whether there may be
    /// more.
    ///
    /// # Errors
    /// The device is down or gone. The port is then no longer usable.
    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool>;

    /// Sends all of `frames`, in order. Refused frames are counted and lost. The port removes the
    /// frames that it keeps from `frames`. The memory of the others returns to the caller.
    ///
    /// # Errors
    /// The device is down or gone. The port is then no longer usable.
    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()>;

    /// Publishes the queue lengths of all ports of the node, in bytes, starting with port 0. `None`
    /// is an unknown length. Only some kinds of far end support this.
    fn show_queues(&mut self, queued: &mut dyn Iterator<Item = Option<u64>>) {
        let _ = queued;
    }

    /// Returns the number of frames that [`transmit`](Port::transmit) accepts now. If it is zero,
    /// the wire of the port is busy.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Returns whether the far end is attached, or `None` if the kernel knows the carrier of the
    /// device.
    fn carrier(&self) -> Option<bool> {
        None
    }

    /// Prepares for a wait on [`fd`](Port::fd). Returns true if there is a reason not to wait.
    fn before_wait(&mut self) -> bool {
        false
    }

    /// Closes the port. Returns those sockets that take long to close.
    fn into_sockets(self: Box<Self>) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Sets the kind of the port's peer, as the node has determined it.
    fn set_kind(&mut self, _kind: PortKind) {}

    /// Sets the rules that map frames to priorities at a host's interface.
    ///
    /// # Errors
    /// The rules are not fully in effect and must be set again.
    fn set_rules(&mut self, _rules: &Rules) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the counters of the port.
    fn counters(&mut self) -> PortCounters;

    /// Returns the status of a port with an agent at its far end, or `None` for any other port.
    fn agent_status(&self) -> Option<AgentStatus> {
        None
    }
}

/// Pool of free frames, which saves an allocation for each frame.
#[derive(Default)]
pub struct Pool {
    free: Vec<Vec<u8>>,
}

impl Pool {
    /// Maximum number of frames in the pool. The memory of further frames is freed.
    const KEPT: usize = 1024;

    /// Returns a frame that holds `bytes`, with the removed VLAN tag restored.
    pub(crate) fn frame(&mut self, bytes: &[u8], tag: Option<[u8; 4]>) -> FrameBuf {
        let mut store = self.free.pop().unwrap_or_default();
        store.clear();
        store.resize(FrameBuf::HEADROOM, 0);
        append_with_tag(&mut store, bytes, tag);
        FrameBuf::from_vec(store, FrameBuf::HEADROOM)
    }

    /// Returns a frame of `bytes` bytes. `fill` must write all of them, because their initial value
    /// is unspecified.
    pub(crate) fn filled(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8])) -> FrameBuf {
        let mut store = self.free.pop().unwrap_or_default();
        // The old contents are overwritten, so they need not be cleared first.
        store.resize(FrameBuf::HEADROOM + bytes, 0);
        store[..FrameBuf::HEADROOM].fill(0);
        fill(&mut store[FrameBuf::HEADROOM..]);
        FrameBuf::from_vec(store, FrameBuf::HEADROOM)
    }

    /// Takes the memory of a frame back.
    pub fn recycle(&mut self, frame: FrameBuf) {
        if self.free.len() < Pool::KEPT {
            self.free.push(frame.into_vec());
        }
    }
}

/// Sends all of `frames` over a packet socket, in order, and counts them. Frames that the kernel
/// refuses are lost.
///
/// # Errors
/// The device is down or gone.
pub(crate) fn send_all(
    socket: BorrowedFd<'_>,
    frames: &[FrameBuf],
    counters: &mut PortCounters,
) -> io::Result<()> {
    let mut at = 0;
    while at < frames.len() {
        let mut batch: [&[u8]; sys::SEND_MAX] = [&[]; sys::SEND_MAX];
        let waiting = &frames[at..frames.len().min(at + sys::SEND_MAX)];
        for (place, frame) in batch.iter_mut().zip(waiting) {
            *place = frame.bytes();
        }
        match sys::send_many(socket, &batch[..waiting.len()]) {
            Ok(sent) => {
                counters.tx_frames += sent as u64;
                let bytes = waiting[..sent].iter().map(|frame| frame.bytes().len() as u64);
                counters.tx_bytes += bytes.sum::<u64>();
                at += sent;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_device_loss(&error) => {
                counters.tx_refused += (frames.len() - at) as u64;
                return Err(error);
            }
            Err(_) => {
                counters.tx_refused += 1;
                at += 1;
            }
        }
    }
    Ok(())
}

/// Returns whether an error means that the device is down or gone, as opposed to one refused frame.
pub fn is_device_loss(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO | libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::link::ETHERNET_BYTES;

    #[test]
    fn the_longest_route_and_all_records_around_the_longest_frame_fit_the_fabric() {
        let frame = 1500 + ETHERNET_BYTES + TAG_BYTES;
        let longest = FrameBuf::HEADROOM + frame + 512;
        assert_eq!(fabric_mtu(1500) + ETHERNET_BYTES, longest);
    }

    #[test]
    fn a_loss_has_the_same_name_in_the_table_and_in_json() {
        let counters =
            PortCounters { rx_ring_drops: 1, rx_oversized: 2, tx_refused: 3, ..Default::default() };
        let json = serde_json::to_value(counters).unwrap();
        let shown = counters.lost().map(|(name, count)| (json[name].as_u64(), count));
        assert_eq!(shown, [1, 2, 3].map(|count| (Some(count), count)));
    }

    #[test]
    fn a_recycled_frame_shows_nothing_of_its_last_incarnation() {
        let mut pool = Pool::default();
        let frame = pool.frame(&[1; 64], None);
        pool.recycle(frame);
        let mut frame = pool.frame(&[2; 3], None);
        assert_eq!(frame.bytes(), [2; 3]);
        frame.push_front(FrameBuf::HEADROOM).unwrap();
        assert!(frame.bytes()[..FrameBuf::HEADROOM].iter().all(|byte| *byte == 0));
    }
}
