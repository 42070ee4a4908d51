//! Forwarding rate of one core: `cargo bench -p axon-plane`.
//!
//! Four jobs, each on working sets from one that fits the first cache to one that fits none,
//! visited in random order, as packets lie in a pool of buffers:
//!
//! - `transit step`: the bare `forward` on packets with 5, 4, 3 and 2 hops left;
//! - `transit plane`: the same packets through `Plane::receive` and `Plane::tx_done`, and again
//!   with traffic classes, shared memory and PFC configured, and empty queues;
//! - `edge step`: look a destination up among 4096 routes, prepend its header, `forward`;
//! - `edge plane`: the same through the whole plane.
//!
//! Only the job is measured: packets are made fresh between the timed passes. The best of many
//! passes counts, since other work on the machine only ever adds time. Cycles come from a chain of
//! dependent additions, so they are core cycles at the current clock.
//!
//! Bottleneck (EPYC with AVX-512 at 4.2 GHz): in cache, instructions. The step takes about 33
//! cycles; the plane around it 55 to 70 more, for moving the frame's handle, the state and counters
//! of two ports, and the action. At the edge the table of 4096 routes (320 KiB) adds about 50: one
//! random access to the second cache, and a header copied in pieces whose hops are read back as one
//! word. With 128 MiB of packets in random order one miss to memory and in the address translation
//! per packet is nearly all of the time (160 ns); a NIC puts packets into the last cache, so that
//! is not how they arrive.

use axon_node::Action;
use axon_node::PortKind;
use axon_plane::dcb::DcbConfig;
use axon_plane::ecn::{NotCapable, Profile};
use axon_plane::notification::{CnConfig, EcnConfig};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_plane::{Lookups, Plane, PlaneConfig, RouteTables};
use axon_plane::{Step, forward};
use axon_wire::header::{self, PacketType};
use axon_wire::priority::{PRIORITIES, PrioritySet};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Rate, Route, Time};
use std::hint::black_box;
use std::time::{Duration, Instant};

const PORTS: u16 = 64;
const HOST: PortNo = PortNo(0);
const INGRESS: PortNo = PortNo(1);
const ROUTES: usize = 4096;
const HOPS: usize = 5;
/// Shortest Ethernet frame, in bytes without FCS.
const FRAME_BYTES: usize = 60;
/// Bytes of a packet's buffer: two cache lines with headroom, header and frame.
const STRIDE: usize = 128;
const START: usize = 32;
const WORKING_SETS: [usize; 4] = [256, 4096, 65_536, 1 << 20];

/// Small generator (PCG's multiplier), so that every run visits in the same order.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 33) as usize) % bound
    }

    fn order(&mut self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count as u32).collect();
        (1..count).rev().for_each(|index| order.swap(index, self.below(index + 1)));
        order
    }
}

/// Returns core cycles per second. Each round of the loop is an exclusive or and an addition that
/// depend on each other: two cycles, which no compiler or core can shorten.
fn cycles_per_second() -> f64 {
    const ROUNDS: u64 = 200_000;
    let best = (0..500).map(|_| {
        let start = Instant::now();
        let mut sum = black_box(1u64);
        for round in 0..ROUNDS {
            sum = (sum ^ round).wrapping_add(0x9e37_79b9);
        }
        black_box(sum);
        start.elapsed()
    });
    2.0 * ROUNDS as f64 / best.min().unwrap_or_default().as_secs_f64()
}

fn report(job: &str, packets: usize, best: Duration, per_pass: usize, hertz: f64) {
    let seconds = best.as_secs_f64() / per_pass as f64;
    println!(
        "{job:<28} {:>8} {:>9.1} {:>8.2} {:>8.1}",
        size(packets * STRIDE),
        1e-6 / seconds,
        seconds * 1e9,
        seconds * hertz
    );
}

fn size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Returns the shortest of at least seven passes.
fn best_of(packets: usize, mut pass: impl FnMut() -> Duration) -> Duration {
    let passes = (8_000_000 / packets).clamp(7, 4000);
    (0..passes).map(|_| pass()).min().unwrap_or_default()
}

fn kind_of(port: PortNo) -> Option<PortKind> {
    match port.0 {
        0 => Some(PortKind::Host),
        1..PORTS => Some(PortKind::Axon),
        _ => None,
    }
}

/// Returns a route of five random hops.
fn route(random: &mut Random) -> Hops {
    (0..HOPS).map(|_| PortNo(1 + random.below(usize::from(PORTS) - 1) as u16)).collect()
}

fn destination(index: usize) -> MacAddr {
    let [.., a, b] = (index as u32).to_be_bytes();
    MacAddr([2, 0, 0, 0, a, b])
}

