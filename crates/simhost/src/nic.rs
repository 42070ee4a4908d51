//! A host's NIC: queues between the IP stack and the wire.

use crate::dcb_nic::DcbNic;
use crate::lost::{LostDatagrams, NO_CARRIER};
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{Filling, FrameBuf, HopWidth, Time};
use std::collections::VecDeque;

/// Maximum number of vectors kept for reuse.
const SPARE_MAX: usize = 4;
/// Maximum number of frames queued for the wire; further frames wait in the stack.
const TX_FRAMES_MAX: usize = 256;

/// Transmit queues, and their counters.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Nic {
    carrier: bool,
    /// Transmit queues that replace `tx` in a host with Data Center Bridging.
    dcb: Option<Box<DcbNic>>,
    tx: VecDeque<FrameBuf>,
    /// Vectors for reuse.
    spare: Vec<Vec<u8>>,
    /// Number of frames made by the stack or an application.
    made: u64,
    mtu: u16,
    /// Number of frames dropped for want of carrier.
    unsent: u64,
    /// Datagrams among the frames dropped for want of carrier.
    lost: LostDatagrams,
}

impl Nic {
    /// Returns a NIC without carrier. `dcb` replaces its single queue.
    pub(crate) fn new(mtu: u16, dcb: Option<DcbNic>) -> Nic {
        Nic {
            mtu,
            carrier: false,
            tx: VecDeque::new(),
            dcb: dcb.map(Box::new),
            spare: Vec::new(),
            made: 0,
            unsent: 0,
            lost: LostDatagrams::default(),
        }
    }

    /// Returns the maximum IP packet size in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns the queues and flow control of a NIC with Data Center Bridging.
    #[inline]
    pub(crate) fn dcb(&self) -> Option<&DcbNic> {
        self.dcb.as_deref()
    }

    /// Returns the queues and flow control of a NIC with Data Center Bridging, mutably.
    #[inline]
    pub(crate) fn dcb_mut(&mut self) -> Option<&mut DcbNic> {
        self.dcb.as_deref_mut()
    }

    /// Returns whether the NIC has carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        self.carrier
    }

    /// Handles a change of carrier: drops the queued frames and ends all pauses.
    pub(crate) fn link(&mut self, now: Time, up: bool) {
        self.carrier = up;
        let mut waiting = Vec::from(std::mem::take(&mut self.tx));
        waiting.extend(self.dcb.as_mut().into_iter().flat_map(|dcb| dcb.reset()));
        waiting.iter().for_each(|frame| self.end(frame));
        if let Some(dcb) = &mut self.dcb {
            dcb.link(now, up);
        }
    }

    /// Returns the numbers of frames made, dropped unsent, and queued.
    #[inline]
    pub(crate) fn accounts(&self) -> (u64, u64, usize) {
        let queued = self.tx.len() + self.dcb.as_ref().map_or(0, |dcb| dcb.waiting());
        (self.made, self.unsent, queued)
    }

    /// Returns the datagrams among the frames dropped unsent.
    pub(crate) fn lost(&self) -> &LostDatagrams {
        &self.lost
    }

    /// Counts a frame that was made beside this NIC and is sent like one of its own.
    pub(crate) fn count_made(&mut self) {
        self.made += 1;
    }

    /// Returns whether the stack can send another frame now. A NIC with priorities always has room,
    /// as a paused priority must not block the others.
    pub(crate) fn has_room(&self) -> bool {
        self.tx.len() < TX_FRAMES_MAX
    }

    /// Returns whether the datagram socket of this port has to wait.
    pub(crate) fn blocks(&mut self, socket: u16) -> bool {
        self.dcb.as_mut().is_some_and(|dcb| !dcb.has_room(socket))
    }

    /// Returns whether frames wait in the single queue of a plain NIC.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        !self.tx.is_empty()
    }

    /// Returns the numbers of the last frame queued and of the last frame that has left the single
    /// queue of a plain NIC.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.made, self.made - self.tx.len() as u64)
    }

    /// Takes the next frame to send, if any may leave. The wire must be free.
    pub(crate) fn next(&mut self, now: Time) -> Option<FrameBuf> {
        let Some(dcb) = &mut self.dcb else {
            return self.tx.pop_front();
        };
        let request = dcb.request(now);
        self.made += u64::from(request.is_some());
        request.or_else(|| dcb.next(now))
    }

    /// Queues a frame, or drops it without carrier, as a kernel does.
    pub(crate) fn queue(&mut self, frame: FrameBuf) {
        self.made += 1;
        match &mut self.dcb {
            _ if !self.carrier => {
                self.end(&frame);
                self.recycle(frame);
            }
            Some(dcb) => dcb.put(frame),
            None => self.tx.push_back(frame),
        }
    }

    /// Counts a dropped frame. It has no header yet, so the hop width does not matter.
    pub(crate) fn end(&mut self, frame: &FrameBuf) {
        self.unsent += 1;
        self.lost.count(frame.bytes(), HopWidth::default(), NO_CARRIER);
    }

    /// Keeps a frame's memory for reuse.
    pub(crate) fn recycle(&mut self, frame: FrameBuf) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(frame.into_vec());
        }
    }

    /// Builds and queues a frame of `length` bytes, padded to the Ethernet minimum, with headroom
    /// for the route that the edge inserts.
    pub(crate) fn build<R>(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut store = self.spare.pop().unwrap_or_default();
        store.clear();
        store.resize(FrameBuf::HEADROOM + length.max(FRAME_BYTES_MIN), 0);
        let result = write(&mut store[FrameBuf::HEADROOM..FrameBuf::HEADROOM + length]);
        self.queue(FrameBuf::from_vec(store, FrameBuf::HEADROOM));
        result
    }

    /// Builds and queues a frame with `stored` stored bytes, padded to the Ethernet minimum, and a
    /// described filling after them.
    pub(crate) fn build_light(
        &mut self,
        stored: usize,
        filling: Filling,
        write: impl FnOnce(&mut [u8]),
    ) {
        let mut store = self.spare.pop().unwrap_or_default();
        store.clear();
        store.resize(FrameBuf::HEADROOM + stored.max(FRAME_BYTES_MIN), 0);
        write(&mut store[FrameBuf::HEADROOM..FrameBuf::HEADROOM + stored]);
        self.queue(FrameBuf::light(store, FrameBuf::HEADROOM, filling));
    }

    /// Queues a frame of these bytes.
    pub(crate) fn put(&mut self, frame: &[u8]) {
        self.build(frame.len(), |bytes| bytes.copy_from_slice(frame));
    }

    /// Queues a copy of `model`, which includes its padding, with the filling after it, as modified
    /// by `change`.
    pub(crate) fn copy(&mut self, model: &[u8], filling: Filling, change: impl FnOnce(&mut [u8])) {
        let mut store = self.spare.pop().unwrap_or_default();
        // The content of the headroom does not matter and is not cleared.
        store.truncate(FrameBuf::HEADROOM);
        store.resize(FrameBuf::HEADROOM, 0);
        store.extend_from_slice(model);
        change(&mut store[FrameBuf::HEADROOM..]);
        self.queue(FrameBuf::light(store, FrameBuf::HEADROOM, filling));
    }
}
