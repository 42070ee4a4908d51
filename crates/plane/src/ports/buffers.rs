//! Buffers of one output port (thesis 000 §3.2.1): one FIFO per ingress port and one for the
//! control plane, each with its own bound in bytes, scheduled fairly. Link frames and control
//! messages precede all of them; see `control_queues.rs`.

use super::control_queues::{Ahead, ControlQueues};
pub use super::queued::Queued;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_wire::priority::Priority;
use axon_wire::{Bytes, PortNo, Time};

/// Order of the frames queued for one port in one traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// The ingress ports share the wire fairly in time (thesis 000 §3.2.1).
    ByIngress,
    /// Order of arrival: one FIFO, as in paper 002.
    Arrival,
}

/// Quantum of a FIFO per round, in bytes of wire time: a full frame, its overhead and a route of
/// some hops, so that a FIFO is seldom passed over.
const QUANTUM: i64 = 1600;
/// Bytes of wire time of a frame beside its bytes: preamble and start delimiter, FCS and gap (IEEE
/// 802.3 clause 4.4.2).
const WIRE_OVERHEAD: i64 = 24;
/// Panic message: only [`Egress::enter`], which creates FIFOs, puts them into the ring.
const FIFO_IN_RING: &str = "a FIFO that is in the ring";

/// Buffers of one output port.
///
/// They are fair in wire time for any frame lengths, since the thesis requires the link to be
/// shared among ingress ports. The non-empty FIFOs form a ring. The one at its head sends; the cost
/// of its frame is subtracted from its credit. When the credit is used up, the FIFO gets a quantum
/// and goes to the tail, carrying over its overdraft (surplus round robin, a deficit round robin
/// that need not know the next frame's length). An empty FIFO is not in the ring and saves no
/// credit; one that fills joins at the tail with one quantum.
///
/// Round robin by frames would give an ingress that carries acknowledgements beside data a fraction
/// of its neighbour's share.
#[derive(Clone, Debug)]
pub struct Egress {
    /// The FIFO of the control plane, then one per ingress port, each created at first use; or one
    /// for all ports.
    fifos: Vec<Option<Box<Fifo>>>,
    order: QueueOrder,
    /// Non-empty FIFOs, by number, each once.
    ring: VecDeque<u32>,
    /// Queues of link frames and control messages.
    control: ControlQueues,
    bytes: u64,
    frames: u64,
    /// Number of frames that were refused and kept.
    kept: u64,
}

#[derive(Clone, Debug, Default)]
struct Fifo {
    queue: VecDeque<Queued>,
    /// Frames that the output has refused, kept by the input to be offered again, in order.
    refused: VecDeque<Queued>,
    bytes: u64,
    /// Bytes left to send in this round; zero or negative after an overdraft.
    credit: i64,
}

impl Egress {
    /// Returns empty buffers, one for each ingress port.
    pub(crate) const fn new() -> Egress {
        Egress::ordered(QueueOrder::ByIngress)
    }

    /// Returns empty buffers, one for each ingress port or one for all of them.
    pub(crate) const fn ordered(order: QueueOrder) -> Egress {
        Egress {
            fifos: Vec::new(),
            order,
            ring: VecDeque::new(),
            control: ControlQueues::EMPTY,
            bytes: 0,
            frames: 0,
            kept: 0,
        }
    }

    /// Returns the FIFO of frames from `ingress`.
    fn fifo_of(&self, ingress: PortNo) -> usize {
        // The control plane is port 65,535, so its index is 0 and that of port p is p + 1.
        let index = usize::from(ingress.0.wrapping_add(1));
        match self.order {
            QueueOrder::ByIngress => index,
            QueueOrder::Arrival => index.min(1),
        }
    }

    /// Queues a frame behind those of the same ingress, if they then take at most `bytes_max`
    /// bytes; a link frame or a control message behind the previous ones of its kind.
    ///
    /// # Errors
    /// Returns the frame if there is no room for it.
    pub(crate) fn push(&mut self, item: Queued, bytes_max: u64) -> Result<(), Queued> {
        let bytes = u64::from(item.bytes);
        if let Some(ahead) = Ahead::of(item.meta.kind, item.meta.ingress) {
            self.control.push(ahead, item, bytes_max)?;
            self.bytes += bytes;
            self.frames += 1;
            return Ok(());
        }
        let index = self.fifo_of(item.meta.ingress);
        if index >= self.fifos.len() {
            self.fifos.resize_with(index + 1, || None);
        }
        let fifo = self.fifos[index].get_or_insert_default();
        if fifo.bytes + bytes > bytes_max || !fifo.refused.is_empty() {
            return Err(item);
        }
        self.enter(index, item);
        Ok(())
    }

