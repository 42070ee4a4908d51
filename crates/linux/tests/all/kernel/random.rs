//! Random frames, seeded, through the programs and through `axon_plane`.

use super::step::{LOOPBACK, SHORTEST, hex, is_within_limits, run, transit};
use super::{BPF, bpf, kernel, settings};
use axon_linux::kernel::{Hook, Kernel, KernelError, LoadedProgram, Traffic};
use axon_node::{Action, Dataplane, Input, Node, PortKind, PortSetting};
use axon_plane::{Lookups, PlaneConfig};
use axon_wire::header::{self, PacketType};
use axon_wire::{FrameBuf, HopWidth, Hops, MacAddr, PortNo, Route, Time};
use aya::maps::{HashMap, Map, MapData};
use oorandom::Rand32;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of frames through each data plane.
const FRAMES: u32 = 1_000_000;
const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];
const ROUTES: u32 = 200;
const RUNS_WHILE_CHANGED: u32 = 300_000;

fn seed() -> u64 {
    std::env::var("SEED").map_or(13, |seed| seed.parse().expect("a number"))
}

/// Kinds of the ports of a switch; 1 leads to hosts, 2 to an Axon.
fn kinds(width: HopWidth) -> Vec<PortKind> {
    let ports = width.ports_max().min(300);
    let kind = |port| match port % 8 {
        1 | 4 | 6 => PortKind::Host,
        7 => PortKind::Unknown,
        _ => PortKind::Axon,
    };
    (0..ports).map(kind).collect()
}

/// Random bytes, most of them with a valid header.
fn random_packet(rand: &mut Rand32, width: HopWidth) -> Vec<u8> {
    let count = |rand: &mut Rand32| match rand.rand_range(0..20) {
        0 => 0,
        1 => rand.rand_range(0..80),
        2..=5 => rand.rand_range(8..24),
        _ => rand.rand_range(1..9),
    };
    // Includes some hops that name no port, or the control plane.
    let most = width.ports_max() as u32;
    let ports = most.min(310);
    let hops = |rand: &mut Rand32, count: u32| -> Hops {
        let hop = |rand: &mut Rand32| match rand.rand_range(0..40) {
            0 => PortNo::CONTROL,
            1 => PortNo(rand.rand_range(0..most) as u16),
            _ => PortNo(rand.rand_range(0..ports) as u16),
        };
        (0..count).map(|_| hop(rand)).collect()
    };
    let (forward, reverse) = (count(rand), count(rand));
    let (forward, reverse) = (hops(rand, forward), hops(rand, reverse));
    let kind = match rand.rand_range(0..20) {
        0 => PacketType::Control,
        1 => PacketType::Probe,
        2 => PacketType::Error,
        3 => PacketType::Congestion,
        _ => PacketType::Ethernet,
    };
    let payload = match rand.rand_range(0..20) {
        0..=2 => rand.rand_range(0..60),
        3 => rand.rand_range(1505..1525),
        _ => rand.rand_range(60..300),
    };
    let length = width.header_bytes(forward.len() + reverse.len());
    let mut bytes = vec![0; length + payload as usize];
    random_bytes(rand, &mut bytes[length..]);
    header::emit(&mut bytes, width, kind, &forward, &reverse).unwrap();
    if width != HopWidth::Four {
        bytes[5] |= (rand.rand_u32() & 0xf) as u8;
    }
    if rand.rand_range(0..8) == 0 && payload >= 14 {
        let tag = [[0x81, 0], [0x88, 0xa8]][rand.rand_range(0..2) as usize];
        bytes[length + 12..length + 14].copy_from_slice(&tag);
    }
    match rand.rand_range(0..20) {
        0 => bytes[..length].iter_mut().for_each(|byte| *byte = rand.rand_u32() as u8),
        1 => {
            let at = rand.rand_range(0..length as u32) as usize;
            bytes[at] ^= 1 << rand.rand_range(0..8);
        }
        2 => bytes.truncate(rand.rand_range(0..bytes.len() as u32) as usize),
        _ => {}
    }
    // BPF_PROG_RUN accepts nothing shorter, and an IP packet must have room for its header.
    bytes.resize(bytes.len().max(SHORTEST), 0);
    if [[0x08, 0], [0x86, 0xdd]].contains(&[bytes[12], bytes[13]]) {
        bytes.resize(bytes.len().max(60), 0);
    }
    bytes
}

fn random_bytes(rand: &mut Rand32, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(4) {
        chunk.copy_from_slice(&rand.rand_u32().to_ne_bytes()[..chunk.len()]);
    }
}

/// Asserts that frames are equal; formats the context only on failure.
fn same(out: &[u8], expected: &[u8], context: impl Fn() -> String) {
    assert!(out == expected, "{}\n  left {}\n  not  {}", context(), hex(out), hex(expected));
}

