//! A switch or a controller as a process: from a fabric file and a name to a running node.

use crate::agent::{self, AgentOptions};
use crate::dataplane;
use crate::incarnation;
use crate::inspect::{Controller, Switch};
use crate::record::{Identity, RecordOptions, RecordSetup, Setup, digest};
use crate::run::{Body, Clock, Inspect, RunOptions};
use crate::slot::{Medium, PortSetup};
use anyhow::{Context, Result, bail};
use axon_capture::pcap::CaptureOptions;
use axon_dcbx::agent::Rules;
use axon_fabric::assemble::{controller_config, port_name, switch_config, switch_index};
use axon_fabric::dcb::FlowControl;
use axon_fabric::model::{End, Fabric};
use axon_node::{Node, NodeKind};
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, PortNo, Time};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// What a daemon may be told beside its fabric and its name.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    /// Where to answer `status`; nowhere if `None`.
    pub status_socket: Option<PathBuf>,
    /// Where to write what the ports carry.
    pub capture: Option<CaptureOptions>,
    /// Where the node keeps its last incarnation, so that a clock that was set back does not
    /// make its neighbours refuse it; nowhere if `None`.
    pub state: Option<PathBuf>,
    /// Where to record every input of the node.
    pub record: Option<RecordOptions>,
    /// Ports of a switch, as `s1-p4`, that are TAP devices: made if they are not there.
    pub taps: Vec<String>,
}

/// Runs switch `name` of the fabric on the ports `name-p0`, `name-p1`, ... of this network
/// namespace, until SIGTERM or SIGINT. Ports whose device is not there are down.
///
/// # Errors
/// No such switch, its data plane lacks what the fabric needs, none of its ports has the name of a TAP port, no right to open packet
/// sockets, no capture file, or a state file that cannot be read or written.
pub fn switch(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    let index = switch_index(fabric, name)
        .with_context(|| format!("fabric {} has no switch {name}", fabric.name))?;
    dataplane::check(fabric).with_context(|| format!("fabric {}", fabric.name))?;
    let mut ports = switch_ports(fabric, index);
    for tap in &options.taps {
        let port = ports.iter_mut().find(|port| port.device == *tap);
        let port = port.with_context(|| format!("{name} has no port {tap} to be a TAP device"))?;
        port.medium = Medium::Tap;
    }
    let clock = Clock::start();
    let (number, seed) = (incarnation::next(&clock, options.state.as_deref())?, seed()?);
    let config = switch_config(fabric, index, number, seed);
    let fabric = options.record.as_ref().and_then(|record| record.fabric.clone());
    let identity = fabric.map(|fabric| Identity {
        kind: NodeKind::Switch,
        incarnation: config.control.node.incarnation,
        digest: digest(&config),
        setup: Setup::Switch { fabric, seed },
    });
    let node = Switch::new(config.on_software());
    run(node, clock, (name, identity), ports, options)
}

/// Runs the agent at the edge of host `name`, whose interface is `h1-p0` and whose port to the
/// fabric is `h1-e0`, in this network namespace; see [`switch`].
///
/// # Errors
/// No such host, or hosts of this fabric have no agents; and as [`agent::run`].
pub fn host_agent(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    agent::run(&agent_options(fabric, name)?, options)
}

/// What the agent of host `name` is told. With DCBX it begins with the PFC of its switch, for that
/// may be willing and follow it; which frames have which priority the switch tells.
pub(crate) fn agent_options(fabric: &Fabric, name: &str) -> Result<AgentOptions> {
    let host = fabric.hosts.iter().find(|host| host.name == name);
    let host = host.with_context(|| format!("fabric {} has no host {name}", fabric.name))?;
    let dcb = fabric.dcb.as_ref().filter(|dcb| !dcb.applications.is_empty());
    let dcb = dcb.context("hosts of a fabric without dcb.applications have no agents")?;
    let said = dcb.dcbx.as_ref().map(|dcbx| dcbx.advertised(host.switch));
    let pfc = said.and_then(|said| said.pfc).unwrap_or(dcb.lossless);
    let applications = if said.is_none() { &dcb.applications[..] } else { &[] };
    Ok(AgentOptions {
        name: name.into(),
        host: port_name(name, PortNo(0)),
        port: edge_name(name),
        rate: host.wire.rate,
        host_rate: None,
        pfc: if dcb.flow_control == FlowControl::Pfc { pfc } else { PrioritySet::EMPTY },
        quanta: dcb.quanta,
        rules: Rules::new(applications),
        notified: dcb.reaction_points(name),
        readings: dcb.cn.as_ref().map(|cn| cn.reaction).unwrap_or_default(),
        format: dcb.cn.as_ref().map(|cn| cn.point.format).unwrap_or_default(),
        dcbx: dcb.dcbx.as_ref().map(|dcbx| dcbx.lldp),
        tie: said.map(|said| said.asked.tie).unwrap_or_default(),
    })
}

/// The end in a host's namespace of its cable, where the agent is: `h1-e0`.
pub fn edge_name(host: &str) -> String {
    format!("{host}-e0")
}