    #[inline]
    fn fifo(&self, index: usize) -> Option<&Fifo> {
        self.fifos.get(index)?.as_deref()
    }

    #[inline]
    fn fifo_mut(&mut self, index: usize) -> Option<&mut Fifo> {
        self.fifos.get_mut(index)?.as_deref_mut()
    }

    /// Returns a FIFO that is in the ring.
    #[inline]
    fn in_ring(&mut self, index: u32) -> &mut Fifo {
        self.fifo_mut(index as usize).expect(FIFO_IN_RING)
    }

    /// Puts a frame into its FIFO, which joins the ring.
    fn enter(&mut self, index: usize, item: Queued) {
        let fifo = self.fifos[index].get_or_insert_default();
        let bytes = u64::from(item.bytes);
        if fifo.queue.is_empty() {
            fifo.credit = QUANTUM;
            self.ring.push_back(index as u32);
        }
        fifo.bytes += bytes;
        fifo.queue.push_back(item);
        self.bytes += bytes;
        self.frames += 1;
    }

    /// Keeps a frame that [`Egress::push`] has refused, behind others of its ingress; not for link
    /// frames and control messages. It must fit an empty FIFO.
    pub(crate) fn keep(&mut self, item: Queued) {
        let index = self.fifo_of(item.meta.ingress);
        self.kept += 1;
        self.fifos[index].get_or_insert_default().refused.push_back(item);
    }

    /// Offers the refused frames of `ingress` again; returns the bytes accepted. Call it after
    /// every [`Egress::pop`] of a frame of that ingress.
    pub(crate) fn offer_again(&mut self, ingress: PortNo, bytes_max: u64) -> u64 {
        let index = self.fifo_of(ingress);
        let mut taken = 0;
        loop {
            let Some(fifo) = self.fifo_mut(index) else {
                return taken;
            };
            let fits = |item: &&Queued| fifo.bytes + u64::from(item.bytes) <= bytes_max;
            if fifo.refused.front().filter(fits).is_none() {
                return taken;
            }
            if let Some(item) = fifo.refused.pop_front() {
                taken += u64::from(item.bytes);
                self.kept -= 1;
                self.enter(index, item);
            }
        }
    }

    /// Returns whether a frame of `bytes` bytes from `ingress` would be refused.
    pub(crate) fn refuses(&self, ingress: PortNo, bytes: u64, bytes_max: u64) -> bool {
        let fifo = self.fifo(self.fifo_of(ingress));
        let (queued, waits) =
            fifo.map_or((0, false), |fifo| (fifo.bytes, !fifo.refused.is_empty()));
        waits || queued + bytes > bytes_max
    }

    /// Returns the length of the next scheduled frame, in bytes.
    pub(crate) fn head_bytes(&self) -> Option<u32> {
        if let Some(item) = self.control.head(!self.ring.is_empty()) {
            return Some(item.bytes);
        }
        let fifo = self.fifo(*self.ring.front()? as usize).expect(FIFO_IN_RING);
        fifo.queue.front().map(|item| item.bytes)
    }

