//! Sealing and opening control messages: authentication, and protection against replay.
//!
//! Each message is sealed with XChaCha20-Poly1305 under the key of its [`Channel`]. The nonce is
//! the sender's (node, incarnation, sequence), see [`axon_wire::envelope`]; the receiver's
//! incarnation is authenticated as associated data. Replay protection (`replay.rs`) is consulted
//! only after the seal has been verified.
//!
//! A switch has two keys. All switches share one, for discovery on links and for answers between
//! switches. Only the controller and this switch have the other, so no switch can pose as the
//! controller, or to the controller as another switch. Both are derived from the controller's
//! master key ([`crate::keys`]).
//!
//! During a key change, a node opens messages under two sets of keys and seals under one.

use crate::keys::{self, Channel, Ring};
use crate::replay::Received;
use alloc::vec::Vec;
use axon_node::{Keys, Refusal};
use axon_wire::envelope::{self, Envelope};
use axon_wire::message::{ArpReply, ArpTarget, Grant, Message, Role};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, NodeId, PortNo};
use chacha20poly1305::aead::{Aead, AeadInOut, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Incarnation number that stands for any incarnation of the receiver. No node has this
/// incarnation.
pub const ANY_INCARNATION: u64 = 0;

/// Seals and opens the messages of one incarnation of a node.
pub struct Sealer {
    role: Role,
    /// True if there is no controller, and switches exchange messages under the shared key.
    among_switches: bool,
    /// Ciphers to seal with.
    current: Ring,
    other: Option<Ring>,
    incarnation: Incarnation,
    sequence: u64,
    received: Received,
}

/// A message whose seal is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The incarnation that sealed it.
    pub from: Incarnation,
    /// The VLAN of the hosts that the message is about.
    pub vlan: VlanId,
    /// The message.
    pub message: Message,
    /// True if it was sealed for this incarnation, not for any receiver.
    pub addressed: bool,
}

impl Sealer {
    /// Creates a sealer for this incarnation of a node.
    pub fn new(keys: &Keys, incarnation: Incarnation, role: Role) -> Sealer {
        let (current, other) = rings(keys, incarnation.node, role);
        let received = Received::default();
        let among_switches = false;
        Sealer { role, among_switches, current, other, incarnation, sequence: 0, received }
    }

    /// Configures a fabric without a controller: source-routed messages are for another switch and
    /// are sealed under the key that all switches share. The node must refuse messages that it does
    /// not expect from another switch.
    pub fn among_switches(&mut self) {
        self.among_switches = true;
    }

    /// Replaces the keys. The replay windows are kept.
    pub fn rekey(&mut self, keys: &Keys) {
        (self.current, self.other) = rings(keys, self.incarnation.node, self.role);
    }

    /// Seals a message for the other end of a link, or for any receiver there, and returns the
    /// envelope.
    pub fn seal_link(&mut self, to: Option<Incarnation>, message: &Message) -> Vec<u8> {
        let sequence = self.next();
        let message = message.encode(VlanId::NONE);
        seal(self.current.link(), (self.incarnation, sequence), to, &message)
    }

    /// Seals a source-routed message about hosts of a VLAN, and returns the envelope.
    pub fn seal_routed(&mut self, to: Incarnation, (vlan, message): (VlanId, &Message)) -> Vec<u8> {
        let sequence = self.next();
        let cipher = self.current.cipher(self.channel(message), to.node);
        seal(&cipher, (self.incarnation, sequence), Some(to), &message.encode(vlan))
    }

    /// Seals the number of an echo that leaves and returns by `port`, and returns the envelope. No
    /// other node reads it.
    pub fn seal_echo(&mut self, port: PortNo, number: u64) -> Vec<u8> {
        let sequence = self.next();
        let nonce = XNonce::from(envelope::nonce(self.incarnation, sequence));
        let (msg, aad) = (&number.to_be_bytes()[..], &self.of_echo(port)[..]);
        let sealed = self.current.link().encrypt(&nonce, Payload { msg, aad });
        let sealed = sealed.expect("a number is far shorter than the cipher's limit");
        Envelope { from: self.incarnation, sequence, sealed: &sealed }.emit()
    }

