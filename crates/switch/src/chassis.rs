//! Parts common to switches and controllers: data plane, message seals and discovery.

mod congested;

use super::lacp_ports::LacpPorts;
use super::pause_meter::PauseMeter;
use super::prober::{Due, Prober};
use super::refused::RefusedSettings;
use alloc::vec::Vec;
use axon_dcbx::DcbPorts;
use axon_link::config::NodeConfig;
use axon_link::discovery::Discovery;
use axon_link::effect::Effect;
use axon_link::seal::{Opened, Sealer};
use axon_node::{
    Action, Capabilities, Command, CommandError, Dataplane, Done, Drop, Input, KeyMismatch, Keys,
    NodeKind, Note, Punt, Refusal, Reply, Request,
};
use axon_wire::header::{HeaderView, PacketType};
use axon_wire::message::{ArpReply, ArpTarget, Message, Role};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, Hops, Incarnation, MacAddr, PortNo, Time, lacp, link, lldp};

/// Number of refused control messages, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// Returns the number refused for this reason.
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize]
    }

    /// Returns the number refused for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn count(&mut self, refusal: Refusal) {
        self.0[refusal as usize] += 1;
    }
}

pub(super) struct Chassis<D, E> {
    pub plane: D,
    /// Capabilities of the data plane, read once.
    pub has: Capabilities,
    pub incarnation: Incarnation,
    mac: MacAddr,
    role: Role,
    sealer: Sealer,
    pub discovery: Discovery,
    /// LLDP and DCBX on all ports; `None` if the node does not run them.
    pub dcbx: Option<DcbPorts>,
    /// LACP on the ports that belong to bonds.
    pub lacp: LacpPorts,
    pub prober: Prober,
    pub refusals: Refusals,
    /// Port settings that the data plane has refused.
    pub settings: RefusedSettings,
    pauses: PauseMeter,
    pub actions: Vec<Action>,
    /// Emptied vector of the previous round, kept to save allocations.
    spare: Vec<Action>,
    pub effects: Vec<E>,
}

/// Input for the control plane.
#[allow(clippy::large_enum_variant, reason = "one at a time, and never stored")]
pub(super) enum Arrival {
    /// A sealed, source-routed message.
    Message { ingress: PortNo, reverse: Hops, opened: Opened },
    /// A host's Ethernet frame without a route.
    HostFrame { port: PortNo, frame: FrameBuf },
    /// The frame was handled or dropped.
    Done,
}

impl<D: Dataplane, E: From<Effect>> Chassis<D, E> {
    pub(crate) fn new(config: &NodeConfig, plane: D, role: Role) -> Chassis<D, E> {
        let has = plane.capabilities();
        Chassis {
            incarnation: config.incarnation,
            mac: config.mac,
            role,
            sealer: Sealer::new(&config.keys, config.incarnation, role),
            discovery: Discovery::new(config, (has.ports, has.hop_width), role),
            dcbx: None,
            lacp: LacpPorts::new(&[], config.mac),
            prober: Prober::new(config.incarnation.node, config.mac),
            refusals: Refusals::default(),
            settings: RefusedSettings::default(),
            pauses: PauseMeter::default(),
            plane,
            has,
            actions: Vec::new(),
            spare: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Configures a fabric without a controller.
    pub(crate) fn among_switches(&mut self) {
        self.sealer.among_switches();
    }

    /// Returns the plane's actions so far. Actions caused by handling them are for the next round.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        core::mem::replace(&mut self.actions, core::mem::take(&mut self.spare))
    }

    /// Returns the emptied vector of [`Chassis::take_actions`] for reuse.
    pub(crate) fn keep_for_next_round(&mut self, emptied: Vec<Action>) {
        self.spare = emptied;
    }

    /// Passes an input to the data plane and to discovery.
    pub(crate) fn feed(&mut self, now: Time, input: Input) {
        // A frame held for its tail precedes the input.
        self.plane.handle(now, Input::Timeout, &mut self.actions);
        match input {
            Input::Link { port, up } => {
                self.plane.handle(now, Input::Link { port, up }, &mut self.actions);
                // The hosts of a bond move before the port loses its state. For LACP the port is up
                // once it is a host port (`port_kind.rs`).
                if !up {
                    self.lacp_link(now, port, false);
                }
                self.discovery.link(now, port, up, &mut self.effects);
                self.dcbx_link(now, port, up);
            }
            Input::Frame { .. } | Input::TxDone { .. } => {
                self.plane.handle(now, input, &mut self.actions);
            }
            Input::Command(command) => self.command(now, command),
            Input::Timeout => {}
        }
    }

    /// Passes an input to the data plane alone, where no frame is held for its tail: the fast path
    /// of almost every frame. Actions for the control plane are kept for the next round; returns
    /// whether there are none.
    ///
    /// # Errors
    /// Returns the input if it is not for the data plane alone.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        now: Time,
        input: Input,
        out: &mut Vec<Action>,
    ) -> Result<bool, Input> {
        let start = out.len();
        match input {
            Input::Frame { .. } | Input::TxDone { .. } => self.plane.handle(now, input, out),
            Input::Link { .. } | Input::Timeout | Input::Command(_) => return Err(input),
        }
        let inward = out[start..].iter().any(is_inward);
        if inward {
            self.actions.extend(out.drain(start..));
        }
        Ok(!inward)
    }

