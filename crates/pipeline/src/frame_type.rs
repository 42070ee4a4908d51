//! Frame classifier: the type of the first header, and the fields that the protocol tables look up.

use axon_wire::MacAddr;
use axon_wire::constants::ethertype;
use axon_wire::link::ETHERNET_BYTES as ETHERNET;
use axon_wire::vlan::TAG_BYTES as TAG;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Bytes of an IPv4 header without options (RFC 791).
const IPV4: usize = 20;

/// Type of a frame, by its EtherType: each type has its own lookup keys.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FrameType {
    /// Any other EtherType, or a frame too short to have one.
    #[default]
    Other,
    /// EtherType 0x0806.
    Arp,
    /// EtherType 0x0800.
    Ipv4,
    /// EtherType 0x86dd.
    Ipv6,
    /// EtherType 0x8847: a stack of labels (RFC 3032).
    Mpls,
    /// EtherType 0x8100: a VLAN tag, with any header behind it.
    Tagged,
    /// Axon packet on a link between Axons, without an Ethernet header.
    Axon,
}

impl FrameType {
    /// All types, in order.
    pub const ALL: [FrameType; 7] = [
        FrameType::Other,
        FrameType::Arp,
        FrameType::Ipv4,
        FrameType::Ipv6,
        FrameType::Mpls,
        FrameType::Tagged,
        FrameType::Axon,
    ];

    /// Returns the name in files, commands and messages.
    pub const fn name(self) -> &'static str {
        match self {
            FrameType::Other => "other",
            FrameType::Arp => "arp",
            FrameType::Ipv4 => "ipv4",
            FrameType::Ipv6 => "ipv6",
            FrameType::Mpls => "mpls",
            FrameType::Tagged => "tagged",
            FrameType::Axon => "axon",
        }
    }

    pub(crate) const fn of_ethertype(ethertype: [u8; 2]) -> FrameType {
        match u16::from_be_bytes(ethertype) {
            ethertype::ARP => FrameType::Arp,
            ethertype::IPV4 => FrameType::Ipv4,
            ethertype::IPV6 => FrameType::Ipv6,
            ethertype::MPLS => FrameType::Mpls,
            ethertype::CUSTOMER_TAG => FrameType::Tagged,
            _ => FrameType::Other,
        }
    }
}

impl core::fmt::Display for FrameType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Parsed fields of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Type of the first header, which selects the lookup keys.
    pub frame_type: FrameType,
    /// Type of the header behind the VLAN tag, if there is one, to which modifications apply.
    pub inner: FrameType,
    /// Byte offset of the header behind EtherType and tag, at most 18.
    pub network_at: u8,
    /// The destination MAC; `None` in an Axon packet.
    pub destination: Option<MacAddr>,
    /// The source MAC; `None` in an Axon packet.
    pub source: Option<MacAddr>,
    /// The destination address of an IPv4 header.
    pub ipv4: Option<Ipv4Addr>,
    /// The label at the top of the stack, of 20 bits.
    pub label: Option<u32>,
    /// The bridge of the frame, if it is not that of its ingress port
    /// ([`PortOptions::bridge`](crate::PortOptions::bridge)): a program may give each VLAN of a
    /// port its own bridge.
    pub bridge: Option<u16>,
}

impl Parsed {
    /// Parses an Ethernet frame. If a header is truncated, none of its fields are set.
    #[inline]
    pub fn ethernet(frame: &[u8]) -> Parsed {
        let mut parsed = Parsed {
            frame_type: FrameType::Other,
            inner: FrameType::Other,
            network_at: ETHERNET as u8,
            destination: MacAddr::destination_of(frame),
            source: MacAddr::source_of(frame),
            ipv4: None,
            label: None,
            bridge: None,
        };
        let Some(&[a, b]) = frame.get(ETHERNET - 2..ETHERNET).and_then(|two| two.first_chunk())
        else {
            return parsed;
        };
        parsed.frame_type = FrameType::of_ethertype([a, b]);
        parsed.inner = parsed.frame_type;
        let mut at = ETHERNET;
        if parsed.frame_type == FrameType::Tagged {
            at += TAG;
            parsed.network_at = at as u8;
            parsed.inner = match frame.get(at - 2..at) {
                Some(&[a, b]) => FrameType::of_ethertype([a, b]),
                _ => FrameType::Other,
            };
        }
        match parsed.inner {
            FrameType::Ipv4 => {
                let header = frame.get(at..at + IPV4);
                let address = header.and_then(|header| header[16..].first_chunk());
                parsed.ipv4 = address.map(|&[a, b, c, d]| Ipv4Addr::new(a, b, c, d));
            }
            FrameType::Mpls => {
                let label = frame.get(at..).and_then(|rest| rest.first_chunk::<4>());
                parsed.label = label.map(|&label| u32::from_be_bytes(label) >> 12);
            }
            _ => {}
        }
        parsed
    }

    /// Returns the fields of an Axon packet, which has only lookup keys.
    #[inline]
    pub const fn axon() -> Parsed {
        Parsed {
            frame_type: FrameType::Axon,
            inner: FrameType::Axon,
            network_at: 0,
            destination: None,
            source: None,
            ipv4: None,
            label: None,
            bridge: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn frame(ethertype: &[u8], rest: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], ethertype, rest].concat()
    }

    #[test]
    fn an_address_and_a_label_are_read_behind_a_tag_too() {
        let mut header = [0; 20];
        header[16..].copy_from_slice(&[10, 1, 2, 3]);
        let address = Some(Ipv4Addr::new(10, 1, 2, 3));
        let plain = Parsed::ethernet(&frame(&[8, 0], &header));
        assert_eq!(
            (plain.frame_type, plain.ipv4, plain.network_at),
            (FrameType::Ipv4, address, 14)
        );
        let tagged = Parsed::ethernet(&frame(&[0x81, 0, 0, 5, 8, 0], &header));
        assert_eq!((tagged.frame_type, tagged.inner), (FrameType::Tagged, FrameType::Ipv4));
        assert_eq!((tagged.ipv4, tagged.network_at), (address, 18));
        let label = Parsed::ethernet(&frame(&[0x88, 0x47], &[0x12, 0x34, 0x51, 64]));
        assert_eq!((label.frame_type, label.label), (FrameType::Mpls, Some(0x12345)));
    }

    #[test]
    fn a_header_that_is_cut_short_has_no_fields() {
        let whole = frame(&[8, 0], &[0; 20]);
        for length in 0..whole.len() {
            assert_eq!(Parsed::ethernet(&whole[..length]).ipv4, None, "{length}");
        }
        assert_eq!(Parsed::ethernet(&whole[..13]).frame_type, FrameType::Other);
        assert_eq!(Parsed::ethernet(&frame(&[0x88, 0x47], &[0; 3])).label, None);
        assert_eq!(Parsed::ethernet(&frame(&[0x81, 0], &[0; 3])).inner, FrameType::Other);
    }
}
