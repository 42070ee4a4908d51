//! Sealing and opening control messages: authentication, and protection against replay.
//!
//! Each message is sealed with XChaCha20-Poly1305, under the key of the [`Channel`] that it belongs
//! to. The nonce is (node, incarnation, sequence) of the sender, see [`axon_wire::envelope`]; the
//! incarnation that the message is for is authenticated with it. A receiver keeps, for each sender
//! and channel, the newest incarnation and a sliding window over its sequence numbers (as IPsec
//! does, RFC 4303 §3.4.3): a number that is in the window already, or older than the window, is a
//! replay. All of that is looked at only after the seal has proved genuine.
//!
//! A switch has two keys. One is shared by all switches, for discovery on links and for answers
//! between switches. The other is known to the controller and this switch alone, so that no switch
//! can pose as the controller, or to the controller as another switch. Both follow from the
//! controller's master key ([`crate::keys`]).
//!
//! While keys are changed, a node opens under two sets and seals under one.

use crate::keys::{self, Channel, Ring};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::{Keys, Refusal};
use axon_wire::envelope::{self, Envelope};
use axon_wire::message::{ArpReply, ArpTarget, Grant, Message, Role};
use axon_wire::{Incarnation, NodeId};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// The size of the replay window: late messages up to this far behind the newest are accepted.
const WINDOW: u64 = u128::BITS as u64;

/// Seals and opens the messages of one incarnation of a node.
pub struct Sealer {
    role: Role,
    /// The one to seal with.
    current: Ring,
    other: Option<Ring>,
    incarnation: Incarnation,
    sequence: u64,
    /// A sender proves only what its key says: what comes under one key must not move the window
    /// of another.
    replay_windows: BTreeMap<(Channel, NodeId), ReplayWindow>,
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
    /// A sealer for this incarnation of a node.
    pub fn new(keys: &Keys, incarnation: Incarnation, role: Role) -> Sealer {
        let (current, other) = rings(keys, incarnation.node, role);
        let replay_windows = BTreeMap::new();
        Sealer { role, current, other, incarnation, sequence: 0, replay_windows }
    }

    /// Uses other keys from now on. What was received stays received.
    pub fn rekey(&mut self, keys: &Keys) {
        (self.current, self.other) = rings(keys, self.incarnation.node, self.role);
    }

    /// Seals a message for the other end of a link, or for whoever is there, and returns the
    /// envelope.
    pub fn seal_link(&mut self, to: Option<Incarnation>, message: &Message) -> Vec<u8> {
        let cipher = self.current.link().clone();
        self.seal(&cipher, to, message)
    }

    /// Seals a message that goes by a source route, and returns the envelope.
    pub fn seal_routed(&mut self, to: Incarnation, message: &Message) -> Vec<u8> {
        let cipher = self.current.cipher(Channel::routed(message), to.node);
        self.seal(&cipher, Some(to), message)
    }

    fn seal(
        &mut self,
        cipher: &XChaCha20Poly1305,
        to: Option<Incarnation>,
        message: &Message,
    ) -> Vec<u8> {
        self.sequence += 1;
        let nonce = XNonce::from(envelope::nonce(self.incarnation, self.sequence));
        let (aad, plain) = (associated(to), message.encode());
        let sealed = cipher
            .encrypt(&nonce, Payload { msg: &plain, aad: &aad })
            .expect("a control message is far shorter than the cipher's limit");
        Envelope { from: self.incarnation, sequence: self.sequence, sealed: &sealed }.emit()
    }

