//! The kernel's tables as an offload of a software data plane.
//!
//! In plain English: the software plane has the truth. Whatever is set is set there, and then in
//! the kernel. A frame that the kernel does not decide comes to the process, and the software plane
//! handles it as if there were no kernel. So what the kernel has no room for is slower, and never
//! wrong. Wrong would be a route in the kernel that the software plane has not, or another one: a
//! change that ends so is answered as refused, and the control plane asks again. The kernel looks
//! at no source, so a destination to which some source has a route of its own has none there: the
//! software plane carries what that port sends to it. What nobody waits for (carrier, a
//! re-synchronisation) is made equal again every second until it is.

use super::inherited::{Inherited, Key};
use super::tables::{Devices, Tables};
use super::{KernelError, Traffic};
use crate::dataplane::in_kernel;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Awaited, Capabilities, Counters, Dataplane, Drop, Input, Node, PortCounters, PortEvent,
    PortKind, PortSetting, PortView, QueueState, RouteAnswer, RouteChange, RouteError, RouteKey,
    RouteTicket, SettingError, Snapshot,
};
use axon_wire::header::PacketType;
use axon_wire::{FrameBuf, Hops, MacAddr, PortNo, Route, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Before what could not be made equal is tried again.
const PAUSE: Span = Span::from_secs(1);

/// A software data plane `P` whose routes and ports are in the kernel's tables `T` too.
pub struct KernelPlane<P, T> {
    software: P,
    tables: T,
    devices: Devices,
    /// Changes that the software plane has not answered yet.
    asked: BTreeMap<RouteTicket, RouteChange>,
    /// Routes of the software plane that the kernel had no room for, or no answer.
    waiting: BTreeMap<Key, Route>,
    /// The sources that have routes of their own, by port and destination.
    by_source: BTreeMap<Key, BTreeSet<MacAddr>>,
    inherited: Inherited,
    /// When to make the tables equal again, if a call has failed that nobody repeats.
    again_at: Option<Time>,
    /// What each port had carried before this process.
    before: Vec<Traffic>,
}

impl<P: PortView, T: Tables> KernelPlane<P, T> {
    /// Puts `tables` behind `software`, which has nothing set yet. What the tables hold of the
    /// process before goes on, and the first snapshot has it.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn new(software: P, tables: T, devices: Devices) -> Result<KernelPlane<P, T>, KernelError> {
        let inherited = Inherited::of(&tables)?;
        let ports = (0..software.count()).map(PortNo);
        let before = ports.map(|port| tables.traffic(port)).collect::<Result<_, _>>()?;
        Ok(KernelPlane {
            software,
            tables,
            devices,
            asked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_source: BTreeMap::new(),
            inherited,
            again_at: None,
            before,
        })
    }

    /// The tables.
    pub const fn tables(&self) -> &T {
        &self.tables
    }

    /// Routes of the process before that are still there.
    pub fn inherited_routes(&self) -> usize {
        self.inherited.len()
    }

    /// Routes that the software plane alone has.
    pub fn software_routes(&self) -> usize {
        self.waiting.len()
    }

    /// Makes a change that the software plane has made.
    fn offload(&mut self, now: Time, change: RouteChange) -> Result<(), RouteError> {
        match change {
            // A fabric with VLANs is refused: see the capabilities.
            RouteChange::Install { port, key, route } => {
                let to = (port, key.destination);
                match key.source {
                    None => self.offload_route(now, to, route),
                    Some(source) => {
                        self.by_source.entry(to).or_default().insert(source);
                        self.take_out(to)
                    }
                }
            }
            // Route memory is the software plane's: such a frame has no route in the kernel.
            RouteChange::Masquerade { .. } => Ok(()),
            RouteChange::Remove { port, key } => {
                let to = (port, key.destination);
                let Some(source) = key.source else { return self.take_out(to) };
                if let Some(sources) = self.by_source.get_mut(&to)
                    && sources.remove(&source)
                    && sources.is_empty()
                {
                    self.by_source.remove(&to);
                    // The route for all others may be in the kernel again.
                    self.again_at = Some(now);
                }
                Ok(())
            }
        }
    }

    fn offload_route(&mut self, now: Time, key: Key, route: Route) -> Result<(), RouteError> {
        self.waiting.remove(&key);
        if self.by_source.contains_key(&key) {
            return self.take_out(key);
        }
        let Err(error) = self.tables.set_route(key.0, key.1, &route) else {
            self.inherited.decided(key);
            return Ok(());
        };
        // What stands there leads the old way.
        self.take_out(key)?;
        if is_for_ever(&error) {
            return Ok(());
        }
        self.waiting.insert(key, route);
        if !is_full(&error) {
            self.again_at = Some(now + PAUSE);
        }
        Ok(())
    }

    /// Takes a route out of the tables, and offers its place to one that waits.
    fn take_out(&mut self, key: Key) -> Result<(), RouteError> {
        self.waiting.remove(&key);
        let removed = self.tables.remove_route(key.0, key.1);
        let removed = removed.map_err(|_| RouteError::Unavailable)?;
        self.inherited.decided(key);
        let all = (key.0, MacAddr([0; 6]))..=(key.0, MacAddr([0xff; 6]));
        if removed && let Some((&next, route)) = self.waiting.range(all).next() {
            let has_room = self.tables.set_route(next.0, next.1, route).is_ok();
            if has_room {
                self.waiting.remove(&next);
            }
        }
        Ok(())
    }

    /// Puts the software plane's view of a port into the tables.
    fn mirror(&mut self, now: Time, port: PortNo, kind: PortKind) -> Result<(), KernelError> {
        let ifindex = if self.software.is_up(port) { self.devices.get(port) } else { 0 };
        self.tables.set_port(port, ifindex, kind)?;
        for (port, destination) in self.inherited.settled(port, (ifindex, kind)) {
            if self.take_out((port, destination)).is_err() {
                self.again_at = Some(now + PAUSE);
            }
        }
        Ok(())
    }

    /// Follows a change of carrier.
    fn link(&mut self, now: Time, port: PortNo, up: bool) {
        if up && self.inherited.keeps(port, self.devices.get(port)) {
            return;
        }
        let Some(kind) = self.software.kind(port) else { return };
        if self.mirror(now, port, kind).is_err() {
            self.again_at = Some(now + PAUSE);
        }
    }

    /// Looks through the actions of the software plane for the answers to changes of routes, and
    /// carries these out.
    fn answer(&mut self, now: Time, actions: &mut [Action]) {
        for action in actions {
            match action {
                Action::RouteChanged(RouteAnswer { ticket, result }) => {
                    let change = self.asked.remove(ticket);
                    if let (Some(change), Ok(())) = (change, *result) {
                        *result = self.offload(now, change);
                    }
                }
                // Answers that are owed do not come any more.
                Action::Lost => self.asked.clear(),
                _ => {}
            }
        }
    }
}

