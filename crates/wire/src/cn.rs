//! Congestion notification, "QCN" (IEEE 802.1Q clause 33): the CN-TAG that names a flow, and the
//! congestion notification message (CNM) that a congestion point sends to the source of the flow.
//!
//! ```text
//!  bits   16       16
//!       +--------+---------+
//!       | 0x22E9 | flow id |      CN-TAG: after the VLAN tags, before the EtherType
//!       +--------+---------+
//!
//!  bits   4         6          6            64     16        16       16         48    16  8*L
//!       +---------+----------+------------+------+---------+--------+----------+-----+---+------+
//!       | version | reserved | quantized  | CPID | QOffset | QDelta | priority | MAC | L | MSDU |
//!       |         |          | feedback   |      |         |        |          |     |   |      |
//!       +---------+----------+------------+------+---------+--------+----------+-----+---+------+
//!                                   CNM: behind EtherType 0x22E7, itself behind tag and CN-TAG
//! ```
//!
//! The priority, the MAC (destination) and the first L bytes of the MSDU (at most 64) are copied
//! from the sampled frame. Where the available sources disagree on a field, [`CnmFormat`] selects
//! the interpretation.

use crate::addr::MacAddr;
use crate::constants::ethertype;
pub use crate::constants::ethertype::{CN_TAG as ETHERTYPE_TAG, CNM as ETHERTYPE_CNM};
use crate::constants::length::ETHERNET_ADDRESSES;
pub use crate::constants::length::{CNM as CNM_BYTES, CNM_MSDU_MAX as MSDU_BYTES_MAX};
pub use crate::constants::version::CNM as VERSION;
use crate::frame::FrameBuf;
use crate::link::FRAME_BYTES_MIN;
use crate::priority::Priority;
use crate::units::Bytes;
use crate::vlan::{self, TAG_BYTES, VlanTag};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Maximum quantized feedback, a field of 6 bits.
pub const FEEDBACK_MAX: u8 = 63;
/// Default unit of QOffset and QDelta, in bytes.
const QUEUE_UNIT_BYTES: i128 = 64;

/// Interpretations of the CNM format on which sources differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnmFormat {
    /// True if the encapsulated priority is in the three highest bits of its word, as in a tag
    /// (default), or in the three lowest.
    pub priority_in_high_bits: bool,
    /// True if QOffset is set point minus queue, negative when the queue is too long (default), or
    /// queue minus set point.
    pub offset_falls_with_queue: bool,
    /// True if QOffset and QDelta count units of 64 bytes (default) or bytes.
    pub queue_in_units: bool,
    /// True if the CNM for a frame without a CN-TAG carries a CN-TAG of flow 0 (default) or none.
    pub always_tagged: bool,
    /// True if the MSDU begins with the EtherType behind all tags (default) or after it.
    pub msdu_has_ethertype: bool,
    /// True if the source address of the CNM is that of the congestion point (default) or the
    /// destination of the sampled frame.
    pub source_is_point: bool,
    /// True if the CNM copies the VLAN tag of the sampled frame, priority included, or has its VLAN
    /// with the priority of CNMs (default).
    pub copies_tag: bool,
    /// True if a CNM with a version or reserved bits other than zero, without feedback or without
    /// CPID is refused, or version and reserved bits are ignored (default).
    pub strict: bool,
}

impl Default for CnmFormat {
    fn default() -> CnmFormat {
        CnmFormat::DEFAULT
    }
}

impl CnmFormat {
    /// The interpretation shared by most sources.
    pub(crate) const DEFAULT: CnmFormat = CnmFormat {
        priority_in_high_bits: true,
        offset_falls_with_queue: true,
        queue_in_units: true,
        always_tagged: true,
        msdu_has_ethertype: true,
        source_is_point: true,
        copies_tag: false,
        strict: false,
    };

