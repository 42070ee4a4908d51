//! LLDP (IEEE 802.1AB): advertisements of a port to the station at the other end.
//!
//! ```text
//!  bits   7      9        8*length
//!       +------+--------+----------+
//!       | type | length | value    |      one TLV; an LLDPDU is a row of them
//!       +------+--------+----------+
//! ```
//!
//! Chassis ID (type 1), port ID (2) and time to live (3) come first, once each and in this order.
//! Optional TLVs follow, then an end TLV (type 0, length 0) and padding. If the end TLV is missing,
//! the LLDPDU ends with the bytes, as in other implementations. Unknown types are kept unchanged.
//! Organisationally specific TLVs (type 127) begin with an OUI and a subtype.

use crate::addr::MacAddr;
pub use crate::constants::address::{NEAREST_BRIDGE, NEAREST_CUSTOMER, NEAREST_NON_TPMR};
pub use crate::constants::ethertype::LLDP as ETHERTYPE;
pub use crate::constants::length::{
    LLDP_VALUE_MAX as VALUE_BYTES_MAX, LLDPDU_MAX as LLDPDU_BYTES_MAX,
};
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use alloc::vec::Vec;

/// Bytes before the value of a TLV.
const HEAD_BYTES: usize = 2;

/// TLV types (IEEE 802.1AB table 8-1).
pub mod kind {
    /// End of the LLDPDU.
    pub(crate) const END: u8 = 0;
    /// Chassis ID.
    pub(crate) const CHASSIS_ID: u8 = 1;
    /// Port ID.
    pub(crate) const PORT_ID: u8 = 2;
    /// Time to live, in seconds.
    pub(crate) const TIME_TO_LIVE: u8 = 3;
    /// Port description, text.
    pub const PORT_DESCRIPTION: u8 = 4;
    /// System name, text.
    pub const SYSTEM_NAME: u8 = 5;
    /// System description, text.
    pub const SYSTEM_DESCRIPTION: u8 = 6;
    /// System capabilities, two bitmaps.
    pub(crate) const SYSTEM_CAPABILITIES: u8 = 7;
    /// Organisationally specific TLV.
    pub(crate) const ORGANISATION: u8 = 127;
}

/// Errors in parsing or emitting an LLDPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LldpError {
    /// The frame does not have EtherType 0x88CC and one of the three LLDP addresses.
    #[error("not a frame of EtherType {ETHERTYPE:#06x} to a nearest bridge")]
    Frame,
    /// A TLV extends beyond the end of the bytes.
    #[error("truncated: a TLV is longer than what is left")]
    Truncated,
    /// The first three TLVs are not chassis ID, port ID and time to live.
    #[error("TLV {expected} must stand where TLV {found} is")]
    Order {
        /// The type expected at this position.
        expected: u8,
        /// The type found.
        found: u8,
    },
    /// A type that is allowed only once is repeated.
    #[error("TLV {0} comes twice")]
    Repeated(u8),
    /// The value of one of the first three TLVs, or of the end, has an invalid length.
    #[error("TLV {kind} has {length} bytes")]
    Length {
        /// The type of the TLV.
        kind: u8,
        /// Bytes of the value.
        length: usize,
    },
    /// Emission only: more than 511 bytes in a TLV or 1500 in total, or a type above 127.
    #[error("the LLDPDU cannot be sent: a TLV, or all of them, are too long")]
    Unrepresentable,
}

/// View of one TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvView<'a> {
    /// The type: 0 to 127.
    pub kind: u8,
    /// The value: 0 to 511 bytes.
    pub value: &'a [u8],
}

/// Iterator over the TLVs of `bytes`, which ends after the first error. DCBX's older form (CEE)
/// packs its parts in the same way.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
}

impl<'a> Tlvs<'a> {
    /// Returns an iterator that starts at the first byte of the first TLV.
    pub(crate) const fn new(bytes: &'a [u8]) -> Tlvs<'a> {
        Tlvs { rest: bytes }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<TlvView<'a>, LldpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = core::mem::take(&mut self.rest);
        let Some((&head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Some(Err(LldpError::Truncated));
        };
        let head = u16::from_be_bytes(head);
        let Some((value, rest)) = rest.split_at_checked(usize::from(head & 0x1ff)) else {
            return Some(Err(LldpError::Truncated));
        };
        self.rest = rest;
        Some(Ok(TlvView { kind: (head >> 9) as u8, value }))
    }
}

/// One TLV, owned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tlv {
    /// The type: 0 to 127.
    pub kind: u8,
    /// The value: 0 to 511 bytes.
    pub value: Vec<u8>,
}

impl Tlv {
    /// Returns an organisationally specific TLV.
    pub fn of_organisation(oui: [u8; 3], subtype: u8, info: &[u8]) -> Tlv {
        let mut value = Vec::with_capacity(4 + info.len());
        value.extend_from_slice(&oui);
        value.push(subtype);
        value.extend_from_slice(info);
        Tlv { kind: kind::ORGANISATION, value }
    }

