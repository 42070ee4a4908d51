//! Probes (thesis 000 §3.2.2): packets that gather timestamps at their tail.
//!
//! The head follows the Axon header of a packet of type Probe, or the Ethernet header of an ether
//! probe (EtherType 0x88B6). Padding follows, up to `body bytes` from the start of the head, and
//! then the records appended by the probe units on the way, oldest first.
//!
//! ```text
//!  bytes  1         1         2            4          8
//!       +---------+---------+------------+----------+--------+---------+-----------------+
//!       | version | options | body bytes | sequence | origin | padding | records, 16 each |
//!       +---------+---------+------------+----------+--------+---------+-----------------+
//!
//!  bytes  1      1       2      4              8
//!       +------+-------+------+--------------+------------------+
//!       | unit | spare | port | queued bytes | time in 10 ps    |     one record
//!       +------+-------+------+--------------+------------------+
//! ```
//!
//! All fields are big-endian. Nothing before the tail changes on the way, because with cut-through
//! it may have left already when the tail arrives. Times are from the clock of the switch that
//! stamped them, so only two times from one switch can be compared.

use crate::addr::{MacAddr, NodeId, PortNo};
use crate::constants::address::ETHER_PROBE_FIRST_BYTE;
pub use crate::constants::ethertype::PROBE as ETHERTYPE;
use crate::constants::length::ETHERNET_ADDRESSES;
pub use crate::constants::length::PROBE_HEAD as HEAD_BYTES;
pub use crate::constants::length::PROBE_RECORD as RECORD_BYTES;
pub use crate::constants::length::PROBE_RECORDS_MAX as RECORDS_BYTES_MAX;
use crate::constants::probe::{
    OPTION_EGRESS, OPTION_INGRESS, OPTION_QUEUED, UNIT_EGRESS, UNIT_INGRESS,
};
pub use crate::constants::version::PROBE as VERSION;
use crate::frame::{FrameBuf, NoTailroom};
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use crate::units::{Bytes, Time};
use alloc::vec::Vec;
use core::ops::BitOr;
use serde::{Deserialize, Serialize};

/// Option bits of a probe: the units that append a record, and its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeOptions(pub u8);

impl ProbeOptions {
    /// The unit of each ingress port stamps the time.
    pub const INGRESS: ProbeOptions = ProbeOptions(OPTION_INGRESS);
    /// The unit of each egress port stamps the time.
    pub const EGRESS: ProbeOptions = ProbeOptions(OPTION_EGRESS);
    /// Egress records hold the bytes queued for the port.
    pub const QUEUED: ProbeOptions = ProbeOptions(OPTION_QUEUED);
    /// All options.
    pub const ALL: ProbeOptions = ProbeOptions(OPTION_INGRESS | OPTION_EGRESS | OPTION_QUEUED);

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: ProbeOptions) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for ProbeOptions {
    type Output = ProbeOptions;
    fn bitor(self, other: ProbeOptions) -> ProbeOptions {
        ProbeOptions(self.0 | other.0)
    }
}

/// Probe unit of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum ProbeUnit {
    /// The unit of the ingress port.
    Ingress = UNIT_INGRESS,
    /// The unit of the egress port.
    Egress = UNIT_EGRESS,
}

/// Record appended by one probe unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// The unit that wrote the record.
    pub unit: ProbeUnit,
    /// The port that the unit belongs to, from 0.
    pub port: PortNo,
    /// Bytes queued for that port, if requested of an egress unit; at most 4 GiB.
    #[serde(rename = "queued_bytes")]
    pub queued: Bytes,
    /// Time at which the unit saw the packet, by its switch's own clock.
    #[serde(rename = "time_ticks")]
    pub time: Time,
}

/// The head of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeHead {
    /// The requested records.
    pub options: ProbeOptions,
    /// Bytes from the head to the first record, padding included; at least [`HEAD_BYTES`].
    pub body_bytes: u16,
    /// Sequence number among the probes of its origin.
    pub sequence: u32,
    /// The node that sent the probe.
    pub origin: NodeId,
}

