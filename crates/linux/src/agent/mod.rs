//! `axon agent`: Data Center Bridging for the unmodified programs of a host.
//!
//! The node ([`axon_switch::agent`]) connects the interface of the host's programs, a TAP device
//! (`HostPort`), to the port to the fabric. Both are in the network namespace of the host, because
//! the queues in front of the interface ([`queues`]) are what blocks the programs.

mod arguments;
mod host_port;
mod options;
pub mod queues;
mod shaper;

pub use arguments::AgentArguments;
pub(crate) use host_port::HostPort;
pub use options::AgentOptions;
pub use queues::HostQueues;

use crate::clock::Clock;
use crate::device_port::{Medium, PortSetup};
use crate::process::{self, DaemonOptions};
use crate::record::{AgentSource, Identity, Setup, digest};
use crate::seed::seed;
use crate::sys;
use anyhow::{Context, Error, Result};
use axon_node::NodeKind;
use axon_plane::qcn::RpConfig;
use axon_switch::agent::{AgentConfig, AgentNode, LldpSettings, Reaction};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::{Bytes, Incarnation, MacAddr, Rate, Span};

/// Longest time for which a host may still send at full rate after an XOFF. It covers a frame in
/// progress, a request to the kernel, and, longest of all, other processes on a busy machine.
const HOST_REACTION: Span = Span::from_secs(1);
/// Buffer share of a priority before the host is paused, as time on the link. It keeps the link
/// busy until a resumed host sends.
const SHARE: Span = Span::from_millis(20);

/// Returns the configuration of an agent whose port to the fabric has this MAC address and MTU (in
/// bytes). `seed` initializes the random generator for the jitter of its reaction points.
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
            point: RpConfig {
                interpretations: agent.interpretations,
                ..RpConfig::scaled_for_port(agent.rate)
            },
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
/// The errors of [`AgentOptions::check`]; a missing port to the fabric; an interface for the
/// programs that cannot be opened; no permission for packet sockets. In each case, everything
/// created is removed again.
pub fn run(agent: &AgentOptions, options: &DaemonOptions) -> Result<()> {
    agent.check().map_err(Error::msg)?;
    let port = agent.port.as_str();
    let mtu = sys::device_mtu(port)
        .with_context(|| format!("there is no interface {port}; see `ip link`"))?;
    let mac = MacAddr(sys::device_mac(port)?);
    let seed = seed()?;
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
            host_mtu: None,
        },
        PortSetup {
            device: port.into(),
            medium: Medium::Packet,
            rate: Some(agent.rate),
            lossless: true,
            host_mtu: None,
        },
    ];
    process::run(node, Clock::start(), (&agent.name, identity), (ports, None), None, options)
}
