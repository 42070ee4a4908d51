//! How an agent is configured.

use axon_dcbx::TieRule;
use axon_dcbx::agent::Rules;
use axon_dcbx::lldp::LldpConfig;
use axon_fabric::assemble::is_device_name;
use axon_fabric::units::{LINK_RATES, LINK_RATES_EXPECTED};
use axon_plane::qcn::RpInterpretations;
use axon_wire::Rate;
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::PrioritySet;
/// How an agent is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptions {
    /// What it is called in status and log.
    pub name: String,
    /// The interface of the host's programs; a TAP device that is made if it is not there.
    pub host: String,
    /// The port to the fabric.
    pub port: String,
    /// The rate of its link.
    pub rate: Rate,
    /// How fast the host takes frames; as fast as they come without.
    pub host_rate: Option<Rate>,
    /// Priorities with flow control, if the switch does not say otherwise; with none, PAUSE is
    /// acted on.
    pub pfc: PrioritySet,
    /// The pause time of XOFF frames to the fabric, in quanta of 512 bit times; they are repeated.
    pub quanta: Quanta,
    /// Which frames have which priority; asked before what the switch says.
    pub rules: Rules,
    /// Priorities in which congestion notifications are acted on.
    pub notified: PrioritySet,
    /// How their reaction points are read, where sources differ.
    pub interpretations: RpInterpretations,
    /// How notifications are read, likewise.
    pub format: CnmFormat,
    /// How LLDP and DCBX are spoken at the port to the fabric; not at all without.
    pub dcbx: Option<LldpConfig>,
    /// Whose PFC holds if the switch is as willing as the agent; both must hold the same rule.
    pub tie: TieRule,
}

impl AgentOptions {
    /// Whether an agent can be configured like this, before anything is made for it.
    ///
    /// # Errors
    /// What is wrong and what was expected: names that no interface can have, one interface as both
    /// ends, or rates that no link has.
    pub fn check(&self) -> Result<(), String> {
        for name in [&self.host, &self.port] {
            if !is_device_name(name) {
                return Err(format!(
                    "{name:?} cannot be an interface; expected 1 to 15 bytes without blanks, \
                     slashes, colons and per cent signs"
                ));
            }
        }
        if self.host == self.port {
            return Err(format!(
                "{} cannot be both ends; expected the interface of the programs and another one \
                 to the fabric",
                self.host
            ));
        }
        let rates = [Some(self.rate), self.host_rate];
        let is_wrong = |rate: &Rate| !LINK_RATES.contains(&rate.bits_per_second());
        match rates.into_iter().flatten().find(is_wrong) {
            Some(rate) => Err(format!("no link has {rate}; expected {LINK_RATES_EXPECTED}")),
            None => Ok(()),
        }
    }
}
