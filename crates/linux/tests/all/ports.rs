//! Real ports over a veth pair, in a user and network namespace of the test's own thread.

use crate::alone::{ip, needs, veth, wait};
use crate::runner::Test;
use axon_capture::pcap::CaptureOptions;
use axon_dcbx::TieRule;
use axon_fabric::assemble::controller_config;
use axon_linux::agent::{self, AgentOptions};
use axon_linux::clock::Clock;
use axon_linux::daemon::DaemonOptions;
use axon_linux::device_port::{Medium, PortSetup};
use axon_linux::inspect::Inspect;
use axon_linux::link_watch::{LinkEvent, LinkWatch, is_up};
use axon_linux::packet::PacketPort;
use axon_linux::port::{Pool, Port, fabric_mtu, is_device_loss};
use axon_linux::run::{RunOptions, Runtime};
use axon_linux::status::Status;
use axon_linux::sys::{self, Offload};
use axon_linux::tap::TapPort;
use axon_linux::{log, request, status};
use axon_node::probe::{PlanKind, ProbePlan, ProbeRefusal};
use axon_node::telemetry::{AgentTelemetry, FlowControl, NodeTelemetry};
use axon_node::{
    Action, Awaited, CommandError, Input, Node, NodeKind, PortKind, Request, Shortcuts,
};
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::RpInterpretations;
use axon_plane::{FrameMeta, Ports};
use axon_switch::agent::{AgentConfig, AgentNode, Rules};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::{MacControl, Quanta};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Rate, Span, Time};
use std::net::UdpSocket;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("a_tag_that_the_kernel_took_out_comes_back", a_tag_that_the_kernel_took_out_comes_back),
    ("a_partial_checksum_is_completed", a_partial_checksum_is_completed),
    ("a_super_frame_is_refused_and_counted", a_super_frame_is_refused_and_counted),
    ("what_this_machine_sends_is_not_heard_again", what_this_machine_sends_is_not_heard_again),
    (
        "what_is_sent_to_a_device_that_is_down_is_counted_as_lost",
        what_is_sent_to_a_device_that_is_down_is_counted_as_lost,
    ),
    ("what_a_full_ring_or_tap_device_loses_is_counted_once", what_a_full_ring_loses),
    ("a_frame_shows_without_a_system_call", a_frame_shows_without_a_system_call),
    ("a_node_to_which_frames_never_cease_to_come_answers", frames_never_cease),
    ("carrier_is_followed_at_once", carrier_is_followed_at_once),
    ("a_device_that_is_replaced_is_the_port_again", a_device_that_is_replaced),
    ("a_tap_port_carries_whole_frames", a_tap_port_carries_whole_frames),
    ("a_tap_device_that_is_deleted_is_made_again", a_tap_device_that_is_deleted),
    ("an_xon_behind_a_busy_wire_with_no_data_queued_is_sent", an_xon_behind_a_busy_wire),
    ("an_agent_refuses_probes_to_whoever_asked", an_agent_refuses_probes),
    ("a_controller_refuses_probes_that_lead_nowhere", a_controller_refuses_probes),
    ("an_mtu_that_is_too_small_shows_and_a_new_one_is_followed", an_mtu_that_is_too_small),
    ("a_log_on_a_full_disk_ends_no_node", a_log_on_a_full_disk_ends_no_node),
    ("an_agent_without_its_hosts_interface_ends_and_leaves_nothing", an_agent_ends),
];

/// The interface of its host exists and is not one that the agent could have made.
fn an_agent_ends() {
    veth();
    // The alarm kills an agent that does not end by itself.
    nix::unistd::alarm::set(20);
    let folder = std::env::temp_dir();
    let [socket, capture] = ["sock", "pcapng"]
        .map(|end| folder.join(format!("axon-agent-ends-{}.{end}", std::process::id())));
    let agent = AgentOptions {
        name: "va".into(),
        host: "va".into(),
        port: "vb".into(),
        rate: Rate::mbps(100),
        host_rate: None,
        pfc: PrioritySet::EMPTY,
        quanta: Quanta::MAX,
        rules: Rules::new(&[]),
        notified: PrioritySet::EMPTY,
        interpretations: RpInterpretations::default(),
        format: CnmFormat::default(),
        dcbx: None,
        tie: TieRule::default(),
    };
    let options = DaemonOptions {
        status_socket: Some(socket.clone()),
        capture: Some(CaptureOptions::to(&capture)),
        ..DaemonOptions::default()
    };
    let error = agent::run(&agent, &options).unwrap_err();
    let said = format!("{error:#}");
    assert!(said.contains("no TAP device va: an interface of that name is there"), "{said}");
    assert!(!socket.exists() && !capture.exists());
    let queues = Command::new("tc").args(["qdisc", "show", "dev", "va"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&queues.stdout).contains("htb"), "{queues:?}");
}

