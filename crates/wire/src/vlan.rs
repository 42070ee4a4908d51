//! The VLAN tag (IEEE 802.1Q clause 9.6) and a frame's priority.
//!
//! ```text
//!  bits   16                   3     1     12
//!       +--------------------+-----+-----+-----+
//!       | 0x8100 or 0x88A8   | PCP | DEI | VID |      between the source MAC and the EtherType
//!       +--------------------+-----+-----+-----+
//! ```
//!
//! A frame without a tag has priority 0.

use crate::addr::MacAddr;
use crate::constants::ethertype::{CUSTOMER_TAG, SERVICE_TAG};
use crate::constants::length::ETHERNET_ADDRESSES as AFTER_ADDRESSES;
pub use crate::constants::length::TAG as TAG_BYTES;
use crate::frame::{FrameBuf, NoHeadroom};
use crate::priority::Priority;
use serde::{Deserialize, Serialize};

/// Maximum number of tags parsed: one service and one customer tag.
pub(crate) const TAGS_MAX: usize = 2;

/// Kind of a tag: the tag protocol identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum TagKind {
    /// C-TAG, used by hosts and customer bridges.
    #[default]
    Customer = CUSTOMER_TAG,
    /// S-TAG, used by provider bridges.
    Service = SERVICE_TAG,
}

/// VLAN ID: 1 to 4094, or 0 for none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u16", into = "u16")]
pub struct VlanId(u16);

/// Error: a number that is not a VLAN ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}, where a VLAN of 1 to 4094 was expected")]
pub struct NoVlan(pub u16);

impl VlanId {
    /// No VLAN: untagged and priority-tagged frames.
    pub const NONE: VlanId = VlanId(0);
    /// The highest VLAN ID (IEEE 802.1Q table 9-2): 4095 is reserved.
    pub const MAX: VlanId = VlanId(4094);

    /// Returns VLAN `value`, where 0 is no VLAN, or `None` if `value` is above 4094.
    pub const fn new(value: u16) -> Option<VlanId> {
        if value <= VlanId::MAX.0 { Some(VlanId(value)) } else { None }
    }

    /// Returns the number, 0 to 4094.
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Returns whether this is no VLAN.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns whether this is no VLAN; by reference, for serde.
    pub const fn is_none_ref(&self) -> bool {
        self.0 == 0
    }
}

impl TryFrom<u16> for VlanId {
    type Error = NoVlan;
    fn try_from(value: u16) -> Result<VlanId, NoVlan> {
        VlanId::new(value).ok_or(NoVlan(value))
    }
}

impl From<VlanId> for u16 {
    fn from(vlan: VlanId) -> u16 {
        vlan.0
    }
}

impl core::fmt::Display for VlanId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// One VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// The kind of the tag.
    pub kind: TagKind,
    /// The priority code point, which is the frame's priority.
    pub pcp: Priority,
    /// Drop eligible: true if the frame may be dropped first when there is no room.
    pub dei: bool,
    /// The VLAN ID, 0 to 4095. A tag with 0 has only a priority, and 4095 is reserved. The four
    /// bits above are not sent.
    pub vid: u16,
}

impl VlanTag {
    /// Returns the customer tag with a priority and without a VLAN.
    pub const fn of_priority(priority: Priority) -> VlanTag {
        VlanTag { kind: TagKind::Customer, pcp: priority, dei: false, vid: 0 }
    }

    /// Parses the tag at the start of `bytes`. Returns `None` if there is none.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<VlanTag> {
        let &[t, p, high, low] = bytes.first_chunk()?;
        let kind = match u16::from_be_bytes([t, p]) {
            CUSTOMER_TAG => TagKind::Customer,
            SERVICE_TAG => TagKind::Service,
            _ => return None,
        };
        Some(VlanTag {
            kind,
            pcp: Priority::from_low_bits(high >> 5),
            dei: high >> 4 & 1 == 1,
            vid: u16::from_be_bytes([high & 0x0f, low]),
        })
    }

    /// Parses the outer tag of an Ethernet frame. Returns `None` if it has none.
    #[inline]
    pub fn of_frame(frame: &[u8]) -> Option<VlanTag> {
        VlanTag::parse(frame.get(AFTER_ADDRESSES..)?)
    }

    /// Returns the bytes of the tag on the wire.
    pub const fn emit(self) -> [u8; TAG_BYTES] {
        let [t, p] = (self.kind as u16).to_be_bytes();
        let [high, low] = self.vid.to_be_bytes();
        [t, p, self.pcp.value() << 5 | (self.dei as u8) << 4 | high & 0x0f, low]
    }
}

/// Returns the priority of an Ethernet frame if every PCP is a distinct priority: that of the outer
/// tag, or 0 without a tag.
#[inline]
pub fn priority_of(frame: &[u8]) -> Priority {
    VlanTag::of_frame(frame).map_or(Priority::ZERO, |tag| tag.pcp)
}

