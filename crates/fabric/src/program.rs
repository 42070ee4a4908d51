//! Control program of a fabric's switches, and the plan that configures it.

use crate::error::Problem;
use crate::file::{File, ProgramFile, ShortOr, TableSizes, Topology};
use crate::identity;
use crate::model::{Fabric, Network, ProgramSetup, ProgramSource};
use axon_node::{Input, Node};
use axon_pipeline::{PipelineConfig, Program, ProgramNode, Sizes};
use axon_programs::site::PlanPort;
use axon_programs::{Neighbour, Plan, PlanHost, PlanNode, ProgramKind, Shape, Site, WithAgents};
use axon_wire::Time;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::vlan::TAG_BYTES;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Bound of the numbers of objects that entries refer to.
const NUMBERS: u32 = 1 << 16;
/// Maximum number of entries of any table.
const ENTRIES_MAX: u32 = 1 << 20;
/// Number of switches whose programs are tried with non-default table sizes.
const TRIED_MAX: usize = 64;
/// Longest Ethernet frame with the default MTU, in bytes.
const FRAME_BYTES: usize = 1514;

/// Checks that the network fits its program.
pub(crate) fn check(fabric: &Fabric) -> Result<(), Problem> {
    let Some(ProgramSetup { source: ProgramSource::Ships(kind), .. }) = &fabric.program else {
        return Ok(());
    };
    let mut with_addresses = fabric.clone();
    fix_addresses(&mut with_addresses);
    let plan = plan(&with_addresses);
    kind.check(&plan).map_err(|unsuitable| {
        Problem::new("program", format!("{kind} cannot run here"), unsuitable.expected)
    })?;
    if fabric.dcb.is_some() && !kind.knows_tags() {
        let what = format!("{kind} has no entries for frames with a priority tag");
        return Err(Problem::new("dcb", what, "program: bridge, or no dcb"));
    }
    check_sizes(fabric, *kind, plan)
}

/// Runs the programs of the first switches to check that their entries fit tables of the configured
/// sizes.
fn check_sizes(fabric: &Fabric, kind: ProgramKind, plan: Plan) -> Result<(), Problem> {
    if fabric.program.as_ref().is_none_or(|setup| setup.sizes == Sizes::default()) {
        return Ok(());
    }
    let plan = Arc::new(plan);
    for index in 0..fabric.switches.len().min(TRIED_MAX) {
        let site = Site { plan: plan.clone(), node: index as u32, seed: 0 };
        let config = pipeline_config(fabric, index, 0);
        let mut node: ProgramNode = ProgramNode::new(config, kind.program(site));
        node.handle(Time::ZERO, Input::Timeout, &mut Vec::new());
        let program = node.program();
        if let Some(why) = program.refusal().or_else(|| program.failure()) {
            let what = format!("{}: {why}", fabric.switches[index].name);
            return Err(Problem::new("program.tables", what, "larger tables"));
        }
    }
    Ok(())
}

/// Reads `program`, which replaces `network`.
pub(crate) fn resolve(file: &File) -> Result<Option<ProgramSetup>, Problem> {
    let Some(asked) = &file.program else { return Ok(None) };
    if file.network != Network::Axon {
        let what = "the switches of another network have no control program";
        return Err(Problem::new("program", what, "either program or network"));
    }
    let (source, tables) = match asked {
        ShortOr::Short(name) => (ProgramSource::Ships(name.0), TableSizes::default()),
        ShortOr::Long(ProgramFile { name, python, tables }) => match (name, python) {
            (Some(name), None) => (ProgramSource::Ships(name.0), *tables),
            (None, Some(path)) => (ProgramSource::Python(path.clone()), *tables),
            _ => {
                let what = "it has not exactly one of name and python";
                return Err(Problem::new("program", what, "name: NAME, or python: FILE"));
            }
        },
    };
    Ok(Some(ProgramSetup { source, sizes: sizes(tables)? }))
}