/// Returns an Axon packet with a random route, or the Ethernet frame in it.
fn packet(random: &mut Random, width: HopWidth) -> Vec<u8> {
    let mut bytes = vec![0; width.header_bytes(HOPS)];
    let hops: Hops = match width {
        HopWidth::Four => (0..HOPS).map(|_| PortNo(1 + random.below(14) as u16)).collect(),
        _ => route(random),
    };
    header::emit(&mut bytes, width, PacketType::Ethernet, &hops, &[]).expect("a short route");
    bytes.extend_from_slice(&frame_to(MacAddr([2; 6])));
    bytes
}

fn frame_to(destination: MacAddr) -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..6].copy_from_slice(&destination.0);
    frame
}

fn transit_step(packets: usize, width: HopWidth, hertz: f64) {
    let mut random = Random(1);
    let fresh: Vec<Vec<u8>> = (0..64).map(|_| packet(&mut random, width)).collect();
    let order = random.order(packets);
    let mut pool = vec![0u8; packets * STRIDE];
    let length = fresh[0].len();
    let best = best_of(packets, || {
        for (index, slot) in pool.chunks_exact_mut(STRIDE).enumerate() {
            slot[START..START + length].copy_from_slice(&fresh[index % 64]);
        }
        let start = Instant::now();
        for _ in 0..HOPS - 1 {
            for &index in &order {
                let at = index as usize * STRIDE + START;
                let step = forward(&mut pool[at..at + length], width, INGRESS, kind_of);
                black_box(step);
            }
        }
        start.elapsed()
    });
    let job = format!("transit step, {} bit hops", width.bits());
    report(&job, packets, best, packets * (HOPS - 1), hertz);
}

/// Returns a configuration that stays idle: every priority lossless, every class strict, congestion
/// points and markers at all queues that may have them.
fn dcb() -> DcbConfig {
    let share = Share::Dynamic { shift: 0 };
    let group = PriorityGroupLimits {
        reserved: Bytes(1_500),
        share,
        headroom: Bytes(10_000),
        xon_offset: Bytes(3_000),
    };
    let profile = Profile::Threshold(Bytes(30_000));
    let marker = EcnConfig { profile, not_capable: NotCapable::Pass };
    DcbConfig {
        memory: MemoryConfig {
            lossless: PrioritySet::ALL,
            lossless_pool: Bytes(1 << 22),
            lossy_pool: Bytes(1 << 22),
            groups: vec![[group; PRIORITIES]; usize::from(PORTS)],
            queues: [QueueLimits { reserved: Bytes(0), share }; PRIORITIES],
        },
        pfc: PrioritySet::ALL,
        cn: Some(CnConfig::new(PORTS, PrioritySet::from_bits(0x7f))),
        ecn: vec![[Some(marker); PRIORITIES]; usize::from(PORTS)],
        ..DcbConfig::lossy(vec![Rate::gbps(100); usize::from(PORTS)], MacAddr([2; 6]))
    }
}

fn plane(dcb: Option<DcbConfig>) -> Plane {
    let mut config = PlaneConfig::with_ports(PORTS, MacAddr([2; 6]));
    config.dcb = dcb.map(Box::new);
    let mut plane = Plane::new(config);
    for port in (0..PORTS).map(PortNo) {
        plane.set_kind(port, kind_of(port).unwrap_or_default());
        plane.link(Time::ZERO, port, true, &mut Vec::new());
    }
    plane
}

fn buffer(bytes: &[u8]) -> FrameBuf {
    let mut store = vec![0; STRIDE];
    store[START..START + bytes.len()].copy_from_slice(bytes);
    store.truncate(START + bytes.len());
    FrameBuf::from_vec(store, START)
}

/// Sends every frame of `pool` through the plane in bursts, as a driver would, and collects the
/// frames to transmit.
fn through(
    plane: &mut Plane,
    port: PortNo,
    pool: &mut Vec<FrameBuf>,
    done: &mut Vec<FrameBuf>,
    out: &mut Vec<Action>,
) {
    const BURST: usize = 32;
    let mut frames = pool.drain(..);
    loop {
        for frame in frames.by_ref().take(BURST) {
            plane.receive(Time::ZERO, port, frame, Time::ZERO, true, out);
            if let Some(Action::Transmit { port, .. }) = out.last() {
                let port = *port;
                plane.tx_done(Time::ZERO, port, out);
            }
        }
        if out.is_empty() {
            return;
        }
        for action in out.drain(..) {
            match action {
                Action::Transmit { frame, .. } => done.push(frame),
                other => panic!("every packet is forwarded, but: {other:?}"),
            }
        }
    }
}

