//! Headroom: memory of a lossless priority group for the frames that arrive after XOFF was sent.

use super::{Dcb, FlowControl};
use crate::device::{Device, Stage};
use crate::model::{Cable, End, Fabric, Wire};
use crate::units::{BytesText, SpanText};
use axon_prove::headroom::{Headroom, REACTION_MAX, pause_reaction_max};
use axon_wire::{Bytes, FrameBuf, Rate, Span};

/// Bytes of the frame check sequence (IEEE 802.3 clause 3.2.9), not included in frame lengths.
const FRAME_CHECK_BYTES: u64 = 4;
/// Bytes on the wire that the memory does not store: FCS, preamble, start delimiter and the minimum
/// gap (IEEE 802.3 clauses 3.1.1 and 4.4.2).
const AROUND_FRAME_BYTES: u64 = 24;
/// Bit times in a quantum.
pub(super) const QUANTUM_BITS: u64 = 512;
/// Ticks of 10 ps in a second.
const TICKS_PER_SECOND: u128 = 100_000_000_000;

/// A cable at a port of a switch, as seen from this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CableEnd<'a> {
    /// True if a host is at the other end. Frames to hosts have no route.
    pub is_host: bool,
    /// Properties of the cable.
    pub wire: &'a Wire,
    /// Lowest and highest rate that the cable ever has ([`Fabric::rates`]).
    pub rates: [Rate; 2],
}

/// Returns the cable at each port of a switch, by index; `None` where a port has none.
pub fn cable_ends(fabric: &Fabric, switch: usize) -> Vec<Option<CableEnd<'_>>> {
    let mut cable_ends = vec![None; usize::from(fabric.switches[switch].ports)];
    let mut put = |at: End, cable| {
        if at.switch == switch {
            let (is_host, wire) = (matches!(cable, Cable::Host(_)), fabric.wire(cable));
            let rates = fabric.rates(cable);
            cable_ends[at.port.index()] = Some(CableEnd { is_host, wire, rates });
        }
    };
    for (index, link) in fabric.links.iter().enumerate() {
        put(link.a, Cable::Link(index));
        put(link.b, Cable::Link(index));
    }
    for (index, host) in fabric.hosts.iter().enumerate() {
        put(End { switch: host.switch, port: host.port }, Cable::Host(index));
    }
    put(fabric.controller.at, Cable::Controller);
    cable_ends
}

/// Returns the headroom formula with its inputs for a port. Frames from a host arrive without a
/// route, and are counted without the one that the edge adds.
pub fn headroom(fabric: &Fabric, dcb: &Dcb, end: CableEnd<'_>) -> Headroom {
    let route = if end.is_host { 0 } else { FrameBuf::HEADROOM as u64 };
    let plain = crate::model::frame_bytes_max(fabric) as u64;
    let frame = plain + route + FRAME_CHECK_BYTES;
    let device = || time_inside(&fabric.device, frame);
    let delay = dcb.buffers.interface_delay.map_or_else(device, |delay| delay.0);
    let [slowest, rate] = end.rates;
    let bits = u128::from(delay.ticks()) * u128::from(rate.bits_per_second());
    Headroom {
        rate,
        slowest,
        cable: end.wire.latency,
        port_frame: Bytes(frame),
        lossless_frame: Bytes(frame),
        interface_bits: u64::try_from(bits.div_ceil(TICKS_PER_SECOND)).unwrap_or(u64::MAX),
        reaction: match (dcb.buffers.reaction, dcb.flow_control) {
            (Some(SpanText(reaction)), _) => reaction,
            (None, FlowControl::Pause) => pause_reaction_max(rate).max(pause_reaction_max(slowest)),
            (None, FlowControl::Pfc | FlowControl::None) => REACTION_MAX,
        },
    }
}

/// Returns the length of the longest lossless frame as the memory counts it: without its FCS.
pub fn frame_bytes(headroom: &Headroom) -> Bytes {
    Bytes(headroom.lossless_frame.0 - FRAME_CHECK_BYTES)
}

/// Returns the headroom that a lossless group at this port needs to lose nothing: the XOFF frame,
/// and all that may follow it by the formula.
///
/// The formula counts time on the wire. Of that, the memory stores neither FCS nor preamble nor
/// gap. Frames of any length up to `f` that take `w` bytes of wire together occupy at most `w * f /
/// (f + 24)` in it, since shorter ones occupy a smaller part.
pub fn needed(headroom: &Headroom) -> Bytes {
    let frame = frame_bytes(headroom).0;
    let kept =
        u128::from(headroom.bytes().0) * u128::from(frame) / u128::from(frame + AROUND_FRAME_BYTES);
    Bytes(u64::try_from(kept).unwrap_or(u64::MAX).saturating_add(frame))
}

/// Returns the minimum quanta of a pause that is refreshed at half time: the refresh may have to
/// wait for the longest frame, which the port has just begun. Quanta are those of the rate at the
/// start, which the ends of a link keep using when the rate changes.
pub fn quanta_needed(headroom: &Headroom, end: CableEnd<'_>) -> u64 {
    let wire_bytes = frame_bytes(headroom).0.saturating_add(AROUND_FRAME_BYTES);
    let [slowest, start] = [headroom.slowest, end.wire.rate].map(Rate::bits_per_second);
    let bits = u128::from(wire_bytes) * 2 * 8 * u128::from(start);
    let quanta = bits.div_ceil(u128::from(slowest) * u128::from(QUANTUM_BITS));
    u64::try_from(quanta).unwrap_or(u64::MAX)
}

/// Returns the headroom of each port of a switch, by index; zero for a port without a cable.
pub fn configured(fabric: &Fabric, dcb: &Dcb, switch: usize) -> Vec<Bytes> {
    let at_port = |end: Option<CableEnd<'_>>| match (end, dcb.buffers.headroom) {
        (None, _) => Bytes(0),
        (Some(_), Some(BytesText(bytes))) => bytes,
        (Some(end), None) => needed(&headroom(fabric, dcb, end)),
    };
    cable_ends(fabric, switch).into_iter().map(at_port).collect()
}

/// Returns the time that a frame of this length spends inside a device, ingress and egress
/// together.
fn time_inside(device: &Device, bytes: u64) -> Span {
    let inside = |stages: &[Stage]| {
        let times = stages.iter().map(|stage| stage.time.0 + stage.time_per_byte.0 * bytes);
        times.fold(Span::ZERO, |sum, time| sum + time)
    };
    inside(&device.from_switch).max(inside(device.from_host()))
}