/// Returns the next frame that `wanted` accepts.
fn next(port: &mut dyn Port, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut pool = Pool::default();
    for _ in 0..100 {
        let mut frames = Vec::new();
        port.receive(&mut pool, &mut frames).unwrap();
        if let Some(frame) = frames.iter().find(|frame| wanted(frame.bytes())) {
            return frame.bytes().to_vec();
        }
        wait(port.fd());
    }
    panic!("the frame did not come");
}

fn frame(bytes: &[u8]) -> FrameBuf {
    FrameBuf::new(bytes)
}

fn a_tag_that_the_kernel_took_out_comes_back() {
    veth();
    let (mut a, mut b) =
        (PacketPort::open("va", false).unwrap(), PacketPort::open("vb", false).unwrap());
    for tpid in [[0x81, 0x00], [0x88, 0xa8]] {
        // Bytes like those of a tag are hops of an Axon header here.
        let mut bytes: Vec<u8> = (16..116).collect();
        bytes[12..14].copy_from_slice(&tpid);
        bytes[14..16].copy_from_slice(&[0xe1, 0x23]);
        a.send(&[frame(&bytes)]).unwrap();
        assert_eq!(next(&mut b, |frame| frame[0] == 16), bytes);
    }
    assert_eq!(b.counters().rx_tags_restored, 2);
}

/// Gives `va` an address and a neighbour behind `vb`; returns a socket that sends there.
fn sender() -> UdpSocket {
    ip("address add 10.0.0.1/24 dev va");
    ip("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev va");
    let socket = UdpSocket::bind("10.0.0.1:5000").unwrap();
    socket.connect("10.0.0.2:5001").unwrap();
    socket
}

fn is_udp(frame: &[u8]) -> bool {
    frame.len() > 23 && frame[12..14] == [8, 0] && frame[23] == 17
}

fn a_partial_checksum_is_completed() {
    veth();
    let mut b = PacketPort::open("vb", false).unwrap();
    sender().send(b"an odd number of bytes.").unwrap();
    let frame = next(&mut b, is_udp);
    assert_eq!(b.counters().rx_checksums_completed, 1);
    // Pseudo-header (addresses, protocol, length) and the datagram sum up to all ones.
    let datagram = &frame[34..];
    let words = frame[26..34].chunks(2).chain(datagram.chunks(2));
    let sum = words.map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)));
    let mut sum = sum.sum::<u64>() + 17 + datagram.len() as u64;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    assert_eq!(sum, 0xffff);
    // With the offload off, as in the lab, no checksum is left to complete.
    sys::set_offload("va", Offload::TxChecksum, false).unwrap();
    sender_again(b"even").expect("a second datagram");
    next(&mut b, is_udp);
    assert_eq!(b.counters().rx_checksums_completed, 1);
}

fn sender_again(payload: &[u8]) -> std::io::Result<usize> {
    let socket = UdpSocket::bind("10.0.0.1:5002")?;
    socket.connect("10.0.0.2:5001")?;
    socket.send(payload)
}

fn a_super_frame_is_refused_and_counted() {
    veth();
    let mut b = PacketPort::open("vb", false).unwrap();
    let socket = sender();
    // The port was opened at 1500, and its link accepts more since.
    ip("link set vb mtu 4000");
    ip("link set va mtu 4000");
    socket.send(&[0; 3000]).unwrap();
    socket.send(b"small").unwrap();
    assert_eq!(next(&mut b, is_udp).len(), 14 + 20 + 8 + 5);
    assert_eq!(b.counters().rx_oversized, 1);
}

fn what_this_machine_sends_is_not_heard_again() {
    veth();
    let (mut a, mut b) =
        (PacketPort::open("va", false).unwrap(), PacketPort::open("vb", false).unwrap());
    let many: Vec<FrameBuf> = (0..200).map(|n| frame(&[n as u8; 60])).collect();
    a.send(&many).unwrap();
    next(&mut b, |frame| frame[0] == 199);
    assert_eq!((a.counters().tx_frames, b.counters().rx_frames), (200, 200));
    b.send(&[frame(&[7; 60])]).unwrap();
    assert_eq!(next(&mut a, |_| true), [7; 60]);
    assert_eq!(a.counters().rx_frames, 1);
}

