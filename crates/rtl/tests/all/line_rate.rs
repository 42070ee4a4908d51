//! Full line rate on all ports: without contention nothing is lost and no gap grows; four inputs
//! for one output share it equally, and what does not fit the buffers is lost whole.

use crate::fates::{PORTS, config};
use crate::frames::Frames;
use crate::needs;
use crate::traffic::{FRAMES, number};
use axon_node::{Action, Dataplane, Drop, Input, Node, PortKind, PortSetting};
use axon_plane::{Plane, PlaneConfig};
use axon_rtl::driver::{self, Driver};
use axon_rtl::gmii::{self, GAP_BYTES};
use axon_rtl::pins::{Left, Pins};
use axon_rtl::registers::counter;
use axon_rtl::{Model, ModelError};
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::{Bytes, FrameBuf, PortNo, Span, Time};
use std::collections::BTreeMap;

/// Frames of an Ethernet frame without its FCS: 64 and 1518 bytes with it.
const SIZES: std::ops::RangeInclusive<usize> = 60..=1514;
/// Distance of the sizes of a normal run.
const STEP: usize = 97;
/// Frames of each input that overload an output.
const OVERLOAD: usize = 60;
/// Bytes of an input before the next has its turn: one full frame.
const TURN_BYTES: u64 = 1600;
/// Frames of one input of which gates and software plane lose another number.
const APART: usize = 4;
/// Symbols of a buffer that stay free, and one for the end of a frame.
const MARGIN: usize = 32;

