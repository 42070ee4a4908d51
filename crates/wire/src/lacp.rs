//! Link Aggregation Control Protocol data units (LACPDU, IEEE 802.1AX-2014 clause 6.4.2).
//!
//! ```text
//!  bytes  6                  6        2        1     1     20      20        16          2 + 50
//!       +-------------------+--------+--------+-----+-----+-------+---------+-----------+--------+
//!       | 01-80-C2-00-00-02 | source | 0x8809 | 0x1 | 0x1 | actor | partner | collector | zeroes |
//!       +-------------------+--------+--------+-----+-----+-------+---------+-----------+--------+
//! ```
//!
//! Each TLV begins with its type and its total length, a byte each. Actor and partner have the same
//! fields: system priority, system, key, port priority, port, state, three reserved bytes. A
//! receiver accepts any version from 1 on and ignores reserved fields (clause 6.4.2.3). Such a
//! frame is never tagged and never forwarded.

use crate::addr::MacAddr;
pub use crate::constants::address::SLOW_PROTOCOLS as DESTINATION;
pub use crate::constants::ethertype::SLOW_PROTOCOLS as ETHERTYPE;
use crate::constants::length::ETHERNET_ADDRESSES;
use crate::link::ETHERNET_BYTES;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// LACP's subtype of slow protocols (IEEE 802.3 table 57A-3).
const SUBTYPE: u8 = 1;
/// Version of the LACPDUs that are sent.
const VERSION: u8 = 1;
/// Bytes of a LACPDU, without the Ethernet header.
const LACPDU_BYTES: usize = 110;
/// Bytes of a frame with a LACPDU, without its FCS.
pub(crate) const FRAME_BYTES: usize = ETHERNET_BYTES + LACPDU_BYTES;
/// Types and lengths of the TLVs.
const ACTOR: [u8; 2] = [1, 20];
const PARTNER: [u8; 2] = [2, 20];
const COLLECTOR: [u8; 2] = [3, 16];
/// Offset of the TLVs in a frame.
const ACTOR_AT: usize = ETHERNET_BYTES + 2;
const PARTNER_AT: usize = ACTOR_AT + 20;
const COLLECTOR_AT: usize = PARTNER_AT + 20;

/// System identifier of LACP: ports of one aggregate belong to one system.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SystemId {
    /// System priority; the lower value decides.
    pub priority: u16,
    /// MAC address of the system.
    pub mac: MacAddr,
}

/// Port state as advertised by LACP: eight bits (clause 6.4.2.3, item m).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortState(pub u8);

impl PortState {
    /// Active LACP: the port sends regardless of its partner's mode.
    pub const ACTIVE: PortState = PortState(0x01);
    /// Short timeout: LACPDUs are expected each second.
    pub const SHORT_TIMEOUT: PortState = PortState(0x02);
    /// The port may be part of an aggregate.
    pub const AGGREGATION: PortState = PortState(0x04);
    /// The port is attached to the right aggregate.
    pub const SYNCHRONIZATION: PortState = PortState(0x08);
    /// Received frames are accepted.
    pub const COLLECTING: PortState = PortState(0x10);
    /// Frames are transmitted.
    pub const DISTRIBUTING: PortState = PortState(0x20);
    /// Default partner information is in use: no LACPDU has been received.
    pub const DEFAULTED: PortState = PortState(0x40);
    /// No LACPDU has been received within the timeout.
    pub const EXPIRED: PortState = PortState(0x80);

    /// Returns whether all of these bits are set.
    pub const fn has(self, bits: PortState) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the state with these bits set or cleared.
    #[must_use]
    pub const fn with(self, bits: PortState, set: bool) -> PortState {
        PortState(if set { self.0 | bits.0 } else { self.0 & !bits.0 })
    }
}

impl core::fmt::Debug for PortState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#010b}", self.0)
    }
}

/// LACP information about one end of a link.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PortInfo {
    /// The system that the port belongs to.
    pub system: SystemId,
    /// The key: ports of one system with the same key may form an aggregate.
    pub key: u16,
    /// The priority of the port; the lower one is preferred.
    pub port_priority: u16,
    /// The number of the port, unique within its system.
    pub port: u16,
    /// The state of the port.
    pub state: PortState,
}