/// Rewrites the PCP of the outer tag of an Ethernet frame. An untagged frame is left unchanged.
pub fn set_priority(frame: &mut [u8], priority: Priority) {
    if VlanTag::of_frame(frame).is_some() {
        let octet = &mut frame[AFTER_ADDRESSES + 2];
        *octet = *octet & 0x1f | priority.value() << 5;
    }
}

/// Inserts a tag behind the source address.
///
/// # Errors
/// There is no room in front, or this is not an Ethernet frame. The frame is then unchanged.
pub fn insert(frame: &mut FrameBuf, tag: VlanTag) -> Result<(), NoHeadroom> {
    if frame.bytes().len() < AFTER_ADDRESSES {
        return Err(NoHeadroom);
    }
    frame.push_front(TAG_BYTES)?;
    let bytes = frame.bytes_mut();
    bytes.copy_within(TAG_BYTES..TAG_BYTES + AFTER_ADDRESSES, 0);
    bytes[AFTER_ADDRESSES..AFTER_ADDRESSES + TAG_BYTES].copy_from_slice(&tag.emit());
    Ok(())
}

/// Removes the outer tag of a frame if it is a priority tag without a VLAN.
pub fn remove_priority(frame: &mut FrameBuf) {
    if VlanTag::of_frame(frame.bytes()).is_some_and(|tag| tag.vid == 0) {
        frame.bytes_mut().copy_within(0..AFTER_ADDRESSES, TAG_BYTES);
        frame.pop_front(TAG_BYTES);
    }
}

/// Prepares a frame in a VLAN for a tagged or untagged port. Priority and DEI are kept: if either
/// is set, an untagged frame leaves with a priority tag instead of its VLAN tag. A frame in no VLAN
/// is unchanged.
///
/// # Errors
/// There is no room for a tag in front, or this is not an Ethernet frame. The frame is then
/// unchanged.
pub fn leave(frame: &mut FrameBuf, vlan: VlanId, tagged: bool) -> Result<(), NoHeadroom> {
    if vlan.is_none() {
        return Ok(());
    }
    let Some(tag) = VlanTag::of_frame(frame.bytes()) else {
        let tag = VlanTag { vid: vlan.value(), ..VlanTag::default() };
        return if tagged { insert(frame, tag) } else { Ok(()) };
    };
    let vid = if tagged { vlan.value() } else { 0 };
    let is_plain = tag.pcp == Priority::ZERO && !tag.dei;
    set_vid(frame.bytes_mut(), vid);
    if !tagged && is_plain {
        remove_priority(frame);
    }
    Ok(())
}

/// Rewrites the VID of the outer tag of an Ethernet frame. An untagged frame is left unchanged.
pub fn set_vid(frame: &mut [u8], vid: u16) {
    if let Some(tag) = VlanTag::of_frame(frame) {
        let tag = VlanTag { vid, ..tag }.emit();
        frame[AFTER_ADDRESSES..AFTER_ADDRESSES + TAG_BYTES].copy_from_slice(&tag);
    }
}

/// Returns the EtherType (or length) of an Ethernet frame behind at most `TAGS_MAX` tags, and its
/// byte offset. Returns `None` if the frame is too short.
pub fn ethertype_of(frame: &[u8]) -> Option<(u16, usize)> {
    let mut at = AFTER_ADDRESSES;
    for _ in 0..TAGS_MAX {
        if VlanTag::parse(frame.get(at..)?).is_none() {
            break;
        }
        at += TAG_BYTES;
    }
    let &ethertype = frame.get(at..)?.first_chunk()?;
    Some((u16::from_be_bytes(ethertype), at))
}