/// Runs the fabric's controller on its one port `c1-p0`; see [`switch`].
///
/// # Errors
/// As [`switch`].
pub fn controller(fabric: &Fabric, options: &DaemonOptions) -> Result<()> {
    let clock = Clock::start();
    let (number, seed) = (incarnation::next(&clock, options.state.as_deref())?, seed()?);
    let config = controller_config(fabric, number, seed);
    let (started_at, name) = (clock.now(), fabric.controller.name.as_str());
    let ports = controller_ports(fabric);
    let fabric = options.record.as_ref().and_then(|record| record.fabric.clone());
    let identity = fabric.map(|fabric| Identity {
        kind: NodeKind::Controller,
        incarnation: config.control.node.incarnation,
        digest: digest(&config),
        setup: Setup::Controller { fabric, seed, started_at },
    });
    let node = Controller::new(config.on_software(started_at));
    run(node, clock, (name, identity), ports, options)
}

/// Runs a node until SIGTERM or SIGINT. Without an identity it is not recorded.
pub(crate) fn run<N: Node<FrameBuf> + Inspect>(
    node: N,
    clock: Clock,
    (name, identity): (&str, Option<Identity>),
    ports: Vec<PortSetup>,
    options: &DaemonOptions,
) -> Result<()> {
    // Without the right to packet sockets every port would be silently down.
    if let Err(error) = crate::sys::packet_socket() {
        bail!("{name} cannot open packet sockets ({error}); it needs CAP_NET_RAW");
    }
    // Without the right to it, a busy machine may make links slower than they are meant to
    // be: `late` in the status tells.
    if let Err(error) = crate::sys::prefer_this_process() {
        tracing::info!(node = name, %error, "does not run before all others");
    }
    let record = options.record.as_ref().zip(identity.as_ref());
    let record = record.map(|(record, identity)| {
        let devices = ports.iter().map(|port| port.device.clone()).collect();
        RecordSetup::new(record, identity, name, devices, clock.unix_nanos(Time::ZERO))
    });
    let options = RunOptions {
        name: name.into(),
        ports,
        status_socket: options.status_socket.clone(),
        capture: options.capture.clone(),
        record: record.transpose()?,
    };
    let mut body =
        Body::open(node, clock, options).with_context(|| format!("cannot start {name}"))?;
    tracing::info!(node = name, "running");
    body.run().with_context(|| format!("{name} ended"))
}

/// Unpredictable bits. The device blocks at boot until the kernel has some.
pub(crate) fn seed() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/random")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The ports of switch number `switch`, each paced to the rate of its link. A port that
/// nothing is plugged into has no device and stays down.
fn switch_ports(fabric: &Fabric, switch: usize) -> Vec<PortSetup> {
    let mut rates = BTreeMap::new();
    for link in &fabric.links {
        rates.insert(link.a, link.wire.rate);
        rates.insert(link.b, link.wire.rate);
    }
    for host in &fabric.hosts {
        rates.insert(End { switch: host.switch, port: host.port }, host.wire.rate);
    }
    rates.insert(fabric.controller.at, fabric.controller.wire.rate);
    let Some(owner) = fabric.switches.get(switch) else {
        return Vec::new();
    };
    let setup = |port| PortSetup {
        device: port_name(&owner.name, PortNo(port)),
        medium: Medium::Packet,
        rate: rates.get(&End { switch, port: PortNo(port) }).copied(),
        lossless: fabric.dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty()),
    };
    (0..owner.ports).map(setup).collect()
}

/// The controller's one port.
fn controller_ports(fabric: &Fabric) -> Vec<PortSetup> {
    vec![PortSetup {
        device: port_name(&fabric.controller.name, PortNo(0)),
        medium: Medium::Packet,
        rate: Some(fabric.controller.wire.rate),
        lossless: false,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_dcbx::TieRule;

    const TEXT: &str = "name: a\ntopology: {ring: {switches: 3, hosts_per_switch: 1}}\n\
        links: {rate: 100Mbps}\ndcb:\n  classes:\n  - {priorities: [0, 1, 2, 5, 6], ets: 40}\n  \
        - {priorities: [3, 4], ets: 60, lossless: true}\n  - {priorities: [7]}\n  \
        applications: [udp:4791=3]\n";

    fn agents(dcbx: &str) -> [AgentOptions; 2] {
        let fabric = axon_fabric::parse("a.yaml".as_ref(), &format!("{TEXT}{dcbx}")).unwrap();
        ["h1", "h2"].map(|name| agent_options(&fabric, name).unwrap())
    }

    #[test]
    fn an_agent_beside_a_willing_switch_begins_with_its_pfc_and_its_tie_rule() {
        let [silent, _] = agents("");
        assert_eq!((silent.pfc.bits(), silent.rules.ordered().len()), (0x18, 1));
        assert_eq!(silent.dcbx, None);
        let overrides = "overrides: [{switches: [s2], pfc: [3], tie: lower}]";
        let [one, other] = agents(&format!("  dcbx: {{willing: pfc, tie: higher, {overrides}}}\n"));
        assert_eq!((one.pfc.bits(), other.pfc.bits()), (0x18, 0x08));
        assert_eq!((one.tie, other.tie), (TieRule::HigherKeeps, TieRule::LowerKeeps));
        assert!(one.dcbx.is_some() && one.rules.ordered().is_empty(), "the switch tells them");
    }
}