/// Errors in parsing a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Fewer bytes than the head, or than its body length states.
    #[error("truncated: the probe is shorter than it says")]
    Truncated,
    /// Another version of the format.
    #[error("version {0}, where {VERSION} was expected")]
    Version(u8),
    /// A body length shorter than the head.
    #[error("{0} bytes of body, where at least {HEAD_BYTES} were expected")]
    Body(u16),
    /// The bytes behind the body are not a whole number of records.
    #[error("{0} bytes of records, which are {RECORD_BYTES} bytes each")]
    Tail(usize),
    /// A record of an unknown unit.
    #[error("record of unit {0}; {UNIT_INGRESS} is ingress, {UNIT_EGRESS} is egress")]
    Unit(u8),
}

impl ProbeHead {
    /// Returns the bytes of the head and its padding.
    pub fn emit(&self) -> Vec<u8> {
        let length = usize::from(self.body_bytes).max(HEAD_BYTES);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&[VERSION, self.options.0]);
        bytes.extend_from_slice(&(length as u16).to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.origin.0.to_be_bytes());
        bytes.resize(length, 0);
        bytes
    }

    /// Returns the Ethernet frame of an ether probe with this head, between ports of one switch.
    pub fn emit_ether(&self, destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
        frame.extend_from_slice(&destination.0);
        frame.extend_from_slice(&source.0);
        frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
        frame.extend_from_slice(&self.emit());
        frame
    }
}

impl ProbeRecord {
    fn parse(bytes: &[u8; RECORD_BYTES]) -> Result<ProbeRecord, ProbeError> {
        let [unit, _, p, o, q, u, e, y, time @ ..] = *bytes;
        let unit = match unit {
            UNIT_INGRESS => ProbeUnit::Ingress,
            UNIT_EGRESS => ProbeUnit::Egress,
            other => return Err(ProbeError::Unit(other)),
        };
        Ok(ProbeRecord {
            unit,
            port: PortNo(u16::from_be_bytes([p, o])),
            queued: Bytes(u64::from(u32::from_be_bytes([q, u, e, y]))),
            time: Time::from_ticks(u64::from_be_bytes(time)),
        })
    }

    /// Returns the bytes of the record.
    pub fn emit(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.unit as u8;
        bytes[2..4].copy_from_slice(&self.port.0.to_be_bytes());
        let queued = u32::try_from(self.queued.0).unwrap_or(u32::MAX);
        bytes[4..8].copy_from_slice(&queued.to_be_bytes());
        bytes[8..].copy_from_slice(&self.time.ticks().to_be_bytes());
        bytes
    }
}

/// A checked probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeView<'a> {
    head: ProbeHead,
    records: &'a [u8],
}

impl<'a> ProbeView<'a> {
    /// Checks the probe that begins at the start of `bytes` and ends where they end.
    ///
    /// # Errors
    /// Truncation, another version, or a tail that is not made of records.
    pub fn parse(bytes: &'a [u8]) -> Result<ProbeView<'a>, ProbeError> {
        let head: &[u8; HEAD_BYTES] = bytes.first_chunk().ok_or(ProbeError::Truncated)?;
        let [version, options, b, c, d, e, f, g, origin @ ..] = *head;
        if version != VERSION {
            return Err(ProbeError::Version(version));
        }
        let body_bytes = u16::from_be_bytes([b, c]);
        if usize::from(body_bytes) < HEAD_BYTES {
            return Err(ProbeError::Body(body_bytes));
        }
        let records = bytes.get(usize::from(body_bytes)..).ok_or(ProbeError::Truncated)?;
        let (whole, rest) = records.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(ProbeError::Tail(records.len()));
        }
        for record in whole {
            ProbeRecord::parse(record)?;
        }
        let head = ProbeHead {
            options: ProbeOptions(options),
            body_bytes,
            sequence: u32::from_be_bytes([d, e, f, g]),
            origin: NodeId(u64::from_be_bytes(origin)),
        };
        Ok(ProbeView { head, records })
    }

    /// Returns the head.
    pub const fn head(&self) -> ProbeHead {
        self.head
    }

    /// Iterates over the records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = ProbeRecord> + 'a {
        let (records, _) = self.records.as_chunks::<RECORD_BYTES>();
        records.iter().filter_map(|record| ProbeRecord::parse(record).ok())
    }
}

/// Returns the option bits of the probe whose head begins at byte `at` of a frame. No bits are set
/// if there is no head of this version. Only the head is read, because later bytes may not have
/// arrived yet.
pub fn options_at(frame: &[u8], at: usize) -> ProbeOptions {
    match frame.get(at..).and_then(<[u8]>::first_chunk::<HEAD_BYTES>) {
        Some([VERSION, options, ..]) => ProbeOptions(*options),
        _ => ProbeOptions::default(),
    }
}

