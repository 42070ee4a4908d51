//! Lost datagrams, by flow and reason.
//!
//! Wherever a frame ends for a counted reason, the station looks for a UDP datagram in it, after
//! any header and tags, and counts it by its two ends. A flow's datagrams that neither arrived nor
//! were lost are in flight.
//!
//! A frame with a flipped bit is counted where it is dropped, if the addresses and ports of its
//! flow are intact. A frame consumed by the control plane is not a loss, unless it is an error
//! packet, which is not forwarded from there.

use crate::datagram::{self, Ends};
use axon_node::Drop;
use axon_wire::HopWidth;
use axon_wire::cn::Tagged;
use axon_wire::header::{HeaderView, PacketType};
use std::collections::BTreeMap;

/// Loss reason of a frame that is sent without carrier.
pub const NO_CARRIER: &str = "link_no_carrier";
/// Loss reason of an error packet consumed by the control plane.
const ERROR_PACKET: &str = "error_packet";

/// Lost datagrams, by flow and reason.
#[derive(Clone, Debug, Default)]
pub struct LostDatagrams {
    counts: BTreeMap<(Ends, &'static str), u64>,
}

impl LostDatagrams {
    /// Counts a frame that has ended for this reason.
    #[cold]
    pub fn count(&mut self, frame: &[u8], width: HopWidth, reason: &'static str) {
        let mut reason = reason;
        let mut plain = frame;
        // A host's frame may also begin like a header, through its address.
        if let Ok(view) = HeaderView::parse(frame, width) {
            plain = view.payload();
            if reason == Drop::Consumed.name() && view.packet_type() == PacketType::Error {
                reason = ERROR_PACKET;
            }
        }
        if reason == Drop::Consumed.name() {
            return;
        }
        if let Some(ends) = Tagged::parse(plain).and_then(|tagged| datagram::ends(tagged.msdu)) {
            *self.counts.entry((ends, reason)).or_default() += 1;
        }
    }

    /// Adds the counts of another station.
    pub fn merge(&mut self, other: &LostDatagrams) {
        for (&key, count) in &other.counts {
            *self.counts.entry(key).or_default() += count;
        }
    }

    /// Returns the losses from one end to another, by reason.
    pub fn of(&self, ends: Ends) -> BTreeMap<&'static str, u64> {
        let all = self.counts.range((ends, "")..).take_while(|((of, _), _)| *of == ends);
        all.map(|((_, reason), &count)| (*reason, count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::Addresses;
    use axon_wire::header;
    use axon_wire::vlan::VlanTag;
    use axon_wire::{MacAddr, PortNo, Priority};
    use std::net::Ipv4Addr;

    const WIDTH: HopWidth = HopWidth::Eight;

    fn ends(octet: u8) -> Ends {
        let ip = |octet| Ipv4Addr::new(10, 0, 0, octet);
        ((ip(octet), 4000), (ip(9), 5000))
    }

    fn frame(octet: u8) -> Vec<u8> {
        let (from, to) = ends(octet);
        let mac = MacAddr([2, 0, 0, 0, 0, octet]);
        let mut frame = vec![0; 90];
        let ends = Addresses { source: (mac, from.0, from.1), target: (mac, to.0, to.1) };
        datagram::emit(&mut frame, ends, |payload| payload.fill(1));
        frame
    }

    fn routed(inner: &[u8], kind: PacketType) -> Vec<u8> {
        let route = [PortNo(1), PortNo(2)];
        let mut packet = vec![0; WIDTH.header_bytes(2)];
        packet.extend_from_slice(inner);
        header::emit(&mut packet, WIDTH, kind, &route, &[]).unwrap();
        packet
    }

    #[test]
    fn a_datagram_is_found_behind_tags_and_headers_and_counted_by_reason() {
        let mut lost = LostDatagrams::default();
        let mut tagged = frame(1);
        let tag = VlanTag::of_priority(Priority::new(3).unwrap()).emit();
        tagged.splice(12..12, tag);
        lost.count(&frame(1), WIDTH, "queue_full");
        lost.count(&tagged, WIDTH, "queue_full");
        lost.count(&routed(&tagged, PacketType::Ethernet), WIDTH, "link_cut");
        let mut to_other_maker = frame(2);
        to_other_maker[..6].copy_from_slice(&[0x52, 0x54, 0, 0, 0, 2]);
        lost.count(&to_other_maker, WIDTH, "link_cut");
        lost.count(&[0; 60], WIDTH, "link_cut");
        let mut other = LostDatagrams::default();
        other.count(&routed(&frame(1), PacketType::Ethernet), WIDTH, "link_cut");
        lost.merge(&other);
        assert_eq!(
            lost.of(ends(1)).into_iter().collect::<Vec<_>>(),
            [("link_cut", 2), ("queue_full", 2)]
        );
        assert_eq!(lost.of(ends(2)).into_iter().collect::<Vec<_>>(), [("link_cut", 1)]);
        assert!(lost.of(ends(3)).is_empty());
    }

    #[test]
    fn what_the_control_plane_takes_in_goes_on_but_for_error_packets() {
        let mut lost = LostDatagrams::default();
        let consumed = Drop::Consumed.name();
        lost.count(&frame(1), WIDTH, consumed);
        lost.count(&routed(&frame(1), PacketType::Ethernet), WIDTH, consumed);
        assert!(lost.of(ends(1)).is_empty());
        lost.count(&routed(&frame(1), PacketType::Error), WIDTH, consumed);
        assert_eq!(lost.of(ends(1)).into_iter().collect::<Vec<_>>(), [(ERROR_PACKET, 1)]);
    }
}
