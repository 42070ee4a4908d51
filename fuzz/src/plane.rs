//! A whole plane among arbitrary frames, wires, ports and routes. `World` checks after every
//! event that no frame is lost or made up and that all buffers keep their bounds.

#[path = "../../crates/plane/tests/all/model/mod.rs"]
mod model;

use crate::Reader;
use axon_node::PortKind;
use axon_plane::OnFull;
use axon_wire::header::HopWidth;
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::{PrioritySet, TrafficClass};
use axon_wire::{Hops, MacAddr, PortNo, Span};
use model::classes::{self, Kinds};
use model::{Event, World};

/// Hosts that routes and frames speak of.
fn host(byte: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, byte % 4])
}

fn port(byte: u8) -> PortNo {
    PortNo(u16::from(byte % 6))
}

/// A frame as it is, or repeated up to a size that the fuzzer need not spell out.
fn frame(reader: &mut Reader) -> Option<Vec<u8>> {
    let fill = usize::from(reader.byte()?);
    let mut frame = reader.string()?.to_vec();
    frame.resize(frame.len() + fill, 0x55);
    Some(frame)
}

/// Returns the time from a frame's head to its tail, mostly zero, and whether its FCS is valid.
fn tail(reader: &mut Reader) -> Option<(Span, bool)> {
    let byte = reader.byte()?;
    let micros = if byte & 1 == 0 { 0 } else { u64::from(reader.byte()?) };
    Some((Span::from_micros(micros), byte & 6 != 6))
}

fn ethernet(reader: &mut Reader) -> Option<Vec<u8>> {
    let mut frame = host(reader.byte()?).0.to_vec();
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 8, 0]);
    frame.resize(14 + usize::from(reader.byte()?), 0x55);
    Some(frame)
}

fn event(reader: &mut Reader) -> Option<Event> {
    let what = reader.byte()?;
    let port = port(reader.byte()?);
    Some(match what % 13 {
        0 => {
            let headroom = usize::from(reader.byte()?);
            let (tail, intact) = tail(reader)?;
            Event::Receive { port, headroom, tail, intact, frame: frame(reader)? }
        }
        1 => {
            let (tail, intact) = tail(reader)?;
            Event::Receive { port, headroom: 64, tail, intact, frame: ethernet(reader)? }
        }
        2 => {
            let frame = frame(reader)?;
            Event::Receive { port, headroom: 0, tail: Span::ZERO, intact: true, frame }
        }
        3 => Event::TxDone(port),
        4 => Event::Link { port, up: reader.byte()? & 1 == 1 },
        5 => Event::Inject(frame(reader)?),
        6 => Event::SendRaw { port, frame: frame(reader)? },
        7 => {
            let kinds = [PortKind::Host, PortKind::Axon, PortKind::Unknown];
            Event::Kind { port, kind: kinds[usize::from(reader.byte()?) % 3] }
        }
        8 => {
            let destination = host(reader.byte()?);
            let hop = |&byte: &u8| {
                if byte == 0xff { PortNo::CONTROL } else { PortNo(u16::from(byte)) }
            };
            let hops: Hops = reader.string()?.iter().map(hop).collect();
            Event::Route { port, destination, hops }
        }
        9 => {
            let (priorities, time) = (reader.byte()?, Quanta(reader.number()?));
            let pfc = Pfc::of(PrioritySet::from_bits(priorities), time);
            let frame = MacControl::Pfc(pfc).emit(host(0)).to_vec();
            Event::Receive { port, headroom: 0, tail: Span::ZERO, intact: true, frame }
        }
        10 => Event::Pfc { port, pfc: PrioritySet::from_bits(reader.byte()?) },
        11 => {
            let mut prio_tc = TrafficClass::ALL;
            for class in &mut prio_tc {
                *class = TrafficClass::ALL[usize::from(reader.byte()?) % 8];
            }
            Event::Classes { port, prio_tc }
        }
        _ => Event::Wait(Span::from_micros(u64::from(reader.number()?))),
    })
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let width = match reader.byte() {
        Some(byte) if byte % 3 == 0 => HopWidth::Four,
        Some(byte) if byte % 3 == 1 => HopWidth::Sixteen,
        _ => HopWidth::Eight,
    };
    let on_full = match reader.byte() {
        Some(byte) if byte % 3 == 0 => OnFull::Nack,
        Some(byte) if byte % 3 == 1 => OnFull::CongestionMessage,
        _ => OnFull::Drop,
    };
    let dcb = match reader.byte() {
        Some(byte) if byte % 2 == 0 => {
            let mut byte = || reader.byte().unwrap_or(0);
            let (watermarks, watchdog) = (byte(), byte());
            let (pause, arrival) = (byte() % 4 == 0, byte() % 2 == 0);
            let kinds = Kinds { watermarks, watchdog, pause, arrival };
            Some(classes::config(kinds))
        }
        _ => None,
    };
    let on_full = if dcb.is_some() { OnFull::Drop } else { on_full };
    let mut world = World::new(width, on_full, dcb);
    while let Some(event) = event(&mut reader) {
        world.apply(event);
    }
}