    /// Returns the number of an echo that this incarnation has sent by `port`, or `None` if the
    /// envelope is not such an echo. Does not detect duplicates.
    pub fn open_echo(&self, port: PortNo, bytes: &[u8]) -> Option<u64> {
        let envelope = Envelope::parse(bytes).ok()?;
        if envelope.from != self.incarnation {
            return None;
        }
        let aad = self.of_echo(port);
        let plain = self.rings().find_map(|ring| decrypt(ring.link(), &envelope, &aad))?;
        plain.try_into().ok().map(u64::from_be_bytes)
    }

    /// Returns the associated data of an echo, its sender and port. No message has the same.
    fn of_echo(&self, port: PortNo) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&associated(Some(self.incarnation)));
        bytes[16..].copy_from_slice(&port.0.to_be_bytes());
        bytes
    }

    /// Returns the sequence number of the next message or grant.
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Opens an envelope from the other end of the link at `port`, for this incarnation or for any
    /// receiver.
    ///
    /// # Errors
    /// Returns the reason for the refusal. A refused message is not entered as received.
    pub fn open_link(&mut self, port: PortNo, bytes: &[u8]) -> Result<Opened, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        for to in [Some(self.incarnation), None] {
            let aad = associated(to);
            let opened = self.rings().find_map(|ring| decrypt(ring.link(), &envelope, &aad));
            if let Some(plain) = opened {
                self.refuse_echo(envelope.from)?;
                self.received.link(port, envelope.from, envelope.sequence)?;
                return open(&envelope, &plain, to.is_some());
            }
        }
        Err(Refusal::BadSeal)
    }

    /// Records that a node has become the neighbour at a port, by returning the port's challenge.
    /// Its replay window is kept whatever other senders are received at the port.
    pub fn neighbour(&mut self, port: PortNo, node: NodeId) {
        self.received.neighbour(port, node);
    }

    /// Opens a source-routed envelope, for this incarnation.
    ///
    /// # Errors
    /// Returns the reason for the refusal.
    pub fn open_routed(&mut self, bytes: &[u8]) -> Result<Opened, Refusal> {
        let envelope = Envelope::parse(bytes).map_err(|_| Refusal::Malformed)?;
        if self.among_switches {
            return self.open_peer(&envelope);
        }
        let to = associated(Some(self.incarnation));
        let (channel, plain) = match self.open_control(&envelope, &to) {
            Some(plain) => (Channel::Control, plain),
            None => {
                let opened = self.rings().find_map(|ring| decrypt(ring.link(), &envelope, &to));
                (Channel::Peer, opened.ok_or(Refusal::BadSeal)?)
            }
        };
        self.refuse_echo(envelope.from)?;
        if channel == Channel::Control {
            self.received.control(envelope.from, envelope.sequence)?;
        }
        let opened = open(&envelope, &plain, true)?;
        let due = Channel::routed(&opened.message);
        if due == channel { Ok(opened) } else { Err(Refusal::Unauthorised) }
    }

    /// Opens an envelope of another switch in a fabric without a controller, for this incarnation
    /// or for any ([`ANY_INCARNATION`]).
    fn open_peer(&mut self, envelope: &Envelope) -> Result<Opened, Refusal> {
        let Incarnation { node, .. } = self.incarnation;
        let any = Incarnation { node, number: ANY_INCARNATION };
        for to in [self.incarnation, any] {
            let aad = associated(Some(to));
            let opened = self.rings().find_map(|ring| decrypt(ring.link(), envelope, &aad));
            if let Some(plain) = opened {
                self.refuse_echo(envelope.from)?;
                self.received.control(envelope.from, envelope.sequence)?;
                return open(envelope, &plain, to == self.incarnation);
            }
        }
        Err(Refusal::BadSeal)
    }

    /// Returns the channel of a source-routed message.
    fn channel(&self, message: &Message) -> Channel {
        if self.among_switches { Channel::Peer } else { Channel::routed(message) }
    }

    /// Opens an envelope sealed under the key between its sender and the controller.
    fn open_control(&mut self, envelope: &Envelope, aad: &[u8]) -> Option<Vec<u8>> {
        let node = envelope.from.node;
        let open = |ring: &mut Ring| ring.open_control(node, |key| decrypt(key, envelope, aad));
        if let Some(plain) = open(&mut self.current) {
            return Some(plain);
        }
        let plain = open(self.other.as_mut()?)?;
        // The answer is sealed under the current key.
        self.current.remember(node);
        Some(plain)
    }

    /// Refuses this node's own messages, which arrive over a loop or are replayed.
    fn refuse_echo(&self, from: Incarnation) -> Result<(), Refusal> {
        if from.node == self.incarnation.node { Err(Refusal::Replayed) } else { Ok(()) }
    }

    /// Adds the grant, which proves to the source switch that the controller authorised the target
    /// switch's answer.
    pub fn grant(&mut self, vlan: VlanId, target: &mut ArpTarget) {
        let sequence = self.next();
        let nonce = XNonce::from(envelope::nonce(self.incarnation, sequence));
        let cipher = self.current.cipher(Channel::Control, target.source_switch.node);
        let tag = cipher
            .encrypt_inout_detached(&nonce, &provable(vlan, target.reply()), (&mut [][..]).into())
            .expect("an answer is far shorter than the cipher's limit");
        target.grant.sequence = sequence;
        target.grant.tag.copy_from_slice(&tag);
    }

    /// Accepts an answer, once, if its grant is of this incarnation of the controller, for this
    /// switch.
    ///
    /// # Errors
    /// The grant is invalid, or was accepted before.
    pub fn accept_grant(
        &mut self,
        controller: Incarnation,
        (vlan, reply): (VlanId, &ArpReply),
    ) -> Result<(), Refusal> {
        let nonce = XNonce::from(envelope::nonce(controller, reply.grant.sequence));
        let aad = provable(vlan, reply.clone());
        let genuine = self.rings().any(|ring| {
            let cipher = ring.cipher(Channel::Control, controller.node);
            cipher.decrypt(&nonce, Payload { msg: &reply.grant.tag, aad: &aad }).is_ok()
        });
        if !genuine {
            return Err(Refusal::Unauthorised);
        }
        self.received.grant(controller, reply.grant.sequence)
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        core::iter::once(&self.current).chain(&self.other)
    }
}

