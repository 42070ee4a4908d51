//! Tests with a fabric in memory whose nodes are recorded, and with replays of the recordings.

use super::{ReplayEnd, ReplayOptions, Replayed, check_name, recordings, replay};
use crate::record::{Identity, RecordOptions, RecordSetup, Recording, Setup, digest};
use axon_capture::recording::{EndReason, Ending, Header, Reader, Writer};
use axon_fabric::FabricText;
use axon_fabric::assemble::{controller_config, host_mac, port_name, switch_config, switch_id};
use axon_fabric::model::{End, Fabric};
use axon_node::probe::ProbePlan;
use axon_node::{
    Action, Awaited, Command, Input, NodeKind, Request, RequestId, Shortcuts, Stored, StoredHost,
};
use axon_plane::Plane;
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{FrameBuf, PortNo, Span, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TEXT: &str = "name: a\ntopology: {ring: {switches: 3, hosts_per_switch: 1}}\n";
/// Serialization time of a frame, and its propagation delay.
const ON_WIRE: Span = Span::from_micros(10);
/// Incarnation number of all nodes.
const NUMBER: u64 = 5;

/// Folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("axon-replay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(yaml: &str) -> FabricText {
    FabricText::of("a.yaml".as_ref(), yaml.to_owned(), None).unwrap()
}

struct Recorded {
    node: Box<dyn Shortcuts>,
    recording: Recording,
}

/// Nodes and cables, and scheduled events.
struct Rig {
    nodes: Vec<Recorded>,
    /// Cables, from node and port to node and port.
    cables: BTreeMap<(usize, PortNo), (usize, PortNo)>,
    agenda: BTreeMap<(Time, u64), (usize, Input)>,
    number: u64,
}

fn recorded<C: std::fmt::Debug>(
    folder: &Folder,
    (kind, name, ports): (NodeKind, &str, u16),
    (config, incarnation): (&C, axon_wire::Incarnation),
    node: Box<dyn Shortcuts>,
    setup: Setup,
) -> Recorded {
    let identity = Identity { kind, incarnation, digest: digest(config), setup };
    let file = folder.file(&format!("{name}.axrec"));
    let options = RecordOptions { file, bytes_max: 1 << 30, fabric: None };
    let ports = (0..ports).map(|port| port_name(name, PortNo(port))).collect();
    let setup = RecordSetup::new(&options, &identity, name, ports, 1_000).unwrap();
    Recorded { node, recording: Recording::open(Some(&setup)).unwrap() }
}

impl Rig {
    fn new(folder: &Folder) -> Rig {
        let fabric_text = text(TEXT);
        let fabric: Fabric = fabric_text.fabric().unwrap();
        let mut nodes = Vec::new();
        for (index, switch) in fabric.switches.iter().enumerate() {
            let seed = 7 + index as u64;
            let config = switch_config(&fabric, index, NUMBER, seed);
            let id = config.control.edge.node.incarnation;
            let node: SwitchNode<Plane> = config.clone().on_software();
            let setup = Setup::Switch { fabric: fabric_text.clone(), seed };
            let what = (NodeKind::Switch, switch.name.as_str(), switch.ports);
            nodes.push(recorded(folder, what, (&config, id), Box::new(node), setup));
        }
        let config = controller_config(&fabric, NUMBER, 99);
        let id = config.control.node.incarnation;
        let started_at = Time::from_nanos(77);
        // One host is stored with its current position, and another with a wrong one.
        let remembered = |host: usize, port| {
            let (mac, switch) = (fabric.hosts[host].mac, switch_id(0));
            Stored::Host(StoredHost { mac, switch, port, ips: Vec::new() })
        };
        let stored = vec![remembered(0, fabric.hosts[0].port), remembered(1, fabric.hosts[0].port)];
        let node: ControllerNode<Plane> = config.clone().on_software(started_at, &stored);
        let setup = Setup::Controller { fabric: fabric_text, seed: 99, started_at, stored };
        let what = (NodeKind::Controller, "c1", 1);
        nodes.push(recorded(folder, what, (&config, id), Box::new(node), setup));
        let mut rig = Rig { nodes, cables: BTreeMap::new(), agenda: BTreeMap::new(), number: 0 };
        let end = |end: End| (end.switch, end.port);
        for link in &fabric.links {
            rig.connect(end(link.a), end(link.b));
        }
        rig.connect(end(fabric.controller.at), (fabric.switches.len(), PortNo(0)));
        for host in &fabric.hosts {
            let input = Input::Link { port: host.port, up: true };
            rig.at(Time::from_nanos(500), host.switch, input);
        }
        for (from, to, millis) in [(0, 1, 800), (2, 0, 900), (0, 1, 1_000), (1, 0, 1_001)] {
            let frame = host_frame(from, to);
            let (at, host) = (Time::ZERO + Span::from_millis(millis), &fabric.hosts[from]);
            let input = Input::Frame { port: host.port, frame, complete_at: at, intact: true };
            rig.at(at, host.switch, input);
        }
        let down = Input::Link { port: fabric.links[0].a.port, up: false };
        rig.at(Time::ZERO + Span::from_millis(1_200), fabric.links[0].a.switch, down);
        let plan = ProbePlan::out_and_back(&[PortNo(0)], &[PortNo(0)]);
        let command = Command { id: RequestId(4), request: Request::Probe(plan) };
        rig.at(Time::ZERO + Span::from_millis(1_100), 1, Input::Command(command));
        rig
    }

