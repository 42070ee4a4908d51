//! Admission to the queues of an egress port, and removal from them: one path for every switch.
//!
//! A frame that cannot leave at once waits in the traffic class of its priority. It takes room in
//! the shared memory, from the priority group of its ingress, and in its queue, which keeps the
//! frames of each ingress apart. When the wire is free, the scheduler picks a class that is not
//! paused, and the frame that leaves releases its room.
//!
//! A switch without DCB has one class that is never paused and no shared memory: the limit of each
//! ingress at each egress applies alone. A frame that does not fit stays with its input, if that
//! may keep refused frames (thesis 000 §3.2.1).

use super::core::Ports;
use super::frame_meta::FrameMeta;
use crate::ports::buffers::Queued;
use crate::ports::control_queues::Ahead;
use crate::ports::memory::{NoRoom, Owner, Signal};
use crate::qos::dcb::Dcb;
use crate::qos::schedule::ClassSet;
use crate::qos::watchdog::StormAction;
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortEvent, PortKind};
use axon_wire::priority::TrafficClass;
use axon_wire::{PortNo, Time};

impl Ports {
    /// Queues a frame for `port`, if there is room.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        meta: FrameMeta,
        (port, kind): (PortNo, Option<PortKind>),
        out: &mut Vec<Action>,
    ) {
        let owner = self.owner_of(&meta, port);
        let signal = match self.reserve(now, &meta, owner) {
            Ok(signal) => signal,
            Err(reason) => return self.discard(meta, reason, out),
        };
        // Shared memory, if any, decides; frames of the control plane have their own buffer.
        let by_memory = |dcb: &Dcb| owner.ingress.index() < dcb.ports.len();
        let admitted = self.dcb.as_deref().is_some_and(by_memory);
        let bytes_max = if admitted { u64::MAX } else { self.queue_bytes_max };
        let bytes = meta.frame.length() as u32;
        let item = Queued { meta, bytes, kind, group: owner.priority };
        let classes = &mut self.ports[port.index()].classes;
        if let Err(item) = classes[owner.class.index()].push(item, bytes_max) {
            return self.refuse(item, owner, out);
        }
        self.wait_for(port);
        if self.dcb.is_some() {
            self.signal(now, (owner, signal), bytes, out);
        }
    }

    /// Returns the memory owner of a frame to be queued for `port`.
    fn owner_of(&self, meta: &FrameMeta, port: PortNo) -> Owner {
        let (ingress, egress) = (meta.ingress, port);
        let Some(dcb) = &self.dcb else {
            return Owner { ingress, priority: meta.priority, egress, class: TrafficClass::ZERO };
        };
        let input = dcb.ports.get(ingress.index());
        let group = input.map_or(meta.priority, |input| input.known_as[meta.priority.index()]);
        let class = dcb.ports[port.index()].class_of(meta.priority);
        Owner { ingress, priority: group, egress, class }
    }

    /// Takes room in the shared memory, if any; returns the signal for the sender.
    fn reserve(&mut self, now: Time, meta: &FrameMeta, owner: Owner) -> Result<Signal, Drop> {
        let Some(dcb) = &mut self.dcb else { return Ok(Signal::None) };
        let (ingress, group) = (owner.ingress.index(), owner.priority);
        if dcb.in_storm(owner.egress, StormAction::Drop).contains(owner.class) {
            return Err(Drop::Watchdog);
        }
        if ingress >= dcb.ports.len() {
            return Ok(Signal::None);
        }
        if !dcb.queue_has_room(owner, meta.frame.length() as u64) {
            return Err(Drop::HeadroomFull);
        }
        match dcb.memory.admit(owner, meta.came_bytes.into()) {
            Ok(signal) => {
                dcb.ports[ingress].changes[group.index()].came(now);
                Ok(signal)
            }
            // Without a pausable sender no frame is lossless.
            Err(NoRoom::Headroom) if dcb.ports[ingress].pausable().contains(group) => {
                Err(Drop::HeadroomFull)
            }
            Err(_) => Err(Drop::QueueFull),
        }
    }

    /// Signals after a frame of `bytes` bytes has joined its queue: senders to that queue may have
    /// to be paused, and the queue may be able to send.
    fn signal(
        &mut self,
        now: Time,
        (owner, signal): (Owner, Signal),
        bytes: u32,
        out: &mut Vec<Action>,
    ) {
        let port = owner.egress;
        self.signal_sender(now, owner.ingress, owner.priority, signal, out);
        if let Some(dcb) = &mut self.dcb {
            dcb.joined_queue(now, owner, bytes.into());
        }
        self.signal_queue_senders(now, out);
        if self.tx[port.index()].held {
            self.check_storms(now, port, out);
        }
        if !self.tx[port.index()].busy {
            self.send_next(now, port, out);
        }
    }

    /// Handles a frame that the queue has no room for: the input keeps it, if it may, or drops it.
    #[cold]
    fn refuse(&mut self, item: Queued, owner: Owner, out: &mut Vec<Action>) {
        let (ingress, bytes) = (owner.ingress, u64::from(item.bytes));
        let room = self
            .ports
            .get(ingress.index())
            .map_or(0, |input| self.nack_bytes_max.saturating_sub(input.nacked_bytes));
        let ahead = Ahead::of(item.meta.kind, ingress).is_some();
        if ahead || bytes > room || bytes > self.queue_bytes_max {
            return self.discard(item.meta, Drop::QueueFull, out);
        }
        self.counters.count(ingress, PortEvent::Nack);
        self.ports[ingress.index()].nacked_bytes += bytes;
        self.ports[owner.egress.index()].classes[owner.class.index()].keep(item);
    }

    /// Takes the next frame of `port` whose class is not paused, and releases its room.
    pub(super) fn take(
        &mut self,
        now: Time,
        port: PortNo,
        out: &mut Vec<Action>,
    ) -> Option<Queued> {
        let class = self.next_class(now, port)?;
        let item = self.ports[port.index()].classes[class.index()].pop()?;
        if let Some(dcb) = &mut self.dcb {
            let state = &mut dcb.ports[port.index()];
            state.schedule.sent(class, item.bytes);
            if self.ports[port.index()].classes[class.index()].frames() == 0 {
                state.watch.emptied(now, class);
            }
        }
        // Reserve the wire for this frame: flow control frames of this port follow it.
        self.tx[port.index()].busy = true;
        self.give_back(now, &item, (port, class), out);
        self.tx[port.index()].busy = false;
        Some(item)
    }

    /// Returns the class of `port` that sends next, if one may.
    fn next_class(&mut self, now: Time, port: PortNo) -> Option<TrafficClass> {
        let Some(dcb) = &mut self.dcb else { return Some(TrafficClass::ZERO) };
        let paused = dcb.paused_classes(port, now);
        let classes = &self.ports[port.index()].classes;
        let mut waiting = ClassSet::EMPTY;
        let holds = |class: &TrafficClass| classes[class.index()].frames() > 0;
        TrafficClass::ALL.into_iter().filter(holds).for_each(|class| waiting.insert(class));
        let head_bytes = |class: TrafficClass| classes[class.index()].head_bytes().unwrap_or(0);
        dcb.ports[port.index()].schedule.next(waiting, paused, head_bytes)
    }

    /// Releases the room of a frame that waited for `port`: for frames that its input keeps, and in
    /// the shared memory.
    pub(super) fn give_back(
        &mut self,
        now: Time,
        item: &Queued,
        (port, class): (PortNo, TrafficClass),
        out: &mut Vec<Action>,
    ) {
        let (ingress, priority) = (item.meta.ingress, item.group);
        self.offer_again(ingress, (port, class));
        let Some(dcb) = &mut self.dcb else { return };
        if ingress.index() < dcb.ports.len() {
            let owner = Owner { ingress, priority, egress: port, class };
            let signal = dcb.memory.release(owner, item.meta.came_bytes.into());
            dcb.ports[ingress.index()].changes[priority.index()].left(now);
            dcb.left_queue(owner, item.bytes.into());
            self.signal_sender(now, ingress, priority, signal, out);
            self.signal_queue_senders(now, out);
        }
    }

    /// Offers the frames that the input `ingress` keeps for `port` again, after one of its frames
    /// has left a queue there.
    #[inline]
    fn offer_again(&mut self, ingress: PortNo, (port, class): (PortNo, TrafficClass)) {
        let queue = &mut self.ports[port.index()].classes[class.index()];
        if queue.kept() == 0 {
            return;
        }
        let taken = queue.offer_again(ingress, self.queue_bytes_max);
        if let Some(input) = self.ports.get_mut(ingress.index()) {
            input.nacked_bytes -= taken;
        }
    }
}