fn what_is_sent_to_a_device_that_is_down_is_counted_as_lost() {
    veth();
    let mut packets = PacketPort::open("va", false).unwrap();
    let mut tap = TapPort::open("t0").unwrap();
    sys::set_device_up("va", false).unwrap();
    let many: Vec<FrameBuf> = (0..200).map(|n| frame(&[n as u8; 60])).collect();
    for (sent, counters) in [
        (packets.send(&many), packets.counters()),
        // A TAP device that was never up.
        (tap.send(&many), tap.counters()),
    ] {
        assert!(is_device_loss(&sent.unwrap_err()));
        assert_eq!((counters.tx_frames, counters.tx_refused), (0, 200));
    }
}

/// Sends more frames to a port than its ring holds, before the port reads any.
fn what_a_full_ring_loses() {
    veth();
    let mut tap = TapPort::open("t0").unwrap();
    sys::set_device_up("t0", true).unwrap();
    let mut ring = PacketPort::open("vb", false).unwrap();
    let ports: [(&str, &mut dyn Port); 2] = [("va", &mut ring), ("t0", &mut tap)];
    for (device, port) in ports {
        let many: Vec<FrameBuf> = (0..5_000).map(|_| frame(&[0x66; 60])).collect();
        PacketPort::open(device, false).unwrap().send(&many).unwrap();
        let (mut pool, mut frames) = (Pool::default(), Vec::new());
        while port.receive(&mut pool, &mut frames).unwrap() {}
        let received = frames.iter().filter(|frame| frame.bytes() == [0x66; 60]).count() as u64;
        let lost = port.counters().rx_ring_drops;
        assert!(received > 0 && lost > 0, "{device}: {received} received, {lost} lost");
        // The kernel has a few frames of its own to send, which may be lost, too.
        let all = received + lost;
        assert!((5_000..5_020).contains(&all), "{device}: {received} received, {lost} lost");
        assert_eq!(port.counters().rx_ring_drops, lost, "once");
    }
}

fn a_frame_shows_without_a_system_call() {
    veth();
    let (mut a, mut b) =
        (PacketPort::open("va", false).unwrap(), PacketPort::open("vb", false).unwrap());
    assert_eq!(b.has_frame(), Some(false));
    a.send(&[frame(&[1; 60]), frame(&[2; 60])]).unwrap();
    wait(b.fd());
    assert_eq!(b.has_frame(), Some(true));
    next(&mut b, |frame| frame[0] == 2);
    assert_eq!(b.has_frame(), Some(false));
}

fn carrier_is_followed_at_once() {
    veth();
    let mut watch = LinkWatch::open().unwrap();
    sys::set_device_up("vb", false).unwrap();
    let mut events = Vec::new();
    while !events.contains(&LinkEvent { device: "va".into(), up: false }) {
        wait(watch.fd());
        assert!(watch.read(&mut events));
    }
    assert!(!is_up("va"));
}

/// Sends back received frames, and records the events of its one port.
#[derive(Default)]
struct Echo {
    links: Vec<bool>,
    received: usize,
}

impl Node for Echo {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Link { up, .. } => self.links.push(up),
            Input::Frame { port, frame, .. } => {
                self.received += 1;
                out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
            }
            Input::TxDone { .. } | Input::Timeout | Input::Command(_) => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Echo {}

impl Inspect for Echo {
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Host
    }

    fn telemetry(&self, _: Time) -> NodeTelemetry {
        unreachable!("nobody reads its status")
    }
}

fn a_device_that_is_replaced() {
    veth();
    let clock = Clock::start();
    let setup = PortSetup {
        device: "va".into(),
        medium: Medium::Packet,
        rate: Some(Rate::mbps(100)),
        lossless: false,
        host_mtu: None,
    };
    let options = RunOptions { name: "s1".into(), ports: vec![setup], ..RunOptions::default() };
    let mut runtime = Runtime::open(Echo::default(), clock, options).unwrap();
    assert_eq!(runtime.node().links, [true]);
    let limit = clock.now() + Span::from_secs(10);
    ip("link delete va");
    while runtime.node().links.len() < 2 && clock.now() < limit {
        runtime.round(limit).unwrap();
    }
    assert_eq!(runtime.node().links, [true, false]);
    ip("link add va index 201 type veth peer name vb index 202");
    sys::set_device_up("va", true).unwrap();
    sys::set_device_up("vb", true).unwrap();
    while runtime.node().links.len() < 3 && clock.now() < limit {
        runtime.round(limit).unwrap();
    }
    assert_eq!(runtime.node().links, [true, false, true]);
    let mut b = PacketPort::open("vb", false).unwrap();
    b.send(&[frame(&[9; 60])]).unwrap();
    while runtime.node().received < 1 && clock.now() < limit {
        runtime.round(limit).unwrap();
    }
    assert_eq!(next(&mut b, |_| true), [9; 60]);
}

