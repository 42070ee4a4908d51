//! Runs a switch or controller as a process: from a fabric file and a name to a running node.

pub use crate::process::DaemonOptions;

use crate::agent::{self, AgentOptions};
use crate::agent_port::AgentPortSetup;
use crate::clock::Clock;
use crate::dataplane;
use crate::dataplane_choice::{DataplaneChoice, check_recorded, choose};
use crate::device_port::{Medium, PortSetup};
use crate::incarnation::{self, beside};
use crate::kernel::ports::{KernelPorts, lock};
use crate::kernel::{Hook, Kernel, KernelSettings};
use crate::machine::{self, Machine};
use crate::port::link_mtu;
use crate::process::run;
use crate::programmable::{self, Programmable};
use crate::record::{Identity, Setup, digest};
use crate::seed::seed;
use crate::store::Store;
use anyhow::{Context, Result, bail};
use axon_fabric::Problem;
use axon_fabric::assemble::{
    SwitchSetup, controller_config, port_name, switch_config, switch_id, switch_index,
};
use axon_fabric::dcb::FlowControl;
use axon_fabric::model::{AgentSetup, DataplaneKind, End, Fabric, Network};
use axon_node::{Dataplane, NodeKind};
use axon_plane::Lookups;
use axon_programs::axon::AxonTables;
use axon_rtl::RtlDataplane;
use axon_switch::SwitchNode;
use axon_switch::agent::Rules;
use axon_wire::priority::PrioritySet;
use axon_wire::{Incarnation, PortNo};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Reason why the kernel does not carry the frames of a recorded switch.
pub const RECORDED: &str = "a recording (--record) holds every frame, so the process carries them";
const TAPPED: &str = "the far ends of TAP devices are in the process, so it carries the frames";

/// Reason why the kernel does not carry the frames of a switch with agents.
pub const AGENTS: &str = "the far ends of agent ports are in the process, so it carries the frames";
/// Folder of agent sockets on a machine without a lab, with a subfolder for each fabric.
const AGENT_SOCKETS: &str = "/run/axon";

/// Maximum number of switches that an error lists.
const NAMES_MAX: usize = 8;
/// Limit on the frames per millisecond that a tc switch passes from one port to its process. It is
/// a fraction of the capacity of the process, so that no port starves the others.
const NODE_FRAMES_PER_MS: u16 = 20;

/// Checks that this machine can run switch `name` of `fabric`. [`switch`] performs this check
/// first.
///
/// # Errors
/// There is no such switch, the keys belong to another switch, the data plane refuses the fabric,
/// or there is no such port.
pub fn check_switch(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    let (index, _) = checked_switch(fabric, name, options)?;
    chosen(fabric, index, options)?;
    programmable::check(fabric)
}

/// Selects the data plane of a switch with these options.
fn chosen(
    fabric: &Fabric,
    switch: usize,
    options: &DaemonOptions,
) -> Result<DataplaneChoice, Problem> {
    let choice = choose(fabric, switch, &allowed(fabric, switch, options))?;
    if options.record.is_some() {
        check_recorded(fabric, switch, &choice)?;
    }
    Ok(choice)
}

/// Returns the data planes that this machine allows a switch with these options. Some options need
/// every frame in the process.
fn allowed(fabric: &Fabric, switch: usize, options: &DaemonOptions) -> Machine {
    if agents_at(fabric, switch).next().is_some() {
        return Machine::without(AGENTS);
    }
    match options {
        DaemonOptions { record: Some(_), .. } => Machine::without(RECORDED),
        DaemonOptions { taps, .. } if !taps.is_empty() => Machine::without(TAPPED),
        DaemonOptions { machine, capture: Some(_), .. } => machine.captured(),
        DaemonOptions { machine, .. } => machine.clone(),
    }
}