    fn connect(&mut self, one: (usize, PortNo), other: (usize, PortNo)) {
        self.cables.insert(one, other);
        self.cables.insert(other, one);
        for (node, port) in [one, other] {
            self.at(Time::from_nanos(500), node, Input::Link { port, up: true });
        }
    }

    fn at(&mut self, at: Time, node: usize, input: Input) {
        self.number += 1;
        self.agenda.insert((at, self.number), (node, input));
    }

    /// Runs until `end`, and then ends all recordings. With `ask`, nodes are queried for awaited
    /// wires. A replay does not do this.
    fn run(mut self, end: Time, ask: bool) {
        let mut last = Time::ZERO;
        loop {
            let due = self.nodes.iter().enumerate();
            // A deadline in the past is due at once.
            let due =
                due.filter_map(|(at, node)| Some((node.node.deadline()?.max(last), at))).min();
            let next = self.agenda.first_key_value().map(|(&(at, _), _)| at);
            let (now, node, input) = match (due, next) {
                (Some((at, node)), next) if next.is_none_or(|next| at <= next) => {
                    (at, node, Input::Timeout)
                }
                _ => match self.agenda.pop_first() {
                    Some(((at, _), (node, input))) => (at, node, input),
                    None => break,
                },
            };
            if now > end {
                break;
            }
            last = now;
            self.feed(now, node, input);
            while ask && self.nodes[node].node.awaited() != Awaited::None {}
        }
        self.nodes.iter_mut().for_each(|node| node.recording.finish());
    }

    fn feed(&mut self, now: Time, index: usize, input: Input) {
        let Recorded { node, recording } = &mut self.nodes[index];
        let mut actions = Vec::new();
        recording.input(now, &input);
        node.handle(now, input, &mut actions);
        recording.answer(&actions);
        recording.round(now);
        for action in actions {
            if let Action::Transmit { port, frame, intact, .. } = action {
                let free = now + ON_WIRE;
                self.at(free, index, Input::TxDone { port });
                if let Some(&(peer, port)) = self.cables.get(&(index, port)) {
                    let complete_at = free + ON_WIRE;
                    let frame = FrameBuf::new(frame.bytes());
                    let input = Input::Frame { port, frame, complete_at, intact };
                    self.at(complete_at, peer, input);
                }
            }
        }
    }
}

/// Returns an IPv4 frame from one host to another.
fn host_frame(from: usize, to: usize) -> FrameBuf {
    let mut bytes = vec![0; 60];
    bytes[..6].copy_from_slice(&host_mac(to).0);
    bytes[6..12].copy_from_slice(&host_mac(from).0);
    bytes[12..14].copy_from_slice(&axon_wire::constants::ethertype::IPV4.to_be_bytes());
    FrameBuf::new(&bytes)
}

/// Records all nodes of the rig for two seconds. Returns the folder with the recordings.
fn lab(name: &str, ask: bool) -> Folder {
    let folder = Folder::new(name);
    Rig::new(&folder).run(Time::ZERO + Span::from_secs(2), ask);
    folder
}

fn plain(file: &Path) -> Replayed {
    replay(file, &ReplayOptions::default()).unwrap()
}