impl<P, T: Tables> KernelPlane<P, T> {
    /// Makes the tables equal to the software plane, but for what is inherited.
    fn equalise(&mut self, now: Time) -> Result<(), KernelError>
    where
        P: Dataplane,
    {
        let mut all = Ok(());
        for port in (0..self.software.count()).map(PortNo) {
            let ifindex = self.devices.get(port);
            if !self.inherited.keeps(port, ifindex) {
                let kind = self.software.kind(port).unwrap_or_default();
                all = all.and(self.mirror(now, port, kind));
            }
        }
        let snapshot = self.software.snapshot();
        self.by_source.clear();
        let mut wanted: BTreeMap<Key, Route> = BTreeMap::new();
        for (port, is) in (0..).map(PortNo).zip(snapshot.ports) {
            for (key, route) in is.routes {
                let to = (port, key.destination);
                match key.source {
                    None => drop(wanted.insert(to, route)),
                    Some(source) => drop(self.by_source.entry(to).or_default().insert(source)),
                }
            }
        }
        wanted.retain(|to, _| !self.by_source.contains_key(to));
        for (port, destination, route) in self.tables.routes()? {
            let key = (port, destination);
            match wanted.get(&key) {
                Some(is) if *is == route => drop(wanted.remove(&key)),
                // It is replaced below.
                Some(_) => {}
                None if self.inherited.has(key) => {}
                None => all = all.and(self.tables.remove_route(port, destination).map(drop)),
            }
        }
        for (key, route) in wanted {
            if self.offload_route(now, key, route).is_err() {
                self.again_at = Some(now + PAUSE);
            }
        }
        all
    }

