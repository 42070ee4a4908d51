//! Pauses at one port: those of its peer and of its own reaction points, those that it requests,
//! and the storms of its queues.

use super::class_map::ClassMap;
use super::dcb::DcbConfig;
use super::flow_control::{PauseRequests, PauseState};
use super::schedule::ClassSet;
use super::targeted::RequestKind;
use super::watchdog::{StormAction, StormChange, StormWatch, WatchdogConfig};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Rate, Span, Time};

/// Pauses at one port.
#[derive(Clone, Debug)]
pub struct PortPauses {
    received: PauseState,
    requests: PauseRequests,
    /// Watchdog state of each queue, by traffic class.
    storms: [StormWatch; PRIORITIES],
    rate: Rate,
    pfc: PrioritySet,
    /// PAUSE instead of PFC, see [`DcbConfig::pause`].
    pause: bool,
}

impl PortPauses {
    /// Returns the state of a port of this rate without pauses.
    pub(crate) fn new(config: &DcbConfig, rate: Rate) -> PortPauses {
        PortPauses {
            received: PauseState::default(),
            requests: PauseRequests::default(),
            storms: Default::default(),
            rate,
            pfc: config.pfc,
            pause: config.pause,
        }
    }

    /// Returns the priorities with PFC.
    pub(crate) fn pfc(&self) -> PrioritySet {
        self.pfc
    }

    /// Sets the priorities with PFC. The pauses of others end, and the peer gets XON for them.
    pub(crate) fn set_pfc(&mut self, pfc: PrioritySet, classes: &ClassMap) {
        self.pfc = pfc;
        self.received.set_enabled(pfc);
        self.enable(classes);
    }

    /// Enables requests for the priorities whose sender can be paused.
    pub(crate) fn enable(&mut self, classes: &ClassMap) {
        self.requests.set_enabled(self.pausable(classes));
    }

    /// Returns whether the peer is paused with PAUSE.
    const fn uses_pause(&self) -> bool {
        self.pause && self.pfc.is_empty()
    }

    /// Returns the priorities whose sender can be paused: those with PFC, and all that the peer
    /// sees as one of them.
    pub(crate) fn pausable(&self, classes: &ClassMap) -> PrioritySet {
        if self.uses_pause() { PrioritySet::ALL } else { classes.with_equals(self.pfc) }
    }

    /// Returns the priorities that may not begin a frame now.
    #[inline]
    pub fn paused(&self, now: Time) -> PrioritySet {
        self.received.paused(now)
    }

    /// Returns the classes that the peer has paused: pausing one of the priorities that share a
    /// class pauses the class.
    pub(crate) fn peer_paused(&self, now: Time, classes: &ClassMap) -> ClassSet {
        let mut paused = ClassSet::EMPTY;
        self.paused(now).iter().for_each(|priority| paused.insert(classes.class_of(priority)));
        paused
    }

    /// Returns the classes that may not begin a frame: paused, not forwarded in a storm.
    pub(crate) fn paused_classes(
        &self,
        now: Time,
        classes: &ClassMap,
        watchdog: Option<&WatchdogConfig>,
    ) -> ClassSet {
        self.peer_paused(now, classes).difference(self.in_storm(StormAction::Forward, watchdog))
    }

    /// Returns whether a frame of some class must be checked before it leaves.
    pub(crate) fn holds(
        &self,
        now: Time,
        classes: &ClassMap,
        watchdog: Option<&WatchdogConfig>,
    ) -> bool {
        let paused = self.paused_classes(now, classes, watchdog);
        !paused.union(self.in_storm(StormAction::Drop, watchdog)).is_empty()
    }

    /// Applies a received frame to the `enabled` priorities; returns the ignored ones.
    pub(crate) fn receive(&mut self, now: Time, pfc: &Pfc, enabled: PrioritySet) -> PrioritySet {
        self.received.receive(now, pfc, self.rate, enabled)
    }

