//! State of Data Center Bridging in a switch: conducts the parts that decide about frames, which
//! are memory and watermarks (`admission.rs`), and by port the classes (`class_map.rs`), the
//! pauses (`port_pauses.rs`), the schedule, and the congestion points (`notification.rs`).
//!
//! It sends nothing: [`Ports`](crate::Ports) asks it which frame goes next and which port is to
//! send XOFF or XON, and reports every frame that joins or leaves a queue.

use super::admission::{Admission, QueueChange};
use super::class_map::ClassMap;
use super::dcb::{DcbConfig, DcbError};
use super::port_pauses::PortPauses;
use super::schedule::{ClassSet, Schedule};
use super::targeted::{RequestKind, SenderRequest};
use super::watchdog::{StormAction, StormChange};
use crate::axon::layers::Layers;
use crate::congestion::host_edge::HostEdge;
use crate::congestion::notification::{CongestionSignal, Watch};
use crate::ports::FrameMeta;
use crate::ports::shared_buffer::{Memory, Owner, PriorityGroupLimits, Signal};

use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::mac_control::{MacControl, MacControlError, Pfc};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, FrameBuf, PortNo, Time};

/// State of a switch with traffic classes, shared memory and flow control.
#[derive(Clone, Debug)]
pub struct Dcb {
    config: DcbConfig,
    admission: Admission,
    ports: Vec<DcbPort>,
    /// Port that may have to send XOFF or XON, for the memory.
    signalled: Option<PortNo>,
    /// Earliest time at which a pause ends or a request is to be repeated.
    next: Option<Time>,
}

/// Parts of one port.
#[derive(Clone, Debug)]
struct DcbPort {
    classes: ClassMap,
    pauses: PortPauses,
    schedule: Schedule,
    watch: Watch,
    edge: HostEdge,
}

impl Dcb {
    /// Returns the state of an idle switch.
    ///
    /// # Errors
    /// An invalid schedule, congestion point, marker or watermark.
    pub(crate) fn new(config: DcbConfig) -> Result<Dcb, DcbError> {
        config.schedule.serves(&config.prio_tc)?;
        let schedule = Schedule::new(&config.schedule)?;
        if let Some(cn) = &config.cn {
            cn.check()?;
        }
        if let Some(watermarks) = &config.watermarks {
            watermarks.check()?;
        }
        let mut ports = Vec::with_capacity(config.rates.len());
        for (&rate, port) in config.rates.iter().zip((0..).map(PortNo)) {
            let (cn, ecn) = (config.cn.as_ref(), &config.ecn[port.index()]);
            let classes = ClassMap::new(config.prio_tc);
            let mut pauses = PortPauses::new(&config, rate);
            pauses.enable(&classes);
            let watch = Watch::new(cn, ecn, (config.mac, port), &config.prio_tc)?;
            let (schedule, edge) = (schedule.clone(), HostEdge::new(cn, port));
            ports.push(DcbPort { classes, pauses, schedule, watch, edge });
        }
        let admission = Admission::new(&config.memory, config.watermarks);
        Ok(Dcb { admission, ports, signalled: None, next: None, config })
    }

    /// Returns the shared memory.
    pub fn memory(&self) -> &Memory {
        self.admission.memory()
    }

    /// Sets the limits of a priority group; see `Memory::set_group`.
    pub fn set_group(&mut self, ingress: PortNo, priority: Priority, limits: PriorityGroupLimits) {
        self.admission.set_group(ingress, priority, limits);
    }

    /// Returns the priorities of `port` with PFC.
    pub fn pfc(&self, port: PortNo) -> PrioritySet {
        self.pauses(port).map_or(PrioritySet::EMPTY, PortPauses::pfc)
    }