    /// Does what its time has come for.
    fn timers(&mut self, now: Time)
    where
        P: Dataplane,
    {
        let is_over = self.inherited.is_over(now);
        if is_over || self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            if self.equalise(now).is_err() {
                self.again_at = Some(now + PAUSE);
            }
        }
    }
}

/// Whether the kernel never takes such a route.
const fn is_for_ever(error: &KernelError) -> bool {
    matches!(
        error,
        KernelError::RouteTooLong { .. } | KernelError::Route(RouteError::Unrepresentable)
    )
}

/// Whether another route has to go first.
const fn is_full(error: &KernelError) -> bool {
    matches!(error, KernelError::Route(RouteError::Full))
}

/// What a port has carried in the kernel, as its counters.
fn add(counters: &mut PortCounters, now: &Traffic, before: &Traffic) {
    counters.rx_frames += now.in_frames.saturating_sub(before.in_frames);
    counters.rx_bytes += now.in_bytes.saturating_sub(before.in_bytes);
    counters.tx_frames += now.out_frames.saturating_sub(before.out_frames);
    counters.tx_bytes += now.out_bytes.saturating_sub(before.out_bytes);
    let lost = now.lost_packets.saturating_sub(before.lost_packets);
    counters.count_many(PortEvent::Drop(Drop::NotDecided), lost);
}

impl<P: PortView, T> PortView for KernelPlane<P, T> {
    fn count(&self) -> u16 {
        self.software.count()
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.software.kind(port)
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.software.is_up(port)
    }
}

impl<P: Dataplane, T: Tables> Node for KernelPlane<P, T> {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let from = out.len();
        let link = if let Input::Link { port, up } = input { Some((port, up)) } else { None };
        self.software.handle(now, input, out);
        if let Some((port, up)) = link {
            self.link(now, port, up);
        }
        if !self.asked.is_empty() {
            self.answer(now, &mut out[from..]);
        }
        self.timers(now);
    }

    fn deadline(&self) -> Option<Time> {
        let own = [self.again_at, self.inherited.deadline()];
        own.into_iter().flatten().chain(self.software.deadline()).min()
    }

    fn awaited(&mut self) -> Awaited {
        self.software.awaited()
    }
}

impl<P: Dataplane, T: Tables> Dataplane for KernelPlane<P, T> {
    fn capabilities(&self) -> Capabilities {
        let has = in_kernel(self.tables.settings().plane, self.software.capabilities());
        let program = self.tables.settings();
        Capabilities {
            ports: has.ports.min(program.ports),
            frame_bytes_max: has.frame_bytes_max.min(program.frame_bytes_max),
            route_bytes_max: has.route_bytes_max.min(program.route_bytes_max),
            routes_per_port_max: has.routes_per_port_max.min(program.routes_per_port_max),
            ..has
        }
    }

    fn change_route(
        &mut self,
        now: Time,
        ticket: RouteTicket,
        change: RouteChange,
        out: &mut Vec<Action>,
    ) {
        let from = out.len();
        self.asked.insert(ticket, change.clone());
        self.software.change_route(now, ticket, change, out);
        self.answer(now, &mut out[from..]);
    }

