//! Speed of the simulator: `cargo bench -p axon-sim --bench fabric`.
//!
//! A fat tree of k-port switches with 10 Gb/s links of 1 us, and k³/4 hosts (k = 32 has 8,192).
//! Switches, controller and frames are the real ones: hosts have fixed addresses, the fabric comes
//! up, and each host resolves its peer's address. Then host `i` sends to host `i + N/2`, in another
//! pod, 1472 bytes of UDP payload (1500 bytes of IP) every 4 us: 3 Gb/s. Hosts start one after
//! another, evenly within one interval. The measurement begins after a warm-up and lasts a stretch
//! of simulated time.
//!
//! A packet-hop is a frame that comes out of a link. Every size runs in a separate process, so that
//! its peak of memory is separate.
//!
//! The bottleneck at k = 4: some 1,460 instructions a hop (callgrind), about a quarter of them
//! at the ends of a path, a sixth in the queue of events, nothing else as much. In larger worlds,
//! which lie in huge pages from the start (in `axon sim` after a while), it is memory:
//! a hop touches some twenty cache lines of a station, its ports, its node and its frame, an end
//! of a path many more, and what the engine reads ahead (`prefetch.rs`) overlaps only a part of
//! the waits. Processor time (`cpu ns`) says more than wall time on a busy machine,
//! though others that share the caches slow that, too.
//!
//! Arguments: `k,threads,simulated-us[,interval-ns]` for each run; by default, a short list.
//!
//! `--tcp k,threads,connections,bytes,reno|cubic` is another workload: `connections` connections of
//! `bytes` bytes each, all opened at once, from every host to as many others, until all is
//! acknowledged. Output, one line: hosts, connections, simulated time, packet-hops, wall time and
//! processor time per hop, retransmitted segments, and the peak of memory.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "measures real time")]

use axon_fabric::model::{Fabric, Wire};
use axon_fabric::samples;
use axon_huge_pages::HugePages;
use axon_sim::World;
use axon_sim::apps::{AppId, Congestion, Plan, TcpOptions, TcpPlan, UdpPlan};
use axon_wire::{Bytes, Rate, Span, Time};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

/// Default interval between datagrams of a host.
const INTERVAL: Span = Span::from_micros(4);
const PORT: u16 = 9;
/// Default runs: k, threads, simulated microseconds.
const RUNS: [&str; 3] = ["4,1,100000", "8,1,20000", "8,2,20000"];

fn fabric(k: usize) -> Fabric {
    let mut fabric = samples::fat_tree(k);
    let wire = Wire {
        rate: Rate::gbps(10),
        latency: Span::from_micros(1),
        loss_ppm: 0,
        bit_errors_per_1e15: 0,
        queue: Bytes(128 * 1024),
    };
    fabric.links.iter_mut().for_each(|link| link.wire = wire);
    fabric.controller.wire = wire;
    for (index, host) in fabric.hosts.iter_mut().enumerate() {
        host.wire = wire;
        host.ip = Some(address(index));
    }
    fabric.dhcp.server = Ipv4Addr::new(10, 0, 0, 1);
    fabric.dhcp.prefix_len = 8;
    fabric.dhcp.pool_first = Ipv4Addr::new(10, 255, 0, 1);
    fabric.dhcp.pool_last = Ipv4Addr::new(10, 255, 0, 9);
    fabric
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a01_0000 + host as u32)
}

/// Brings the fabric up and lets every host find its peer.
fn bring_up(k: usize, threads: usize) -> World {
    let fabric = fabric(k);
    let hosts = fabric.hosts.len();
    let mut world = World::new(&fabric, 1);
    let mut pages = HugePages::default();
    pages.ask(peak_kib() << 10);
    world.engine_mut().set_threads(threads);
    world.run_until(Time::ZERO + Span::from_secs(2));
    pages.ask(peak_kib() << 10);
    let spread = Span::from_ticks(Span::from_millis(500).ticks() / hosts as u64);
    for host in 0..hosts {
        let peer = address((host + hosts / 2) % hosts);
        world.with_host(host, |node, now| node.resolve(peer, now));
        world.run_for(spread);
    }
    world.run_for(Span::from_millis(500));
    pages.ask(peak_kib() << 10);
    world
}