fn refused(file: &Path, options: &ReplayOptions) -> String {
    let error = replay(file, options).expect_err("it is refused");
    let text = format!("{error:#}");
    assert!(text.starts_with(&file.display().to_string()), "{text}");
    text
}

/// Writes a copy of the recording with another header, and without answers to its first `inputs`
/// inputs. The copy has no further inputs.
fn rewrite(from: &Path, to: &Path, header: impl FnOnce(&mut Header), inputs: usize) {
    let mut reader = Reader::new(std::fs::File::open(from).unwrap()).unwrap();
    let mut changed = reader.header().clone();
    header(&mut changed);
    let mut writer = Writer::new(std::fs::File::create(to).unwrap(), &changed, 1 << 30).unwrap();
    for _ in 0..inputs {
        let record = reader.next_record().unwrap().unwrap();
        writer.input(record.at, &record.input);
        writer.answer(&[]).unwrap();
    }
    writer.finish(EndReason::Stopped).unwrap();
}

#[test]
fn a_recorded_node_answers_the_same_when_it_is_replayed() {
    for ask in [false, true] {
        let folder = lab(if ask { "asked" } else { "same" }, ask);
        let files = recordings(&folder.0).unwrap();
        let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["c1.axrec", "s1.axrec", "s2.axrec", "s3.axrec"]);
        for file in &files {
            let replayed = plain(file);
            check_name(file, &replayed.name).unwrap();
            let whole = Ending::Whole(EndReason::Stopped);
            assert!(matches!(replayed.end, ReplayEnd::Ending(end) if end == whole), "{replayed:?}");
            assert!(replayed.inputs > 50 && replayed.actions > 50, "{replayed:?}");
        }
    }
}

#[test]
fn the_first_difference_is_shown_with_its_input() {
    let folder = lab("difference", false);
    let (file, silent) = (folder.file("s1.axrec"), folder.file("silent.axrec"));
    rewrite(&file, &silent, |_| (), 3);
    let ReplayEnd::Difference(found) = plain(&silent).end else { panic!("it never answers") };
    assert_eq!((found.record, found.expected), (1, (0, 0)));
    assert!(found.input.ends_with("has carrier"), "{}", found.input);
    assert!(found.actions[0].starts_with("transmit at s1-p"), "{:?}", found.actions);
    assert!(found.actions.iter().all(|action| action.len() < 300));
}

