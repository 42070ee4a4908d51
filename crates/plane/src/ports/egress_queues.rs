//! Queues of all egress ports: the buffers of each traffic class, and the frames that inputs keep
//! because an output has refused them (thesis 000 §3.2.1).

use super::buffers::{Egress, QueueOrder, Queued};
use super::control_queues::Ahead;
use crate::qos::schedule::ClassSet;
use alloc::vec::Vec;
use axon_wire::priority::{PRIORITIES, Priority, TrafficClass};
use axon_wire::{Bytes, PortNo, Time};

/// Queues of the egress ports of a switch.
#[derive(Clone, Debug)]
pub struct EgressQueues {
    ports: Vec<PortQueues>,
    bytes_max: u64,
    /// Bytes of refused frames that each input port may keep.
    nack_bytes_max: u64,
}

#[derive(Clone, Debug)]
struct PortQueues {
    /// Buffers by traffic class; one without traffic classes.
    classes: Vec<Egress>,
    /// Bytes of frames received here that outputs refused and that are kept.
    nacked_bytes: u64,
}

impl EgressQueues {
    /// Returns empty queues: one class for each port, with one buffer for each ingress port and one
    /// for the control plane, of `bytes_max` bytes.
    pub(super) fn new(ports: u16, bytes_max: Bytes) -> EgressQueues {
        let port = || PortQueues { classes: alloc::vec![Egress::new()], nacked_bytes: 0 };
        let ports = (0..ports).map(|_| port()).collect();
        EgressQueues { ports, bytes_max: bytes_max.0, nack_bytes_max: 0 }
    }

    /// Sets the bytes of refused frames that each input port may keep; initially none.
    pub(super) fn set_nack_bytes_max(&mut self, nack_bytes_max: Bytes) {
        self.nack_bytes_max = nack_bytes_max.0;
    }

    /// Replaces the queues, which must be empty, by one for each traffic class.
    pub(super) fn set_classes(&mut self, order: QueueOrder) {
        for port in &mut self.ports {
            port.classes = (0..PRIORITIES).map(|_| Egress::ordered(order)).collect();
        }
    }

    /// Returns the limit of a buffer, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Returns the queue of a class of `port`.
    #[inline]
    pub(crate) fn of(&self, (port, class): (PortNo, TrafficClass)) -> &Egress {
        &self.ports[port.index()].classes[class.index()]
    }

    fn of_mut(&mut self, (port, class): (PortNo, TrafficClass)) -> &mut Egress {
        &mut self.ports[port.index()].classes[class.index()]
    }

    fn classes(&self, port: PortNo) -> impl Iterator<Item = (TrafficClass, &Egress)> {
        let classes = self.ports.get(port.index()).map_or(&[][..], |state| &state.classes);
        TrafficClass::ALL.into_iter().zip(classes)
    }

    /// Queues a frame; if `limited`, only within the limit of its buffer.
    ///
    /// # Errors
    /// Returns the frame if there is no room for it.
    pub(super) fn push(
        &mut self,
        item: Queued,
        queue: (PortNo, TrafficClass),
        limited: bool,
    ) -> Result<(), Queued> {
        let bytes_max = if limited { self.bytes_max } else { u64::MAX };
        self.of_mut(queue).push(item, bytes_max)
    }

    /// Keeps a frame that [`EgressQueues::push`] has refused at its input.
    ///
    /// # Errors
    /// Returns the frame if the input may not keep it.
    pub(super) fn keep(
        &mut self,
        item: Queued,
        queue: (PortNo, TrafficClass),
    ) -> Result<(), Queued> {
        let (ingress, bytes) = (item.meta.ingress, u64::from(item.bytes));
        let ahead = Ahead::of(item.meta.kind, ingress).is_some();
        let Some(input) = self.ports.get_mut(ingress.index()).filter(|_| !ahead) else {
            return Err(item);
        };
        let room = self.nack_bytes_max.saturating_sub(input.nacked_bytes);
        if bytes > room || bytes > self.bytes_max {
            return Err(item);
        }
        input.nacked_bytes += bytes;
        self.of_mut(queue).keep(item);
        Ok(())
    }

