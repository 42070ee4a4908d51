//! Routes of local hosts, from a request to the installed route: Axon-ARP at both of its switches
//! (paper 001 §4.2.2).
//!
//! An entry of a port's table is reserved before its route is known: for a set-up at the source
//! switch, or for a query at the target switch.

use super::answers::Requester;
use super::context::{Cx, Timer};
use super::decisions::{Decision, Decisions, Verdict};
use super::entry_reservations::Key;
use super::failover::Backups;
use super::hosts::{Host, Hosts};
use super::inherited::Inherited;
use super::outcome::Outcome;
use super::queries::{Key as QueryKey, Queries, way_back};
use super::rediscovery::Recalls;
use super::route_installs::Installer;
use super::route_requests::{Key as SetupKey, Setups};
use super::tables::Tables;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::{Drop, RouteAnswer, RouteKey, Snapshot};
use axon_wire::masquerade::index_of;
use axon_wire::message::{ArpReply, ArpTarget, Item, LinkEnd, Message, Target};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route, Time};
use core::net::IpAddr;

/// Flows of local hosts, with the requests for them.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    installer: Installer,
    decisions: Decisions,
    inherited: Inherited,
    setups: Setups,
    queries: Queries,
}

impl Routes {
    /// Creates an empty set.
    pub(super) fn new(tables: &Tables) -> Routes {
        Routes {
            decisions: Decisions::new(tables),
            installer: Installer::new(tables),
            inherited: Inherited::default(),
            setups: Setups::new(),
            queries: Queries::default(),
        }
    }

    /// Returns the flows and tables.
    pub(super) fn installer(&self) -> &Installer {
        &self.installer
    }

    pub(super) fn backups(&self) -> &Backups {
        self.decisions.backups()
    }

    pub(super) fn setups(&self) -> &Setups {
        &self.setups
    }

    /// Answers an ARP request or a solicitation for an address: at once for an existing flow,
    /// otherwise after a set-up.
    ///
    /// The hosts of a port share their routes, except those for one of them. A host on the same
    /// port has received the request itself, so the edge does not answer for it, unless it seems to
    /// have moved.
    pub(super) fn resolve(
        &mut self,
        cx: &mut Cx,
        (hosts, recalls): (&Hosts, &Recalls),
        port: PortNo,
        requester: Requester,
        wanted: IpAddr,
    ) {
        let is_neighbour = |mac| {
            mac != requester.mac
                && !recalls.seems_moved(port, mac)
                && hosts.get(mac).is_some_and(|host| host.ips.contains(wanted))
        };
        if hosts.on_port(port).any(is_neighbour) {
            return;
        }
        if let Some(mac) = self.installer.flows().mac_of(port, requester.mac, wanted) {
            cx.counters.arp_cached += 1;
            self.installer.show(cx, port, requester, mac, wanted);
            return;
        }
        let key = (port, Target::Ip(wanted), requester.mac);
        let source_ip = (!requester.ip.is_unspecified()).then_some(requester.ip);
        if self.setups.begin(cx, key, source_ip, None) {
            self.setups.wait(key, requester);
        }
    }

