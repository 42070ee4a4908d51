//! The controller as a node: it is attached to ports of switches, sends and receives Axon packets,
//! and is never a transit hop.

use super::chassis::{Arrival, Chassis, Refusals};
use super::effect::ControllerEffect;
use super::revoked::Revoked;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_controller::Controller;
use axon_controller::bounds::{COMMANDS_PER_SWITCH_MAX, LISTS_AHEAD_MAX};
use axon_controller::config::ControllerConfig;
use axon_controller::{Effect, Effects};
use axon_link::config::Timers;
use axon_link::discovery::Discovery;
use axon_link::effect::Effect as LinkEffect;
use axon_link::seal::Opened;
use axon_link::stream::Stream;
use axon_node::probe::ProbeReport;
use axon_node::telemetry::{PolicyTelemetry, RefusedSetting};
use axon_node::{
    Action, Awaited, Command, CommandError, Dataplane, Done, Drop, Input, Node, Note, PolicyChange,
    PortSetting, PortSnapshot, Refusal, Reply, Request, RequestId, Shortcuts, Snapshot, Stored,
};
use axon_wire::message::{ControllerPath, Item, Message, Role};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Time};

/// A complete controller, on any data plane.
pub struct ControllerNode<D> {
    chassis: Chassis<D, ControllerEffect>,
    controller: Controller,
    streams: BTreeMap<NodeId, Stream>,
    /// Streams that may have something to send.
    busy: BTreeSet<NodeId>,
    /// Switches that have yet to remove routes forbidden by a policy change.
    revoked: Revoked,
    /// Pending request for acknowledgement of all commands so far, with the number to return to the
    /// controller.
    drain: Option<(u64, Revoked)>,
    /// Deadlines of all streams, sorted.
    resends: BTreeSet<(Time, NodeId)>,
    timers: Timers,
    /// Number of unacknowledged commands at which a switch gets no new routes.
    commands_max: usize,
}

impl<D: Dataplane> ControllerNode<D> {
    /// Creates a controller with an empty state: no switches, no hosts, no flows.
    pub fn new(config: ControllerConfig, plane: D, now: Time) -> ControllerNode<D> {
        ControllerNode::restored(config, plane, now, &[])
    }

    /// Creates a controller with the stored hosts and leases of an earlier incarnation. They are
    /// provisional until their switches report.
    pub fn restored(
        config: ControllerConfig,
        plane: D,
        now: Time,
        stored: &[Stored],
    ) -> ControllerNode<D> {
        let mut chassis = Chassis::new(&config.node, plane, Role::Controller);
        let own = ControllerPath { controller: config.node.incarnation, hops: Hops::to_control() };
        chassis.discovery.advertise(now, Some(own), &mut chassis.effects);
        let mut controller = Controller::new(&config, chassis.has.hops_max());
        call(&mut controller, &mut chassis.effects, |all, out| all.restore(now, stored, out));
        ControllerNode {
            controller,
            chassis,
            streams: BTreeMap::new(),
            busy: BTreeSet::new(),
            revoked: Revoked::default(),
            drain: None,
            resends: BTreeSet::new(),
            timers: config.node.timers,
            commands_max: COMMANDS_PER_SWITCH_MAX,
        }
    }

    /// Returns the node and its incarnation.
    pub(crate) fn incarnation(&self) -> Incarnation {
        self.chassis.incarnation
    }

    /// Returns the data plane, read-only.
    pub fn plane(&self) -> &D {
        &self.chassis.plane
    }

    /// Returns the neighbours.
    pub fn discovery(&self) -> &Discovery {
        &self.chassis.discovery
    }

    /// Returns topology, hosts, flows and leases.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the counts of refused control messages.
    pub fn refusals(&self) -> &Refusals {
        &self.chassis.refusals
    }