    /// Takes the next scheduled frame.
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        if let Some(item) = self.control.pop(!self.ring.is_empty()) {
            self.bytes -= u64::from(item.bytes);
            self.frames -= 1;
            return Some(item);
        }
        self.control.other_went();
        let index = *self.ring.front()?;
        let fifo = self.in_ring(index);
        let item = fifo.queue.pop_front()?;
        let bytes = u64::from(item.bytes);
        fifo.bytes -= bytes;
        fifo.credit -= i64::from(item.bytes) + WIRE_OVERHEAD;
        if fifo.queue.is_empty() {
            self.ring.pop_front();
        }
        self.bytes -= bytes;
        self.frames -= 1;
        self.next_turn();
        Some(item)
    }

    /// Brings a FIFO with credit to the head.
    fn next_turn(&mut self) {
        while let Some(&index) = self.ring.front() {
            let fifo = self.in_ring(index);
            if fifo.credit > 0 {
                return;
            }
            fifo.credit += QUANTUM;
            self.ring.rotate_left(1);
        }
    }

    /// Truncates the frames that were still arriving by `ingress` when its carrier was lost.
    pub(crate) fn break_off(&mut self, now: Time, ingress: PortNo) {
        let of = |item: &&mut Queued| item.meta.ingress == ingress;
        self.control.items_mut().filter(of).for_each(|item| item.meta.break_off(now, ingress));
        let index = self.fifo_of(ingress);
        let fifo = self.fifo_mut(index);
        for item in fifo.into_iter().flat_map(|fifo| fifo.queue.iter_mut().chain(&mut fifo.refused))
        {
            item.meta.break_off(now, ingress);
        }
    }

    /// Returns the queued bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the queued bytes by ingress port, where there are any.
    pub(crate) fn by_ingress(&self) -> impl Iterator<Item = (PortNo, Bytes)> + '_ {
        let fifo_of = |item: &Queued| self.fifo_of(item.meta.ingress);
        let bytes_in = move |index: usize| {
            let control = self.control.items().filter(|item| fifo_of(item) == index);
            let control = control.map(|item| u64::from(item.bytes)).sum::<u64>();
            control + self.fifo(index).map_or(0, |fifo| fifo.bytes)
        };
        let control_fifos = self.control.items().map(|item| fifo_of(item) + 1).max();
        let fifos = self.fifos.len().max(control_fifos.unwrap_or(0));
        // FIFO 0 is the control plane's, whose port is 65,535.
        let all = (0..fifos)
            .map(move |index| (PortNo((index as u16).wrapping_sub(1)), Bytes(bytes_in(index))));
        all.filter(|(_, bytes)| bytes.0 > 0)
    }

    /// Returns whether a frame from `ingress` that uses the memory of this priority is queued.
    pub(crate) fn holds(&self, ingress: PortNo, priority: Priority) -> bool {
        let fifo = self.fifo(self.fifo_of(ingress));
        let of = |item: &Queued| (item.meta.ingress, item.group) == (ingress, priority);
        self.control.items().any(of) || fifo.is_some_and(|fifo| fifo.queue.iter().any(of))
    }

    /// Returns the number of queued frames.
    pub(crate) const fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the number of frames that were refused and are kept at their input.
    pub(crate) const fn kept(&self) -> u64 {
        self.kept
    }
}

