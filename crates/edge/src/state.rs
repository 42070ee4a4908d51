//! State of a switch's edge, and the calls of its node.

use super::advertising::Advertising;
use super::bond_ports::Members;
use super::context::{Cx, Timer};
use super::flows::{Flow, Flows, Verdict};
use super::given::mixed;
use super::groups::Groups;
use super::hosts::{Host, Hosts};
use super::places::{Found, Key};
use super::placing::Placing;
use super::queries::{Query, QueryKey, Recall};
use super::setups::Setups;
use super::sought::SoughtHere;
use crate::config::EdgeConfig;
use crate::config::EdgeServices;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::Bucket;
use axon_link::config::ServerIdentity;
use axon_link::effect::Effect;
use axon_node::agenda::Agenda;
use axon_node::telemetry::{EdgeCounters, EdgeDebts};
use axon_node::{Capabilities, Drop, PortView, RouteAnswer, RouteKey, Snapshot};
use axon_wire::host_frame;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{ArpReply, ArpTarget, HostFrame, Item, Stamp};
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use core::net::IpAddr;

/// Minimum interval of the edge, whatever is configured.
const INTERVAL_MIN: Span = Span::from_millis(1);

/// Edge of one switch. It appends its requests to `out`.
#[derive(Clone, Debug)]
pub struct Edge {
    pub(super) node: NodeId,
    pub(super) mac: MacAddr,
    pub(super) server: ServerIdentity,
    pub(super) retry: Span,
    pub(super) arp_wait: Span,
    pub(super) host_probe: Span,
    pub(super) host_probes_max: u32,
    pub(super) frame_bytes_max: usize,
    /// Controller whose decisions are in force, even while it is unreachable.
    pub(super) controller: Option<Incarnation>,
    pub(super) reachable: bool,
    /// Since when the controller is unreachable, if it was reachable before.
    unreachable_since: Option<Time>,
    /// Time without the controller after which all hosts are reported to it again.
    report_again_after: Span,
    /// Time for which routes without a controller's decision are kept.
    pub(super) inherited_max: Span,
    /// Time when such routes are removed.
    pub(super) inherited_until: Option<Time>,
    pub(super) hosts: Hosts,
    /// Ports that belong to bonds.
    pub(super) members: Members,
    pub(super) flows: Flows,
    pub(super) setups: Setups,
    pub(super) queries: BTreeMap<QueryKey, Query>,
    /// Routes that the data plane had at the start, at ports of unknown kind, by their address in
    /// its table or route memory.
    pub(super) found: BTreeMap<Key, Found>,
    pub(super) recalls: BTreeMap<(PortNo, MacAddr), Recall>,
    pub(super) heartbeat: Span,
    pub(super) agenda: Agenda<Timer>,
    /// Bucket for queries about addresses that the controller searches for.
    pub(super) questions: Bucket,
    /// Addresses that the controller searches for.
    pub(super) sought: SoughtHere,
    /// Buckets for answers to echo requests of the hosts of each port.
    pub(super) pings: BTreeMap<PortNo, Bucket>,
    /// Buckets for answers to information requests (DHCPv6) of the hosts of each port.
    pub(super) informed: BTreeMap<PortNo, Bucket>,
    pub(super) groups: Groups,
    /// Services for the configuration of hosts.
    pub(super) services: EdgeServices,
    pub(super) advertising: Advertising,
    pub(super) counters: EdgeCounters,
}

/// Result for a host's frame without a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The frame was ARP or DHCP and has been handled.
    Served,
    /// Forward the frame on this route, which is kept in software.
    Forward(Route),
    /// Forward the frame on this route, which is kept in software, with this destination instead of
    /// the masqueraded one.
    Readdress(Route, MacAddr),
    /// Queue the frame until there is a route to this destination.
    Wait(MacAddr),
    /// Copy the frame: each copy is forwarded, or queued.
    Copies(Vec<Fate>),
}

/// Returns a seed that is unique to this incarnation of this switch.
fn incarnation_seed(config: &EdgeConfig) -> u64 {
    let Incarnation { node, number } = config.node.incarnation;
    config.node.seed ^ mixed(node.0 ^ mixed(number))
}