    /// Returns QOffset, as sent on the wire, for a queue of `queue` and the set point. Saturates.
    pub fn offset(&self, set_point: Bytes, queue: Bytes) -> i16 {
        let (a, b) =
            if self.offset_falls_with_queue { (set_point, queue) } else { (queue, set_point) };
        self.difference(a, b)
    }

    /// Returns QDelta, as sent on the wire, for a queue of `queue` that was `before` at the last
    /// sample. It is positive when the queue grows, and saturates.
    pub fn delta(&self, queue: Bytes, before: Bytes) -> i16 {
        self.difference(queue, before)
    }

    fn difference(&self, a: Bytes, b: Bytes) -> i16 {
        let bytes = i128::from(a.0) - i128::from(b.0);
        let value = if self.queue_in_units { bytes / QUEUE_UNIT_BYTES } else { bytes };
        value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }
}

/// CN-TAG, which identifies the flow of a frame to the frame's source. Bridges do not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CnTag {
    /// The flow ID, assigned by the reaction point; 0 for none.
    pub flow: u16,
}

impl CnTag {
    /// Parses the CN-TAG at the start of `bytes`. Returns `None` if there is none.
    pub fn parse(bytes: &[u8]) -> Option<CnTag> {
        let &[t, p, high, low] = bytes.first_chunk()?;
        (u16::from_be_bytes([t, p]) == ETHERTYPE_TAG)
            .then(|| CnTag { flow: u16::from_be_bytes([high, low]) })
    }

    /// Returns the bytes of the CN-TAG.
    pub const fn emit(self) -> [u8; TAG_BYTES] {
        let ([t, p], [high, low]) = (ETHERTYPE_TAG.to_be_bytes(), self.flow.to_be_bytes());
        [t, p, high, low]
    }
}

/// Returns the bytes of a customer or service tag and of a CN-TAG right behind the addresses of an
/// Ethernet frame, which come on top of the longest frame without tags (IEEE 802.3 clause 3.2.7).
pub fn tag_bytes(frame: &[u8]) -> usize {
    const TAGS: [[u8; 2]; 2] =
        [ethertype::CUSTOMER_TAG.to_be_bytes(), ethertype::SERVICE_TAG.to_be_bytes()];
    let mut rest = frame.get(ETHERNET_ADDRESSES..).unwrap_or_default();
    let all = rest.len();
    if TAGS.iter().any(|tag| rest.starts_with(tag)) {
        rest = rest.get(TAG_BYTES..).unwrap_or_default();
    }
    if CnTag::parse(rest).is_some() {
        rest = &rest[TAG_BYTES..];
    }
    all - rest.len()
}

/// Returns whether an Ethernet frame has the EtherType of a CNM behind any number of tags of any
/// kind, because outer tags may be removed in transit. The CNM may be invalid.
pub fn is_cnm(frame: &[u8]) -> bool {
    let Some((_, at)) = vlan::ethertype_of(frame) else { return false };
    let mut rest = &frame[at..];
    while CnTag::parse(rest).is_some() || VlanTag::parse(rest).is_some() {
        rest = &rest[TAG_BYTES..];
    }
    rest.starts_with(&ETHERTYPE_CNM.to_be_bytes())
}

/// Removes the CN-TAG from an Ethernet frame and pads the frame to the Ethernet minimum if there is
/// room. A frame without a CN-TAG is left unchanged. Returns whether there was one.
pub fn untag(frame: &mut FrameBuf) -> bool {
    let bytes = frame.bytes_mut();
    let Some((ETHERTYPE_TAG, at)) = vlan::ethertype_of(bytes) else {
        return false;
    };
    if CnTag::parse(&bytes[at..]).is_none() {
        return false;
    }
    bytes.copy_within(..at, TAG_BYTES);
    frame.pop_front(TAG_BYTES);
    let missing = FRAME_BYTES_MIN.saturating_sub(frame.bytes().len()).min(TAG_BYTES);
    // Without tailroom, the frame stays one tag shorter, and the MAC of the port pads it.
    let _ = frame.push_back(&[0; TAG_BYTES][..missing]);
    true
}

