//! What switches and controllers have in common: a plane, a seal, discovery.

use super::prober::{Due, Prober};
use crate::config::NodeConfig;
use crate::discovery::Discovery;
use crate::effect::Effect;
use crate::seal::{Opened, Sealer};
use alloc::vec::Vec;
use axon_dcbx::DcbPorts;
use axon_node::{Action, Drop, Input, Note, PortKind, Punt, Refusal};
use axon_plane::Plane;
use axon_plane::dcb::DcbConfig;
use axon_wire::congestion::Congestion;
use axon_wire::header::{self, HeaderView, PacketType};
use axon_wire::message::{Message, Role};
use axon_wire::priority::Priority;
use axon_wire::{Frame, Hops, Life, MacAddr, PortNo, Route, Time, link, lldp};

/// How many control messages were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// How many for this reason.
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

pub(super) struct Chassis<B> {
    pub plane: Plane<B>,
    pub life: Life,
    mac: MacAddr,
    sealer: Sealer,
    pub discovery: Discovery,
    /// LLDP and DCBX at all ports, where the node is to speak them.
    pub dcbx: Option<DcbPorts>,
    pub prober: Prober,
    pub refusals: Refusals,
    pub actions: Vec<Action<B>>,
    /// The emptied vector of the round before, so that a frame costs no allocation.
    spare: Vec<Action<B>>,
    pub effects: Vec<Effect>,
}

/// Something for the control plane.
#[allow(clippy::large_enum_variant, reason = "one at a time, and never stored")]
pub(super) enum Arrival<B> {
    /// A sealed message that came by a source route.
    Message { ingress: PortNo, reverse: Hops, opened: Opened },
    /// A host's Ethernet frame without a route.
    HostFrame { port: PortNo, frame: B },
    /// Nothing more to do.
    Done,
}

