//! TCAM entries that process Axon packets in transit (paper 001 §3, thesis 000 §3.1; the TCAM as in
//! paper 004 §3.2.1).
//!
//! The lookup key is the Axon header up to and including the next hop. Three entries above all
//! others are the same on every switch. They match if no hops remain, if the reverse list is full,
//! or if the hop is the control plane. Below them, each port has two entries that depend on its
//! kind: the kind of neighbour determines whether a packet is forwarded, loses its header, goes to
//! the control plane or is dropped. A hop without an entry does not correspond to a port.

use alloc::vec::Vec;
use axon_node::PortKind;
use axon_pipeline::{Action, Change, Field, FrameType, Modify, Target, TcamEntry, Udlk, UdlkId};
use axon_wire::header::{HOPS_MAX, PacketType};
use axon_wire::{HopWidth, PortNo};

/// Key of all transit entries.
pub(crate) const KEY: UdlkId = UdlkId(0);
/// Number of entries that do not depend on ports.
const FIXED: u16 = 3;
/// Number of entries for each port.
const PLACES: u16 = 2;

/// Returns the number of TCAM entries reserved for a switch with `ports` ports.
pub const fn places(ports: u16) -> u32 {
    ports as u32 * PLACES as u32 + FIXED as u32
}

/// Returns the maximum number of ports whose entries fit into a TCAM with `tcam` entries.
pub const fn ports_in(tcam: u32) -> u16 {
    let ports = tcam.saturating_sub(FIXED as u32) / PLACES as u32;
    if ports > u16::MAX as u32 { u16::MAX } else { ports as u16 }
}

/// Returns the index of the entry for packets with a full reverse list.
pub(super) const fn index_of_full(ports: u16) -> u16 {
    ports * PLACES + 1
}

/// Returns the key and the entries that do not depend on port kinds. The entries for `ports` ports
/// must fit into the TCAM ([`ports_in`]).
pub(crate) fn fixed(width: HopWidth, ports: u16) -> [Change; 1 + FIXED as usize] {
    let first = ports * PLACES;
    let control = Pattern::next_hop(width, PortNo::CONTROL);
    let is_full = Pattern::default().with(REVERSE_COUNT, HOPS_MAX as u16);
    let without_hop = Pattern::default().with(FORWARD_COUNT, 0);
    let to_cpu = || Action::from(Target::Cpu);
    let set =
        |index, pattern: Pattern, action| Change::Tcam(index, Some(pattern.entry(width, action)));
    [
        Change::Udlk(KEY, Some(key(width))),
        set(first, control, to_cpu().with(Modify::AxonHop)),
        set(index_of_full(ports), is_full, Target::Drop.into()),
        set(first + 2, without_hop, to_cpu().with(Modify::AxonError)),
    ]
}

/// Returns the two entries for a port of this kind.
pub fn of_port(width: HopWidth, port: PortNo, kind: PortKind) -> [Change; PLACES as usize] {
    let to_port = || Action::from(Target::Port(port));
    let (any, frames) = match kind {
        PortKind::Unknown => (Target::Drop.into(), None),
        PortKind::Axon => (to_port().with(Modify::AxonHop), None),
        PortKind::Host => {
            let to_cpu = Action::from(Target::Cpu);
            let not_for_hosts = to_cpu.with(Modify::AxonHop).with(Modify::AxonError);
            (not_for_hosts, Some(to_port().with(Modify::AxonStrip)))
        }
    };
    let hop = Pattern::next_hop(width, port);
    let frame_in_hop = hop.with(TYPE, PacketType::Ethernet as u16);
    let first = port.0 * PLACES;
    [
        Change::Tcam(first, Some(hop.entry(width, any))),
        Change::Tcam(first + 1, frames.map(|action| frame_in_hop.entry(width, action))),
    ]
}

/// Returns the key, which is the header up to the end of the first hop.
fn key(width: HopWidth) -> Udlk {
    let last = key_bytes(width) as u8 - 1;
    Udlk::of(FrameType::Axon, [Field::Bytes { first: 0, last }])
}

/// Returns the length of the key in bytes: a header without hops, plus one hop.
const fn key_bytes(width: HopWidth) -> usize {
    width.header_bytes(1)
}

/// Header field within two bytes: offset of the first byte, and the mask of the field.
#[derive(Clone, Copy)]
struct Bits {
    first: usize,
    mask: u16,
}

const TYPE: Bits = Bits { first: 0, mask: 0xf000 };
const FORWARD_COUNT: Bits = Bits { first: 2, mask: 0x0fff };
const REVERSE_COUNT: Bits = Bits { first: 4, mask: 0xfff0 };

/// Returns the position of the first hop.
const fn next_hop(width: HopWidth) -> Bits {
    match width {
        HopWidth::Four => Bits { first: 4, mask: 0x000f },
        HopWidth::Eight => Bits { first: 6, mask: 0xff00 },
        HopWidth::Sixteen => Bits { first: 6, mask: 0xffff },
    }
}

/// Value and mask that the start of a header must match.
#[derive(Clone, Copy, Default)]
struct Pattern {
    value: [u8; 8],
    mask: [u8; 8],
}

impl Pattern {
    /// Returns the pattern for packets whose next hop is this port.
    fn next_hop(width: HopWidth, port: PortNo) -> Pattern {
        // Only a hop of all ones is the control plane.
        let hop = port.0 & (u16::MAX >> (16 - width.bits()));
        Pattern::default().with(next_hop(width), hop)
    }

    /// Adds a field that must match `number`.
    fn with(mut self, Bits { first, mask }: Bits, number: u16) -> Pattern {
        let value = number << mask.trailing_zeros() & mask;
        for (at, (value, mask)) in
            value.to_be_bytes().into_iter().zip(mask.to_be_bytes()).enumerate()
        {
            self.value[first + at] |= value;
            self.mask[first + at] |= mask;
        }
        self
    }

    fn entry(&self, width: HopWidth, action: Action) -> TcamEntry {
        let of_key = |bytes: &[u8; 8]| Vec::from(&bytes[..key_bytes(width)]);
        TcamEntry { udlk: KEY, value: of_key(&self.value), mask: of_key(&self.mask), action }
    }
}