fn sizes(asked: TableSizes) -> Result<Sizes, Problem> {
    let ours = Sizes::default();
    let pick = |key: &str, asked: Option<u32>, default: u32, most: u32| match asked {
        None => Ok(default),
        Some(size) if (1..=most).contains(&size) => Ok(size),
        Some(size) => {
            let key = format!("program.tables.{key}");
            Err(Problem::range(key, size, format!("1 to {most}")))
        }
    };
    Ok(Sizes {
        mac: pick("mac", asked.mac, ours.mac, ENTRIES_MAX)?,
        ipv4: pick("ipv4", asked.ipv4, ours.ipv4, ENTRIES_MAX)?,
        mpls: pick("mpls", asked.mpls, ours.mpls, ENTRIES_MAX)?,
        prefix: pick("prefix", asked.prefix, ours.prefix, ENTRIES_MAX)?,
        tcam: pick("tcam", asked.tcam, ours.tcam, NUMBERS)?,
        interface: pick("interface", asked.interface, ours.interface, NUMBERS)?,
        group: pick("group", asked.group, ours.group, NUMBERS)?,
        tunnel: pick("tunnel", asked.tunnel, ours.tunnel, NUMBERS)?,
    })
}

/// Returns the shape of a topology, as programs distinguish them.
pub(crate) fn shape(topology: &Topology) -> Shape {
    match topology {
        Topology::FatTree(tree) => Shape::FatTree { k: tree.k as u32 },
        Topology::Bcube(bcube) => Shape::Bcube { n: bcube.n as u32, k: bcube.k as u32 },
        Topology::Dcell(dcell) => Shape::Dcell { n: dcell.n as u32, k: dcell.k as u32 },
        _ => Shape::Other,
    }
}

/// Returns the plan of a fabric. Hosts that have no fixed address yet are left out; see
/// [`fix_addresses`].
pub fn plan(fabric: &Fabric) -> Plan {
    let port = PlanPort { neighbour: Neighbour::Nothing, rate: fabric.controller.wire.rate };
    let nodes = fabric.switches.iter().enumerate().map(|(index, switch)| PlanNode {
        name: switch.name.clone(),
        mac: identity::switch_mac(index),
        ports: vec![port; usize::from(switch.ports)],
    });
    let mut nodes: Vec<PlanNode> = nodes.collect();
    for link in &fabric.links {
        for (near, far) in [(link.a, link.b), (link.b, link.a)] {
            let neighbour = Neighbour::Node(far.switch as u32, far.port);
            nodes[near.switch].ports[near.port.index()] =
                PlanPort { neighbour, rate: link.wire.rate };
        }
    }
    for agent in fabric.agents.iter().filter(|agent| !agent.selections.is_empty()) {
        let port = PlanPort { neighbour: Neighbour::Agent, rate: agent.wire.rate };
        nodes[agent.at.switch].ports[agent.at.port.index()] = port;
    }
    let mut hosts = Vec::new();
    for host in &fabric.hosts {
        let Some(ip) = host.ip else { continue };
        let neighbour = Neighbour::Host(hosts.len() as u32);
        nodes[host.switch].ports[host.port.index()] = PlanPort { neighbour, rate: host.wire.rate };
        hosts.push(PlanHost {
            name: host.name.clone(),
            mac: host.mac,
            ip,
            node: host.switch as u32,
            port: host.port,
        });
    }
    Plan { shape: fabric.shape, nodes, hosts, prefix_len: fabric.dhcp.prefix_len }
}

