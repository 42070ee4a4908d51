//! Data Center Bridging in a switch: its configuration, and the state of each port.
//!
//! The parts are in separate files: memory limits of frames (`memory.rs`), received and transmitted
//! pauses (`flow_control.rs`), congestion signalling of queues (`congestion/notification.rs`). They
//! are combined in `ports/admission.rs`, `ports/flow_control.rs` and `ports/watch.rs`.

use crate::axon::layers::Layers;
use crate::congestion::notification::{CnConfig, EcnConfig, NotificationError, UNDEFENDED, Watch};
use crate::congestion::qcn::Treatment;
use crate::ports::QueueChange;
pub use crate::ports::buffers::QueueOrder;
use crate::ports::memory::{Memory, MemoryConfig, Owner, PriorityGroupLimits, QueueLimits, Share};
use crate::qos::flow_control::{PauseRequests, PauseState};
use crate::qos::schedule::{Algorithm, ClassSet, Schedule, ScheduleConfig, ScheduleFault};
use crate::qos::targeted::{Queues, RequestKind, SenderRequest, WatermarkFault, Watermarks};
use crate::qos::watchdog::{StormAction, StormWatch, WatchdogConfig};
use alloc::vec::Vec;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Time};

/// Configuration of a switch with traffic classes and flow control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbConfig {
    /// Memory limits, and the lossless priorities.
    pub memory: MemoryConfig,
    /// Traffic class of each priority (dcbnl: `prio_tc`), the same at every port until a port is
    /// set otherwise ([`Ports::set_classes`](crate::Ports::set_classes)).
    pub prio_tc: [TrafficClass; PRIORITIES],
    /// Schedule of the classes, the same at every port until a port is set otherwise.
    pub schedule: ScheduleConfig,
    /// Layers: priorities that hosts see as one. Each needs its own class. They cannot be combined
    /// with watermarks or congestion notification.
    pub layers: Layers,
    /// Priorities with PFC: pauses received for others are ignored, and XOFF is sent for these
    /// only. The same at every port until one is set otherwise
    /// ([`Ports::set_pfc`](crate::Ports::set_pfc)).
    pub pfc: PrioritySet,
    /// True if peers are paused with PAUSE, which pauses all priorities (IEEE 802.3 annex 31B);
    /// only without PFC (IEEE 802.1Q clause 36.1.1).
    pub pause: bool,
    /// Duration of pauses that this switch requests, in quanta; repeated at half time.
    pub pfc_quanta: Quanta,
    /// Treatment of the reserved byte of received PFC frames.
    pub pfc_reserved: Reserved,
    /// Queue watermarks at which senders are paused, in addition to the memory's limits (paper 002
    /// chapter 7); without them the memory alone pauses senders.
    pub watermarks: Option<Watermarks>,
    /// Watchdog for peers that do not send XON for a queue; without it, nothing is done.
    pub watchdog: Option<WatchdogConfig>,
    /// Order of the frames in a queue.
    pub order: QueueOrder,
    /// Rate of each port, since quanta are bit times.
    pub rates: Vec<Rate>,
    /// Source address of PFC frames.
    pub mac: MacAddr,
    /// Congestion notification, if configured.
    pub cn: Option<CnConfig>,
    /// ECN marking by port and traffic class, where configured.
    pub ecn: Vec<[Option<EcnConfig>; PRIORITIES]>,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbError {
    /// Invalid schedule of classes.
    #[error(transparent)]
    Schedule(#[from] ScheduleFault),
    /// Invalid congestion point or marker.
    #[error(transparent)]
    Notification(#[from] NotificationError),
    /// Invalid watermarks of queues.
    #[error(transparent)]
    Watermarks(#[from] WatermarkFault),
}

impl DcbConfig {
    /// Returns a configuration for ports of these rates: one strict class for each priority,
    /// nothing lossless, no flow control; 1 MiB for queued frames, of which a priority group or a
    /// queue may take as much as is free. The caller may change all of it.
    pub fn lossy(rates: Vec<Rate>, mac: MacAddr) -> DcbConfig {
        let share = Share::Dynamic { shift: 0 };
        let group = PriorityGroupLimits {
            reserved: Bytes(0),
            share,
            headroom: Bytes(0),
            xon_offset: Bytes(0),
        };
        DcbConfig {
            memory: MemoryConfig {
                lossless: PrioritySet::EMPTY,
                lossless_pool: Bytes(0),
                lossy_pool: Bytes(1 << 20),
                groups: alloc::vec![[group; PRIORITIES]; rates.len()],
                queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
            },
            prio_tc: TrafficClass::ALL,
            layers: Layers::NONE,
            schedule: ScheduleConfig::of([Algorithm::Strict; PRIORITIES]),
            pfc: PrioritySet::EMPTY,
            pause: false,
            pfc_quanta: Quanta::MAX,
            pfc_reserved: Reserved::default(),
            ecn: alloc::vec![[None; PRIORITIES]; rates.len()],
            watermarks: None,
            watchdog: None,
            order: QueueOrder::ByIngress,
            rates,
            mac,
            cn: None,
        }
    }
}

/// State of one port.
#[derive(Clone, Debug)]
pub(crate) struct DcbPort {
    pub(crate) pauses: PauseState,
    pub(crate) requests: PauseRequests,
    pub(crate) schedule: Schedule,
    pub(crate) watch: Watch,
    /// Treatment of frames of its hosts at the edge of the congestion notification domain.
    pub(crate) treatments: [Treatment; PRIORITIES],
    /// Regenerated priority of a frame of its hosts, by that of its tag.
    pub(crate) regeneration: [Priority; PRIORITIES],
    /// Watchdog state of each queue, by traffic class.
    pub(crate) storms: [StormWatch; PRIORITIES],
    /// Changes in the priority groups of this ingress, by priority.
    pub(crate) changes: [QueueChange; PRIORITIES],
    pub(crate) rate: Rate,
    pub(crate) prio_tc: [TrafficClass; PRIORITIES],
    /// The peer's view of each priority: hosts see no layers.
    pub(crate) known_as: [Priority; PRIORITIES],
    pub(crate) pfc: PrioritySet,
    /// PAUSE instead of PFC, see [`DcbConfig::pause`].
    pub(crate) pause: bool,
}

impl DcbPort {
    /// Returns whether the peer is paused with PAUSE.
    pub(crate) const fn uses_pause(&self) -> bool {
        self.pause && self.pfc.is_empty()
    }

    /// Returns the priorities whose sender can be paused: those with PFC, and all that the peer
    /// sees as one of them, since they fill the same priority group.
    pub(crate) fn pausable(&self) -> PrioritySet {
        if self.uses_pause() {
            return PrioritySet::ALL;
        }
        let known: PrioritySet = self.pfc.iter().map(|of| self.known_as[of.index()]).collect();
        let all = Priority::ALL.into_iter();
        all.filter(|of| known.contains(self.known_as[of.index()])).collect()
    }

    /// Returns the class of a priority.
    pub(crate) const fn class_of(&self, priority: Priority) -> TrafficClass {
        self.prio_tc[self.known_as[priority.index()].index()]
    }

    /// Returns the priorities that the peer sees as this one: they are paused together.
    pub(crate) fn known_as(&self, known: Priority) -> impl Iterator<Item = Priority> + use<> {
        let known_as = self.known_as;
        Priority::ALL.into_iter().filter(move |of| known_as[of.index()] == known)
    }
}

/// State of a switch with traffic classes.
#[derive(Clone, Debug)]
pub(crate) struct Dcb {
    pub(crate) config: DcbConfig,
    pub(crate) memory: Memory,
    pub(crate) ports: Vec<DcbPort>,
    /// Queues with watermarks, if configured.
    pub(crate) queues: Option<Queues>,
    /// Earliest time at which a pause ends or a request is to be repeated.
    pub(crate) next: Option<Time>,
}

impl Dcb {
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
        for (index, &rate) in config.rates.iter().enumerate() {
            let place = (config.mac, PortNo(index as u16));
            let (cn, ecn) = (config.cn.as_ref(), &config.ecn[index]);
            let mut port = DcbPort {
                pauses: PauseState::default(),
                requests: PauseRequests::default(),
                schedule: schedule.clone(),
                watch: Watch::new(cn, ecn, place, &config.prio_tc)?,
                treatments: cn.map_or([UNDEFENDED; PRIORITIES], |cn| cn.treatments[index]),
                regeneration: Priority::ALL,
                storms: Default::default(),
                changes: Default::default(),
                rate,
                prio_tc: config.prio_tc,
                known_as: Priority::ALL,
                pfc: config.pfc,
                pause: config.pause,
            };
            port.requests.set_enabled(port.pausable());
            ports.push(port);
        }
        let memory = Memory::new(config.memory.clone());
        let queues = config.watermarks.map(|watermarks| Queues::new(watermarks, ports.len()));
        Ok(Dcb { memory, ports, queues, next: None, config })
    }

    /// Sets whether there are hosts at `port`; returns whether a request to them is pending.
    pub(crate) fn set_hosts(&mut self, port: PortNo, hosts: bool) -> bool {
        let layers = if hosts { self.config.layers } else { Layers::NONE };
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        let now = Priority::ALL.map(|priority| layers.at_hosts(priority));
        let before = core::mem::replace(&mut state.known_as, now);
        // Requests contain priorities as the peer sees them.
        let stopped = |known| self.memory.group(port, known).is_some_and(|group| group.xoff);
        for priority in Priority::ALL {
            let [before, now] = [before, now].map(|known_as| stopped(known_as[priority.index()]));
            if before != now {
                state.requests.set(priority, now);
            }
        }
        state.requests.set_enabled(state.pausable());
        state.requests.is_pending()
    }

    /// Returns the lossless priorities of a class of `port`.
    fn lossless_in(&self, port: PortNo, class: TrafficClass) -> PrioritySet {
        let port = &self.ports[port.index()];
        let lossless = self.config.memory.lossless.iter();
        lossless.filter(|&priority| port.class_of(priority) == class).collect()
    }

    /// Returns whether the queue of a frame may grow by this many bytes.
    pub(crate) fn queue_has_room(&self, owner: Owner, bytes: u64) -> bool {
        let lossless = self.config.memory.lossless.contains(owner.priority);
        self.queues.as_ref().is_none_or(|queues| !lossless || queues.has_room(owner, bytes))
    }

    /// Records that a frame has joined its queue. Frames of the control plane and lossy ones are
    /// exempt from watermarks.
    pub(crate) fn joined_queue(&mut self, now: Time, owner: Owner, bytes: u64) {
        if !self.has_watermarks(owner) {
            return;
        }
        let stop = self.config.pfc_quanta.time_at(self.ports[owner.ingress.index()].rate);
        let priorities = self.lossless_in(owner.egress, owner.class);
        if let Some(queues) = &mut self.queues {
            queues.arrived(now, (owner, priorities), bytes, stop);
        }
    }

    /// Records that a frame has left its queue.
    pub(crate) fn left_queue(&mut self, owner: Owner, bytes: u64) {
        if self.has_watermarks(owner)
            && let Some(queues) = &mut self.queues
        {
            queues.left(owner, bytes);
        }
    }

    fn has_watermarks(&self, owner: Owner) -> bool {
        let lossless = self.config.memory.lossless.contains(owner.priority);
        lossless && owner.ingress.index() < self.ports.len()
    }

    /// Applies a watermark request to a sender; returns a port that may have to send XOFF or XON.
    pub(crate) fn next_request(&mut self) -> Option<PortNo> {
        let SenderRequest { port, priorities, kind } = self.queues.as_mut()?.next_request()?;
        let requests = &mut self.ports[port.index()].requests;
        for priority in priorities.iter() {
            match kind {
                RequestKind::Xoff => requests.set(priority, true),
                RequestKind::XoffOnce => requests.pause_once(priority),
                RequestKind::Xon => requests.set(priority, false),
            }
        }
        Some(port)
    }

    /// Returns the classes of `port` that may not begin a frame: paused, not forwarded in a storm.
    pub(crate) fn paused_classes(&self, port: PortNo, now: Time) -> ClassSet {
        let paused = self.peer_paused_classes(port, now);
        paused.difference(self.in_storm(port, StormAction::Forward))
    }

    /// Returns whether a frame of some class must be checked before it leaves by `port`.
    pub(crate) fn holds(&self, port: PortNo, now: Time) -> bool {
        let stopped = self.paused_classes(port, now);
        !stopped.union(self.in_storm(port, StormAction::Drop)).is_empty()
    }

    /// Returns the classes of `port` in a storm, if `action` is the configured one.
    pub(crate) fn in_storm(&self, port: PortNo, action: StormAction) -> ClassSet {
        let mut classes = ClassSet::EMPTY;
        if self.config.watchdog.is_some_and(|config| config.action == action) {
            let watches = TrafficClass::ALL.into_iter().zip(&self.ports[port.index()].storms);
            let storms = watches.filter(|(_, watch)| watch.is_storm());
            storms.for_each(|(class, _)| classes.insert(class));
        }
        classes
    }

    /// Returns the classes of `port` that its peer has paused: pausing one of the priorities that
    /// share a class pauses the class.
    pub(crate) fn peer_paused_classes(&self, port: PortNo, now: Time) -> ClassSet {
        let mut classes = ClassSet::EMPTY;
        let port = &self.ports[port.index()];
        let stopped = port.pauses.paused(now);
        stopped.iter().for_each(|priority| classes.insert(port.class_of(priority)));
        classes
    }

    /// Recomputes the next deadline. An overdue deadline is kept until it is handled: an expired
    /// pause has no further deadline, but the frames it held are still to be sent.
    pub(crate) fn plan(&mut self, now: Time) {
        if self.next.is_some_and(|at| at <= now) {
            return;
        }
        let due = |port: &DcbPort| {
            [port.pauses.next_end(now), port.requests.next(), port.schedule.deadline()]
        };
        let due = self.ports.iter().flat_map(due).flatten();
        let watchdog = self.config.watchdog.as_ref();
        let watched = self.ports.iter().flat_map(|port| &port.storms);
        let looks = watched.filter_map(|watch| watch.deadline(watchdog?));
        self.next = due.chain(looks).min();
    }
}
