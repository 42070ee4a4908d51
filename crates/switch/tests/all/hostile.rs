//! Control messages that a switch must refuse.

use crate::client;
use axon_edge::config::{ByteLimit, EdgeConfig, GroupConfig, PortPolicy};
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_link::keys;
use axon_link::seal::Sealer;
use axon_node::{
    Action, Command, CommandError, Done, Drop, Input, KeyMismatch, Keys, Node, PortKind, Refusal,
    Request, RequestId, Secret,
};
use axon_plane::{Plane, PlaneConfig};
use axon_switch::SwitchNode;
use axon_switch::config::SwitchConfig;
use axon_wire::congestion::Congestion;
use axon_wire::header::{self, PacketType};
use axon_wire::message::{
    ArpReply, ArpTarget, ControllerHelloAck, ControllerPath, Grant, Heartbeat, Hello, HelloConfirm,
    Message, Role, Segment, Stamp,
};
use axon_wire::vlan::VlanId;
use axon_wire::{
    Bytes, FrameBuf, HopWidth, Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time, link,
    mac_control,
};
use smoltcp::wire::DhcpMessageType;

pub(crate) const KEY: [u8; 32] = [7; 32];
const PORT: PortNo = PortNo(0);
pub(crate) const SWITCH: Incarnation = Incarnation { node: NodeId(1), number: 1 };
const STRANGER: Incarnation = Incarnation { node: NodeId(2), number: 1 };

pub(crate) struct Scene {
    now: Time,
    pub(crate) switch: SwitchNode<Plane>,
}

impl Scene {
    /// A switch with one port that has become a host port.
    fn new() -> Scene {
        Scene::with(Vec::new())
    }

    /// The same, with these policies for its ports.
    fn with(ports: Vec<PortPolicy>) -> Scene {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let node = NodeConfig {
            incarnation: SWITCH,
            mac,
            keys: KEY.into(),
            seed: 1,
            timers: Timers::default(),
            server: ServerIdentity {
                mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
                ip: [10, 0, 0, 1].into(),
            },
        };
        let edge = EdgeConfig {
            node,
            waiting_bytes_max: 65536,
            hosts_per_port_max: 16,
            host_control: ByteLimit::default(),
            groups: GroupConfig::default(),
            ports,
            services: Default::default(),
            vlans: Vec::new(),
        };
        let switch = SwitchNode::new(
            SwitchConfig { edge, dcbx: None, alone: None },
            Plane::new(PlaneConfig::with_ports(2, mac)),
        );
        let mut scene = Scene { now: Time::ZERO, switch };
        scene.input(Input::Link { port: PORT, up: true });
        scene.input(Input::TxDone { port: PORT });
        while scene.now < Time::from_nanos(1_000_000_000) {
            scene.now = scene.switch.deadline().unwrap();
            scene.input(Input::Timeout);
            scene.input(Input::TxDone { port: PORT });
        }
        scene
    }

    fn input(&mut self, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        self.switch.handle(self.now, input, &mut out);
        out
    }

    pub(crate) fn frame(&mut self, bytes: &[u8]) -> Vec<Action> {
        self.frame_at(PORT, bytes)
    }

    fn frame_at(&mut self, port: PortNo, bytes: &[u8]) -> Vec<Action> {
        let (frame, complete_at) = (FrameBuf::new(bytes), self.now);
        self.input(Input::Frame { port, frame, complete_at, intact: true })
    }

    fn link(&mut self, sealed: &[u8]) -> Vec<Action> {
        self.frame(&link::emit(MacAddr([2, 0, 0, 0, 0, 2]), sealed))
    }

    #[track_caller]
    fn refused(&self, refusal: Refusal, times: u64) {
        let refusals = self.switch.refusals();
        assert_eq!((refusals.of(refusal), refusals.total()), (times, times), "{refusal:?}");
    }
}

/// A switch beside the one under test.
fn neighbour(master: [u8; 32]) -> Sealer {
    Sealer::new(&master.into(), STRANGER, Role::Switch)
}

fn hello() -> Message {
    let (role, hop_width) = (Role::Switch, HopWidth::Eight);
    Message::Hello(Hello { port: PortNo(3), role, hop_width, challenge: 9 })
}

#[test]
fn a_hello_under_another_key_is_refused_and_not_answered() {
    let mut scene = Scene::new();
    let forged = neighbour([8; 32]).seal_link(None, &hello());
    let actions = scene.link(&forged);
    assert!(!actions.iter().any(|action| matches!(action, Action::Transmit { .. })));
    scene.refused(Refusal::BadSeal, 1);
}