/// Results of the frames of one port.
#[derive(Default)]
struct Tally {
    valid: u32,
    decided: u32,
    left: u32,
    traffic: BTreeMap<u16, Traffic>,
}

impl Tally {
    /// Counts a frame that left by `egress`.
    fn forwarded(&mut self, ingress: PortNo, egress: PortNo, came: usize, left: usize) {
        self.decided += 1;
        let of = self.traffic.entry(ingress.0).or_default();
        (of.in_frames, of.in_bytes) = (of.in_frames + 1, of.in_bytes + came as u64);
        let of = self.traffic.entry(egress.0).or_default();
        (of.out_frames, of.out_bytes) = (of.out_frames + 1, of.out_bytes + left as u64);
    }

    fn left(&mut self, ingress: PortNo, plane: Hook) {
        self.left += 1;
        let of = self.traffic.entry(ingress.0).or_default();
        match plane {
            // No node is running.
            Hook::Tc => of.lost_packets += 1,
            Hook::Xdp => of.node_packets += 1,
        }
    }
}

fn random_transit(
    kernel: &Kernel,
    program: &mut LoadedProgram,
    ingress: PortNo,
    kinds: &[PortKind],
    rand: &mut Rand32,
    frames: u32,
    tally: &mut Tally,
) {
    let settings = kernel.settings();
    let kind_of = |port: PortNo| kinds.get(port.index()).copied();
    for _ in 0..frames {
        let frame = random_packet(rand, settings.hop_width);
        let expected = transit(&frame, settings, ingress, kind_of);
        let out = run(program, settings.hook, &frame);
        tally.valid += u32::from(expected.is_some());
        let context = || format!("seed {}, {settings:?}, {ingress}: {}", seed(), hex(&frame));
        match (expected, out) {
            (Some((egress, expected)), Some(out)) => {
                same(&out, &expected, context);
                tally.forwarded(ingress, egress, frame.len(), out.len());
            }
            (None, Some(_)) => panic!("forwarded: {}", context()),
            (expected, None) => {
                let within =
                    expected.is_some_and(|(_, left)| is_within_limits(&frame, &left, settings));
                assert!(!within, "left to the node: {}", context());
                tally.left(ingress, settings.hook);
            }
        }
    }
}

/// A plane with these ports, all up.
fn plane(settings: &axon_linux::kernel::KernelSettings, kinds: &[PortKind]) -> axon_plane::Plane {
    let mut plane = axon_plane::Plane::new(PlaneConfig {
        hop_width: settings.hop_width,
        frame_bytes_max: settings.frame_bytes_max,
        ..PlaneConfig::with_ports(kinds.len() as u16, MacAddr([2; 6]))
    });
    let mut out = Vec::new();
    for (port, &kind) in (0..).map(PortNo).zip(kinds) {
        plane.set_port(Time::ZERO, port, PortSetting::Kind(kind), &mut out).unwrap();
        plane.handle(Time::ZERO, Input::Link { port, up: true }, &mut out);
    }
    plane
}

/// A random destination that may have a route.
fn random_destination(rand: &mut Rand32) -> MacAddr {
    let last = rand.rand_range(0..ROUTES + 20) as u16;
    let first = if rand.rand_range(0..30) == 0 { 3 } else { 2 };
    let [a, b] = last.to_be_bytes();
    MacAddr([first, 0, 0, 0, a, b])
}

fn random_frame(rand: &mut Rand32) -> Vec<u8> {
    let length = match rand.rand_range(0..10) {
        0 => rand.rand_range(SHORTEST as u32..60),
        1 => rand.rand_range(1508..1524),
        _ => rand.rand_range(60..300),
    };
    let mut frame = vec![0; length as usize];
    random_bytes(rand, &mut frame);
    frame[12] |= 1;
    frame[..6].copy_from_slice(&random_destination(rand).0);
    match rand.rand_range(0..8) {
        0 => frame[12..14].copy_from_slice(&[0x81, 0]),
        1 => frame[12..14].copy_from_slice(&[0x88, 0xa8]),
        2 => frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]),
        _ => {}
    }
    frame
}

/// Returns the egress and frame of the plane for a frame of a host, if it sends it.
fn of_plane(
    plane: &mut axon_plane::Plane,
    ingress: PortNo,
    frame: &[u8],
    out: &mut Vec<Action>,
) -> Option<(PortNo, Vec<u8>)> {
    let (frame, complete_at) = (FrameBuf::new(frame), Time::ZERO);
    out.clear();
    plane.handle(Time::ZERO, Input::Frame { port: ingress, frame, complete_at, intact: true }, out);
    let sent = out.drain(..).find_map(|action| match action {
        Action::Transmit { port, frame, .. } => Some((port, frame.bytes().to_vec())),
        _ => None,
    });
    if let Some((port, _)) = sent {
        plane.handle(Time::ZERO, Input::TxDone { port }, out);
    }
    sent
}