/// A node at a port to another switch.
#[derive(Default)]
struct Transit(Echo);

impl Node for Transit {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.0.handle(now, input, out);
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Transit {}

impl Inspect for Transit {
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Axon
    }

    fn telemetry(&self, _: Time) -> NodeTelemetry {
        NodeTelemetry::Agent(Box::new(AgentTelemetry {
            pfc: PrioritySet::EMPTY,
            pause: false,
            rules: String::new(),
            reaction_points: Vec::new(),
            dcbx: None,
            host: FlowControl::default(),
            fabric: FlowControl::default(),
            total: Default::default(),
        }))
    }
}

fn an_mtu_that_is_too_small() {
    veth();
    let clock = Clock::start();
    let setup = PortSetup {
        device: "va".into(),
        medium: Medium::Packet,
        rate: None,
        lossless: false,
        host_mtu: Some(1500),
    };
    let socket = std::env::temp_dir().join(format!("axon-mtu-{}.sock", std::process::id()));
    let options = RunOptions {
        name: "s1".into(),
        ports: vec![setup],
        status_socket: Some(socket.clone()),
        ..RunOptions::default()
    };
    let mut runtime = Runtime::open(Transit::default(), clock, options).unwrap();
    let mut shown = || {
        let asker = std::thread::spawn({
            let socket = socket.clone();
            move || status::ask(&socket).unwrap()
        });
        while !asker.is_finished() {
            runtime.round(clock.now() + Span::from_millis(10)).unwrap();
        }
        let port = &asker.join().unwrap().ports[0];
        (port.up, port.mtu_bytes, port.mtu_needed_bytes, port.counters)
    };
    let needed = Some(fabric_mtu(1500) as u64);
    let (up, mtu, mtu_needed, _) = shown();
    assert_eq!((up, mtu, mtu_needed), (true, Some(1500), needed));
    for device in ["va", "vb"] {
        ip(&format!("link set {device} mtu {}", fabric_mtu(1500)));
    }
    let mut b = PacketPort::open("vb", false).unwrap();
    b.send(&[frame(&[9; 2000])]).unwrap();
    // The message about the MTU may arrive after the frame.
    let (_, mtu, _, first) = shown();
    b.send(&[frame(&[9; 2000])]).unwrap();
    let (up, _, _, then) = shown();
    assert_eq!((up, mtu), (true, needed));
    assert_eq!(then.rx_frames, first.rx_frames + 1, "{first:?} {then:?}");
    for end in ["sock", "sock.ask"] {
        std::fs::remove_file(socket.with_extension(end)).unwrap();
    }
}

fn a_log_on_a_full_disk_ends_no_node() {
    veth();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    nix::unistd::dup2_stderr(&full).unwrap();
    tracing_subscriber::fmt().with_writer(log::writer).init();
    log::line(format_args!("this line is lost"));
    let clock = Clock::start();
    let setup = PortSetup {
        device: "va".into(),
        medium: Medium::Packet,
        rate: None,
        lossless: false,
        host_mtu: None,
    };
    let options = RunOptions { name: "s1".into(), ports: vec![setup], ..RunOptions::default() };
    let mut runtime = Runtime::open(Echo::default(), clock, options).unwrap();
    let limit = clock.now() + Span::from_secs(10);
    for (up, seen) in [(false, 2), (true, 3), (false, 4)] {
        sys::set_device_up("vb", up).unwrap();
        while runtime.node().links.len() < seen && clock.now() < limit {
            runtime.round(limit).unwrap();
        }
    }
    assert_eq!(runtime.node().links, [true, false, true, false]);
}

