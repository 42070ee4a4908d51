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
use axon_dcbx::{DcbPort, DcbxConfig, DcbxSettings, Mode, Recommendation, ports};
use axon_plane::dcb::DcbConfig;
use axon_plane::qcn::DefenceConfig;

/// Creates the DCBX state of the port to the fabric. `dcb` is the configuration of its plane.
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