#[test]
fn a_hello_played_again_is_refused() {
    let mut scene = Scene::new();
    let sealed = neighbour(KEY).seal_link(None, &hello());
    let answered = |actions: Vec<Action>| {
        actions.iter().any(|action| matches!(action, Action::Transmit { .. }))
    };
    assert!(answered(scene.link(&sealed)));
    scene.input(Input::TxDone { port: PORT });
    assert!(!answered(scene.link(&sealed)));
    scene.refused(Refusal::Replayed, 1);
}

#[test]
fn a_confirmation_that_answers_nothing_makes_no_neighbour() {
    let mut scene = Scene::new();
    let mut stranger = neighbour(KEY);
    scene.link(&stranger.seal_link(None, &hello()));
    let confirm = Message::HelloConfirm(HelloConfirm { echo: 1 });
    scene.link(&stranger.seal_link(Some(SWITCH), &confirm));
    assert!(scene.switch.discovery().neighbour(PORT).is_none());
    scene.refused(Refusal::Unexpected, 1);
}

#[test]
fn a_message_of_the_wrong_kind_on_a_link_is_refused() {
    let mut scene = Scene::new();
    let segment = Message::Segment(Segment { first: 0, ack: 0, items: vec![] });
    let sealed = neighbour(KEY).seal_link(Some(SWITCH), &segment);
    scene.link(&sealed);
    scene.refused(Refusal::Misplaced, 1);
}

#[test]
fn a_source_routed_control_packet_from_a_host_is_refused_even_under_the_right_key() {
    let mut scene = Scene::new();
    let segment = Message::Segment(Segment { first: 0, ack: 0, items: vec![] });
    let sealed = neighbour(KEY).seal_routed(SWITCH, (VlanId::NONE, &segment));
    scene.frame(&routed(&sealed));
    scene.refused(Refusal::FromHost, 1);
}

#[test]
fn rubbish_on_every_road_is_counted_and_changes_nothing() {
    let mut scene = Scene::new();
    scene.link(&[]);
    scene.link(&[0xff; 900]);
    scene.refused(Refusal::Malformed, 2);
    for length in 0..200 {
        scene.frame(&vec![0xa5; length]);
        scene.frame(&vec![0x21; length]);
    }
    assert!(scene.switch.plane().tables().is_empty());
}

/// The hostile neighbour owns a switch: it has gone through the handshake, and advertises a path to
/// a controller with the highest incarnation, which is itself.
pub(crate) struct Imposter {
    pub(crate) scene: Scene,
    /// As the switch that it is.
    link: Sealer,
    /// As the controller that it poses as.
    pub(crate) control: Sealer,
}

const CONTROLLER: Incarnation = Incarnation { node: NodeId(1 << 32), number: u64::MAX };

impl Imposter {
    pub(crate) fn new(keys: &Keys) -> Imposter {
        let scene = Scene::new();
        let link = Sealer::new(keys, STRANGER, Role::Switch);
        let control = Sealer::new(keys, CONTROLLER, Role::Controller);
        let mut imposter = Imposter { scene, link, control };
        let sealed = imposter.link.seal_link(None, &hello());
        let answers = imposter.link_frame(&sealed);
        let challenge = answers.iter().find_map(|message| match message {
            Message::HelloReply(reply) => Some(reply.challenge),
            _ => None,
        });
        let echo = challenge.expect("it is a switch of this fabric");
        let confirm = Message::HelloConfirm(HelloConfirm { echo });
        let sealed = imposter.link.seal_link(Some(SWITCH), &confirm);
        imposter.link_frame(&sealed);
        let path = Some(ControllerPath { controller: CONTROLLER, hops: Hops::to_control() });
        let beat = Message::Heartbeat(Heartbeat { echo, path });
        let sealed = imposter.link.seal_link(Some(SWITCH), &beat);
        imposter.link_frame(&sealed);
        imposter
    }

    /// Sends a link frame; returns the link messages that come back.
    fn link_frame(&mut self, sealed: &[u8]) -> Vec<Message> {
        let mut actions = self.scene.link(sealed);
        actions.extend(self.scene.input(Input::TxDone { port: PORT }));
        let frames = actions.iter().filter_map(|action| match action {
            Action::Transmit { frame, .. } => link::parse(frame.bytes()),
            _ => None,
        });
        frames.filter_map(|bytes| Some(self.link.open_link(PORT, bytes).ok()?.message)).collect()
    }