    /// Returns OUI, subtype and information of an organisationally specific TLV, or `None` for
    /// others.
    pub fn organisation(&self) -> Option<([u8; 3], u8, &[u8])> {
        let (&[a, b, c, subtype], info) = self.value.split_first_chunk()?;
        (self.kind == kind::ORGANISATION).then_some(([a, b, c], subtype, info))
    }

    /// Appends the TLV to `out`.
    ///
    /// # Errors
    /// `Unrepresentable` if type or value is too large. Nothing is written then.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), LldpError> {
        if self.kind > 127 || self.value.len() > VALUE_BYTES_MAX {
            return Err(LldpError::Unrepresentable);
        }
        let head = u16::from(self.kind) << 9 | self.value.len() as u16;
        out.extend_from_slice(&head.to_be_bytes());
        out.extend_from_slice(&self.value);
        Ok(())
    }
}

/// Chassis or port ID: its subtype, and 1 to 255 bytes of ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Subtype; the numbers differ between chassis and port (tables 8-2 and 8-3).
    pub subtype: u8,
    /// The ID.
    pub name: Vec<u8>,
}

impl Id {
    /// Returns a chassis ID that is a MAC address.
    pub fn chassis_of_mac(mac: MacAddr) -> Id {
        Id { subtype: 4, name: mac.0.to_vec() }
    }

    /// Returns a port ID that is the MAC address of the port.
    pub fn port_of_mac(mac: MacAddr) -> Id {
        Id { subtype: 3, name: mac.0.to_vec() }
    }

    /// Returns a port ID that is the local name of the port, 1 to 255 bytes.
    pub fn port_of_name(name: &str) -> Id {
        Id { subtype: 5, name: name.as_bytes().to_vec() }
    }

    fn parse(view: TlvView<'_>) -> Result<Id, LldpError> {
        match view.value.split_first() {
            Some((&subtype, name)) if (1..=255).contains(&name.len()) => {
                Ok(Id { subtype, name: name.to_vec() })
            }
            _ => Err(LldpError::Length { kind: view.kind, length: view.value.len() }),
        }
    }

    fn emit(&self, kind: u8, out: &mut Vec<u8>) -> Result<(), LldpError> {
        if !(1..=255).contains(&self.name.len()) {
            return Err(LldpError::Unrepresentable);
        }
        let mut value = Vec::with_capacity(1 + self.name.len());
        value.push(self.subtype);
        value.extend_from_slice(&self.name);
        Tlv { kind, value }.emit(out)
    }
}

/// The content of an LLDP frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lldpdu {
    /// The sender's chassis ID. Together with `port` it identifies the sender.
    pub chassis: Id,
    /// The sender's port ID.
    pub port: Id,
    /// Time to live in seconds, 0 to 65,535. Zero withdraws all advertised information.
    pub ttl_secs: u16,
    /// The optional TLVs, in their order, unknown ones included.
    pub optional: Vec<Tlv>,
}

impl Lldpdu {
    /// Returns a shutdown LLDPDU, which withdraws everything that the port has advertised.
    pub fn shutdown(chassis: Id, port: Id) -> Lldpdu {
        Lldpdu { chassis, port, ttl_secs: 0, optional: Vec::new() }
    }

    /// Parses the TLVs of an LLDPDU.
    ///
    /// # Errors
    /// A TLV beyond the end, one of the first three out of place, repeated or of a wrong length, an
    /// end with a value, or a repeated TLV of types 4 to 7.
    pub fn parse(bytes: &[u8]) -> Result<Lldpdu, LldpError> {
        let mut tlvs = Tlvs::new(bytes);
        let mut first = |expected| match tlvs.next() {
            Some(Ok(view)) if view.kind == expected => Ok(view),
            Some(Ok(view)) => Err(LldpError::Order { expected, found: view.kind }),
            Some(Err(error)) => Err(error),
            None => Err(LldpError::Truncated),
        };
        let chassis = Id::parse(first(kind::CHASSIS_ID)?)?;
        let port = Id::parse(first(kind::PORT_ID)?)?;
        let ttl = first(kind::TIME_TO_LIVE)?;
        let ttl_secs = match *ttl.value {
            [high, low] => u16::from_be_bytes([high, low]),
            _ => return Err(LldpError::Length { kind: ttl.kind, length: ttl.value.len() }),
        };
        let mut optional = Vec::new();
        let mut seen = 0_u8;
        for view in tlvs {
            let TlvView { kind, value } = view?;
            match kind {
                kind::END if value.is_empty() => break,
                kind::END => return Err(LldpError::Length { kind, length: value.len() }),
                kind::CHASSIS_ID..=kind::TIME_TO_LIVE => return Err(LldpError::Repeated(kind)),
                kind::PORT_DESCRIPTION..=kind::SYSTEM_CAPABILITIES => {
                    if seen >> kind & 1 == 1 {
                        return Err(LldpError::Repeated(kind));
                    }
                    seen |= 1 << kind;
                }
                _ => {}
            }
            optional.push(Tlv { kind, value: value.to_vec() });
        }
        Ok(Lldpdu { chassis, port, ttl_secs, optional })
    }