/// Performs [`check_switch`] and returns the index of the switch and its ports.
///
/// # Errors
/// There is no such switch, the keys belong to another switch, the data plane refuses the fabric,
/// or there is no such port.
fn checked_switch(
    fabric: &Fabric,
    name: &str,
    options: &DaemonOptions,
) -> Result<(usize, Vec<PortSetup>)> {
    let index = switch_index(fabric, name).with_context(|| {
        let all: Vec<&str> = fabric.switches.iter().map(|one| one.name.as_str()).collect();
        let first = all[..all.len().min(NAMES_MAX)].join(" ");
        let more = if all.len() > NAMES_MAX { " ..." } else { "" };
        format!("fabric {} has no switch {name}; it has {first}{more}", fabric.name)
    })?;
    (fabric.keys.check_switch(switch_id(index))).with_context(|| {
        format!(
            "fabric {}: expected the keys of {name}, as `axon key FILE --switch {name} --fabric \
             FABRIC` writes them where the master key is",
            fabric.name
        )
    })?;
    dataplane::check(fabric).with_context(|| format!("fabric {}", fabric.name))?;
    let mut ports = switch_ports(fabric, index);
    for agent in agents_at(fabric, index) {
        let setup = AgentPortSetup::of(&agent_socket(fabric, &agent.name, options), &agent.port);
        setup.check().with_context(|| format!("agent {} of {name}", agent.name))?;
        if let Some(port) = ports.get_mut(agent.at.port.index()) {
            (port.medium, port.rate, port.host_mtu) = (Medium::Agent(setup), None, None);
        }
    }
    for tap in &options.taps {
        let port = ports.iter_mut().find(|port| port.device == *tap);
        let port = port.with_context(|| format!("{name} has no port {tap} to be a TAP device"))?;
        if let Medium::Agent(_) = port.medium {
            bail!("{tap} is the port of an agent; expected a free one, or that of a link");
        }
        port.medium = Medium::Tap;
    }
    Ok((index, ports))
}

/// Runs switch `name` of the fabric on the ports `name-p0`, `name-p1`, ... in this network
/// namespace, until SIGTERM or SIGINT. Ports without a device are down.
///
/// # Errors
/// There is no such switch, or the keys belong to another node. The data plane lacks a capability
/// that the fabric needs. The switch does not have a given TAP port. There is no permission to open
/// packet sockets. The capture file cannot be created. Or another process uses the state file, or
/// the file cannot be read or written.
pub fn switch(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    let (index, ports) = checked_switch(fabric, name, options)?;
    let choice = chosen(fabric, index, options)?;
    for agent in agents_at(fabric, index) {
        let socket = agent_socket(fabric, &agent.name, options);
        let folder = socket.parent().unwrap_or(Path::new("/"));
        // Labs that root runs have their folders here as well. They are private.
        (std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder))
            .with_context(|| format!("agent {}: cannot make {}", agent.name, folder.display()))?;
    }
    if fabric.network == Network::Program {
        return program(fabric, (name, index), ports, choice, options);
    }
    let clock = Clock::start();
    // The lock is held until the daemon ends.
    let (started, seed) = (incarnation::next(&clock, options.state.as_deref())?, seed()?);
    let config = switch_config(fabric, index, started.number, seed);
    if let Some(hook) = Hook::of(choice.carrier) {
        return on_kernel(fabric, name, (config, ports), (hook, choice), clock, options);
    }
    // An earlier process may have ended and left the kernel's data plane forwarding.
    if let Some(pins) = options.pins.clone().or_else(|| machine::pins_there(&fabric.name, name)) {
        leave_kernel(&pins, &ports)?;
    }
    let fabric = options.record.as_ref().and_then(|record| record.fabric.clone());
    let identity = fabric.map(|fabric| Identity {
        kind: NodeKind::Switch,
        incarnation: config.control.edge.node.incarnation,
        digest: digest(&config),
        setup: Setup::Switch { fabric, seed },
    });
    let name = (name, identity);
    if choice.carrier == DataplaneKind::Rtl {
        let device = RtlDataplane::new(config.plane)?.with_own_clock();
        let node = SwitchNode::<_>::new(config.control, device);
        return run(node, clock, name, (ports, None), Some((choice, None)), options);
    }
    if choice.carrier == DataplaneKind::Pipeline {
        let tables = AxonTables::with_config(&config.plane);
        let plane = axon_plane::Plane::with_lookups(config.plane, tables);
        let node = SwitchNode::<_>::new(config.control, plane);
        return run(node, clock, name, (ports, None), Some((choice, None)), options);
    }
    let node = config.on_software();
    run(node, clock, name, (ports, None), Some((choice, None)), options)
}