impl Default for Egress {
    fn default() -> Egress {
        Egress::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::FrameMeta;
    use crate::ports::HeaderKind;
    use axon_wire::FrameBuf;
    use axon_wire::header::PacketType;

    fn item(ingress: PortNo, name: u32, bytes: u32) -> Queued {
        let meta = FrameMeta {
            frame: FrameBuf::new(&name.to_be_bytes()),
            complete_at: Time::ZERO,
            ingress,
            came_bytes: 0,
            header_bytes: 0,
            kind: HeaderKind::Ethernet,
            priority: Priority::ZERO,
            intact: true,
        };
        Queued { meta, bytes, kind: None, group: Priority::ZERO }
    }

    fn name(item: Queued) -> u32 {
        u32::from_be_bytes(item.meta.frame.bytes().try_into().unwrap())
    }

    fn drain(egress: &mut Egress) -> Vec<u32> {
        core::iter::from_fn(|| egress.pop()).map(name).collect()
    }

    #[test]
    fn full_frames_alternate_whatever_is_queued() {
        let mut egress = Egress::new();
        for name in 10..15 {
            egress.push(item(PortNo(1), name, 1576), 10_000).unwrap();
        }
        egress.push(item(PortNo::CONTROL, 90, 1576), 10_000).unwrap();
        for name in 20..22 {
            egress.push(item(PortNo(2), name, 1576), 10_000).unwrap();
        }
        assert_eq!((egress.frames(), egress.bytes()), (8, 8 * 1576));
        assert_eq!(drain(&mut egress), [10, 90, 20, 11, 21, 12, 13, 14]);
        assert_eq!((egress.frames(), egress.bytes()), (0, 0));
    }

    #[test]
    fn the_wire_is_shared_by_time_and_not_by_frames() {
        let mut egress = Egress::new();
        let lengths = [64, 1514, 9000];
        let mut cost = [0; 3];
        for turn in 0..100_000 {
            // All three always have something to send.
            for (port, &bytes) in lengths.iter().enumerate() {
                while egress.push(item(PortNo(port as u16), turn, bytes), 20_000).is_ok() {}
            }
            let sent = egress.pop().unwrap();
            cost[sent.meta.ingress.index()] += i64::from(sent.bytes) + WIRE_OVERHEAD;
        }
        let apart = cost.iter().max().unwrap() - cost.iter().min().unwrap();
        assert!(apart <= 9024 + QUANTUM, "{cost:?}");
    }

    #[test]
    fn an_ingress_that_was_silent_has_saved_nothing() {
        let mut egress = Egress::new();
        for round in 0..10 {
            egress.push(item(PortNo(1), round, 64), 10_000).unwrap();
            assert_eq!(drain(&mut egress), [round]);
        }
        for name in 0..60 {
            egress.push(item(PortNo(1), name, 64), 10_000).unwrap();
            egress.push(item(PortNo(2), 100 + name, 64), 10_000).unwrap();
        }
        let first = drain(&mut egress).iter().position(|&name| name >= 100).unwrap();
        assert!(first as i64 <= QUANTUM / 88 + 1, "{first} frames before the other's first");
    }

    #[test]
    fn in_order_of_arrival_only_the_control_plane_has_turns_of_its_own() {
        let mut egress = Egress::ordered(QueueOrder::Arrival);
        for (name, port) in [(1, 3), (2, 3), (3, 0), (4, 3), (5, 1)] {
            egress.push(item(PortNo(port), name, 1576), 10_000).unwrap();
        }
        egress.push(item(PortNo::CONTROL, 9, 1576), 10_000).unwrap();
        assert_eq!(drain(&mut egress), [1, 9, 2, 3, 4, 5]);
    }

    #[test]
    fn link_frames_and_then_control_messages_go_before_whatever_waits() {
        let mut egress = Egress::new();
        let of = |kind, ingress, name| {
            let mut item = item(ingress, name, 1000);
            item.meta.kind = kind;
            item
        };
        let message = HeaderKind::Axon(PacketType::Control);
        for name in 0..3 {
            egress.push(of(HeaderKind::Axon(PacketType::Ethernet), PortNo(1), name), 3000).unwrap();
        }
        for (name, ingress) in [(10, PortNo(1)), (11, PortNo(2)), (12, PortNo::CONTROL)] {
            egress.push(of(message, ingress, name), 3000).unwrap();
        }
        egress.push(of(HeaderKind::LinkLocal, PortNo::CONTROL, 20), 3000).unwrap();
        let full = egress.push(of(message, PortNo(3), 13), 3000).unwrap_err();
        assert_eq!(name(full), 13, "control messages have a bound of their own");
        assert_eq!((egress.frames(), egress.bytes()), (7, 7000));
        let by_ingress: Vec<_> = egress.by_ingress().collect();
        let control = (PortNo::CONTROL, Bytes(2000));
        assert_eq!(by_ingress, [control, (PortNo(1), Bytes(4000)), (PortNo(2), Bytes(1000))]);
        assert_eq!(drain(&mut egress), [20, 10, 11, 12, 0, 1, 2]);
        assert_eq!((egress.frames(), egress.bytes()), (0, 0));
    }

    #[test]
    fn a_flood_of_control_messages_leaves_a_part_of_the_wire_to_others() {
        let mut egress = Egress::new();
        for name in 0..40 {
            let mut message = item(PortNo(1), name, 1000);
            message.meta.kind = HeaderKind::Axon(PacketType::Control);
            egress.push(message, 100_000).unwrap();
        }
        egress.push(item(PortNo(2), 100, 1500), 10_000).unwrap();
        egress.push(item(PortNo(2), 101, 1500), 10_000).unwrap();
        assert_eq!(egress.head_bytes(), Some(1000));
        let names = drain(&mut egress);
        let at = |name| names.iter().position(|&other| other == name).unwrap();
        assert_eq!([at(100), at(101)], [5, 11], "{names:?}");
    }

    #[test]
    fn one_ingress_cannot_use_the_room_of_another() {
        let mut egress = Egress::new();
        egress.push(item(PortNo(1), 1, 600), 1000).unwrap();
        assert_eq!(name(egress.push(item(PortNo(1), 2, 401), 1000).unwrap_err()), 2);
        egress.push(item(PortNo(1), 3, 400), 1000).unwrap();
        egress.push(item(PortNo(2), 4, 1000), 1000).unwrap();
        assert_eq!(drain(&mut egress), [1, 3, 4]);
        egress.push(item(PortNo(1), 5, 1000), 1000).unwrap();
        assert_eq!(drain(&mut egress), [5], "room comes back");
    }
}
