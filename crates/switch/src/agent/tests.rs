//! Agent in virtual time, between a host and a scripted fabric.

use super::*;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use axon_dcbx::lldp::{LldpAgent, LldpConfig, LldpIdentity};
use axon_dcbx::{DcbEvent, DcbPort, DcbxConfig, DcbxNote, DcbxSettings, Mode, Source, TieRule};
use axon_node::{Action, Drop, Input, Node};
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::{DefenceConfig, DefenceMode, RpConfig};
use axon_wire::cn::{CnTag, Cnm, CnmFormat, CnmFrame};
use axon_wire::lldp::Id;
use axon_wire::mac_control::{self, MacControl, Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Rate, Time};
use proptest::prelude::*;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const RATE: Rate = Rate::mbps(100);
const LOSSLESS: u8 = 3;
const HEADROOM: u64 = 6_000;

fn set(priorities: &[u8]) -> PrioritySet {
    priorities.iter().map(|&number| Priority::new(number).unwrap()).collect()
}

fn config() -> AgentConfig {
    let table = ["ethertype:0x8903=3", "ethertype:0x8905=5"];
    let table: Vec<_> = table.iter().map(|text| rules::parse(text).unwrap()).collect();
    AgentConfig {
        rate: RATE,
        pfc: set(&[LOSSLESS]),
        pfc_quanta: Quanta(1_000),
        rules: Rules::new(&table),
        frame_bytes_max: 1_514,
        share: Bytes(3_900),
        headroom: Bytes(HEADROOM),
        mac: MAC,
        reaction: Some(Reaction {
            priorities: set(&[LOSSLESS]),
            point: RpConfig::for_port(RATE),
            format: CnmFormat::default(),
            seed: 1,
        }),
        lldp: None,
    }
}

/// Returns a frame of 1,000 bytes to which the rules give this priority, with a number in it.
fn frame(priority: u8, number: u32) -> FrameBuf {
    let mut bytes = [0; 1_000];
    bytes[..12].copy_from_slice(&[4; 12]);
    bytes[12..14].copy_from_slice(&[0x89, priority]);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    FrameBuf::new(&bytes)
}

/// Agent, wires that carry one frame at a time, and recorded output.
struct Bench {
    agent: AgentNode,
    now: Time,
    busy: [Option<Time>; 2],
    /// Frames that left, by port.
    left: [Vec<FrameBuf>; 2],
    dropped: Vec<Drop>,
}

impl Bench {
    fn new(config: AgentConfig) -> Bench {
        let agent = AgentNode::new(config).unwrap();
        let mut bench = Bench {
            agent,
            now: Time::ZERO,
            busy: [None; 2],
            left: Default::default(),
            dropped: Vec::new(),
        };
        [HOST, FABRIC].into_iter().for_each(|port| bench.feed(Input::Link { port, up: true }));
        bench
    }

    fn feed(&mut self, input: Input) {
        let mut out = Vec::new();
        self.agent.handle(self.now, input, &mut out);
        for action in out {
            match action {
                Action::Transmit { port, frame, .. } => {
                    let wire = RATE.time_for(Bytes(frame.bytes().len() as u64 + 24));
                    assert!(self.busy[port.index()].is_none(), "one frame at a time");
                    self.busy[port.index()] = Some(self.now + wire);
                    self.left[port.index()].push(frame);
                }
                Action::Dropped { reason, .. } => self.dropped.push(reason),
                other => panic!("{other:?}"),
            }
        }
    }

    fn come(&mut self, port: PortNo, frame: FrameBuf) {
        self.feed(Input::Frame { port, frame, complete_at: self.now, intact: true });
    }

    fn receive(&mut self, stop: PrioritySet, quanta: Quanta) {
        let bytes = MacControl::Pfc(Pfc::of(stop, quanta)).emit(MacAddr([2; 6]));
        self.come(FABRIC, FrameBuf::new(&bytes));
        assert_eq!(self.dropped.pop(), Some(Drop::MacControl));
    }

