//! A host's NIC: queues between the IP stack and the wire.

use crate::host::dcb_nic::DcbNic;
use crate::host::lost::LostDatagrams;
use crate::link::links::Loss;
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{Filling, FrameBuf, HopWidth, Time};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// Maximum number of vectors kept for reuse.
const SPARE_MAX: usize = 4;
/// Maximum number of frames queued for the wire; further frames wait in the stack.
const TX_FRAMES_MAX: usize = 256;

/// Receive and transmit queues, and their counters.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Nic {
    pub(crate) carrier: bool,
    /// Transmit queues that replace `tx` in a host with Data Center Bridging.
    pub(crate) dcb: Option<Box<DcbNic>>,
    tx: VecDeque<FrameBuf>,
    /// Vectors for reuse.
    spare: Vec<Vec<u8>>,
    /// Number of frames made by the stack or an application.
    pub(crate) made: u64,
    pub(crate) rx: VecDeque<FrameBuf>,
    mtu: u16,
    /// Number of frames dropped for want of carrier.
    pub(crate) unsent: u64,
    /// Datagrams among the frames dropped for want of carrier.
    pub(crate) lost: LostDatagrams,
}

impl Nic {
    pub(crate) fn new(mtu: u16) -> Nic {
        Nic {
            mtu,
            carrier: false,
            rx: VecDeque::new(),
            tx: VecDeque::new(),
            dcb: None,
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
    pub(crate) fn has_frames(&self) -> bool {
        !self.tx.is_empty()
    }

    /// Returns the numbers of the last frame queued and of the last frame that has left the single
    /// queue of a plain NIC.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.made, self.made - self.tx.len() as u64)
    }

    /// Returns the number of queued frames.
    pub(crate) fn waiting(&self) -> usize {
        self.tx.len() + self.dcb.as_ref().map_or(0, |dcb| dcb.waiting())
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

    /// Drops the queued frames after a loss of carrier, and ends all pauses.
    pub(crate) fn flush(&mut self) {
        let mut waiting = Vec::from(std::mem::take(&mut self.tx));
        waiting.extend(self.dcb.as_mut().into_iter().flat_map(|dcb| dcb.reset()));
        waiting.iter().for_each(|frame| self.end(frame));
    }

    /// Counts a dropped frame. It has no header yet, so the hop width does not matter.
    pub(crate) fn end(&mut self, frame: &FrameBuf) {
        self.unsent += 1;
        self.lost.count(frame.bytes(), HopWidth::default(), Loss::NoCarrier.name());
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
}

impl Nic {
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

impl Device for Nic {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Room<'_>)> {
        if !self.has_room() {
            return None;
        }
        let frame = self.rx.pop_front()?;
        Some((Received(frame), Room(self)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room<'_>> {
        self.has_room().then_some(Room(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = usize::from(self.mtu) + ETHERNET_BYTES;
        capabilities
    }
}

/// Received frame on its way to the stack.
pub(crate) struct Received(FrameBuf);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0.contents().whole())
    }
}

/// Transmit slot for a frame from the stack.
pub(crate) struct Room<'a>(&'a mut Nic);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.build(length, write)
    }
}