    /// Carries out a command of an operator or the runtime and replies, with the reason if it is
    /// refused.
    fn command(&mut self, now: Time, Command { id, request }: Command) {
        let result = match request {
            Request::Probe(plan) => (self.prober.begin(now, plan, (&self.has, &self.plane)))
                .map(Done::Probe)
                .map_err(CommandError::Probe),
            Request::Rekey(keys) => self.rekey(&keys).map_err(CommandError::Keys),
            // The controller's node handles policy changes itself.
            Request::Tables(_) | Request::Policy(_) => {
                Err(CommandError::Unsupported(match self.role {
                    Role::Switch => NodeKind::Switch,
                    Role::Controller => NodeKind::Controller,
                }))
            }
        };
        self.actions.push(Action::Reply(Reply { id, result }));
    }

    /// Replaces the keys of the node. They must be of the same node and role.
    fn rekey(&mut self, keys: &Keys) -> Result<Done, KeyMismatch> {
        match self.role {
            Role::Switch => keys.check_switch(self.incarnation.node)?,
            Role::Controller => keys.check_controller()?,
        }
        self.sealer.rekey(keys);
        Ok(Done::Rekeyed)
    }

    /// Sends the probes that are due.
    pub(crate) fn probe(&mut self, now: Time) {
        while let Some(due) = self.prober.poll(now) {
            match due {
                Due::Routed(hops, payload) => self.inject(now, PacketType::Probe, &hops, &payload),
                Due::Ether(port, frame) => self.send_host(now, port, &frame),
            }
        }
    }

