//! `axon agent`: flow control and congestion notification for a host that knows neither.

use crate::capture;
use crate::say::Usage;
use anyhow::Result;
use axon_dcbx::TieRule;
use axon_dcbx::agent::{Rules, rules};
use axon_dcbx::lldp::LldpConfig;
use axon_linux::agent::{self, AgentOptions};
use axon_linux::daemon::DaemonOptions;
use axon_plane::qcn::RpReadings;
use axon_wire::Rate;
use axon_wire::cn::CnmFormat;
use axon_wire::dcbx::ieee::Application;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::{Priority, PrioritySet};
use std::path::PathBuf;
use std::process::ExitCode;

/// Act on PFC, PAUSE and congestion notifications for the unmodified programs of this host
#[derive(clap::Args)]
pub struct Arguments {
    /// The interface for the programs: a TAP device, made if it is not there. Addresses belong
    /// here
    #[arg(long, value_name = "IF")]
    host: String,
    /// The interface to the fabric, which needs no address
    #[arg(long, value_name = "IF")]
    port: String,
    /// The rate of the link to the fabric: 100Mbps
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Rate,
    /// Take frames from the fabric for the programs no faster than this; as fast as they come
    /// if not said
    #[arg(long, value_name = "RATE", value_parser = rate)]
    host_rate: Option<Rate>,
    /// Advertise LLDP and DCBX to the switch: which priorities have PFC is for it to say, and so are
    /// frames that no rule fits. While it does not advertise, --pfc and --map hold
    #[arg(long)]
    dcbx: bool,
    /// Priorities with PFC: 3,4. Without any, PAUSE is in use
    #[arg(long, value_name = "LIST", value_parser = priority, value_delimiter = ',')]
    pfc: Vec<Priority>,
    /// The pause time of XOFF frames to the fabric, in quanta of 512 bit times; they are repeated
    /// at half time
    #[arg(long, value_name = "QUANTA", default_value_t = u16::MAX,
          value_parser = clap::value_parser!(u16).range(2..))]
    quanta: u16,
    /// Which frames have which priority: udp:4791=3, tcp:3260=4, port:2049=4, dscp:46=5,
    /// ethertype:0x8915=3 or default=1; may be given more than once. Frames with a tag keep theirs
    #[arg(long, value_name = "RULE", value_parser = rules::parse)]
    map: Vec<Application>,
    /// Priorities in which congestion notifications are acted on: 3
    #[arg(long, value_name = "LIST", value_parser = priority, value_delimiter = ',')]
    cn: Vec<Priority>,
    /// Answer status requests on this socket
    #[arg(long, value_name = "PATH")]
    status_socket: Option<PathBuf>,
    #[command(flatten)]
    capture: capture::Arguments,
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
        readings: RpReadings::default(),
        format: CnmFormat::default(),
        dcbx: arguments.dcbx.then(LldpConfig::default),
        tie: TieRule::default(),
    };
    agent.check().map_err(Usage)?;
    let options = DaemonOptions {
        status_socket: arguments.status_socket.clone(),
        capture: arguments.capture.options(),
        ..DaemonOptions::default()
    };
    agent::run(&agent, &options)?;
    Ok(ExitCode::SUCCESS)
}