fn uplinks(config: &EdgeConfig) -> BTreeSet<PortNo> {
    let policies = config.ports.iter().zip(0..);
    policies.filter(|(policy, _)| policy.uplink).map(|(_, port)| PortNo(port)).collect()
}

impl Edge {
    /// Returns whether a port leads to an external network.
    pub(super) fn is_uplink(&self, port: PortNo) -> bool {
        self.hosts.uplinks.contains(&port)
    }

    /// Creates the edge of a switch whose ports have no carrier and that has no controller yet, on
    /// a data plane with these capabilities.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub fn new(config: &EdgeConfig, has: &Capabilities) -> Edge {
        let node = &config.node;
        Edge {
            node: node.incarnation.node,
            mac: node.mac,
            server: node.server,
            retry: node.timers.retry.max(INTERVAL_MIN),
            arp_wait: node.timers.arp_wait.max(INTERVAL_MIN),
            host_probe: node.timers.host_probe.max(INTERVAL_MIN),
            host_probes_max: node.timers.host_probes_max,
            frame_bytes_max: has.frame_bytes_max,
            controller: None,
            reachable: false,
            unreachable_since: None,
            report_again_after: Span::from_ticks(node.timers.silence_max().ticks() / 2),
            inherited_max: node.timers.inherited_max(),
            inherited_until: None,
            hosts: Hosts::new(config.hosts_per_port_max, uplinks(config)),
            members: Members::default(),
            flows: Flows::new(Placing::new(has, incarnation_seed(config))),
            setups: Setups::new(),
            queries: BTreeMap::new(),
            found: BTreeMap::new(),
            recalls: BTreeMap::new(),
            heartbeat: node.timers.heartbeat,
            agenda: Agenda::new(),
            questions: Bucket::default(),
            sought: SoughtHere::default(),
            pings: BTreeMap::new(),
            informed: BTreeMap::new(),
            groups: Groups::new(config.groups),
            services: config.services.clone(),
            advertising: Advertising::default(),
            counters: EdgeCounters::default(),
        }
    }

    /// Handles a host's frame without Axon header that had no route.
    ///
    /// Queued frames leave with [`Effect::Release`] or are dropped with [`Effect::Abandon`].
    ///
    /// # Errors
    /// The drop reason, if the frame is dropped now.
    pub fn host_frame(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) -> Result<Fate, Drop> {
        self.serve(&mut Cx { now, ports, out }, port, frame)
    }

    /// Handles phase II of Axon-ARP: the controller looks up a host of this switch.
    pub fn arp_target(
        &mut self,
        now: Time,
        m: ArpTarget,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        self.phase_two(&mut Cx { now, ports, out }, m);
    }

    /// Handles phase IV of Axon-ARP: the target switch's answer.
    pub fn arp_reply(
        &mut self,
        now: Time,
        m: ArpReply,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        self.phase_four(&mut Cx { now, ports, out }, &m);
    }

    /// Handles a command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub fn item(&mut self, now: Time, item: Item, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, ports, out };
        match item {
            Item::SetRoute { port, destination, source, stamp, route }
                if self.is_current(stamp) =>
            {
                let key = (port, RouteKey::to(destination).from_source(source));
                match self.set_route(cx, key, stamp, &route, None) {
                    Verdict::Removed | Verdict::Unusable => self.counters.messages_ignored += 1,
                    _ => self.route_ready(cx, key, &route),
                }
                self.flows.promote(cx, port);
            }
            Item::RemoveRoute { port, destination, source, stamp } if self.is_current(stamp) => {
                let key = (port, RouteKey::to(destination).from_source(source));
                self.flows.remove(cx, key, Some(stamp));
                self.flows.promote(cx, port);
            }
            Item::SetBackup { port, destination, source, primary, backup } => {
                let key = (port, RouteKey::to(destination).from_source(source));
                self.set_backup(cx, key, primary, backup);
            }
            Item::AskHost { port, mac, ip } => self.recall(cx, port, mac, ip),
            // Handled by the node, which runs LACP.
            Item::SelectMember { .. } => {}
            Item::GroupHosts { port, mac, group, first, more, hosts } => {
                self.group_hosts(cx, (port, (mac, group)), (first, more), hosts);
            }
            _ => self.counters.messages_ignored += 1,
        }
    }

    /// Sends a frame of the controller, a DHCP reply, to a host. The host's address is learned from
    /// a DHCP acknowledgement.
    pub fn host_frame_out(
        &mut self,
        now: Time,
        m: HostFrame,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let HostFrame { port, frame } = m;
        let sane = (ETHERNET_BYTES..=self.frame_bytes_max).contains(&frame.len());
        if !sane || !ports.is_host(port) {
            self.counters.messages_ignored += 1;
            return;
        }
        if let Some((mac, ip)) = host_frame::dhcp_ack(&frame)
            && self.hosts.is_on(mac, port)
        {
            self.learn_ip(now, mac, ip.into(), out);
        }
        out.push(Effect::Host { port, frame });
    }

    /// Handles the data plane's answer to a route change.
    pub fn route_changed(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        self.counters.changes_refused += u64::from(answer.result.is_err());
        if let Some((port, at)) = self.flows.answered(&mut Cx { now, ports, out }, answer) {
            self.agenda.set(Timer::Place(port), at);
        }
    }

    /// Returns all routes that the data plane should have: the ingress port and the address in its
    /// table or route memory, the destination, the route.
    pub fn wanted_routes(&self) -> impl Iterator<Item = ((PortNo, RouteKey), MacAddr, &Route)> {
        self.flows.wanted()
    }

    /// Returns the masqueraded address of a destination for hosts of `port`, if it has one.
    pub fn masquerade_of(&self, port: PortNo, destination: MacAddr) -> Option<MacAddr> {
        let (_, address) = self.flows.placing.address((port, destination.into()));
        Some(address.destination).filter(|mac| *mac != destination)
    }

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state.
    pub fn resynchronised(
        &mut self,
        now: Time,
        has: &Snapshot,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        for (port, at) in self.flows.resynchronised(&mut Cx { now, ports, out }, has) {
            self.agenda.set(Timer::Place(port), at);
        }
    }

    /// Handles a change of a port's kind or carrier, shown by `ports`. Hosts at a port that is no
    /// longer a host port are removed with their flows.
    pub fn port_changed(
        &mut self,
        now: Time,
        port: PortNo,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, ports, out };
        if ports.kind(port).is_none() {
            return;
        }
        self.adopt(cx, port);
        self.recall_port(cx, port);
        self.sought_at(cx, port);
        self.advertise_at(cx, port);
        if ports.is_host(port) {
            return;
        }
        let macs: Vec<_> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, mac);
        }
        self.flows.clear_port(cx, port);
        self.flows.placing.clear(port);
    }

    /// Handles a change of the controller; `None` if it is unreachable.
    ///
    /// While it is unreachable, flows and routes are kept. When the same incarnation is back, the
    /// edge reports changes; after half of [`Timers::silence_max`](axon_link::config::Timers)
    /// without it, all hosts, because it may have removed them. A new incarnation has none of the
    /// old decisions: all hosts and routes are reported, and the routes are kept until it has
    /// decided; see `inherited.rs`. In both cases open requests are repeated at once.
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Incarnation>,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, ports, out };
        let was_reachable = core::mem::replace(&mut self.reachable, controller.is_some());
        let Some(incarnation) = controller else {
            self.unreachable_since.get_or_insert(now);
            return;
        };
        let lost = self.unreachable_since.take();
        let new_incarnation = self.controller.replace(incarnation) != Some(incarnation);
        if !new_incarnation && was_reachable {
            return;
        }
        if new_incarnation {
            self.end_all_queries(cx);
        }
        let forgotten = lost.is_some_and(|since| cx.now.since(since) >= self.report_again_after);
        if forgotten {
            self.forget_reports();
        }
        self.report_bond_ports(cx.out);
        self.report_all(cx.out, new_incarnation);
        self.report_groups(cx.out, forgotten || new_incarnation);
        if new_incarnation {
            self.inherit(cx);
        }
        self.ask_again(cx);
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, ports, out };
        self.flows.expire(now);
        let (again, count) = self.flows.give_up_overdue(cx);
        self.counters.changes_unanswered += count;
        for (port, at) in again {
            self.agenda.set(Timer::Place(port), at);
        }
        if self.flows.placing.take_lost(now) {
            cx.out.push(Effect::Resynchronise);
        }
        if self.inherited_until.is_some_and(|until| until <= now) {
            self.inherited_due(cx);
        }
        let due: Vec<_> = core::iter::from_fn(|| self.agenda.pop_due(now)).collect();
        for timer in due {
            match timer {
                Timer::Host(mac) => self.probe_host(cx, mac),
                Timer::Setup(port, target, host) => self.setup_due(cx, (port, target, host)),
                Timer::Recall(port, mac) => self.recall_due(cx, port, mac),
                Timer::Place(port) => self.flows.try_again(cx, port),
                Timer::Sought(port) => self.sought_due(cx, port),
                Timer::Groups(port) => self.groups_due(cx, port),
                Timer::Advertise(port) => self.advertise_due(cx, port),
                Timer::Failed(port, target, host) => self.forget_failure((port, target, host)),
                Timer::Query(port, target, source) => {
                    self.query_due(cx, (port, target, source));
                }
            }
        }
    }

    /// Returns when to call [`Edge::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let expiry = self.flows.next_expiry();
        let answers = self.flows.placing.deadline();
        [self.agenda.next(), expiry, self.inherited_until, answers].into_iter().flatten().min()
    }

    /// Returns all local hosts, sorted by MAC address.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.hosts.all()
    }

    /// Returns all flows of local hosts: ingress port, destination, route.
    pub fn flows(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Flow)> {
        self.flows.all().map(|((port, key), flow)| (port, key.destination, flow))
    }

    /// Returns all flows of local hosts, with the source of those for one host.
    pub fn keyed_flows(&self) -> impl Iterator<Item = ((PortNo, RouteKey), &Flow)> {
        self.flows.all()
    }

    /// Returns the number of route requests to the controller in flight.
    pub fn setups(&self) -> usize {
        self.setups.count()
    }

    /// Returns the counters of this edge since its start.
    pub fn counters(&self) -> EdgeCounters {
        EdgeCounters {
            answers_lost: self.flows.placing.losses,
            macs_masqueraded: self.flows.placing.given_count() as u64,
            ..self.counters
        }
    }

    /// Returns the outstanding answers of the data plane.
    pub fn debts(&self) -> EdgeDebts {
        self.flows.placing.debts()
    }

    /// Returns whether a host can have this MAC address: it is neither a group's nor the fabric's
    /// own.
    pub(super) fn is_host_mac(&self, mac: MacAddr) -> bool {
        mac.is_unicast() && mac != self.server.mac && mac != self.mac
    }

    /// Returns whether the stamp is of the current controller.
    pub(super) fn is_current(&self, stamp: Stamp) -> bool {
        self.controller.is_some_and(|incarnation| incarnation.number == stamp.epoch)
    }

    /// Sets a route. A port without hosts gets none, and no route leads to the control plane.
    pub(super) fn set_route(
        &mut self,
        cx: &mut Cx,
        key: Key,
        stamp: Stamp,
        route: &Route,
        ip: Option<IpAddr>,
    ) -> Verdict {
        if self.hosts.count_on(key.0) == 0 || !self.is_host_mac(key.1.destination) {
            if cx.ports.is_host(key.0) {
                self.flows.remove(cx, key, Some(stamp));
            }
            return Verdict::Unusable;
        }
        self.evade(cx, key.0, key.1.destination);
        let verdict = self.flows.set(cx, key, stamp, route, ip);
        // The controller may have decided before it received the loss of a link.
        self.use_backup(cx, key);
        verdict
    }
}
