//! LLDP and DCBX in whole switches: what two of them agree on, and what becomes of it.

use crate::tshark;
use axon_dcbx::lldp::LldpConfig;
use axon_dcbx::{DcbxConfig, DcbxNodeConfig, DcbxNote, DcbxSettings, Mode, Source};
use axon_edge::config::{ByteLimit, EdgeConfig, GroupConfig};
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_node::{Action, Drop, Input, Node, Note, Punt};
use axon_plane::dcb::DcbConfig;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::DefenceMode;
use axon_plane::schedule::{Algorithm, ScheduleConfig};
use axon_plane::{Plane, PlaneConfig};
use axon_switch::SwitchNode;
use axon_switch::config::SwitchConfig;
use axon_wire::dcbx::ieee::SUBTYPE_CONGESTION;
use axon_wire::dcbx::{DcbxError, OUI_IEEE};
use axon_wire::lldp::{self, Id, LldpFrame, Lldpdu, NEAREST_BRIDGE, Tlv};
use axon_wire::{
    FrameBuf, Incarnation, MacAddr, NodeId, PortNo, Priority, PrioritySet, Rate, Span, Time,
    TrafficClass,
};

const PORT: PortNo = PortNo(0);
/// The way from one switch to the other.
const DELAY: Span = Span::from_micros(5);