    /// Runs wires and timers until `until`.
    fn run(&mut self, until: Time) {
        loop {
            let wires = self.busy.iter().flatten().copied();
            let next = wires.chain(self.agent.deadline()).min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            self.now = next.max(self.now);
            match self.busy.iter().position(|busy| busy.is_some_and(|at| at <= self.now)) {
                Some(port) => {
                    self.busy[port] = None;
                    self.feed(Input::TxDone { port: PortNo(port as u16) });
                }
                None => self.feed(Input::Timeout),
            }
        }
        self.now = until;
    }

    fn millis(&mut self, millis: u64) {
        self.run(self.now + axon_wire::Span::from_millis(millis));
    }

    fn pfc(&self) -> PrioritySet {
        self.agent.ports().dcb().unwrap().pfc(FABRIC)
    }

    /// Returns the paused priorities of the PFC frames sent to the host, in order.
    fn pauses_at_host(&self) -> Vec<PrioritySet> {
        paused(&self.left[HOST.index()])
    }

    /// Returns the numbers of frames that have left for the fabric with this priority.
    fn sent(&self, priority: u8) -> Vec<u32> {
        let of = |frame: &&FrameBuf| vlan::priority_of(frame.bytes()).value() == priority;
        let at = if priority == 0 { 20 } else { 24 };
        let number =
            |frame: &FrameBuf| u32::from_be_bytes(*frame.bytes()[at..].first_chunk().unwrap());
        let data = |frame: &&FrameBuf| !mac_control::is_mac_control(frame.bytes());
        self.left[FABRIC.index()].iter().filter(data).filter(of).map(number).collect()
    }
}

/// Returns the paused priorities of flow control frames, in order.
fn paused(frames: &[FrameBuf]) -> Vec<PrioritySet> {
    let stops = |frame: &FrameBuf| match MacControl::parse(frame.bytes(), MAC) {
        Ok(MacControl::Pfc(pfc)) => {
            let stops = |priority: &Priority| pfc.time(*priority).is_some_and(|t| t > Quanta(0));
            Some(Priority::ALL.into_iter().filter(stops).collect())
        }
        _ => None,
    };
    frames.iter().filter_map(stops).collect()
}

#[test]
fn a_priority_is_tagged_towards_the_fabric_and_untagged_towards_the_host() {
    let mut bench = Bench::new(config());
    bench.come(HOST, frame(3, 1));
    let there = bench.left[FABRIC.index()].pop().unwrap();
    assert_eq!(VlanTag::of_frame(there.bytes()), Some(VlanTag::of_priority(Priority::ALL[3])));
    bench.come(FABRIC, there);
    assert_eq!(bench.left[HOST.index()].pop().unwrap().bytes(), frame(3, 1).bytes());
    bench.millis(1);
    bench.come(HOST, frame(0, 2));
    let there = bench.left[FABRIC.index()].pop().unwrap();
    assert_eq!(there.bytes(), frame(0, 2).bytes(), "no tag says 0 too");
}

#[test]
fn a_paused_priority_waits_and_others_go_on() {
    let mut bench = Bench::new(config());
    bench.receive(set(&[3, 5]), Quanta(1_000));
    for number in 0..3 {
        [0, 3, 5].into_iter().for_each(|priority| bench.come(HOST, frame(priority, number)));
    }
    bench.millis(2);
    assert_eq!((bench.sent(0), bench.sent(3)), (vec![0, 1, 2], vec![]));
    assert_eq!(bench.sent(5), [0, 1, 2], "it has no flow control here");
    bench.millis(10);
    assert_eq!(bench.sent(3), [0, 1, 2], "1,000 quanta are 5.12 ms");
    assert!(bench.dropped.is_empty());
}