    /// Holds a priority back until `until`, regardless of the peer.
    pub(crate) fn hold_back(&mut self, priority: Priority, until: Time) {
        self.received.hold_back(priority, until);
    }

    /// Adds or removes a requester of a pause of a priority; see [`PauseRequests`].
    pub(crate) fn request(&mut self, priority: Priority, kind: RequestKind) {
        match kind {
            RequestKind::Xoff => self.requests.set(priority, true),
            RequestKind::XoffOnce => self.requests.pause_once(priority),
            RequestKind::Xon => self.requests.set(priority, false),
        }
    }

    /// Returns the priorities paused by request of this port.
    pub(crate) fn requested(&self) -> PrioritySet {
        self.requests.paused()
    }

    /// Returns whether a change has not been sent to the peer yet.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.requests.is_pending()
    }

    /// Returns whether a frame is to be sent to the peer now.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.requests.is_due(now)
    }

    /// Defers due frames until the wire, which is busy, is free.
    pub(crate) fn defer(&mut self) {
        self.requests.defer();
    }

    /// Returns the frame to send now, with pauses of this length.
    pub(crate) fn next_frame(&mut self, now: Time, quanta: Quanta) -> MacControl {
        let pfc = self.requests.next_pfc(now, self.rate, quanta);
        if self.uses_pause() { MacControl::Pause(pfc.longest()) } else { MacControl::Pfc(pfc) }
    }

    /// Returns the length of a pause at the rate of this port.
    pub(crate) fn length(&self, quanta: Quanta) -> Span {
        quanta.time_at(self.rate)
    }

    /// Returns the number of frames with a priority: sent (requests) and received (indications).
    pub fn counts(&self, priority: Priority) -> (u64, u64) {
        let index = priority.index();
        (self.requests.requests[index], self.received.indications[index])
    }

    /// Checks the queue of a class for a storm, given whether the peer has paused it and whether
    /// frames wait in it. Returns the change, and whether the deadline may be another one now.
    pub(crate) fn check_storm(
        &mut self,
        now: Time,
        config: &WatchdogConfig,
        class: TrafficClass,
        (paused, waits): (bool, bool),
    ) -> (Option<StormChange>, bool) {
        let watch = &mut self.storms[class.index()];
        let before = *watch;
        (watch.look(now, config, (paused, waits)), *watch != before)
    }

    /// Returns the classes in a storm, if `action` is the configured one.
    pub(crate) fn in_storm(
        &self,
        action: StormAction,
        watchdog: Option<&WatchdogConfig>,
    ) -> ClassSet {
        match watchdog {
            Some(config) if config.action == action => storms_of(&self.storms),
            _ => ClassSet::EMPTY,
        }
    }

    /// Ends all storms; returns their classes.
    pub(crate) fn clear_storms(&mut self) -> ClassSet {
        storms_of(&core::mem::take(&mut self.storms))
    }

    /// Ends all received pauses after loss of the link. The state of the peer is unknown, so the
    /// requests are sent again.
    pub(crate) fn link_lost(&mut self) {
        self.received.clear();
        self.requests.resend();
    }

    /// Returns the time of the next event: a pause ends, a request is due, a queue is to be
    /// checked.
    pub(crate) fn deadline(&self, now: Time, watchdog: Option<&WatchdogConfig>) -> Option<Time> {
        let due = [self.received.next_end(now), self.requests.next()].into_iter().flatten();
        due.chain(self.storms.iter().filter_map(|watch| watch.deadline(watchdog?))).min()
    }
}

fn storms_of(storms: &[StormWatch; PRIORITIES]) -> ClassSet {
    let mut classes = ClassSet::EMPTY;
    let watches = TrafficClass::ALL.into_iter().zip(storms);
    watches.filter(|(_, watch)| watch.is_storm()).for_each(|(class, _)| classes.insert(class));
    classes
}