/// Returns the configuration of the pipeline of a switch, by its index.
///
/// # Panics
/// If there is no such switch, or the fabric has no program.
pub fn pipeline_config(fabric: &Fabric, index: usize, seed: u64) -> PipelineConfig {
    let setup = fabric.program.as_ref().expect("a fabric with a program");
    let mac = identity::switch_mac(index);
    let dcb = fabric.dcb.as_deref();
    let control_priority = dcb.map_or(axon_wire::Priority::ZERO, |dcb| dcb.control_priority);
    let dcb = dcb.map(|dcb| Box::new(crate::dcb::config(fabric, dcb, index, mac)));
    let tag = if dcb.is_some() { TAG_BYTES } else { 0 };
    let frame = (usize::from(fabric.mtu) + ETHERNET_BYTES + tag).max(FRAME_BYTES);
    // The entries of agents follow those of the program.
    let more = crate::agents::agents_at(fabric, index).entries();
    PipelineConfig {
        sizes: Sizes { tcam: setup.sizes.tcam + more, ..setup.sizes },
        hop_width: fabric.hop_width,
        frame_bytes_max: frame + setup.overhead_bytes(),
        queue_bytes_max: fabric.controller.wire.queue,
        seed,
        dcb,
        control_priority,
        ..PipelineConfig::with_ports(fabric.switches[index].ports, mac)
    }
}

/// Returns the program of a switch, by its index, with the entries of the switch's agents.
///
/// # Panics
/// If there is no such switch.
pub fn with_agents(fabric: &Fabric, index: usize, program: Box<dyn Program>) -> Box<dyn Program> {
    let agents = crate::agents::agents_at(fabric, index);
    if agents.agents.is_empty() { program } else { Box::new(WithAgents::new(program, agents)) }
}

/// Gives every host a fixed address, in a network without DHCP service: its reservation, or the
/// first free one of the pool, in the order of hosts.
pub fn fix_addresses(fabric: &mut Fabric) {
    if fabric.network == Network::Axon {
        return;
    }
    let reserved = &fabric.dhcp.reservations;
    let mut used: BTreeSet<Ipv4Addr> = reserved.values().copied().collect();
    used.extend(fabric.hosts.iter().filter_map(|host| host.ip));
    used.insert(fabric.dhcp.server);
    let pool = fabric.dhcp.pool_first.to_bits()..=fabric.dhcp.pool_last.to_bits();
    let mut free = pool.map(Ipv4Addr::from_bits).filter(|ip| !used.contains(ip));
    for host in fabric.hosts.iter_mut().filter(|host| host.ip.is_none()) {
        host.ip = reserved.get(&host.mac).copied().or_else(|| free.next());
    }
}

#[cfg(test)]
mod tests {
    const DCB: &str = "dcb: {classes: [{priorities: [0, 1, 2, 4, 5, 6, 7], ets: 50}, \
                       {priorities: [3], ets: 50, lossless: true}]}\n";

    fn refusal(topology: &str, more: &str) -> String {
        let text = format!("name: a\ntopology: {{{topology}}}\nlinks: {{rate: 1Gbps}}\n{more}");
        match crate::parse("a.yaml".as_ref(), &text) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_a_program_cannot_run_on_is_refused_with_its_key() {
        let (ring, tree) = ("ring: {switches: 3}", "fat_tree: {k: 4}");
        for (topology, more, expected) in [
            (ring, "program: bcube\n", "program: bcube cannot run here"),
            (ring, "program: nothing\n", "the name of a program that ships"),
            (ring, "network: ecmp\nprogram: bridge\n", "either program or network"),
            (ring, "program: {name: bridge, python: a.py}\n", "not exactly one of name and python"),
            (ring, "program: {name: bridge, tables: {tcam: 0}}\n", "program.tables.tcam"),
            (ring, "program: {name: bridge, tables: {tcam: 64}}\n", "program.tables: s1: "),
            (tree, &format!("program: fat_tree\n{DCB}"), "dcb: fat_tree has no entries"),
        ] {
            let refusal = refusal(topology, more);
            assert!(refusal.contains(expected), "{more}: {refusal}");
        }
        assert_eq!(refusal(ring, &format!("program: bridge\n{DCB}")), "");
        assert_eq!(refusal(tree, "program: {name: fat_tree, tables: {tcam: 256}}\n"), "");
    }
}