    /// Appends the LLDPDU, including its end TLV, to `out`.
    ///
    /// # Errors
    /// `Unrepresentable` if a TLV, an ID or the LLDPDU is too long. `out` is then incomplete.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), LldpError> {
        let start = out.len();
        self.chassis.emit(kind::CHASSIS_ID, out)?;
        self.port.emit(kind::PORT_ID, out)?;
        Tlv { kind: kind::TIME_TO_LIVE, value: self.ttl_secs.to_be_bytes().to_vec() }.emit(out)?;
        for tlv in &self.optional {
            tlv.emit(out)?;
        }
        Tlv { kind: kind::END, value: Vec::new() }.emit(out)?;
        if out.len() - start > LLDPDU_BYTES_MAX { Err(LldpError::Unrepresentable) } else { Ok(()) }
    }

    /// Parses an LLDP frame to any of the three LLDP addresses.
    ///
    /// # Errors
    /// Another frame, or an LLDPDU that [`Lldpdu::parse`] refuses.
    pub fn parse_frame(frame: &[u8]) -> Result<LldpFrame, LldpError> {
        let addressed = [NEAREST_BRIDGE, NEAREST_NON_TPMR, NEAREST_CUSTOMER];
        match (MacAddr::destination_of(frame), MacAddr::source_of(frame)) {
            (Some(destination), Some(source))
                if is_lldp(frame) && addressed.contains(&destination) =>
            {
                let lldpdu = Lldpdu::parse(&frame[ETHERNET_BYTES..])?;
                Ok(LldpFrame { destination, source, lldpdu })
            }
            _ => Err(LldpError::Frame),
        }
    }
}

/// An LLDPDU and the addresses of its frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LldpFrame {
    /// One of the three LLDP addresses.
    pub destination: MacAddr,
    /// The address of the sending port. DCBX compares it with that of the receiving port.
    pub source: MacAddr,
    /// The LLDPDU.
    pub lldpdu: Lldpdu,
}

impl LldpFrame {
    /// Returns the frame, padded to the Ethernet minimum.
    ///
    /// # Errors
    /// The errors of [`Lldpdu::emit`].
    pub fn emit(&self) -> Result<Vec<u8>, LldpError> {
        let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
        frame.extend_from_slice(&self.destination.0);
        frame.extend_from_slice(&self.source.0);
        frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
        self.lldpdu.emit(&mut frame)?;
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        Ok(frame)
    }
}