    /// Returns the number of commands that switches have not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.streams.values().map(Stream::unacknowledged).sum()
    }

    /// Returns the port settings that the data plane has refused and that are still pending.
    pub fn refused_settings(&self) -> Vec<RefusedSetting> {
        self.chassis.settings.telemetry()
    }

    /// Returns how often the data plane has refused a setting.
    pub(crate) fn settings_refused(&self) -> u64 {
        self.chassis.settings.refusals()
    }

    /// Returns the probe plans of this incarnation, oldest first. Finished ones expire.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &ProbeReport> {
        self.chassis.prober.reports()
    }

    fn timeouts(&mut self, now: Time) {
        self.chassis.probe(now);
        self.chassis.dcbx_timeout(now);
        self.chassis.set_ports_again(now);
        let Chassis { discovery, effects, .. } = &mut self.chassis;
        if discovery.deadline().is_some_and(|at| at <= now) {
            discovery.timeout(now, effects);
        }
        if self.controller.deadline().is_some_and(|at| at <= now) {
            call(&mut self.controller, effects, |all, out| all.timeout(now, out));
        }
        for &(at, node) in &self.resends {
            if at > now {
                break;
            }
            self.busy.insert(node);
        }
    }

    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        loop {
            let mut round = self.chassis.take_actions();
            for action in round.drain(..) {
                match action {
                    Action::Punt { ingress, frame, punt, header_bytes } => {
                        let arrival =
                            self.chassis.arrival(now, ingress, frame, (punt, header_bytes), out);
                        self.arrival(now, arrival, out);
                    }
                    // A controller has no routes of its own.
                    Action::RouteChanged(_) => {}
                    Action::Lost => self.resynchronise(now),
                    action => out.push(action),
                }
            }
            self.chassis.keep_for_next_round(round);
            call(&mut self.controller, &mut self.chassis.effects, Controller::keep);
            for effect in core::mem::take(&mut self.chassis.effects) {
                self.apply(now, effect, out);
            }
            self.acknowledged(now);
            self.flush(now);
            if self.chassis.actions.is_empty() && self.chassis.effects.is_empty() {
                return;
            }
        }
    }

    /// Checks whether all switches have acknowledged the commands that the controller waits for. A
    /// switch without links is skipped: none of its frames leaves it.
    fn acknowledged(&mut self, now: Time) {
        let Some((number, waits)) = &self.drain else { return };
        let graph = self.controller.graph();
        if !waits.outstanding(&self.streams).any(|node| graph.has_links(node)) {
            self.controller.acknowledged(now, *number);
            self.drain = None;
        }
    }

    /// Sends the pending segments of all streams and keeps their deadlines sorted.
    fn flush(&mut self, now: Time) {
        for node in core::mem::take(&mut self.busy) {
            let Some(stream) = self.streams.get_mut(&node) else {
                continue;
            };
            if let Some(at) = stream.deadline() {
                self.resends.remove(&(at, node));
            }
            let (to, path) = (stream.peer(), self.controller.path_to(node));
            while let Some((vlan, segment)) = stream.poll(now) {
                if let Some(hops) = &path {
                    self.chassis.send_routed(now, hops, to, (vlan, &Message::Segment(segment)));
                }
            }
            if let Some(at) = stream.deadline() {
                self.resends.insert((at, node));
            }
        }
    }

    fn arrival(&mut self, now: Time, arrival: Arrival, out: &mut Vec<Action>) {
        match arrival {
            Arrival::HostFrame { port, frame } => {
                out.push(self.chassis.ended(port, Drop::Refused, frame));
            }
            Arrival::Message { ingress, reverse, opened } => {
                if let Err(refusal) = self.message(now, reverse, opened) {
                    self.chassis.refuse(ingress, refusal, out);
                }
            }
            Arrival::Done => {}
        }
    }

    /// Resynchronises a data plane that has lost the kinds of its ports, by setting them all again.
    fn resynchronise(&mut self, now: Time) {
        let discovery = &self.chassis.discovery;
        let port = |port| PortSnapshot { kind: discovery.kind(port), ..PortSnapshot::default() };
        let ports = (0..self.chassis.has.ports).map(PortNo).map(port).collect();
        self.chassis.settings_resynchronised(now, &Snapshot { ports });
    }

    fn message(&mut self, now: Time, reverse: Hops, opened: Opened) -> Result<(), Refusal> {
        let Opened { from, vlan, message, .. } = opened;
        let effects = &mut self.chassis.effects;
        if let Message::ControllerHello(hello) = message {
            if self.streams.get(&from.node).is_none_or(|stream| stream.peer() != from) {
                self.forget_stream(from.node);
                self.controller.backlog(from.node, false);
                self.streams.insert(from.node, Stream::new(from, self.timers.retry));
            }
            let effects = &mut self.chassis.effects;
            call(&mut self.controller, effects, |all, out| {
                all.controller_hello(now, from, reverse, hello, out);
            });
            return Ok(());
        }
        // All other messages are for switches that have sent a Controller Hello.
        let stream = self.streams.get_mut(&from.node).filter(|stream| stream.peer() == from);
        let stream = stream.ok_or(Refusal::Unexpected)?;
        match message {
            Message::Segment(segment) => {
                if let Some(at) = stream.deadline() {
                    self.resends.remove(&(at, from.node));
                }
                let was_full = stream.unacknowledged() >= self.commands_max;
                let items = stream.receive(now, segment);
                if was_full && stream.unacknowledged() < self.commands_max {
                    self.controller.backlog(from.node, false);
                }
                call(&mut self.controller, effects, |all, out| {
                    items.into_iter().for_each(|item| all.item(now, from, (vlan, item), out));
                });
                if let Some(at) = stream.deadline() {
                    self.resends.insert((at, from.node));
                }
                self.busy.insert(from.node);
            }
            message => {
                let request = (vlan, message);
                if !call(&mut self.controller, effects, |all, out| {
                    all.request(now, from, request, out)
                }) {
                    return Err(Refusal::Misplaced);
                }
            }
        }
        Ok(())
    }

    fn forget_stream(&mut self, node: NodeId) {
        if let Some(at) = self.streams.remove(&node).and_then(|stream| stream.deadline()) {
            self.resends.remove(&(at, node));
        }
    }

    fn apply(&mut self, now: Time, effect: ControllerEffect, out: &mut Vec<Action>) {
        let chassis = &mut self.chassis;
        match effect {
            ControllerEffect::Link(effect) => self.apply_link(now, effect, out),
            ControllerEffect::Controller(vlan, effect) => match effect {
                Effect::Routed { hops, to, mut message } => {
                    if let Message::ArpTarget(target) = &mut message {
                        chassis.grant(vlan, target);
                    }
                    chassis.send_routed(now, &hops, to, (vlan, &message));
                }
                Effect::Command { to, item } => self.command(now, to, (vlan, item)),
                Effect::Store(change) => out.push(Action::Store(Box::new(change))),
                Effect::AwaitAcknowledged { number } => {
                    let (mut waits, all) = (Revoked::default(), self.streams.keys());
                    waits.enter(&all.copied().collect::<Vec<_>>(), &self.streams);
                    self.drain = Some((number, waits));
                }
                Effect::Note(note) => out.push(Action::Note(note)),
            },
        }
    }

    fn apply_link(&mut self, now: Time, effect: LinkEffect, out: &mut Vec<Action>) {
        let chassis = &mut self.chassis;
        match effect {
            LinkEffect::Link { port, to, message } => chassis.send_link(now, port, to, &message),
            LinkEffect::Routed { hops, to, message } => {
                chassis.send_routed(now, &hops, to, (VlanId::NONE, &message));
            }
            LinkEffect::Echo { port, hops, number } => chassis.send_echo(now, port, &hops, number),
            LinkEffect::PortKind { port, kind } => {
                chassis.set_port(now, port, PortSetting::Kind(kind));
            }
            LinkEffect::Refuse { port, refusal } => chassis.refuse(port, refusal, out),
            LinkEffect::Note(note) => {
                if let Note::NeighbourUp { port, .. } | Note::NeighbourDown { port, .. } = note {
                    self.attachment(port);
                }
                out.push(Action::Note(note));
            }
            // Its switches report lost links; it has neither backup routes nor bonds of its own.
            LinkEffect::LinkLost { .. } | LinkEffect::LinkDown { .. } => {}
            LinkEffect::Member { .. } => {}
        }
    }

    /// Puts a command on the stream to its switch. A host query is refused if too many commands are
    /// unacknowledged. Other commands never are: meanwhile the controller adds no state that needs
    /// a command (see [`bounds`](axon_controller::bounds)).
    fn command(&mut self, now: Time, to: NodeId, (vlan, item): (VlanId, Item)) {
        let Some(stream) = self.streams.get_mut(&to) else {
            return;
        };
        let is_query = matches!(item, Item::AskHost { .. });
        if is_query && !stream.has_room_for((vlan, &item), self.commands_max) {
            return call(&mut self.controller, &mut self.chassis.effects, |all, out| {
                all.query_refused(now, to, out);
            });
        }
        if let Item::GroupHosts { port, mac, group, .. } = item
            && !stream.has_room_for((vlan, &item), LISTS_AHEAD_MAX)
        {
            return self.controller.list_refused(now, (vlan, to), (port, mac, group));
        }
        stream.push(vlan, item);
        self.busy.insert(to);
        if stream.unacknowledged() >= self.commands_max {
            self.controller.backlog(to, true);
        }
    }

    /// Changes the policy of which hosts may reach which, and replies once the removals are on
    /// their streams.
    fn change_policy(
        &mut self,
        now: Time,
        (id, change): (RequestId, PolicyChange),
        out: &mut Vec<Action>,
    ) {
        let changed = call(&mut self.controller, &mut self.chassis.effects, |all, out| {
            all.change_policy(now, change, out)
        });
        for effect in core::mem::take(&mut self.chassis.effects) {
            self.apply(now, effect, out);
        }
        if let Ok(done) = &changed {
            self.revoked.enter(&done.switches, &self.streams);
        }
        let result = changed.map(Done::Policy).map_err(CommandError::Policy);
        out.push(Action::Reply(Reply { id, result }));
    }

    /// Returns the policy and its outstanding removals.
    pub fn policy_telemetry(&self) -> PolicyTelemetry {
        let outstanding = self.revoked.outstanding(&self.streams).collect();
        PolicyTelemetry { outstanding, ..self.controller.policy_telemetry() }
    }

    /// Reports to the controller the switch on one of its own ports.
    fn attachment(&mut self, port: PortNo) {
        let peer = self
            .chassis
            .discovery
            .neighbour(port)
            .filter(|neighbour| neighbour.role == Role::Switch)
            .map(|neighbour| (neighbour.incarnation.node, neighbour.port));
        self.controller.attached(port, peer);
    }
}