/// Returns the agents that attach to a switch.
pub fn agents_at(fabric: &Fabric, switch: usize) -> impl Iterator<Item = &AgentSetup> {
    fabric.agents.iter().filter(move |agent| agent.at.switch == switch)
}

/// Returns the socket at which agent `name` of a fabric attaches. It is `NAME.sock` in the folder
/// of its switch's status socket, or `/run/axon/FABRIC/NAME.sock` if the switch has no status
/// socket.
pub fn agent_socket(fabric: &Fabric, name: &str, options: &DaemonOptions) -> PathBuf {
    let beside = options.status_socket.as_deref().and_then(Path::parent);
    let usual = || Path::new(AGENT_SOCKETS).join(&fabric.name);
    beside.map_or_else(usual, Path::to_owned).join(format!("{name}.sock"))
}

/// Runs a programmable switch. It stores no incarnation number, because it seals no messages.
fn program(
    fabric: &Fabric,
    (name, index): (&str, usize),
    ports: Vec<PortSetup>,
    choice: DataplaneChoice,
    options: &DaemonOptions,
) -> Result<()> {
    let (clock, seed) = (Clock::start(), seed()?);
    let (node, config) = match options.record {
        Some(_) => Programmable::recordable(fabric, index, seed)?,
        None => Programmable::of(fabric, index, seed)?,
    };
    let text = options.record.as_ref().and_then(|record| record.fabric.clone());
    let identity = text.map(|fabric| Identity {
        kind: NodeKind::Programmable,
        incarnation: Incarnation::default(),
        digest: digest(&config),
        setup: Setup::Switch { fabric, seed },
    });
    run(node, clock, (name, identity), (ports, None), Some((choice, None)), options)
}

/// Runs a switch whose frames the kernel carries. The kernel continues to carry them if the process
/// ends other than by SIGTERM or SIGINT.
fn on_kernel(
    fabric: &Fabric,
    name: &str,
    (config, ports): (SwitchSetup, Vec<PortSetup>),
    (hook, choice): (Hook, DataplaneChoice),
    clock: Clock,
    options: &DaemonOptions,
) -> Result<()> {
    let pins = match &options.pins {
        Some(pins) => pins.clone(),
        None => machine::pins(&fabric.name, name)?,
    };
    let software = axon_plane::Plane::new(config.plane);
    let has = Dataplane::capabilities(&software);
    let settings = KernelSettings {
        hook,
        hop_width: fabric.hop_width,
        ports: has.ports,
        routes_per_port_max: has.routes_per_port_max,
        route_bytes_max: has.route_bytes_max,
        frame_bytes_max: has.frame_bytes_max,
        node_frames_per_ms: NODE_FRAMES_PER_MS,
    };
    let kernel = KernelPorts::open(&pins, name, settings).with_context(|| {
        format!("cannot start {name} on the data plane {}", choice.carrier.setting())
    })?;
    let node = SwitchNode::<_>::new(config.control, kernel.plane(software)?);
    let mut held = ports.clone();
    if hook == Hook::Xdp {
        // XDP enforces no rates, so none is reported.
        held.iter_mut().for_each(|port| port.rate = None);
    }
    let devices = (held, None);
    run(node, clock, (name, None), devices, Some((choice, Some(kernel))), options)?;
    leave_kernel(&pins, &ports)
}