/// Starts every host's stream, evenly within one interval.
fn start(world: &mut World, hosts: usize, interval: Span) {
    for host in 0..hosts {
        world.with_host(host, |node, now| node.start(Plan::UdpSink { port: PORT }, now));
    }
    let begin = world.now();
    for host in 0..hosts {
        let offset = interval.ticks() * host as u64 / hosts as u64;
        world.run_until(begin + Span::from_ticks(offset));
        let target = address((host + hosts / 2) % hosts);
        let plan = UdpPlan { target, port: PORT, payload: 1472, interval, count: u64::MAX };
        world.with_host(host, |node, now| node.start(Plan::Udp(plan), now));
    }
}

struct Result {
    hosts: usize,
    threads: usize,
    up: Duration,
    hops: u64,
    events: u64,
    wall: Duration,
    /// Processor time of all threads, in nanoseconds.
    cpu: u64,
    hash: u64,
}

fn measure(k: usize, threads: usize, span: Span, interval: Span) -> Result {
    let begin = Instant::now();
    let mut world = bring_up(k, threads);
    let hosts = world.fabric().hosts.len();
    let up = begin.elapsed();
    start(&mut world, hosts, interval);
    HugePages::default().ask(peak_kib() << 10);
    world.run_for(Span::from_micros(200));
    let before = (world.engine().packet_hops(), world.engine().events());
    let (begin, cpu) = (Instant::now(), cpu_nanos(threads));
    world.run_for(span);
    let (wall, cpu) = (begin.elapsed(), cpu_nanos(threads) - cpu);
    world.engine().check_conservation().expect("every frame has one fate");
    let lost = world.engine().accounts().dropped;
    let delivered = world.engine().packet_hops() - before.0;
    let expected = span.ticks() / interval.ticks() * hosts as u64 * 6;
    assert!(delivered * 10 > expected * 9, "{delivered} hops of {expected}: drops {lost:?}");
    Result {
        hosts,
        threads,
        up,
        hops: delivered,
        events: world.engine().events() - before.1,
        wall,
        cpu,
        hash: world.engine().trace_hash(),
    }
}

/// Returns the peak of this process's memory, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Returns the processor time of this process in nanoseconds: exact for one thread; with a
/// resolution of 10 ms for several, some of which may have ended.
fn cpu_nanos(threads: usize) -> u64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let spent: u64 = spent.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
    if threads == 1 && spent > 0 {
        return spent;
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    after_name
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum::<u64>()
        * 10_000_000
}

fn one(run: &str) {
    let numbers: Vec<u64> = run.split(',').filter_map(|word| word.parse().ok()).collect();
    let (k, threads, micros, interval) = match numbers[..] {
        [k, threads, micros] => (k, threads, micros, INTERVAL),
        [k, threads, micros, nanos] => (k, threads, micros, Span::from_nanos(nanos)),
        _ => panic!("{run:?} is not k,threads,microseconds[,interval in ns]"),
    };
    let result = measure(k as usize, threads as usize, Span::from_micros(micros), interval);
    let nanos = result.wall.as_nanos() as u64;
    let ps_per_hop = nanos * 1000 / result.hops.max(1);
    println!(
        "{:>6} {:>3} {:>8}.{:02} {:>10} {:>5}.{} {:>7} {:>9} {:>9} {:>8} {:016x}",
        result.hosts,
        result.threads,
        result.up.as_millis() / 1000,
        result.up.as_millis() % 1000 / 10,
        result.hops,
        ps_per_hop / 1000,
        ps_per_hop % 1000 / 100,
        result.cpu / result.hops.max(1),
        1_000_000_000_000 / ps_per_hop.max(1),
        result.events * 1_000_000_000 / nanos.max(1),
        peak_kib() >> 10,
        result.hash,
    );
}