#[test]
fn a_host_is_paused_before_anything_is_lost_and_resumed_when_half_has_left() {
    let mut bench = Bench::new(config());
    bench.receive(set(&[3]), Quanta::MAX);
    (0..4).for_each(|number| bench.come(HOST, frame(3, number)));
    assert_eq!(bench.pauses_at_host().len(), 1, "four frames are more than 3,900 bytes");
    assert_eq!(bench.pauses_at_host()[0], set(&[3]));
    bench.receive(set(&[3]), Quanta(0));
    bench.millis(1);
    assert_eq!(bench.sent(3), [0, 1, 2, 3]);
    let sent = bench.pauses_at_host();
    assert_eq!((sent.len(), sent[1]), (2, PrioritySet::EMPTY));
    // Priorities without flow control in the fabric are held back at the source, too.
    (0..5).for_each(|number| bench.come(HOST, frame(5, number)));
    assert_eq!(bench.pauses_at_host().last(), Some(&set(&[5])));
    assert!(bench.dropped.is_empty());
}

#[test]
fn a_slow_host_pauses_lossless_priorities_and_loses_others() {
    let mut bench = Bench::new(config());
    for number in 0..9 {
        let mut lossless = frame(3, number);
        vlan::insert(&mut lossless, VlanTag::of_priority(Priority::ALL[3])).unwrap();
        bench.come(FABRIC, lossless);
        bench.come(FABRIC, frame(0, number));
    }
    assert_eq!(paused(&bench.left[FABRIC.index()]), [set(&[3])], "one XOFF, at the fifth");
    assert_eq!(bench.dropped, [Drop::QueueFull; 6], "of the others three wait");
    bench.dropped.clear();
    bench.millis(10);
    assert_eq!(paused(&bench.left[FABRIC.index()]).last(), Some(&PrioritySet::EMPTY));
    assert_eq!(bench.left[HOST.index()].len(), 12);
}

#[test]
fn a_link_with_pause_stops_whole_and_so_does_the_host() {
    let mut bench = Bench::new(AgentConfig { pfc: PrioritySet::EMPTY, ..config() });
    bench.receive(PrioritySet::ALL, Quanta(1_000));
    bench.come(HOST, frame(0, 0));
    assert_eq!(bench.sent(0), [0], "PFC is not in use here");
    let pause = |time| FrameBuf::new(&MacControl::Pause(Quanta(time)).emit(MacAddr([2; 6])));
    bench.come(FABRIC, pause(1_000));
    (0..8).for_each(|number| bench.come(HOST, frame(number % 2 * 3, number.into())));
    assert_eq!(bench.dropped, [Drop::MacControl], "nothing else has ended");
    bench.millis(1);
    assert_eq!(bench.pauses_at_host().last(), Some(&set(&[0, 3])), "what holds too much of it");
    bench.millis(20);
    assert_eq!((bench.sent(0).len(), bench.sent(3).len()), (5, 4));
}

#[test]
fn a_notification_slows_one_priority_down_and_it_recovers() {
    let mut bench = Bench::new(config());
    let cnm = Cnm { feedback: 63, cpid: 1, priority: Priority::ALL[3], ..Cnm::default() };
    let frame_of = |cnm| CnmFrame { destination: MAC, source: MAC, vlan: None, cn: None, cnm };
    let emit = |cnm| FrameBuf::new(&frame_of(cnm).emit(&CnmFormat::default()));
    bench.come(FABRIC, emit(cnm.clone()));
    assert_eq!(bench.dropped.pop(), Some(Drop::Consumed));
    bench.come(FABRIC, emit(Cnm { priority: Priority::ALL[5], ..cnm }));
    assert_eq!(bench.dropped.pop(), Some(Drop::Refused), "no reaction point");
    // Just above half of the rate is left.
    let mut number = 0;
    let half = bench.now + RATE.time_for(Bytes(1_028 * 16));
    while bench.now < half {
        bench.come(HOST, frame(3, number));
        number += 1;
        bench.run(bench.now + RATE.time_for(Bytes(1_028)));
    }
    let slow = bench.sent(3).len();
    assert!((8..=10).contains(&slow), "{slow} of 16");
    bench.millis(1_000);
    assert_eq!(bench.sent(3).len(), number as usize, "nothing is lost");
    let limiter = bench.agent.limiter(Priority::ALL[3]).unwrap();
    assert!(!limiter.point().active(), "it rests at full rate");
    assert_eq!(bench.agent.deadline(), None);
}