/// Returns the two addresses of an Ethernet frame: destination and source.
pub(crate) fn addresses_of(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    Some((MacAddr::destination_of(frame)?, MacAddr::source_of(frame)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameBuf;
    use alloc::vec;

    fn frame(tags: &[[u8; 4]], rest: &[u8]) -> alloc::vec::Vec<u8> {
        let mut frame = vec![0xee; AFTER_ADDRESSES];
        tags.iter().for_each(|tag| frame.extend_from_slice(tag));
        frame.extend_from_slice(rest);
        frame
    }

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        for tci in 0..=u16::MAX {
            for kind in [TagKind::Customer, TagKind::Service] {
                let [t, p] = (kind as u16).to_be_bytes();
                let [high, low] = tci.to_be_bytes();
                let tag = VlanTag::parse(&[t, p, high, low, 0xee]).unwrap();
                assert_eq!(tag.emit(), [t, p, high, low]);
                assert_eq!(u16::from(tag.pcp.value()), tci >> 13);
                assert_eq!((tag.dei, tag.vid), (tci & 0x1000 != 0, tci & 0xfff));
            }
        }
    }

    #[test]
    fn the_priority_is_that_of_the_outer_tag_and_zero_without_one() {
        let [inner, outer] = [(TagKind::Customer, 3), (TagKind::Service, 5)].map(|(kind, pcp)| {
            VlanTag { kind, pcp: Priority::new(pcp).unwrap(), dei: true, vid: 9 }.emit()
        });
        let ip = [0x08, 0x00, 0x45];
        for (tags, priority, at) in
            [(vec![], 0, 12), (vec![inner], 3, 16), (vec![outer, inner], 5, 20)]
        {
            let frame = frame(&tags, &ip);
            assert_eq!(priority_of(&frame).value(), priority);
            let mut changed = frame.clone();
            set_priority(&mut changed, Priority::MAX);
            let tag = VlanTag::of_frame(&frame).map(|tag| VlanTag { pcp: Priority::MAX, ..tag });
            assert_eq!(VlanTag::of_frame(&changed), tag);
            assert_eq!(tag.is_none(), changed == frame);
            assert_eq!(ethertype_of(&frame), Some((0x0800, at)));
        }
        let three = frame(&[outer, inner, inner], &ip);
        assert_eq!(ethertype_of(&three), Some((0x8100, 20)), "a third tag is not looked behind");
    }

    #[test]
    fn a_priority_tag_is_put_in_and_taken_off_and_a_vlan_stays() {
        let plain: alloc::vec::Vec<u8> = (0..60).collect();
        let mut moving = FrameBuf::new(&plain);
        let tag = VlanTag::of_priority(Priority::MAX);
        insert(&mut moving, tag).unwrap();
        assert_eq!(VlanTag::of_frame(moving.bytes()), Some(tag));
        assert_eq!((moving.bytes().len(), &moving.bytes()[16..]), (64, &plain[12..]));
        remove_priority(&mut moving);
        assert_eq!(moving.bytes(), plain);
        insert(&mut moving, VlanTag { vid: 1, ..tag }).unwrap();
        remove_priority(&mut moving);
        assert_eq!(moving.bytes().len(), 64, "a VLAN is none of a priority's business");
        assert_eq!(insert(&mut FrameBuf::with_headroom(3, &plain), tag), Err(NoHeadroom));
        assert_eq!(insert(&mut FrameBuf::new(&plain[..11]), tag), Err(NoHeadroom));
    }

    #[test]
    fn a_frame_leaves_its_vlan_in_the_form_of_its_port_and_keeps_its_priority() {
        let plain: alloc::vec::Vec<u8> = (0..60).collect();
        let vlan = VlanId::new(10).unwrap();
        let tag = |vid, pcp, dei| {
            let pcp = Priority::new(pcp).unwrap();
            Some(VlanTag { kind: TagKind::Customer, pcp, dei, vid })
        };
        let cases = [
            (None, None, tag(10, 0, false)),
            (tag(0, 0, false), None, tag(10, 0, false)),
            (tag(0, 5, false), tag(0, 5, false), tag(10, 5, false)),
            (tag(10, 0, false), None, tag(10, 0, false)),
            (tag(10, 3, true), tag(0, 3, true), tag(10, 3, true)),
        ];
        for (came, untagged, tagged) in cases {
            for (as_tagged, expected) in [(false, untagged), (true, tagged)] {
                let mut frame = FrameBuf::new(&plain);
                came.into_iter().for_each(|tag| insert(&mut frame, tag).unwrap());
                leave(&mut frame, vlan, as_tagged).unwrap();
                assert_eq!(VlanTag::of_frame(frame.bytes()), expected, "{came:?}");
                let tag_bytes = if expected.is_some() { TAG_BYTES } else { 0 };
                assert_eq!(frame.bytes()[12 + tag_bytes..], plain[12..]);
                assert_eq!(frame.bytes()[..12], plain[..12]);
            }
        }
        let mut outside = FrameBuf::new(&plain);
        insert(&mut outside, tag(7, 0, false).unwrap()).unwrap();
        let before = outside.clone();
        leave(&mut outside, VlanId::NONE, true).unwrap();
        assert_eq!(outside, before, "in no VLAN it is as it came");
        let mut no_room = FrameBuf::with_headroom(3, &plain);
        assert_eq!(leave(&mut no_room, vlan, true), Err(NoHeadroom));
    }

    #[test]
    fn a_vlan_is_a_number_of_twelve_bits_that_is_not_reserved() {
        for value in 0..=u16::MAX {
            let vlan = VlanId::new(value);
            assert_eq!(vlan.is_some(), value < 4095);
            assert_eq!(VlanId::try_from(value).ok(), vlan);
            assert!(
                vlan.is_none_or(|vlan| vlan.value() == value && vlan.is_none() == (value == 0))
            );
        }
    }

    #[test]
    fn a_frame_that_ends_early_has_no_ethertype() {
        let tag = VlanTag::of_priority(Priority::MAX).emit();
        let whole = frame(&[tag], &[0x08, 0x00]);
        assert_eq!(ethertype_of(&whole), Some((0x0800, 16)));
        for length in 0..whole.len() {
            // With 14 bytes, the frame has its whole header, but a truncated tag.
            let expected = (14..16).contains(&length).then_some((0x8100, 12));
            assert_eq!(ethertype_of(&whole[..length]), expected);
            let priority = if length < 16 { 0 } else { 7 };
            assert_eq!(priority_of(&whole[..length]).value(), priority);
        }
    }
}