/// Removes the programs and queues of a switch from its devices, and removes its tables.
fn leave_kernel(pins: &Path, ports: &[PortSetup]) -> Result<()> {
    if !pins.exists() {
        return Ok(());
    }
    let _lock = lock(pins)?;
    Kernel::remove(pins)?;
    KernelPorts::unshape(ports.iter().map(|port| port.device.as_str()))
}

/// Returns the ports of the switch or controller `name` that have a link in the fabric but no
/// device yet. Ports in `taps` are excluded, because they are created.
pub fn missing_ports(fabric: &Fabric, name: &str, taps: &[String]) -> Vec<String> {
    let ports = match switch_index(fabric, name) {
        Some(index) => switch_ports(fabric, index),
        None if name == fabric.controller.name => controller_ports(fabric),
        None => Vec::new(),
    };
    let linked = ports.into_iter().filter(|port| port.rate.is_some());
    let devices = linked.map(|port| port.device).filter(|device| !taps.contains(device));
    devices.filter(|device| crate::sys::device_flags(device).is_err()).collect()
}

/// Runs the agent at the edge of host `name` in this network namespace, with the interface `h1-p0`
/// and the fabric port `h1-e0`; see [`switch`].
///
/// # Errors
/// There is no such host, or the hosts of this fabric have no agents. Also as [`agent::run`].
pub fn host_agent(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    agent::run(&agent_options(fabric, name)?, options)
}

/// Returns the configuration of the agent of host `name`. With DCBX, the agent starts with the PFC
/// configuration of its switch, which may be willing and adopt the agent's. The switch advertises
/// the mapping of frames to priorities.
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
        interpretations: dcb.cn.as_ref().map(|cn| cn.reaction).unwrap_or_default(),
        format: dcb.cn.as_ref().map(|cn| cn.point.format).unwrap_or_default(),
        dcbx: dcb.dcbx.as_ref().map(|dcbx| dcbx.lldp),
        tie: said.map(|said| said.asked.tie).unwrap_or_default(),
    })
}

/// Returns the name of the cable end in a host's namespace to which the agent connects, such as
/// `h1-e0`.
pub fn edge_name(host: &str) -> String {
    format!("{host}-e0")
}

/// Checks that this machine can run the controller of `fabric`. [`controller`] performs this check
/// first.
///
/// # Errors
/// The keys are those of a switch.
pub fn check_controller(fabric: &Fabric) -> Result<()> {
    if fabric.network == Network::Program {
        bail!(
            "fabric {}: its switches have a program each and no controller; expected \
             `axon switch FILE NAME` for every switch",
            fabric.name
        );
    }
    if fabric.is_static() {
        bail!(
            "fabric {}: controller.mode is static, so there is no controller; expected `axon \
             switch FILE NAME` for every switch",
            fabric.name
        );
    }
    (fabric.keys.check_controller()).with_context(|| {
        format!("fabric {}: expected the master key, as `axon key FILE` makes it", fabric.name)
    })
}

/// Runs the fabric's controller on its only port `c1-p0`; see [`switch`]. Its [store](crate::store)
/// is in the folder of its state file.
///
/// The data plane requirements of the fabric are not checked here. No host frames cross the
/// controller, and the switches, which are checked where they start, may have more capable data
/// planes than this machine.
///
/// # Errors
/// As [`switch`], except for the data plane. Also if there is no master key, or if the store cannot
/// be used ([`Store::open`]).
pub fn controller(fabric: &Fabric, options: &DaemonOptions) -> Result<()> {
    check_controller(fabric)?;
    let clock = Clock::start();
    // The lock is held until the daemon ends.
    let (started, seed) = (incarnation::next(&clock, options.state.as_deref())?, seed()?);
    let store = options.state.as_ref().map(|state| beside(state, ".store"));
    let store = store.map(|path| Store::open(&path, &fabric.name, &clock)).transpose()?;
    let (store, stored) = store.map_or((None, Vec::new()), |(store, stored)| (Some(store), stored));
    let config = controller_config(fabric, started.number, seed);
    let (started_at, name) = (clock.now(), fabric.controller.name.as_str());
    let ports = controller_ports(fabric);
    let fabric = options.record.as_ref().and_then(|record| record.fabric.clone());
    let identity = fabric.map(|fabric| Identity {
        kind: NodeKind::Controller,
        incarnation: config.control.node.incarnation,
        digest: digest(&config),
        setup: Setup::Controller { fabric, seed, started_at, stored: stored.clone() },
    });
    let node = config.on_software(started_at, &stored);
    run(node, clock, (name, identity), (ports, store), None, options)
}

