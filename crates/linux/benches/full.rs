//! Throughput of a line of three software switches: `cargo bench -p axon-linux --bench full`.
//!
//! Frames of 64 bytes go from one packet socket through three switches to another one, over veth
//! pairs in a network namespace of this program. The switches are the run loop with the plane of
//! `dataplane: full`, alternating with an upper bound over the same sockets: a loop that sends all
//! frames from one port out of the other without parsing them. Medians count.
//!
//! `peak` is the highest rate of arrivals at any offered rate. `overload` is the part of it that
//! arrives when frames are offered at the maximum rate. `round trip` is that of a single frame.

use axon_linux::clock::Clock;
use axon_linux::device_port::{Medium, PortSetup};
use axon_linux::inspect::Inspect;
use axon_linux::link_watch::is_up;
use axon_linux::packet::PacketPort;
use axon_linux::port::{Pool, Port, fabric_mtu};
use axon_linux::run::{RunOptions, Runtime};
use axon_linux::sys;
use axon_node::telemetry::NodeTelemetry;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::header::{self, PacketType};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Rate, Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::time::ClockId;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, scope, sleep};
use std::time::{Duration, Instant};

const SWITCHES: usize = 3;
const FRAME_BYTES: usize = 64;
const ROUNDS: usize = 3;
const PHASE: Duration = Duration::from_millis(600);
const TRIPS: usize = 400;
/// Offered frames per second; the last is the maximum rate.
const OFFERED: [u64; 8] = [25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000, u64::MAX];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// Run loop and plane.
    Full,
    /// Loop that copies frames.
    Bare,
}

/// Results of one round.
struct Found {
    /// Frames per second that arrived, for each offered rate.
    delivered: Vec<f64>,
    /// CPU time of a frame in nanoseconds, sender and sink included.
    cpu: Vec<f64>,
    mean_trip: Duration,
}

fn main() {
    if let Err(why) = links() {
        println!("no veth pairs can be made here: {why}");
        return;
    }
    let mut all: [Vec<Found>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        all[0].push(turn(Switch::Full));
        all[1].push(turn(Switch::Bare));
    }
    let [full, bare] = all.map(|turns| Medians::of(&turns));
    println!("offered/s    full/s    bare/s  full ns of CPU  bare");
    for (index, offered) in OFFERED.iter().enumerate() {
        let offered = if *offered == u64::MAX { "all".into() } else { offered.to_string() };
        let [arrived, others] = [&full, &bare].map(|one| one.delivered[index]);
        let [cpu, others_cpu] = [&full, &bare].map(|one| one.cpu[index]);
        println!("{offered:>9}  {arrived:>8.0}  {others:>8.0}  {cpu:>14.0}  {others_cpu:>4.0}");
    }
    println!("peak: full {:.0}/s, {:.2} of bare", full.peak(), full.peak() / bare.peak());
    println!("overload: full {:.2} of its peak, bare {:.2}", full.overload(), bare.overload());
    println!("round trip: full {:?}, bare {:?}", full.mean_trip, bare.mean_trip);
}

struct Medians {
    delivered: Vec<f64>,
    cpu: Vec<f64>,
    mean_trip: Duration,
}

