//! LLDP and DCBX of the agent as a neighbour of its switch.
//!
//! The agent is willing (IEEE 802.1Q clause 38.4). The switch decides which priorities have flow
//! control, in the standard's form or in CEE's. If the switch is willing, too, the tie rule
//! decides. Application priorities of the switch apply after the agent's own rules. While no switch
//! advertises, or several do, or its time to live is over, the agent's own configuration holds.
//! Scheduling is the agent's own: all priorities have equal shares. The agent advertises the
//! priorities with reaction points, so that the switch does not defend the domain against it.
//!
//! LLDP is then not forwarded between host and fabric: two neighbours at one port would count as
//! none.

use super::config::{AgentConfig, LldpSettings};
use alloc::vec::Vec;
use axon_dcbx::{DcbEvent, DcbPort, DcbxConfig, DcbxSettings, Mode, Recommendation, ports};
use axon_node::Drop;
use axon_plane::PlaneConfig;
use axon_plane::dcb::DcbConfig;
use axon_plane::meter::Meter;
use axon_plane::qcn::DefenceConfig;
use axon_wire::Time;

/// LLDP and DCBX at the port to the fabric.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    port: DcbPort,
    /// Rate limit of LLDPDUs: the same as for frames that one port of a switch punts to its control
    /// plane.
    meter: Meter,
}

impl Neighbour {
    /// Creates the state of the port. `dcb` is the configuration of its plane.
    pub(super) fn new(config: &AgentConfig, lldp: &LldpSettings, dcb: &DcbConfig) -> Neighbour {
        let meter = Meter::new(PlaneConfig::with_ports(2, config.mac).punt);
        Neighbour { port: port(config, lldp, dcb), meter }
    }

    /// Returns the DCBX state.
    pub(super) fn port(&self) -> &DcbPort {
        &self.port
    }

    /// Handles an LLDP frame, up to the rate limit. Returns the way in which the frame ends.
    pub(super) fn receive(&mut self, now: Time, frame: &[u8], out: &mut Vec<DcbEvent>) -> Drop {
        if !self.meter.admit(now) {
            return Drop::PuntLimit;
        }
        let before = self.port.agent().counters().received;
        self.port.receive(now, frame, out);
        match self.port.agent().counters().received > before {
            true => Drop::Consumed,
            false => Drop::Refused,
        }
    }

    /// Processes a carrier change.
    pub(super) fn link(&mut self, now: Time, up: bool, out: &mut Vec<DcbEvent>) {
        self.port.link(now, up, out);
    }

    /// Sends the LLDPDU that is due.
    pub(super) fn timeout(&mut self, now: Time, out: &mut Vec<DcbEvent>) {
        if self.port.deadline().is_some_and(|at| at <= now) {
            self.port.timeout(now, out);
        }
    }
}

fn port(config: &AgentConfig, lldp: &LldpSettings, dcb: &DcbConfig) -> DcbPort {
    let settings = DcbxSettings {
        mode: Mode::Auto,
        pfc_willing: true,
        recommendation: Recommendation::None,
        applications: config.rules.table(),
        applications_willing: true,
        tie: lldp.tie,
        ..DcbxSettings::default()
    };
    let dcb = DcbConfig { pfc: config.pfc, ..dcb.clone() };
    let reaction = config.reaction.as_ref();
    let dcbx = DcbxConfig {
        congestion: reaction
            .map(|one| DefenceConfig { cnpvs: one.priorities, ..DefenceConfig::default() }),
        ..DcbxConfig::for_plane(&dcb, &settings)
    };
    let who = (config.mac, lldp.system_name.as_str(), ports::truncated(&lldp.port_name));
    ports::port(who, lldp.agent, dcbx)
}
