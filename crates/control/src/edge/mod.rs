//! The edge: how hosts and the fabric meet at a switch (paper 001 §4.2.2 and §4.2.3).
//!
//! The data plane hands over every host frame without a valid route. The edge learns from it
//! who is where, and then:
//!
//! - ARP, broadcast or unicast, is never passed on. For an existing flow the answer is known;
//!   otherwise Axon-ARP (`setup`, `arrival`) asks the controller, whose
//!   request reaches the target switch (`target`), which asks its host and answers. Four
//!   phases, and each switch reserves memory before it asks.
//! - DHCP goes to the controller.
//! - A unicast frame waits while a route for its MAC is sought, or takes a route that only
//!   software has.
//! - Other broadcast and multicast ends here.
//!
//! Local hosts with an address are probed; one that is silent too long takes its flows along.
//! Everything that a host can make grow is bounded. Nothing here depends on the order of
//! messages: see `flows`.

mod arrival;
mod flows;
mod hosts;
mod intercept;
mod places;
mod placing;
mod recall;
mod setup;
mod target;

#[cfg(test)]
mod testing;

pub use flows::{Flow, Placement};
pub use hosts::Host;

use crate::config::{ServerIdentity, SwitchConfig};
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_node::telemetry::EdgeCounters;
use axon_node::{Capabilities, Drop, PortView, RouteAnswer, Snapshot};
use axon_wire::host_frame;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{ArpReply, ArpTarget, HostFrame, Item, Stamp, Target};
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use flows::{Flows, Verdict};
use hosts::Hosts;
use placing::Placing;
use setup::Setups;

/// The shortest interval that the edge works with, whatever it is configured to.
const INTERVAL_MIN: Span = Span::from_millis(1);

/// The edge of one switch. What it wants done it appends to `out`.
#[derive(Debug)]
pub struct Edge {
    node: NodeId,
    mac: MacAddr,
    server: ServerIdentity,
    retry: Span,
    arp_wait: Span,
    host_probe: Span,
    host_probes_max: u32,
    frame_bytes_max: usize,
    /// The controller whose decisions hold, even while there is no way to it.
    controller: Option<Incarnation>,
    reachable: bool,
    hosts: Hosts,
    flows: Flows,
    setups: Setups,
    askings: BTreeMap<target::Key, target::Asking>,
    recalls: BTreeMap<(PortNo, MacAddr), recall::Recall>,
    agenda: Agenda<Timer>,
    counters: EdgeCounters,
}

/// What comes with every call: the time, what the data plane knows of its ports, and the list of
/// requests.
struct Cx<'a> {
    now: Time,
    ports: &'a dyn PortView,
    out: &'a mut Vec<Effect>,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Host(MacAddr),
    Setup(PortNo, Target),
    Failed(PortNo, Target),
    Asking(PortNo, MacAddr, MacAddr),
    Recall(PortNo, MacAddr),
    Place(PortNo),
}

/// What becomes of a host's frame that had no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was ARP or DHCP: read, and done with.
    Served,
    /// It goes on by this route, which stands in software.
    Forward(Route),
    /// It waits until the route to this destination is there.
    Wait(MacAddr),
}