/// Returns the ports of switch number `switch`, each paced to its link rate. A port without a cable
/// has no device and stays down.
fn switch_ports(fabric: &Fabric, switch: usize) -> Vec<PortSetup> {
    let mut rates = BTreeMap::new();
    let host_mtu = usize::from(fabric.mtu);
    // All ports of a programmable switch have the same kind, but their MTUs differ.
    let link_mtu = fabric.program.as_ref().map_or(host_mtu, |_| link_mtu(fabric));
    for link in &fabric.links {
        rates.insert(link.a, (link.wire.rate, link_mtu));
        rates.insert(link.b, (link.wire.rate, link_mtu));
    }
    for host in &fabric.hosts {
        let end = End { switch: host.switch, port: host.port };
        rates.insert(end, (host.wire.rate, host_mtu));
    }
    if fabric.has_controller() {
        rates.insert(fabric.controller.at, (fabric.controller.wire.rate, host_mtu));
    }
    let Some(owner) = fabric.switches.get(switch) else {
        return Vec::new();
    };
    let setup = |port| {
        let linked = rates.get(&End { switch, port: PortNo(port) });
        PortSetup {
            device: port_name(&owner.name, PortNo(port)),
            medium: Medium::Packet,
            rate: linked.map(|(rate, _)| *rate),
            lossless: fabric.dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty()),
            host_mtu: Some(linked.map_or(host_mtu, |(_, mtu)| *mtu)),
        }
    };
    (0..owner.ports).map(setup).collect()
}

/// Returns the controller's single port.
fn controller_ports(fabric: &Fabric) -> Vec<PortSetup> {
    vec![PortSetup {
        device: port_name(&fabric.controller.name, PortNo(0)),
        medium: Medium::Packet,
        rate: Some(fabric.controller.wire.rate),
        lossless: false,
        host_mtu: Some(usize::from(fabric.mtu)),
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
        assert!(one.dcbx.is_some() && one.rules.ordered().is_empty(), "the switch advertises them");
    }

    #[test]
    fn the_port_of_an_agent_is_its_socket_and_no_tap_device_and_the_process_carries_the_frames() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\n\
            agents: [{name: lb, at: s2, buffers: 9, run: [lb]}]\n";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        let options = DaemonOptions { machine: Machine::ABLE, ..DaemonOptions::default() };
        let at = fabric.agents[0].at;
        let (index, ports) = checked_switch(&fabric, "s2", &options).unwrap();
        let port = &ports[at.port.index()];
        let Medium::Agent(setup) = &port.medium else { panic!("{port:?}") };
        assert_eq!(setup.socket, Path::new("/run/axon/a/lb.sock"));
        assert_eq!((setup.buffers, port.rate), (9, None));
        assert_eq!(ports.iter().filter(|port| port.medium != Medium::Packet).count(), 1);
        assert_eq!(allowed(&fabric, index, &options), Machine::without(AGENTS));
        assert_eq!(allowed(&fabric, 0, &options), Machine::ABLE);
        let status_socket = Some(PathBuf::from("/run/lab/s2.sock"));
        let beside = DaemonOptions { status_socket, ..options.clone() };
        assert_eq!(agent_socket(&fabric, "lb", &beside), Path::new("/run/lab/lb.sock"));
        let taps = vec![port.device.clone()];
        let error = check_switch(&fabric, "s2", &DaemonOptions { taps, ..options }).unwrap_err();
        assert!(error.to_string().contains("is the port of an agent"), "{error}");
    }
}
