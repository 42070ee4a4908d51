//! `axon agent`: Data Center Bridging for the unmodified programs of a host.
//!
//! The node ([`axon_dcbx::agent`]) stands between the interface that the host's programs use,
//! a TAP device (`HostPort`), and the port to the fabric. Both are in the network namespace
//! of the host, for the queues in front of the interface ([`queues`]) are what holds
//! programs back.

mod arguments;
mod host_port;
pub mod queues;
mod shaper;

pub use arguments::AgentArguments;
pub(crate) use host_port::HostPort;
pub use queues::HostQueues;

use crate::port::ETHERNET_BYTES;
use crate::process::{self, DaemonOptions};
use crate::record::{AgentSource, Identity, Setup, digest};
use crate::run::Clock;
use crate::slot::{Medium, PortSetup};
use crate::sys;
use anyhow::{Context, Error, Result};
use axon_dcbx::TieRule;
use axon_dcbx::agent::{AgentConfig, AgentNode, LldpSettings, Reaction, Rules};
use axon_dcbx::lldp::LldpConfig;
use axon_fabric::units::{LINK_RATES, LINK_RATES_EXPECTED};
use axon_node::NodeKind;
use axon_plane::qcn::{RpConfig, RpReadings};
use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Quanta;
use axon_wire::priority::PrioritySet;
use axon_wire::{Bytes, Incarnation, MacAddr, Rate, Span};

/// How long after an XOFF a host may still send at full rate: a frame in the making, a request to
/// the kernel, and longest of all the time in which a busy machine runs other processes.
const HOST_REACTION: Span = Span::from_secs(1);
/// What a priority may have here before the host is paused, as time on the link: enough to keep the
/// link busy until a host that was released sends.
const SHARE: Span = Span::from_millis(20);

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
    pub readings: RpReadings,
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
            if !sys::is_device_name(name) {
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

/// The configuration of an agent whose port to the fabric has this address and this MTU in bytes.
/// `seed` feeds the jitter of its reaction points.
pub(crate) fn config(agent: &AgentOptions, seed: u64, mac: MacAddr, mtu: usize) -> AgentConfig {
    let frame_bytes_max = mtu + ETHERNET_BYTES;
    let bytes = |time, rate: Rate| rate.bytes_in(time).0.max(4 * frame_bytes_max as u64);
    AgentConfig {
        rate: agent.rate,
        pfc: agent.pfc,
        pfc_quanta: agent.quanta,
        rules: agent.rules.clone(),
        frame_bytes_max,
        share: Bytes(bytes(SHARE, agent.rate)),
        headroom: Bytes(bytes(HOST_REACTION, agent.rate)),
        mac,
        reaction: (!agent.notified.is_empty()).then_some(Reaction {
            priorities: agent.notified,
            point: RpConfig { readings: agent.readings, ..RpConfig::scaled_for_port(agent.rate) },
            format: agent.format,
            seed,
        }),
        lldp: agent.dcbx.map(|lldp| LldpSettings {
            system_name: agent.name.clone(),
            port_name: agent.port.clone(),
            agent: lldp,
            tie: agent.tie,
        }),
    }
}

/// Runs an agent until SIGTERM or SIGINT.
///
/// # Errors
/// What [`AgentOptions::check`] finds; the port is not there; the interface of the programs cannot
/// be had; no right to packet sockets. Nothing is then left behind.
pub fn run(agent: &AgentOptions, options: &DaemonOptions) -> Result<()> {
    agent.check().map_err(Error::msg)?;
    let port = agent.port.as_str();
    let mtu = sys::device_mtu(port)
        .with_context(|| format!("there is no interface {port}; see `ip link`"))?;
    let mac = MacAddr(sys::device_mac(port)?);
    let seed = process::seed()?;
    let config = config(agent, seed, mac, mtu);
    let source = options.record.as_ref().map(|record| match &record.fabric {
        Some(fabric) => AgentSource::Fabric(fabric.clone()),
        None => AgentSource::Arguments(AgentArguments::of(agent)),
    });
    let identity = source.map(|of| Identity {
        kind: NodeKind::Agent,
        incarnation: Incarnation::default(),
        digest: digest(&config),
        setup: Setup::Agent { of, seed, mac, mtu_bytes: mtu as u64 },
    });
    let node = AgentNode::new(config)?;
    let queues = HostQueues { rate: agent.rate, rules: agent.rules.clone(), mtu };
    let host = agent.host.clone();
    let ports = vec![
        PortSetup {
            device: host,
            medium: Medium::Host(queues),
            rate: agent.host_rate,
            lossless: true,
        },
        PortSetup {
            device: port.into(),
            medium: Medium::Packet,
            rate: Some(agent.rate),
            lossless: true,
        },
    ];
    process::run(node, Clock::start(), (&agent.name, identity), ports, options)
}