/// Runs a node without any device and requests probes without a valid path. Returns the reason of
/// the refusal, and its status.
fn refused<N: Inspect>(node: N, name: &str) -> (CommandError, Status) {
    let socket = std::env::temp_dir().join(format!("axon-{name}-{}.sock", std::process::id()));
    let options = RunOptions {
        name: name.into(),
        status_socket: Some(socket.clone()),
        ..RunOptions::default()
    };
    let clock = Clock::start();
    let mut runtime = Runtime::open(node, clock, options).unwrap();
    let asker = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let nowhere = ProbePlan::new(PlanKind::Circuit([PortNo(0)].into_iter().collect()));
            let error = request::ask(&socket, Request::Probe(nowhere)).unwrap_err();
            (error.downcast().unwrap(), status::ask(&socket).unwrap())
        }
    });
    while !asker.is_finished() {
        runtime.round(clock.now() + Span::from_millis(10)).unwrap();
    }
    for end in ["sock", "sock.ask"] {
        std::fs::remove_file(socket.with_extension(end)).unwrap();
    }
    asker.join().unwrap()
}

fn an_agent_refuses_probes() {
    let config = AgentConfig {
        rate: Rate::mbps(100),
        pfc: PrioritySet::only(Priority::ALL[3]),
        pfc_quanta: Quanta::MAX,
        rules: Rules::new(&[]),
        frame_bytes_max: 1_514,
        share: Bytes(10_000),
        headroom: Bytes(10_000),
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        reaction: None,
        lldp: None,
    };
    let (error, status) = refused(AgentNode::new(config).unwrap(), "h1");
    assert_eq!(error, CommandError::Unsupported(NodeKind::Agent));
    assert_eq!(status.node.agent().unwrap().pfc, PrioritySet::only(Priority::ALL[3]));
}

fn a_controller_refuses_probes() {
    let text = "name: a\ntopology: { line: { switches: 2 } }\n";
    let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
    let node = controller_config(&fabric, 1, 7).on_software(Time::ZERO, &[]);
    let (error, status) = refused(node, "c1");
    assert_eq!(error, CommandError::Probe(ProbeRefusal::NoCircuit));
    assert!(matches!(status.node, NodeTelemetry::Controller(_)), "{status:?}");
}

fn frames_never_cease() {
    veth();
    let clock = Clock::start();
    let setup = PortSetup {
        device: "va".into(),
        medium: Medium::Packet,
        rate: None,
        lossless: false,
        host_mtu: None,
    };
    let socket = std::env::temp_dir().join(format!("axon-cease-{}.sock", std::process::id()));
    let options = RunOptions {
        name: "s1".into(),
        ports: vec![setup],
        status_socket: Some(socket.clone()),
        ..RunOptions::default()
    };
    let mut runtime = Runtime::open(Transit::default(), clock, options).unwrap();
    let mut peer = PacketPort::open("vb", false).unwrap();
    let frames: Vec<FrameBuf> = (0..64).map(|_| frame(&[1; 60])).collect();
    let asker = std::thread::spawn(move || status::ask(&socket));
    let limit = clock.now() + Span::from_secs(10);
    while !asker.is_finished() && clock.now() < limit {
        peer.send(&frames).unwrap();
        runtime.round(limit).unwrap();
    }
    let status = asker.join().unwrap().expect("an answer");
    assert!(status.ports[0].counters.rx_frames > 0, "{status:?}");
}

/// Sends every frame back out of its one port, through the queues and the flow control of a switch.
struct Mirror {
    ports: Ports,
}

impl Mirror {
    /// Priority 3 is lossless, and one queued frame of it exceeds the threshold.
    fn new() -> Mirror {
        let three = Priority::ALL[3];
        let pfc = PrioritySet::only(three);
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let mut config = DcbConfig { pfc, ..DcbConfig::lossy(vec![Rate::mbps(1)], mac) };
        config.memory.lossless = pfc;
        let group = &mut config.memory.groups[0][three.index()];
        (group.reserved, group.headroom) = (Bytes(500), Bytes(100_000));
        let mut ports = Ports::new(1, Bytes(100_000));
        ports.set_dcb(config, Priority::MAX).unwrap();
        Mirror { ports }
    }
}

impl Node for Mirror {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Link { port, up } => self.ports.link(now, port, up, out),
            Input::Frame { port, frame, .. } => {
                let meta = FrameMeta::ethernet(frame, port, now, true);
                self.ports.receive(now, &meta).unwrap();
                self.ports.deliver(now, meta, port, None, out);
            }
            Input::TxDone { port } => self.ports.tx_done(now, port, out),
            Input::Timeout => self.ports.timeout(now, out),
            Input::Command(_) => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.ports.deadline()
    }
}