/// Calls the controller, and collects its effects.
fn call<R>(
    controller: &mut Controller,
    effects: &mut Vec<ControllerEffect>,
    call: impl FnOnce(&mut Controller, &mut Effects) -> R,
) -> R {
    let mut out = Vec::new();
    let result = call(controller, &mut out);
    effects.extend(out.into_iter().map(Into::into));
    result
}

impl<D: Dataplane> Node for ControllerNode<D> {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Command(Command { id, request: Request::Policy(change) }) => {
                self.chassis.feed(now, Input::Timeout);
                self.change_policy(now, (id, change), out);
            }
            input => self.chassis.feed(now, input),
        }
        self.timeouts(now);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let resend = self.resends.first().map(|&(at, _)| at);
        [self.chassis.deadline(), self.controller.deadline(), resend].into_iter().flatten().min()
    }
}

impl<D: Dataplane + Shortcuts> Shortcuts for ControllerNode<D> {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.chassis.plane.awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_controller::config::DhcpConfig;
    use axon_controller::policy::Policy;
    use axon_controller::router::RouterKind;
    use axon_link::config::{NodeConfig, ServerIdentity};
    use axon_plane::{Plane, PlaneConfig};
    use axon_wire::message::{ArpRequest, ControllerHello, Peer, PortState, Segment, Target};
    use axon_wire::{MacAddr, Span};
    use core::net::Ipv4Addr;