fn random_hosts(
    kernel: &mut Kernel,
    program: &mut LoadedProgram,
    ingress: PortNo,
    kinds: &[PortKind],
    rand: &mut Rand32,
    frames: u32,
    tally: &mut Tally,
) {
    let settings = *kernel.settings();
    let (mut plane, mut out) = (plane(&settings, kinds), Vec::new());
    let most = settings.hop_width.ports_max().min(310) as u32;
    for last in 0..ROUTES as u16 {
        let [a, b] = last.to_be_bytes();
        let destination = MacAddr([2, 0, 0, 0, a, b]);
        let hops = if rand.rand_range(0..10) == 0 { 70 } else { 12 };
        let hops = rand.rand_range(1..hops);
        let route: Route = (0..hops).map(|_| PortNo(rand.rand_range(0..most) as u16)).collect();
        match kernel.set_route(ingress, destination, &route) {
            Ok(()) => plane.install(ingress, destination, &route).unwrap(),
            Err(KernelError::RouteTooLong { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    for _ in 0..frames {
        let frame = random_frame(rand);
        let expected = of_plane(&mut plane, ingress, &frame, &mut out);
        let out = run(program, settings.hook, &frame);
        let context = || format!("seed {}, {settings:?}, {ingress}: {}", seed(), hex(&frame));
        tally.valid += u32::from(expected.is_some());
        match (expected, out) {
            (Some((egress, expected)), Some(out)) => {
                same(&out, &expected, context);
                tally.forwarded(ingress, egress, frame.len(), out.len());
            }
            (None, None) => tally.left(ingress, settings.hook),
            (expected, out) => panic!("{expected:?}, but {out:?}: {}", context()),
        }
    }
    let mut of_kernel: Vec<_> = kernel.routes().map(Result::unwrap).collect();
    of_kernel.sort();
    let routes = plane.tables().routes(ingress);
    let of_plane = routes.into_iter().map(|(key, route)| (ingress, key.destination, route));
    assert_eq!(of_kernel, of_plane.collect::<Vec<_>>());
    for (_, mac, _) in of_kernel {
        let used = Dataplane::take_used(&mut plane, ingress, mac.into());
        assert_eq!(kernel.take_used(ingress, mac).unwrap(), used, "{mac}");
        assert!(!kernel.take_used(ingress, mac).unwrap());
    }
}

/// Passes all frames of one data plane.
fn frames_of(data_plane: Hook) -> Tally {
    let mut rand = Rand32::new(seed());
    let mut all = Tally::default();
    let share = FRAMES / (WIDTHS.len() as u32 * 4);
    for width in WIDTHS {
        let kinds = kinds(width);
        let settings = settings(data_plane, width, kinds.len() as u16);
        let mut kernel = kernel(&format!("{data_plane:?}-{}", width.bits()), settings);
        for (port, &kind) in (0..).map(PortNo).zip(&kinds) {
            kernel.set_port(port, LOOPBACK, kind).unwrap();
        }
        let mut tally = Tally::default();
        let last = kinds.iter().rposition(|kind| *kind == PortKind::Axon).unwrap();
        for ingress in [PortNo(0), PortNo(2), PortNo(last as u16)] {
            let mut program = kernel.load(ingress).unwrap();
            random_transit(&kernel, &mut program, ingress, &kinds, &mut rand, share, &mut tally);
        }
        let ingress = PortNo(4);
        let mut program = kernel.load(ingress).unwrap();
        random_hosts(&mut kernel, &mut program, ingress, &kinds, &mut rand, share, &mut tally);
        for port in (0..kinds.len() as u16).map(PortNo) {
            let expected = tally.traffic.get(&port.0).copied().unwrap_or_default();
            assert_eq!(kernel.traffic(port).unwrap(), expected, "{settings:?} {port}");
        }
        all.valid += tally.valid;
        all.decided += tally.decided;
        all.left += tally.left;
    }
    all
}

pub fn frames() {
    if bpf().is_none() {
        return;
    }
    let [tc, xdp] = [Hook::Tc, Hook::Xdp].map(|plane| std::thread::spawn(move || frames_of(plane)));
    for (plane, frames) in [(Hook::Tc, tc), (Hook::Xdp, xdp)] {
        let Tally { valid, decided, left, .. } = frames.join().expect("the frames are as expected");
        let share = 100.0 * f64::from(decided) / f64::from(valid);
        println!(
            "{plane:?}: of {} frames the plane forwards {valid}; the program decided {decided} \
             ({share:.2} %) and left {left} to the node",
            decided + left,
        );
        assert!(share > 90.0, "seed {}", seed());
    }
}

/// A table as seen by the programs.
pub fn raw(folder: &str, table: &str) -> Map {
    let folder = std::fs::read_dir(Path::new(BPF).join(folder)).unwrap().next().unwrap().unwrap();
    Map::from_map_data(MapData::from_pin(folder.path().join(table)).unwrap()).unwrap()
}

fn raw_routes(folder: &str) -> HashMap<MapData, [u8; 8], [u64; 10]> {
    HashMap::try_from(raw(folder, "routes")).unwrap()
}

/// A value that mixes words of two routes is invalid: its frames go to the node.
pub fn mixed_routes() {
    if bpf().is_none() {
        return;
    }
    for (plane, name) in [(Hook::Tc, "tc"), (Hook::Xdp, "xdp")] {
        let mut kernel = kernel(name, settings(plane, HopWidth::Eight, 4));
        kernel.set_port(PortNo(0), LOOPBACK, PortKind::Host).unwrap();
        kernel.set_port(PortNo(1), LOOPBACK, PortKind::Axon).unwrap();
        let mut program = kernel.load(PortNo(0)).unwrap();
        let mut raw = raw_routes(name);
        let host = MacAddr([2, 0, 0, 0, 0, 1]);
        let frame = [&host.0[..], &[0x5a; 60]].concat();
        let [one, two] = [2u16, 3].map(|hop| {
            let route: Route =
                (0..50).map(|at| PortNo(if at == 0 { 1 } else { hop + at })).collect();
            kernel.set_route(PortNo(0), host, &route).unwrap();
            assert!(run(&mut program, plane, &frame).is_some());
            raw.iter().next().unwrap().unwrap()
        });
        for mask in 0..1u32 << 9 {
            let pick = |word: usize| if mask >> word & 1 == 0 { one.1[word] } else { two.1[word] };
            let value: [u64; 10] = std::array::from_fn(|word| pick(word.min(8)));
            raw.insert(one.0, value, 0).unwrap();
            // Programs look the route up again after any route has changed.
            kernel.remove_route(PortNo(0), MacAddr([2; 6])).unwrap();
            let forwarded = run(&mut program, plane, &frame).is_some();
            let whole = (0..9).all(|word| value[word] == one.1[word])
                || (0..9).all(|word| value[word] == two.1[word]);
            assert_eq!(forwarded, whole, "{plane:?} {mask:b}");
        }
    }
}

/// One thread changes routes as fast as it can, so that the kernel reuses the memory of one for
/// another. A program on another core sees a route of the frame's own flow, or none.
pub fn changed_routes() {
    if bpf().is_none() {
        return;
    }
    let mut kernel = kernel("switch", settings(Hook::Xdp, HopWidth::Eight, 4));
    kernel.set_port(PortNo(0), LOOPBACK, PortKind::Host).unwrap();
    kernel.set_port(PortNo(1), LOOPBACK, PortKind::Axon).unwrap();
    let mut program = kernel.load(PortNo(0)).unwrap();
    let hosts = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
    let route =
        |hop: u16| -> Route { (0..50).map(|at| PortNo(if at == 0 { 1 } else { hop })).collect() };
    let frame = [&hosts[0].0[..], &[0x5a; 60]].concat();
    let own: Vec<Vec<u8>> = [1, 2]
        .map(|hop| {
            kernel.set_route(PortNo(0), hosts[0], &route(hop)).unwrap();
            run(&mut program, Hook::Xdp, &frame).unwrap()
        })
        .into();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                for hop in [1, 2] {
                    for host in hosts {
                        kernel.remove_route(PortNo(0), host).unwrap();
                    }
                    kernel.set_route(PortNo(0), hosts[0], &route(hop)).unwrap();
                    kernel.set_route(PortNo(0), hosts[1], &route(hop + 2)).unwrap();
                }
            }
        });
        let (mut seen, mut other) = ([0u32; 3], None);
        for _ in 0..RUNS_WHILE_CHANGED {
            let out = run(&mut program, Hook::Xdp, &frame);
            match out.map(|out| own.iter().position(|own| *own == out).ok_or(out)) {
                None => seen[2] += 1,
                Some(Ok(index)) => seen[index] += 1,
                Some(Err(out)) => other = Some(out),
            }
        }
        end.store(true, Ordering::Relaxed);
        assert!(other.is_none(), "half seen: {}", hex(&other.unwrap()));
        println!("{} and {} of its two routes, {} left to the node", seen[0], seen[1], seen[2]);
        assert!(seen[0] > 0 && seen[1] > 0);
    });
}
