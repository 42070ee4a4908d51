//! `axon agent`: flow control and congestion notification for a host that supports neither.

use crate::cli::daemon::DaemonArguments;
use anyhow::Result;
use axon_dcbx::TieRule;
use axon_dcbx::lldp::LldpConfig;
use axon_linux::agent::{self, AgentOptions};
use axon_plane::qcn::RpInterpretations;
use axon_switch::agent::{Rules, rules};
use axon_wire::Rate;
use axon_wire::cn::CnmFormat;
use axon_wire::dcbx::ieee::Application;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{Priority, PrioritySet};
use std::process::ExitCode;

/// Honour PFC, PAUSE and congestion notifications for the unmodified programs of this host
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 ended by SIGTERM or SIGINT; 2 it could not run, or wrong usage"
)]
pub struct Arguments {
    /// Interface for the programs, which has the IP addresses: a TAP device, made if missing
    #[arg(long, value_name = "IF")]
    host: String,
    /// Interface to the fabric, which needs no address
    #[arg(long, value_name = "IF")]
    port: String,
    /// Rate of the link to the fabric, 1kbps to 800Gbps, such as 100Mbps
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Rate,
    /// Maximum rate at which programs take frames from the fabric; no limit by default
    #[arg(long, value_name = "RATE", value_parser = rate)]
    host_rate: Option<Rate>,
    /// Use LLDP and DCBX: the switch decides which priorities have PFC, and the priority of frames
    /// that no rule fits. --pfc and --map hold until it advertises them
    #[arg(long)]
    dcbx: bool,
    /// Priorities with PFC, 0 to 7, such as 3,4. Without any, PAUSE is honoured
    #[arg(long, value_name = "LIST", value_parser = priority, value_delimiter = ',')]
    pfc: Vec<Priority>,
    /// Pause time in a PFC or PAUSE frame to the fabric, 2 to 65535 quanta of 512 bit times; a
    /// frame is sent again after half of it
    #[arg(long, value_name = "QUANTA", default_value_t = u16::MAX,
          value_parser = clap::value_parser!(u16).range(2..))]
    quanta: u16,
    /// Priority of matching frames, such as udp:4791=3, tcp:3260=4, port:2049=4, dscp:46=5,
    /// ethertype:0x8915=3 or default=1; may be given more than once. Frames with a tag keep
    /// theirs
    #[arg(long, value_name = "RULE", value_parser = rules::parse)]
    map: Vec<Application>,
    /// Priorities with congestion notification, 0 to 7, such as 3
    #[arg(long, value_name = "LIST", value_parser = priority, value_delimiter = ',')]
    cn: Vec<Priority>,
    #[command(flatten)]
    daemon: DaemonArguments,
}

fn rate(text: &str) -> Result<Rate, String> {
    axon_fabric::units::rate(text).map_err(|expected| format!("expected {expected}"))
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().ok().and_then(Priority::new);
    number.ok_or_else(|| "a priority is 0 to 7".to_owned())
}

/// Runs until SIGTERM or SIGINT.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let set = |list: &[Priority]| list.iter().copied().collect::<PrioritySet>();
    let agent = AgentOptions {
        name: arguments.host.clone(),
        host: arguments.host.clone(),
        port: arguments.port.clone(),
        rate: arguments.rate,
        host_rate: arguments.host_rate,
        pfc: set(&arguments.pfc),
        quanta: Quanta(arguments.quanta),
        rules: Rules::new(&arguments.map),
        notified: set(&arguments.cn),
        interpretations: RpInterpretations::default(),
        format: CnmFormat::default(),
        dcbx: arguments.dcbx.then(LldpConfig::default),
        tie: TieRule::default(),
    };
    agent.check().map_err(anyhow::Error::msg)?;
    agent::run(&agent, &arguments.daemon.options(None)?)?;
    Ok(ExitCode::SUCCESS)
}