/// The parts of a frame that congestion notification reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged<'a> {
    /// The destination.
    pub destination: MacAddr,
    /// The source, to which a CNM is sent.
    pub source: MacAddr,
    /// The outer VLAN tag.
    pub vlan: Option<VlanTag>,
    /// The CN-TAG.
    pub cn: Option<CnTag>,
    /// The MSDU: the EtherType behind all tags and the bytes after it.
    pub msdu: &'a [u8],
}

impl<'a> Tagged<'a> {
    /// Parses the tags of an Ethernet frame. Returns `None` if the frame is too short.
    pub fn parse(frame: &'a [u8]) -> Option<Tagged<'a>> {
        let (destination, source) = vlan::addresses_of(frame)?;
        let (_, at) = vlan::ethertype_of(frame)?;
        let cn = CnTag::parse(&frame[at..]);
        let msdu = &frame[at + if cn.is_some() { TAG_BYTES } else { 0 }..];
        msdu.first_chunk::<2>()?;
        Some(Tagged { destination, source, vlan: VlanTag::of_frame(frame), cn, msdu })
    }
}

/// The content of a congestion notification message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cnm {
    /// Quantized feedback, 0 to 63. Emission takes the low six bits.
    pub feedback: u8,
    /// The identifier of the congestion point, unique in the domain; 0 is invalid.
    pub cpid: u64,
    /// Difference between set point and queue, see [`CnmFormat::offset`].
    pub offset: i16,
    /// Change in queue length, see [`CnmFormat::delta`].
    pub delta: i16,
    /// The priority of the sampled frame.
    pub priority: Priority,
    /// The destination of the sampled frame.
    pub destination: MacAddr,
    /// The first bytes of the MSDU. Emission writes at most [`MSDU_BYTES_MAX`] of them.
    pub msdu: Vec<u8>,
}

/// Errors in parsing a CNM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CnmError {
    /// The frame does not have EtherType 0x22E7 behind its tags.
    #[error("not a frame of EtherType {ETHERTYPE_CNM:#06x}")]
    EtherType,
    /// The PDU is shorter than its fixed part, or than its length field states.
    #[error("truncated: the CNM is shorter than it says")]
    Truncated,
    /// The CNM contains more of the sampled frame than it may carry.
    #[error("{0} bytes of MSDU, where at most {MSDU_BYTES_MAX} were expected")]
    Msdu(u16),
    /// Strict only: an undefined version.
    #[error("version {0}, where {VERSION} was expected")]
    Version(u8),
    /// Strict only: reserved bits that are not zero.
    #[error("reserved bits {0:#04x} are set")]
    Reserved(u8),
    /// Strict only: feedback 0.
    #[error("no feedback")]
    Feedback,
    /// Strict only: CPID 0.
    #[error("no congestion point")]
    Cpid,
}

impl Cnm {
    /// Parses the PDU of a CNM, which begins after the EtherType and may be followed by padding.
    ///
    /// # Errors
    /// Truncation, too much MSDU, and, with `format.strict`, fields that a sender must not set.
    pub fn parse(pdu: &[u8], format: &CnmFormat) -> Result<Cnm, CnmError> {
        let head: &[u8; CNM_BYTES] = pdu.first_chunk().ok_or(CnmError::Truncated)?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let length = word(22);
        if usize::from(length) > MSDU_BYTES_MAX {
            return Err(CnmError::Msdu(length));
        }
        let msdu = pdu[CNM_BYTES..].get(..usize::from(length)).ok_or(CnmError::Truncated)?.to_vec();
        let (mut cpid, mut destination) = ([0; 8], [0; 6]);
        cpid.copy_from_slice(&head[2..10]);
        destination.copy_from_slice(&head[16..22]);
        let shift = if format.priority_in_high_bits { 13 } else { 0 };
        let cnm = Cnm {
            feedback: head[1] & FEEDBACK_MAX,
            cpid: u64::from_be_bytes(cpid),
            offset: word(10) as i16,
            delta: word(12) as i16,
            priority: Priority::from_low_bits((word(14) >> shift) as u8),
            destination: MacAddr(destination),
            msdu,
        };
        if format.strict {
            cnm.check(word(0))?;
        }
        Ok(cnm)
    }