    /// Answers the Controller Hello: guesses what it cannot read. The switch counts its nonces
    /// from 1, and its state has had few versions.
    pub(crate) fn answer(&mut self) {
        for version in 0..9 {
            let ack = Message::ControllerHelloAck(ControllerHelloAck { version, nonce: 1 });
            let sealed = self.control.seal_routed(SWITCH, (VlanId::NONE, &ack));
            let packet = routed(&sealed);
            self.scene.frame(&packet);
        }
    }
}

/// As it arrives from a neighbouring switch.
pub(crate) fn routed(sealed: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 64];
    let route = [PortNo::CONTROL];
    let length =
        header::emit(&mut packet, HopWidth::Eight, PacketType::Control, &route, &[]).unwrap();
    packet.truncate(length);
    packet.extend_from_slice(sealed);
    packet
}

#[test]
fn whoever_owns_one_switch_cannot_pose_as_the_controller_to_another() {
    let own = Secret::Switch(keys::of_switch(&KEY, STRANGER.node));
    let mut imposter = Imposter::new(&Keys { current: own, other: None });
    imposter.answer();
    assert_eq!(imposter.scene.switch.uplink().path(), None);
    imposter.scene.refused(Refusal::BadSeal, 9);
    // With the master key the very same messages take the switch over.
    let mut thief = Imposter::new(&KEY.into());
    thief.answer();
    let path = thief.scene.switch.uplink().path().map(|path| path.controller);
    assert_eq!(path, Some(CONTROLLER));
}

#[test]
fn whoever_owns_one_switch_gives_no_route_to_another() {
    // The controller is the true one here, and its path is verified.
    let mut around = Imposter::new(&KEY.into());
    around.answer();
    let Imposter { mut scene, control: mut controller, .. } = around;
    let before = scene.switch.refusals().total();
    let mut target = ArpTarget {
        id: 1,
        source_switch: SWITCH,
        source_port: PORT,
        source_mac: MacAddr([2; 6]),
        source_ip: None,
        target_port: PORT,
        target_mac: MacAddr([4; 6]),
        target_ip: None,
        stamp: Stamp { epoch: CONTROLLER.number, number: 1 },
        to_source: Route::from([1, 0]),
        source_by_pair: false,
        to_target: Route::from([2, 0]),
        target_by_pair: false,
        answer_by: Hops::to_control(),
        grant: Grant::default(),
    };
    controller.grant(VlanId::NONE, &mut target);
    let own = Secret::Switch(keys::of_switch(&KEY, STRANGER.node));
    let keys = Keys { current: own, other: None };
    let mut mallory = Sealer::new(&keys, STRANGER, Role::Switch);
    let mut answer = |reply: ArpReply| {
        let packet =
            routed(&mallory.seal_routed(SWITCH, (VlanId::NONE, &Message::ArpReply(reply))));
        scene.frame(&packet);
        let refusals = scene.switch.refusals();
        (refusals.of(Refusal::Unauthorised), refusals.total() - before)
    };
    assert_eq!(answer(target.reply()), (0, 0), "as the controller has granted it");
    assert_eq!(answer(target.reply()), (0, 1), "once");
    let elsewhere = ArpReply { to_target: Route::from([3, 0]), ..target.reply() };
    assert_eq!(answer(elsewhere), (1, 2));
    let stamp = Stamp { epoch: CONTROLLER.number - 1, number: 1 };
    assert_eq!(answer(ArpReply { stamp, ..target.reply() }), (1, 3), "of another incarnation");
    let for_one = ArpReply { target_by_pair: true, ..target.reply() };
    assert_eq!(answer(for_one), (2, 4), "for one host, where it is for all");
    Sealer::new(&keys, CONTROLLER, Role::Controller).grant(VlanId::NONE, &mut target);
    assert_eq!(answer(target.reply()), (3, 5), "a grant of its own");
}