#[test]
fn a_replay_ends_where_it_is_asked_to_or_where_the_file_does() {
    let folder = lab("until", false);
    let file = folder.file("s2.axrec");
    let all = plain(&file);
    let until = Some(Span::from_secs(1));
    let half = replay(&file, &ReplayOptions { until, ..ReplayOptions::default() }).unwrap();
    assert!(matches!(half.end, ReplayEnd::Until));
    assert!(half.inputs < all.inputs && half.reached <= Time::ZERO + Span::from_secs(1));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(folder.file("cut.axrec"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = plain(&folder.file("cut.axrec"));
    assert!(matches!(cut.end, ReplayEnd::Ending(Ending::Cut { .. })), "{cut:?}");
    assert!(cut.inputs > 0 && cut.inputs < all.inputs);
}

#[test]
fn an_altered_byte_ends_the_replay_with_its_place() {
    let folder = lab("altered", false);
    let file = folder.file("c1.axrec");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 0x10;
    std::fs::write(&file, bytes).unwrap();
    let replayed = plain(&file);
    let ReplayEnd::Unreadable(error) = replayed.end else { panic!("a byte was changed") };
    let text = error.to_string();
    assert!(text.starts_with(&format!("byte {at}, record ")), "{text}");
    assert!(text.contains("this byte was changed"), "{text}");
    assert!(replayed.inputs > 0);
}

#[test]
fn a_recording_of_another_node_or_fabric_is_refused() {
    let folder = lab("another", false);
    let file = folder.file("s1.axrec");
    let other = |yaml: &str| ReplayOptions { fabric: Some(text(yaml)), ..Default::default() };
    assert!(matches!(replay(&file, &other(TEXT)).unwrap().end, ReplayEnd::Ending(_)));
    let slower = format!("{TEXT}timers: {{heartbeat: 400ms}}\n");
    assert!(refused(&file, &other(&slower)).contains("of another fabric"));
    let named = "name: b\ntopology: {listed: {switches: [x], hosts: {h1: {at: x}}, links: []}}\n";
    assert!(refused(&file, &other(named)).contains("b has no switch s1"));
    let error = check_name(&folder.file("s2.axrec"), "s1").unwrap_err().to_string();
    assert!(error.contains("by its name of s2, by its header a recording of s1"), "{error}");
    let changed = folder.file("changed.axrec");
    rewrite(&file, &changed, |header| header.name = "s2".into(), 0);
    let text = refused(&changed, &ReplayOptions::default());
    assert!(text.contains("configures s2 otherwise"), "{text}");
    rewrite(&file, &changed, |header| header.setup = vec![200], 0);
    assert!(refused(&changed, &ReplayOptions::default()).contains("no setup"));
}

#[test]
fn a_capture_never_overwrites_the_recording_by_whatever_name() {
    let folder = lab("itself", false);
    let (file, link) = (folder.file("s1.axrec"), folder.file("s1.pcapng"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let before = std::fs::read(&file).unwrap();
    for into in [&file, &link] {
        let options = ReplayOptions { into: Some(into.clone()), ..Default::default() };
        assert!(refused(&file, &options).contains("is this recording"));
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
}

#[test]
fn what_ports_carried_becomes_a_capture() {
    let folder = lab("into", false);
    let into = folder.file("s1.pcapng");
    let options = ReplayOptions { into: Some(into.clone()), ..Default::default() };
    let replayed = replay(&folder.file("s1.axrec"), &options).unwrap();
    let mut reader = axon_capture::pcap::Reader::new(std::fs::File::open(into).unwrap()).unwrap();
    let (mut frames, mut last, mut names) = (0, 0, std::collections::BTreeSet::new());
    while let Some(frame) = reader.next_frame().unwrap() {
        frames += 1;
        assert!(frame.unix_nanos >= last.max(1_000), "in order of time");
        last = frame.unix_nanos;
        names.insert(frame.name.unwrap_or_default().to_owned());
    }
    assert!(frames > 50 && frames < replayed.inputs + replayed.actions);
    assert!(names.contains("s1-p0"), "{names:?}");
}

#[test]
fn an_input_at_the_end_of_all_time_is_not_given_to_the_node() {
    let folder = lab("times", false);
    let (file, late) = (folder.file("s1.axrec"), folder.file("late.axrec"));
    let header = Reader::new(std::fs::File::open(&file).unwrap()).unwrap().header().clone();
    let mut writer = Writer::new(std::fs::File::create(&late).unwrap(), &header, 1 << 30).unwrap();
    // At these times, every re-armed timer is due at once.
    for at in [Time::from_ticks(u64::MAX - 1), Time::MAX] {
        writer.input(at, &Input::Timeout);
        writer.answer(&[]).unwrap();
    }
    writer.finish(EndReason::Stopped).unwrap();
    let replayed = plain(&late);
    let ReplayEnd::Unreadable(error) = replayed.end else { panic!("{replayed:?}") };
    assert!(error.to_string().contains("a time beyond all clocks"), "{error}");
    assert_eq!(replayed.inputs, 1);
}

#[test]
fn an_agent_that_no_machine_could_have_run_is_refused() {
    let folder = lab("agent", false);
    let (file, changed) = (folder.file("s1.axrec"), folder.file("changed.axrec"));
    let dcb = "links: {rate: 100Mbps}\ndcb:\n  applications: [udp:4791=3]\n  \
               classes: [{priorities: [0, 1, 2, 3, 4, 5, 6, 7]}]\n";
    let (text, mac) = (text(&format!("{TEXT}{dcb}")), axon_wire::MacAddr([2; 6]));
    for (mtu_bytes, reason) in [(1_500, "configures h1 otherwise"), (u64::MAX - 7, "an MTU of")] {
        let of = crate::record::AgentSource::Fabric(text.clone());
        let setup = Setup::Agent { of, seed: 1, mac, mtu_bytes };
        let agent = |header: &mut Header| {
            (header.kind, header.name) = (NodeKind::Agent, "h1".into());
            header.setup = postcard::to_allocvec(&setup).unwrap();
        };
        rewrite(&file, &changed, agent, 0);
        let text = refused(&changed, &ReplayOptions::default());
        assert!(text.contains(reason), "{text}");
    }
}