/// Appends a record to the frame of a probe.
///
/// # Errors
/// The frame has no room at its end.
pub fn append(frame: &mut FrameBuf, record: &ProbeRecord) -> Result<(), NoTailroom> {
    frame.push_back(&record.emit())
}

/// Returns whether an Ethernet frame is an ether probe.
pub fn is_ether(frame: &[u8]) -> bool {
    frame.get(ETHERNET_ADDRESSES..ETHERNET_BYTES) == Some(&ETHERTYPE.to_be_bytes())
}

/// Returns the address that a port has as an end of ether probes. It is locally administered (IEEE
/// 802 clause 8.2.2) and made from the last three bytes of the switch's MAC and the port number.
pub const fn ether_address(switch: MacAddr, port: PortNo) -> MacAddr {
    let [_, _, _, a, b, c] = switch.0;
    let [high, low] = port.0.to_be_bytes();
    MacAddr([ETHER_PROBE_FIRST_BYTE, a, b, c, high, low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameBuf;
    use alloc::vec;

    fn head(body_bytes: u16) -> ProbeHead {
        ProbeHead {
            options: ProbeOptions::INGRESS | ProbeOptions::EGRESS,
            body_bytes,
            sequence: 0x0102_0304,
            origin: NodeId(7),
        }
    }

    fn record(unit: ProbeUnit, port: u16, ticks: u64) -> ProbeRecord {
        ProbeRecord { unit, port: PortNo(port), queued: Bytes(9), time: Time::from_ticks(ticks) }
    }

    #[test]
    fn records_gather_at_the_tail_and_the_head_stays() {
        for body_bytes in [16, 17, 300] {
            let mut frame = FrameBuf::new(&head(body_bytes).emit());
            let records =
                [record(ProbeUnit::Egress, 3, 5), record(ProbeUnit::Ingress, 9, u64::MAX)];
            for (count, record) in records.iter().enumerate() {
                append(&mut frame, record).unwrap();
                let view = ProbeView::parse(frame.bytes()).unwrap();
                assert_eq!(view.head(), head(body_bytes));
                assert!(view.records().eq(records[..=count].iter().copied()));
            }
        }
    }

    #[test]
    fn what_is_no_probe_is_refused() {
        let good = head(20).emit();
        let parse = |bytes: &[u8]| ProbeView::parse(bytes).map(|_| ());
        assert_eq!(parse(&good), Ok(()));
        for length in 0..20 {
            assert_eq!(parse(&good[..length]), Err(ProbeError::Truncated));
        }
        let with = |at: usize, byte: u8, tail: &[u8]| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes.extend_from_slice(tail);
            parse(&bytes)
        };
        assert_eq!(with(0, 2, &[]), Err(ProbeError::Version(2)));
        assert_eq!(with(3, 15, &[]), Err(ProbeError::Body(15)));
        assert_eq!(with(1, 0, &[0; 15]), Err(ProbeError::Tail(15)));
        assert_eq!(with(1, 0, &[3; 16]), Err(ProbeError::Unit(3)));
        assert_eq!(with(1, 0, &[1; 16]), Ok(()), "spare bits are ignored");
    }

    #[test]
    fn options_are_read_in_place() {
        let mut frame = vec![0xee; 5];
        frame.extend_from_slice(&head(16).emit());
        assert!(options_at(&frame, 5).has(ProbeOptions::EGRESS));
        assert!(!options_at(&frame, 5).has(ProbeOptions::QUEUED));
        assert_eq!(options_at(&frame, 4), ProbeOptions::default());
        assert_eq!(options_at(&frame, 6), ProbeOptions::default());
        assert_eq!(options_at(&frame, 99), ProbeOptions::default());
    }

    #[test]
    fn ether_probes_are_distinguished_from_other_frames() {
        let [from, to] =
            [1, 2].map(|port| ether_address(MacAddr([2, 0, 0, 7, 8, 9]), PortNo(port)));
        let frame = head(16).emit_ether(to, from);
        assert!(is_ether(&frame) && !is_ether(&frame[..13]));
        assert_eq!(MacAddr::destination_of(&frame), Some(MacAddr([0x0a, 7, 8, 9, 0, 2])));
        assert!(ProbeView::parse(&frame[ETHERNET_BYTES..]).is_ok());
    }
}
