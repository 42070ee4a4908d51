//! Encoding of control messages.
//!
//! ```text
//!  bytes              0 to 2
//!       +---------+----------+
//!       | message |   VLAN   |
//!       +---------+----------+
//! ```
//!
//! The VLAN is that of the hosts which the message, or each item of a segment, is about. It is a
//! varint like other numbers, and absent for hosts in no VLAN. Messages that are not about hosts
//! have none.

use crate::message::{Item, Message};
use crate::vlan::VlanId;
use alloc::vec::Vec;

impl Message {
    /// Returns the encoded message about hosts of a VLAN, ready to be sealed. A message that is not
    /// about hosts has no VLAN.
    pub fn encode(&self, vlan: VlanId) -> Vec<u8> {
        debug_assert!(vlan.is_none() || self.is_about_hosts(), "{self:?} in VLAN {vlan}");
        let message = postcard::to_allocvec(self).expect("a message in memory always encodes");
        match vlan.is_none() {
            true => message,
            false => postcard::to_extend(&vlan, message).expect("a number always encodes"),
        }
    }

    /// Decodes a message that fills `bytes` exactly, with its VLAN.
    ///
    /// # Errors
    /// `None` for bytes that are not exactly one message, and for a VLAN of a message that is not
    /// about hosts.
    pub fn decode(bytes: &[u8]) -> Option<(VlanId, Message)> {
        let (message, rest) = postcard::take_from_bytes::<Message>(bytes).ok()?;
        if rest.is_empty() {
            return Some((VlanId::NONE, message));
        }
        let (vlan, rest) = postcard::take_from_bytes::<VlanId>(rest).ok()?;
        let is_valid = rest.is_empty() && !vlan.is_none() && message.is_about_hosts();
        is_valid.then_some((vlan, message))
    }

    /// Returns whether the message, or each item of a segment, is about hosts, which may be in a
    /// VLAN.
    fn is_about_hosts(&self) -> bool {
        match self {
            Message::ArpRequest(_) | Message::ArpTarget(_) | Message::ArpReply(_) => true,
            Message::DhcpRelay(_) | Message::HostFrame(_) | Message::Seek(_) => true,
            Message::Segment(segment) => {
                !segment.items.is_empty() && segment.items.iter().all(Item::is_about_hosts)
            }
            Message::Hello(_) | Message::HelloReply(_) | Message::HelloConfirm(_) => false,
            Message::Heartbeat(_) | Message::LinkDown(_) => false,
            Message::ControllerHello(_) | Message::ControllerHelloAck(_) => false,
        }
    }
}

impl Item {
    /// Returns whether the item is about hosts, which may be in a VLAN.
    fn is_about_hosts(&self) -> bool {
        match self {
            Item::HostSeen { .. } | Item::HostGone { .. } | Item::AskHost { .. } => true,
            Item::SetRoute { .. } | Item::RemoveRoute { .. } => true,
            Item::SetBackup { .. } | Item::BackupUsed { .. } => true,
            Item::GroupMember { .. } | Item::AskGroup { .. } | Item::GroupHosts { .. } => true,
            Item::AskLoad { .. } | Item::PortLoad { .. } => false,
            Item::BondMember { .. } | Item::SelectMember { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::{Incarnation, NodeId, PortNo};
    use crate::hops::Hops;
    use crate::message::{ControllerPath, Heartbeat, Seek, Segment};
    use alloc::vec;
    use core::net::IpAddr;

    fn heartbeat() -> Message {
        let controller = Incarnation { node: NodeId(1), number: 2 };
        let hops = Hops::from([3, PortNo::CONTROL.0]);
        Message::Heartbeat(Heartbeat { echo: 5, path: Some(ControllerPath { controller, hops }) })
    }

    fn seek() -> Message {
        Message::Seek(Seek { ip: IpAddr::V4([10, 0, 0, 1].into()), except: None })
    }

    fn segment(items: Vec<Item>) -> Message {
        Message::Segment(Segment { first: 0, ack: 0, items })
    }

    #[test]
    fn a_message_survives_its_bytes_and_nothing_may_follow_it() {
        let mut bytes = heartbeat().encode(VlanId::NONE);
        assert_eq!(Message::decode(&bytes), Some((VlanId::NONE, heartbeat())));
        bytes.push(0);
        assert_eq!(Message::decode(&bytes), None);
        assert_eq!(Message::decode(&[0xff; 40]), None);
    }

    #[test]
    fn a_message_about_hosts_may_end_with_one_vlan_and_no_other_message_may() {
        let vlan = VlanId::new(10).unwrap();
        let gone = Item::HostGone { port: PortNo(1), mac: Default::default() };
        let load = Item::AskLoad { every_ms: 7 };
        let all = [seek(), segment(vec![gone.clone()])];
        for message in all {
            let plain = message.encode(VlanId::NONE);
            let tagged = message.encode(vlan);
            assert_eq!(tagged, [&plain[..], &[10]].concat());
            assert_eq!(Message::decode(&tagged), Some((vlan, message)));
            // No VLAN, VLAN 4095, a second one.
            for end in [&[0][..], &[0xff, 0x1f], &[10, 10]] {
                assert_eq!(Message::decode(&[&plain[..], end].concat()), None, "{end:?}");
            }
        }
        let others = [heartbeat(), segment(vec![]), segment(vec![gone, load])];
        for message in others {
            let bytes = [message.encode(VlanId::NONE), vec![10]].concat();
            assert_eq!(Message::decode(&bytes), None, "{message:?}");
        }
    }
}