    /// Returns the priorities for which a class of a port is paused now; none if it may send.
    pub(crate) fn paused_in_class(
        &self,
        now: Time,
        port: PortNo,
        class: TrafficClass,
    ) -> PrioritySet {
        match self.ports.get(port.index()) {
            Some(state) if self.paused_classes(now, state).contains(class) => {
                state.classes.in_class(class, state.pauses.paused(now))
            }
            _ => PrioritySet::EMPTY,
        }
    }

    /// Returns the number of frames that the congestion points of `port` have sampled.
    pub fn congestion_samples(&self, port: PortNo) -> u64 {
        self.ports.get(port.index()).map_or(0, |port| port.watch.samples())
    }

    /// Returns the changes of a priority group whose sender is paused because it has used up its
    /// memory.
    pub(crate) fn blocked(&self, ingress: PortNo, priority: Priority) -> Option<QueueChange> {
        self.admission.blocked(ingress, priority)
    }

    /// Returns the pauses at `port`; `None` if there is no such port.
    pub fn pauses(&self, port: PortNo) -> Option<&PortPauses> {
        self.ports.get(port.index()).map(|port| &port.pauses)
    }

    /// Returns the memory owner of a frame to be queued for `egress`.
    pub(crate) fn owner_of(&self, meta: &FrameMeta, egress: PortNo) -> Owner {
        let ingress = meta.ingress;
        let input = self.ports.get(ingress.index());
        let priority = input.map_or(meta.priority, |input| input.classes.known(meta.priority));
        let class = self.ports[egress.index()].classes.class_of(meta.priority);
        Owner { ingress, priority, egress, class }
    }