impl PortInfo {
    /// Returns whether both identify the same port of the same aggregate, regardless of its state.
    pub fn is_same_port(&self, other: &PortInfo) -> bool {
        let of = |info: &PortInfo| (info.system, info.key, info.port_priority, info.port);
        of(self) == of(other)
    }
}

/// System and key of a port's partner.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Partner {
    /// The system.
    pub system: SystemId,
    /// The key.
    pub key: u16,
}

impl Partner {
    /// Returns the partner of a port, or `None` if the port cannot be aggregated.
    pub fn of(info: &PortInfo) -> Option<Partner> {
        let aggregates = info.state.has(PortState::AGGREGATION);
        aggregates.then_some(Partner { system: info.system, key: info.key })
    }
}

impl core::fmt::Display for Partner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let SystemId { priority, mac } = self.system;
        write!(f, "{priority},{mac} key {}", self.key)
    }
}

/// State of a bond port.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// The port has no carrier or is not a host port.
    #[default]
    Down,
    /// No LACPDU has been received yet, or within the timeout.
    Expired,
    /// No LACPDUs are received: the port works like one without LACP.
    Individual,
    /// The partner is known; no frames pass.
    Detached,
    /// The port is selected; its partner is not ready.
    Attached,
    /// Received frames are accepted.
    Collecting,
    /// Frames pass in both directions.
    Distributing,
}

impl MemberState {
    /// Returns the name in telemetry.
    pub const fn name(self) -> &'static str {
        match self {
            MemberState::Down => "down",
            MemberState::Expired => "expired",
            MemberState::Individual => "individual",
            MemberState::Detached => "detached",
            MemberState::Attached => "attached",
            MemberState::Collecting => "collecting",
            MemberState::Distributing => "distributing",
        }
    }
}

/// A LACPDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lacpdu {
    /// Information about the sender's end.
    pub actor: PortInfo,
    /// The sender's information about the other end.
    pub partner: PortInfo,
    /// The maximum delay from reception of a frame to its delivery, in units of 10 us.
    pub collector_max_delay: u16,
}

/// Errors in parsing a LACPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LacpError {
    /// Shorter than a LACPDU.
    #[error("{0} bytes, where at least {FRAME_BYTES} were expected")]
    Short(usize),
    /// The frame has another destination or EtherType, or has a tag.
    #[error("no frame of a slow protocol")]
    NotSlow,
    /// The frame belongs to another slow protocol: the marker protocol or OAM.
    #[error("subtype {0}, where {SUBTYPE} was expected")]
    Subtype(u8),
    /// Version 0, which is undefined.
    #[error("version 0, where at least 1 was expected")]
    Version,
    /// The source is a group address.
    #[error("sent by {0}, which is a group")]
    Source(MacAddr),
    /// A TLV has the wrong type or length for its position.
    #[error("TLV of type {0} and length {1} at byte {2}")]
    Tlv(u8, u8, usize),
}

/// Returns whether an Ethernet frame has the destination and the EtherType of slow protocols. Its
/// content may be invalid.
pub fn is_slow(frame: &[u8]) -> bool {
    MacAddr::destination_of(frame) == Some(DESTINATION)
        && frame.get(ETHERNET_ADDRESSES..ETHERNET_BYTES) == Some(&ETHERTYPE.to_be_bytes())
}

/// View of a frame with a LACPDU.
#[derive(Clone, Copy, Debug)]
pub struct LacpView<'a>(&'a [u8]);