    /// Checks the fields that only a strict receiver refuses. `first` holds the version and the
    /// reserved bits.
    fn check(&self, first: u16) -> Result<(), CnmError> {
        match ((first >> 12) as u8, (first >> 6 & 0x3f) as u8) {
            (VERSION, 0) if self.feedback == 0 => Err(CnmError::Feedback),
            (VERSION, 0) if self.cpid == 0 => Err(CnmError::Cpid),
            (VERSION, 0) => Ok(()),
            (VERSION, reserved) => Err(CnmError::Reserved(reserved)),
            (version, _) => Err(CnmError::Version(version)),
        }
    }

    /// Appends the PDU, 24 to 88 bytes, to `out`.
    pub fn emit(&self, out: &mut Vec<u8>, format: &CnmFormat) {
        let msdu = &self.msdu[..self.msdu.len().min(MSDU_BYTES_MAX)];
        let shift = if format.priority_in_high_bits { 13 } else { 0 };
        let first = u16::from(VERSION) << 12 | u16::from(self.feedback & FEEDBACK_MAX);
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&self.cpid.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.delta.to_be_bytes());
        out.extend_from_slice(&(u16::from(self.priority.value()) << shift).to_be_bytes());
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&(msdu.len() as u16).to_be_bytes());
        out.extend_from_slice(msdu);
    }
}

/// A CNM with the headers of its frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CnmFrame {
    /// The source of the sampled frame.
    pub destination: MacAddr,
    /// The switch of the congestion point; see [`CnmFormat::source_is_point`].
    pub source: MacAddr,
    /// The VLAN of the sampled frame and the priority of CNMs; none if that frame had no tag
    /// and CNMs have priority 0. See [`CnmFormat::copies_tag`].
    pub vlan: Option<VlanTag>,
    /// The flow of the sampled frame.
    pub cn: Option<CnTag>,
    /// The content of the message.
    pub cnm: Cnm,
}

impl CnmFrame {
    /// Builds the CNM that the congestion point at `source` sends for the frame `sampled`. The CNM
    /// is sent to the source of that frame, in the frame's VLAN, and contains its CN-TAG and at
    /// most `msdu_bytes_max` bytes of its MSDU. `priority` is the priority of CNMs (6 is
    /// recommended).
    ///
    /// `cnm` supplies feedback, CPID, offset and delta. The other fields are filled in here.
    pub fn answer(
        sampled: &Tagged<'_>,
        source: MacAddr,
        priority: Priority,
        cnm: Cnm,
        msdu_bytes_max: usize,
        format: &CnmFormat,
    ) -> CnmFrame {
        let outer = sampled.vlan.unwrap_or_default();
        let ours = VlanTag { pcp: priority, dei: false, ..outer };
        let needed = sampled.vlan.is_some() || priority != Priority::ZERO;
        let vlan = if format.copies_tag { sampled.vlan } else { needed.then_some(ours) };
        let msdu = if format.msdu_has_ethertype { sampled.msdu } else { &sampled.msdu[2..] };
        let length = msdu.len().min(msdu_bytes_max).min(MSDU_BYTES_MAX);
        CnmFrame {
            destination: sampled.source,
            source: if format.source_is_point { source } else { sampled.destination },
            vlan,
            cn: sampled.cn.or(format.always_tagged.then_some(CnTag { flow: 0 })),
            cnm: Cnm {
                priority: outer.pcp,
                destination: sampled.destination,
                msdu: msdu[..length].to_vec(),
                ..cnm
            },
        }
    }

