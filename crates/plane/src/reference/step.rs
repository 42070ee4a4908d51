//! Reference implementation of one hop of a source route (paper 001 §3, thesis 000 §3.1).
//!
//! The header is parsed into its type, its forward list and its reverse list. The first forward hop
//! decides where the packet goes. Taking a hop moves it off the forward list and puts the ingress
//! port in front of the reverse list. Then a complete new header of the same length is written over
//! the old one.

use alloc::vec::Vec;
use axon_node::{Drop, PortKind, Punt};
use axon_wire::header::{self, HOPS_MAX, HeaderView, HopWidth, PacketType};
use axon_wire::{PortNo, Priority, Route};

/// Result of the forwarding step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send the packet to the Axon at this port, with its new header.
    Transit(PortNo),
    /// Send the packet to the hosts of a port, without its header.
    Deliver {
        /// The host port.
        port: PortNo,
        /// The length of the header, padding included.
        header_bytes: usize,
    },
    /// Pass the packet to the control plane, with its new header.
    Punt(Punt),
    /// Drop the packet unchanged: it is for a port of unknown kind.
    Unknown(PortNo),
    /// Drop the packet unchanged.
    Drop(Drop),
}

/// Takes one hop of the packet in `bytes`, received on `ingress`. `kind_of` returns the kind of a
/// port, or `None` if there is no such port.
pub fn step(
    bytes: &mut [u8],
    width: HopWidth,
    ingress: PortNo,
    kind_of: impl Fn(PortNo) -> Option<PortKind>,
) -> Verdict {
    let Ok(view) = HeaderView::parse(bytes, width) else {
        return Verdict::Drop(Drop::Malformed);
    };
    let (came_as, header_bytes) = (view.packet_type(), view.header_bytes());
    let (forward, reverse) = (view.forward(), view.reverse());
    let Some((&next, rest)) = forward.split_first() else {
        rewrite(bytes, width, PacketType::Error, (&[], &reverse));
        return Verdict::Punt(Punt::Error);
    };
    if reverse.len() == HOPS_MAX {
        return Verdict::Drop(Drop::Malformed);
    }
    let (verdict, goes_as) = match kind_of(next) {
        _ if next == PortNo::CONTROL => (Verdict::Punt(Punt::Addressed), came_as),
        None => return Verdict::Drop(Drop::NoSuchPort),
        Some(PortKind::Unknown) => return Verdict::Unknown(next),
        Some(PortKind::Axon) => (Verdict::Transit(next), came_as),
        Some(PortKind::Host) if came_as == PacketType::Ethernet => {
            return Verdict::Deliver { port: next, header_bytes };
        }
        Some(PortKind::Host) => (Verdict::Punt(Punt::Error), PacketType::Error),
    };
    let way_back: Vec<PortNo> = [ingress].iter().chain(reverse.iter()).copied().collect();
    rewrite(bytes, width, goes_as, (rest, &way_back));
    verdict
}

/// Writes a header over one with as many hops; keeps its priority, spare bit and padding.
fn rewrite(
    bytes: &mut [u8],
    width: HopWidth,
    packet_type: PacketType,
    (forward, reverse): (&[PortNo], &[PortNo]),
) {
    let hops = forward.len() + reverse.len();
    let last = width.header_bytes(hops) - 1;
    // Bits of the old header that belong to no list and no count, by octet.
    let kept = match width {
        // An even number of hops leaves half of the last octet; see `axon_wire::header`.
        HopWidth::Four if hops.is_multiple_of(2) => (last, 0x0f),
        HopWidth::Four => (last, 0),
        HopWidth::Eight | HopWidth::Sixteen => (5, 0x0f),
    };
    let (octet, mask) = kept;
    let old = bytes[octet] & mask;
    let written = header::emit(bytes, width, packet_type, forward, reverse);
    debug_assert!(written.is_ok(), "as many hops as before, each on a port that exists");
    bytes[octet] |= old;
}

/// Returns the header of packets of `route` at their first switch: no reverse hops, and the layer
/// of the route in place of a priority. `None` if no header can hold the route.
pub(super) fn header_of(route: &Route, width: HopWidth) -> Option<Vec<u8>> {
    let mut bytes = alloc::vec![0; width.header_bytes(route.hops.len())];
    header::emit(&mut bytes, width, PacketType::Ethernet, &route.hops, &[]).ok()?;
    header::set_priority(&mut bytes, width, Priority::from_low_bits(route.layer.value()));
    Some(bytes)
}
