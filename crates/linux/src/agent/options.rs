//! Configuration of an agent.

use axon_dcbx::TieRule;
use axon_dcbx::lldp::LldpConfig;
use axon_fabric::assemble::is_device_name;
use axon_fabric::units::{LINK_RATES, LINK_RATES_EXPECTED};
use axon_plane::qcn::RpInterpretations;
use axon_switch::agent::Rules;
use axon_wire::Rate;
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::PrioritySet;
/// Configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptions {
    /// Name in status and log.
    pub name: String,
    /// Interface of the host's programs: a TAP device that is created if it is missing.
    pub host: String,
    /// Port to the fabric.
    pub port: String,
    /// Rate of the link to the fabric.
    pub rate: Rate,
    /// Rate at which the host receives frames. If absent, the rate is unlimited.
    pub host_rate: Option<Rate>,
    /// Priorities with PFC, unless the switch advertises others. If empty, the agent honours PAUSE.
    pub pfc: PrioritySet,
    /// Pause time of (repeated) XOFF frames to the fabric, in quanta of 512 bit times.
    pub quanta: Quanta,
    /// Rules that map frames to priorities, with precedence over those of the switch.
    pub rules: Rules,
    /// Priorities in which the agent acts on congestion notifications.
    pub notified: PrioritySet,
    /// Interpretation of the reaction point, where sources differ.
    pub interpretations: RpInterpretations,
    /// Interpretation of the congestion notification format, where sources differ.
    pub format: CnmFormat,
    /// LLDP and DCBX settings of the port to the fabric. If absent, both are off.
    pub dcbx: Option<LldpConfig>,
    /// Tie rule for PFC if switch and agent are both willing. Both ends must use the same rule.
    pub tie: TieRule,
}

impl AgentOptions {
    /// Checks the options, before anything is created.
    ///
    /// # Errors
    /// Names the wrong option and the expected value. Refused are invalid interface names, one
    /// interface for both ends, and link rates that do not exist.
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
