//! Uses the kernel's tables as an offload for a software data plane.
//!
//! The software plane is authoritative. Every change is made there first, and then in the kernel. A
//! frame that the kernel does not handle comes to the process, and the software plane handles it as
//! if there were no kernel. Entries for which the kernel has no room are therefore slower, but
//! correct. A kernel route that is missing or different in the software plane would be wrong, so a
//! change with such a result is reported as refused, and the control plane retries it.
//!
//! The kernel ignores source addresses. A destination with a route for one source therefore has no
//! kernel route, and the software plane carries the frames from that port to it. Failed changes
//! that have no answer (carrier, re-synchronisation) are retried every second until both planes are
//! equal.

mod carried;

use super::KernelError;
use super::inherited::{Inherited, Key};
use super::tables::{Devices, Tables};
use crate::dataplane::in_kernel;
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{
    Action, Awaited, Capabilities, Counters, Dataplane, Drop, Input, Node, PortKind, PortSetting,
    PortView, QueueState, RouteAnswer, RouteChange, RouteError, RouteKey, RouteTicket,
    SettingError, Shortcuts, Snapshot,
};
use axon_wire::header::PacketType;
use axon_wire::{FrameBuf, Hops, MacAddr, PortNo, Route, Span, Time};
use carried::Before;
use std::collections::{BTreeMap, BTreeSet};

/// Interval between attempts to bring the tables into line with the software plane.
const PAUSE: Span = Span::from_secs(1);

/// Software data plane `P`, whose routes and ports are also in the kernel's tables `T`.
pub struct KernelPlane<P, T> {
    software: P,
    tables: T,
    devices: Devices,
    /// Changes that the software plane has not answered yet.
    asked: BTreeMap<RouteTicket, RouteChange>,
    /// Routes in the software plane that the kernel lacks, for lack of room or after an error.
    waiting: BTreeMap<Key, Route>,
    /// Sources that have their own routes, by port and destination.
    by_source: BTreeMap<Key, BTreeSet<MacAddr>>,
    inherited: Inherited,
    /// Time of the next attempt to bring the tables into line, after a failed call that nobody
    /// retries.
    again_at: Option<Time>,
    /// Counters of the kernel before this process started.
    before: Before,
}

impl<P: PortView, T: Tables> KernelPlane<P, T> {
    /// Combines `tables` with `software`, in which nothing may be set yet. Table contents from the
    /// previous process stay in use, and are in the first snapshot.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub(crate) fn new(
        software: P,
        tables: T,
        devices: Devices,
    ) -> Result<KernelPlane<P, T>, KernelError> {
        let inherited = Inherited::of(&tables)?;
        let before = Before::read(&tables, software.count())?;
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

    /// Returns the number of routes that remain from the previous process.
    #[cfg(test)]
    pub(crate) fn inherited_routes(&self) -> usize {
        self.inherited.len()
    }

    /// Returns the number of routes that only the software plane has.
    #[cfg(test)]
    pub(crate) fn software_routes(&self) -> usize {
        self.waiting.len()
    }

    /// Applies a change of the software plane to the kernel.
    fn offload(&mut self, now: Time, change: RouteChange) -> Result<(), RouteError> {
        match change {
            // The capabilities of this data plane exclude fabrics with VLANs, so the VLAN is not
            // needed.
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
            // The software plane does the masquerading. Frames that need it have no kernel route.
            RouteChange::Masquerade { .. } => Ok(()),
            RouteChange::Remove { port, key } => {
                let to = (port, key.destination);
                let Some(source) = key.source else { return self.take_out(to) };
                if let Some(sources) = self.by_source.get_mut(&to)
                    && sources.remove(&source)
                    && sources.is_empty()
                {
                    self.by_source.remove(&to);
                    // The route for all other sources may be in the kernel again.
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
        // The table still has the old route.
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

    /// Removes a route from the tables, and installs one for which there was no room.
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

    /// Copies the software plane's state of a port to the tables.
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

    /// Handles a change of carrier.
    fn link(&mut self, now: Time, port: PortNo, up: bool) {
        if up {
            self.before.device(&self.tables, port, self.devices.get(port));
        }
        if up && self.inherited.keeps(port, self.devices.get(port)) {
            return;
        }
        let Some(kind) = self.software.kind(port) else { return };
        if self.mirror(now, port, kind).is_err() {
            self.again_at = Some(now + PAUSE);
        }
    }

    /// Finds the answers to route changes among the actions of the software plane, and applies the
    /// changes to the kernel.
    fn answer(&mut self, now: Time, actions: &mut [Action]) {
        for action in actions {
            match action {
                Action::RouteChanged(RouteAnswer { ticket, result }) => {
                    let change = self.asked.remove(ticket);
                    if let (Some(change), Ok(())) = (change, *result) {
                        *result = self.offload(now, change);
                    }
                }
                // Pending answers will not arrive.
                Action::Lost => self.asked.clear(),
                _ => {}
            }
        }
    }
}

impl<P, T: Tables> KernelPlane<P, T> {
    /// Makes the tables equal to the software plane, except for inherited entries.
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
                // The loop below replaces the entry.
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

    /// Runs the due timers.
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

/// Returns whether the kernel can never take this route.
const fn is_for_ever(error: &KernelError) -> bool {
    matches!(
        error,
        KernelError::RouteTooLong { .. } | KernelError::Route(RouteError::Unrepresentable)
    )
}

/// Returns whether the table is full.
const fn is_full(error: &KernelError) -> bool {
    matches!(error, KernelError::Route(RouteError::Full))
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
}

impl<P: Dataplane + Shortcuts, T: Tables> Shortcuts for KernelPlane<P, T> {
    fn awaited(&mut self) -> Awaited {
        self.software.awaited()
    }
}

impl<P: Dataplane, T: Tables> Dataplane for KernelPlane<P, T> {
    fn capabilities(&self) -> Capabilities {
        let has = in_kernel(self.tables.settings().hook, self.software.capabilities());
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
    ) -> Option<Result<(), RouteError>> {
        let Some(result) = self.software.change_route(now, ticket, change.clone()) else {
            self.asked.insert(ticket, change);
            return None;
        };
        Some(result.and_then(|()| self.offload(now, change)))
    }

    /// The kernel's tables are changed first, so that a port that the kernel refuses is unchanged
    /// in both.
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

    /// Returns the counters of the software plane. Only the telemetry includes traffic in the
    /// kernel.
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
        // Query both planes, so that both clear their flags.
        let in_software = self.software.take_used(port, key);
        if key.source.is_some() {
            return in_software;
        }
        // A route whose use is unknown does not age.
        self.tables.take_used(port, key.destination).unwrap_or(true) || in_software
    }

    fn telemetry(&self, now: Time) -> PlaneTelemetry {
        let mut telemetry = self.software.telemetry(now);
        self.before.add_since(&self.tables, &self.devices, &mut telemetry);
        telemetry
    }

    /// Returns a snapshot of both planes, including kernel entries from the previous process.
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
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
