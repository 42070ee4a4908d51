//! Bytes carried by a link, by class: the control overhead of paper 001 §5.4.
//!
//! Counting must be switched on; a link without it pays one comparison per frame. Bytes are those
//! of the frame on the wire: headers, padding to the Ethernet minimum and FCS are included,
//! preamble and gap are not. Control messages are sealed, so routed ones are not classified by
//! content: an experiment separates discovery from address resolution by transmission time.

use axon_wire::constants::ethertype::{ARP, PORTLAND};
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{FrameBuf, MacAddr};

/// Length of the frame check sequence, in bytes.
const FCS_BYTES: u64 = 4;

/// Class of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Control frames between the two ends of the link: discovery, heartbeats, BPDUs, LLDP.
    Link,
    /// Control messages across the network: source-routed by Axons, or PortLand's.
    Routed,
    /// Plain ARP, from or to a host.
    Arp,
    /// Everything else: data between hosts.
    Data,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Class; 4] = [Class::Link, Class::Routed, Class::Arp, Class::Data];

    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Link => "link",
            Class::Routed => "routed",
            Class::Arp => "arp",
            Class::Data => "data",
        }
    }

    /// Returns the class of `frame`. `axon` is whether the link joins Axons: there a frame starts
    /// with an Axon header, unless it goes to a link-local address.
    pub(crate) fn of(frame: &[u8], axon: bool) -> Class {
        /// Packet type of control messages, in the upper half of a header's first byte.
        const CONTROL: u8 = axon_wire::header::PacketType::Control as u8;
        let Some(destination) = MacAddr::destination_of(frame) else {
            return Class::Data;
        };
        if destination.is_link_local() {
            return Class::Link;
        }
        if axon {
            return if frame[0] >> 4 == CONTROL { Class::Routed } else { Class::Data };
        }
        let ethertype = frame.get(ETHERNET_BYTES - 2..ETHERNET_BYTES);
        match ethertype.map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]])) {
            Some(ARP) => Class::Arp,
            Some(PORTLAND) => Class::Routed,
            _ => Class::Data,
        }
    }
}

/// Byte counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassBytes {
    /// True if the link joins Axons.
    axon: bool,
    bytes: [u64; Class::ALL.len()],
}

impl ClassBytes {
    /// Returns zero counters, for a link that joins Axons or one of plain Ethernet.
    pub(crate) fn new(axon: bool) -> ClassBytes {
        ClassBytes { axon, bytes: Default::default() }
    }

    /// Counts a frame, given without its FCS.
    pub(crate) fn count(&mut self, frame: &FrameBuf) {
        let bytes = frame.length().max(FRAME_BYTES_MIN) as u64 + FCS_BYTES;
        self.bytes[Class::of(frame.bytes(), self.axon) as usize] += bytes;
    }

    /// Returns the bytes of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.bytes[class as usize]
    }

    pub(crate) fn add(&mut self, other: &ClassBytes) {
        self.bytes.iter_mut().zip(other.bytes).for_each(|(sum, bytes)| *sum += bytes);
    }

    /// Returns the total bytes.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::header::{self, PacketType};
    use axon_wire::{HopWidth, Hops};

    fn axon(kind: PacketType) -> Vec<u8> {
        // Hops 8 and 6 are where an Ethernet frame would have the EtherType of ARP.
        let hops = Hops::from([1, 2, 3, 4, 5, 6, 8, 6]);
        let mut bytes = vec![0; HopWidth::Eight.header_bytes(hops.len()) + 50];
        header::emit(&mut bytes, HopWidth::Eight, kind, &hops, &[]).unwrap();
        assert_eq!(bytes[12..14], ARP.to_be_bytes());
        bytes
    }

    #[test]
    fn a_frame_is_classed_by_its_header_and_by_the_kind_of_its_link() {
        assert_eq!(Class::of(&axon(PacketType::Control), true), Class::Routed);
        assert_eq!(Class::of(&axon(PacketType::Ethernet), true), Class::Data);
        let heartbeat = axon_wire::link::emit(MacAddr([2; 6]), &[]);
        assert_eq!(Class::of(&heartbeat, true), Class::Link);
        assert_eq!(Class::of(&heartbeat, false), Class::Link);
        let mut arp = [0xff; 60];
        arp[12..14].copy_from_slice(&ARP.to_be_bytes());
        assert_eq!(Class::of(&arp, false), Class::Arp);
        arp[13] = 0;
        assert_eq!(Class::of(&arp, false), Class::Data);
        assert_eq!(Class::of(&[1, 2], false), Class::Data);
        arp[12..14].copy_from_slice(&[0x88, 0xb6]);
        assert_eq!(Class::of(&arp, false), Class::Routed);
    }

    #[test]
    fn bytes_count_padding_and_fcs() {
        let mut counted = ClassBytes::new(false);
        let mut arp = [0xff; 42];
        arp[12..14].copy_from_slice(&ARP.to_be_bytes());
        counted.count(&FrameBuf::new(&arp));
        assert_eq!((counted.of(Class::Arp), counted.total()), (64, 64));
        counted.count(&FrameBuf::new(&[0; 1514]));
        assert_eq!((counted.of(Class::Data), counted.total()), (1518, 1582));
    }
}