    /// Takes the next frame of a queue. Frames of the same input that it has refused are offered
    /// again.
    pub(super) fn pop(&mut self, queue: (PortNo, TrafficClass)) -> Option<Queued> {
        let bytes_max = self.bytes_max;
        let egress = self.of_mut(queue);
        let item = egress.pop()?;
        if egress.kept() > 0 {
            let ingress = item.meta.ingress;
            let taken = egress.offer_again(ingress, bytes_max);
            if let Some(input) = self.ports.get_mut(ingress.index()) {
                input.nacked_bytes -= taken;
            }
        }
        Some(item)
    }

    /// Takes all frames queued for `port`, with their classes; refused ones stay with their inputs.
    pub(super) fn drain(&mut self, port: PortNo) -> Vec<(TrafficClass, Queued)> {
        let mut waiting = Vec::new();
        for (class, queue) in
            TrafficClass::ALL.into_iter().zip(&mut self.ports[port.index()].classes)
        {
            waiting.extend(core::iter::from_fn(|| Some((class, queue.pop()?))));
        }
        waiting
    }

    /// Truncates the frames that were still arriving by `ingress` when its carrier was lost.
    pub(super) fn break_off(&mut self, now: Time, ingress: PortNo) {
        let classes = self.ports.iter_mut().flat_map(|port| &mut port.classes);
        classes.for_each(|class| class.break_off(now, ingress));
    }

    /// Returns the number of classes of `port`.
    pub(super) fn classes_of(&self, port: PortNo) -> usize {
        self.classes(port).count()
    }

    /// Returns whether no frame is queued for `port`.
    #[inline]
    pub(super) fn is_empty(&self, port: PortNo) -> bool {
        self.classes(port).all(|(_, queue)| queue.frames() == 0)
    }

    /// Returns the classes of `port` in which frames are queued.
    #[inline]
    pub(super) fn occupied(&self, port: PortNo) -> ClassSet {
        let mut occupied = ClassSet::EMPTY;
        let holds = |&(_, queue): &(TrafficClass, &Egress)| queue.frames() > 0;
        self.classes(port).filter(holds).for_each(|(class, _)| occupied.insert(class));
        occupied
    }

    /// Returns whether the buffer of `port` is full for a frame of `bytes` bytes from `ingress`;
    /// for ports without traffic classes.
    pub(crate) fn is_full(&self, port: PortNo, ingress: PortNo, bytes: usize) -> bool {
        let queue = self.ports.get(port.index()).and_then(|port| port.classes.first());
        queue.is_some_and(|queue| queue.refuses(ingress, bytes as u64, self.bytes_max))
    }

    /// Returns the bytes queued for the wire of `port`.
    pub fn bytes(&self, port: PortNo) -> Bytes {
        Bytes(self.classes(port).map(|(_, queue)| queue.bytes()).sum())
    }

    /// Returns the frames queued for the wire of `port`, refused ones kept by inputs included.
    pub fn frames(&self, port: PortNo) -> u64 {
        self.classes(port).map(|(_, queue)| queue.frames() + queue.kept()).sum()
    }

    /// Iterates over the bytes queued for the wire of `port`, by class and ingress port.
    pub(crate) fn waiting(
        &self,
        port: PortNo,
    ) -> impl Iterator<Item = (TrafficClass, PortNo, Bytes)> {
        self.classes(port).flat_map(|(class, queue)| {
            queue.by_ingress().map(move |(ingress, bytes)| (class, ingress, bytes))
        })
    }

    /// Returns the classes in which frames from `ingress` that use the memory of `priority` are
    /// queued for the wire of `port`.
    pub(crate) fn waiting_of(
        &self,
        port: PortNo,
        (ingress, priority): (PortNo, Priority),
    ) -> impl Iterator<Item = TrafficClass> {
        let holds = move |queue: &Egress| queue.holds(ingress, priority);
        self.classes(port).filter_map(move |(class, queue)| holds(queue).then_some(class))
    }

    /// Returns the bytes of refused frames that the input `port` keeps.
    pub(crate) fn nacked_bytes(&self, port: PortNo) -> Bytes {
        Bytes(self.ports.get(port.index()).map_or(0, |state| state.nacked_bytes))
    }
}