    /// Number of unacknowledged commands at which a switch gets no new routes.
    const COMMANDS: usize = 4;

    fn mac(host: u16) -> MacAddr {
        let [a, b] = host.to_be_bytes();
        MacAddr([2, 0, 0, 0, a, b])
    }

    fn incarnation(node: u64, number: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number }
    }

    /// A controller and switches 1 and 2, connected by their ports 0. Switch 1 acknowledges nothing
    /// unless the test calls for it.
    struct Scene {
        node: ControllerNode<Plane>,
        now: Time,
        notes: Vec<Note>,
        /// Number of the next item of each switch.
        next: [u64; 2],
        /// Number of the next item that switch 1 expects.
        expected: u64,
    }

    impl Scene {
        fn new() -> Scene {
            let server = mac(0xfffe);
            let config = ControllerConfig {
                node: NodeConfig {
                    incarnation: incarnation(9, 1),
                    mac: server,
                    keys: [0; 32].into(),
                    seed: 1,
                    timers: Timers::default(),
                    server: ServerIdentity { mac: server, ip: Ipv4Addr::new(10, 0, 0, 254) },
                },
                dhcp: DhcpConfig {
                    prefix_len: 24,
                    pool_first: Ipv4Addr::new(10, 0, 0, 100),
                    pool_last: Ipv4Addr::new(10, 0, 0, 120),
                    lease: Span::from_secs(3600),
                    leases_per_port_max: 16,
                    reservations: BTreeMap::new(),
                    router: None,
                    dns: Vec::new(),
                    domain: None,
                    mtu: None,
                    clients: BTreeMap::new(),
                    relay: None,
                },
                router: RouterKind::default(),
                layers: 1,
                policy: Policy::default(),
                by_source: Default::default(),
                backups: true,
                dhcpv6: None,
                uplinks: Vec::new(),
                vlans: Default::default(),
                bonds: Vec::new(),
            };
            let plane = Plane::new(PlaneConfig::with_ports(1, server));
            let mut node = ControllerNode::new(config, plane, Time::ZERO);
            node.commands_max = COMMANDS;
            let (next, expected) = ([0; 2], 0);
            let mut scene = Scene { node, now: Time::ZERO, notes: Vec::new(), next, expected };
            scene.hello(1, 1);
            scene.hello(2, 1);
            scene
        }

        fn message(&mut self, from: Incarnation, message: Message) {
            let (reverse, mut out) = (Hops::from([0, PortNo::CONTROL.0]), Vec::new());
            let opened = Opened { from, vlan: VlanId::NONE, message, addressed: true };
            assert_eq!(self.node.message(self.now, reverse, opened), Ok(()));
            self.node.settle(self.now, &mut out);
            let note = |action: Action| match action {
                Action::Note(note) => Some(note),
                _ => None,
            };
            self.notes.extend(out.into_iter().filter_map(note));
        }

        fn hello(&mut self, node: u64, number: u64) {
            let peer = Peer::Axon { node: NodeId(3 - node), port: PortNo(0), role: Role::Switch };
            let ports = [PortState { port: PortNo(0), peer }].into();
            let hello = ControllerHello { version: 1, nonce: 0, ports };
            self.message(incarnation(node, number), Message::ControllerHello(hello));
        }

        fn item(&mut self, node: u64, item: Item) {
            let next = &mut self.next[node as usize - 1];
            let segment = Segment { first: *next, ack: 0, items: [item].into() };
            *next += 1;
            self.message(incarnation(node, 1), Message::Segment(segment));
        }

        /// Reports a host at port 1 of a switch.
        fn seen(&mut self, node: u64, host: u16) {
            let ips = [Ipv4Addr::from(0x0a01_0000 + u32::from(host)).into()].into();
            self.item(node, Item::HostSeen { port: PortNo(1), mac: mac(host), ips });
        }

        fn gone(&mut self, node: u64, host: u16) {
            self.item(node, Item::HostGone { port: PortNo(1), mac: mac(host) });
        }

        /// Returns whether a host's request for another host is answered.
        fn ask(&mut self, node: u64, host: u16, target: u16) -> bool {
            let answered = self.node.controller().counters().arp_answered;
            let (port, source_mac, target) = (PortNo(1), mac(host), Target::Mac(mac(target)));
            let source_ip = None;
            let request = ArpRequest { id: 1, port, source_mac, source_ip, target, hint: None };
            self.message(incarnation(node, 1), Message::ArpRequest(request));
            self.node.controller().counters().arp_answered > answered
        }

        /// Acknowledges all commands at switch 1 as they arrive; returns them.
        fn acknowledge(&mut self) -> Vec<Item> {
            let mut commands = Vec::new();
            while self.node.streams[&NodeId(1)].unacknowledged() > 0 {
                // The retry interval has passed.
                self.now += Span::from_secs(10);
                let stream = self.node.streams.get_mut(&NodeId(1)).unwrap();
                let (_, segment) = stream.poll(self.now).unwrap();
                assert_eq!(segment.first, self.expected);
                self.expected += segment.items.len() as u64;
                commands.extend(segment.items);
                let (first, ack, items) = (self.next[0], self.expected, Vec::new());
                let segment = Message::Segment(Segment { first, ack, items });
                self.message(incarnation(1, 1), segment);
            }
            commands
        }

        fn unacknowledged(&self) -> usize {
            self.node.streams[&NodeId(1)].unacknowledged()
        }

        fn over_bound(&self) -> u64 {
            self.node.controller().counters().over_bound
        }
    }

    #[test]
    fn a_switch_that_acknowledges_late_gets_every_removal_and_no_new_route_until_then() {
        let mut scene = Scene::new();
        scene.seen(1, 100);
        for host in 0..10 {
            scene.seen(2, host);
            assert!(scene.ask(2, host, 100));
        }
        // Each had a route from switch 1, which has to remove it.
        (0..10).for_each(|host| scene.gone(2, host));
        assert_eq!((scene.unacknowledged(), scene.over_bound()), (10, 0), "more than {COMMANDS}");
        // No route that would need a removal is made there, for any request.
        scene.seen(2, 20);
        assert!(!scene.ask(2, 20, 100) && !scene.ask(1, 100, 20));
        let hops = Hops::from([0, 1]);
        let route = axon_wire::Route { hops, ..axon_wire::Route::from([0]) };
        let stamp = axon_wire::message::Stamp { epoch: 0, number: 1 };
        let (port, destination) = (PortNo(1), mac(20));
        scene.item(1, Item::SetRoute { port, destination, source: None, stamp, route });
        assert_eq!(scene.over_bound(), 3);
        let note = Note::SwitchOverBound { node: NodeId(1), port: None };
        assert_eq!(scene.notes.iter().filter(|&other| *other == note).count(), 1);
        // Other switches are not affected.
        scene.seen(2, 21);
        assert!(scene.ask(2, 20, 21));
        let removed = |item| match item {
            Item::RemoveRoute { destination, .. } => destination,
            other => panic!("{other:?}"),
        };
        let removed: Vec<_> = scene.acknowledge().into_iter().map(removed).collect();
        assert_eq!(removed, (0..10).map(mac).collect::<Vec<_>>());
        assert!(scene.ask(2, 20, 100) && scene.ask(1, 100, 21));
        assert_eq!(scene.over_bound(), 3);
    }

    #[test]
    fn a_switch_that_acknowledges_nothing_causes_no_more_commands_than_its_bound_and_its_routes() {
        let mut scene = Scene::new();
        scene.seen(1, 100);
        for host in 0..100 {
            scene.seen(2, host);
            scene.ask(2, host, 100);
            scene.gone(2, host);
            // The switch may be queried for its host repeatedly.
            scene.seen(2, 100);
            scene.gone(2, 100);
            scene.now += Span::from_secs(2);
        }
        assert!((COMMANDS..=COMMANDS + 1).contains(&scene.unacknowledged()));
        assert!(scene.over_bound() >= 90);
        // A new incarnation of the switch has an empty table and nothing to acknowledge.
        scene.hello(1, 2);
        scene.seen(2, 101);
        let refused = scene.over_bound();
        let seen = Item::HostSeen { port: PortNo(1), mac: mac(102), ips: Vec::new() };
        let segment = Segment { first: 0, ack: 0, items: [seen].into() };
        scene.message(incarnation(1, 2), Message::Segment(segment));
        assert!(scene.ask(2, 101, 102));
        assert_eq!(scene.over_bound(), refused);
    }
}