fn transit_plane(packets: usize, (name, dcb): (&str, Option<DcbConfig>), hertz: f64) {
    let mut random = Random(2);
    let width = HopWidth::Eight;
    let fresh: Vec<Vec<u8>> = (0..64).map(|_| packet(&mut random, width)).collect();
    let mut pool: Vec<FrameBuf> = (0..packets).map(|index| buffer(&fresh[index % 64])).collect();
    for index in random.order(packets) {
        pool.swap(0, index as usize);
    }
    let mut done = Vec::with_capacity(packets);
    let mut out = Vec::with_capacity(64);
    let mut plane = plane(dcb);
    let best = best_of(packets, || {
        for (index, frame) in pool.iter_mut().enumerate() {
            frame.bytes_mut().copy_from_slice(&fresh[index % 64]);
        }
        let start = Instant::now();
        for _ in 0..HOPS - 1 {
            through(&mut plane, INGRESS, &mut pool, &mut done, &mut out);
            std::mem::swap(&mut pool, &mut done);
        }
        start.elapsed()
    });
    report(name, packets, best, packets * (HOPS - 1), hertz);
}

fn fill(random: &mut Random, mut install: impl FnMut(MacAddr, &Route)) {
    for index in 0..ROUTES {
        install(destination(index), &route(random).into());
    }
}

fn edge_step(packets: usize, hertz: f64) {
    let mut random = Random(3);
    let width = HopWidth::Eight;
    let mut tables = RouteTables::new(width, PORTS, ROUTES);
    fill(&mut random, |to, route| tables.install(HOST, to.into(), route).expect("room for 4096"));
    let order = random.order(packets);
    let mut pool = vec![0u8; packets * STRIDE];
    for slot in pool.chunks_exact_mut(STRIDE) {
        let frame = frame_to(destination(random.below(ROUTES)));
        slot[START..START + FRAME_BYTES].copy_from_slice(&frame);
    }
    let best = best_of(packets, || {
        let start = Instant::now();
        for &index in &order {
            let at = index as usize * STRIDE;
            let slot = &mut pool[at..at + START + FRAME_BYTES];
            let to = MacAddr::destination_of(&slot[START..]).unwrap_or_default();
            let Some((route, _)) = tables.header(HOST, to.into()) else {
                panic!("every route is there")
            };
            let packet = &mut slot[START - route.len()..];
            packet[..route.len()].copy_from_slice(route);
            let step = forward(packet, width, HOST, kind_of);
            assert!(!matches!(step, Step::Drop(_)), "every route is good");
            black_box(step);
        }
        start.elapsed()
    });
    report("edge step, 4096 routes", packets, best, packets, hertz);
}

fn edge_plane(packets: usize, hertz: f64) {
    let mut random = Random(4);
    let mut plane = plane(None);
    fill(&mut random, |to, route| plane.install(HOST, to, route).expect("room for 4096"));
    let mut pool: Vec<FrameBuf> =
        (0..packets).map(|_| buffer(&frame_to(destination(random.below(ROUTES))))).collect();
    for index in random.order(packets) {
        pool.swap(0, index as usize);
    }
    let mut done = Vec::with_capacity(packets);
    let mut out = Vec::with_capacity(64);
    let header_bytes = HopWidth::Eight.header_bytes(HOPS);
    let best = best_of(packets, || {
        let start = Instant::now();
        through(&mut plane, HOST, &mut pool, &mut done, &mut out);
        let time = start.elapsed();
        std::mem::swap(&mut pool, &mut done);
        pool.iter_mut().for_each(|frame| frame.pop_front(header_bytes));
        time
    });
    report("edge plane, 4096 routes", packets, best, packets, hertz);
}

fn main() {
    // `cargo test --benches` only tests that the benchmark runs.
    let quick = std::env::args().any(|argument| argument == "--test");
    let hertz = cycles_per_second();
    println!("one core at {:.2} GHz, {FRAME_BYTES} byte frames, {HOPS} hops", hertz / 1e9);
    println!("{:<28} {:>8} {:>9} {:>8} {:>8}", "job", "packets", "Mpps", "ns", "cycles");
    for packets in WORKING_SETS.into_iter().take(if quick { 1 } else { usize::MAX }) {
        for width in [HopWidth::Eight, HopWidth::Four, HopWidth::Sixteen] {
            transit_step(packets, width, hertz);
        }
        transit_plane(packets, ("transit plane, 8 bit hops", None), hertz);
        transit_plane(packets, ("the same, DCB idle", Some(dcb())), hertz);
        edge_step(packets, hertz);
        edge_plane(packets, hertz);
    }
}