#[test]
fn what_is_no_notification_is_counted_or_goes_to_the_host_without_its_tag() {
    let mut bench = Bench::new(config());
    let cnm_frame = CnmFrame {
        destination: MAC,
        source: MAC,
        vlan: None,
        cn: Some(CnTag { flow: 9 }),
        cnm: Cnm { feedback: 63, cpid: 1, priority: Priority::ALL[3], ..Cnm::default() },
    };
    let bytes = cnm_frame.emit(&CnmFormat::default());
    bench.come(FABRIC, FrameBuf::new(&bytes[..30]));
    assert_eq!(bench.dropped, [Drop::Malformed]);
    assert!(!bench.agent.limiter(Priority::ALL[3]).unwrap().point().active());
    let plain = frame(0, 1);
    let tag = CnTag { flow: 9 }.emit();
    let tagged = [&plain.bytes()[..12], &tag, &plain.bytes()[12..]].concat();
    bench.come(FABRIC, FrameBuf::new(&tagged));
    assert_eq!(bench.left[HOST.index()][0].bytes(), plain.bytes());
}

/// Port of a switch, the agent's neighbour: PFC for priority 3.
struct Switch(DcbPort);

impl Switch {
    /// Creates a switch with the standard's form; EtherType 0x8903 has priority 3.
    fn new() -> Switch {
        Switch::advertising(Mode::Ieee, &["ethertype:0x8903=3"])
    }

    /// Creates a switch with this form and these applications.
    fn advertising(mode: Mode, applications: &[&str]) -> Switch {
        let applications = applications.iter().map(|rule| rules::parse(rule).unwrap()).collect();
        Switch::with(DcbxSettings { mode, applications, ..DcbxSettings::default() })
    }

    fn with(settings: DcbxSettings) -> Switch {
        let dcb = DcbConfig { pfc: set(&[3]), ..DcbConfig::lossy(vec![RATE], MacAddr([2; 6])) };
        let mac = MacAddr([2; 6]);
        let (chassis, port) = (Id::chassis_of_mac(mac), Id::port_of_name("s1-p0"));
        let agent = LldpAgent::new(LldpConfig::default(), LldpIdentity { mac, chassis, port });
        let dcbx = DcbxConfig {
            congestion: Some(DefenceConfig { cnpvs: set(&[3]), ..DefenceConfig::default() }),
            ..DcbxConfig::for_plane(&dcb, &settings)
        };
        Switch(DcbPort::new(agent, dcbx, Vec::new()))
    }

    /// Exchanges LLDP frames between both until neither sends any.
    fn talk(&mut self, bench: &mut Bench, up: bool) {
        let mut events = Vec::new();
        self.0.link(bench.now, up, &mut events);
        loop {
            for event in core::mem::take(&mut events) {
                if let DcbEvent::Send(frame) = event {
                    bench.come(FABRIC, FrameBuf::new(&frame));
                    assert_eq!(bench.dropped.pop(), Some(Drop::Consumed));
                }
            }
            bench.millis(1);
            let said = core::mem::take(&mut bench.left[FABRIC.index()]);
            if said.is_empty() {
                break;
            }
            said.iter().for_each(|frame| self.0.receive(bench.now, frame.bytes(), &mut events));
        }
    }
}

/// Returns the configuration of an agent that runs LLDP and has no priorities of its own.
fn willing() -> AgentConfig {
    let names = ["h1", "h1-e0"].map(Into::into);
    let [system_name, port_name] = names;
    let (agent, tie) = (LldpConfig::default(), TieRule::default());
    let lldp = Some(LldpSettings { system_name, port_name, agent, tie });
    AgentConfig { pfc: PrioritySet::EMPTY, rules: Rules::default(), lldp, ..config() }
}

