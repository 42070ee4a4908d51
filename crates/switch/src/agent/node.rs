//! Node of the agent: frames and time in, actions out.

mod lldp;

use super::Rules;
use super::config::{AgentConfig, FABRIC, HOST, dcb, group};
use super::limiters::Limiters;
use super::neighbour::Neighbour;
use alloc::vec::Vec;
use axon_dcbx::DcbPort;
use axon_node::{Action, Awaited, Drop, Input, Node, NodeKind, Shortcuts};
use axon_plane::qcn::{RateLimiter, RpError};
use axon_plane::schedule::FrameCost;
use axon_plane::{FrameMeta, HeaderKind, Ports, ethernet};
use axon_wire::cn::{self, CnmError, CnmFrame};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::vlan::{self, VlanTag};
use axon_wire::{Bytes, Time};

/// Node of an agent: a bridge between a host and the fabric.
#[derive(Clone, Debug)]
pub struct AgentNode {
    ports: Ports,
    config: AgentConfig,
    limiters: Limiters,
    neighbour: Option<Neighbour>,
    /// The rules in force.
    rules: Rules,
    /// Scratch memory, kept between inputs.
    actions: Vec<Action>,
}

impl AgentNode {
    /// Creates an agent whose ports have no carrier yet.
    ///
    /// # Errors
    /// Invalid variables of the reaction points.
    pub fn new(config: AgentConfig) -> Result<AgentNode, RpError> {
        let limiters = Limiters::new(&config)?;
        let mut ports = Ports::new(2, Bytes(config.frame_bytes_max as u64));
        let dcb = dcb(&config);
        let neighbour = config.lldp.as_ref().map(|lldp| Neighbour::new(&config, lldp, &dcb));
        let set = ports.set_dcb(dcb, Priority::MAX);
        set.expect("deficit round robin with a quantum is a valid schedule");
        let (rules, pfc) = (config.rules.clone(), config.pfc);
        let actions = Vec::new();
        let mut agent = AgentNode { ports, config, limiters, neighbour, rules, actions };
        agent.ports.set_pfc(Time::ZERO, HOST, PrioritySet::ALL, &mut agent.actions);
        agent.set_pfc(Time::ZERO, pfc);
        Ok(agent)
    }

    /// Returns the configuration.
    #[cfg(test)]
    pub(crate) fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Returns its ports: queues, memory, counters.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the reaction point of a priority, if it has one.
    pub(crate) fn limiter(&self, priority: Priority) -> Option<&RateLimiter> {
        self.limiters.of(priority)
    }

    /// Returns the number of congestion notifications for a priority that were acted on.
    pub(crate) fn cnms(&self, priority: Priority) -> u64 {
        self.limiters.cnms(priority)
    }

    /// Returns the state of LLDP and DCBX at the port to the fabric; `None` if LLDP is off.
    pub(crate) fn neighbour(&self) -> Option<&DcbPort> {
        self.neighbour.as_ref().map(Neighbour::port)
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Enables PFC for these priorities at the fabric; PAUSE if there are none. A priority group
    /// without headroom never sends XOFF.
    fn set_pfc(&mut self, now: Time, pfc: PrioritySet) {
        for priority in Priority::ALL {
            let lossless = pfc.is_empty() || pfc.contains(priority);
            let headroom = if lossless { self.config.headroom } else { Bytes(0) };
            if let Some(dcb) = self.ports.dcb_mut() {
                dcb.set_group(FABRIC, priority, group(&self.config, headroom));
            }
        }
        self.ports.set_pfc(now, FABRIC, pfc, &mut self.actions);
    }

    fn receive(&mut self, now: Time, mut meta: FrameMeta) {
        let is_lldp = self.is_for_neighbour(meta.frame.bytes());
        let out = &mut self.actions;
        if let Err(reason) = self.ports.receive(now, &meta) {
            return self.ports.discard(meta, reason, out);
        }
        if let Some(reason) = ethernet::fault(meta.frame.bytes(), self.config.frame_bytes_max) {
            return self.ports.discard(meta, reason, out);
        }
        if is_lldp {
            return self.receive_lldp(now, meta);
        }
        if meta.kind == HeaderKind::MacControl {
            return self.ports.mac_control(now, meta, out);
        }
        if meta.ingress == FABRIC {
            let kind = vlan::ethertype_of(meta.frame.bytes()).map(|(kind, _)| kind);
            if kind.is_some_and(|kind| [cn::ETHERTYPE_CNM, cn::ETHERTYPE_TAG].contains(&kind)) {
                return self.notified(now, meta);
            }
            return self.ports.deliver(now, meta, HOST, None, out);
        }
        let priority = self.rules.priority_of(meta.frame.bytes());
        if priority != meta.priority {
            meta.priority = priority;
            let tag = VlanTag::of_priority(priority);
            if vlan::insert(&mut meta.frame, tag).is_err() {
                return self.ports.discard(meta, Drop::NoHeadroom, out);
            }
        }
        self.ports.deliver(now, meta, FABRIC, None, out);
    }

    /// Handles a frame that may be a congestion notification. One for a priority without a reaction
    /// point is refused, because the host does not know it either.
    fn notified(&mut self, now: Time, mut meta: FrameMeta) {
        let format = self.config.reaction.as_ref().map(|reaction| reaction.format);
        let read = CnmFrame::parse(meta.frame.bytes(), &format.unwrap_or_default());
        let cnm = match read {
            Ok(CnmFrame { cnm, .. }) => cnm,
            Err(CnmError::EtherType) => {
                // Another frame of a flow with a CN-TAG, which the host does not know.
                cn::untag(&mut meta.frame);
                return self.ports.deliver(now, meta, HOST, None, &mut self.actions);
            }
            Err(_) => return self.ports.discard(meta, Drop::Malformed, &mut self.actions),
        };
        let known = self.limiters.notified(now, &cnm, &mut self.ports, &mut self.actions);
        let reason = if known { Drop::Consumed } else { Drop::Refused };
        self.ports.discard(meta, reason, &mut self.actions);
    }

    /// Accounts for the rates of leaving frames, and removes priority tags towards the host.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        while !self.actions.is_empty() {
            for mut action in core::mem::take(&mut self.actions) {
                match &mut action {
                    Action::Transmit { port: HOST, frame, .. } => vlan::remove_priority(frame),
                    Action::Transmit { port: FABRIC, frame, .. } => {
                        let priority = vlan::priority_of(frame.bytes());
                        let cost = FrameCost::WIRE.of(frame.bytes().len() as u32);
                        let sent = (priority, Bytes(cost.into()));
                        self.limiters.sent(now, sent, &mut self.ports, &mut self.actions);
                    }
                    _ => {}
                }
                out.push(action);
            }
        }
    }
}

impl Node for AgentNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                self.receive(now, FrameMeta::ethernet(frame, port, complete_at, intact));
            }
            Input::TxDone { port } => self.ports.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                self.ports.link(now, port, up, &mut self.actions);
                if port == FABRIC {
                    self.with_neighbour(now, |neighbour, out| neighbour.link(now, up, out));
                }
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Agent)));
            }
        }
        self.ports.timeout(now, &mut self.actions);
        self.limiters.recover(now, &mut self.ports, &mut self.actions);
        self.with_neighbour(now, |neighbour, out| neighbour.timeout(now, out));
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let neighbour = self.neighbour().and_then(DcbPort::deadline);
        [self.limiters.deadline(), self.ports.deadline(), neighbour].into_iter().flatten().min()
    }
}

impl Shortcuts for AgentNode {
    fn awaited(&mut self) -> Awaited {
        self.ports.awaited()
    }
}
