//! Sealing and opening control messages: authentication with the fabric's key, and protection
//! against replay.
//!
//! Each message is sealed with XChaCha20-Poly1305 under the pre-shared key. The nonce is
//! (node, incarnation, sequence) of the sender, see [`axon_wire::envelope`]; the incarnation that
//! the message is for is authenticated with it. A receiver keeps, for each sender, the
//! newest incarnation and a sliding window over its sequence numbers (as IPsec does, RFC
//! 4303 §3.4.3): a number that is in the window already, or older than the window, is a
//! replay. All of that is looked at only after the seal has proved genuine.

use alloc::collections::BTreeMap;
use axon_node::Refusal;
use axon_wire::envelope::{self, Envelope};
use axon_wire::message::Message;
use axon_wire::{Incarnation, NodeId};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// The size of the replay window: late messages up to this far behind the newest are accepted.
const WINDOW: u64 = u128::BITS as u64;

/// Seals and opens the messages of one incarnation of a node.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    incarnation: Incarnation,
    sequence: u64,
    replay_windows: BTreeMap<NodeId, ReplayWindow>,
}

/// The sequence numbers received from one sender.
#[derive(Clone, Copy, Debug)]
struct ReplayWindow {
    incarnation: u64,
    newest: u64,
    /// Bit `n` stands for sequence `newest - n`.
    window: u128,
}

/// A message whose seal was valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The incarnation that sealed it.
    pub from: Incarnation,
    /// The message.
    pub message: Message,
    /// Whether it was sealed for this incarnation alone, not for any receiver.
    pub addressed: bool,
}

impl Sealer {
    /// A sealer for this incarnation of a node, in the fabric with this key.
    pub fn new(key: &[u8; 32], incarnation: Incarnation) -> Sealer {
        let cipher = XChaCha20Poly1305::new(key.into());
        Sealer { cipher, incarnation, sequence: 0, replay_windows: BTreeMap::new() }
    }

    /// Seals `message` for `to`, or for any receiver, and returns the envelope.
    pub fn seal(&mut self, to: Option<Incarnation>, message: &Message) -> alloc::vec::Vec<u8> {
        self.sequence += 1;
        let nonce = XNonce::from(envelope::nonce(self.incarnation, self.sequence));
        let (aad, plain) = (associated(to), message.encode());
        let sealed = self
            .cipher
            .encrypt(&nonce, Payload { msg: &plain, aad: &aad })
            .expect("a control message is far shorter than the cipher's limit");
        Envelope { from: self.incarnation, sequence: self.sequence, sealed: &sealed }.emit()
    }

    /// Opens an envelope that was sealed for this incarnation or, if `broadcast` is allowed, for
    /// any receiver.
    ///
    /// # Errors
    /// The reason for the refusal. The replay window is unchanged then.
    pub fn open(&mut self, bytes: &[u8], broadcast: bool) -> Result<Opened, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        let (plain, addressed) = match self.decrypt(&envelope, Some(self.incarnation)) {
            Some(plain) => (plain, true),
            None if broadcast => (self.decrypt(&envelope, None).ok_or(Refusal::BadSeal)?, false),
            None => return Err(Refusal::BadSeal),
        };
        self.admit(envelope.from, envelope.sequence)?;
        let message = Message::decode(&plain).ok_or(Refusal::Malformed)?;
        Ok(Opened { from: envelope.from, message, addressed })
    }

    fn decrypt(&self, envelope: &Envelope, to: Option<Incarnation>) -> Option<alloc::vec::Vec<u8>> {
        let nonce = XNonce::from(envelope::nonce(envelope.from, envelope.sequence));
        let payload = Payload { msg: envelope.sealed, aad: &associated(to) };
        self.cipher.decrypt(&nonce, payload).ok()
    }

    /// Enters a genuine message into the replay window, or refuses it as a replay.
    fn admit(&mut self, from: Incarnation, sequence: u64) -> Result<(), Refusal> {
        if from.node == self.incarnation.node {
            return Err(Refusal::Replayed);
        }
        let fresh = ReplayWindow { incarnation: from.number, newest: sequence, window: 1 };
        let Some(heard) = self.replay_windows.get_mut(&from.node) else {
            self.replay_windows.insert(from.node, fresh);
            return Ok(());
        };
        if from.number < heard.incarnation {
            return Err(Refusal::StaleIncarnation);
        }
        if from.number > heard.incarnation {
            *heard = fresh;
        } else if sequence > heard.newest {
            let step = sequence - heard.newest;
            heard.window = if step < WINDOW { heard.window << step | 1 } else { 1 };
            heard.newest = sequence;
        } else {
            let age = heard.newest - sequence;
            if age >= WINDOW || heard.window >> age & 1 == 1 {
                return Err(Refusal::Replayed);
            }
            heard.window |= 1 << age;
        }
        Ok(())
    }
}