impl<B: Frame> Chassis<B> {
    pub fn new(config: &NodeConfig, role: Role) -> Chassis<B> {
        Chassis {
            life: config.life,
            mac: config.mac,
            plane: Plane::new(config.plane.clone()),
            sealer: Sealer::new(&config.key, config.life),
            discovery: Discovery::new(config, role),
            dcbx: (config.dcbx.as_ref())
                .map(|said| DcbPorts::new(said, config.mac, config.plane.ports)),
            prober: Prober::new(config.life.node, config.mac),
            refusals: Refusals::default(),
            actions: Vec::new(),
            spare: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The plane's actions so far; what it does while they are looked at is another round.
    pub fn take_actions(&mut self) -> Vec<Action<B>> {
        core::mem::replace(&mut self.actions, core::mem::take(&mut self.spare))
    }

    /// Gives back what [`Chassis::take_actions`] took, emptied.
    pub fn keep_for_next_round(&mut self, emptied: Vec<Action<B>>) {
        self.spare = emptied;
    }

    /// Hands an input to the plane and to discovery.
    pub fn feed(&mut self, now: Time, input: Input<B>) {
        // What was held for its tail came before whatever comes now.
        self.plane.timeout(now, &mut self.actions);
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.plane.receive(now, port, frame, complete_at, intact, &mut self.actions);
            }
            Input::TxDone { port } => self.plane.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                self.plane.link(now, port, up, &mut self.actions);
                self.discovery.link(now, port, up, &mut self.effects);
                self.dcbx_link(now, port, up);
            }
            Input::Timeout => {}
        }
    }

    /// Hands an input to the plane alone, where nothing is held for its tail: what nearly every
    /// frame needs, and every wire that nobody waits for. What there is for the control plane
    /// is kept for the next round; says whether there is nothing.
    #[inline]
    pub fn pass(&mut self, now: Time, input: Input<B>, out: &mut Vec<Action<B>>) -> bool {
        let start = out.len();
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.plane.receive(now, port, frame, complete_at, intact, out);
            }
            Input::TxDone { port } => self.plane.tx_done(now, port, out),
            Input::Link { .. } | Input::Timeout => return false,
        }
        let punted = out[start..].iter().any(|action| matches!(action, Action::Punt { .. }));
        if punted {
            self.actions.extend(out.drain(start..));
        }
        !punted
    }

    /// Sends the probes that are due.
    pub fn probe(&mut self, now: Time) {
        while let Some(due) = self.prober.poll(now) {
            match due {
                Due::Routed(hops, payload) => self.inject(now, PacketType::Probe, &hops, &payload),
                Due::Ether(port, frame) => self.send_host(now, port, &frame),
            }
        }
    }

    /// When the plane or the control plane wants to be called.
    pub fn deadline(&self) -> Option<Time> {
        [self.plane.deadline(), self.control_deadline()].into_iter().flatten().min()
    }

    /// When discovery, a probe or LLDP wants to be called.
    pub fn control_deadline(&self) -> Option<Time> {
        let lldp = self.dcbx.as_ref().and_then(DcbPorts::deadline);
        [self.prober.deadline(), self.discovery.deadline(), lldp].into_iter().flatten().min()
    }

    /// Opens a punted packet. What discovery can handle is handled here; what nobody can use
    /// ends here, counted.
    pub fn arrival(
        &mut self,
        now: Time,
        ingress: PortNo,
        frame: B,
        punt: Punt,
        out: &mut Vec<Action<B>>,
    ) -> Arrival<B> {
        let arrival = match punt {
            Punt::LinkLocal => {
                let known = self.link_frame(now, ingress, frame.bytes());
                let reason = if known { Drop::Consumed } else { Drop::Refused };
                out.push(self.ended(ingress, reason, frame));
                return Arrival::Done;
            }
            Punt::Miss => {
                if self.forged(frame.bytes()) {
                    self.refuse(ingress, Refusal::FromHost, out);
                    None
                } else {
                    return self.host_frame(ingress, frame, out);
                }
            }
            Punt::Addressed => self.routed(now, ingress, frame.bytes(), out),
            Punt::Error => None,
            Punt::EtherProbe => {
                self.prober.ether_came(now, ingress, frame.bytes()).then_some(Arrival::Done)
            }
        };
        let reason = if arrival.is_some() { Drop::Consumed } else { Drop::Refused };
        out.push(self.ended(ingress, reason, frame));
        arrival.unwrap_or(Arrival::Done)
    }

    /// A frame to the nearest-bridge address: ours, or somebody's LLDP.
    fn link_frame(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        if lldp::is_lldp(frame) {
            return self.hear_lldp(now, port, frame);
        }
        let Some(payload) = link::parse(frame) else {
            return false;
        };
        match self.sealer.open(payload, true) {
            Ok(opened) => {
                self.discovery.message(now, port, &opened, &mut self.effects);
                true
            }
            Err(refusal) => {
                self.effects.push(Effect::Refuse { port, refusal });
                false
            }
        }
    }

    /// Whether a host's frame is really a source-routed control packet.
    fn forged(&self, packet: &[u8]) -> bool {
        let width = self.plane.config().hop_width;
        let Ok(outer) = HeaderView::parse(packet, width) else {
            return false;
        };
        HeaderView::parse(outer.payload(), width).is_ok_and(|inner| {
            inner.packet_type() == PacketType::Control
                && axon_wire::envelope::Envelope::parse(inner.payload()).is_ok()
        })
    }

    /// Takes the Axon header off a host's frame that missed.
    fn host_frame(&mut self, port: PortNo, mut frame: B, out: &mut Vec<Action<B>>) -> Arrival<B> {
        let header = HeaderView::parse(frame.bytes(), self.plane.config().hop_width)
            .map(|view| view.header_bytes());
        match header {
            Ok(bytes) => {
                frame.pop_front(bytes);
                Arrival::HostFrame { port, frame }
            }
            Err(_) => {
                out.push(self.ended(port, Drop::Malformed, frame));
                Arrival::Done
            }
        }
    }

    fn routed(
        &mut self,
        now: Time,
        ingress: PortNo,
        packet: &[u8],
        out: &mut Vec<Action<B>>,
    ) -> Option<Arrival<B>> {
        let view = HeaderView::parse(packet, self.plane.config().hop_width).ok()?;
        match view.packet_type() {
            PacketType::Control => {}
            PacketType::Probe => {
                let awaited = self.prober.routed_came(now, view.payload());
                return awaited.then_some(Arrival::Done);
            }
            PacketType::Congestion => {
                let heard = self.congested(now, view.payload(), out);
                return heard.then_some(Arrival::Done);
            }
            PacketType::Ethernet | PacketType::Error => return None,
        }
        match self.sealer.open(view.payload(), false) {
            Ok(opened) => Some(Arrival::Message { ingress, reverse: view.reverse(), opened }),
            Err(refusal) => {
                self.refuse(ingress, refusal, out);
                None
            }
        }
    }

    /// A full output somewhere has refused a frame of one of our hosts: those at its port
    /// pause for a maximum frame, and an operator may hear of it.
    fn congested(&mut self, now: Time, payload: &[u8], out: &mut Vec<Action<B>>) -> bool {
        let Ok(Congestion { host_port: port, switch, egress, .. }) = Congestion::parse(payload)
        else {
            return false;
        };
        if self.plane.kind(port) != Some(PortKind::Host) {
            return false;
        }
        self.plane.pause_hosts(now, port, &mut self.actions);
        out.push(Action::Note(Note::Congested { port, switch, egress }));
        true
    }

    /// Counts a frame that ends in the control plane and hands it back to the body.
    pub fn ended(&mut self, ingress: PortNo, reason: Drop, frame: B) -> Action<B> {
        self.plane.count_drop(ingress, reason);
        Action::Dropped { ingress, reason, frame }
    }

    /// The same for a frame of our own making that no port has seen: it counts as one that
    /// the control plane sent, too, so that every drop has a frame.
    pub fn ended_unsent(&mut self, ingress: PortNo, reason: Drop, frame: B) -> Action<B> {
        self.plane.count_own_drop(ingress, frame.bytes().len(), reason);
        Action::Dropped { ingress, reason, frame }
    }

    /// Counts a refused message and tells of it.
    pub fn refuse(&mut self, port: PortNo, refusal: Refusal, out: &mut Vec<Action<B>>) {
        self.refusals.0[refusal as usize] += 1;
        out.push(Action::Note(Note::Refused { port, refusal }));
    }

    /// Seals a message for the other end of a link and sends it.
    pub fn send_link(&mut self, now: Time, port: PortNo, to: Option<Life>, message: &Message) {
        let sealed = self.sealer.seal(to, message);
        let frame = link::emit(self.mac, &sealed);
        self.plane.send_raw(now, port, B::with_headroom(0, &frame), &mut self.actions);
    }

    /// Seals a message and sends it by a source route.
    pub fn send_routed(&mut self, now: Time, hops: &Hops, to: Life, message: &Message) {
        let sealed = self.sealer.seal(Some(to), message);
        self.inject(now, PacketType::Control, hops, &sealed);
    }

    /// Sends a packet of this control plane's own.
    fn inject(&mut self, now: Time, kind: PacketType, hops: &Hops, payload: &[u8]) {
        self.send(now, (kind, self.plane.config().control_priority), hops, payload);
    }

    /// Sends a frame of a host at `ingress` on its way by `route`, as the plane would have done.
    pub fn forward(&mut self, now: Time, ingress: PortNo, route: &Route, frame: &mut [u8]) {
        let priority = self.plane.defend(ingress, frame);
        let on_layer = |dcb: &DcbConfig| dcb.layers.on(priority, route.layer);
        let priority = self.plane.config().dcb.as_deref().map_or(Priority::ZERO, on_layer);
        self.send(now, (PacketType::Ethernet, priority), &route.hops, frame);
    }

    /// Sends an Axon packet from this control plane; a route that no header can hold is a
    /// drop for want of headroom.
    fn send(
        &mut self,
        now: Time,
        (kind, priority): (PacketType, Priority),
        hops: &Hops,
        payload: &[u8],
    ) {
        let width = self.plane.config().hop_width;
        let length = width.header_bytes(hops.len());
        let mut frame = B::with_headroom(length, payload);
        let built = frame
            .push_front(length)
            .is_ok_and(|()| header::emit(frame.bytes_mut(), width, kind, hops, &[]).is_ok());
        if built {
            if priority != Priority::ZERO {
                header::set_priority(frame.bytes_mut(), width, priority);
            }
            self.plane.inject(now, frame, &mut self.actions);
        } else {
            let action = self.ended_unsent(PortNo::CONTROL, Drop::NoHeadroom, frame);
            self.actions.push(action);
        }
    }

    /// Sends a plain Ethernet frame to a host.
    pub fn send_host(&mut self, now: Time, port: PortNo, frame: &[u8]) {
        self.plane.send_raw(now, port, B::with_headroom(0, frame), &mut self.actions);
    }
}
