//! The agent as a neighbour of its switch: it says by LLDP what it does, and does as it is told.
//!
//! In plain English: the agent is willing (IEEE 802.1Q clause 38.4). Which priorities have flow
//! control is for the switch to say, in the standard's form or the older one; if that is willing,
//! too, the tie rule decides. Application priorities of the switch are asked after the
//! agent's own. While no switch speaks, or several do, or it has fallen silent, holds what the
//! agent was told at its start. How classes take turns is its own affair: at a host's edge all
//! priorities have equal turns. It says which priorities have reaction points, so that its switch
//! need not defend the domain against it.
//!
//! A host that speaks LLDP itself is not heard by the fabric then, nor the fabric by it: two
//! neighbours at one port would count as none.

use super::{AgentConfig, AgentNode, FABRIC, HOST};
use crate::lldp::LldpConfig;
use crate::{Asked, DcbEvent, DcbPort, DcbxConfig, Mode, Recommendation, TieRule, ports};
use alloc::string::String;
use alloc::vec::Vec;
use axon_node::Drop;
use axon_plane::FrameMeta;
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::DefenceConfig;
use axon_wire::{Frame, Time, lldp};

/// How an agent speaks LLDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// The host's name; at most [`NAME_BYTES_MAX`](ports::NAME_BYTES_MAX) bytes of it are told.
    pub system_name: String,
    /// The name of its port to the fabric, likewise.
    pub port_name: String,
    /// Timers and bounds.
    pub lldp: LldpConfig,
    /// Whose PFC holds if the switch is willing, too; it must hold the same rule.
    pub tie: TieRule,
}

/// The port to the fabric of an agent that speaks LLDP and does with frames as `dcb` says.
pub(super) fn port(config: &AgentConfig, speech: &Speech, dcb: &DcbConfig) -> DcbPort {
    let asked = Asked {
        mode: Mode::Auto,
        pfc_willing: true,
        recommendation: Recommendation::None,
        applications: config.rules.table(),
        applications_willing: true,
        tie: speech.tie,
        ..Asked::default()
    };
    let dcb = DcbConfig { pfc: config.pfc, ..dcb.clone() };
    let reaction = config.reaction.as_ref();
    let dcbx = DcbxConfig {
        congestion: reaction
            .map(|one| DefenceConfig { cnpvs: one.priorities, ..DefenceConfig::default() }),
        ..DcbxConfig::for_plane(&dcb, &asked)
    };
    let who = (config.mac, speech.system_name.as_str(), ports::told(&speech.port_name));
    ports::port(who, speech.lldp, dcbx)
}

impl<B: Frame> AgentNode<B> {
    /// Whether this frame is LLDP's, and this agent speaks it.
    pub(super) fn is_for_neighbour(&self, frame: &[u8]) -> bool {
        self.neighbour.is_some() && lldp::is_lldp(frame)
    }

    /// Takes a frame with LLDP's EtherType, if there are not too many; a host's goes no further.
    pub(super) fn hear_lldp(&mut self, now: Time, meta: FrameMeta<B>) {
        let mut reason = Drop::Refused;
        if meta.ingress != HOST && !self.lldp.admit(now) {
            reason = Drop::PuntLimit;
        } else if meta.ingress != HOST {
            self.with_neighbour(now, |port, out| {
                let before = port.agent().counters().received;
                port.receive(now, meta.frame.bytes(), out);
                if port.agent().counters().received > before {
                    reason = Drop::Consumed;
                }
            });
        }
        self.ports.discard(meta, reason, &mut self.actions);
    }

    /// The carrier of the port to the fabric has come or gone.
    pub(super) fn neighbour_link(&mut self, now: Time, up: bool) {
        self.with_neighbour(now, |port, out| port.link(now, up, out));
    }

    /// Says what is due.
    pub(super) fn neighbour_timeout(&mut self, now: Time) {
        let due = |port: &DcbPort| port.deadline().is_some_and(|at| at <= now);
        if self.neighbour.as_ref().is_some_and(due) {
            self.with_neighbour(now, |port, out| port.timeout(now, out));
        }
    }

    /// Lets the port work, and does what comes of it.
    fn with_neighbour(&mut self, now: Time, work: impl FnOnce(&mut DcbPort, &mut Vec<DcbEvent>)) {
        let Some(port) = &mut self.neighbour else { return };
        let mut events = Vec::new();
        work(port, &mut events);
        if events.contains(&DcbEvent::Operational) {
            let told = port.operational();
            let (pfc, rules) = (told.pfc, self.config.rules.and(&told.peer_applications));
            self.rules = rules;
            self.set_pfc(now, pfc);
        }
        for event in events {
            if let DcbEvent::Send(frame) = event {
                let meta = self.ports.originate(now, B::with_headroom(0, &frame));
                self.ports.deliver(now, meta, FABRIC, None, &mut self.actions);
            }
        }
    }
}