fn set(bits: u8) -> PrioritySet {
    PrioritySet::from_bits(bits)
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// Shares for two classes, and class 2 strict; priorities 3 and 4 in class 1.
fn dcb(number: u8, pfc: u8, shares: [u8; 2]) -> DcbConfig {
    let mut schedule = ScheduleConfig::of(shares.map(|percent| Algorithm::Ets { percent }));
    schedule.classes.push(Algorithm::Strict);
    DcbConfig {
        prio_tc: [0, 0, 0, 1, 1, 0, 0, 2].map(|class| TrafficClass::new(class).unwrap()),
        schedule,
        pfc: set(pfc),
        ..DcbConfig::lossy(vec![Rate::gbps(10); 2], mac(number))
    }
}

type Switch = SwitchNode<Plane>;

/// A switch of two ports, which speaks as it is `asked`.
fn switch(number: u8, dcb: Option<DcbConfig>, asked: Option<DcbxSettings>) -> Switch {
    let mac = mac(number);
    let node = NodeConfig {
        incarnation: Incarnation { node: NodeId(number.into()), number: 1 },
        mac,
        keys: [7; 32].into(),
        seed: number.into(),
        timers: Timers::default(),
        server: ServerIdentity { mac: MacAddr([2, 0, 0, 0, 0, 0xfe]), ip: [10, 0, 0, 1].into() },
    };
    let dcbx = asked.map(|asked| {
        Box::new(DcbxNodeConfig {
            system_name: format!("s{number}"),
            lldp: LldpConfig::default(),
            dcbx: DcbxConfig::for_plane(dcb.as_ref().unwrap(), &asked),
            defences: Vec::new(),
        })
    });
    let edge = EdgeConfig {
        node,
        waiting_bytes_max: 65536,
        hosts_per_port_max: 16,
        host_control: ByteLimit::default(),
        groups: GroupConfig::default(),
        ports: Vec::new(),
        services: Default::default(),
        vlans: Vec::new(),
    };
    let plane = PlaneConfig { dcb: dcb.map(Box::new), ..PlaneConfig::with_ports(2, mac) };
    SwitchNode::new(SwitchConfig { edge, dcbx, alone: None }, Plane::new(plane))
}

/// Switches whose ports 0 are joined; a single one talks to nobody.
struct Scene {
    now: Time,
    switches: Vec<Switch>,
    /// Frames on their way: when, to whom.
    wire: Vec<(Time, usize, FrameBuf)>,
    /// LLDP's, as they were sent.
    said: Vec<Vec<u8>>,
    notes: Vec<(usize, Note)>,
    drops: Vec<Drop>,
}

impl Scene {
    fn new(switches: Vec<Switch>) -> Scene {
        let (wire, said, notes, drops) = (vec![], vec![], vec![], vec![]);
        let mut scene = Scene { now: Time::ZERO, switches, wire, said, notes, drops };
        scene.link(true);
        scene
    }

    fn link(&mut self, up: bool) {
        for number in 0..self.switches.len() {
            self.input(number, Input::Link { port: PORT, up });
        }
    }

    fn input(&mut self, number: usize, input: Input) {
        let mut out = Vec::new();
        self.switches[number].handle(self.now, input, &mut out);
        let mut sent = false;
        for action in out {
            match action {
                Action::Transmit { port, frame, .. } => {
                    assert_eq!(port, PORT);
                    sent = true;
                    if lldp::is_lldp(frame.bytes()) {
                        self.said.push(frame.bytes().to_vec());
                    }
                    self.wire.push((self.now + DELAY, 1 - number, frame));
                }
                Action::Note(note) => self.notes.push((number, note)),
                Action::Dropped { reason, .. } => self.drops.push(reason),
                other => panic!("this leaves no switch: {other:?}"),
            }
        }
        if sent {
            self.input(number, Input::TxDone { port: PORT });
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let frame = self.wire.iter().map(|(at, ..)| *at).min();
            let timer = self.switches.iter().filter_map(Node::deadline).min();
            let Some(next) = frame.into_iter().chain(timer).min().filter(|&at| at <= end) else {
                self.now = end;
                return;
            };
            self.now = next.max(self.now);
            let due: Vec<_> = self.wire.extract_if(.., |(at, ..)| *at <= next).collect();
            for (complete_at, to, frame) in due {
                if to < self.switches.len() {
                    self.input(to, Input::Frame { port: PORT, frame, complete_at, intact: true });
                }
            }
            for number in 0..self.switches.len() {
                self.input(number, Input::Timeout);
            }
        }
    }

    fn receive(&mut self, frame: &[u8]) {
        let (frame, complete_at) = (FrameBuf::new(frame), self.now);
        self.input(0, Input::Frame { port: PORT, frame, complete_at, intact: true });
    }

    /// PFC, and the class of priority 7, at port 0.
    fn in_force(&self, number: usize) -> (PrioritySet, u8) {
        let ports = self.switches[number].plane().ports().dcb().unwrap();
        (ports.pfc(PORT), ports.class_of(PORT, Priority::MAX).unwrap().value())
    }
}

fn willing(mode: Mode) -> Option<DcbxSettings> {
    Some(DcbxSettings { mode, ets_willing: true, pfc_willing: true, ..DcbxSettings::default() })
}

fn firm(mode: Mode) -> Option<DcbxSettings> {
    Some(DcbxSettings { mode, ..DcbxSettings::default() })
}

/// A firm switch, and a willing one that has one strict class for each priority.
fn firm_and_willing(modes: [Mode; 2]) -> Scene {
    let lossy = DcbConfig::lossy(vec![Rate::gbps(10); 2], mac(2));
    Scene::new(vec![
        switch(1, Some(dcb(1, 0x18, [40, 60])), firm(modes[0])),
        switch(2, Some(lossy), willing(modes[1])),
    ])
}

#[test]
fn a_willing_switch_does_what_its_neighbour_says_at_that_port_and_until_it_is_gone() {
    for modes in [[Mode::Ieee; 2], [Mode::Cee; 2], [Mode::Cee, Mode::Auto]] {
        let mut scene = firm_and_willing(modes);
        scene.run(Span::from_secs(10));
        assert_eq!(scene.in_force(0), (set(0x18), 2), "{modes:?}");
        assert_eq!(scene.in_force(1), (set(0x18), 2), "{modes:?}");
        let willing = &scene.switches[1];
        assert_eq!(willing.plane().ports().dcb().unwrap().pfc(PortNo(1)), PrioritySet::EMPTY);
        let port = willing.dcbx(PORT).unwrap();
        assert_eq!((port.operational().ets_from, port.notes()), (Source::Peer, &[][..]));
        assert_eq!(port.agent().neighbours()[0].port, Id::port_of_name("s1-p0"));
        assert!(willing.dcbx(PortNo(2)).is_none());
        for note in [
            Note::ClassesInForce { port: PORT, recommended: true },
            Note::PfcInForce { port: PORT, pfc: set(0x18) },
        ] {
            let times = scene.notes.iter().filter(|one| **one == (1, note)).count();
            assert_eq!(times, 1, "{modes:?} {:?}", scene.notes);
        }
        scene.link(false);
        assert_eq!(scene.in_force(1), (PrioritySet::EMPTY, 7), "its own again: {modes:?}");
    }
}

#[test]
fn on_axon_ports_and_on_host_ports_alike() {
    let mut scene = firm_and_willing([Mode::Ieee; 2]);
    scene.run(Span::from_secs(10));
    let neighbours = |node: &Switch| node.discovery().neighbours().count();
    assert_eq!(scene.switches.iter().map(neighbours).collect::<Vec<_>>(), [1, 1]);
    let mut host = Scene::new(vec![switch(1, Some(dcb(1, 0x18, [40, 60])), firm(Mode::Ieee))]);
    host.run(Span::from_secs(10));
    assert_eq!(host.switches[0].plane().kind(PORT), Some(axon_node::PortKind::Host));
    let (chassis, port) = (Id::chassis_of_mac(mac(9)), Id::port_of_mac(mac(9)));
    let lldpdu = Lldpdu { chassis, port, ttl_secs: 120, optional: vec![] };
    let frame = LldpFrame { destination: NEAREST_BRIDGE, source: mac(9), lldpdu }.emit().unwrap();
    let before = host.said.len();
    host.receive(&frame);
    let known = host.switches[0].dcbx(PORT).unwrap();
    assert_eq!(known.agent().neighbours().len(), 1);
    assert_eq!((host.drops.pop(), host.said.len()), (Some(Drop::Consumed), before + 1), "answered");
}

#[test]
fn what_is_malformed_is_counted_and_ends_here() {
    let mut scene = Scene::new(vec![switch(1, Some(dcb(1, 0x18, [40, 60])), firm(Mode::Ieee))]);
    scene.run(Span::from_secs(2));
    let said = scene.said.len();
    let mut frame = [0_u8; 60];
    frame[..6].copy_from_slice(&NEAREST_BRIDGE.0);
    frame[12..14].copy_from_slice(&lldp::ETHERTYPE.to_be_bytes());
    scene.receive(&frame);
    assert_eq!(scene.drops.pop(), Some(Drop::Refused));
    let counters = scene.switches[0].dcbx(PORT).unwrap().agent().counters();
    assert_eq!((counters.malformed, counters.received), (1, 0));
    assert_eq!(scene.switches[0].plane().counters().total().punted(Punt::LinkLocal), 1);
    assert_eq!(scene.said.len(), said, "nobody is answered");
}

#[test]
fn a_switch_without_dcbx_neither_sends_nor_receives_lldp() {
    let mut scene = Scene::new(vec![switch(1, None, None)]);
    scene.run(Span::from_secs(40));
    assert_eq!(scene.said.len(), 0);
    assert!(scene.switches[0].dcbx(PORT).is_none());
    let speaker = switch(2, Some(dcb(2, 0, [50, 50])), firm(Mode::Ieee));
    let mut other = Scene::new(vec![speaker]);
    other.run(Span::from_secs(1));
    scene.receive(&other.said[0]);
    assert_eq!(scene.drops.pop(), Some(Drop::Refused));
}

#[test]
fn all_that_switches_say_to_each_other_is_dissected_without_a_fault() {
    let mut said = Vec::new();
    for modes in [[Mode::Ieee; 2], [Mode::Cee; 2], [Mode::Cee, Mode::Auto]] {
        let mut scene = firm_and_willing(modes);
        scene.run(Span::from_secs(40));
        said.append(&mut scene.said);
    }
    said.sort();
    said.dedup();
    assert!(said.len() > 6, "{}", said.len());
    let fields = ["lldp.tlv.system.name", "_ws.expert", "_ws.malformed"];
    let Some(lines) = tshark::dissect("dcbx", &said, &fields) else { return };
    for line in lines {
        assert!(line == "s1||" || line == "s2||", "{line}");
    }
}

/// Two switches whose priority 3 is under congestion notification.
fn domain(modes: [Mode; 2]) -> Scene {
    let dcb = |number| DcbConfig {
        cn: Some(CnConfig::new(2, set(8))),
        ..DcbConfig::lossy(vec![Rate::gbps(10); 2], mac(number))
    };
    let switch =
        |number: u8| switch(number, Some(dcb(number)), firm(modes[usize::from(number) - 1]));
    Scene::new(vec![switch(1), switch(2)])
}

fn mode(node: &Switch) -> DefenceMode {
    let defences = node.dcbx(PORT).unwrap().defences().unwrap();
    defences.mode(Priority::ALL[3])
}

#[test]
fn a_neighbour_of_the_domain_is_let_in_and_out_whatever_form_of_dcbx_it_speaks() {
    let mut said = Vec::new();
    for modes in [[Mode::Ieee; 2], [Mode::Cee; 2], [Mode::Cee, Mode::Ieee]] {
        let mut scene = domain(modes);
        let modes_of = |scene: &Scene| [0, 1].map(|number: usize| mode(&scene.switches[number]));
        assert_eq!(modes_of(&scene), [DefenceMode::Edge; 2], "{modes:?}");
        scene.run(Span::from_secs(10));
        assert_eq!(modes_of(&scene), [DefenceMode::InteriorReady; 2], "{modes:?}");
        scene.link(false);
        assert_eq!(modes_of(&scene), [DefenceMode::Edge; 2], "{modes:?}");
        let note = Note::DefenceInForce { port: PORT };
        let of = |number| scene.notes.iter().filter(|one| **one == (number, note)).count();
        assert_eq!([of(0), of(1)], [3; 2], "inside, ready, outside: {modes:?}");
        said.append(&mut scene.said);
    }
    let fields = ["lldp.ieee.802_1qau.cnpv.prio3", "_ws.expert", "_ws.malformed"];
    let Some(lines) = tshark::dissect("domain", &said, &fields) else { return };
    assert!(lines.iter().all(|line| line == "1||"), "{lines:?}");
    let fields = ["lldp.ieee.802_1qau.ready.prio3"];
    let lines = tshark::dissect("domain", &said, &fields).unwrap();
    assert!(lines.contains(&"0".into()) && lines.contains(&"1".into()), "{lines:?}");
}

#[test]
fn who_cannot_be_understood_or_is_not_alone_stays_outside() {
    let says = |from: u8, infos: &[&[u8]]| {
        let (chassis, port) = (Id::chassis_of_mac(mac(from)), Id::port_of_mac(mac(from)));
        let tlv = |info: &&[u8]| Tlv::of_organisation(OUI_IEEE, SUBTYPE_CONGESTION, info);
        let lldpdu =
            Lldpdu { chassis, port, ttl_secs: 9, optional: infos.iter().map(tlv).collect() };
        LldpFrame { destination: NEAREST_BRIDGE, source: mac(from), lldpdu }.emit().unwrap()
    };
    let mut scene = domain([Mode::Ieee; 2]);
    scene.switches.pop();
    scene.wire.clear();
    let mut receive = |frame: &[u8]| {
        scene.receive(frame);
        let port = scene.switches[0].dcbx(PORT).unwrap();
        (mode(&scene.switches[0]), port.notes().to_vec())
    };
    let subtype = SUBTYPE_CONGESTION;
    let error = DcbxError::Length(3);
    let unreadable = vec![DcbxNote::Unreadable { subtype, error }];
    assert_eq!(receive(&says(8, &[&[8, 0, 0]])), (DefenceMode::Edge, unreadable));
    let repeated = vec![DcbxNote::Repeated { subtype }];
    assert_eq!(receive(&says(8, &[&[8, 0], &[8, 0]])), (DefenceMode::Edge, repeated));
    assert_eq!(receive(&says(8, &[&[8, 0]])), (DefenceMode::Interior, vec![]));
    assert_eq!(receive(&says(8, &[&[8, 8]])), (DefenceMode::InteriorReady, vec![]));
    assert_eq!(receive(&says(9, &[&[8, 8]])), (DefenceMode::Edge, vec![]), "two of them");
    scene.run(Span::from_secs(10));
    assert_eq!(mode(&scene.switches[0]), DefenceMode::Edge, "both are silent");
}
