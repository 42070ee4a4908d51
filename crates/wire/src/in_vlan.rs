//! Messages and items about hosts in a VLAN. Each consists of the VLAN and an encoded message or
//! item of the form used for hosts in no VLAN. The inner one is kept as bytes, because a recursive
//! type could be nested without limit.

use crate::message::{Item, Message};
use crate::vlan::VlanId;

impl Message {
    /// Returns this message for hosts in a VLAN.
    #[must_use]
    pub fn in_vlan(&self, vlan: VlanId) -> Message {
        if vlan.is_none() {
            return self.clone();
        }
        Message::Vlan { vlan, message: self.encode() }
    }

    /// Returns the VLAN of a message and the inner message. A message without a wrapper is in no
    /// VLAN and is returned unchanged. The message is `None` if the wrapper has no VLAN, or
    /// contains an invalid message or another wrapper.
    pub fn open(self) -> (VlanId, Option<Message>) {
        match self {
            Message::Vlan { vlan, message } => {
                let message = Message::decode(&message).filter(|_| !vlan.is_none());
                (vlan, message.filter(|message| !matches!(message, Message::Vlan { .. })))
            }
            message => (VlanId::NONE, Some(message)),
        }
    }
}

impl Item {
    /// Returns this item for hosts in a VLAN.
    #[must_use]
    pub fn in_vlan(&self, vlan: VlanId) -> Item {
        if vlan.is_none() {
            return self.clone();
        }
        let item = postcard::to_allocvec(self).expect("an item in memory always encodes");
        Item::Vlan { vlan, item }
    }

    /// Returns the VLAN of an item and the inner item. An item without a wrapper is in no VLAN and
    /// is returned unchanged. The item is `None` if the wrapper has no VLAN, or contains an invalid
    /// item or another wrapper.
    pub fn open(self) -> (VlanId, Option<Item>) {
        let Item::Vlan { vlan, item } = self else { return (VlanId::NONE, Some(self)) };
        let read = postcard::take_from_bytes::<Item>(&item).ok();
        let read = read.filter(|(item, rest)| {
            rest.is_empty() && !vlan.is_none() && !matches!(item, Item::Vlan { .. })
        });
        (vlan, read.map(|(item, _)| item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Seek;
    use alloc::vec::Vec;
    use core::net::IpAddr;

    #[test]
    fn a_message_in_a_vlan_is_opened_once_and_none_is_in_no_vlan_or_in_two() {
        let vlan = VlanId::new(10).unwrap();
        let seek = Message::Seek(Seek { ip: IpAddr::V4([10, 0, 0, 1].into()), except: None });
        let within = seek.in_vlan(vlan);
        assert_eq!(Message::decode(&within.encode()), Some(within.clone()));
        assert_eq!(within.clone().open(), (vlan, Some(seek.clone())));
        assert_eq!(seek.clone().open(), (VlanId::NONE, Some(seek.clone())));
        assert_eq!(seek.in_vlan(VlanId::NONE), seek);
        assert_eq!(within.in_vlan(vlan).open(), (vlan, None), "a VLAN in a VLAN");
        let none = Message::Vlan { vlan: VlanId::NONE, message: seek.encode() };
        assert_eq!(none.open().1, None);
        assert_eq!(Message::Vlan { vlan, message: [0xff; 9].to_vec() }.open().1, None);
        let item = Item::AskLoad { every_ms: 7 };
        let within = item.in_vlan(vlan);
        assert_eq!(within.clone().open(), (vlan, Some(item.clone())));
        assert_eq!(within.in_vlan(vlan).open(), (vlan, None));
        assert_eq!(Item::Vlan { vlan, item: Vec::new() }.open().1, None);
    }
}
