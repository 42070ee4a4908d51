//! A data plane that refuses, answers late and loses its tables, on purpose.
//!
//! In plain English: every tenth install is refused as unavailable, and so are every third removal
//! and every tenth setting of a port. Every third of the other installs waits for some
//! milliseconds, and so does every change that comes while one waits, so that changes are
//! made in the order they were asked for. After so many installs all tables and settings are gone,
//! which the data plane says at its next input; what waited then gets no answer.
//! Every tenth route of a re-synchronisation finds no room either, and the settings of every tenth
//! port are left as they are at the start.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Awaited, Capabilities, Counters, Dataplane, Drop, Input, Node, PortKind, PortSetting,
    PortSnapshot, PortView, QueueState, RouteAnswer, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Snapshot,
};
use axon_wire::header::PacketType;
use axon_wire::{FrameBuf, Hops, PortNo, Route, Span, Time};

/// Of so many installs one is refused.
const REFUSED_OF: u64 = 10;
/// Of so many removals one is refused.
const REMOVAL_REFUSED_OF: u64 = 3;
/// Of so many settings one is refused.
const SETTING_REFUSED_OF: u64 = 10;
/// Of so many installs one is late.
const LATE_OF: u64 = 3;
/// How late.
const LATE: Span = Span::from_millis(3);
/// After so many installs the tables are lost, again and again.
const LOST_AFTER: u64 = 37;

/// Another data plane whose changes of routes go wrong now and then.
#[derive(Clone, Debug)]
pub struct Refusing<D> {
    inner: D,
    /// Installs that were asked for, those of re-synchronisations included.
    installs: u64,
    refused: u64,
    removals: u64,
    removals_refused: u64,
    /// Settings that were asked for, the ports of re-synchronisations included.
    settings: u64,
    settings_refused: u64,
    losses: u64,
    /// Changes that are made later, in order, each with its time.
    late: VecDeque<(Time, RouteTicket, RouteChange)>,
    /// The tables are lost from now on, or at the next input.
    lost_at: Option<Time>,
}

impl<D: Dataplane> Refusing<D> {
    /// Begins with the first install of `inner`.
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

    /// The data plane that does the work.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// Installs that were refused so far, routes left out of a re-synchronisation included.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Removals that were refused so far.
    pub const fn removals_refused(&self) -> u64 {
        self.removals_refused
    }

    /// Settings that were refused so far, ports left out of a re-synchronisation included.
    pub const fn settings_refused(&self) -> u64 {
        self.settings_refused
    }

    /// How often the tables were lost so far.
    pub const fn losses(&self) -> u64 {
        self.losses
    }

    /// Counts an install; says whether it is refused.
    fn refuses(&mut self) -> bool {
        self.installs += 1;
        let refused = self.installs.is_multiple_of(REFUSED_OF);
        self.refused += u64::from(refused);
        refused
    }

    /// Counts a removal; says whether it is refused.
    fn refuses_removal(&mut self) -> bool {
        self.removals += 1;
        let refused = self.removals.is_multiple_of(REMOVAL_REFUSED_OF);
        self.removals_refused += u64::from(refused);
        refused
    }

    /// Counts a setting; says whether it is refused.
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
            self.inner.change_route(now, ticket, change, out);
        }
        if self.lost_at.is_some_and(|at| at <= now) {
            self.lost_at = None;
            self.losses += 1;
            self.late.clear();
            // Everything is as at the start, which any data plane can do.
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
        out: &mut Vec<Action>,
    ) {
        let is_install = !matches!(change, RouteChange::Remove { .. });
        let is_refused = if is_install { self.refuses() } else { self.refuses_removal() };
        if is_refused {
            let result = Err(RouteError::Unavailable);
            return out.push(Action::RouteChanged(RouteAnswer { ticket, result }));
        }
        if is_install && self.installs.is_multiple_of(LOST_AFTER) {
            self.lost_at = Some(now + LATE);
        }
        let is_late = is_install && self.installs.is_multiple_of(LATE_OF);
        if is_late || !self.late.is_empty() {
            self.late.push_back((now + LATE, ticket, change));
        } else {
            self.inner.change_route(now, ticket, change, out);
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