impl<'a> LacpView<'a> {
    /// Checks that a frame is a LACPDU.
    ///
    /// # Errors
    /// A frame of another protocol, one that is too short, or one with other TLVs.
    pub fn parse(frame: &'a [u8]) -> Result<LacpView<'a>, LacpError> {
        if !is_slow(frame) {
            return Err(LacpError::NotSlow);
        }
        if frame.len() < FRAME_BYTES {
            return Err(LacpError::Short(frame.len()));
        }
        if frame[ETHERNET_BYTES] != SUBTYPE {
            return Err(LacpError::Subtype(frame[ETHERNET_BYTES]));
        }
        if frame[ETHERNET_BYTES + 1] == 0 {
            return Err(LacpError::Version);
        }
        let source = MacAddr::source_of(frame).unwrap_or_default();
        if !source.is_unicast() {
            return Err(LacpError::Source(source));
        }
        for (at, expected) in [(ACTOR_AT, ACTOR), (PARTNER_AT, PARTNER), (COLLECTOR_AT, COLLECTOR)]
        {
            let found = [frame[at], frame[at + 1]];
            if found != expected {
                return Err(LacpError::Tlv(found[0], found[1], at));
            }
        }
        Ok(LacpView(frame))
    }

    /// Returns the MAC address of the sending port.
    #[cfg(test)]
    pub(crate) fn source(&self) -> MacAddr {
        MacAddr::source_of(self.0).unwrap_or_default()
    }

    /// Returns the information about the sender's end.
    pub(crate) fn actor(&self) -> PortInfo {
        self.info(ACTOR_AT)
    }

    /// Returns the sender's information about the other end.
    pub(crate) fn partner(&self) -> PortInfo {
        self.info(PARTNER_AT)
    }

    /// Returns the maximum delay of the collector, in units of 10 us.
    pub(crate) fn collector_max_delay(&self) -> u16 {
        self.word(COLLECTOR_AT + 2)
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    fn info(&self, at: usize) -> PortInfo {
        let mut mac = MacAddr::default();
        mac.0.copy_from_slice(&self.0[at + 4..at + 10]);
        PortInfo {
            system: SystemId { priority: self.word(at + 2), mac },
            key: self.word(at + 10),
            port_priority: self.word(at + 12),
            port: self.word(at + 14),
            state: PortState(self.0[at + 16]),
        }
    }
}

impl Lacpdu {
    /// Parses a frame.
    ///
    /// # Errors
    /// The errors of [`LacpView::parse`].
    pub fn parse(frame: &[u8]) -> Result<Lacpdu, LacpError> {
        let view = LacpView::parse(frame)?;
        Ok(Lacpdu {
            actor: view.actor(),
            partner: view.partner(),
            collector_max_delay: view.collector_max_delay(),
        })
    }

    /// Returns the frame that carries this LACPDU from the port with the address `source`.
    pub fn emit(&self, source: MacAddr) -> Vec<u8> {
        let mut frame = alloc::vec![0; FRAME_BYTES];
        self.write(source, &mut frame);
        frame
    }

    /// Writes the frame into `frame` and overwrites its first [`FRAME_BYTES`] bytes.
    ///
    /// # Panics
    /// If `frame` is shorter than [`FRAME_BYTES`].
    pub(crate) fn write(&self, source: MacAddr, frame: &mut [u8]) {
        let frame = &mut frame[..FRAME_BYTES];
        frame.fill(0);
        frame[..6].copy_from_slice(&DESTINATION.0);
        frame[6..ETHERNET_ADDRESSES].copy_from_slice(&source.0);
        frame[ETHERNET_ADDRESSES..ETHERNET_BYTES].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[ETHERNET_BYTES..ACTOR_AT].copy_from_slice(&[SUBTYPE, VERSION]);
        for (at, kind, info) in [(ACTOR_AT, ACTOR, self.actor), (PARTNER_AT, PARTNER, self.partner)]
        {
            frame[at..at + 2].copy_from_slice(&kind);
            frame[at + 2..at + 4].copy_from_slice(&info.system.priority.to_be_bytes());
            frame[at + 4..at + 10].copy_from_slice(&info.system.mac.0);
            frame[at + 10..at + 12].copy_from_slice(&info.key.to_be_bytes());
            frame[at + 12..at + 14].copy_from_slice(&info.port_priority.to_be_bytes());
            frame[at + 14..at + 16].copy_from_slice(&info.port.to_be_bytes());
            frame[at + 16] = info.state.0;
        }
        frame[COLLECTOR_AT..COLLECTOR_AT + 2].copy_from_slice(&COLLECTOR);
        let delay = self.collector_max_delay.to_be_bytes();
        frame[COLLECTOR_AT + 2..COLLECTOR_AT + 4].copy_from_slice(&delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// LACPDU of Debian's kernel 6.1: mode 802.3ad, fast.
    const LINUX: &str = "0180c2000002020000000030880901010114ffff02000000003000 0900ff00014700\
        0000 02140000000000000000000100ff000103 000000 0310000000000000000000000000 0000 0000";

    fn info() -> impl Strategy<Value = PortInfo> {
        (any::<[u16; 4]>(), any::<[u8; 6]>(), any::<u8>()).prop_map(|(words, mac, state)| {
            let [priority, key, port_priority, port] = words;
            let system = SystemId { priority, mac: MacAddr(mac) };
            PortInfo { system, key, port_priority, port, state: PortState(state) }
        })
    }

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|two| pair(two).unwrap()).collect()
    }

    #[test]
    fn a_frame_of_linux_is_read() {
        let mut frame = bytes(LINUX);
        frame.resize(FRAME_BYTES, 0);
        let pdu = Lacpdu::parse(&frame).unwrap();
        let system = SystemId { priority: 0xffff, mac: MacAddr([2, 0, 0, 0, 0, 0x30]) };
        let state = PortState(0x47);
        let actor = PortInfo { system, key: 9, port_priority: 255, port: 1, state };
        assert_eq!(pdu.actor, actor);
        assert!(actor.state.has(PortState::DEFAULTED) && !actor.state.has(PortState::EXPIRED));
        assert_eq!((pdu.partner.key, pdu.partner.state), (1, PortState(3)));
    }

    #[test]
    fn what_is_no_lacpdu_is_refused_and_says_why() {
        let good = Lacpdu::default().emit(MacAddr([2; 6]));
        assert_eq!(Lacpdu::parse(&good), Ok(Lacpdu::default()));
        let wrong = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            Lacpdu::parse(&frame)
        };
        assert_eq!(wrong(5, 3), Err(LacpError::NotSlow));
        assert_eq!(wrong(13, 0xcc), Err(LacpError::NotSlow));
        assert_eq!(wrong(14, 2), Err(LacpError::Subtype(2)), "a marker");
        assert_eq!(wrong(15, 0), Err(LacpError::Version));
        assert_eq!(wrong(15, 2), Ok(Lacpdu::default()), "a later version");
        assert_eq!(wrong(6, 3), Err(LacpError::Source(MacAddr([3, 2, 2, 2, 2, 2]))));
        assert_eq!(wrong(17, 19), Err(LacpError::Tlv(1, 19, 16)));
        assert_eq!(Lacpdu::parse(&good[..123]), Err(LacpError::Short(123)));
        assert_eq!(Lacpdu::parse(&[]), Err(LacpError::NotSlow));
    }

    proptest! {
        #[test]
        fn a_lacpdu_survives_its_bytes_whatever_was_in_the_buffer(
            (actor, partner) in (info(), info()),
            collector_max_delay in any::<u16>(),
            dirt in any::<u8>(),
        ) {
            let pdu = Lacpdu { actor, partner, collector_max_delay };
            let mut frame = [dirt; FRAME_BYTES + 8];
            pdu.write(MacAddr([2; 6]), &mut frame);
            prop_assert_eq!(&frame[..FRAME_BYTES], &pdu.emit(MacAddr([2; 6]))[..]);
            prop_assert_eq!(Lacpdu::parse(&frame), Ok(pdu));
            prop_assert_eq!(LacpView::parse(&frame).unwrap().source(), MacAddr([2; 6]));
        }

        #[test]
        fn no_bytes_make_it_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Lacpdu::parse(&frame);
            let mut slow = Lacpdu::default().emit(MacAddr([2; 6]));
            let end = slow.len().min(14 + frame.len());
            slow[14..end].copy_from_slice(&frame[..end - 14]);
            let _ = Lacpdu::parse(&slow);
        }
    }
}