impl Medians {
    fn of(turns: &[Found]) -> Medians {
        let at = |of: fn(&Found) -> &[f64], index: usize| {
            let mut all: Vec<f64> = turns.iter().map(|turn| of(turn)[index]).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let all = |of| (0..OFFERED.len()).map(|index| at(of, index)).collect();
        let mut trips: Vec<Duration> = turns.iter().map(|turn| turn.mean_trip).collect();
        trips.sort();
        Medians {
            delivered: all(|turn| &turn.delivered),
            cpu: all(|turn| &turn.cpu),
            mean_trip: trips[trips.len() / 2],
        }
    }

    fn peak(&self) -> f64 {
        self.delivered.iter().copied().fold(0.0, f64::max)
    }

    fn overload(&self) -> f64 {
        self.delivered[OFFERED.len() - 1] / self.peak()
    }
}

/// Returns the device at an end of a link. Link 0 leads to the first switch.
fn device(link: usize, end: char) -> String {
    format!("l{link}{end}")
}

fn links() -> anyhow::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    for which in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    let mtu = fabric_mtu(1500);
    for link in 0..=SWITCHES {
        let (a, b) = (device(link, 'a'), device(link, 'b'));
        let words = format!("link add {a} mtu {mtu} type veth peer name {b} mtu {mtu}");
        let status = Command::new("ip").args(words.split(' ')).status()?;
        anyhow::ensure!(status.success(), "ip {words}");
        sys::set_device_up(&a, true)?;
        sys::set_device_up(&b, true)?;
    }
    while !(0..=SWITCHES).all(|link| is_up(&device(link, 'a')) && is_up(&device(link, 'b'))) {
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn turn(switch: Switch) -> Found {
    let end = AtomicBool::new(false);
    scope(|scope| {
        for number in 0..SWITCHES {
            let ports = [device(number, 'b'), device(number + 1, 'a')];
            let end = &end;
            scope.spawn(move || {
                // As a daemon does; without the privilege neither switch has the priority.
                let _ = sys::prefer_this_process();
                match switch {
                    Switch::Full => full(ports, end),
                    Switch::Bare => bare(ports, end),
                }
            });
        }
        sleep(Duration::from_millis(200));
        let mean_trip = round_trip();
        let (delivered, cpu) = OFFERED.iter().map(|rate| load(scope, *rate)).unzip();
        end.store(true, Ordering::Relaxed);
        Found { delivered, cpu, mean_trip }
    })
}

/// Plane between two links of the fabric.
struct Bare {
    plane: Plane,
}

impl Node for Bare {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.plane.handle(now, input, out);
    }

    fn deadline(&self) -> Option<Time> {
        self.plane.deadline()
    }
}

impl Shortcuts for Bare {
    fn awaited(&mut self) -> Awaited {
        self.plane.awaited()
    }
}

impl Inspect for Bare {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.plane.kind(port).unwrap_or_default()
    }

    fn telemetry(&self, _: Time) -> NodeTelemetry {
        unreachable!("it has no status")
    }
}

/// Runs a switch with the run loop.
fn full(ports: [String; 2], end: &AtomicBool) {
    let mut plane = Plane::new(PlaneConfig::with_ports(2, MacAddr([2, 0, 0, 0, 0, 1])));
    (0..2).for_each(|port| plane.set_kind(PortNo(port), PortKind::Axon));
    let setup = |device| PortSetup {
        device,
        medium: Medium::Packet,
        rate: Some(Rate::gbps(100)),
        lossless: false,
        host_mtu: Some(1500),
    };
    let ports = ports.map(setup).into();
    let options = RunOptions { name: "s".into(), ports, ..RunOptions::default() };
    let clock = Clock::start();
    let mut runtime = Runtime::open(Bare { plane }, clock, options).expect("a runtime");
    while !end.load(Ordering::Relaxed) {
        runtime.round(clock.now() + Span::from_millis(50)).expect("a round");
    }
}

/// Runs a loop that copies frames.
fn bare(ports: [String; 2], end: &AtomicBool) {
    let mut ports = ports.map(|port| PacketPort::open(&port, false).expect("a port"));
    let (mut pool, mut frames) = (Pool::default(), Vec::new());
    while !end.load(Ordering::Relaxed) {
        let mut count = 0;
        for (from, to) in [(0, 1), (1, 0)] {
            ports[from].receive(&mut pool, &mut frames).expect("a device that is up");
            ports[to].send(&frames).expect("a device that is up");
            count += frames.len();
            frames.drain(..).for_each(|frame| pool.recycle(frame));
        }
        if count == 0 {
            let mut fds = ports.each_ref().map(|port| PollFd::new(port.fd(), PollFlags::POLLIN));
            let _ = poll(&mut fds, PollTimeout::from(50u8));
        }
    }
}