    /// Returns when the plane or the control plane is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.plane.deadline(), self.control_deadline()].into_iter().flatten().min()
    }

    /// Returns when discovery, a probe, LLDP or a refused setting is due.
    pub(crate) fn control_deadline(&self) -> Option<Time> {
        let lldp = self.dcbx.as_ref().and_then(DcbPorts::deadline);
        let own = [self.prober.deadline(), self.discovery.deadline(), self.settings.deadline()];
        own.into_iter().chain([lldp, self.lacp.deadline()]).flatten().min()
    }

    /// Opens a punted packet. Handles it if it is for discovery. A packet that no part can use is
    /// dropped and counted.
    pub(crate) fn arrival(
        &mut self,
        now: Time,
        ingress: PortNo,
        frame: FrameBuf,
        (punt, header_bytes): (Punt, u16),
        out: &mut Vec<Action>,
    ) -> Arrival {
        let arrival = match punt {
            Punt::LinkLocal => {
                let known = self.link_frame(now, ingress, frame.bytes());
                let reason = if known { Drop::Consumed } else { Drop::Refused };
                out.push(self.ended(ingress, reason, frame));
                return Arrival::Done;
            }
            Punt::Miss => {
                let mut frame = frame;
                frame.pop_front(usize::from(header_bytes));
                if !self.forged(frame.bytes()) {
                    return Arrival::HostFrame { port: ingress, frame };
                }
                self.refuse(ingress, Refusal::FromHost, out);
                out.push(self.ended(ingress, Drop::Refused, frame));
                return Arrival::Done;
            }
            Punt::Addressed => self.routed(now, ingress, frame.bytes(), out),
            // The plane of a switch traps no frames, because it has no trap entries.
            Punt::Error | Punt::Trap => None,
            Punt::EtherProbe => {
                self.prober.ether_came(now, ingress, frame.bytes()).then_some(Arrival::Done)
            }
        };
        let reason = if arrival.is_some() { Drop::Consumed } else { Drop::Refused };
        out.push(self.ended(ingress, reason, frame));
        arrival.unwrap_or(Arrival::Done)
    }

    /// Handles a frame to a link-local address: discovery, LLDP or LACP.
    fn link_frame(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        if lldp::is_lldp(frame) {
            return self.receive_lldp(now, port, frame);
        }
        if lacp::is_slow(frame) {
            return self.receive_lacp(now, port, frame);
        }
        let Some(payload) = link::parse(frame) else {
            return false;
        };
        match self.sealer.open_link(port, payload) {
            Ok(opened) => {
                self.discovery.message(now, port, &opened, &mut self.effects);
                let neighbour = self.discovery.neighbour(port);
                if neighbour.is_some_and(|neighbour| neighbour.incarnation == opened.from) {
                    self.sealer.neighbour(port, opened.from.node);
                }
                true
            }
            Err(refusal) => {
                self.effects.push(Effect::Refuse { port, refusal }.into());
                false
            }
        }
    }

    /// Returns whether a host's frame imitates a source-routed control packet.
    fn forged(&self, frame: &[u8]) -> bool {
        HeaderView::parse(frame, self.has.hop_width).is_ok_and(|header| {
            header.packet_type() == PacketType::Control
                && axon_wire::envelope::Envelope::parse(header.payload()).is_ok()
        })
    }

    fn routed(
        &mut self,
        now: Time,
        ingress: PortNo,
        packet: &[u8],
        out: &mut Vec<Action>,
    ) -> Option<Arrival> {
        let view = HeaderView::parse(packet, self.has.hop_width).ok()?;
        match view.packet_type() {
            PacketType::Control => {
                if let Some(number) = self.sealer.open_echo(ingress, view.payload()) {
                    self.discovery.echoed(now, ingress, number);
                    return Some(Arrival::Done);
                }
            }
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
        match self.sealer.open_routed(view.payload()) {
            Ok(opened) => Some(Arrival::Message { ingress, reverse: view.reverse(), opened }),
            Err(refusal) => {
                self.refuse(ingress, refusal, out);
                None
            }
        }
    }

    /// Counts a frame that ends in the control plane and returns it to the runtime.
    pub(crate) fn ended(&mut self, ingress: PortNo, reason: Drop, frame: FrameBuf) -> Action {
        self.plane.count_drop(ingress, reason);
        Action::Dropped { ingress, reason, frame }
    }

    /// Counts and reports a refused message.
    pub(crate) fn refuse(&mut self, port: PortNo, refusal: Refusal, out: &mut Vec<Action>) {
        self.refusals.count(refusal);
        out.push(Action::Note(Note::Refused { port, refusal }));
    }

    /// Seals a message and sends it to the other end of a link.
    pub(crate) fn send_link(
        &mut self,
        now: Time,
        port: PortNo,
        to: Option<Incarnation>,
        message: &Message,
    ) {
        let sealed = self.sealer.seal_link(to, message);
        let frame = link::emit(self.mac, &sealed);
        self.plane.send(now, port, FrameBuf::with_headroom(0, &frame), &mut self.actions);
    }

    /// Seals a message about hosts of a VLAN and sends it along a source route.
    pub(crate) fn send_routed(
        &mut self,
        now: Time,
        hops: &Hops,
        to: Incarnation,
        message: (VlanId, &Message),
    ) {
        let sealed = self.sealer.seal_routed(to, message);
        self.inject(now, PacketType::Control, hops, &sealed);
    }

    /// Seals an echo and sends it along a source route that leads back to `port`.
    pub(crate) fn send_echo(&mut self, now: Time, port: PortNo, hops: &Hops, number: u64) {
        let sealed = self.sealer.seal_echo(port, number);
        self.inject(now, PacketType::Control, hops, &sealed);
    }

    /// Adds the grant, which proves to the source switch that this controller authorised the
    /// answer.
    pub(crate) fn grant(&mut self, vlan: VlanId, target: &mut ArpTarget) {
        self.sealer.grant(vlan, target);
    }

    /// Accepts the answer of a switch as authorised by this controller.
    ///
    /// # Errors
    /// The grant is of another incarnation of the controller, or is invalid.
    pub(crate) fn accept_grant(
        &mut self,
        controller: Option<Incarnation>,
        (vlan, reply): (VlanId, &ArpReply),
    ) -> Result<(), Refusal> {
        let current = controller.filter(|controller| controller.number == reply.stamp.epoch);
        self.sealer.accept_grant(current.ok_or(Refusal::Unexpected)?, (vlan, reply))
    }

    /// Sends a packet of this control plane.
    fn inject(&mut self, now: Time, kind: PacketType, hops: &Hops, payload: &[u8]) {
        self.plane.inject(now, kind, hops, payload, &mut self.actions);
    }

    /// Sends a plain Ethernet frame to a host.
    pub(crate) fn send_host(&mut self, now: Time, port: PortNo, frame: &[u8]) {
        self.plane.send(now, port, FrameBuf::with_headroom(0, frame), &mut self.actions);
    }
}

/// Returns whether an action of a data plane is for its control plane.
#[inline]
fn is_inward(action: &Action) -> bool {
    matches!(action, Action::Punt { .. } | Action::RouteChanged(_) | Action::Lost)
}
