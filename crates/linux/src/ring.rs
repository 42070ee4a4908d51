//! Receive ring of a packet socket: TPACKET_V2 slots in memory shared with the kernel.
//!
//! The kernel writes a frame into the next free slot and passes the slot to the reader by changing
//! its status word. The reader returns the slot in the same way. Slots are used strictly in order.
//! See the kernel's Documentation/networking/packet_mmap.rst.

use crate::offload::PartialChecksum;
use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of bytes in a slot before the frame: TPACKET2_HDRLEN (52), the alignment of a link-level
/// header, and the virtio header. The kernel puts the frame at offset 76.
const SLOT_OVERHEAD: usize = 96;
/// Size of `struct virtio_net_hdr`, directly before the frame, in bytes.
const VIRTIO_BYTES: usize = 10;
/// virtio flag that says the checksum has to be completed.
const VIRTIO_NEEDS_CHECKSUM: u8 = 1;
/// Offset of the packet type (direction of the frame) in the sockaddr_ll after the slot's header.
const PACKET_TYPE_AT: usize = 32 + 10;
/// Smallest block: 64 KiB, which is a multiple of every page size in use.
const BLOCK_BYTES_MIN: usize = 64 * 1024;

/// Received frame, still in its slot.
pub struct RxFrame<'a> {
    /// Frame bytes, without the tag that the kernel removed.
    pub bytes: &'a [u8],
    /// VLAN tag (TPID and TCI) that the kernel removed from offset 12.
    pub vlan: Option<[u8; 4]>,
    /// Checksum that the sender has left to the device.
    pub checksum: Option<PartialChecksum>,
    /// True if the frame is longer than the slot, or a segmentation-offload super-frame.
    pub oversized: bool,
    /// True if the frame is leaving through the device.
    pub outgoing: bool,
    /// Kernel timestamp, in nanoseconds since 1970.
    pub unix_nanos: u64,
}

/// Mapped ring. Its socket must outlive it.
pub struct RxRing {
    memory: NonNull<u8>,
    bytes: usize,
    block_bytes: usize,
    slot_bytes: usize,
    slots_per_block: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, and any single thread may use it.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Creates a ring of at least `slots_min` slots for frames up to `frame_bytes_max` on `fd`.
    ///
    /// # Errors
    /// ENOMEM, or the kernel's error for the socket options.
    pub(crate) fn new(
        fd: BorrowedFd<'_>,
        frame_bytes_max: usize,
        slots_min: usize,
    ) -> io::Result<RxRing> {
        let slot_bytes = (frame_bytes_max + SLOT_OVERHEAD).next_multiple_of(16);
        let block_bytes = slot_bytes.next_power_of_two().max(BLOCK_BYTES_MIN);
        let slots_per_block = block_bytes / slot_bytes;
        let blocks = slots_min.div_ceil(slots_per_block);
        let slots = blocks * slots_per_block;
        let bytes = blocks * block_bytes;
        sys::set_packet_option(fd, libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V2)?;
        sys::set_packet_option(fd, libc::PACKET_VNET_HDR, &1i32)?;
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        sys::set_packet_option(fd, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: this is a new mapping at an address that the kernel chooses, so it aliases
        // nothing.
        let memory = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RxRing { memory, bytes, block_bytes, slot_bytes, slots_per_block, slots, next: 0 })
    }

    /// Returns the number of frames that the ring holds.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the next slot, and its status word.
    fn next_slot(&self) -> (NonNull<u8>, &AtomicU32) {
        let offset = self.next / self.slots_per_block * self.block_bytes
            + self.next % self.slots_per_block * self.slot_bytes;
        // SAFETY: `next < slots`, so the slot lies inside the mapping. Slots are 16-byte aligned,
        // and the status word is the first word of the slot.
        let slot = unsafe { self.memory.add(offset) };
        // SAFETY: aligned and mapped, as above. The kernel and we access it only atomically.
        (slot, unsafe { AtomicU32::from_ptr(slot.cast().as_ptr()) })
    }

    /// Returns whether [`take`](RxRing::take) would find a frame, without a system call.
    pub(crate) fn has_frame(&self) -> bool {
        self.next_slot().1.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes the next frame, if there is one, to `read`, and returns its slot to the kernel.
    pub(crate) fn take<R>(&mut self, read: impl FnOnce(RxFrame<'_>) -> R) -> Option<R> {
        let (slot, status) = self.next_slot();
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: TP_STATUS_USER means that the slot is ours until we return it. The kernel does
        // not write to it, and the slice ends before we return it.
        let slot = unsafe { std::slice::from_raw_parts(slot.as_ptr(), self.slot_bytes) };
        let result = read(parse_slot(slot, state));
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }
}

impl std::ops::Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping that `new` made, and nothing borrows from it any
        // more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// Parses `struct tpacket2_hdr`, the virtio header and the frame of a slot.
fn parse_slot(slot: &[u8], state: u32) -> RxFrame<'_> {
    let word = |at: usize| u32::from_ne_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]]);
    let half = |at: usize| u16::from_ne_bytes([slot[at], slot[at + 1]]);
    let (length, captured, mac) = (word(4) as usize, word(8) as usize, usize::from(half(12)));
    let bytes = slot.get(mac..mac + captured).unwrap_or(&[]);
    let truncated = bytes.len() < length;
    let virtio = mac.checked_sub(VIRTIO_BYTES).and_then(|at| slot.get(at..mac)).unwrap_or(&[0; 10]);
    let segmented = !truncated && virtio[1] != 0;
    let unfinished = !truncated && virtio[0] & VIRTIO_NEEDS_CHECKSUM != 0;
    let vlan = (state & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let known = state & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if known { half(26) } else { libc::ETH_P_8021Q as u16 }.to_be_bytes();
        let tci = half(24).to_be_bytes();
        [tpid[0], tpid[1], tci[0], tci[1]]
    });
    let checksum = unfinished.then(|| PartialChecksum {
        start: usize::from(u16::from_ne_bytes([virtio[6], virtio[7]])),
        offset: usize::from(u16::from_ne_bytes([virtio[8], virtio[9]])),
    });
    RxFrame {
        bytes,
        vlan,
        checksum,
        oversized: truncated || segmented,
        outgoing: slot[PACKET_TYPE_AT] == libc::PACKET_OUTGOING,
        unix_nanos: u64::from(word(16)) * 1_000_000_000 + u64::from(word(20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_with_nonsense_in_its_header_is_an_oversized_frame_and_no_panic() {
        let mut slot = [0xff; 256];
        let frame = parse_slot(&slot, u32::MAX);
        assert!(frame.oversized && frame.bytes.is_empty());
        slot[12..14].copy_from_slice(&3u16.to_ne_bytes());
        assert!(parse_slot(&slot, u32::MAX).oversized);
    }
}