    /// Handles a unicast frame that missed: forwards it on a software route, or queues it while its
    /// route is looked up.
    ///
    /// `hint` is the destination IP address.
    pub(super) fn unicast(
        &mut self,
        cx: &mut Cx,
        (hosts, recalls): (&Hosts, &Recalls),
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Result<Outcome, Drop> {
        let pair = (source, destination);
        if let Some(fate) = self.installer.by_software(cx, hosts, port, pair, hint) {
            return Ok(fate);
        }
        self.correct_expired(cx, (hosts, recalls), port, pair, hint)?;
        if hosts.is_on(destination, port) && !recalls.seems_moved(port, destination) {
            return Err(Drop::Refused);
        }
        let own = |host: &Host| host.ips.ipv4().map(IpAddr::V4).or(host.ips.newest());
        let source_ip = hosts.get(source).and_then(own);
        let key = (port, Target::Mac(destination), source);
        match self.setups.begin(cx, key, source_ip, hint) {
            true => Ok(Outcome::Wait(destination)),
            false => Err(Drop::NoRoute),
        }
    }

    /// Handles a frame to an address of masqueraded form without a route. If this port has given
    /// it, its sender is sent the current one, and the frame is dropped. Otherwise it may be from
    /// before a restart, or a host's own: both lookups are tried.
    fn correct_expired(
        &mut self,
        cx: &mut Cx,
        (hosts, recalls): (&Hosts, &Recalls),
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Result<(), Drop> {
        if index_of(destination).is_none() || !cx.tables.can_masquerade() {
            return Ok(());
        }
        let former = cx.tables.former((port, cx.to(destination)));
        let ip = former.and_then(|place| place.ip(hint)).or(hint);
        let was_given = former.is_some();
        if let Some(ip) = ip.filter(|&ip| cx.settings.is_host_ip(ip))
            && let Some(requester) = hosts.requester(source, ip)
        {
            cx.counters.macs_corrected += 1;
            self.resolve(cx, (hosts, recalls), port, requester, ip);
        }
        if was_given { Err(Drop::NoRoute) } else { Ok(()) }
    }

    /// Returns the fate of a reply to a remote host, whose own MAC address was in the query. It
    /// would take the route to that host unless hosts of this port were given another MAC address
    /// for it, so it is forwarded in software (thesis 000 §4.1.1).
    pub(super) fn fate_of_reply(&self, cx: &Cx, port: PortNo, destination: MacAddr) -> Outcome {
        let key = (port, cx.to(destination));
        let given_another = cx.tables.address(key) != key;
        let flow = self.installer.flows().get(key).filter(|_| given_another);
        flow.map_or(Outcome::Served, |flow| Outcome::Forward(flow.route.clone()))
    }

    /// Ends a set-up without a route: its entry is freed and its frames are dropped. Returns the
    /// hosts that waited for it.
    fn end_setup(&mut self, cx: &mut Cx, key: SetupKey) -> Vec<Requester> {
        let Some(setup) = self.setups.take(cx, key) else {
            return Vec::new();
        };
        let (port, target, source) = key;
        match target {
            Target::Ip(_) if setup.held => cx.tables.release(port, cx.vlan),
            Target::Ip(_) => {}
            Target::Mac(mac) => {
                let to = cx.to(mac);
                self.unreserve(cx, (port, to));
                let key = to.from_source(Some(source));
                cx.out.push(Effect::Abandon { ingress: port, key });
            }
        }
        self.installer.promote(cx, port);
        setup.requesters
    }

    /// Frees a reserved entry, unless a route, a set-up or a query needs it.
    fn unreserve(&self, cx: &mut Cx, key: Key) {
        let (port, RouteKey { destination, source, .. }) = key;
        let is_any = source.is_none();
        let wanted = || self.setups.towards((port, Target::Mac(destination)), None);
        let wanted = is_any && !wanted().is_empty();
        if !self.installer.flows().is_placed(key) && !wanted && !self.queries.is_for(key) {
            cx.tables.free(key);
        }
    }

    /// Handles phase IV. The reserved entry gets its route. Hosts that sent ARP requests get their
    /// replies, from the target's own MAC address. Then the queued frames leave in order.
    pub(super) fn phase_four(&mut self, cx: &mut Cx, hosts: &Hosts, m: &ArpReply) {
        let port = m.source_port;
        if !cx.controller.is_current(m.stamp) || !hosts.is_on(m.source_mac, port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        let target_ip = m.target_ip;
        let source = m.target_by_pair.then_some(m.source_mac);
        let route = (port, cx.to(m.target_mac).from_source(source));
        let by_ip = target_ip.or_else(|| self.setups.asked_ip(port, m.id));
        let answered = by_ip.map(|ip| self.setups.towards((port, Target::Ip(ip)), source));
        let answered = answered.unwrap_or_default();
        let held = self.setups.release(cx, &answered);
        let decision = Decision { key: route, stamp: m.stamp, route: &m.to_target, ip: target_ip };
        let verdict = self.decisions.set_route(cx, &mut self.installer, hosts, decision);
        if matches!(verdict, Verdict::Removed | Verdict::Unusable) {
            // A later decision has removed the route. The next retry requests a new one.
            cx.counters.messages_ignored += 1;
            self.setups.hold_again(cx, held);
            return;
        }
        for (key, ip) in answered.into_iter().zip(by_ip.into_iter().cycle()) {
            let Some(setup) = self.setups.take(cx, key) else { continue };
            cx.counters.setups_done += 1;
            for requester in setup.requesters {
                self.installer.show(cx, port, requester, m.target_mac, ip);
            }
        }
        self.route_ready(cx, hosts, route, &m.to_target);
        self.installer.promote(cx, port);
    }

    /// Sends the frames queued for a route. `route` is used if no table had room for it.
    fn route_ready(&mut self, cx: &mut Cx, hosts: &Hosts, key: Key, route: &Route) {
        let (port, to) = key;
        let target = Target::Mac(to.destination);
        for (_, _, host) in self.setups.towards((port, target), to.source) {
            let Some(setup) = self.setups.take(cx, (port, target, host)) else { continue };
            // The host has used the destination's own MAC address.
            self.installer.correct(cx, hosts, host, key, setup.hint);
            let any = (port, to.from_source(None));
            self.unreserve(cx, any);
            cx.counters.setups_done += 1;
            let taken = self.installer.flows().key_of(any, host);
            let route = self.installer.flows().get(taken).map_or(route, |flow| &flow.route).clone();
            let key = to.from_source(Some(host));
            cx.out.push(Effect::Release { ingress: port, key, route });
        }
    }

    /// Handles phase II. Reserves an entry for the reverse route in the target port's table, then
    /// queries the target host by ARP. A target without known address cannot be queried; it is
    /// sufficient that it was learned here.
    pub(super) fn phase_two(&mut self, cx: &mut Cx, hosts: &Hosts, m: ArpTarget) {
        let key = (m.target_port, m.target_mac, m.source_mac);
        if self.queries.contains(key) {
            if let Some((before, after)) = self.queries.renew(cx.vlan, key, m) {
                cx.tables.reserve(after);
                self.unreserve(cx, before);
            }
            return;
        }
        if self.queries.is_full(m.target_port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        self.installer.evade(cx, m.target_port, m.source_mac);
        // If the table is full, the reverse route will be kept in software.
        cx.tables.reserve(way_back(cx.vlan, &m));
        let Some(target_ip) = m.target_ip else {
            return self.phase_three(cx, hosts, &m);
        };
        self.queries.start(cx, &mut self.installer, key, m, target_ip);
    }

    /// Ends a query without an answer.
    fn end_query(&mut self, cx: &mut Cx, key: QueryKey) {
        if let Some(m) = self.queries.take(cx, key) {
            self.unreserve(cx, way_back(cx.vlan, &m));
            self.installer.promote(cx, key.0);
        }
    }

    /// Handles an ARP reply of `mac` on `port`, which answers all queries for that address.
    pub(super) fn target_answered(
        &mut self,
        cx: &mut Cx,
        hosts: &Hosts,
        (port, mac): (PortNo, MacAddr),
        ip: IpAddr,
    ) {
        for key in self.queries.to(port, mac) {
            if !self.queries.is_about(key, ip) {
                continue;
            }
            if let Some(m) = self.queries.take(cx, key) {
                self.phase_three(cx, hosts, &m);
            }
        }
    }

    /// Handles phase III. The reverse route becomes valid, then the source switch gets its reply.
    ///
    /// The reply is sent even if a newer reverse route exists: its route towards the target carries
    /// the stamp of the message, which the source switch checks.
    fn phase_three(&mut self, cx: &mut Cx, hosts: &Hosts, m: &ArpTarget) {
        let back = way_back(cx.vlan, m);
        let decision = Decision { key: back, stamp: m.stamp, route: &m.to_source, ip: m.source_ip };
        let verdict = self.decisions.set_route(cx, &mut self.installer, hosts, decision);
        if matches!(verdict, Verdict::Removed | Verdict::Unusable) {
            cx.counters.messages_ignored += 1;
            self.unreserve(cx, back);
            return;
        }
        cx.out.push(Effect::Routed {
            hops: m.answer_by.clone(),
            to: m.source_switch,
            message: Message::ArpReply(m.reply()),
        });
        self.route_ready(cx, hosts, back, &m.to_source);
    }

    /// Handles the controller's command about a route or a backup. Returns any other item, and a
    /// decision of another controller.
    pub(super) fn command(&mut self, cx: &mut Cx, hosts: &Hosts, item: Item) -> Option<Item> {
        match item {
            Item::SetRoute { port, destination, source, stamp, route }
                if cx.controller.is_current(stamp) =>
            {
                let key = (port, cx.to(destination).from_source(source));
                let decision = Decision { key, stamp, route: &route, ip: None };
                match self.decisions.set_route(cx, &mut self.installer, hosts, decision) {
                    Verdict::Removed | Verdict::Unusable => cx.counters.messages_ignored += 1,
                    _ => self.route_ready(cx, hosts, key, &route),
                }
                self.installer.promote(cx, port);
            }
            Item::RemoveRoute { port, destination, source, stamp }
                if cx.controller.is_current(stamp) =>
            {
                let key = (port, cx.to(destination).from_source(source));
                self.decisions.remove(cx, &mut self.installer, key, Some(stamp));
                self.installer.promote(cx, port);
            }
            Item::SetBackup { port, destination, source, primary, backup } => {
                let key = (port, cx.to(destination).from_source(source));
                self.decisions.set_backup(cx, &mut self.installer, key, (primary, backup));
            }
            item => return Some(item),
        }
        None
    }

    /// Switches every flow over this lost link to its backup route.
    pub(super) fn fail_over(&mut self, cx: &mut Cx, ends: [LinkEnd; 2]) {
        self.decisions.fail_over(cx, &mut self.installer, ends);
    }

    /// Returns the routes without frames since the last call; see [`Installer::idle`].
    pub(super) fn idle(
        &mut self,
        now: Time,
        tables: &Tables,
        used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<Key> {
        self.installer.idle(now, tables, used)
    }

    /// Removes these routes and reports that to the controller.
    pub(super) fn remove_idle(&mut self, cx: &mut Cx, idle: &[Key]) {
        self.decisions.remove_idle(cx, &mut self.installer, idle);
    }

    /// Handles the data plane's answer to a route change.
    pub(super) fn route_changed(&mut self, cx: &mut Cx, answer: RouteAnswer) {
        self.decisions.answered(cx, &mut self.installer, answer);
    }

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state, and whether it had too many answers outstanding.
    pub(super) fn resynchronised(&mut self, cx: &mut Cx, has: (&Snapshot, bool)) {
        self.installer.resynchronised(cx, has);
    }

    /// Records the routes in a VLAN that the data plane had at the start.
    pub(super) fn found(&mut self, has: &Snapshot, vlan: VlanId) {
        self.inherited.found(has, vlan);
    }

    /// Handles a change of carrier.
    pub(super) fn link(&mut self, cx: &mut Cx, link: (PortNo, bool)) {
        self.inherited.link(cx, link);
    }

    /// Handles a port whose kind is known now.
    pub(super) fn adopt(&mut self, cx: &mut Cx, port: PortNo) {
        self.inherited.adopt(cx, &mut self.installer, port);
    }

    /// Ends all queries of the previous incarnation of the controller.
    pub(super) fn end_queries(&mut self, cx: &mut Cx) {
        while let Some(key) = self.queries.first() {
            self.end_query(cx, key);
        }
    }

    /// Handles a controller that is reachable again: repeats all requests, after a report of all
    /// routes to a new incarnation.
    pub(super) fn controller_changed(&mut self, cx: &mut Cx, is_new: bool) {
        if is_new {
            self.inherited.inherit(cx, &mut self.decisions, &mut self.installer);
        }
        self.setups.ask_again(cx);
    }

    /// Handles an expired timer of routes. Returns a set-up that has failed, with the hosts that
    /// waited for it.
    pub(super) fn due(&mut self, cx: &mut Cx, timer: Timer) -> Option<(SetupKey, Vec<Requester>)> {
        match timer {
            Timer::Setup(port, target, host) if self.setups.due(cx, (port, target, host)) => {
                let key = (port, target, host);
                let requesters = self.end_setup(cx, key);
                self.setups.remember_failure(cx, key);
                return Some((key, requesters));
            }
            Timer::Failed(port, target, host) => self.setups.forget_failure((port, target, host)),
            Timer::Query(port, target, source) => {
                let key = (port, target, source);
                if self.queries.due(cx, &mut self.installer, key) {
                    self.end_query(cx, key);
                }
            }
            Timer::Place(port) => self.installer.try_again(cx, port),
            // Nothing is due, or the timer is of another part.
            Timer::Setup(..) | Timer::Host(_) | Timer::Recall(..) => {}
            Timer::Sought(_) | Timer::Groups(_) | Timer::Advertise(_) => {}
        }
        None
    }

    /// Handles what is due besides the timers of the agenda.
    pub(super) fn timeout(&mut self, cx: &mut Cx) {
        self.decisions.timeout(cx.now);
        self.inherited.due(cx, &mut self.decisions, &mut self.installer);
    }

    /// Returns when [`Routes::timeout`] is due next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.decisions.deadline().into_iter().chain(self.inherited.until()).min()
    }

    /// Handles a host that has been learned at a port.
    pub(super) fn host_learned(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        self.installer.keep_own(cx, port, mac);
    }

    /// Ends all queries and set-ups of a host that has left a port.
    pub(super) fn host_gone(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        cx.tables.vacate(port, mac);
        for key in self.queries.to(port, mac) {
            self.end_query(cx, key);
        }
        for key in self.setups.started_by(port, mac) {
            self.end_setup(cx, key);
        }
    }

    /// Requests the software routes of a port while its table has room.
    pub(super) fn promote(&mut self, cx: &mut Cx, port: PortNo) {
        self.installer.promote(cx, port);
    }

    /// Removes all flows of a port.
    pub(super) fn clear_port(&mut self, cx: &mut Cx, port: PortNo) {
        self.decisions.clear_port(cx, &mut self.installer, port);
    }

    #[cfg(test)]
    pub(super) fn pending(&self) -> (&Queries, &Inherited) {
        (&self.queries, &self.inherited)
    }

    #[cfg(test)]
    pub(super) fn removed(&self) -> usize {
        self.decisions.removed()
    }
}

#[cfg(test)]
mod tests;
