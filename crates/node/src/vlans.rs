//! VLANs of a host port, and classification of its frames (IEEE 802.1Q clause 6.9.1).

use alloc::vec::Vec;
use axon_wire::cn::CnTag;
use axon_wire::constants::length::{ETHERNET_ADDRESSES, TAG};
use axon_wire::vlan::{TagKind, VlanId, VlanTag};
use serde::{Deserialize, Serialize};

/// The VLANs of a host port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortVlans {
    /// The VLAN of frames without a tag and with a priority tag; none by default.
    pub untagged: VlanId,
    /// The VLANs whose frames are tagged, in order, each once.
    pub tagged: Vec<VlanId>,
}

impl PortVlans {
    /// Returns the VLAN of a host's frame, possibly none. `None` if the port is not in its VLAN, so
    /// that it must be dropped.
    ///
    /// A frame's only tag, or its absence, determines the VLAN. A second tag is refused, behind a
    /// CN-TAG too: once the first is removed, the second would determine the VLAN. Service tags,
    /// which are for provider bridges, are refused as well.
    #[inline]
    pub fn of_frame(&self, frame: &[u8]) -> Option<VlanId> {
        let mut rest = frame.get(ETHERNET_ADDRESSES..).unwrap_or_default();
        let tag = VlanTag::parse(rest);
        if tag.is_some() {
            rest = rest.get(TAG..).unwrap_or_default();
        }
        if CnTag::parse(rest).is_some() {
            rest = rest.get(TAG..).unwrap_or_default();
        }
        if VlanTag::parse(rest).is_some() {
            return None;
        }
        match tag {
            None => Some(self.untagged),
            Some(tag) if tag.kind == TagKind::Service => None,
            Some(tag) if tag.vid == 0 => Some(self.untagged),
            Some(tag) => VlanId::new(tag.vid).filter(|&vlan| self.is_tagged(vlan)),
        }
    }

    /// Returns whether the port is in this VLAN, none included.
    pub fn has(&self, vlan: VlanId) -> bool {
        self.untagged == vlan || self.is_tagged(vlan)
    }

    /// Returns whether frames of this VLAN are tagged at the port.
    #[inline]
    pub fn is_tagged(&self, vlan: VlanId) -> bool {
        self.tagged.binary_search(&vlan).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Priority;

    fn vlan(number: u16) -> VlanId {
        VlanId::new(number).unwrap()
    }

    /// Returns a frame with these tags, and an invalid IPv4 header.
    fn frame(tags: &[[u8; 4]]) -> Vec<u8> {
        [&[2; 12][..], &tags.concat(), &[8, 0], &[0; 46]].concat()
    }

    const fn tag(kind: TagKind, vid: u16) -> [u8; 4] {
        VlanTag { kind, pcp: Priority::MAX, dei: true, vid }.emit()
    }

    #[test]
    fn the_tag_says_which_vlan_a_frame_is_in_and_its_absence_too() {
        let customer = |vid| tag(TagKind::Customer, vid);
        let cn_tag = [0x22, 0xe9, 0, 1];
        let access = PortVlans { untagged: vlan(10), tagged: Vec::new() };
        let trunk = PortVlans { untagged: VlanId::NONE, tagged: [vlan(10), vlan(4094)].into() };
        let cases: [(&[[u8; 4]], _, _); 12] = [
            (&[], Some(10), Some(0)),
            (&[customer(0)], Some(10), Some(0)),
            (&[cn_tag], Some(10), Some(0)),
            (&[customer(10)], None, Some(10)),
            (&[customer(10), cn_tag], None, Some(10)),
            (&[customer(4094)], None, Some(4094)),
            (&[customer(11)], None, None),
            (&[customer(4095)], None, None),
            (&[tag(TagKind::Service, 10)], None, None),
            (&[customer(0), customer(10)], None, None),
            (&[customer(10), customer(10)], None, None),
            (&[customer(0), cn_tag, customer(10)], None, None),
        ];
        for (tags, at_access, at_trunk) in cases {
            for (port, expected) in [(&access, at_access), (&trunk, at_trunk)] {
                assert_eq!(port.of_frame(&frame(tags)).map(VlanId::value), expected, "{tags:x?}");
            }
        }
        assert_eq!(access.of_frame(&frame(&[cn_tag, customer(10)])), None);
        for length in 0..18 {
            let _ = trunk.of_frame(&frame(&[customer(10)])[..length]);
        }
    }

    #[test]
    fn a_port_is_in_the_vlan_of_its_untagged_frames_and_in_those_of_tags() {
        let port = PortVlans { untagged: vlan(3), tagged: [vlan(7)].into() };
        let is_in = [0, 3, 7, 8].map(|number| port.has(vlan(number)));
        assert_eq!(is_in, [false, true, true, false]);
        assert!(port.is_tagged(vlan(7)) && !port.is_tagged(vlan(3)));
        assert!(PortVlans::default().has(VlanId::NONE));
    }
}
