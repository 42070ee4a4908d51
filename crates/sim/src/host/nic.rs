//! A host's NIC: queues in memory between the IP stack and the wire.

use crate::host::dcb_nic::DcbNic;
use crate::host::lost::LostDatagrams;
use crate::link::links::Loss;
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{Filling, FrameBuf, HopWidth, Time};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// Vectors that are kept, at most.
const SPARE_MAX: usize = 4;
/// Frames that wait for the wire, at most; more wait inside the stack.
const TX_FRAMES_MAX: usize = 256;

/// The two queues, and what became of the frames in them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Nic {
    pub(crate) carrier: bool,
    /// What holds frames instead of `tx` in a host with Data Center Bridging.
    pub(crate) dcb: Option<Box<DcbNic>>,
    tx: VecDeque<FrameBuf>,
    /// Vectors to use again.
    spare: Vec<Vec<u8>>,
    /// Frames that the stack or an application made.
    pub(crate) made: u64,
    pub(crate) rx: VecDeque<FrameBuf>,
    mtu: u16,
    /// Frames that ended here because there was no carrier.
    pub(crate) unsent: u64,
    /// The datagrams among them.
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

    /// The longest IP packet, in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Whether the stack can hand over another frame now. A NIC with priorities takes every
    /// one: a paused priority must not hold up the others.
    pub(crate) fn has_room(&self) -> bool {
        self.tx.len() < TX_FRAMES_MAX
    }

    /// Whether the datagram socket of this port has to wait before it may send.
    pub(crate) fn blocks(&mut self, socket: u16) -> bool {
        self.dcb.as_mut().is_some_and(|dcb| !dcb.has_room(socket))
    }

    /// Whether frames wait for the wire in the one queue of a plain NIC.
    pub(crate) fn has_frames(&self) -> bool {
        !self.tx.is_empty()
    }

    /// The number of the frame that was queued last, and of the last one that does not wait any
    /// more in the one queue of a plain NIC.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.made, self.made - self.tx.len() as u64)
    }

    /// Frames that wait for the wire.
    pub(crate) fn waiting(&self) -> usize {
        self.tx.len() + self.dcb.as_ref().map_or(0, |dcb| dcb.waiting())
    }

    /// What leaves next, if anything may: the wire is free.
    pub(crate) fn next(&mut self, now: Time) -> Option<FrameBuf> {
        let Some(dcb) = &mut self.dcb else {
            return self.tx.pop_front();
        };
        let request = dcb.request(now);
        self.made += u64::from(request.is_some());
        request.or_else(|| dcb.next(now))
    }

    /// Queues a frame, or forgets it where there is no carrier, as a kernel does.
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

    /// Drops the frames that wait for a wire that is gone, and ends all pauses.
    pub(crate) fn flush(&mut self) {
        let mut waiting = Vec::from(std::mem::take(&mut self.tx));
        waiting.extend(self.dcb.as_mut().into_iter().flat_map(|dcb| dcb.reset()));
        waiting.iter().for_each(|frame| self.end(frame));
    }

    /// A frame ends here. It has no header yet, so none of any width.
    pub(crate) fn end(&mut self, frame: &FrameBuf) {
        self.unsent += 1;
        self.lost.count(frame.bytes(), HopWidth::default(), Loss::NoCarrier.name());
    }

    /// Keeps the memory of a frame for later.
    pub(crate) fn recycle(&mut self, frame: FrameBuf) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(frame.into_vec());
        }
    }

    /// Builds a frame of `length` bytes, padded to the Ethernet minimum, with room in front
    /// for the route that the edge will put there, and queues it.
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
    /// Builds a frame of which `stored` bytes are stored, padded to the Ethernet minimum, and
    /// what follows them is described; queues it.
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

    /// Builds a frame of these bytes.
    pub(crate) fn put(&mut self, frame: &[u8]) {
        self.build(frame.len(), |bytes| bytes.copy_from_slice(frame));
    }

    /// Queues a copy of `model`, which has its padding, and what follows it, after `change` has
    /// changed it.
    pub(crate) fn copy(&mut self, model: &[u8], filling: Filling, change: impl FnOnce(&mut [u8])) {
        let mut store = self.spare.pop().unwrap_or_default();
        // What was in the room for the route does not matter, and is not cleared.
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

/// A frame on its way up.
pub(crate) struct Received(FrameBuf);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0.contents().whole())
    }
}

/// A place for a frame on its way down.
pub(crate) struct Room<'a>(&'a mut Nic);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.build(length, write)
    }
}