fn packet(hop: u16) -> FrameBuf {
    let mut packet = vec![0x5a; FRAME_BYTES];
    let hops = [PortNo(hop); SWITCHES + 1];
    header::emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, &hops, &[])
        .expect("four hops fit");
    FrameBuf::new(&packet)
}

/// Returns the CPU time of this program in nanoseconds.
fn cpu_nanos() -> f64 {
    let time = ClockId::CLOCK_PROCESS_CPUTIME_ID.now().expect("a clock of this process");
    Duration::from(time).as_nanos() as f64
}

/// Offers frames for a phase. Returns the arrivals per second, and the CPU time for each.
fn load<'a>(scope: &'a Scope<'a, '_>, rate: u64) -> (f64, f64) {
    static ARRIVED: AtomicU64 = AtomicU64::new(0);
    ARRIVED.store(0, Ordering::Relaxed);
    let began = Instant::now();
    let sink = scope.spawn(move || {
        let mut port = PacketPort::open(&device(SWITCHES, 'b'), true).expect("a port");
        let (mut pool, mut frames) = (Pool::default(), Vec::new());
        while began.elapsed() < PHASE + Duration::from_millis(50) {
            port.receive(&mut pool, &mut frames).expect("a device that is up");
            ARRIVED.fetch_add(frames.len() as u64, Ordering::Relaxed);
            frames.drain(..).for_each(|frame| pool.recycle(frame));
            let mut fds = [PollFd::new(port.fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::from(50u8));
        }
    });
    sleep(Duration::from_millis(20));
    let mut port = PacketPort::open(&device(0, 'a'), false).expect("a port");
    let frames: Vec<FrameBuf> = (0..32).map(|_| packet(1)).collect();
    let (began, began_cpu, mut sent) = (Instant::now(), cpu_nanos(), 0u64);
    while began.elapsed() < PHASE {
        let due = match rate {
            u64::MAX => sent + frames.len() as u64,
            rate => began.elapsed().as_nanos() as u64 * (rate / 1000) / 1_000_000,
        };
        let count = due.saturating_sub(sent).min(frames.len() as u64);
        if count == 0 {
            sleep(Duration::from_micros(50));
        }
        port.send(&frames[..count as usize]).expect("a device that is up");
        sent += count;
    }
    let took = began.elapsed();
    sink.join().expect("the sink");
    let arrived = ARRIVED.load(Ordering::Relaxed) as f64;
    (arrived / took.as_secs_f64(), (cpu_nanos() - began_cpu) / arrived)
}

/// Returns the mean round-trip time of single frames, sent a millisecond apart.
fn round_trip() -> Duration {
    let ends = [(0, 'a'), (SWITCHES, 'b')];
    let [mut near, mut far] =
        ends.map(|(link, end)| PacketPort::open(&device(link, end), false).expect("a port"));
    let there = packet(1);
    let back = packet(0);
    let mut sum = Duration::ZERO;
    let mut trips = 0;
    let end = AtomicBool::new(false);
    scope(|scope| {
        let end = &end;
        scope.spawn(move || {
            while !end.load(Ordering::Relaxed) {
                for _ in 0..arrived(&mut far) {
                    far.send(std::slice::from_ref(&back)).expect("a device that is up");
                }
            }
        });
        for _ in 0..TRIPS {
            let began = Instant::now();
            near.send(std::slice::from_ref(&there)).expect("a device that is up");
            if arrived(&mut near) > 0 {
                sum += began.elapsed();
                trips += 1;
            }
            sleep(Duration::from_millis(1));
        }
        end.store(true, Ordering::Relaxed);
    });
    sum / trips.max(1)
}

/// Waits for frames, at most 100 ms. Returns the number that arrived.
fn arrived(port: &mut PacketPort) -> usize {
    let mut fds = [PollFd::new(port.fd(), PollFlags::POLLIN)];
    let _ = poll(&mut fds, PollTimeout::from(100u8));
    let mut frames = Vec::new();
    port.receive(&mut Pool::default(), &mut frames).expect("a device that is up");
    frames.len()
}