    /// Opens an envelope from the other end of a link, for this incarnation or for any receiver.
    ///
    /// # Errors
    /// The reason for the refusal. The replay window is unchanged then.
    pub fn open_link(&mut self, bytes: &[u8]) -> Result<Opened, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        for to in [Some(self.incarnation), None] {
            let opened = self.rings().find_map(|ring| decrypt(ring.link(), &envelope, to));
            if let Some(plain) = opened {
                return self.accept(&envelope, Channel::Link, &plain, to.is_some());
            }
        }
        Err(Refusal::BadSeal)
    }

    /// Opens an envelope that came by a source route, for this incarnation.
    ///
    /// # Errors
    /// The reason for the refusal. The replay window is unchanged, but for a message that its
    /// sender may not send.
    pub fn open_routed(&mut self, bytes: &[u8]) -> Result<Opened, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        let (node, to) = (envelope.from.node, Some(self.incarnation));
        for channel in [Channel::Control, Channel::Peer] {
            let opened =
                self.rings().find_map(|ring| decrypt(&ring.cipher(channel, node), &envelope, to));
            let Some(plain) = opened else { continue };
            if channel == Channel::Control {
                self.current.remember(node);
            }
            let opened = self.accept(&envelope, channel, &plain, true)?;
            let due = Channel::routed(&opened.message);
            return if due == channel { Ok(opened) } else { Err(Refusal::Unauthorised) };
        }
        Err(Refusal::BadSeal)
    }

    /// Makes the proof, for the source switch, that the answer of a target switch is the
    /// controller's word.
    pub fn grant(&mut self, target: &mut ArpTarget) {
        self.sequence += 1;
        let nonce = XNonce::from(envelope::nonce(self.incarnation, self.sequence));
        let cipher = self.current.cipher(Channel::Control, target.source_switch.node);
        let aad = provable(&target.reply());
        let sealed = cipher
            .encrypt(&nonce, Payload { msg: &[], aad: &aad })
            .expect("an answer is far shorter than the cipher's limit");
        target.grant.sequence = self.sequence;
        target.grant.tag.copy_from_slice(&sealed);
    }

    /// Whether an answer is the word of this incarnation of the controller, for this switch.
    pub fn has_granted(&self, controller: Incarnation, reply: &ArpReply) -> bool {
        let nonce = XNonce::from(envelope::nonce(controller, reply.grant.sequence));
        let aad = provable(reply);
        self.rings().any(|ring| {
            let cipher = ring.cipher(Channel::Control, controller.node);
            cipher.decrypt(&nonce, Payload { msg: &reply.grant.tag, aad: &aad }).is_ok()
        })
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        core::iter::once(&self.current).chain(&self.other)
    }

    fn accept(
        &mut self,
        envelope: &Envelope,
        channel: Channel,
        plain: &[u8],
        addressed: bool,
    ) -> Result<Opened, Refusal> {
        self.admit(channel, envelope.from, envelope.sequence)?;
        let message = Message::decode(plain).ok_or(Refusal::Malformed)?;
        Ok(Opened { from: envelope.from, message, addressed })
    }

    /// Enters a genuine message into the replay window, or refuses it as a replay.
    fn admit(&mut self, channel: Channel, from: Incarnation, sequence: u64) -> Result<(), Refusal> {
        if from.node == self.incarnation.node {
            return Err(Refusal::Replayed);
        }
        let fresh = ReplayWindow { incarnation: from.number, newest: sequence, window: 1 };
        let Some(heard) = self.replay_windows.get_mut(&(channel, from.node)) else {
            self.replay_windows.insert((channel, from.node), fresh);
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

/// What a grant proves: the answer without its grant. No other associated data are so long.
fn provable(reply: &ArpReply) -> Vec<u8> {
    Message::ArpReply(ArpReply { grant: Grant::default(), ..reply.clone() }).encode()
}

/// The rings of a node with these keys.
fn rings(keys: &Keys, node: NodeId, role: Role) -> (Ring, Option<Ring>) {
    let ring = |secret| keys::ring(secret, node, role);
    (ring(&keys.current), keys.other.as_ref().map(ring))
}

fn decrypt(
    cipher: &XChaCha20Poly1305,
    envelope: &Envelope,
    to: Option<Incarnation>,
) -> Option<Vec<u8>> {
    let nonce = XNonce::from(envelope::nonce(envelope.from, envelope.sequence));
    let payload = Payload { msg: envelope.sealed, aad: &associated(to) };
    cipher.decrypt(&nonce, payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use axon_node::Secret;
    use axon_wire::message::{HelloConfirm, Segment, Stamp};
    use axon_wire::route::Route;
    use axon_wire::{Hops, MacAddr, PortNo};

    const CONTROLLER: Incarnation = incarnation(99, 1);

    const fn incarnation(node: u64, number: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number }
    }

    fn message(echo: u64) -> Message {
        Message::HelloConfirm(HelloConfirm { echo })
    }

    /// What only a controller and a switch say to each other.
    fn control(ack: u64) -> Message {
        Message::Segment(Segment { first: 0, ack, items: Vec::new() })
    }

    /// For switch 2, whose host 2 looks for host 4.
    fn target() -> ArpTarget {
        ArpTarget {
            id: 1,
            source_switch: incarnation(2, 1),
            source_port: PortNo(0),
            source_mac: MacAddr([2; 6]),
            source_ip: None,
            target_port: PortNo(0),
            target_mac: MacAddr([4; 6]),
            target_ip: None,
            stamp: Stamp::default(),
            to_source: Route::from([1, 0]),
            to_target: Route::from([2, 0]),
            answer_by: Hops::to_control(),
            grant: Grant::default(),
        }
    }

    fn reply() -> Message {
        Message::ArpReply(target().reply())
    }

    fn switch(node: u64, number: u64) -> Sealer {
        Sealer::new(&[7; 32].into(), incarnation(node, number), Role::Switch)
    }

    fn controller() -> Sealer {
        Sealer::new(&[7; 32].into(), CONTROLLER, Role::Controller)
    }

    fn pair() -> (Sealer, Sealer) {
        (switch(1, 1), switch(2, 1))
    }

    #[test]
    fn a_message_is_opened_once_by_the_incarnation_it_is_for() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_link(Some(incarnation(2, 1)), &message(5));
        let opened = bob.open_link(&bytes).unwrap();
        assert_eq!(
            (opened.from, opened.message, opened.addressed),
            (incarnation(1, 1), message(5), true)
        );
        assert_eq!(bob.open_link(&bytes), Err(Refusal::Replayed));
        assert_eq!(switch(2, 2).open_link(&bytes), Err(Refusal::BadSeal));
    }

    #[test]
    fn another_key_another_receiver_and_any_flipped_bit_are_refused() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_link(Some(incarnation(2, 1)), &message(5));
        let mut stranger = Sealer::new(&[8; 32].into(), incarnation(2, 1), Role::Switch);
        assert_eq!(stranger.open_link(&bytes), Err(Refusal::BadSeal));
        assert_eq!(switch(3, 1).open_link(&bytes), Err(Refusal::BadSeal));
        for bit in 24..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(bob.open_link(&bent), Err(Refusal::BadSeal), "bit {bit}");
        }
        assert!(bob.open_link(&bytes).is_ok(), "refused messages leave no trace");
    }

    #[test]
    fn a_broadcast_is_opened_on_links_only() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_link(None, &message(5));
        assert_eq!(bob.open_routed(&bytes), Err(Refusal::BadSeal));
        assert!(!bob.open_link(&bytes).unwrap().addressed);
    }

    #[test]
    fn late_messages_pass_and_replays_do_not_whatever_the_order() {
        let (mut alice, mut bob) = pair();
        let sealed: Vec<_> =
            (0..200).map(|echo| alice.seal_link(Some(incarnation(2, 1)), &message(echo))).collect();
        assert!(bob.open_link(&sealed[150]).is_ok());
        for (index, bytes) in sealed.iter().enumerate().take(150) {
            let fits = index > 150 - WINDOW as usize;
            assert_eq!(bob.open_link(bytes).is_ok(), fits, "message {index}");
            assert_eq!(bob.open_link(bytes), Err(Refusal::Replayed));
        }
    }

    #[test]
    fn an_earlier_incarnation_is_refused_once_a_later_one_has_sent_something() {
        let (mut alice, mut bob) = pair();
        let old = alice.seal_link(Some(incarnation(2, 1)), &message(5));
        let new = switch(1, 2).seal_link(Some(incarnation(2, 1)), &message(6));
        assert!(bob.open_link(&new).is_ok());
        assert_eq!(bob.open_link(&old), Err(Refusal::StaleIncarnation));
    }

    #[test]
    fn a_node_does_not_listen_to_its_own_echo() {
        let (mut alice, _) = pair();
        let bytes = alice.seal_link(None, &message(5));
        assert_eq!(alice.open_link(&bytes), Err(Refusal::Replayed));
    }

    #[test]
    fn controller_and_switch_understand_each_other_and_so_do_two_switches() {
        let (mut alice, mut bob) = pair();
        let mut controller = controller();
        let bytes = controller.seal_routed(incarnation(1, 1), &control(3));
        assert_eq!(alice.open_routed(&bytes).unwrap().message, control(3));
        let bytes = alice.seal_routed(CONTROLLER, &control(4));
        assert_eq!(controller.open_routed(&bytes).unwrap().message, control(4));
        let bytes = alice.seal_routed(incarnation(2, 1), &reply());
        assert_eq!(bob.open_routed(&bytes).unwrap().message, reply());
    }

    /// Mallory owns switch 1, and has all its keys.
    #[test]
    fn a_switch_cannot_pose_as_the_controller_nor_to_it_as_another_switch() {
        let (mallory, victim) = (keys::of_switch(&[7; 32], NodeId(1)), incarnation(2, 1));
        let (mut bob, mut controller) = (switch(2, 1), controller());
        for (role, number) in [(Role::Switch, u64::MAX - 1), (Role::Controller, u64::MAX)] {
            let from = incarnation(CONTROLLER.node.0, number);
            let keys = Keys { current: Secret::Switch(mallory.clone()), other: None };
            let mut posing = Sealer::new(&keys, from, role);
            assert_eq!(bob.open_routed(&posing.seal_routed(victim, &control(1))), BAD);
            // Nor under the key that they share.
            let cipher = posing.current.link().clone();
            let bytes = posing.seal(&cipher, Some(victim), &control(1));
            assert_eq!(bob.open_routed(&bytes), Err(Refusal::Unauthorised));
            let keys = Keys { current: Secret::Switch(mallory.clone()), other: None };
            let mut posing = Sealer::new(&keys, incarnation(2, u64::MAX), role);
            assert_eq!(controller.open_routed(&posing.seal_routed(CONTROLLER, &control(1))), BAD);
        }
        // The true ones are believed as before, although their incarnations are lower.
        assert!(bob.open_routed(&controller.seal_routed(victim, &control(1))).is_ok());
        assert!(controller.open_routed(&bob.seal_routed(CONTROLLER, &control(1))).is_ok());
    }

    #[test]
    fn only_the_controller_grants_a_route_and_nothing_of_it_can_be_changed() {
        let (mut controller, bob) = (controller(), switch(2, 1));
        let mut target = target();
        controller.grant(&mut target);
        let genuine = target.reply();
        assert!(bob.has_granted(CONTROLLER, &genuine));
        assert!(!switch(3, 1).has_granted(CONTROLLER, &genuine), "it is for one switch");
        assert!(!bob.has_granted(incarnation(99, 2), &genuine), "it is of one incarnation");
        let mut forged = vec![genuine.clone(); 6];
        forged[0].to_target = Route::from([3, 0]);
        forged[1].target_mac = MacAddr([6; 6]);
        forged[2].stamp.number += 1;
        forged[3].source_port = PortNo(1);
        forged[4].grant.sequence += 1;
        forged[5].grant.tag[15] ^= 1;
        for reply in forged {
            assert!(!bob.has_granted(CONTROLLER, &reply), "{reply:?}");
        }
        // Mallory owns the target switch, and makes one of its own.
        let mallory = keys::of_switch(&[7; 32], NodeId(1));
        let keys = Keys { current: Secret::Switch(mallory), other: None };
        Sealer::new(&keys, CONTROLLER, Role::Controller).grant(&mut target);
        assert!(!bob.has_granted(CONTROLLER, &target.reply()));
    }

    const BAD: Result<Opened, Refusal> = Err(Refusal::BadSeal);

    #[test]
    fn keys_are_changed_in_three_steps_and_no_message_is_refused_between_them() {
        let (old, new) = (Secret::Master([7; 32]), Secret::Master([8; 32]));
        let keys = |current: &Secret, other: Option<&Secret>| Keys {
            current: current.clone(),
            other: other.cloned(),
        };
        let steps = [keys(&old, Some(&new)), keys(&new, Some(&old)), keys(&new, None)];
        let (mut alice, mut bob) = pair();
        let mut controller = controller();
        let exchange = |alice: &mut Sealer, bob: &mut Sealer, controller: &mut Sealer| {
            let bytes = alice.seal_link(None, &message(1));
            bob.open_link(&bytes).unwrap();
            let bytes = bob.seal_routed(incarnation(1, 1), &reply());
            alice.open_routed(&bytes).unwrap();
            let bytes = alice.seal_routed(CONTROLLER, &control(1));
            controller.open_routed(&bytes).unwrap();
            let bytes = controller.seal_routed(incarnation(2, 1), &control(1));
            bob.open_routed(&bytes).unwrap();
            bytes
        };
        let before = exchange(&mut alice, &mut bob, &mut controller);
        for step in &steps {
            alice.rekey(step);
            exchange(&mut alice, &mut bob, &mut controller);
            controller.rekey(step);
            exchange(&mut alice, &mut bob, &mut controller);
            assert_eq!(bob.open_routed(&before), Err(Refusal::Replayed), "what came has come");
            bob.rekey(step);
            exchange(&mut alice, &mut bob, &mut controller);
        }
        assert_eq!(bob.open_routed(&before), BAD, "the old key is worth nothing now");
    }
}