/// Returns whether an Ethernet frame has the EtherType of LLDP.
pub fn is_lldp(frame: &[u8]) -> bool {
    frame.get(12..ETHERNET_BYTES) == Some(&ETHERTYPE.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    /// Chassis and port 02:00:00:00:00:01 by MAC, 120 seconds.
    const HEAD: [u8; 22] = [2, 7, 4, 2, 0, 0, 0, 0, 1, 4, 7, 3, 2, 0, 0, 0, 0, 1, 6, 2, 0, 0x78];

    fn lldpdu() -> Lldpdu {
        Lldpdu {
            chassis: Id::chassis_of_mac(SOURCE),
            port: Id::port_of_mac(SOURCE),
            ttl_secs: 120,
            optional: vec![
                Tlv { kind: kind::SYSTEM_NAME, value: b"s1".to_vec() },
                Tlv { kind: 99, value: vec![1, 2, 3] },
                Tlv::of_organisation([0, 0x80, 0xc2], 11, &[0xc8, 9]),
            ],
        }
    }

    fn with(tail: &[u8]) -> Result<Lldpdu, LldpError> {
        Lldpdu::parse(&[&HEAD, tail].concat())
    }

    #[test]
    fn an_lldpdu_is_byte_for_byte_the_known_one() {
        let mut out = vec![0xa5; 5];
        Lldpdu { optional: vec![], ..lldpdu() }.emit(&mut out).unwrap();
        assert_eq!(out[5..], [&HEAD[..], &[0, 0]].concat());
        let mut out = vec![];
        let last = Lldpdu::shutdown(lldpdu().chassis, lldpdu().port);
        last.emit(&mut out).unwrap();
        assert_eq!(out[18..], [6, 2, 0, 0, 0, 0]);
        assert_eq!(Lldpdu::parse(&out), Ok(last));
    }

    #[test]
    fn unknown_tlvs_are_kept_in_their_place() {
        let frame = LldpFrame { destination: NEAREST_BRIDGE, source: SOURCE, lldpdu: lldpdu() };
        let bytes = frame.emit().unwrap();
        assert_eq!(bytes.len(), FRAME_BYTES_MIN);
        assert_eq!(Lldpdu::parse_frame(&bytes), Ok(frame));
        let tlv = &lldpdu().optional[2];
        assert_eq!(tlv.organisation(), Some(([0, 0x80, 0xc2], 11, &[0xc8, 9][..])));
        assert_eq!(lldpdu().optional[0].organisation(), None);
    }

    #[test]
    fn the_end_may_be_missing_and_behind_it_is_padding() {
        let bare = Lldpdu { optional: vec![], ..lldpdu() };
        for tail in [&[][..], &[0, 0], &[0, 0, 0xff, 0xff, 0xff]] {
            assert_eq!(with(tail), Ok(bare.clone()));
        }
        assert_eq!(with(&[0, 1, 0]), Err(LldpError::Length { kind: 0, length: 1 }));
    }

    #[test]
    fn what_stands_first_is_fixed() {
        for cut in 0..HEAD.len() {
            assert_eq!(Lldpdu::parse(&HEAD[..cut]), Err(LldpError::Truncated), "{cut} bytes");
        }
        let order = |bytes: &[u8]| Lldpdu::parse(bytes).unwrap_err();
        assert_eq!(order(&HEAD[9..]), LldpError::Order { expected: 1, found: 2 });
        let swapped = [&HEAD[..9], &HEAD[18..], &HEAD[9..18]].concat();
        assert_eq!(order(&swapped), LldpError::Order { expected: 2, found: 3 });
        let no_ttl = [&HEAD[..18], &[0, 0]].concat();
        assert_eq!(order(&no_ttl), LldpError::Order { expected: 3, found: 0 });
    }

    #[test]
    fn what_may_come_once_comes_once() {
        for (kind, repeated) in [(1, true), (2, true), (3, true), (4, false), (7, false)] {
            let once = [kind << 1, 2, 1, 1];
            let expected = Err(LldpError::Repeated(kind));
            assert_eq!(with(&once) == expected, repeated);
            assert_eq!(with(&[once, once].concat()), expected);
        }
        for kind in [8, 9, 127] {
            let once = [kind << 1, 2, 1, 1];
            assert_eq!(with(&[once, once].concat()).unwrap().optional.len(), 2);
        }
    }

    #[test]
    fn lengths_are_held_to() {
        assert_eq!(with(&[8, 3, 1, 1]), Err(LldpError::Truncated));
        assert_eq!(with(&[8]), Err(LldpError::Truncated));
        let mut bytes = HEAD;
        bytes[1] = 1;
        assert_eq!(Lldpdu::parse(&bytes), Err(LldpError::Length { kind: 1, length: 1 }));
        let ttl = [&HEAD[..18], &[6, 1, 9]].concat();
        assert_eq!(Lldpdu::parse(&ttl), Err(LldpError::Length { kind: 3, length: 1 }));
        let too_long = [
            Lldpdu { port: Id::port_of_name(""), ..lldpdu() },
            Lldpdu { chassis: Id { subtype: 7, name: vec![0; 256] }, ..lldpdu() },
            Lldpdu { optional: vec![Tlv { kind: 9, value: vec![0; 512] }], ..lldpdu() },
            Lldpdu { optional: vec![Tlv { kind: 128, value: vec![] }], ..lldpdu() },
            Lldpdu { optional: vec![Tlv { kind: 9, value: vec![0; 500] }; 3], ..lldpdu() },
        ];
        for lldpdu in too_long {
            assert_eq!(lldpdu.emit(&mut vec![]), Err(LldpError::Unrepresentable));
        }
    }

    #[test]
    fn another_frame_is_no_lldp() {
        let frame = LldpFrame { destination: NEAREST_CUSTOMER, source: SOURCE, lldpdu: lldpdu() };
        let bytes = frame.emit().unwrap();
        assert!(Lldpdu::parse_frame(&bytes).is_ok() && is_lldp(&bytes));
        for at in [5, 12, 13] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(Lldpdu::parse_frame(&other), Err(LldpError::Frame));
        }
        assert_eq!(Lldpdu::parse_frame(&bytes[..13]), Err(LldpError::Frame));
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_to_the_same(
            tail in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Ok(lldpdu) = with(&tail) {
                let mut out = vec![];
                lldpdu.emit(&mut out).unwrap();
                prop_assert_eq!(Lldpdu::parse(&out), Ok(lldpdu));
            }
        }
    }
}
