//! All constants of the wire formats: versions, EtherTypes, addresses, types and lengths.
//!
//! The module of each format re-exports its own under shorter names. Types and subtypes of TLVs are
//! defined with their formats, in [`crate::lldp`] and [`crate::dcbx`].
//!
//! Some numbers are repeated elsewhere: in the Wireshark dissector, the second parser of the golden
//! vectors, the tester of the conformance suite and the pages of `docs`. Tests compare them with
//! these constants, so a change that is made only here fails.

pub mod address;
mod link_local;

/// Versions of the formats that have one. Any change to the bytes of a format needs a new version.
pub mod version {
    /// Version of the envelope and of every control message sealed in it.
    pub const ENVELOPE: u8 = 8;
    /// Version of the probe's head and records.
    pub const PROBE: u8 = 1;
    /// Version of the congestion message.
    pub const CONGESTION: u8 = 1;
    /// Version of the congestion notification message (IEEE 802.1Q clause 33.4.1).
    pub const CNM: u8 = 0;
}

/// EtherTypes: bytes 12 and 13 of an untagged Ethernet frame.
pub mod ethertype {
    /// IPv4 (RFC 894).
    pub const IPV4: u16 = 0x0800;
    /// ARP (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// IPv6 (RFC 2464).
    pub const IPV6: u16 = 0x86dd;
    /// MPLS, unicast (RFC 3032 section 5).
    pub const MPLS: u16 = 0x8847;
    /// The tag protocol identifier of a customer VLAN tag (IEEE 802.1Q table 9-1).
    pub const CUSTOMER_TAG: u16 = 0x8100;
    /// The tag protocol identifier of a service VLAN tag (IEEE 802.1Q table 9-1).
    pub const SERVICE_TAG: u16 = 0x88a8;
    /// MAC control: PAUSE and PFC (IEEE 802.3 clause 31.4.1.3).
    pub const MAC_CONTROL: u16 = 0x8808;
    /// Slow protocols (IEEE 802.3 annex 57A): LACP.
    pub const SLOW_PROTOCOLS: u16 = 0x8809;
    /// LLDP (IEEE 802.1AB clause 7.3).
    pub const LLDP: u16 = 0x88cc;
    /// Congestion notification message (IEEE 802.1Q table 30-2).
    pub const CNM: u16 = 0x22e7;
    /// Congestion notification tag, CN-TAG (IEEE 802.1Q table 30-1).
    pub const CN_TAG: u16 = 0x22e9;
    /// Local experimental 1 (IEEE 802 clause 9.2.3): Axon's link frames.
    pub const LINK: u16 = 0x88b5;
    /// Local experimental 2 (IEEE 802 clause 9.2.3): Axon's ether probes.
    pub const PROBE: u16 = 0x88b6;
    /// Local experimental 2 as well: control frames of the PortLand baseline. No fabric runs both,
    /// and ether probes are recognised by their addresses.
    pub const PORTLAND: u16 = PROBE;
}

/// The type field of the Axon header, 4 bits. Type 0 is never assigned, see [`crate::header`].
pub mod packet_type {
    /// An Ethernet frame between hosts.
    pub const ETHERNET: u8 = 1;
    /// A sealed message between control planes.
    pub const CONTROL: u8 = 2;
    /// A probe.
    pub const PROBE: u8 = 3;
    /// A packet that could not be forwarded.
    pub const ERROR: u8 = 4;
    /// A congestion message.
    pub const CONGESTION: u8 = 5;
}

/// Opcodes of MAC control (IEEE 802.3 annex 31A).
pub mod opcode {
    /// PAUSE, which pauses a whole link.
    pub const PAUSE: u16 = 0x0001;
    /// Priority-based flow control, PFC.
    pub const PFC: u16 = 0x0101;
}

/// Fields of a probe.
pub mod probe {
    /// Option bit: ingress units append a record.
    pub const OPTION_INGRESS: u8 = 1;
    /// Option bit: egress units append a record.
    pub const OPTION_EGRESS: u8 = 2;
    /// Option bit: records of egress units hold the bytes queued for the port.
    pub const OPTION_QUEUED: u8 = 4;
    /// Unit of a record: ingress.
    pub const UNIT_INGRESS: u8 = 1;
    /// Unit of a record: egress.
    pub const UNIT_EGRESS: u8 = 2;
}

/// UDP ports of DHCPv6 (RFC 8415 clause 7.2).
pub mod dhcpv6_port {
    /// Port on which clients listen.
    pub const CLIENT: u16 = 546;
    /// Port on which servers and relay agents listen.
    pub const SERVER: u16 = 547;
}

/// Lengths, in bytes unless the name states another unit.
pub mod length {
    /// An Ethernet header without a tag.
    pub const ETHERNET_HEADER: usize = 14;
    /// The two addresses of an Ethernet frame, before the first tag or the EtherType.
    pub const ETHERNET_ADDRESSES: usize = 12;
    /// The shortest Ethernet frame, without its FCS (IEEE 802.3 clause 4.4.2).
    pub const FRAME_MIN: usize = 60;
    /// A VLAN tag or a CN-TAG.
    pub const TAG: usize = 4;
    /// The Axon header before its first hop, with hops of 8 or 16 bits.
    pub const HEADER_FIXED: usize = 6;
    /// The Axon header before its first hop with hops of 4 bits, in bits.
    pub const HEADER_FIXED_BITS_OF_FOUR: usize = 44;
    /// Maximum number of hops in either count of the Axon header, a field of 12 bits.
    pub const HOPS_MAX: usize = 0xfff;
    /// The part of an envelope before the sealed message.
    pub const ENVELOPE: usize = 27;
    /// The tag of XChaCha20-Poly1305, in bytes.
    pub(crate) const SEAL: usize = 16;
    /// The part of the envelope that is the nonce: node, incarnation and sequence.
    pub(crate) const NONCE: usize = 24;
    /// The head of a probe.
    pub const PROBE_HEAD: usize = 16;
    /// A record of a probe.
    pub const PROBE_RECORD: usize = 16;
    /// Bytes of probe records that a link between switches accepts on top of the longest packet:
    /// two records for each of 16 links, which are a path to the ninth switch and back.
    pub const PROBE_RECORDS_MAX: usize = 2 * 16 * PROBE_RECORD;
    /// A congestion message without padding.
    pub const CONGESTION: usize = 28;
    /// A congestion message with padding. With the shortest Axon header, it is as long as the
    /// shortest Ethernet frame.
    pub(crate) const CONGESTION_PADDED: usize = FRAME_MIN - HEADER_FIXED;
    /// The part of a congestion notification message's PDU before the MSDU.
    pub const CNM: usize = 24;
    /// Maximum MSDU that a congestion notification message copies from the sampled frame.
    pub const CNM_MSDU_MAX: usize = 64;
    /// Maximum length of the value of an LLDP TLV, whose length field has nine bits.
    pub const LLDP_VALUE_MAX: usize = 511;
    /// Maximum length of an LLDPDU, which is the payload of an untagged Ethernet frame.
    pub const LLDPDU_MAX: usize = 1500;
}