impl Edge {
    /// The edge of a switch whose ports have no carrier yet and which knows no controller, on a data
    /// plane that can do this.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub fn new(config: &SwitchConfig, has: &Capabilities) -> Edge {
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
            hosts: Hosts::new(config.hosts_per_port_max),
            flows: Flows::new(Placing::new(has)),
            setups: Setups::new(),
            askings: BTreeMap::new(),
            recalls: BTreeMap::new(),
            agenda: Agenda::new(),
            counters: EdgeCounters::default(),
        }
    }

    /// A frame that a host sent and that had no route, without Axon header.
    ///
    /// Frames that wait go on with [`Effect::Release`] or end with [`Effect::Abandon`].
    ///
    /// # Errors
    /// Why the frame ends here and now.
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

    /// Phase II of Axon-ARP: the controller looks for a host of this switch.
    pub fn arp_target(
        &mut self,
        now: Time,
        m: ArpTarget,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        self.phase_two(&mut Cx { now, ports, out }, m);
    }

    /// Phase IV of Axon-ARP: the target switch answers.
    pub fn arp_reply(
        &mut self,
        now: Time,
        m: ArpReply,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        self.phase_four(&mut Cx { now, ports, out }, &m);
    }

    /// A command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub fn item(&mut self, now: Time, item: Item, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, ports, out };
        match item {
            Item::SetRoute { port, destination, stamp, route } if self.is_current(stamp) => {
                match self.set_route(cx, (port, destination), stamp, &route, None) {
                    Verdict::Removed | Verdict::Unusable => self.counters.messages_ignored += 1,
                    _ => self.route_ready(cx, port, destination, &route),
                }
                self.flows.promote(cx, port);
            }
            Item::RemoveRoute { port, destination, stamp } if self.is_current(stamp) => {
                self.flows.remove(cx, (port, destination), Some(stamp));
                self.flows.promote(cx, port);
            }
            Item::AskHost { port, mac, ip: IpAddr::V4(ip) } => self.recall(cx, port, mac, ip),
            _ => self.counters.messages_ignored += 1,
        }
    }

    /// The controller sends a frame to a host: a DHCP reply. An acknowledgement teaches the
    /// host's address.
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
            self.learn_ip(now, mac, ip, out);
        }
        out.push(Effect::Host { port, frame });
    }

    /// The data plane has answered a request for a change of a route table.
    pub fn route_changed(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        if let Some((port, at)) = self.flows.answered(&mut Cx { now, ports, out }, answer) {
            self.agenda.set(Timer::Place(port), at);
        }
    }

    /// All routes that the data plane should have.
    pub fn wanted_routes(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Route)> {
        self.flows.wanted()
    }

    /// The data plane had lost its tables and was re-synchronised; `has` is what it has now.
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

    /// A port became a host port or an Axon port, or lost its carrier; the data plane knows which.
    /// Where hosts were and are no more, they and their flows are gone.
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
        self.recall_port(cx, port);
        if ports.is_host(port) {
            return;
        }
        let macs: Vec<_> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, mac);
        }
        self.flows.placing.clear(port);
    }

    /// The controller became known, changed, or cannot be reached (`None`).
    ///
    /// While it cannot be reached everything stands. When the same incarnation is back, it is told
    /// what has changed. A new incarnation knows nothing of the old one's decisions: all flows and
    /// routes are forgotten, and all hosts reported. In both cases open requests are repeated
    /// at once.
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Incarnation>,
        ports: &dyn PortView,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, ports, out };
        let was_reachable = core::mem::replace(&mut self.reachable, controller.is_some());
        let Some(incarnation) = controller else { return };
        let new_incarnation = self.controller.replace(incarnation) != Some(incarnation);
        if !new_incarnation && was_reachable {
            return;
        }
        if new_incarnation {
            self.flows.clear(cx);
            self.stop_all_asking(cx);
            for port in (0..ports.count()).map(PortNo) {
                self.flows.placing.clear(port);
            }
        }
        self.tell_all(cx.out, new_incarnation);
        self.ask_again(cx, new_incarnation);
    }

    /// Does what is due. Early or repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, ports: &dyn PortView, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, ports, out };
        self.flows.expire(now);
        let due: Vec<_> = core::iter::from_fn(|| self.agenda.pop_due(now)).collect();
        for timer in due {
            match timer {
                Timer::Host(mac) => self.probe_host(cx, mac),
                Timer::Setup(port, target) => self.setup_due(cx, (port, target)),
                Timer::Recall(port, mac) => self.recall_due(cx, port, mac),
                Timer::Place(port) => self.flows.try_again(cx, port),
                Timer::Failed(port, target) => self.forget_failure((port, target)),
                Timer::Asking(port, target, source) => {
                    self.asking_due(cx, (port, target, source));
                }
            }
        }
    }

    /// When to call [`Edge::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        [self.agenda.next(), self.flows.next_expiry()].into_iter().flatten().min()
    }

    /// All local hosts, in the order of their MACs.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.hosts.all()
    }

    /// All flows of local hosts: ingress port, destination, route.
    pub fn flows(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Flow)> {
        self.flows.all()
    }

    /// Routes that the controller has been asked for and that have not come yet.
    pub fn setups(&self) -> usize {
        self.setups.count()
    }

    /// What this edge has done so far.
    pub fn counters(&self) -> EdgeCounters {
        self.counters
    }

    /// Whether a host can have this MAC: it is no group's, nor one of the fabric's own.
    fn is_host_mac(&self, mac: MacAddr) -> bool {
        mac.is_unicast() && mac != self.server.mac && mac != self.mac
    }

    /// Whether this was decided by the controller that is in charge now.
    fn is_current(&self, stamp: Stamp) -> bool {
        self.controller.is_some_and(|incarnation| incarnation.number == stamp.epoch)
    }

    /// Takes a route. A port without hosts has none, and no route leads to the control plane.
    fn set_route(
        &mut self,
        cx: &mut Cx,
        key: (PortNo, MacAddr),
        stamp: Stamp,
        route: &Route,
        ip: Option<Ipv4Addr>,
    ) -> Verdict {
        if self.hosts.count_on(key.0) == 0 || !self.is_host_mac(key.1) {
            if cx.ports.is_host(key.0) {
                self.flows.remove(cx, key, Some(stamp));
            }
            return Verdict::Unusable;
        }
        self.flows.set(cx, key, stamp, route, ip)
    }
}