#[test]
fn an_agent_takes_priorities_and_rules_from_its_switch() {
    let mut bench = Bench::new(willing());
    let mut switch = Switch::new();
    assert_eq!(bench.pfc(), PrioritySet::EMPTY, "PAUSE until somebody speaks");
    switch.talk(&mut bench, true);
    assert_eq!(bench.pfc(), set(&[3]));
    let port = bench.agent.neighbour().unwrap();
    assert_eq!((port.operational().pfc_from, port.notes()), (Source::Peer, &[][..]));
    bench.receive(set(&[3]), Quanta::MAX);
    (0..4).for_each(|number| bench.come(HOST, frame(3, number)));
    bench.millis(1);
    assert_eq!((bench.sent(3), bench.pauses_at_host().last()), (vec![], Some(&set(&[3]))));
    bench.receive(set(&[3]), Quanta(0));
    bench.millis(1);
    assert_eq!(bench.sent(3), [0, 1, 2, 3], "tagged as the switch has said");
    // Both ends belong to the domain and advertise it.
    let three = Priority::ALL[3];
    let mode = |port: &DcbPort| port.defences().unwrap().mode(three);
    let ends = [&switch.0, bench.agent.neighbour().unwrap()];
    assert_eq!(ends.map(mode), [DefenceMode::InteriorReady; 2]);
}

#[test]
fn an_agent_takes_rules_from_a_switch_that_sends_cee() {
    let own = Rules::new(&[rules::parse("port:4791=6").unwrap()]);
    for (own, first) in [(Rules::default(), ""), (own, "port:4791=6 ")] {
        let mut bench = Bench::new(AgentConfig { rules: own, ..willing() });
        let theirs = ["ethertype:0x8903=3", "port:4791=4", "tcp:3260=5"];
        let mut switch = Switch::advertising(Mode::Cee, &theirs);
        switch.talk(&mut bench, true);
        let neighbour = bench.agent.neighbour().unwrap();
        assert_eq!((bench.pfc(), neighbour.notes()), (set(&[3]), &[][..]));
        // The agent has no priority groups. An empty rule list is no error of applications.
        let groups = DcbxNote::FeatureError(axon_wire::dcbx::cee::PART_GROUPS);
        assert_eq!(switch.0.notes(), [groups]);
        let theirs = "port:4791=4 port:3260=5 ethertype:35075=3 default=0";
        assert_eq!(bench.agent.rules().to_string(), alloc::format!("{first}{theirs}"));
        bench.come(HOST, frame(3, 7));
        bench.millis(1);
        assert_eq!(bench.sent(3), [7]);
        bench.feed(Input::Link { port: FABRIC, up: false });
        assert_eq!(bench.agent.rules(), &bench.agent.config().rules);
    }
}

#[test]
fn an_agent_whose_switch_falls_silent_goes_back_to_its_configuration() {
    let mut bench = Bench::new(AgentConfig { pfc: set(&[5]), ..willing() });
    let mut switch = Switch::new();
    switch.talk(&mut bench, true);
    let peers = (bench.pfc(), bench.agent.rules().ordered().len());
    assert_eq!(peers, (set(&[3]), 1));
    // Its LLDPDU holds for 121 s.
    bench.millis(120_000);
    assert_eq!(bench.pfc(), set(&[3]));
    bench.millis(1_000);
    assert_eq!((bench.pfc(), bench.agent.rules().ordered().len()), (set(&[5]), 0));
    // Loss of carrier removes the negotiated state, too.
    switch.talk(&mut bench, false);
    switch.talk(&mut bench, true);
    assert_eq!(bench.pfc(), set(&[3]));
    bench.feed(Input::Link { port: FABRIC, up: false });
    assert_eq!(bench.pfc(), set(&[5]));
}

