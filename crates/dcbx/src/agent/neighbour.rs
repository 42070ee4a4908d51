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

use super::config::{AgentConfig, LldpSettings};
use crate::{DcbPort, DcbxConfig, DcbxSettings, Mode, Recommendation, ports};
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::DefenceConfig;

/// The port to the fabric of an agent that speaks LLDP and does with frames as `dcb` says.
pub(super) fn port(config: &AgentConfig, lldp: &LldpSettings, dcb: &DcbConfig) -> DcbPort {
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