/// Opens connections, the same number from each host. Returns the sending hosts and their sender
/// IDs.
fn open(
    world: &mut World,
    connections: usize,
    bytes: u64,
    options: TcpOptions,
) -> Vec<(usize, AppId)> {
    let hosts = world.fabric().hosts.len();
    for host in 0..hosts {
        world.with_host(host, |node, now| node.start(Plan::TcpSink { port: PORT, options }, now));
    }
    let start = |number: usize| {
        let host = number % hosts;
        // Never the host itself; the other hosts in order.
        let away = 1 + (hosts / 2 - 1 + number / hosts) % (hosts - 1);
        let target = address((host + away) % hosts);
        let plan = TcpPlan { target, port: PORT, bytes: Some(bytes), options };
        let sender = world.with_host(host, |node, now| node.start(Plan::Tcp(plan), now));
        (host, sender.expect("a host"))
    };
    (0..connections).map(start).collect()
}

fn tcp(run: &str) {
    let words: Vec<&str> = run.split(',').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let congestion = match words.get(4) {
        Some(&"reno") => Some(Congestion::Reno),
        Some(&"cubic") => Some(Congestion::Cubic),
        _ => None,
    };
    let (Some(k), Some(threads), Some(count), Some(bytes), Some(congestion)) =
        (number(0), number(1), number(2), number(3), congestion)
    else {
        panic!("{run:?} is not k,threads,connections,bytes,reno|cubic");
    };
    let options = TcpOptions { congestion, ..TcpOptions::default() };
    let mut world = bring_up(k as usize, threads as usize);
    let before = (peak_kib(), world.engine().packet_hops(), world.now());
    let (begin, cpu) = (Instant::now(), cpu_nanos(threads as usize));
    let senders = open(&mut world, count as usize, bytes, options);
    let done = |world: &World| {
        let stats = |&(host, id): &(usize, AppId)| world.flow_stats(host, id).map(|s| s.done);
        senders.iter().rev().all(|sender| stats(sender).flatten().is_some())
    };
    while !done(&world) {
        world.run_for(Span::from_millis(1));
        assert!(world.now() < before.2 + Span::from_secs(600), "it is stuck");
    }
    let (wall, cpu) = (begin.elapsed(), cpu_nanos(threads as usize) - cpu);
    let stats = senders.iter().filter_map(|&(host, id)| world.flow_stats(host, id));
    let (failed, again) =
        stats.fold((0, 0), |sum, one| (sum.0 + one.failed, sum.1 + one.retransmits));
    assert_eq!(failed, 0, "connections broke");
    let hops = world.engine().packet_hops() - before.1;
    println!(
        "{} hosts, {count} connections of {bytes} B: {} simulated, {hops} hops, {} ms, cpu {} ms, \
         {} ns a hop, {again} sent again, {} MiB before and {} MiB at the most, trace {:016x}",
        world.fabric().hosts.len(),
        world.now().since(before.2),
        wall.as_millis(),
        cpu / 1_000_000,
        cpu / hops.max(1),
        before.0 >> 10,
        peak_kib() >> 10,
        world.engine().trace_hash(),
    );
}

fn main() {
    // Cargo passes `--bench` to every benchmark.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, run] = &arguments[..]
        && flag == "--one"
    {
        return one(run);
    }
    if let [flag, run] = &arguments[..]
        && flag == "--tcp"
    {
        return tcp(run);
    }
    let runs: Vec<String> = arguments.into_iter().filter(|a| !a.starts_with("--")).collect();
    let runs = if runs.is_empty() { RUNS.map(String::from).to_vec() } else { runs };
    println!(
        " hosts thr  up (s)         hops    ns/hop cpu ns    hops/s  events/s  peak MiB trace hash"
    );
    for run in runs {
        let status = Command::new(std::env::current_exe().expect("this program"))
            .args(["--one", &run])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{run} failed");
    }
}