/// Returns a device whose ports are all Axon ports; `None` if its shared library is missing.
fn device(width: HopWidth) -> Option<Pins> {
    let model = match Model::load(width) {
        Ok(model) => model,
        Err(error @ ModelError::Missing { .. }) => {
            needs::skip(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let (size, mut pins) = (model.size(), Pins::new(model));
    let mut driver = Driver::new(&mut pins, size, &config(width));
    for port in (0..PORTS).map(PortNo) {
        driver.set_kind(&mut pins, port, PortKind::Axon);
        pins.set_link(port, true);
    }
    Some(pins)
}

/// Returns an Axon packet through `port`; `name` is behind its header.
fn packet(width: HopWidth, port: PortNo, name: u32, ethernet: usize) -> Vec<u8> {
    let mut bytes = vec![0; width.header_bytes(1)];
    header::emit(&mut bytes, width, PacketType::Ethernet, &[port], &[]).expect("a port");
    let length = bytes.len() + ethernet;
    bytes.extend(name.to_be_bytes());
    bytes.resize(length, name as u8);
    bytes
}

/// A frame that has left by a port.
struct Sent {
    name: u32,
    /// Cycle of the first byte of its preamble.
    began: u64,
    /// Cycle behind its FCS.
    ended: u64,
}

/// Runs until the device is at rest, and returns the frames that have left, by port.
fn run(pins: &mut Pins, width: HopWidth) -> Vec<Vec<Sent>> {
    pins.run(u64::MAX);
    let mut all: Vec<Vec<Sent>> = (0..PORTS).map(|_| Vec::new()).collect();
    while let Some(left) = pins.take_left() {
        let Left::Sent { port, frame, intact, well_spaced, began } = left else {
            panic!("no frame is for the CPU: {left:?}");
        };
        assert!(intact && well_spaced);
        let name = &frame[width.header_bytes(1)..][..4];
        let name = u32::from_be_bytes(name.try_into().expect("four bytes"));
        let ended = began + gmii::wire_bytes(frame.len()) as u64;
        all[port.index()].push(Sent { name, began, ended });
    }
    all
}

fn gaps(sent: &[Sent]) -> Vec<u64> {
    sent.windows(2).map(|pair| pair[1].began - pair[0].ended).collect()
}

#[test]
fn all_ports_forward_all_sizes_at_line_rate_without_loss() {
    let step = if number("AXON_RTL_FRAMES", FRAMES) > FRAMES { 1 } else { STEP };
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        let Some(mut pins) = device(width) else { return };
        for distance in 0..PORTS {
            let mut count = 0;
            // Each size between its neighbours, so that each follows a longer and a shorter one.
            let sizes = SIZES.skip(usize::from(distance) % step).step_by(step);
            let sizes: Vec<usize> = sizes.collect();
            for (&size, &mirrored) in sizes.iter().zip(sizes.iter().rev()) {
                for port in (0..PORTS).map(PortNo) {
                    let to = PortNo((port.0 + distance) % PORTS);
                    for (name, size) in (count..).zip([size, size, mirrored]) {
                        pins.feed(port, &packet(width, to, name, size), None);
                    }
                }
                count += 3;
            }
            for sent in run(&mut pins, width) {
                assert!(sent.iter().map(|one| one.name).eq(0..count), "loss or another order");
                assert!(gaps(&sent).iter().all(|&gap| gap == GAP_BYTES as u64), "{width:?}");
            }
        }
    }
}

/// Returns the number of frames that the software plane drops of those on four wires to one output,
/// by ingress. Its wires take their time, as those of the gates.
fn dropped_by_plane(width: HopWidth, wires: &[Vec<Vec<u8>>]) -> Vec<usize> {
    let room = 2048 - MARGIN;
    let queue_bytes_max = Bytes(room as u64);
    let mut plane = Plane::new(PlaneConfig { queue_bytes_max, ..config(width) });
    for port in (0..PORTS).map(PortNo) {
        let kind = PortSetting::Kind(PortKind::Axon);
        plane.set_port(Time::ZERO, port, kind, &mut Vec::new()).expect("a kind");
        plane.handle(Time::ZERO, Input::Link { port, up: true }, &mut Vec::new());
    }
    let byte = |count: usize| Span::from_nanos(8 * count as u64);
    // Inputs by time; a wire that becomes free comes before a frame of that time.
    let mut inputs: BTreeMap<(Time, usize), Input> = BTreeMap::new();
    for (port, frames) in (0..PORTS).map(PortNo).zip(wires) {
        let mut at = Time::ZERO;
        for frame in frames {
            let (length, frame) = (frame.len(), FrameBuf::new(frame));
            let input = Input::Frame { port, frame, complete_at: at, intact: true };
            inputs.insert((at, 1 + port.index()), input);
            at += byte(gmii::wire_bytes(length) + GAP_BYTES);
        }
    }
    let mut dropped = vec![0; wires.len()];
    while let Some(((now, _), input)) = inputs.pop_first() {
        let mut out = Vec::new();
        plane.handle(now, input, &mut out);
        for action in out {
            match action {
                Action::Transmit { port, frame, .. } => {
                    let free = now + byte(gmii::wire_bytes(frame.length()) + GAP_BYTES);
                    inputs.insert((free, 0), Input::TxDone { port });
                }
                Action::Dropped { ingress, reason: Drop::QueueFull, .. } => {
                    dropped[ingress.index()] += 1;
                }
                other => panic!("unexpected: {other:?}"),
            }
        }
    }
    dropped
}

/// Sends frames of these sizes from all ports to one, and compares.
fn overload(width: HopWidth, mut size: impl FnMut() -> usize) {
    let Some(mut pins) = device(width) else { return };
    let name = |port: u16, number: usize| u32::from(port) << 16 | number as u32;
    let to = PortNo(1);
    let sizes: Vec<usize> = (0..OVERLOAD).map(|_| size()).collect();
    let frame = |port, number| packet(width, to, name(port, number), sizes[number]);
    let wires: Vec<Vec<Vec<u8>>> =
        (0..PORTS).map(|port| (0..OVERLOAD).map(|number| frame(port, number)).collect()).collect();
    for (port, frames) in (0..PORTS).map(PortNo).zip(&wires) {
        frames.iter().for_each(|frame| pins.feed(port, frame, None));
    }
    let sent = run(&mut pins, width).swap_remove(to.index());
    assert!(gaps(&sent).iter().all(|&gap| gap == GAP_BYTES as u64), "the output was idle");
    let by_plane = dropped_by_plane(width, &wires);
    // While frames arrive, each input sends as much as any other, but for a turn and its last
    // frame.
    let wire = |bytes: usize| (gmii::wire_bytes(bytes) + GAP_BYTES) as u64;
    let arrival: u64 = wires[0].iter().map(|frame| wire(frame.len())).sum();
    let longest = wires[0].iter().map(|frame| wire(frame.len())).max().expect("frames");
    let mut shares = [0; PORTS as usize];
    for one in sent.iter().take_while(|one| one.ended < sent[0].began + arrival) {
        shares[(one.name >> 16) as usize] += one.ended - one.began + GAP_BYTES as u64;
        let [least, most] = [shares.iter().min(), shares.iter().max()].map(|share| share.copied());
        let apart = most.zip(least).map_or(0, |(most, least)| most - least);
        assert!(apart <= TURN_BYTES + longest, "{shares:?}");
    }
    for port in 0..PORTS {
        let names: Vec<u32> =
            sent.iter().map(|one| one.name).filter(|name| name >> 16 == u32::from(port)).collect();
        assert!(names.is_sorted(), "another order: {names:?}");
        let lost = driver::count(&mut pins, PortNo(port), &counter::QUEUE_FULL) as usize;
        assert_eq!(names.len() + lost, OVERLOAD, "a frame without an end");
        // What fits the buffer while nothing has left it is never lost.
        let mut bytes = 0;
        for (number, frame) in wires[usize::from(port)].iter().enumerate() {
            bytes += frame.len() + 1;
            if bytes > 2048 - MARGIN {
                break;
            }
            assert!(names.contains(&name(port, number)), "{number} of {port} was lost too early");
        }
        // Frames come and go byte by byte in gates, so the border of a turn may differ by a few.
        let by_plane = by_plane[usize::from(port)];
        println!("{width:?} {port}: {lost} lost, by plane {by_plane}");
        assert!(lost.abs_diff(by_plane) <= APART, "{lost} lost, {by_plane} by the software plane");
    }
}

#[test]
fn four_inputs_share_an_output_and_lose_whole_frames_as_in_the_software_plane() {
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        overload(width, || 200);
        let mut frames = Frames::new(number("AXON_SEED", 1), width);
        overload(width, || 60 + frames.below(500) as usize);
    }
}
