//! A whole switch and a whole controller among arbitrary frames, and among arbitrary messages
//! under the right key from a neighbour that has gone through the handshake. Frames come with
//! tails and broken FCSs, probes are sent and come back. Nothing panics; whatever a port can
//! make grow keeps its bound.

use crate::Reader;
use axon_fabric::assemble::{self, SwitchSetup};
use axon_fabric::model::Fabric;
use axon_fabric::samples;
use axon_link::seal::Sealer;
use axon_node::probe::{PLANS_MAX, PlanKind, ProbePlan};
use axon_node::{Action, Command, Input, Keys, Node, Request, RequestId};
use axon_plane::{Lookups, Plane};
use axon_switch::SwitchNode;
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::message::{Hello, HelloConfirm, Message, Role};
use axon_wire::probe::ProbeOptions;
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, HopWidth, Hops, Incarnation, MacAddr, NodeId, PortNo, Span, Time, link};
use std::sync::LazyLock;

const FRIEND: Incarnation = Incarnation { node: NodeId(77), number: 5 };
const WIDTH: HopWidth = HopWidth::Eight;

/// A node, the wires of its ports, and a neighbour that knows the key.
struct World<N> {
    node: N,
    ports: u16,
    now: Time,
    out: Vec<Action>,
    friend: Sealer,
    incarnation: Incarnation,
    /// Challenge that the friend has to echo.
    challenge: u64,
    /// Probes on their way back.
    probes: Vec<(PortNo, Vec<u8>)>,
}

impl<N: Node> World<N> {
    fn new(node: N, incarnation: Incarnation, (keys, role): (&Keys, Role), ports: u16) -> World<N> {
        let friend = Sealer::new(keys, FRIEND, role);
        let (now, out) = (Time::ZERO, Vec::new());
        let probes = Vec::new();
        let mut world = World { node, ports, now, out, friend, incarnation, challenge: 0, probes };
        for port in 0..ports {
            world.input(Input::Link { port: PortNo(port), up: true });
        }
        let (role, hop_width) = (Role::Switch, WIDTH);
        let hello = Hello { port: PortNo(1), role, hop_width, challenge: 3 };
        world.link_message(PortNo(0), None, &Message::Hello(hello));
        let confirm = HelloConfirm { echo: world.challenge };
        world.link_message(PortNo(0), Some(incarnation), &Message::HelloConfirm(confirm));
        world
    }

    fn input(&mut self, input: Input) {
        let asked = matches!(input, Input::Command(_));
        self.node.handle(self.now, input, &mut self.out);
        // A command is answered before the call returns, and nothing else is.
        let replies = self.out.iter().filter(|action| matches!(action, Action::Reply(_)));
        assert_eq!(replies.count(), usize::from(asked));
        // Every wire is free again at once.
        let mut at = 0;
        while at < self.out.len() {
            if let Action::Transmit { port, frame, .. } = &self.out[at] {
                let port = *port;
                let bytes = frame.bytes().to_vec();
                self.overhear(port, &bytes);
                self.node.handle(self.now, Input::TxDone { port }, &mut self.out);
            }
            at += 1;
        }
        self.out.clear();
    }

    /// The friend reads what is sent to it.
    fn overhear(&mut self, port: PortNo, frame: &[u8]) {
        if let Some(probe) = returned(frame) {
            self.probes.push((port, probe));
        }
        let Some(payload) = link::parse(frame) else { return };
        let Ok(opened) = self.friend.open_link(port, payload) else { return };
        match opened.message {
            Message::Hello(hello) => self.challenge = hello.challenge,
            Message::HelloReply(reply) => self.challenge = reply.challenge,
            _ => {}
        }
    }

    fn frame(&mut self, port: PortNo, bytes: &[u8]) {
        self.frame_with(port, bytes, Span::ZERO, true);
    }

    fn frame_with(&mut self, port: PortNo, bytes: &[u8], tail: Span, intact: bool) {
        let (frame, complete_at) = (FrameBuf::new(bytes), self.now + tail);
        self.input(Input::Frame { port, frame, complete_at, intact });
    }