/// The associated data that binds a message to its receiver.
fn associated(to: Option<Incarnation>) -> [u8; 16] {
    let mut bytes = [0; 16];
    if let Some(incarnation) = to {
        bytes[..8].copy_from_slice(&incarnation.node.0.to_be_bytes());
        bytes[8..].copy_from_slice(&incarnation.number.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::message::HelloConfirm;

    fn incarnation(node: u64, incarnation: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number: incarnation }
    }

    fn message(echo: u64) -> Message {
        Message::HelloConfirm(HelloConfirm { echo })
    }

    fn pair() -> (Sealer, Sealer) {
        (Sealer::new(&[7; 32], incarnation(1, 1)), Sealer::new(&[7; 32], incarnation(2, 1)))
    }

    #[test]
    fn a_message_is_opened_once_by_the_life_it_is_for() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal(Some(incarnation(2, 1)), &message(5));
        let opened = bob.open(&bytes, false).unwrap();
        assert_eq!(
            (opened.from, opened.message, opened.addressed),
            (incarnation(1, 1), message(5), true)
        );
        assert_eq!(bob.open(&bytes, false), Err(Refusal::Replayed));
        let mut later_bob = Sealer::new(&[7; 32], incarnation(2, 2));
        assert_eq!(later_bob.open(&bytes, true), Err(Refusal::BadSeal));
    }

    #[test]
    fn another_key_another_receiver_and_any_flipped_bit_are_refused() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal(Some(incarnation(2, 1)), &message(5));
        assert_eq!(
            Sealer::new(&[8; 32], incarnation(2, 1)).open(&bytes, true),
            Err(Refusal::BadSeal)
        );
        assert_eq!(
            Sealer::new(&[7; 32], incarnation(3, 1)).open(&bytes, true),
            Err(Refusal::BadSeal)
        );
        for bit in 24..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(bob.open(&bent, true), Err(Refusal::BadSeal), "bit {bit}");
        }
        assert!(bob.open(&bytes, false).is_ok(), "refused messages leave no trace");
    }

    #[test]
    fn a_broadcast_is_heard_only_where_broadcasts_may_be() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal(None, &message(5));
        assert_eq!(bob.open(&bytes, false), Err(Refusal::BadSeal));
        assert!(!bob.open(&bytes, true).unwrap().addressed);
    }

    #[test]
    fn late_messages_pass_and_replays_do_not_whatever_the_order() {
        let (mut alice, mut bob) = pair();
        let sealed: Vec<_> =
            (0..200).map(|echo| alice.seal(Some(incarnation(2, 1)), &message(echo))).collect();
        assert!(bob.open(&sealed[150], false).is_ok());
        for (index, bytes) in sealed.iter().enumerate().take(150) {
            let fits = index > 150 - WINDOW as usize;
            assert_eq!(bob.open(bytes, false).is_ok(), fits, "message {index}");
            assert_eq!(bob.open(bytes, false), Err(Refusal::Replayed));
        }
    }

    #[test]
    fn an_earlier_life_is_refused_once_a_later_one_has_spoken() {
        let (mut alice, mut bob) = pair();
        let old = alice.seal(Some(incarnation(2, 1)), &message(5));
        let mut reborn = Sealer::new(&[7; 32], incarnation(1, 2));
        assert!(bob.open(&reborn.seal(Some(incarnation(2, 1)), &message(6)), false).is_ok());
        assert_eq!(bob.open(&old, false), Err(Refusal::StaleIncarnation));
    }

    #[test]
    fn a_node_does_not_listen_to_its_own_echo() {
        let (mut alice, _) = pair();
        let bytes = alice.seal(None, &message(5));
        assert_eq!(alice.open(&bytes, true), Err(Refusal::Replayed));
    }
}