#[test]
fn whoever_poses_as_a_neighbour_harms_the_link_at_its_own_port_alone() {
    let mut scene = Scene::new();
    let third = Secret::Switch(keys::of_switch(&KEY, NodeId(3)));
    let later = Incarnation { number: u64::MAX, ..STRANGER };
    let keys = Keys { current: third, other: None };
    scene.link(&Sealer::new(&keys, later, Role::Switch).seal_link(None, &hello()));
    scene.refused(Refusal::StaleIncarnation, 0);
    // The true one, at its own port.
    let genuine = neighbour(KEY).seal_link(None, &hello());
    scene.input(Input::Link { port: PortNo(1), up: true });
    scene.frame_at(PortNo(1), &link::emit(MacAddr([2, 0, 0, 0, 0, 2]), &genuine));
    scene.refused(Refusal::StaleIncarnation, 0);
    scene.link(&genuine);
    scene.refused(Refusal::StaleIncarnation, 1);
}

#[test]
fn keys_are_changed_by_a_command_and_those_of_another_switch_are_refused() {
    let mut scene = Scene::new();
    let new = [9; 32];
    let rekey = |scene: &mut Scene, keys: Keys| {
        let request = Request::Rekey(Box::new(keys));
        let actions = scene.input(Input::Command(Command { id: RequestId(1), request }));
        let reply = actions.into_iter().find_map(|action| match action {
            Action::Reply(reply) => Some(reply.result),
            _ => None,
        });
        reply.expect("every command is answered")
    };
    let foreign = Secret::Switch(keys::of_switch(&new, STRANGER.node));
    let refused = rekey(&mut scene, Keys { current: foreign, other: None });
    let wanted = CommandError::Keys(KeyMismatch::OtherSwitch(STRANGER.node));
    assert_eq!(refused, Err(wanted));
    let own = Secret::Switch(keys::of_switch(&new, SWITCH.node));
    let both = Keys { current: own.clone(), other: Some(Secret::Master(KEY)) };
    assert_eq!(rekey(&mut scene, both), Ok(Done::Rekeyed));
    let greeted = |scene: &mut Scene, master, number| {
        let incarnation = Incarnation { number, ..STRANGER };
        let mut sealer = Sealer::new(&Keys::from(master), incarnation, Role::Switch);
        let actions = scene.link(&sealer.seal_link(None, &hello()));
        scene.input(Input::TxDone { port: PORT });
        actions.iter().any(|action| matches!(action, Action::Transmit { .. }))
    };
    assert!(greeted(&mut scene, KEY, 1) && greeted(&mut scene, new, 2));
    assert_eq!(rekey(&mut scene, Keys { current: own, other: None }), Ok(Done::Rekeyed));
    assert!(greeted(&mut scene, new, 3));
    scene.refused(Refusal::BadSeal, 0);
    assert!(!greeted(&mut scene, KEY, 4));
    scene.refused(Refusal::BadSeal, 1);
}

#[test]
fn a_switch_with_the_key_is_refused_at_a_port_that_is_pinned_to_hosts() {
    let pinned = PortPolicy { hosts_only: true, ..PortPolicy::default() };
    let mut scene = Scene::with(vec![pinned]);
    let mut stranger = Sealer::new(&KEY.into(), STRANGER, Role::Switch);
    let actions = scene.link(&stranger.seal_link(None, &hello()));
    let answered = actions.iter().any(|action| matches!(action, Action::Transmit { .. }));
    assert!(!answered, "{actions:?}");
    scene.refused(Refusal::PinnedPort, 1);
    let confirm = Message::HelloConfirm(HelloConfirm { echo: 1 });
    scene.link(&stranger.seal_link(Some(SWITCH), &confirm));
    scene.refused(Refusal::PinnedPort, 2);
    let discovery = scene.switch.discovery();
    assert_eq!((discovery.kind(PORT), discovery.neighbour(PORT)), (PortKind::Host, None));
}

/// Receives bytes on port 1, from an unknown node that has become a neighbour.
fn from_neighbour(scene: &mut Scene, bytes: &[u8]) -> Vec<Action> {
    let (frame, complete_at) = (FrameBuf::new(bytes), scene.now);
    scene.input(Input::Frame { port: PortNo(1), frame, complete_at, intact: true })
}

/// Lets a stranger with the key become the neighbour at port 1.
fn meet(scene: &mut Scene) {
    let mut stranger = Sealer::new(&KEY.into(), STRANGER, Role::Switch);
    scene.input(Input::Link { port: PortNo(1), up: true });
    scene.input(Input::TxDone { port: PortNo(1) });
    let hello = stranger.seal_link(None, &hello());
    let answer = from_neighbour(scene, &link::emit(MacAddr([2; 6]), &hello));
    let reply = answer.iter().find_map(|action| match action {
        Action::Transmit { frame, .. } => {
            let opened = stranger.open_link(PORT, link::parse(frame.bytes())?).ok()?;
            let Message::HelloReply(reply) = opened.message else { return None };
            Some(reply.challenge)
        }
        _ => None,
    });
    let confirm = Message::HelloConfirm(HelloConfirm { echo: reply.expect("a reply") });
    let confirm = stranger.seal_link(Some(SWITCH), &confirm);
    from_neighbour(scene, &link::emit(MacAddr([2; 6]), &confirm));
    assert_eq!(scene.switch.discovery().kind(PortNo(1)), PortKind::Axon);
}