    /// The kernel first: a port that it refuses is as it was in both.
    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        setting: PortSetting,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let PortSetting::Kind(kind) = setting else {
            return self.software.set_port(now, port, setting, out);
        };
        if self.software.kind(port).is_none() {
            return Err(SettingError::NoSuchPort);
        }
        self.mirror(now, port, kind).map_err(|_| SettingError::Unavailable)?;
        let set = self.software.set_port(now, port, setting, out);
        if set.is_err() {
            self.again_at = Some(now);
        }
        set
    }

    fn inject(
        &mut self,
        now: Time,
        kind: PacketType,
        hops: &Hops,
        payload: &[u8],
        out: &mut Vec<Action>,
    ) {
        self.software.inject(now, kind, hops, payload, out);
    }

    fn send(&mut self, now: Time, port: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        self.software.send(now, port, frame, out);
    }

    fn forward(
        &mut self,
        now: Time,
        ingress: PortNo,
        route: &Route,
        frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        self.software.forward(now, ingress, route, frame, out);
    }

    fn pause_hosts(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        self.software.pause_hosts(now, port, out);
    }

    fn count_drop(&mut self, ingress: PortNo, reason: Drop) {
        self.software.count_drop(ingress, reason);
    }

    fn count_copy(&mut self, ingress: PortNo) {
        self.software.count_copy(ingress);
    }

    /// Those of the software plane: what the kernel has carried is in the telemetry only.
    fn counters(&self) -> &Counters {
        self.software.counters()
    }

    fn sent_bytes(&self, port: PortNo) -> u64 {
        let in_kernel = self.tables.traffic(port).map_or(0, |traffic| traffic.out_bytes);
        self.software.sent_bytes(port) + in_kernel
    }

    fn queue(&self, port: PortNo) -> QueueState {
        self.software.queue(port)
    }

    fn held_frames(&self) -> u64 {
        self.software.held_frames()
    }

    fn routes(&self, port: PortNo) -> usize {
        self.software.routes(port)
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        // Both are asked, so that neither remembers an earlier frame.
        let in_software = self.software.take_used(port, key);
        if key.source.is_some() {
            return in_software;
        }
        // A route of which nothing is known does not age.
        self.tables.take_used(port, key.destination).unwrap_or(true) || in_software
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        let mut telemetry = self.software.telemetry(now);
        for ((number, port), before) in (0..).zip(&mut telemetry.ports).zip(&self.before) {
            if let Ok(traffic) = self.tables.traffic(PortNo(number)) {
                add(&mut port.counters, &traffic, before);
                add(&mut telemetry.total, &traffic, before);
            }
        }
        for egress in (0..self.software.count()).map(PortNo) {
            // What cannot be read is not shown.
            let drops = self.tables.queue_drops(self.devices.get(egress)).unwrap_or_default();
            for (ingress, count) in drops {
                if let Some(port) = telemetry.ports.get_mut(ingress.index()) {
                    port.counters.count_many(PortEvent::Drop(Drop::QueueFull), count);
                    telemetry.total.count_many(PortEvent::Drop(Drop::QueueFull), count);
                }
            }
        }
        telemetry
    }

    /// Of both: what the kernel has of the process before is there too.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.software.snapshot();
        self.inherited.add_to(&mut snapshot);
        snapshot
    }

    fn resynchronise(
        &mut self,
        now: Time,
        wanted: &Snapshot,
        out: &mut Vec<Action>,
    ) -> Result<(), SettingError> {
        let set = self.software.resynchronise(now, wanted, out);
        self.asked.clear();
        self.waiting.clear();
        self.inherited = Inherited::default();
        if self.equalise(now).is_err() {
            self.again_at = Some(now + PAUSE);
        }
        set
    }

    fn controller_reached(&mut self, now: Time, is_reached: bool) {
        self.software.controller_reached(now, is_reached);
        self.inherited.reached(now, is_reached);
    }

    fn prefetch(&self, port: Option<PortNo>) -> u64 {
        self.software.prefetch(port)
    }

    fn next_hop(&self, packet: &[u8]) -> Option<PortNo> {
        self.software.next_hop(packet)
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
