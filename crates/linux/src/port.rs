//! What a real port is to the run loop, and the memory that frames live in.

use crate::agent_port::AgentStatus;
use crate::offload::append_with_tag;
use crate::sys;
use axon_dcbx::agent::Rules;
use axon_fabric::model::Fabric;
use axon_node::PortKind;
use axon_wire::FrameBuf;
use axon_wire::probe::RECORDS_BYTES_MAX;
use axon_wire::vlan::TAG_BYTES;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The MTU that a link between switches needs for hosts with `host_mtu`, in bytes.
///
/// A host's frame is at most MTU + 14 + 4 (Ethernet header, one VLAN tag). The route before
/// it is at most [`FrameBuf::HEADROOM`] = 128 bytes. A device takes frames of its MTU + 14.
/// A probe of that length gathers [`RECORDS_BYTES_MAX`] = 512 bytes at its tail. So the MTU
/// must be `host_mtu + 4 + 128 + 512`. Control messages are bounded by the host's MTU.
pub const fn fabric_mtu(host_mtu: usize) -> usize {
    host_mtu + TAG_BYTES + FrameBuf::HEADROOM + RECORDS_BYTES_MAX
}

/// The MTU of a link between two switches of `fabric`, in bytes: what entries of programmable
/// switches put before a host's tagged frame, or [`fabric_mtu`].
pub fn link_mtu(fabric: &Fabric) -> usize {
    let host_mtu = usize::from(fabric.mtu);
    match &fabric.program {
        Some(program) => host_mtu + TAG_BYTES + program.overhead_bytes(),
        None => fabric_mtu(host_mtu),
    }
}

/// What one port has carried since it was first opened. Rates are for the reader to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Frames received and handed to the node.
    pub rx_frames: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Frames that the kernel lost because this process was late and the ring full.
    pub rx_ring_drops: u64,
    /// Frames over the MTU and segmentation-offload super-frames, refused.
    pub rx_oversized: u64,
    /// Checksums that a host had left to its device and that were completed here.
    pub rx_checksums_completed: u64,
    /// Frames whose VLAN tag the kernel took out and that got it back.
    pub rx_tags_restored: u64,
    /// Frames that were sent through the port.
    pub tx_frames: u64,
    /// Their bytes, without FCS.
    pub tx_bytes: u64,
    /// Frames that the kernel would not take.
    pub tx_refused: u64,
    /// How often a priority of a host was paused at its interface.
    pub host_pauses: u64,
    /// How often the kernel refused to pause its queues or to release them.
    pub host_pauses_refused: u64,
}

impl PortCounters {
    /// Adds what another port has carried.
    pub fn add(&mut self, other: PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.rx_ring_drops += other.rx_ring_drops;
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

/// A way in and out for whole Ethernet frames.
pub trait Port {
    /// What to poll for readability; stays the same for the incarnation of the port.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether a frame has arrived; `None` if that takes a system call to know.
    fn has_frame(&self) -> Option<bool> {
        None
    }

    /// Appends what has arrived to `out`, at most one ring's worth, and returns whether
    /// there may be more.
    ///
    /// # Errors
    /// The device is down or gone; the port is of no more use.
    fn receive(&mut self, pool: &mut Pool, out: &mut Vec<FrameBuf>) -> io::Result<bool>;

    /// Sends all of `frames`, in order; what is refused is counted and lost. A port takes out those
    /// that it keeps; the memory of the others is the caller's again.
    ///
    /// # Errors
    /// The device is down or gone; the port is of no more use.
    fn transmit(&mut self, frames: &mut Vec<FrameBuf>) -> io::Result<()>;

    /// Shows the far end, where it wants to know, what waits in the queues of all ports of the
    /// node, from port 0 on: bytes, `None` where that is not known.
    fn show_queues(&mut self, queued: &mut dyn Iterator<Item = Option<u64>>) {
        let _ = queued;
    }

    /// How many frames [`transmit`](Port::transmit) takes now. While it takes none, the wire of the
    /// port is busy.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Whether the far end is there; `None` where the kernel knows it of the device.
    fn carrier(&self) -> Option<bool> {
        None
    }

    /// Prepares for a wait on [`fd`](Port::fd); returns whether there is a reason not to wait.
    fn before_wait(&mut self) -> bool {
        false
    }

    /// Ends the port. Gives the sockets whose closing takes long; the rest is closed.
    fn into_sockets(self: Box<Self>) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Sets what is plugged into the port, by the node.
    fn set_kind(&mut self, _kind: PortKind) {}

    /// Sets which frames have which priority at a host's interface.
    ///
    /// # Errors
    /// Not all of them are in force; they are to be set again.
    fn set_rules(&mut self, _rules: &Rules) -> anyhow::Result<()> {
        Ok(())
    }

    /// What it has carried.
    fn counters(&mut self) -> PortCounters;

    /// What a port with an agent at its far end reports of that; `None` of every other port.
    fn agent_status(&self) -> Option<AgentStatus> {
        None
    }
}

/// Frames waiting to be used again, so that a frame in flight costs no allocation.
#[derive(Default)]
pub struct Pool {
    free: Vec<Vec<u8>>,
}

impl Pool {
    /// How many free frames are kept; more go back to the allocator.
    const KEPT: usize = 1024;

    /// A frame that holds `bytes`, with the taken-out VLAN tag back in its place.
    pub fn frame(&mut self, bytes: &[u8], tag: Option<[u8; 4]>) -> FrameBuf {
        let mut store = self.free.pop().unwrap_or_default();
        store.clear();
        store.resize(FrameBuf::HEADROOM, 0);
        append_with_tag(&mut store, bytes, tag);
        FrameBuf::from_vec(store, FrameBuf::HEADROOM)
    }

    /// A frame of `bytes` bytes that `fill` writes, all of them: at first they are of any value.
    pub fn filled(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8])) -> FrameBuf {
        let mut store = self.free.pop().unwrap_or_default();
        // What was there is overwritten, so it is not cleared first.
        store.resize(FrameBuf::HEADROOM + bytes, 0);
        store[..FrameBuf::HEADROOM].fill(0);
        fill(&mut store[FrameBuf::HEADROOM..]);
        FrameBuf::from_vec(store, FrameBuf::HEADROOM)
    }

    /// Takes a frame's memory back.
    pub fn recycle(&mut self, frame: FrameBuf) {
        if self.free.len() < Pool::KEPT {
            self.free.push(frame.into_vec());
        }
    }
}

/// Sends all of `frames` by a packet socket, in order, and counts them; what the kernel refuses is
/// lost.
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
            Err(error) if is_device_loss(&error) => return Err(error),
            Err(_) => {
                counters.tx_refused += 1;
                at += 1;
            }
        }
    }
    Ok(())
}

/// Whether an error means that the device is down or gone, not that one frame is unwelcome.
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
