//! The conductor: owns the parts, and leads each message and timer through them.

use crate::addresses::Addresses;
use crate::ageing::Ageing;
use crate::backups::Backups;
use crate::config::ControllerConfig;
use crate::dhcp::DhcpServer;
use crate::drain::Drain;
use crate::excess::Bounds;
use crate::flows::{Flows, RouteIndex};
use crate::forwarding::Forwarding;
use crate::groups::Groups;
use crate::hosts::{HostTable, Place};
use crate::leases6::Leases6;
use crate::network::Network;
use crate::paths::Paths;
use crate::relay::Relay;
use crate::relay6::Relay6;
use crate::rounds::Rounds;
use crate::router::{Router, Step};
use crate::routes::Routes;
use crate::scans::Scans;
use crate::seeking::Seeking;
use crate::takeover::TakeOver;
use crate::topology::{Admission, Change, Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_node::telemetry::{ControllerCounters, IpConflict, Restored};
use axon_wire::message::{ControllerHello, ControllerHelloAck, Item, Message};
use axon_wire::{Hops, Incarnation, Layer, MacAddr, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(super) fwd: Forwarding,
    pub(super) addresses: Addresses,
    /// Requests relayed to a DHCP server that is a host, if there is one.
    pub(super) relay: Option<Relay>,
    pub(super) relay6: Option<Relay6>,
    pub(super) rounds: Rounds,
    pub(super) backups: Backups,
    /// Maximum time for which links of a switch's previous incarnation count.
    pub(super) reunion_max: Span,
    pub(super) ageing: Ageing,
    /// Interval of load reports in milliseconds, if the router needs them.
    pub(super) measure_every_ms: Option<u32>,
    pub(super) counters: ControllerCounters,
    pub(super) scans: Scans,
    pub(super) groups: Groups,
    pub(super) restored: Restored,
}

impl Controller {
    /// Creates a controller with an empty state. Its routes have at most `hops_max` hops.
    pub fn new(config: &ControllerConfig, hops_max: usize) -> Controller {
        let router = config.router.build(config.node.seed, config.layers);
        Controller::with_router(config, hops_max, router)
    }

    /// Creates a controller with the given router.
    pub fn with_router(
        config: &ControllerConfig,
        hops_max: usize,
        router: Box<dyn Router>,
    ) -> Controller {
        let server = config.node.server;
        let heartbeat = config.node.timers.heartbeat;
        let mut dhcp = DhcpServer::new(server, &config.dhcp);
        let v4 = |ip| match ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        };
        dhcp.withhold(config.policy.addresses().filter_map(v4));
        dhcp.withhold(config.uplinks.iter().map(|uplink| uplink.gateway));
        let every = |heartbeats: u32| (heartbeat * u64::from(heartbeats)).as_millis();
        let measure_every_ms = router
            .measures()
            .map(|heartbeats| u32::try_from(every(heartbeats)).unwrap_or(u32::MAX).max(1));
        Controller {
            fwd: Forwarding {
                net: Network::new(config),
                routes: Routes::new(
                    config.node.incarnation.number,
                    Paths::new(router, hops_max),
                    Drain::new(config.node.timers.drain_max()),
                ),
                take_over: TakeOver::new(&config.node.timers),
                seeking: Seeking::default(),
                bounds: Bounds::default(),
                counters: ControllerCounters::default(),
            },
            addresses: Addresses::new(dhcp, Leases6::new(config.dhcp.leases_per_port_max)),
            relay: config.dhcp.relay.clone().map(|relay| Relay::new(relay, server)),
            relay6: config.dhcpv6.clone().map(|relay| Relay6::new(relay, server)),
            rounds: Rounds::new(heartbeat * 10),
            backups: Backups::new(config.backups, heartbeat),
            reunion_max: config.node.timers.reunion_max(),
            ageing: Ageing::new(config.node.timers.silence_max()),
            measure_every_ms,
            counters: ControllerCounters::default(),
            scans: Scans::default(),
            groups: Groups::default(),
            restored: Restored::default(),
        }
    }

    /// Returns the graph of switches.
    pub fn graph(&self) -> &Graph {
        self.fwd.net.graph()
    }

    /// Returns the host table.
    pub fn hosts(&self) -> &HostTable {
        self.fwd.net.hosts()
    }

    /// Returns the flow registry.
    pub fn flows(&self) -> &Flows {
        self.fwd.routes.flows()
    }

    /// Returns the address service.
    pub fn dhcp(&self) -> &DhcpServer {
        self.addresses.dhcp()
    }

    /// Returns the counters.
    pub fn counters(&self) -> ControllerCounters {
        let bond_mismatches = self.fwd.net.fabric().bonds().mismatches();
        let sum = self
            .counters
            .plus(self.fwd.routes.counters())
            .plus(self.backups.counters())
            .plus(self.addresses.counters())
            .plus(&self.fwd.counters)
            .plus(self.fwd.seeking.counters());
        ControllerCounters {
            bond_mismatches,
            over_bound: self.fwd.bounds.refused(),
            scans: self.scans.noted(),
            hosts_misplaced: self.fwd.bounds.misplaced(),
            groups_refused: self.groups.refused(),
            ..sum
        }
    }

    /// Returns the path from here to a switch's control plane, ending in [`PortNo::CONTROL`]: the
    /// shortest over all own links, lowest port first. If the graph has none yet, the reverse path
    /// of the switch's last Controller Hello.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        self.fwd.routes.paths_mut().path_to(&self.fwd.net, switch)
    }

    /// Records the switch and port that the controller's own `port` leads to, or none. Sends
    /// nothing, because no flow passes through the controller.
    pub fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        self.fwd.net.fabric_mut().attached(port, peer);
    }

    /// Handles a switch's port state. `reverse` leads from here to that switch's control plane and
    /// ends in [`PortNo::CONTROL`]. The acknowledgement takes that path, which verifies it for the
    /// switch. An older version is acknowledged too: its path works as well.
    pub fn controller_hello(
        &mut self,
        now: Time,
        from: Incarnation,
        reverse: Hops,
        m: ControllerHello,
        out: &mut Vec<Effect>,
    ) {
        let Some(index) = self.admit(now, from, out) else {
            return;
        };
        let ack = ControllerHelloAck { version: m.version, nonce: m.nonce };
        let message = Message::ControllerHelloAck(ack);
        out.push(Effect::Routed { hops: reverse.clone(), to: from, message });
        let first = self.fwd.net.graph().switch(index).version.is_none();
        if first {
            self.fwd.net.hosts_mut().heard(now, index);
        }
        let was_edge = self.fwd.net.fabric().has_hosts(index);
        let change = self.fwd.net.graph_mut().update(index, m.version, &m.ports, reverse);
        if let Some(every_ms) = self.measure_every_ms.filter(|_| first) {
            out.push(Effect::Command { to: from.node, item: Item::AskLoad { every_ms } });
        }
        self.changed(now, &change, out);
        if !was_edge && self.fwd.net.fabric().has_hosts(index) {
            self.fwd.seeking.ask_newcomer(now, (&self.fwd.net, &mut self.fwd.routes), from, out);
        }
    }

    /// Handles an item of a switch's reliable stream.
    pub fn item(&mut self, now: Time, from: Incarnation, item: Item, out: &mut Vec<Effect>) {
        let Some(switch) = self.admit(now, from, out) else {
            return;
        };
        match item {
            Item::HostSeen { port, mac, ips } => {
                self.host_seen(now, Place { switch, port }, (mac, ips), out);
            }
            Item::HostGone { port, mac } => self.withdraw(now, Place { switch, port }, mac, out),
            Item::PortLoad { over_us, ports } => {
                let over = Span::from_micros(over_us);
                let router = self.fwd.routes.paths_mut().router_mut();
                router.measured(self.fwd.net.graph(), switch, over, &ports);
                self.fwd.routes.want_round(true);
                self.plan_round(now);
            }
            Item::RemoveRoute { port, destination, source, stamp } => {
                let key = RouteKey::to(destination).from_source(source);
                let at = Place { switch, port };
                self.fwd.take_over.forget(at, key);
                self.fwd.routes.route_aged(&self.fwd.net, at, key, stamp);
            }
            Item::SetRoute { port, destination, source, stamp, route } => {
                let key = RouteKey::to(destination).from_source(source);
                if stamp.epoch == self.fwd.routes.epoch() {
                    self.counters.item_misplaced += 1;
                    return;
                }
                let own = (&self.fwd.net, &mut self.fwd.routes, &mut self.fwd.bounds);
                self.fwd.take_over.inherit(now, (Place { switch, port }, key, route), own, out);
            }
            Item::BackupUsed { port, destination, source, stamp, route } => {
                let key = RouteKey::to(destination).from_source(source);
                let own = (&self.fwd.net, &mut self.fwd.routes);
                self.backups.used(own, Place { switch, port }, key, (stamp, &route), out);
            }
            Item::GroupMember { port, mac, group, joined } => {
                let by = (Place { switch, port }, mac);
                let is_placed = self.groups.report(&self.fwd.net, now, by, (group, joined));
                self.counters.item_misplaced += u64::from(!is_placed);
            }
            Item::AskGroup { port, mac, group, wanted } => {
                let by = (Place { switch, port }, mac);
                let is_placed = self.groups.ask(&self.fwd.net, by, (group, wanted), out);
                self.counters.item_misplaced += u64::from(!is_placed);
            }
            Item::BondMember { port, state, partner, selected } => {
                self.bond_member(now, Place { switch, port }, (state, partner, selected), out);
            }
            Item::AskHost { .. }
            | Item::SelectMember { .. }
            | Item::AskLoad { .. }
            | Item::SetBackup { .. }
            | Item::Vlan { .. }
            | Item::GroupHosts { .. } => {
                self.counters.item_misplaced += 1;
            }
        }
    }

    /// Returns the latest incarnation of a switch.
    pub fn incarnation_of(&self, switch: NodeId) -> Option<Incarnation> {
        Some(self.fwd.net.graph().switch(self.fwd.net.graph().index_of(switch)?).incarnation)
    }

    /// Handles expired timers. Call it at [`Controller::deadline`]; early or repeated calls are
    /// harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((place, mac)) = self.fwd.net.hosts_mut().run_out(now) {
            if let Some(ip) = self.fwd.net.hosts().remembered(place, mac) {
                self.fwd.net.query(place, mac, ip, out);
            }
            self.withdraw(now, place, mac, out);
        }
        while let Some(host) = self.fwd.net.hosts().verify_due(now) {
            self.fwd.verify(now, host, out);
        }
        self.addresses.settle(&mut self.fwd, now, out);
        self.addresses.conflicts_due(&mut self.fwd, now, out);
        self.links_run_out(now, out);
        self.age(now, out);
        let own = (&self.fwd.net, &mut self.fwd.routes);
        if self.fwd.take_over.check(now, own, out) {
            self.plan_round(now);
        }
        let own = (&self.fwd.net, &mut self.fwd.routes);
        self.rounds.improve(now, own, out);
        self.fwd.balance_bonds(now, out);
        let own = (&self.fwd.net, &mut self.fwd.routes);
        self.backups.plan(now, own, out);
        self.drain(now, out);
        self.groups.make_lists(&self.fwd.net, now, out);
    }

    /// Returns when to call [`Controller::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let improving = self.rounds.deadline();
        let (hosts, dhcp) = (self.fwd.net.hosts().deadline(), self.addresses.deadline());
        let (ageing, take_over) = (self.ageing.deadline(), self.fwd.take_over.deadline());
        let (links, backups) =
            (self.fwd.net.graph().deadline(), self.backups.deadline(self.fwd.routes.flows()));
        let all = [hosts, dhcp, ageing, take_over, improving, links, backups];
        let others = [
            self.groups.deadline(),
            self.fwd.routes.drain().deadline(),
            self.fwd.net.fabric().bonds().deadline(),
        ];
        all.into_iter().chain(others).flatten().min()
    }

    /// Looks up the switch that sent a message; `None` if its incarnation has ended. Resets the
    /// state of a switch with a new incarnation, which has empty tables and reports its hosts
    /// again.
    pub(super) fn admit(
        &mut self,
        now: Time,
        from: Incarnation,
        out: &mut Vec<Effect>,
    ) -> Option<SwitchIndex> {
        let index = match self.fwd.net.graph_mut().admit(from, now + self.reunion_max) {
            Admission::Known(index) => index,
            Admission::Stale => {
                self.counters.stale_incarnation += 1;
                return None;
            }
            Admission::Reborn(index, change) => {
                self.reborn(now, index, &change, out);
                index
            }
        };
        self.ageing.heard(now, index);
        Some(index)
    }

    /// Returns whether old paths are draining, so that a flow may be without a path.
    pub fn is_draining(&self) -> bool {
        self.fwd.routes.paths().router().draining().is_some()
    }

    /// Returns whether the switch has any links in the graph.
    pub fn has_links(&self, node: NodeId) -> bool {
        self.fwd
            .net
            .graph()
            .index_of(node)
            .is_some_and(|at| !self.fwd.net.graph().edges(at).is_empty())
    }

    /// Handles the acknowledgement of the request `number` by every switch with links
    /// ([`Effect::AwaitAcknowledged`]).
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        self.fwd.routes.drain_mut().acknowledged(now, number);
    }

    /// Advances draining as far as possible.
    pub(super) fn drain(&mut self, now: Time, out: &mut Vec<Effect>) {
        let of = self.fwd.routes.paths().router().draining();
        let is_replaced = self.fwd.take_over.len() == 0 && self.backups.are_planned();
        if self.fwd.routes.drain_mut().advance(now, of, is_replaced, out) {
            self.fwd.routes.paths_mut().router_mut().drained();
            self.backups.recheck();
        }
    }

    /// Handles a refused host query: its switch leaves too many commands unacknowledged.
    pub fn query_refused(&mut self, now: Time, to: NodeId, out: &mut Vec<Effect>) {
        if let Some(switch) = self.fwd.net.graph().index_of(to) {
            self.fwd.over_bound(now, (switch, None), out);
        }
    }

    /// Records whether a switch leaves [`COMMANDS_PER_SWITCH_MAX`] commands or more unacknowledged.
    /// Meanwhile no route is made at it.
    ///
    /// [`COMMANDS_PER_SWITCH_MAX`]: super::bounds::COMMANDS_PER_SWITCH_MAX
    pub fn backlog(&mut self, of: NodeId, is_full: bool) {
        if let Some(switch) = self.fwd.net.graph().index_of(of) {
            self.fwd.bounds.backlog(switch, is_full);
        }
    }

    /// Handles a change of the graph's edges.
    pub(super) fn changed(&mut self, now: Time, change: &Change, out: &mut Vec<Effect>) {
        match change.lost.is_empty() {
            true => self.fwd.take_over.graph_changed(now),
            false => self.fwd.take_over.lost(now, &change.lost),
        }
        for route in self.fwd.routes.hit_by(&self.fwd.net, change) {
            self.fwd.routes.reroute(&self.fwd.net, route, out);
        }
        self.see_bonds(now, out);
        if change.gained && !self.fwd.routes.flows().is_empty() {
            self.rounds.restart(now);
        }
        self.backups.recheck();
        self.plan_round(now);
        self.drain(now, out);
    }

    /// Ends the links of earlier incarnations that no new one has reported in time.
    pub(super) fn links_run_out(&mut self, now: Time, out: &mut Vec<Effect>) {
        let change = self.fwd.net.graph_mut().run_out(now);
        if change.gained || !change.lost.is_empty() {
            self.changed(now, &change, out);
        }
    }

    /// Handles a new incarnation of a switch.
    ///
    /// Its routes are removed without a message: it reports those that its data plane still has
    /// (`takeover.rs`). Its hosts keep their location until it reports them, for a few seconds at
    /// most. Routes to them stay, because its data plane may still forward.
    pub(super) fn reborn(
        &mut self,
        now: Time,
        switch: SwitchIndex,
        change: &Change,
        out: &mut Vec<Effect>,
    ) {
        self.fwd.take_over.forget_switch(switch);
        // Its data plane may still have unacknowledged routes.
        self.fwd.routes.drain_mut().again();
        self.forget_members(now, self.fwd.net.fabric().node(switch), out);
        self.groups.forget_switch(now, switch);
        self.fwd.routes.forget_switch(switch);
        let to = self.fwd.net.fabric().node(switch);
        for (place, mac) in self.fwd.net.hosts_mut().reborn(now, switch) {
            // A host that only receives would not be found again, so its switch must query it.
            let host = self.fwd.net.host(mac);
            if let Some(&ip) = host.and_then(|host| host.ips.last()) {
                let item = Item::AskHost { port: place.port, mac, ip };
                out.push(Effect::Command { to, item });
            }
        }
        self.changed(now, change, out);
    }

    /// Returns the backup at the route's switch: its links, nearest first, and its layer.
    pub fn backup(&self, index: RouteIndex) -> Option<(&[Step], Layer)> {
        self.backups.get(self.fwd.routes.flows(), index)
    }

    /// Schedules a round if the router needs one and none is in progress.
    pub(super) fn plan_round(&mut self, now: Time) {
        self.rounds.plan(now, &self.fwd.routes);
    }

    /// Schedules a list again whose part was refused for too many unacknowledged commands.
    pub fn list_refused(&mut self, now: Time, to: NodeId, list: (PortNo, MacAddr, IpAddr)) {
        self.groups.list_refused(&self.fwd.net, now, to, list);
    }

    /// Returns the number of memberships and senders.
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the reported members of a group, sorted by MAC address. A member reported by two
    /// switches is listed once.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        self.groups.members_of(group)
    }

    /// Fulfils the requests that waited for addresses that were found.
    pub(super) fn fulfil_found(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((from, m)) = self.fwd.seeking.next_found(now, &self.fwd.net) {
            self.request(now, from, m, out);
        }
    }

    /// Returns the standing conflicts: addresses that two hosts use.
    pub fn ip_conflicts(&self) -> impl Iterator<Item = IpConflict> {
        self.addresses.ip_conflicts(&self.fwd.net)
    }
}