    /// A plan for probes to a random circuit, or from port to port.
    fn probe(&mut self, reader: &mut Reader) -> Option<()> {
        let hops = reader.string()?;
        let kind = match hops {
            [from, to] => {
                PlanKind::Ether { from: PortNo(u16::from(*from)), to: PortNo(u16::from(*to)) }
            }
            hops => {
                let hops = hops.iter().map(|&hop| PortNo(u16::from(hop % 4)));
                PlanKind::Circuit(hops.chain([PortNo::CONTROL]).collect())
            }
        };
        let plan = ProbePlan {
            bytes: usize::from(reader.number()?) % 2300,
            count: u32::from(reader.byte()? % 8),
            interval: Span::from_millis(u64::from(reader.byte()?)),
            options: ProbeOptions(reader.byte()?),
            ..ProbePlan::new(kind)
        };
        let request = Request::Probe(plan);
        self.input(Input::Command(Command { id: RequestId(7), request }));
        Some(())
    }

    fn link_message(&mut self, port: PortNo, to: Option<Incarnation>, message: &Message) {
        let sealed = self.friend.seal_link(to, message);
        self.frame(port, &link::emit(MacAddr([2, 9, 9, 9, 9, 9]), &sealed));
    }

    /// A message by a source route that ends at this node, from `behind` hops away.
    fn routed_message(&mut self, port: PortNo, behind: u8, message: (VlanId, &Message)) {
        let reverse: Hops = (0..u16::from(behind % 9)).map(PortNo).collect();
        let sealed = self.friend.seal_routed(self.incarnation, message);
        let mut packet = vec![0; 64];
        let route = [PortNo::CONTROL];
        let Ok(length) = header::emit(&mut packet, WIDTH, PacketType::Control, &route, &reverse)
        else {
            return;
        };
        packet.truncate(length);
        packet.extend_from_slice(&sealed);
        self.frame(port, &packet);
    }

    fn event(&mut self, reader: &mut Reader) -> Option<()> {
        let what = reader.byte()?;
        let port = PortNo(u16::from(reader.byte()?) % (self.ports + 1));
        match what % 10 {
            0 => {
                let tail = Span::from_micros(u64::from(reader.byte()?));
                let intact = reader.byte()? & 3 > 0;
                self.frame_with(port, reader.string()?, tail, intact);
            }
            6 => self.probe(reader)?,
            7 => {
                let back = self.probes.pop();
                if let Some((port, packet)) = back {
                    self.frame(port, &packet);
                }
            }
            1 => {
                let mut frame = [2, 0, 0, 0, 0, reader.byte()? % 4].to_vec();
                frame.extend_from_slice(&[2, 0, 0, 0, 0, reader.byte()? % 4]);
                frame.extend_from_slice(reader.string()?);
                self.frame(port, &frame);
            }
            2 | 3 => {
                let behind = reader.byte()?;
                let (vlan, message) = self.message(reader.string()?)?;
                self.routed_message(PortNo(0), behind, (vlan, &message));
            }
            4 => {
                let (_, message) = self.message(reader.string()?)?;
                let to = (!matches!(message, Message::Hello(_))).then_some(self.incarnation);
                self.link_message(port, to, &message);
            }
            5 => self.input(Input::Link { port, up: reader.byte()? & 1 == 1 }),
            _ => {
                self.now += Span::from_millis(u64::from(reader.number()?) % 700);
                self.input(Input::Timeout);
            }
        }
        Some(())
    }

    /// Arbitrary bytes as a message, with the echo that gets it past the handshake.
    fn message(&self, bytes: &[u8]) -> Option<(VlanId, Message)> {
        let (vlan, mut message) = Message::decode(bytes)?;
        match &mut message {
            Message::HelloConfirm(confirm) => confirm.echo = self.challenge,
            Message::HelloReply(reply) => reply.echo = self.challenge,
            Message::Heartbeat(beat) => beat.echo = self.challenge,
            _ => {}
        }
        Some((vlan, message))
    }
}

