//! Speed of the simulated device: `cargo bench -p axon-rtl`; needs the library of `make rtl-model`.
//!
//! Jobs: no frames; frames of 1,514 bytes, packets from Axon port to Axon port, on one port, on two
//! ports towards each other, on all four. Each runs through the whole data plane, as in a switch on
//! Linux, and the same frames go through the software plane.
//!
//! Printed are clock cycles of the device in a second of processor time, processor cycles for each
//! of them, and frames in a second. Processor time is that of the thread, and the best of many
//! passes counts, since other work on the machine only ever adds time. Processor cycles come from a
//! chain of dependent additions.

use axon_node::{Action, Dataplane, Input, PortKind, PortSetting};
use axon_plane::{Plane, PlaneConfig};
use axon_rtl::RtlDataplane;
use axon_wire::header::{self, PacketType};
use axon_wire::{FrameBuf, HopWidth, Hops, MacAddr, PortNo, Time};
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

const WIDTH: HopWidth = HopWidth::Eight;
const PORTS: u16 = 4;
const FRAME_BYTES: usize = 1514;
const PASSES: usize = 40;
/// Frames on each port in a pass.
const FRAMES: usize = 8;
/// Cycles of a pass without frames.
const IDLE_CYCLES: u64 = 20_000;
const ADDITIONS: u32 = 2_000_000;

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock").into()
}

/// Returns the least processor time of a pass.
fn best(mut pass: impl FnMut()) -> f64 {
    let once = |_| {
        let before = processor_time();
        pass();
        (processor_time() - before).as_secs_f64()
    };
    (0..PASSES).map(once).fold(f64::MAX, f64::min)
}

/// Returns the clock of the processor, in Hz.
fn clock() -> f64 {
    // An addition and an exclusive or, each after the other.
    let round = |sum: u64, at| (sum ^ u64::from(at)).wrapping_add(0x9e37_79b9);
    let chain = || (0..ADDITIONS).fold(black_box(1), round);
    2.0 * f64::from(ADDITIONS)
        / best(|| {
            black_box(chain());
        })
}

fn config() -> PlaneConfig {
    PlaneConfig { hop_width: WIDTH, ..PlaneConfig::with_ports(PORTS, MacAddr([2; 6])) }
}

/// Sets all ports up, with Axons as peers.
fn set_ports(plane: &mut impl Dataplane) {
    let mut out = Vec::new();
    for port in (0..PORTS).map(PortNo) {
        let kind = PortSetting::Kind(PortKind::Axon);
        plane.set_port(Time::ZERO, port, kind, &mut out).expect("there is such a port");
        plane.handle(Time::ZERO, Input::Link { port, up: true }, &mut out);
    }
}

/// Returns a packet of the longest frame to a port.
fn packet(to: PortNo) -> Vec<u8> {
    let mut bytes = vec![0; WIDTH.header_bytes(2)];
    let [forward, reverse]: [Hops; 2] = [[to].into_iter().collect(), [to].into_iter().collect()];
    header::emit(&mut bytes, WIDTH, PacketType::Ethernet, &forward, &reverse).expect("two hops");
    bytes.resize(FRAME_BYTES, 0x5a);
    bytes
}

/// Handles an input, and the end of each frame that is sent. Returns the number of those.
fn handle(plane: &mut impl Dataplane, input: Input, out: &mut Vec<Action>) -> usize {
    let mut sent = 0;
    plane.handle(Time::ZERO, input, out);
    while let Some(action) = out.pop() {
        if let Action::Transmit { port, .. } = action {
            sent += 1;
            plane.handle(Time::ZERO, Input::TxDone { port }, out);
        }
    }
    sent
}

/// Sends frames from each of `ports` to another one, and waits for them.
fn pass(plane: &mut impl Dataplane, ports: u16, out: &mut Vec<Action>) {
    let mut sent = 0;
    for _ in 0..FRAMES {
        for port in (0..ports).map(PortNo) {
            let frame = FrameBuf::new(&packet(PortNo(port.0 ^ 1)));
            let input = Input::Frame { port, frame, complete_at: Time::ZERO, intact: true };
            sent += handle(plane, input, out);
        }
    }
    while plane.deadline().is_some() {
        sent += handle(plane, Input::Timeout, out);
    }
    assert_eq!(sent, FRAMES * usize::from(ports), "frames are lost");
}

fn main() {
    let gates = match RtlDataplane::new(config()) {
        Ok(gates) => gates,
        Err(error) => return println!("SKIP {error}"),
    };
    let (mut gates, mut plane) = (gates.with_own_clock(), Plane::new(config()));
    set_ports(&mut gates);
    set_ports(&mut plane);
    let (clock, mut out) = (clock(), Vec::new());
    println!("processor: {:.2} GHz", clock / 1e9);
    let line = |name: &str, cycles: f64| {
        print!("{name:10}{:8.2} M cycles/s {:7.0} of the processor", cycles / 1e6, clock / cycles);
    };
    let pins = gates.registers().1;
    let seconds = best(|| pins.run(pins.cycle() + IDLE_CYCLES));
    line("idle", IDLE_CYCLES as f64 / seconds);
    println!();
    for ports in [1, 2, 4] {
        let before = gates.registers().1.cycle();
        let seconds = best(|| pass(&mut gates, ports, &mut out));
        let cycles = (gates.registers().1.cycle() - before) as f64 / PASSES as f64;
        line(&format!("{ports} sending"), cycles / seconds);
        let frames = FRAMES as f64 * f64::from(ports);
        let software = best(|| pass(&mut plane, ports, &mut out));
        println!(
            "; {:6.0} frames/s, {:6.1} Mb/s; software plane: {:.0} times as many",
            frames / seconds,
            frames / seconds * FRAME_BYTES as f64 * 8.0 / 1e6,
            seconds / software
        );
    }
}
