//! Data plane that deliberately refuses changes, answers late and loses its tables.
//!
//! Every tenth install is refused as unavailable, and so are every third removal and every tenth
//! setting of a port. Every third of the other installs is delayed by some milliseconds, and so is
//! every change requested during the delay, so that changes are made in order. After a number of
//! installs all tables and settings are lost, which the data plane reports at its next input;
//! delayed changes then get no answer. In a re-synchronisation every tenth route is refused too,
//! and the settings of every tenth port keep their initial values.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Awaited, Capabilities, Counters, Dataplane, Drop, Input, Node, PortKind, PortSetting,
    PortSnapshot, PortView, QueueState, RouteAnswer, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Shortcuts, Snapshot,
};
use axon_wire::header::PacketType;
use axon_wire::{FrameBuf, Hops, PortNo, Route, Span, Time};

/// One in this many installs is refused.
const REFUSED_OF: u64 = 10;
/// One in this many removals is refused.
const REMOVAL_REFUSED_OF: u64 = 3;
/// One in this many settings is refused.
const SETTING_REFUSED_OF: u64 = 10;
/// One in this many installs is delayed.
const LATE_OF: u64 = 3;
/// Delay of a delayed install.
const LATE: Span = Span::from_millis(3);
/// Number of installs after which the tables are lost, repeatedly.
const LOST_AFTER: u64 = 37;

/// A data plane whose changes fail now and then.
#[derive(Clone, Debug)]
pub struct Refusing<D> {
    inner: D,
    /// Requested installs, those of re-synchronisations included.
    installs: u64,
    refused: u64,
    removals: u64,
    removals_refused: u64,
    /// Requested settings, the ports of re-synchronisations included.
    settings: u64,
    settings_refused: u64,
    losses: u64,
    /// Delayed changes, in order, each with its time.
    late: VecDeque<(Time, RouteTicket, RouteChange)>,
    /// Time at or after which the loss of the tables is reported.
    lost_at: Option<Time>,
}

impl<D: Dataplane> Refusing<D> {
    /// Returns a data plane that starts with the first install of `inner`.
    pub fn new(inner: D) -> Refusing<D> {
        Refusing {
            inner,
            installs: 0,
            refused: 0,
            removals: 0,
            removals_refused: 0,
            settings: 0,
            settings_refused: 0,
            losses: 0,
            late: VecDeque::new(),
            lost_at: None,
        }
    }

    /// Returns the wrapped data plane.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// Returns the number of refused installs, routes omitted from a re-synchronisation included.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of refused removals.
    pub const fn removals_refused(&self) -> u64 {
        self.removals_refused
    }

    /// Returns the number of refused settings, ports omitted from a re-synchronisation included.
    pub const fn settings_refused(&self) -> u64 {
        self.settings_refused
    }

    /// Returns the number of losses of the tables.
    pub const fn losses(&self) -> u64 {
        self.losses
    }

    /// Counts an install; returns whether it is refused.
    fn refuses(&mut self) -> bool {
        self.installs += 1;
        let refused = self.installs.is_multiple_of(REFUSED_OF);
        self.refused += u64::from(refused);
        refused
    }

    /// Counts a removal; returns whether it is refused.
    fn refuses_removal(&mut self) -> bool {
        self.removals += 1;
        let refused = self.removals.is_multiple_of(REMOVAL_REFUSED_OF);
        self.removals_refused += u64::from(refused);
        refused
    }

    /// Counts a setting; returns whether it is refused.
    fn refuses_setting(&mut self) -> bool {
        self.settings += 1;
        let refused = self.settings.is_multiple_of(SETTING_REFUSED_OF);
        self.settings_refused += u64::from(refused);
        refused
    }