impl Shortcuts for Mirror {
    fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }
}

impl Inspect for Mirror {
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Host
    }

    fn telemetry(&self, _: Time) -> NodeTelemetry {
        unreachable!("nobody reads its status")
    }
}

/// The last frame takes the port below its XON threshold while it is on the wire: the XON is queued
/// behind it, and no data is.
fn an_xon_behind_a_busy_wire() {
    veth();
    let clock = Clock::start();
    let setup = PortSetup {
        device: "va".into(),
        medium: Medium::Packet,
        rate: Some(Rate::mbps(1)),
        lossless: true,
        host_mtu: None,
    };
    let options = RunOptions { name: "s1".into(), ports: vec![setup], ..RunOptions::default() };
    let mut runtime = Runtime::open(Mirror::new(), clock, options).unwrap();
    let mut peer = PacketPort::open("vb", true).unwrap();
    let mut data = [0; 1_000];
    data[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    data[12..15].copy_from_slice(&[0x81, 0, 3 << 5]);
    let frames = [&data; 2].map(|data| frame(data));
    peer.send(&frames).unwrap();
    let counts = |runtime: &Runtime<Mirror>| {
        let dcb = runtime.node().ports.dcb().unwrap();
        dcb.pauses(PortNo(0)).unwrap().counts(Priority::ALL[3]).0
    };
    // Two frames take 16 ms of this wire; a loop that does not wake up sleeps until the end.
    let limit = clock.now() + Span::from_secs(5);
    let sent = |frame: &[u8]| {
        let pfc = MacControl::parse(frame, MacAddr::default());
        matches!(pfc, Ok(MacControl::Pfc(pfc)) if pfc.times[3] == Quanta::ZERO)
    };
    let mut pool = Pool::default();
    let mut received = Vec::new();
    while !received.iter().any(|frame: &FrameBuf| sent(frame.bytes())) && clock.now() < limit {
        runtime.round(limit).unwrap();
        peer.receive(&mut pool, &mut received).unwrap();
    }
    assert!(clock.now() < limit, "XON waits: {} PFC frames sent", counts(&runtime));
    assert!(counts(&runtime) >= 2, "XOFF came before");
}

fn a_tap_port_carries_whole_frames() {
    let mut tap = match TapPort::open("t0") {
        Ok(tap) => tap,
        Err(error) => {
            needs::skip(&format!("a_tap_port_carries_whole_frames: /dev/net/tun: {error}"));
            return;
        }
    };
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/t0/disable_ipv6", "1");
    sys::set_device_up("t0", true).unwrap();
    ip("address add 10.0.1.1/24 dev t0");
    ip("neigh add 10.0.1.2 lladdr 02:00:00:00:00:02 dev t0");
    let socket = UdpSocket::bind("10.0.1.1:5000").unwrap();
    socket.send_to(b"out", "10.0.1.2:5001").unwrap();
    assert_eq!(next(&mut tap, is_udp).len(), 14 + 20 + 8 + 3);
    let mut device = PacketPort::open("t0", false).unwrap();
    tap.send(&[frame(&[5; 60])]).unwrap();
    assert_eq!(next(&mut device, |frame| frame[0] == 5), [5; 60]);
}

fn a_tap_device_that_is_deleted() {
    if let Err(error) = TapPort::open("t1") {
        needs::skip(&format!("a_tap_device_that_is_deleted: /dev/net/tun: {error}"));
        return;
    }
    let clock = Clock::start();
    let setup = PortSetup {
        device: "t1".into(),
        medium: Medium::Tap,
        rate: None,
        lossless: false,
        host_mtu: None,
    };
    let options = RunOptions { name: "s1".into(), ports: vec![setup], ..RunOptions::default() };
    let mut runtime = Runtime::open(Echo::default(), clock, options).unwrap();
    let limit = clock.now() + Span::from_secs(10);
    for links in [&[true][..], &[true, false, true]] {
        while sys::device_mtu("t1").is_err() && clock.now() < limit {
            runtime.round(limit).unwrap();
        }
        sys::set_device_up("t1", true).unwrap();
        while runtime.node().links.len() < links.len() && clock.now() < limit {
            runtime.round(limit).unwrap();
        }
        assert_eq!(runtime.node().links, links);
        ip("link delete t1");
    }
}
