//! The conductor owns the controller's parts, and passes each message and timer through them.

use crate::config::{ControllerConfig, StaticTopology};
use crate::dhcp::DhcpServer;
use crate::effect::Effect;
use crate::excess::Bounds;
use crate::flows::{Flows, RouteIndex};
use crate::forwarding::Forwarding;
use crate::hosts::{HostTable, Place};
use crate::network::Network;
use crate::presence::Presence;
use crate::relay::Relay;
use crate::relay6::Relay6;
use crate::requests::Requests;
use crate::router::{Explicit, Router, Step};
use crate::routes::Routes;
use crate::seeking::Seeking;
use crate::store::{self, Store};
use crate::takeover::TakeOver;
use crate::topology::{Admission, Graph, SwitchIndex};
use crate::upkeep::Upkeep;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::telemetry::{
    BondTelemetry, ControllerCounters, IpConflict, PolicyTelemetry, Restored,
};
use axon_node::{PolicyChange, PolicyDone, PolicyRefusal, RouteKey, Stored};
use axon_wire::dhcpv6::Datagram;
use axon_wire::message::{
    ArpReply, ArpRequest, ArpTarget, ControllerHello, ControllerHelloAck, HostFrame, Item, Message,
};
use axon_wire::{Hops, Incarnation, Layer, MacAddr, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Controller {
    fwd: Forwarding,
    presence: Presence,
    requests: Requests,
    upkeep: Upkeep,
    store: Store,
    /// Relay agent for requests to a DHCP server that is a host, if there is one.
    relay: Option<Relay>,
    relay6: Option<Relay6>,
    /// Maximum time for which links of a switch's previous incarnation still count.
    reunion_max: Span,
    /// Interval of load reports in milliseconds, if the router needs them.
    measure_every_ms: Option<u32>,
    /// Counts of messages from earlier incarnations, and of misplaced items.
    counters: ControllerCounters,
}

/// Creation and telemetry.
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
        let every = |heartbeats: u32| (heartbeat * u64::from(heartbeats)).as_millis();
        let measure_every_ms = router
            .measures()
            .map(|heartbeats| u32::try_from(every(heartbeats)).unwrap_or(u32::MAX).max(1));
        Controller {
            fwd: Forwarding {
                net: Network::new(config),
                routes: Routes::new(&config.node, router, hops_max),
                take_over: TakeOver::new(&config.node.timers),
                seeking: Seeking::default(),
                bounds: Bounds::default(),
            },
            presence: Presence::new(config),
            requests: Requests::default(),
            upkeep: Upkeep::new(config.backups, heartbeat),
            store: Store::default(),
            relay: config.dhcp.relay.clone().map(|relay| Relay::new(relay, server)),
            relay6: config.dhcpv6.clone().map(|relay| Relay6::new(relay, server)),
            reunion_max: config.node.timers.reunion_max(),
            measure_every_ms,
            counters: ControllerCounters::default(),
        }
    }

    /// Creates the controller inside the switch given in `config`, with the topology of the fabric
    /// file. Its routes have at most `hops_max` hops.
    pub fn at_switch(
        config: &ControllerConfig,
        topology: &StaticTopology,
        hops_max: usize,
    ) -> Controller {
        let router = config.router.build(config.node.seed, config.layers);
        let router = Explicit::over(router, &topology.paths);
        let mut controller = Controller::with_router(config, hops_max, router);
        for switch in &topology.switches {
            controller.fwd.net.graph_mut().assume(switch.node, &switch.ports);
        }
        controller.fwd.net.fabric_mut().set_home(config.node.incarnation.node);
        let hosts: Vec<Stored> = topology.hosts.iter().cloned().map(Stored::Host).collect();
        controller.restore(Time::ZERO, &hosts, &mut Vec::new());
        // This state comes from the file. It is not a change, and it is not stored.
        controller.keep(&mut Vec::new());
        controller
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
        self.presence.addresses().dhcp()
    }

    /// Returns the counters.
    pub fn counters(&self) -> ControllerCounters {
        let sum = self
            .counters
            .plus(self.fwd.routes.counters())
            .plus(self.fwd.seeking.counters())
            .plus(self.upkeep.backups().counters())
            .plus(self.presence.addresses().counters())
            .plus(&self.requests.counters());
        ControllerCounters {
            bond_mismatches: self.fwd.net.fabric().bonds().mismatches(),
            over_bound: self.fwd.bounds.refused(),
            hosts_misplaced: self.fwd.bounds.misplaced(),
            hosts_aged: self.presence.aged(),
            groups_refused: self.presence.groups().refused(),
            ..sum
        }
    }

    /// Returns counts of the state restored from the previous incarnation.
    pub fn restored(&self) -> Restored {
        self.store.restored(&self.fwd)
    }

    /// Returns whether old paths are still draining, in which case a flow may have no path.
    pub fn is_draining(&self) -> bool {
        self.fwd.routes.paths().router().draining().is_some()
    }

    /// Returns the backup that the route's switch has: its links, nearest first, and its layer.
    pub fn backup(&self, index: RouteIndex) -> Option<(&[Step], Layer)> {
        self.upkeep.backups().get(self.fwd.routes.flows(), index)
    }

    /// Returns the number of group memberships and senders.
    pub fn groups_len(&self) -> usize {
        self.presence.groups().len()
    }

    /// Returns the reported members of a group, sorted by MAC address. A member reported by two
    /// switches is listed once.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        self.presence.groups().members_of(group)
    }

    /// Returns the standing conflicts: addresses that two hosts use.
    pub fn ip_conflicts(&self) -> impl Iterator<Item = IpConflict> {
        self.presence.addresses().ip_conflicts(&self.fwd.net)
    }

    /// Returns the telemetry of all bonds.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.fwd.net.fabric().bonds().telemetry()
    }

    /// Returns the policy as the controller has it. Acknowledgements that switches still owe are
    /// not included.
    pub fn policy_telemetry(&self) -> PolicyTelemetry {
        self.fwd.net.policy_telemetry()
    }

    /// Returns the reports from this switch that another switch needs after a first or repeated
    /// greeting: hosts first, then their groups.
    pub fn reports(&self) -> Vec<Item> {
        self.presence.reports(&self.fwd.net)
    }

    /// Returns a path to another switch's control plane over links that their nearer ends have
    /// reported, to reconnect parts of a fabric that were cut off from each other.
    pub fn path_for_greeting(&self, to: NodeId) -> Option<Hops> {
        self.fwd.net.fabric().path_for_greeting(to)
    }
}