    /// Makes the changes that are due, and loses the tables if it is time.
    fn catch_up(&mut self, now: Time, out: &mut Vec<Action>) {
        while self.late.front().is_some_and(|&(at, ..)| at <= now)
            && let Some((_, ticket, change)) = self.late.pop_front()
        {
            let result = self.inner.change_route(now, ticket, change);
            let answer = result.map(|result| RouteAnswer { ticket, result });
            out.extend(answer.map(Action::RouteChanged));
        }
        if self.lost_at.is_some_and(|at| at <= now) {
            self.lost_at = None;
            self.losses += 1;
            self.late.clear();
            // Restore the initial state, which any data plane can do.
            let _ = self.inner.resynchronise(now, &Snapshot::default(), out);
            out.push(Action::Lost);
        }
    }
}

impl<D: Dataplane> Node for Refusing<D> {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.catch_up(now, out);
        self.inner.handle(now, input, out);
    }

    fn deadline(&self) -> Option<Time> {
        let late = self.late.front().map(|&(at, ..)| at);
        [self.inner.deadline(), late, self.lost_at].into_iter().flatten().min()
    }
}

impl<D: Dataplane + Shortcuts> Shortcuts for Refusing<D> {
    fn awaited(&mut self) -> Awaited {
        self.inner.awaited()
    }
}

impl<D: Dataplane> PortView for Refusing<D> {
    fn count(&self) -> u16 {
        self.inner.count()
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.inner.kind(port)
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.inner.is_up(port)
    }
}

impl<D: Dataplane> Dataplane for Refusing<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "refusing", ..self.inner.capabilities() }
    }

    /// Makes the change now or later, or refuses it.
    fn change_route(
        &mut self,
        now: Time,
        ticket: RouteTicket,
        change: RouteChange,
    ) -> Option<Result<(), RouteError>> {
        let is_install = !matches!(change, RouteChange::Remove { .. });
        let is_refused = if is_install { self.refuses() } else { self.refuses_removal() };
        if is_refused {
            return Some(Err(RouteError::Unavailable));
        }
        if is_install && self.installs.is_multiple_of(LOST_AFTER) {
            self.lost_at = Some(now + LATE);
        }
        let is_late = is_install && self.installs.is_multiple_of(LATE_OF);
        if is_late || !self.late.is_empty() {
            self.late.push_back((now + LATE, ticket, change));
            None
        } else {
            self.inner.change_route(now, ticket, change)
        }
    }

    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        if self.refuses_setting() {
            return Err(SettingError::Unavailable);
        }
        self.inner.set_port(now, port, setting, out)
    }

    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        self.inner.inject(now, kind, hops, payload, out);
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        self.inner.send(now, port, frame, out);
    }

    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        self.inner.forward(now, ingress, route, frame, out);
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.inner.pause_hosts(now, port, out);
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.inner.count_drop(ingress, reason);
    }

    fn count_copy(&mut self, ingress: PortNo) {
        self.inner.count_copy(ingress);
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn sent_bytes(&self, port: PortNo) -> u64 {
        self.inner.sent_bytes(port)
    }

    fn queue(&self, port: PortNo) -> QueueState {
        self.inner.queue(port)
    }

    fn held_frames(&self) -> u64 {
        self.inner.held_frames()
    }

    fn routes(&self, port: PortNo) -> usize {
        self.inner.routes(port)
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        self.inner.telemetry(now)
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        self.inner.take_used(port, key)
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let mut taken = wanted.clone();
        self.late.clear();
        let mut all = Ok(());
        for port in &mut taken.ports {
            port.routes.retain(|_| !self.refuses());
            port.masqueraded.retain(|_| !self.refuses());
            if self.refuses_setting() {
                let routes = core::mem::take(&mut port.routes);
                let masqueraded = core::mem::take(&mut port.masqueraded);
                *port = PortSnapshot { routes, masqueraded, ..PortSnapshot::default() };
                all = Err(SettingError::Unavailable);
            }
        }
        self.inner.resynchronise(now, &taken, out).and(all)
    }
}