    /// Parses a CNM frame. If it has two VLAN tags, the outer one is kept.
    ///
    /// # Errors
    /// Another EtherType behind the tags, or a PDU that [`Cnm::parse`] refuses.
    pub fn parse(frame: &[u8], format: &CnmFormat) -> Result<CnmFrame, CnmError> {
        let Tagged { destination, source, vlan, cn, msdu } =
            Tagged::parse(frame).ok_or(CnmError::EtherType)?;
        let pdu = msdu.strip_prefix(&ETHERTYPE_CNM.to_be_bytes()).ok_or(CnmError::EtherType)?;
        Ok(CnmFrame { destination, source, vlan, cn, cnm: Cnm::parse(pdu, format)? })
    }

    /// Returns the frame, padded to the Ethernet minimum.
    pub fn emit(&self, format: &CnmFormat) -> Vec<u8> {
        let mut frame = Vec::with_capacity(22 + CNM_BYTES + self.cnm.msdu.len());
        frame.extend_from_slice(&self.destination.0);
        frame.extend_from_slice(&self.source.0);
        if let Some(vlan) = self.vlan {
            frame.extend_from_slice(&vlan.emit());
        }
        if let Some(cn) = self.cn {
            frame.extend_from_slice(&cn.emit());
        }
        frame.extend_from_slice(&ETHERTYPE_CNM.to_be_bytes());
        self.cnm.emit(&mut frame, format);
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameBuf;
    use alloc::vec;
    use proptest::prelude::*;

    const FORMAT: CnmFormat = CnmFormat::DEFAULT;
    const STRICT: CnmFormat = CnmFormat { strict: true, ..FORMAT };
    const POINT: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);
    /// Feedback 63, offset -100, delta 20, priority 3, to 02:00:00:00:00:09, no MSDU.
    const PDU: [u8; CNM_BYTES] = [
        0x00, 0x3f, 2, 0, 0, 0, 0, 2, 0, 1, 0xff, 0x9c, 0x00, 0x14, 0x60, 0x00, 2, 0, 0, 0, 0, 9,
        0, 0,
    ];

    fn cnm() -> Cnm {
        Cnm {
            feedback: 63,
            cpid: 0x0200_0000_0002_0001,
            offset: -100,
            delta: 20,
            priority: Priority::ALL[3],
            destination: MacAddr([2, 0, 0, 0, 0, 9]),
            msdu: vec![],
        }
    }