/// The IPv4 address, where it is one.
fn ipv4(ip: Option<IpAddr>) -> Option<Ipv4Addr> {
    match ip? {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;
    use alloc::vec;
    use axon_node::PortKind;
    use axon_wire::host_frame::Arp;
    use axon_wire::message::ArpRequest;
    use axon_wire::message::Message;
    use proptest::prelude::*;
    use smoltcp::wire::ArpOperation;

    #[test]
    fn two_switches_and_a_controller_join_two_hosts_in_four_phases() {
        let (mut source, mut target) = (Bench::new(), Bench::new());
        source.host(0, 9);
        target.host(0, 1);
        let ArpRequest { id, port, source_mac, source_ip, .. } =
            asked(&source.frame(0, &arp_request(9, 1)));
        let m = ArpTarget { id, source_port: port, source_mac, source_ip, ..looked_for(1) };
        let questions = arps(&target.target(m.clone()));
        let (_, question) = questions[0];
        let host_says = host_frame::reply(mac(1), ip(1), question.sender_mac, question.sender_ip);
        let answer = target.frame(0, &host_says).into_iter().find_map(|effect| match effect {
            Effect::Routed { message: Message::ArpReply(reply), .. } => Some(reply),
            _ => None,
        });
        let told = arps(&source.reply(answer.unwrap()));
        assert_eq!((told[0].1.sender_mac, told[0].1.target_mac), (mac(1), mac(9)));
        assert_eq!(source.placed(0, 1), Some(m.to_target));
        assert_eq!(target.placed(0, 9), Some(m.to_source));
    }

    /// Something that may happen to an edge, from few names so that things meet.
    #[derive(Clone, Debug)]
    enum Event {
        Bytes(u16, Vec<u8>),
        Arp { port: u16, reply: bool, from: u8, ip: u8, wanted: u8, claimed: u8 },
        Unicast(u16, u8, u8),
        ToHost(u16, Vec<u8>),
        Target(u16, u8, u8, u64, Option<u8>),
        Reply(u16, u8, u8, u64, Option<u8>),
        Set(u16, u8, u64, u16),
        Remove(u16, u8, u64),
        Port(u16, u8),
        Controller(u8),
        Pass(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        let (port, host, number) = (0..6u16, 0..6u8, 0..12u64);
        let bytes = || prop::collection::vec(any::<u8>(), 0..120);
        let maybe = prop::option::of(0..6u8);
        prop_oneof![
            (port.clone(), bytes()).prop_map(|(port, bytes)| Event::Bytes(port, bytes)),
            (port.clone(), any::<bool>(), host.clone(), host.clone(), host.clone(), host.clone())
                .prop_map(|(port, reply, from, ip, wanted, claimed)| Event::Arp {
                    port,
                    reply,
                    from,
                    ip,
                    wanted,
                    claimed
                }),
            (port.clone(), host.clone(), host.clone())
                .prop_map(|(p, a, b)| Event::Unicast(p, a, b)),
            (port.clone(), bytes()).prop_map(|(port, bytes)| Event::ToHost(port, bytes)),
            (port.clone(), host.clone(), host.clone(), number.clone(), maybe.clone())
                .prop_map(|(p, a, b, n, ip)| Event::Target(p, a, b, n, ip)),
            (port.clone(), host.clone(), host.clone(), number.clone(), maybe)
                .prop_map(|(p, a, b, n, ip)| Event::Reply(p, a, b, n, ip)),
            (port.clone(), host.clone(), number.clone(), 0..300u16)
                .prop_map(|(p, a, n, hop)| Event::Set(p, a, n, hop)),
            (port.clone(), host, number).prop_map(|(p, a, n)| Event::Remove(p, a, n)),
            (port, 0..6u8).prop_map(|(port, kind)| Event::Port(port, kind)),
            (0..8u8).prop_map(Event::Controller),
            (0..4000u64).prop_map(Event::Pass),
        ]
    }

    fn happen(bench: &mut Bench, event: Event) {
        match event {
            Event::Bytes(port, bytes) => bench.frame(port, &bytes),
            Event::Arp { port, reply, from, ip: own, wanted, claimed } => {
                let operation = if reply { ArpOperation::Reply } else { ArpOperation::Request };
                let sender_ip = if own == 0 { Ipv4Addr::UNSPECIFIED } else { ip(own) };
                let sender_mac = mac(if claimed == 0 { 0 } else { from });
                let arp = Arp {
                    operation,
                    sender_mac,
                    sender_ip,
                    target_mac: mac(wanted),
                    target_ip: ip(wanted),
                };
                let mut frame = host_frame::emit(mac(wanted), arp);
                frame[6..12].copy_from_slice(&mac(from).0);
                bench.frame(port, &frame)
            }
            Event::Unicast(port, to, from) => bench.frame(port, &udp_frame(mac(to), mac(from), 0)),
            Event::ToHost(port, bytes) => bench.send_to_host(port, bytes),
            Event::Target(port, source, target, number, address) => bench.target(ArpTarget {
                source_mac: mac(source),
                target_port: PortNo(port),
                target_mac: mac(target),
                target_ip: address.map(|n| ip(n).into()),
                ..looked_for(number)
            }),
            Event::Reply(port, source, target, number, address) => bench.reply(ArpReply {
                id: number as u32,
                source_port: PortNo(port),
                source_mac: mac(source),
                target_mac: mac(target),
                target_ip: address.map(|n| ip(n).into()),
                stamp: stamp(number),
                to_target: Route::from([number as u16]),
            }),
            Event::Set(port, to, number, hop) => bench.set_route(port, to, number, hop),
            Event::Remove(port, to, number) => bench.remove_route(port, to, number),
            Event::Port(port, kind) => bench.port(
                port,
                match kind {
                    0 => None,
                    1 => Some(PortKind::Axon),
                    2 => Some(PortKind::Unknown),
                    _ => Some(PortKind::Host),
                },
            ),
            Event::Controller(which) => bench.controller(match which {
                0 => None,
                1 => Some(OTHER),
                _ => Some(CONTROLLER),
            }),
            Event::Pass(millis) => bench.pass(Span::from_millis(millis)),
        };
    }

    proptest! {
        // `Bench` checks every bound and that every reserved place has an owner, after each event.
        #[test]
        fn nothing_that_happens_breaks_a_bound_or_leaks_a_place(
            routes in 0..4usize,
            events in prop::collection::vec(event(), 0..120),
        ) {
            let mut bench = Bench::with(routes, 600, 2);
            for event in events {
                happen(&mut bench, event);
            }
            for port in 0..PORTS {
                bench.port(port, None);
            }
            prop_assert!(bench.is_empty());
            prop_assert_eq!((bench.edge.setups(), bench.waiting_bytes()), (0, 0));
            bench.pass(Span::from_secs(60));
            prop_assert_eq!(bench.edge.deadline(), None);
        }

        #[test]
        fn arbitrary_frames_of_every_shape_are_survived(
            ethertype in prop::sample::select(alloc::vec![0x0800u16, 0x0806, 0x86dd, 0x8100]),
            port in 0..6u16,
            body in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut bench = Bench::new();
            for to in [MacAddr::BROADCAST, SERVER.mac, mac(9)] {
                let mut frame = udp_frame(to, mac(1), 0);
                frame.truncate(12);
                frame.extend_from_slice(&ethertype.to_be_bytes());
                frame.extend_from_slice(&body);
                bench.frame(port, &frame);
                bench.send_to_host(0, frame);
            }
        }
    }
}