/// Messages, commands and timers.
impl Controller {
    /// Restores the stored state of an earlier incarnation. Entries that do not fit this
    /// configuration are dropped. Call it once, before anything else.
    pub fn restore(&mut self, now: Time, stored: &[Stored], out: &mut Vec<Effect>) {
        let own = (&mut self.fwd, &mut self.presence);
        self.store.restore(own, now, (stored, self.relay6.is_some()), out);
    }

    /// Emits the changes since the last call that are to be stored.
    pub fn keep(&mut self, out: &mut Vec<Effect>) {
        store::keep(&mut self.fwd.net, self.presence.addresses_mut(), out);
    }

    /// Returns the path from here to a switch's control plane, ending in [`PortNo::CONTROL`]: the
    /// shortest one over all of the controller's own links, lowest port first. If the graph has no
    /// path yet, returns the reverse path of the switch's last Controller Hello.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        self.fwd.routes.paths_mut().path_to(&self.fwd.net, switch)
    }

    /// Records the switch and port to which the controller's own `port` leads, or that it leads to
    /// none. Nothing is sent, because no flow passes through the controller.
    pub fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        self.fwd.net.fabric_mut().attached(port, peer);
    }

    /// Handles a switch's port state. `reverse` leads from here to that switch's control plane and
    /// ends in [`PortNo::CONTROL`]. The acknowledgement takes that path and so proves to the switch
    /// that it works. An older version is acknowledged too, because its path works as well.
    pub fn controller_hello(
        &mut self,
        now: Time,
        from: Incarnation,
        reverse: Hops,
        m: ControllerHello,
        out: &mut Vec<Effect>,
    ) {
        let Some(index) = self.admit(now, from, out) else { return };
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
        self.upkeep.changed((&mut self.fwd, &mut self.presence), now, &change, out);
        if !was_edge && self.fwd.net.fabric().has_hosts(index) {
            self.fwd.seeking.ask_newcomer(now, (&self.fwd.net, &mut self.fwd.routes), from, out);
        }
    }

    /// Handles an item of a switch's reliable stream.
    pub fn item(&mut self, now: Time, from: Incarnation, item: Item, out: &mut Vec<Effect>) {
        let Some(switch) = self.admit(now, from, out) else { return };
        let (fwd, presence) = (&mut self.fwd, &mut self.presence);
        let place = |port| Place { switch, port };
        let key = |to, source| RouteKey::to(to).from_source(source);
        let is_placed = match item {
            Item::HostSeen { port, mac, ips } => {
                if presence.seen(fwd, now, place(port), (mac, ips), out) {
                    self.fulfil_found(now, out);
                }
                true
            }
            Item::HostGone { port, mac } => {
                presence.withdraw(fwd, now, (place(port), mac), out);
                true
            }
            Item::PortLoad { over_us, ports } => {
                let over = Span::from_micros(over_us);
                let router = fwd.routes.paths_mut().router_mut();
                router.measured(fwd.net.graph(), switch, over, &ports);
                fwd.routes.want_round(true);
                self.upkeep.plan_round(now, &fwd.routes);
                true
            }
            Item::RemoveRoute { port, destination, source, stamp } => {
                let (at, key) = (place(port), key(destination, source));
                fwd.take_over.forget(at, key);
                fwd.routes.route_aged(&fwd.net, at, key, stamp);
                true
            }
            Item::SetRoute { port, destination, source, stamp, route } => {
                let is_inherited = stamp.epoch != fwd.routes.epoch();
                if is_inherited {
                    let own = (&fwd.net, &mut fwd.routes, &mut fwd.bounds);
                    let route = (place(port), key(destination, source), route);
                    fwd.take_over.inherit(now, route, own, out);
                }
                is_inherited
            }
            Item::BackupUsed { port, destination, source, stamp, route } => {
                let own = (&fwd.net, &mut fwd.routes);
                let (at, key) = (place(port), key(destination, source));
                self.upkeep.backups_mut().used(own, at, key, (stamp, &route), out);
                true
            }
            Item::GroupMember { port, mac, group, joined } => {
                presence.groups_mut().report(&fwd.net, now, (place(port), mac), (group, joined))
            }
            Item::AskGroup { port, mac, group, wanted } => {
                presence.groups_mut().ask(&fwd.net, (place(port), mac), (group, wanted), out)
            }
            Item::BondMember { port, state, partner, selected } => {
                let report = (state, partner, selected);
                self.upkeep.bond_member((fwd, presence), now, place(port), report, out)
            }
            Item::AskHost { .. }
            | Item::SelectMember { .. }
            | Item::AskLoad { .. }
            | Item::SetBackup { .. }
            | Item::GroupHosts { .. } => false,
        };
        self.counters.item_misplaced += u64::from(!is_placed);
    }

    /// Handles phase II of Axon-ARP, which is a host's request for a route. See `requests.rs`.
    pub fn arp_request(
        &mut self,
        now: Time,
        from: Incarnation,
        m: ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        self.request(now, from, m, out);
        self.fulfil_found(now, out);
    }

    /// Handles a request, but not other requests that wait for its source address.
    fn request(&mut self, now: Time, from: Incarnation, m: ArpRequest, out: &mut Vec<Effect>) {
        let Some(switch) = self.admit(now, from, out) else { return };
        let by = (from, Place { switch, port: m.port });
        let own = (&mut self.fwd, self.presence.addresses_mut());
        if self.requests.request(own, now, by, m, out) {
            self.upkeep.plan_round(now, &self.fwd.routes);
        }
    }

    /// Fulfils the requests that waited for addresses that were found.
    fn fulfil_found(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((from, m)) = self.fwd.seeking.next_found(now, &self.fwd.net) {
            self.request(now, from, m, out);
        }
    }

    /// Handles another switch's query for a local host. `reverse` leads to that switch. Returns the
    /// message for the edge, or `None` if the request is refused.
    pub fn target_asked(
        &mut self,
        now: Time,
        (from, reverse): (Incarnation, Hops),
        m: ArpTarget,
        out: &mut Vec<Effect>,
    ) -> Option<ArpTarget> {
        let switch = self.admit(now, from, out)?;
        let by = (from, Place { switch, port: m.source_port }, reverse);
        let own = (&mut self.fwd, self.presence.addresses_mut());
        self.requests.target_asked(own, now, by, m, out)
    }

    /// Handles the answer from another switch to this switch's query for a host. Returns the
    /// message for the edge, or `None` if the host is not there.
    pub fn target_found(
        &mut self,
        now: Time,
        from: Incarnation,
        m: ArpReply,
        out: &mut Vec<Effect>,
    ) -> Option<ArpReply> {
        let switch = self.admit(now, from, out)?;
        self.requests.target_found(&mut self.fwd, now, switch, m, out)
    }

    /// Handles a host's DHCP or DHCPv6 frame. The reply leaves by the port where the frame arrived.
    pub fn dhcp_relay(
        &mut self,
        now: Time,
        from: Incarnation,
        m: HostFrame,
        out: &mut Vec<Effect>,
    ) {
        let Some(switch) = self.admit(now, from, out) else { return };
        let place = Place { switch, port: m.port };
        let (fwd, addresses) = (&mut self.fwd, self.presence.addresses_mut());
        match (Datagram::parse(&m.frame), &mut self.relay6, &mut self.relay) {
            (Some(datagram), Some(relay), _) => {
                relay.frame(fwd, addresses, now, place, &datagram, out);
            }
            (Some(_), None, _) => addresses.dhcp_mut().relaying().malformed += 1,
            (None, _, Some(relay)) => relay.frame(fwd, addresses, now, place, &m.frame, out),
            (None, _, None) => addresses.serve(fwd, now, place, &m.frame, out),
        }
    }

    /// Changes the policy, stores the change for the next incarnation, and removes the routes that
    /// have become forbidden.
    ///
    /// # Errors
    /// Those of [`Policy::change_pair`] and [`Policy::change_quarantine`]. Nothing has changed.
    ///
    /// [`Policy::change_pair`]: crate::policy::Policy::change_pair
    /// [`Policy::change_quarantine`]: crate::policy::Policy::change_quarantine
    pub fn change_policy(
        &mut self,
        now: Time,
        change: PolicyChange,
        out: &mut Vec<Effect>,
    ) -> Result<PolicyDone, PolicyRefusal> {
        let done = self.fwd.change_policy(change, out)?;
        self.presence.groups_mut().all_changed(now);
        self.presence.addresses_mut().end_conflicts(&self.fwd.net);
        Ok(done)
    }

    /// Handles expired timers. Call it at [`Controller::deadline`]; early or repeated calls are
    /// harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Effect>) {
        let (fwd, presence) = (&mut self.fwd, &mut self.presence);
        presence.run_out(fwd, now, out);
        self.upkeep.links_run_out((&mut *fwd, &mut *presence), now, out);
        presence.age(fwd, now, out);
        self.upkeep.timeout(fwd, now, out);
        presence.groups_mut().make_lists(&fwd.net, now, out);
    }

    /// Returns when to call [`Controller::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let presence = self.presence.deadline(&self.fwd.net);
        [presence, self.upkeep.deadline(&self.fwd)].into_iter().flatten().min()
    }

    /// Looks up the switch that sent a message. Returns `None` if that incarnation of it has ended.
    /// If the switch has a new incarnation, its state is reset, because its tables are empty and it
    /// reports its hosts again.
    fn admit(
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
                let own = (&mut self.fwd, &mut self.presence);
                self.upkeep.reborn(own, now, (index, &change), out);
                index
            }
        };
        self.presence.heard(now, index);
        Some(index)
    }

    /// Handles the acknowledgement of the request `number` by every switch with links
    /// ([`Effect::AwaitAcknowledged`]).
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        self.fwd.routes.drain_mut().acknowledged(now, number);
    }

    /// Handles a host query that was refused because of too many unacknowledged commands.
    pub fn query_refused(&mut self, now: Time, to: NodeId, out: &mut Vec<Effect>) {
        if let Some(switch) = self.fwd.net.graph().index_of(to) {
            self.fwd.bounds.refuse(now, self.fwd.net.fabric(), (switch, None), out);
        }
    }

    /// Records whether a switch leaves [`COMMANDS_PER_SWITCH_MAX`] or more commands unacknowledged.
    /// While it does, no route is made at it.
    ///
    /// [`COMMANDS_PER_SWITCH_MAX`]: super::bounds::COMMANDS_PER_SWITCH_MAX
    pub fn backlog(&mut self, of: NodeId, is_full: bool) {
        if let Some(switch) = self.fwd.net.graph().index_of(of) {
            self.fwd.bounds.backlog(switch, is_full);
        }
    }

    /// Schedules a list again after part of it was refused, like [`Controller::query_refused`].
    pub fn list_refused(&mut self, now: Time, to: NodeId, list: (PortNo, MacAddr, IpAddr)) {
        self.presence.groups_mut().list_refused(&self.fwd.net, now, to, list);
    }
}
