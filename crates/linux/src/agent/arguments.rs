//! Command-line arguments of an agent without a fabric file, as stored in recordings.

use super::options::AgentOptions;
use axon_dcbx::TieRule;
use axon_dcbx::lldp::LldpConfig;
use axon_plane::qcn::RpInterpretations;
use axon_switch::agent::Rules;
use axon_wire::Rate;
use axon_wire::cn::CnmFormat;
use axon_wire::dcbx::ieee::{Application, Selector};
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{Priority, PrioritySet};
use serde::{Deserialize, Serialize};

/// Command-line options of `axon agent`. The other agent options can be set in a fabric file only
/// and have their defaults here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentArguments {
    name: String,
    host: String,
    port: String,
    rate: Rate,
    host_rate: Option<Rate>,
    pfc: PrioritySet,
    quanta: u16,
    /// Priority, selector and protocol of each rule.
    rules: Vec<(Priority, u8, u16)>,
    notified: PrioritySet,
    dcbx: bool,
}

impl AgentArguments {
    /// Returns the arguments that produce these options.
    pub(crate) fn of(options: &AgentOptions) -> AgentArguments {
        let rule = |rule: &Application| (rule.priority, rule.selector.value(), rule.protocol);
        AgentArguments {
            name: options.name.clone(),
            host: options.host.clone(),
            port: options.port.clone(),
            rate: options.rate,
            host_rate: options.host_rate,
            pfc: options.pfc,
            quanta: options.quanta.0,
            rules: options.rules.table().iter().map(rule).collect(),
            notified: options.notified,
            dcbx: options.dcbx.is_some(),
        }
    }
}

impl From<AgentArguments> for AgentOptions {
    fn from(arguments: AgentArguments) -> AgentOptions {
        let rule = |&(priority, selector, protocol): &(Priority, u8, u16)| {
            let selector = Selector::new(selector)?;
            Some(Application { priority, selector, protocol })
        };
        let rules: Vec<Application> = arguments.rules.iter().filter_map(rule).collect();
        AgentOptions {
            name: arguments.name,
            host: arguments.host,
            port: arguments.port,
            rate: arguments.rate,
            host_rate: arguments.host_rate,
            pfc: arguments.pfc,
            quanta: Quanta(arguments.quanta),
            rules: Rules::new(&rules),
            notified: arguments.notified,
            interpretations: RpInterpretations::default(),
            format: CnmFormat::default(),
            dcbx: arguments.dcbx.then(LldpConfig::default),
            tie: TieRule::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_switch::agent::rules;

    #[test]
    fn the_options_of_an_agent_come_back_from_its_arguments() {
        let table = ["udp:4791=3", "tcp:3260=4", "dscp:46=5", "default=1"];
        let table = table.map(|rule| rules::parse(rule).unwrap());
        let options = AgentOptions {
            name: "tap0".into(),
            host: "tap0".into(),
            port: "eth1".into(),
            rate: Rate::from_bits_per_second(1_000_000).unwrap(),
            host_rate: None,
            pfc: [Priority::MAX].into_iter().collect(),
            quanta: Quanta(99),
            rules: Rules::new(&table),
            notified: PrioritySet::EMPTY,
            interpretations: RpInterpretations::default(),
            format: CnmFormat::default(),
            dcbx: Some(LldpConfig::default()),
            tie: TieRule::default(),
        };
        assert_eq!(AgentOptions::from(AgentArguments::of(&options)), options);
    }
}