/// Seals an encoded message under a key and returns the envelope.
fn seal(
    cipher: &XChaCha20Poly1305,
    (from, sequence): (Incarnation, u64),
    to: Option<Incarnation>,
    message: &[u8],
) -> Vec<u8> {
    let nonce = XNonce::from(envelope::nonce(from, sequence));
    let sealed = cipher
        .encrypt(&nonce, Payload { msg: message, aad: &associated(to) })
        .expect("a control message is far shorter than the cipher's limit");
    Envelope { from, sequence, sealed: &sealed }.emit()
}

/// Returns the associated data that binds a message to its receiver.
fn associated(to: Option<Incarnation>) -> [u8; 16] {
    let mut bytes = [0; 16];
    if let Some(incarnation) = to {
        bytes[..8].copy_from_slice(&incarnation.node.0.to_be_bytes());
        bytes[8..].copy_from_slice(&incarnation.number.to_be_bytes());
    }
    bytes
}

/// Returns the data that a grant authenticates: the answer without its grant, and its VLAN. No
/// other associated data are as long.
fn provable(vlan: VlanId, reply: ArpReply) -> Vec<u8> {
    Message::ArpReply(ArpReply { grant: Grant::default(), ..reply }).encode(vlan)
}

/// Returns the current and the previous ciphers of a node with these keys.
fn rings(keys: &Keys, node: NodeId, role: Role) -> (Ring, Option<Ring>) {
    let ring = |secret| keys::ring(secret, node, role);
    (ring(&keys.current), keys.other.as_ref().map(ring))
}