#[test]
fn recorded_hellos_of_other_nodes_make_no_old_frame_of_a_neighbour_valid_again() {
    let mut imposter = Imposter::new(&KEY.into());
    assert!(imposter.scene.switch.discovery().neighbour(PORT).is_some());
    let beat = Message::Heartbeat(Heartbeat { echo: 1, path: None });
    let recorded = imposter.link.seal_link(Some(SWITCH), &beat);
    // Its echo is wrong, which says that its seal was accepted.
    imposter.scene.link(&recorded);
    imposter.scene.refused(Refusal::Unexpected, 1);
    for node in 10..30 {
        let other = Incarnation { node: NodeId(node), number: 1 };
        let mut other = Sealer::new(&KEY.into(), other, Role::Switch);
        let hello = other.seal_link(None, &hello());
        imposter.link_frame(&hello);
    }
    imposter.scene.link(&recorded);
    let refusals = imposter.scene.switch.refusals();
    assert_eq!((refusals.of(Refusal::Unexpected), refusals.of(Refusal::Replayed)), (1, 1));
    assert!(imposter.scene.switch.discovery().neighbour(PORT).is_some());
}

#[test]
fn forged_congestion_messages_pause_hosts_for_no_longer_than_they_send() {
    let mut scene = Scene::new();
    meet(&mut scene);
    let mac = MacAddr([2; 6]);
    let message = Congestion {
        egress: PortNo(7),
        host_port: PORT,
        queued: Bytes(1),
        switch: mac,
        destination: mac,
        source: mac,
    };
    let mut packet = vec![0; 64];
    let route = [PortNo::CONTROL];
    let length =
        header::emit(&mut packet, HopWidth::Eight, PacketType::Congestion, &route, &[]).unwrap();
    packet.truncate(length);
    packet.extend_from_slice(&message.emit());
    let pauses = |scene: &mut Scene| {
        let mut count = 0;
        for _ in 0..100 {
            let actions = from_neighbour(scene, &packet);
            let is_pause = |action: &&Action| match action {
                Action::Transmit { port: PORT, frame, .. } => {
                    mac_control::is_mac_control(frame.bytes())
                }
                _ => false,
            };
            count += actions.iter().filter(is_pause).count();
            scene.input(Input::TxDone { port: PORT });
        }
        count
    };
    assert_eq!(pauses(&mut scene), 1);
    assert_eq!(scene.switch.refusals().of(Refusal::CongestionLimit), 99);
    // Each frame of maximum length that the hosts send may cause another.
    scene.frame(&[0x33; 1514]);
    assert_eq!(pauses(&mut scene), 1);
}

#[test]
fn what_the_hosts_of_a_port_cause_is_metered_in_bytes() {
    let mut scene = Scene::new();
    let mut discover = client::client(9, DhcpMessageType::Discover).frame();
    discover.resize(1400, 0);
    let flood = |scene: &mut Scene, millis: u64| {
        let (start, mut served) = (scene.now, 0);
        for millis in 0..millis {
            scene.now = start + Span::from_millis(millis);
            let actions = scene.frame(&discover);
            let consumed =
                |action: &Action| matches!(action, Action::Dropped { reason: Drop::Consumed, .. });
            served += u64::from(actions.iter().any(consumed));
            scene.input(Input::TxDone { port: PORT });
        }
        served
    };
    let first = flood(&mut scene, 1000);
    let bytes = first * (1400 + 128);
    let most = (256 << 10) + 250_000 + 2 * 1528;
    assert!(bytes <= most && bytes > most / 2, "{first} messages of 1400 bytes in a second");
    let dropped = scene.switch.plane().counters().port(PORT).dropped(Drop::PuntLimit);
    assert_eq!(dropped, 1000 - first, "each is counted");
    let later = flood(&mut scene, 1000);
    assert!((150..=170).contains(&later), "250 kB/s: {later}");
}