    /// Takes room for a frame. Returns the signal for its sender; `None` if the frame takes no
    /// room, since it has no ingress port.
    ///
    /// # Errors
    /// The frame must be dropped: there is no room, or its queue is in a storm.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        meta: &FrameMeta,
        owner: Owner,
    ) -> Result<Option<Signal>, Drop> {
        let watchdog = self.config.watchdog.as_ref();
        let egress = &self.ports[owner.egress.index()];
        if egress.pauses.in_storm(StormAction::Drop, watchdog).contains(owner.class) {
            return Err(Drop::Watchdog);
        }
        let Some(input) = self.ports.get(owner.ingress.index()) else { return Ok(None) };
        let bytes = (meta.came_bytes.into(), meta.frame.length() as u64);
        let pausable = || input.pauses.pausable(&input.classes);
        self.admission.admit(now, owner, bytes, pausable).map(Some)
    }

    /// Records that a frame of `bytes` bytes has joined its queue, with the signal of its
    /// admission. Senders may have to be [signalled](Dcb::next_signal) then.
    pub(crate) fn joined(&mut self, now: Time, owner: Owner, signal: Signal, bytes: u64) {
        self.note(owner, signal);
        let (ports, quanta) = (&self.ports, self.config.pfc_quanta);
        self.admission.joined(now, owner, bytes, |lossless| {
            let priorities = ports[owner.egress.index()].classes.in_class(owner.class, lossless);
            (priorities, ports[owner.ingress.index()].pauses.length(quanta))
        });
    }

    /// Releases the room of a frame of `bytes` bytes that has left its queue; it had `came_bytes`
    /// bytes. Senders may have to be [signalled](Dcb::next_signal) then.
    pub(crate) fn left(&mut self, now: Time, owner: Owner, (came_bytes, bytes): (u64, u64)) {
        if self.admission.concerns(owner.ingress) {
            let signal = self.admission.release(now, owner, (came_bytes, bytes));
            self.note(owner, signal);
        }
    }

    /// Requests what the memory signals to the sender of a priority group.
    fn note(&mut self, owner: Owner, signal: Signal) {
        let kind = match signal {
            Signal::None => return,
            Signal::Xoff => RequestKind::Xoff,
            Signal::Xon => RequestKind::Xon,
        };
        let state = &mut self.ports[owner.ingress.index()];
        for known in state.classes.known_as(owner.priority) {
            state.pauses.request(known, kind);
        }
        self.signalled = Some(owner.ingress);
    }

    /// Takes a port that may have to send XOFF or XON, for the memory or for watermarks.
    #[inline]
    pub(crate) fn next_signal(&mut self) -> Option<PortNo> {
        if let Some(port) = self.signalled.take() {
            return Some(port);
        }
        let SenderRequest { port, priorities, kind } = self.admission.next_request()?;
        let pauses = &mut self.ports[port.index()].pauses;
        priorities.iter().for_each(|priority| pauses.request(priority, kind));
        Some(port)
    }

    /// Returns the class of `port` that sends next, if one may; frames wait in the `waiting` ones.
    pub(crate) fn next_class(
        &mut self,
        now: Time,
        port: PortNo,
        waiting: ClassSet,
        head_bytes: impl Fn(TrafficClass) -> u32,
    ) -> Option<TrafficClass> {
        let paused = self.paused_classes(now, &self.ports[port.index()]);
        self.ports[port.index()].schedule.next(waiting, paused, head_bytes)
    }

    /// Charges a frame of `bytes` bytes, which has left the queue of `port`, to its class.
    pub(crate) fn sent(&mut self, (port, class): (PortNo, TrafficClass), bytes: u32) {
        self.ports[port.index()].schedule.sent(class, bytes);
    }

    /// Records that the last frame has left the queue.
    pub(crate) fn emptied(&mut self, now: Time, (port, class): (PortNo, TrafficClass)) {
        self.ports[port.index()].watch.emptied(now, class);
    }

    /// Returns whether a flow control frame waits for the wire of `port`.
    pub(crate) fn is_pending(&self, port: PortNo) -> bool {
        self.pauses(port).is_some_and(PortPauses::is_pending)
    }

    /// Returns the flow control frame to send by `port` now, if one is due.
    pub(crate) fn next_frame(&mut self, now: Time, port: PortNo) -> Option<FrameBuf> {
        let pauses = &mut self.ports[port.index()].pauses;
        if !pauses.is_due(now) {
            return None;
        }
        let frame = pauses.next_frame(now, self.config.pfc_quanta).emit(self.config.mac);
        self.plan(now);
        Some(FrameBuf::with_headroom(0, &frame))
    }

    /// Processes a complete MAC control frame from the peer of `port`. Returns the reason why it
    /// ends here, and the number of ignored priorities if it pauses or resumes any.
    pub(crate) fn receive(&mut self, now: Time, port: PortNo, frame: &[u8]) -> (Drop, Option<u64>) {
        let pfc = self.pfc(port);
        let (pauses, enabled) =
            match MacControl::parse_as(frame, self.config.mac, self.config.pfc_reserved) {
                Ok(MacControl::Pfc(pauses)) => (pauses, pfc),
                // PAUSE is not used together with PFC (IEEE 802.1Q clause 36.1.1).
                Ok(MacControl::Pause(time)) => {
                    let all = if pfc.is_empty() { PrioritySet::ALL } else { PrioritySet::EMPTY };
                    (Pfc::of(PrioritySet::ALL, time), all)
                }
                Err(MacControlError::Opcode(_)) => return (Drop::MacControl, None),
                Err(_) => return (Drop::Malformed, None),
            };
        let Some(state) = self.ports.get_mut(port.index()) else { return (Drop::MacControl, None) };
        let ignored = state.pauses.receive(now, &pauses, enabled);
        self.plan(now);
        (Drop::MacControl, Some(ignored.len() as u64))
    }

    /// Prevents frames of `priority` from starting at `port` before `until`. Returns false if there
    /// is no such port.
    pub(crate) fn hold_back(
        &mut self,
        now: Time,
        port: PortNo,
        priority: Priority,
        until: Time,
    ) -> bool {
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        state.pauses.hold_back(priority, until);
        self.plan(now);
        true
    }

    /// Enables PFC for these priorities of `port`, and for no others. Returns whether a flow
    /// control frame is due; `None` if there is no such port.
    pub(crate) fn set_pfc(&mut self, now: Time, port: PortNo, pfc: PrioritySet) -> Option<bool> {
        let state = self.ports.get_mut(port.index())?;
        state.pauses.set_pfc(pfc, &state.classes);
        let due = state.pauses.is_due(now);
        self.plan(now);
        Some(due)
    }

    /// Maps the priorities of `port` to classes with this schedule, which serves them; queued
    /// frames are to be [moved](Dcb::reclass). Returns false if there is no such port.
    pub(crate) fn set_classes(
        &mut self,
        now: Time,
        port: PortNo,
        prio_tc: [TrafficClass; PRIORITIES],
        schedule: Schedule,
    ) -> bool {
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        state.schedule = schedule;
        state.schedule.adapt(now);
        state.classes.set_prio_tc(prio_tc);
        // Points and markers belong to the new classes of their priorities.
        let (cn, ecn) = (self.config.cn.as_ref(), &self.config.ecn[port.index()]);
        if let Ok(watch) = Watch::new(cn, ecn, (self.config.mac, port), &prio_tc) {
            state.watch = watch;
        }
        self.admission.clear_queues(port);
        self.plan(now);
        true
    }

    /// Returns whether some queue of `port` has a congestion point or a marker.
    pub(crate) fn is_watched(&self, port: PortNo) -> bool {
        self.ports[port.index()].watch.is_any()
    }

    /// Moves a queued frame of a priority group and of `bytes` bytes from a class to that of its
    /// priority, which it returns. Senders may have to be [signalled](Dcb::next_signal) then.
    pub(crate) fn reclass(
        &mut self,
        now: Time,
        meta: &FrameMeta,
        (egress, before): (PortNo, TrafficClass),
        (group, bytes): (Priority, u64),
    ) -> TrafficClass {
        let class = self.ports[egress.index()].classes.class_of(meta.priority);
        let owner = Owner { ingress: meta.ingress, priority: group, egress, class };
        self.admission.reclass(owner, before, meta.came_bytes.into());
        self.joined(now, owner, Signal::None, bytes);
        class
    }

    /// Sets whether there are hosts at `port`; returns whether a request to them is pending. It is
    /// due then if the wire `is_free`.
    pub(crate) fn set_hosts(&mut self, port: PortNo, hosts: bool, is_free: bool) -> bool {
        let layers = if hosts { self.config.layers } else { Layers::NONE };
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        let now = Priority::ALL.map(|priority| layers.at_hosts(priority));
        let before = state.classes.set_known_as(now);
        // Requests contain priorities as the peer sees them.
        let memory = self.admission.memory();
        let paused = |known| memory.group(port, known).is_some_and(|group| group.xoff);
        for priority in Priority::ALL {
            match [before, now].map(|known_as| paused(known_as[priority.index()])) {
                [false, true] => state.pauses.request(priority, RequestKind::Xoff),
                [true, false] => state.pauses.request(priority, RequestKind::Xon),
                _ => {}
            }
        }
        state.pauses.enable(&state.classes);
        let is_pending = state.pauses.is_pending();
        if is_pending && is_free {
            self.next = Some(Time::ZERO);
        }
        is_pending
    }

    /// Sets the treatment of the hosts of `port`; `None` if there is no such port.
    pub(crate) fn edge_mut(&mut self, port: PortNo) -> Option<&mut HostEdge> {
        self.ports.get_mut(port.index()).map(|port| &mut port.edge)
    }

    /// Returns the treatment of the hosts of `port`; `None` if there is no such port.
    #[inline]
    pub(crate) fn edge(&self, port: PortNo) -> Option<&HostEdge> {
        self.ports.get(port.index()).map(|port| &port.edge)
    }

    /// Returns the class of a priority at `port`; `None` if there is no such port.
    #[inline]
    pub fn class_of(&self, port: PortNo, priority: Priority) -> Option<TrafficClass> {
        self.ports.get(port.index()).map(|port| port.classes.class_of(priority))
    }

    /// Passes a host's `frame` of `bytes` bytes, which will be queued for `port`, to the marker and
    /// congestion point of its `queue`, given by class and length.
    pub(crate) fn observe(
        &mut self,
        now: Time,
        (port, priority): (PortNo, Priority),
        queue: (TrafficClass, Bytes),
        (frame, bytes): (&mut [u8], Bytes),
    ) -> CongestionSignal {
        let sampled = self.config.cn.as_ref().is_some_and(|cn| cn.cnpvs.contains(priority));
        self.ports[port.index()].watch.arrives(now, queue, (frame, bytes), sampled)
    }

    /// Returns the classes of `port` that may not begin a frame: paused, not forwarded in a storm.
    fn paused_classes(&self, now: Time, port: &DcbPort) -> ClassSet {
        port.pauses.paused_classes(now, &port.classes, self.config.watchdog.as_ref())
    }

    /// Returns whether a frame of some class must be checked before it leaves by `port`.
    pub(crate) fn holds(&self, now: Time, port: PortNo) -> bool {
        let port = &self.ports[port.index()];
        port.pauses.holds(now, &port.classes, self.config.watchdog.as_ref())
    }

    /// Returns the classes that the peer of `port` has paused, if there is a watchdog.
    pub(crate) fn watched_pauses(&self, now: Time, port: PortNo) -> Option<ClassSet> {
        let port = &self.ports[port.index()];
        self.config.watchdog.map(|_| port.pauses.peer_paused(now, &port.classes))
    }

    /// Checks a queue for a storm, given whether its peer has paused it and whether frames wait in
    /// it. Returns the change and the action in a storm.
    pub(crate) fn check_storm(
        &mut self,
        now: Time,
        (port, class): (PortNo, TrafficClass),
        queue: (bool, bool),
    ) -> Option<(StormChange, StormAction)> {
        let config = self.config.watchdog?;
        let pauses = &mut self.ports[port.index()].pauses;
        let (change, is_other) = pauses.check_storm(now, &config, class, queue);
        if is_other {
            self.plan(now);
        }
        Some((change?, config.action))
    }

    /// Handles the arrival of the carrier of `port`: adaptive weights start.
    pub(crate) fn link_up(&mut self, now: Time, port: PortNo) {
        self.ports[port.index()].schedule.adapt(now);
        self.plan(now);
    }

    /// Handles the loss of the carrier of `port`: received pauses and storms end, and the state of
    /// its peer is unknown. Returns the classes that were in a storm.
    pub(crate) fn link_down(&mut self, now: Time, port: PortNo) -> ClassSet {
        let pauses = &mut self.ports[port.index()].pauses;
        let storms = pauses.clear_storms();
        pauses.link_lost();
        self.plan(now);
        storms
    }

    /// Returns the earliest time at which the ports are to be [refreshed](Dcb::refresh).
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// Adapts the weights of `port`; returns whether a flow control frame is due there, which is
    /// deferred if the wire `is_busy`.
    pub(crate) fn refresh(&mut self, now: Time, port: PortNo, is_busy: bool) -> bool {
        let state = &mut self.ports[port.index()];
        state.schedule.adapt(now);
        let due = state.pauses.is_due(now);
        if due && is_busy {
            state.pauses.defer();
        }
        due
    }

    /// Computes the next deadline after all ports have been refreshed.
    pub(crate) fn refreshed(&mut self, now: Time) {
        self.next = None;
        self.plan(now);
    }

    /// Recomputes the next deadline. An overdue deadline is kept until it is handled: an expired
    /// pause has no further deadline, but the frames it held are still to be sent.
    fn plan(&mut self, now: Time) {
        if self.next.is_some_and(|at| at <= now) {
            return;
        }
        let watchdog = self.config.watchdog.as_ref();
        let due = |port: &DcbPort| [port.pauses.deadline(now, watchdog), port.schedule.deadline()];
        self.next = self.ports.iter().flat_map(due).flatten().min();
    }
}