    /// VLAN 100, priority 3, flow 0x1234, IPv4.
    fn sampled() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
        frame.extend_from_slice(&[0x81, 0, 0x60, 0x64, 0x22, 0xe9, 0x12, 0x34, 0x08, 0, 0x45]);
        frame.resize(100, 0xee);
        frame
    }

    #[test]
    fn a_cnm_is_byte_for_byte_the_known_one() {
        let mut out = vec![0xa5; 3];
        cnm().emit(&mut out, &FORMAT);
        assert_eq!(out[3..], PDU);
        assert_eq!(Cnm::parse(&PDU, &FORMAT), Ok(cnm()));
        assert_eq!(Cnm::parse(&PDU, &STRICT), Ok(cnm()));
        let low = CnmFormat { priority_in_high_bits: false, ..FORMAT };
        let mut out = vec![];
        cnm().emit(&mut out, &low);
        assert_eq!(out[14..16], [0, 3]);
        assert_eq!(Cnm::parse(&out, &low), Ok(cnm()));
    }

    #[test]
    fn the_tag_is_found_behind_the_vlan_tag() {
        let frame = sampled();
        let tagged = Tagged::parse(&frame).unwrap();
        assert_eq!(tagged.cn, Some(CnTag { flow: 0x1234 }));
        assert_eq!(tagged.vlan.unwrap().vid, 0x64);
        assert_eq!(tagged.msdu[..3], [0x08, 0, 0x45]);
        assert_eq!(CnTag { flow: 0x1234 }.emit(), [0x22, 0xe9, 0x12, 0x34]);
        for length in 0..22 {
            let whole = Tagged::parse(&frame[..length]).is_some_and(|short| short.cn.is_some());
            assert!(!whole, "{length} bytes");
        }
    }

    #[test]
    fn a_tag_comes_off_and_the_frame_stays_as_long_as_it_must_be() {
        for (length, left) in [(100, 96), (60, 60), (62, 60), (40, 40)] {
            let mut bytes = sampled();
            bytes.truncate(length);
            let mut frame = FrameBuf::new(&bytes);
            assert!(untag(&mut frame));
            assert_eq!(frame.bytes().len(), left);
            assert_eq!(frame.bytes()[..16], bytes[..16]);
            assert_eq!(frame.bytes()[16..length - 4], bytes[20..]);
            assert!(frame.bytes()[length - 4..].iter().all(|byte| *byte == 0));
            let before = frame.clone();
            assert!(!untag(&mut frame));
            assert_eq!(frame, before);
        }
        for length in 0..20 {
            let mut frame = FrameBuf::new(&sampled()[..length]);
            assert!(!untag(&mut frame), "{length}");
            assert_eq!(frame.bytes(), &sampled()[..length]);
        }
    }

    #[test]
    fn the_answer_goes_back_in_the_same_vlan_with_the_same_flow() {
        let frame = sampled();
        let tagged = Tagged::parse(&frame).unwrap();
        let six = Priority::ALL[6];
        let answer = CnmFrame::answer(&tagged, POINT, six, cnm(), 24, &FORMAT);
        assert_eq!(answer.destination, MacAddr([2, 0, 0, 0, 0, 1]));
        assert_eq!(answer.vlan.map(|tag| (tag.pcp, tag.vid)), Some((six, 0x64)));
        assert_eq!(answer.cnm.msdu, frame[20..44]);
        assert_eq!(answer.cnm.priority, Priority::ALL[3]);
        let bytes = answer.emit(&FORMAT);
        assert_eq!(bytes[12..22], [0x81, 0, 0xc0, 0x64, 0x22, 0xe9, 0x12, 0x34, 0x22, 0xe7]);
        assert_eq!(CnmFrame::parse(&bytes, &STRICT), Ok(answer));
        let bare = CnmFormat { msdu_has_ethertype: false, ..FORMAT };
        let answer = CnmFrame::answer(&tagged, POINT, six, cnm(), 9999, &bare);
        assert_eq!(answer.cnm.msdu, frame[22..86]);
    }

    #[test]
    fn a_notification_is_one_behind_whatever_tags() {
        let frame = sampled();
        let tagged = Tagged::parse(&frame).unwrap();
        let bytes = CnmFrame::answer(&tagged, POINT, Priority::ALL[6], cnm(), 64, &FORMAT);
        let bytes = bytes.emit(&FORMAT);
        assert!(is_cnm(&bytes) && !is_cnm(&frame));
        let (vlan, cn) = (&bytes[12..16], &bytes[16..20]);
        for tags in [&[][..], &[cn], &[cn, vlan], &[cn, cn], &[vlan, vlan, vlan, cn, vlan]] {
            let wrapped = [&bytes[..12], &tags.concat(), &bytes[20..]].concat();
            assert!(is_cnm(&wrapped), "{wrapped:02x?}");
            assert!(!is_cnm(&wrapped[..12 + 4 * tags.len()]), "its EtherType is cut off");
        }
    }

    #[test]
    fn by_other_interpretations_the_answer_looks_as_if_the_destination_had_sent_the_frame_back() {
        let frame = sampled();
        let tagged = Tagged::parse(&frame).unwrap();
        let copied = CnmFormat { source_is_point: false, copies_tag: true, ..FORMAT };
        let answer = CnmFrame::answer(&tagged, POINT, Priority::ALL[6], cnm(), 0, &copied);
        assert_eq!((answer.source, answer.vlan), (tagged.destination, tagged.vlan));
        let untagged = Tagged { vlan: None, ..tagged };
        let answer = CnmFrame::answer(&untagged, POINT, Priority::ALL[6], cnm(), 0, &copied);
        assert_eq!(answer.vlan, None);
    }

    #[test]
    fn a_frame_without_tags_is_answered_with_or_without_a_flow() {
        let mut frame = sampled();
        frame.drain(12..20);
        let tagged = Tagged::parse(&frame).unwrap();
        let untagged = CnmFormat { always_tagged: false, ..FORMAT };
        for (format, cn) in [(FORMAT, Some(CnTag { flow: 0 })), (untagged, None)] {
            let answer = CnmFrame::answer(&tagged, POINT, Priority::ZERO, cnm(), 0, &format);
            assert_eq!((answer.vlan, answer.cn), (None, cn));
            let bytes = answer.emit(&format);
            assert_eq!(bytes.len(), FRAME_BYTES_MIN);
            assert_eq!(CnmFrame::parse(&bytes, &format), Ok(answer));
            let urgent = CnmFrame::answer(&tagged, POINT, Priority::MAX, cnm(), 0, &format);
            assert_eq!(urgent.vlan, Some(VlanTag::of_priority(Priority::MAX)));
        }
    }

    #[test]
    fn a_malformed_cnm_is_refused_and_only_a_strict_reader_refuses_the_rest() {
        for length in 0..CNM_BYTES {
            assert_eq!(Cnm::parse(&PDU[..length], &FORMAT), Err(CnmError::Truncated));
        }
        let with = |at: usize, byte: u8| {
            let mut pdu = PDU;
            pdu[at] = byte;
            [FORMAT, STRICT].map(|format| Cnm::parse(&pdu, &format).map(|_| ()))
        };
        assert_eq!(with(23, 1), [Err(CnmError::Truncated); 2]);
        assert_eq!(with(23, 65), [Err(CnmError::Msdu(65)); 2]);
        assert_eq!(with(0, 0x10), [Ok(()), Err(CnmError::Version(1))]);
        assert_eq!(with(0, 0x08), [Ok(()), Err(CnmError::Reserved(0x20))]);
        assert_eq!(with(1, 0x7f), [Ok(()), Err(CnmError::Reserved(1))]);
        assert_eq!(with(1, 0), [Ok(()), Err(CnmError::Feedback)]);
        let nobody = Cnm { cpid: 0, ..cnm() };
        let mut pdu = vec![];
        nobody.emit(&mut pdu, &FORMAT);
        assert_eq!(Cnm::parse(&pdu, &STRICT), Err(CnmError::Cpid));
        assert_eq!(CnmFrame::parse(&sampled(), &FORMAT), Err(CnmError::EtherType));
    }

    #[test]
    fn queue_lengths_have_units_signs_and_ends() {
        let (set_point, long) = (Bytes(26_000), Bytes(32_400));
        assert_eq!(FORMAT.offset(set_point, long), -100);
        assert_eq!(FORMAT.delta(long, set_point), 100);
        let turned = CnmFormat { offset_falls_with_queue: false, ..FORMAT };
        assert_eq!(turned.offset(set_point, long), 100);
        let bytes = CnmFormat { queue_in_units: false, ..FORMAT };
        assert_eq!(bytes.delta(long, set_point), 6_400);
        assert_eq!(FORMAT.offset(Bytes(0), Bytes(u64::MAX)), i16::MIN);
        assert_eq!(FORMAT.delta(Bytes(u64::MAX), Bytes(0)), i16::MAX);
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_to_the_same(
            mut pdu in prop::collection::vec(any::<u8>(), 24..100),
        ) {
            (pdu[22], pdu[23]) = (0, pdu[23] % 65);
            if let Ok(cnm) = Cnm::parse(&pdu, &FORMAT) {
                let mut out = vec![];
                cnm.emit(&mut out, &FORMAT);
                prop_assert_eq!(Cnm::parse(&out, &FORMAT), Ok(cnm));
                prop_assert_eq!(&out[2..14], &pdu[2..14]);
            }
        }
    }
}