#[test]
fn of_a_willing_switch_and_its_agent_the_one_that_the_tie_rule_names_keeps_its_pfc() {
    // The switch has PFC for 3 and the address 02:02:02:02:02:02.
    for (tie, mac, keeps) in [
        (TieRule::LowerKeeps, MAC, 5),
        (TieRule::LowerKeeps, MacAddr([6; 6]), 3),
        (TieRule::HigherKeeps, MAC, 3),
        (TieRule::HigherKeeps, MacAddr([6; 6]), 5),
    ] {
        let lldp = willing().lldp.map(|lldp| LldpSettings { tie, ..lldp });
        let mut bench = Bench::new(AgentConfig { pfc: set(&[5]), mac, lldp, ..willing() });
        let mut switch =
            Switch::with(DcbxSettings { pfc_willing: true, tie, ..DcbxSettings::default() });
        switch.talk(&mut bench, true);
        let ends = [bench.pfc(), switch.0.operational().pfc];
        assert_eq!(ends, [set(&[keeps]); 2], "{tie:?} {mac}");
    }
}

#[test]
fn lldp_of_the_host_goes_no_further_than_an_agent_that_runs_it() {
    let mut lldp = frame(0, 0);
    lldp.bytes_mut()[12..14].copy_from_slice(&[0x88, 0xcc]);
    let mut bench = Bench::new(willing());
    bench.come(HOST, lldp.clone());
    assert_eq!(bench.dropped, [Drop::Refused]);
    let mut bench = Bench::new(config());
    bench.come(HOST, lldp);
    assert_eq!((bench.dropped.len(), bench.left[FABRIC.index()].len()), (0, 1));
}

#[test]
fn lldpdus_beyond_the_rate_limit_are_discarded() {
    let mut lldp = frame(0, 0);
    lldp.bytes_mut()[12..14].copy_from_slice(&[0x88, 0xcc]);
    let mut bench = Bench::new(willing());
    (0..300).for_each(|_| bench.come(FABRIC, lldp.clone()));
    let limited =
        |bench: &Bench| bench.dropped.iter().filter(|&&why| why == Drop::PuntLimit).count();
    assert_eq!((bench.dropped.len(), limited(&bench)), (300, 300 - 256));
    // A thousand a second from then on.
    bench.millis(2);
    (0..10).for_each(|_| bench.come(FABRIC, lldp.clone()));
    assert_eq!(limited(&bench), 300 - 256 + 10 - 2);
    // LLDP of the host does not use up the limit.
    (0..300).for_each(|_| bench.come(HOST, lldp.clone()));
    assert_eq!(limited(&bench), 300 - 256 + 10 - 2);
}

proptest! {
    /// For any times and priorities of pauses, a host that acts on it two frames late loses nothing
    /// and its frames keep their order.
    #[test]
    fn a_host_that_pauses_in_time_loses_nothing(
        steps in prop::collection::vec((0..4_u8, any::<u8>(), 0..2_000_u16), 1..200),
    ) {
        let mut bench = Bench::new(config());
        let mut sent: [Vec<u32>; PRIORITIES] = Default::default();
        let mut late = [0; PRIORITIES];
        for (number, (what, which, quanta)) in steps.into_iter().enumerate() {
            let priority = [0, 3, 5][usize::from(which) % 3];
            match what {
                0 => bench.receive(PrioritySet::from_bits(which), Quanta(quanta)),
                1 => bench.millis(1),
                _ => {
                    let last = bench.pauses_at_host().last().copied().unwrap_or_default();
                    let late = &mut late[priority];
                    *late = if last.contains(Priority::ALL[priority]) { *late + 1 } else { 0 };
                    if *late <= 2 {
                        sent[priority].push(number as u32);
                        bench.come(HOST, frame(priority as u8, number as u32));
                        bench.run(bench.now + RATE.time_for(Bytes(1_024)));
                    }
                }
            }
        }
        bench.receive(PrioritySet::ALL, Quanta::ZERO);
        bench.millis(100);
        prop_assert!(bench.dropped.is_empty(), "{:?}", bench.dropped);
        for priority in [0, 3, 5] {
            prop_assert_eq!(&bench.sent(priority as u8), &sent[priority]);
        }
        prop_assert_eq!(bench.agent.ports().dcb().unwrap().memory().used(), Bytes(0));
    }
}
