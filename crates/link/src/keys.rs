//! Derivation of every node's keys from the fabric's master key.
//!
//! A key is 32 bytes of XChaCha20's key stream under the master key, from block 1 on as for a
//! message, with its name and the switch as the nonce. The key stream is a pseudorandom function of
//! the nonce, so keys reveal nothing about each other or about the master key. No message is ever
//! sealed under the master key.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use axon_node::keys::{KEY_BYTES, Key};
use axon_node::{Secret, SwitchKeys};
use axon_wire::NodeId;
use axon_wire::message::{Message, Role};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Name of the key that all switches share.
const LINK: [u8; 16] = *b"axon link\0\0\0\0\0\0\0";
/// Name of the key between a switch and the controller.
const CONTROL: [u8; 16] = *b"axon control\0\0\0\0";

/// Kind of sender and receiver of a message, which selects the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The two ends of a link: discovery.
    Link,
    /// Two switches, by a source route.
    Peer,
    /// A switch and the controller, by a source route.
    Control,
}

impl Channel {
    /// Returns the channel of a source-routed message.
    pub(crate) fn routed(message: &Message) -> Channel {
        if matches!(message, Message::ArpReply(_)) { Channel::Peer } else { Channel::Control }
    }
}

/// Derives the keys of a switch from the fabric's master key.
pub fn of_switch(master: &Key, node: NodeId) -> SwitchKeys {
    SwitchKeys { node, link: link(master), control: control(master, node) }
}

fn link(master: &Key) -> Key {
    derive(master, LINK, 0)
}

fn control(master: &Key, node: NodeId) -> Key {
    derive(master, CONTROL, node.0)
}

fn derive(master: &Key, name: [u8; 16], number: u64) -> Key {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(&name);
    nonce[16..].copy_from_slice(&number.to_be_bytes());
    let stream = cipher(master)
        .encrypt(&XNonce::from(nonce), &[0; KEY_BYTES][..])
        .expect("32 bytes are far below the cipher's limit");
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&stream[..KEY_BYTES]);
    key
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.into())
}

/// Ciphers derived from one secret of a node.
pub(crate) struct Ring {
    link: XChaCha20Poly1305,
    control: Control,
}

/// Ciphers between switches and the controller.
enum Control {
    /// At a switch: its own cipher.
    Own(XChaCha20Poly1305),
    /// At the controller: the master key, and the ciphers of switches that have sent a valid seal.
    All { master: Key, known: BTreeMap<NodeId, XChaCha20Poly1305> },
}

/// Derives the ciphers of node `node`. A switch does not keep the master key. A controller with the
/// keys of a switch can talk to that switch alone.
pub(crate) fn ring(secret: &Secret, node: NodeId, role: Role) -> Ring {
    match (secret, role) {
        (Secret::Master(master), Role::Controller) => Ring {
            link: cipher(&link(master)),
            control: Control::All { master: *master, known: BTreeMap::new() },
        },
        (Secret::Master(master), Role::Switch) => Ring::of(&of_switch(master, node)),
        (Secret::Switch(keys), _) => Ring::of(keys),
    }
}

impl Ring {
    fn of(keys: &SwitchKeys) -> Ring {
        Ring { link: cipher(&keys.link), control: Control::Own(cipher(&keys.control)) }
    }

    /// Returns the cipher of links.
    pub(crate) fn link(&self) -> &XChaCha20Poly1305 {
        &self.link
    }

    /// Returns the cipher of a channel; for the controller's channel, with `peer` at the other end.
    pub(crate) fn cipher(&self, channel: Channel, peer: NodeId) -> Cow<'_, XChaCha20Poly1305> {
        match (channel, &self.control) {
            (Channel::Link | Channel::Peer, _) => Cow::Borrowed(&self.link),
            (Channel::Control, Control::Own(own)) => Cow::Borrowed(own),
            (Channel::Control, Control::All { master, known }) => known
                .get(&peer)
                .map_or_else(|| Cow::Owned(cipher(&control(master, peer))), Cow::Borrowed),
        }
    }

    /// Applies `open` to a message from `peer` on the controller's channel. The cipher is kept if
    /// the seal is valid.
    pub(crate) fn open_control<T>(
        &mut self,
        peer: NodeId,
        open: impl FnOnce(&XChaCha20Poly1305) -> Option<T>,
    ) -> Option<T> {
        match &mut self.control {
            Control::Own(own) => open(own),
            Control::All { master, known } => match known.entry(peer) {
                Entry::Occupied(known) => open(known.get()),
                Entry::Vacant(place) => {
                    let derived = cipher(&control(master, peer));
                    let opened = open(&derived)?;
                    place.insert(derived);
                    Some(opened)
                }
            },
        }
    }

    /// Keeps the cipher of a switch that has sent a valid seal, so that it is derived once only.
    pub(crate) fn remember(&mut self, peer: NodeId) {
        if let Control::All { master, known } = &mut self.control {
            known.entry(peer).or_insert_with(|| cipher(&control(master, peer)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    #[test]
    fn only_the_keys_of_switches_that_have_proved_themselves_are_kept() {
        let mut ring = ring(&Secret::Master([7; 32]), NodeId(1 << 20), Role::Controller);
        for node in 0..100 {
            assert_eq!(ring.open_control(NodeId(node), |_| None::<()>), None);
        }
        assert_eq!(ring.open_control(NodeId(5), |_| Some(1)), Some(1));
        let Control::All { known, .. } = &ring.control else { panic!("a controller has all") };
        assert_eq!(known.keys().collect::<Vec<_>>(), [&NodeId(5)]);
    }

    #[test]
    fn every_key_is_another_one() {
        let mut keys = BTreeSet::from([[7; 32], [8; 32]]);
        for master in [[7; 32], [8; 32]] {
            assert!(keys.insert(link(&master)));
            // Node 0 has the same number as in the name of the link key.
            assert!((0..100).all(|node| keys.insert(control(&master, NodeId(node)))));
        }
    }

    /// Compares with the key stream of another implementation of XChaCha20 for this nonce.
    #[test]
    fn a_key_is_the_one_that_the_documentation_describes() {
        let hex = |key: Key| key.map(|byte| alloc::format!("{byte:02x}")).concat();
        assert_eq!(hex(link(&[7; 32])), LINK_KEY);
        assert_eq!(hex(control(&[7; 32], NodeId(1))), CONTROL_KEY);
    }

    const LINK_KEY: &str = "ab76fb51fea3fa08587a69f72f0b13b989d605efacbf059cf3e9f7aa0aa8efc7";
    const CONTROL_KEY: &str = "2c3e212fb860f1757a38a76fe73776eab49fce9e914b8b588cb5163b4aefc2db";
}
