//! The conductor: owns the parts, and leads each message and timer through them.

use crate::ageing::Ageing;
use crate::backups::Backups;
use crate::bounds::Bounds;
use crate::config::ControllerConfig;
use crate::conflicts::Conflicts;
use crate::dhcp::DhcpServer;
use crate::draining::Drain;
use crate::flows::Flows;
use crate::hosts::{HostIndex, HostTable, Learned, Place};
use crate::leases6::Leases6;
use crate::members::Groups;
use crate::network::Network;
use crate::pending::TakeOver;
use crate::relay_agent::{Relay, Relay6};
use crate::round::Round;
use crate::router::{Router, Step};
use crate::scans::Scans;
use crate::sought::Seeking;
use crate::topology::{Admission, Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_link::config::IPS_PER_HOST_MAX;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_node::telemetry::{ControllerCounters, Restored};
use axon_wire::message::{ControllerHello, ControllerHelloAck, Item, Message, Stamp};
use axon_wire::{Hops, Incarnation, Layer, MacAddr, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(super) epoch: u64,
    /// Number of the last stamp issued.
    pub(super) number: u64,
    pub(super) router: Box<dyn Router>,
    pub(super) net: Network,
    pub(super) flows: Flows,
    pub(super) dhcp: DhcpServer,
    /// Requests relayed to a DHCP server that is a host, if there is one.
    pub(super) relay: Option<Relay>,
    pub(super) relay6: Option<Relay6>,
    /// IPv6 addresses leased by the DHCPv6 server.
    pub(super) leases6: Leases6,
    /// The search for better paths that is in progress.
    pub(super) improving: Option<Round>,
    pub(super) backups: Backups,
    pub(super) drain: Drain,
    pub(super) settle: Span,
    /// Maximum time for which links of a switch's previous incarnation count.
    pub(super) reunion_max: Span,
    pub(super) ageing: Ageing,
    /// Interval of load reports in milliseconds, if the router needs them.
    pub(super) measure_every_ms: Option<u32>,
    /// Maximum number of hops in a header. A longer path is unusable.
    pub(super) hops_max: usize,
    pub(super) counters: ControllerCounters,
    pub(super) bounds: Bounds,
    pub(super) scans: Scans,
    pub(super) groups: Groups,
    /// Routes of an earlier incarnation in the tables of edges.
    pub(super) take_over: TakeOver,
    /// Pending searches for addresses of unknown hosts.
    pub(super) seeking: Seeking,
    /// Addresses claimed by two hosts.
    pub(super) conflicts: Conflicts,
    pub(super) restored: Restored,
    /// True if routes were added or moved since the last round began.
    pub(super) round_wanted: bool,
    /// Scratch memory: the path being computed.
    pub(super) path: Vec<Step>,
    /// The layer of `path`.
    pub(super) layer: Layer,
    /// Scratch memory: the current path of a route.
    pub(super) current: Vec<Step>,
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
            epoch: config.node.incarnation.number,
            number: 0,
            router,
            net: Network::new(config),
            flows: Flows::default(),
            dhcp,
            relay: config.dhcp.relay.clone().map(|relay| Relay::new(relay, server)),
            relay6: config.dhcpv6.clone().map(|relay| Relay6::new(relay, server)),
            leases6: Leases6::new(config.dhcp.leases_per_port_max),
            improving: None,
            backups: Backups::new(config.backups, heartbeat),
            drain: Drain::new(config.node.timers.drain_max()),
            hops_max,
            settle: heartbeat * 10,
            reunion_max: config.node.timers.reunion_max(),
            ageing: Ageing::new(config.node.timers.silence_max()),
            measure_every_ms,
            counters: ControllerCounters::default(),
            bounds: Bounds::default(),
            scans: Scans::default(),
            groups: Groups::default(),
            take_over: TakeOver::new(&config.node.timers),
            seeking: Seeking::default(),
            conflicts: Conflicts::default(),
            restored: Restored::default(),
            round_wanted: false,
            path: Vec::new(),
            layer: Layer::ZERO,
            current: Vec::new(),
        }
    }

    /// Returns the graph of switches.
    pub fn graph(&self) -> &Graph {
        self.net.graph()
    }

    /// Returns the host table.
    pub fn hosts(&self) -> &HostTable {
        &self.net.hosts()
    }

    /// Returns the flow registry.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns the address service.
    pub fn dhcp(&self) -> &DhcpServer {
        &self.dhcp
    }

    /// Returns the counters.
    pub fn counters(&self) -> ControllerCounters {
        let bond_mismatches = self.net.fabric().bonds().mismatches();
        ControllerCounters { bond_mismatches, ..self.counters }
    }

    /// Records the switch and port that the controller's own `port` leads to, or none. Sends
    /// nothing, because no flow passes through the controller.
    pub fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        self.net.fabric_mut().attached(port, peer);
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
        let first = self.net.graph().switch(index).version.is_none();
        if first {
            self.net.hosts_mut().heard(now, index);
        }
        let was_edge = self.net.fabric().has_hosts(index);
        let change = self.net.graph_mut().update(index, m.version, &m.ports, reverse);
        if let Some(every_ms) = self.measure_every_ms.filter(|_| first) {
            out.push(Effect::Command { to: from.node, item: Item::AskLoad { every_ms } });
        }
        self.changed(now, &change, out);
        if !was_edge && self.net.fabric().has_hosts(index) {
            self.ask_newcomer(now, from, out);
        }
    }

    /// Handles an item of a switch's reliable stream.
    pub fn item(&mut self, now: Time, from: Incarnation, item: Item, out: &mut Vec<Effect>) {
        let Some(switch) = self.admit(now, from, out) else {
            return;
        };
        match item {
            Item::HostSeen { port, mac, ips } => {
                let at = Place { switch, port };
                let learned = self.reported(now, at, mac, out);
                if learned == Learned::Full {
                    return self.too_many_hosts(now, at, out);
                }
                let (Learned::Here(host) | Learned::Moved(host)) = learned else {
                    return;
                };
                self.show(now, host);
                self.groups.host_changed(now, mac);
                self.take_over.host_seen(now);
                for ip in ips.into_iter().take(IPS_PER_HOST_MAX) {
                    self.claimed(now, host, ip, out);
                }
                if learned == Learned::Moved(host) {
                    self.migrate(host, out);
                    self.verify(now, host, out);
                }
                self.fulfil_found(now, out);
            }
            Item::HostGone { port, mac } => self.withdraw(now, Place { switch, port }, mac, out),
            Item::PortLoad { over_us, ports } => {
                let over = Span::from_micros(over_us);
                self.router.measured(self.net.graph(), switch, over, &ports);
                self.round_wanted = true;
                self.plan_round(now);
            }
            Item::RemoveRoute { port, destination, source, stamp } => {
                let key = RouteKey::to(destination).from_source(source);
                self.route_aged(Place { switch, port }, key, stamp);
            }
            Item::SetRoute { port, destination, source, stamp, route } => {
                let key = RouteKey::to(destination).from_source(source);
                self.inherited(now, Place { switch, port }, key, (route, stamp), out);
            }
            Item::BackupUsed { port, destination, source, stamp, route } => {
                let key = RouteKey::to(destination).from_source(source);
                self.backup_used(Place { switch, port }, key, (stamp, &route), out);
            }
            Item::GroupMember { port, mac, group, joined } => {
                self.group_member(now, (Place { switch, port }, mac), (group, joined));
            }
            Item::AskGroup { port, mac, group, wanted } => {
                self.group_asked((Place { switch, port }, mac), (group, wanted), out);
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
        Some(self.net.graph().switch(self.net.graph().index_of(switch)?).incarnation)
    }

    /// Handles expired timers. Call it at [`Controller::deadline`]; early or repeated calls are
    /// harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((place, mac)) = self.net.hosts_mut().run_out(now) {
            if let Some(ip) = self.net.hosts().remembered(place, mac) {
                self.query(place, mac, ip, out);
            }
            self.withdraw(now, place, mac, out);
        }
        while let Some(host) = self.net.hosts().verify_due(now) {
            self.verify(now, host, out);
        }
        self.settle(now, out);
        self.conflicts_due(now, out);
        self.links_run_out(now, out);
        self.age(now, out);
        self.take_over(now, out);
        self.improve(now, out);
        self.balance_bonds(now, out);
        self.plan_backups(now, out);
        self.drain(now, out);
        self.make_lists(now, out);
    }

    /// Returns when to call [`Controller::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let improving = self.improving.as_ref().map(|improving| improving.next);
        let (hosts, dhcp) = (self.net.hosts().deadline(), self.dhcp.deadline());
        let (ageing, take_over) = (self.ageing.deadline(), self.take_over.deadline());
        let (links, backups) = (self.net.graph().deadline(), self.backups_deadline());
        let all = [hosts, dhcp, ageing, take_over, improving, links, backups];
        let others =
            [self.groups.deadline(), self.drain.deadline(), self.net.fabric().bonds().deadline()];
        let others = others.into_iter().chain([self.conflicts.deadline()]);
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
        let index = match self.net.graph_mut().admit(from, now + self.reunion_max) {
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

    /// Assigns freed addresses to the hosts that wait for them, and queries hosts whose MAC address
    /// is at another port than their IP address.
    pub(super) fn settle(&mut self, now: Time, out: &mut Vec<Effect>) {
        let due = self.dhcp.take_due(now);
        for (ip, mac) in due.free {
            if let Some(host) = self.net.hosts().by_mac(mac) {
                self.own(now, host, IpAddr::V4(ip), out);
            }
        }
        for (place, mac, ip) in due.queries {
            self.net.hosts_mut().queried(now, mac, place);
            self.query(place, mac, IpAddr::V4(ip), out);
        }
    }

    pub(super) fn query(&self, place: Place, mac: MacAddr, ip: IpAddr, out: &mut Vec<Effect>) {
        if !self.net.queries(place.switch, mac) {
            return;
        }
        let to = self.net.fabric().node(place.switch);
        out.push(Effect::Command { to, item: Item::AskHost { port: place.port, mac, ip } });
    }

    /// Reports the location of a host to the address service.
    pub(super) fn show(&mut self, now: Time, host: HostIndex) {
        if let Some(host) = self.net.hosts().get(host) {
            self.dhcp.shown(
                now,
                host.mac,
                Some(self.net.fabric().first_port(host.place())),
                &host.ips,
            );
        }
    }

    pub(super) const fn stamp(&self, number: u64) -> Stamp {
        Stamp { epoch: self.epoch, number }
    }

    pub(super) const fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}