/// Decodes the message of an envelope whose seal is valid.
fn open(envelope: &Envelope, plain: &[u8], addressed: bool) -> Result<Opened, Refusal> {
    let (vlan, message) = Message::decode(plain).ok_or(Refusal::Malformed)?;
    Ok(Opened { from: envelope.from, vlan, message, addressed })
}

fn decrypt(cipher: &XChaCha20Poly1305, envelope: &Envelope, aad: &[u8]) -> Option<Vec<u8>> {
    let nonce = XNonce::from(envelope::nonce(envelope.from, envelope.sequence));
    let payload = Payload { msg: envelope.sealed, aad };
    cipher.decrypt(&nonce, payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use axon_node::Secret;
    use axon_wire::message::{HelloConfirm, Segment, Stamp};
    use axon_wire::route::Route;
    use axon_wire::{Hops, MacAddr};

    const PORT: PortNo = PortNo(0);
    const CONTROLLER: Incarnation = incarnation(99, 1);

    const fn incarnation(node: u64, number: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number }
    }

    fn message(echo: u64) -> Message {
        Message::HelloConfirm(HelloConfirm { echo })
    }

    /// A message that only a controller and a switch exchange.
    fn control(ack: u64) -> Message {
        Message::Segment(Segment { first: 0, ack, items: Vec::new() })
    }

    /// For switch 2, whose host 2 looks up host 4.
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
            source_by_pair: false,
            to_target: Route::from([2, 0]),
            target_by_pair: false,
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
        let opened = bob.open_link(PORT, &bytes).unwrap();
        assert_eq!(
            (opened.from, opened.message, opened.addressed),
            (incarnation(1, 1), message(5), true)
        );
        assert_eq!(bob.open_link(PORT, &bytes), Err(Refusal::Replayed));
        assert_eq!(switch(2, 2).open_link(PORT, &bytes), Err(Refusal::BadSeal));
    }

    #[test]
    fn another_key_another_receiver_and_any_flipped_bit_are_refused() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_link(Some(incarnation(2, 1)), &message(5));
        let mut stranger = Sealer::new(&[8; 32].into(), incarnation(2, 1), Role::Switch);
        assert_eq!(stranger.open_link(PORT, &bytes), Err(Refusal::BadSeal));
        assert_eq!(switch(3, 1).open_link(PORT, &bytes), Err(Refusal::BadSeal));
        for bit in 24..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(bob.open_link(PORT, &bent), Err(Refusal::BadSeal), "bit {bit}");
        }
        assert!(bob.open_link(PORT, &bytes).is_ok(), "refused messages leave no trace");
    }

    #[test]
    fn a_broadcast_is_opened_on_links_only() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_link(None, &message(5));
        assert_eq!(bob.open_routed(&bytes), Err(Refusal::BadSeal));
        assert!(!bob.open_link(PORT, &bytes).unwrap().addressed);
    }

    #[test]
    fn an_earlier_incarnation_is_refused_once_a_later_one_has_sent_something() {
        let (mut alice, mut bob) = pair();
        let old = alice.seal_link(Some(incarnation(2, 1)), &message(5));
        let new = switch(1, 2).seal_link(Some(incarnation(2, 1)), &message(6));
        assert!(bob.open_link(PORT, &new).is_ok());
        assert_eq!(bob.open_link(PORT, &old), Err(Refusal::StaleIncarnation));
    }

    #[test]
    fn a_node_does_not_listen_to_its_own_echo() {
        let (mut alice, _) = pair();
        let bytes = alice.seal_link(None, &message(5));
        assert_eq!(alice.open_link(PORT, &bytes), Err(Refusal::Replayed));
    }

    #[test]
    fn an_echo_is_opened_by_the_incarnation_that_sealed_it_and_at_its_port_alone() {
        let (mut alice, mut bob) = pair();
        let bytes = alice.seal_echo(PORT, 77);
        assert_eq!(alice.open_echo(PORT, &bytes), Some(77));
        assert_eq!(alice.open_echo(PortNo(1), &bytes), None, "it came back by another port");
        assert_eq!(switch(1, 2).open_echo(PORT, &bytes), None, "in its next incarnation");
        assert_eq!(bob.open_echo(PORT, &bytes), None);
        assert_eq!(bob.open_routed(&bytes), Err(Refusal::BadSeal), "it is no message");
        assert_eq!(alice.open_routed(&bytes), Err(Refusal::BadSeal));
        let mut stranger = Sealer::new(&[8; 32].into(), incarnation(1, 1), Role::Switch);
        assert_eq!(alice.open_echo(PORT, &stranger.seal_echo(PORT, 77)), None, "without the key");
        let own = alice.seal_link(Some(incarnation(1, 1)), &message(5));
        assert_eq!(alice.open_echo(PORT, &own), None, "nor is a message an echo");
        for bit in 24..bytes.len() * 8 {
            let mut bent = bytes.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(alice.open_echo(PORT, &bent), None, "bit {bit}");
        }
    }

    #[test]
    fn controller_and_switch_understand_each_other_and_so_do_two_switches() {
        let (mut alice, mut bob) = pair();
        let mut controller = controller();
        let bytes = controller.seal_routed(incarnation(1, 1), (VlanId::NONE, &control(3)));
        assert_eq!(alice.open_routed(&bytes).unwrap().message, control(3));
        let bytes = alice.seal_routed(CONTROLLER, (VlanId::NONE, &control(4)));
        assert_eq!(controller.open_routed(&bytes).unwrap().message, control(4));
        let bytes = alice.seal_routed(incarnation(2, 1), (VlanId::NONE, &reply()));
        assert_eq!(bob.open_routed(&bytes).unwrap().message, reply());
    }

    /// Mallory owns switch 1 and has all its keys.
    #[test]
    fn a_switch_cannot_pose_as_the_controller_nor_to_it_as_another_switch() {
        let (mallory, victim) = (keys::of_switch(&[7; 32], NodeId(1)), incarnation(2, 1));
        let (mut bob, mut controller) = (switch(2, 1), controller());
        for (role, number) in [(Role::Switch, u64::MAX - 1), (Role::Controller, u64::MAX)] {
            let from = incarnation(CONTROLLER.node.0, number);
            let keys = Keys { current: Secret::Switch(mallory.clone()), other: None };
            let mut posing = Sealer::new(&keys, from, role);
            assert_eq!(
                bob.open_routed(&posing.seal_routed(victim, (VlanId::NONE, &control(1)))),
                BAD
            );
            // A message under the shared key is refused too.
            let cipher = posing.current.link().clone();
            let bytes = seal(
                &cipher,
                (posing.incarnation, posing.next()),
                Some(victim),
                &control(1).encode(VlanId::NONE),
            );
            assert_eq!(bob.open_routed(&bytes), Err(Refusal::Unauthorised));
            let keys = Keys { current: Secret::Switch(mallory.clone()), other: None };
            let mut posing = Sealer::new(&keys, incarnation(2, u64::MAX), role);
            assert_eq!(
                controller
                    .open_routed(&posing.seal_routed(CONTROLLER, (VlanId::NONE, &control(1)))),
                BAD
            );
        }
        // Genuine messages are accepted as before, although their incarnations are lower.
        assert!(
            bob.open_routed(&controller.seal_routed(victim, (VlanId::NONE, &control(1)))).is_ok()
        );
        assert!(
            controller
                .open_routed(&bob.seal_routed(CONTROLLER, (VlanId::NONE, &control(1))))
                .is_ok()
        );
    }

    #[test]
    fn only_the_controller_grants_a_route_and_nothing_of_it_can_be_changed() {
        let (mut controller, mut bob) = (controller(), switch(2, 1));
        let mut target = target();
        controller.grant(VlanId::NONE, &mut target);
        let genuine = target.reply();
        assert_eq!(
            switch(3, 1).accept_grant(CONTROLLER, (VlanId::NONE, &genuine)),
            FORGED,
            "for one switch"
        );
        assert_eq!(
            bob.accept_grant(incarnation(99, 2), (VlanId::NONE, &genuine)),
            FORGED,
            "of one incarnation"
        );
        let elsewhere = (VlanId::new(7).unwrap(), &genuine);
        assert_eq!(bob.accept_grant(CONTROLLER, elsewhere), FORGED, "of no VLAN");
        let mut forged = vec![genuine.clone(); 6];
        forged[0].to_target = Route::from([3, 0]);
        forged[1].target_mac = MacAddr([6; 6]);
        forged[2].stamp.number += 1;
        forged[3].source_port = PortNo(1);
        forged[4].grant.sequence += 1;
        forged[5].grant.tag[15] ^= 1;
        for reply in forged {
            assert_eq!(bob.accept_grant(CONTROLLER, (VlanId::NONE, &reply)), FORGED, "{reply:?}");
        }
        // Mallory owns the target switch and makes a grant of its own.
        let mallory = keys::of_switch(&[7; 32], NodeId(1));
        let keys = Keys { current: Secret::Switch(mallory), other: None };
        Sealer::new(&keys, CONTROLLER, Role::Controller).grant(VlanId::NONE, &mut target);
        assert_eq!(bob.accept_grant(CONTROLLER, (VlanId::NONE, &target.reply())), FORGED);
        // The genuine grant is still accepted, once.
        assert_eq!(bob.accept_grant(CONTROLLER, (VlanId::NONE, &genuine)), Ok(()));
        assert_eq!(bob.accept_grant(CONTROLLER, (VlanId::NONE, &genuine)), Err(Refusal::Replayed));
    }

    /// Mallory owns switch 1, and sends under the link key as switch 2 of a later incarnation.
    #[test]
    fn whoever_poses_as_a_switch_keeps_the_true_one_off_at_no_other_port() {
        let (mut alice, mut bob) = (switch(3, 1), switch(2, 1));
        let later = incarnation(2, u64::MAX);
        let own = Secret::Switch(keys::of_switch(&[7; 32], NodeId(1)));
        let keys = Keys { current: own, other: None };
        let mut posing = Sealer::new(&keys, later, Role::Switch);
        let to = incarnation(3, 1);
        assert!(alice.open_link(PORT, &posing.seal_link(Some(to), &message(1))).is_ok());
        assert!(alice.open_routed(&posing.seal_routed(to, (VlanId::NONE, &reply()))).is_ok());
        let genuine = bob.seal_link(Some(to), &message(1));
        assert_eq!(alice.open_link(PORT, &genuine), Err(Refusal::StaleIncarnation));
        assert!(alice.open_link(PortNo(1), &genuine).is_ok());
        assert!(alice.open_routed(&bob.seal_routed(to, (VlanId::NONE, &reply()))).is_ok());
    }

    const FORGED: Result<(), Refusal> = Err(Refusal::Unauthorised);
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
            bob.open_link(PORT, &bytes).unwrap();
            let bytes = bob.seal_routed(incarnation(1, 1), (VlanId::NONE, &reply()));
            alice.open_routed(&bytes).unwrap();
            let bytes = alice.seal_routed(CONTROLLER, (VlanId::NONE, &control(1)));
            controller.open_routed(&bytes).unwrap();
            let bytes = controller.seal_routed(incarnation(2, 1), (VlanId::NONE, &control(1)));
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