/// A probe as it comes back: at the end of its route.
fn returned(packet: &[u8]) -> Option<Vec<u8>> {
    let view = HeaderView::parse(packet, WIDTH).ok()?;
    if view.packet_type() != PacketType::Probe {
        return None;
    }
    let mut bytes = vec![0; WIDTH.header_bytes(1)];
    header::emit(&mut bytes, WIDTH, PacketType::Probe, &[PortNo::CONTROL], &[]).ok()?;
    bytes.extend_from_slice(view.payload());
    Some(bytes)
}

fn check_switch(switch: &SwitchNode<Plane>, setup: &SwitchSetup) {
    let (plane, config) = (&setup.plane, &setup.control);
    assert!(switch.waiting_bytes() <= config.edge.waiting_bytes_max);
    assert!(switch.probes().count() <= PLANS_MAX);
    for report in switch.probes() {
        assert!(report.returns.len() + report.lost as usize <= report.plan.count as usize);
    }
    let held_max = u64::from(plane.ports) * plane.queue_bytes_max.0 / 14;
    assert!(switch.plane().ports().held_frames() <= held_max);
    for port in (0..plane.ports).map(PortNo) {
        assert!(switch.plane().tables().len(port) <= plane.routes_per_port_max);
        for (_, route) in switch.plane().tables().routes(port) {
            assert!(!route.hops.is_empty());
        }
        let hosts = switch.edge().hosts().filter(|(_, host)| host.port == port).count();
        assert!(hosts <= config.edge.hosts_per_port_max);
        let ports = switch.plane().ports();
        // A buffer for each ingress, for the control plane, for link frames and for messages.
        let most = plane.queue_bytes_max.0 * u64::from(plane.ports + 3);
        let memory = ports.dcb().map_or(0, |dcb| dcb.memory().config().bytes().0);
        // A class has a buffer of its own for what the control plane sends.
        let classes = if memory > 0 { 8 } else { 1 };
        assert!(ports.queues().bytes(port).0 <= most * classes + 2 * memory);
    }
    if let Some(dcb) = switch.plane().ports().dcb() {
        let memory = dcb.memory();
        assert!(memory.used() <= memory.config().bytes());
    }
}

/// One without traffic classes, and one with all that belongs to them.
static FABRICS: LazyLock<[Fabric; 2]> = LazyLock::new(|| {
    let text = "name: classes\ntopology: { ring: { switches: 3, hosts_per_switch: 2 } }\ndcb:\n  \
                classes:\n  - { priorities: [0, 1, 2, 5, 6], ets: 40 }\n  \
                - { priorities: [3, 4], ets: 60, lossless: true }\n  - { priorities: [7] }\n  \
                dcbx: { mode: auto, willing: both }\n  watchdog: {}\n  \
                congestion_notification: { priorities: [3] }\n";
    let classes = axon_fabric::parse("classes.yaml".as_ref(), text);
    [samples::ring(3, 2), classes.unwrap_or_else(|error| panic!("{error}"))]
});

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Some(which) = reader.byte() else { return };
    let fabric = &FABRICS[usize::from(which >> 1 & 1)];
    if which & 1 == 0 {
        let mut config = assemble::switch_config(fabric, 0, 1, 1);
        config.plane.routes_per_port_max = 8;
        config.control.edge.waiting_bytes_max = 4096;
        config.control.edge.hosts_per_port_max = 3;
        // The friend is at a port that the fabric has a host at.
        config.control.edge.ports.iter_mut().for_each(|port| port.hosts_only = false);
        let (incarnation, ports) = (config.control.edge.node.incarnation, config.plane.ports);
        let node = config.clone().on_software();
        // What comes by a source route is from the controller then.
        let friend = (&fabric.keys, Role::Controller);
        let mut world = World::new(node, incarnation, friend, ports);
        while world.event(&mut reader).is_some() {
            check_switch(&world.node, &config);
        }
    } else {
        let config = assemble::controller_config(fabric, 1, 1);
        let (incarnation, ports) = (config.control.node.incarnation, config.plane.ports);
        let node = config.on_software(Time::ZERO, &[]);
        let friend = (&fabric.keys, Role::Switch);
        let mut world = World::new(node, incarnation, friend, ports);
        while world.event(&mut reader).is_some() {}
    }
}
