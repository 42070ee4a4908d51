//! Builds the nodes of other networks, chosen by the fabric's `network`.
//!
//! None of these networks serves DHCP, so every host without a fixed address gets one before the
//! start ([`program::fix_addresses`]). The controller's station is empty if the network has none.

use super::multipath;
use super::node::Baseline;
use crate::engine::station::StationNode;
use crate::world::python::PythonLoader;
use axon_baselines::bridge::{BridgeNode, BridgeNodeConfig};
use axon_baselines::multipath::MultipathNode;
use axon_baselines::multipath::{MultipathConfig, Places};
use axon_baselines::portland::plane::PortLandConfig;
use axon_baselines::portland::{ManagerConfig, ManagerNode, PortLandNode, SwitchConfig};
use axon_baselines::rstp::path_cost;
use axon_fabric::assemble;
use axon_fabric::model::{Fabric, Network, ProgramSource};
use axon_fabric::program;
use axon_pipeline::ProgramNode;
use axon_programs::{Plan, Site};
use axon_wire::link::ETHERNET_BYTES;
use std::sync::Arc;

/// Maximum Ethernet frame at the standard MTU, in bytes; control messages need it.
const FRAME_BYTES: usize = 1514;
/// Maximum bytes that wait for a path on one PortLand switch.
const WAITING_BYTES_MAX: usize = 1 << 18;

/// Precomputed parameters of the nodes of a baseline.
#[derive(Default)]
pub(crate) struct Plans {
    /// Ethernet: path cost of each port of each switch.
    path_costs: Vec<Vec<u32>>,
    /// Static multipath: locations of hosts, and each switch's tables.
    places: Arc<Places>,
    tables: Vec<multipath::Tables>,
    /// Programs: plan of the whole network.
    plan: Arc<Plan>,
    python: Option<PythonLoader>,
}

impl Plans {
    /// Returns the plans for the fabric's network.
    pub(crate) fn new(fabric: &Fabric, python: Option<PythonLoader>) -> Plans {
        let mut plans = Plans { python, ..Plans::default() };
        match fabric.network {
            Network::Ethernet => plans.path_costs = path_costs(fabric),
            Network::Ecmp => {
                plans.places = Arc::new(multipath::places(fabric));
                plans.tables = multipath::tables(fabric);
            }
            Network::Program => plans.plan = Arc::new(program::plan(fabric)),
            Network::Axon | Network::PortLand => {}
        }
        plans
    }

    /// Returns a switch of the fabric's network in a new incarnation; `None` for Axon's own.
    pub(crate) fn switch(
        &self,
        fabric: &Fabric,
        index: usize,
        incarnation: u64,
        seed: u64,
    ) -> Option<StationNode> {
        let ports = fabric.switches[index].ports;
        let queue_bytes_max = fabric.controller.wire.queue;
        let frame_bytes_max = (usize::from(fabric.mtu) + ETHERNET_BYTES).max(FRAME_BYTES);
        let mac = assemble::switch_mac(index);
        let node = match fabric.network {
            Network::Axon => return None,
            Network::Ethernet => {
                let mut config = BridgeNodeConfig::new(mac, self.path_costs[index].clone());
                config.bridge.queue_bytes_max = queue_bytes_max;
                config.bridge.frame_bytes_max = frame_bytes_max;
                Baseline::Bridge(BridgeNode::new(config))
            }
            Network::Ecmp => {
                let tables = self.tables[index].clone();
                Baseline::Multipath(MultipathNode::new(MultipathConfig {
                    ports,
                    queue_bytes_max,
                    frame_bytes_max,
                    switch: index as u32,
                    places: self.places.clone(),
                    sets: tables.sets,
                    routes: tables.routes,
                    tree: tables.tree,
                    seed,
                }))
            }
            Network::Program => {
                let site = Site { plan: self.plan.clone(), node: index as u32, seed };
                let program = match &fabric.program.as_ref()?.source {
                    ProgramSource::Ships(kind) => kind.program(site),
                    ProgramSource::Python(path) => {
                        let start = self.python.as_ref().expect("what starts programs in Python");
                        start(path, site)
                    }
                };
                let program = program::with_agents(fabric, index, program);
                let config = program::pipeline_config(fabric, index, seed);
                Baseline::Program(Box::new(ProgramNode::new(config, program)))
            }
            Network::PortLand => Baseline::PortLand(PortLandNode::new(SwitchConfig {
                plane: PortLandConfig { ports, queue_bytes_max, frame_bytes_max, mac, seed },
                incarnation: incarnation as u32,
                interval: fabric.timers.heartbeat,
                retry: fabric.timers.retry,
                waiting_bytes_max: WAITING_BYTES_MAX,
            })),
        };
        Some(StationNode::Baseline(Box::new(node)))
    }
}

/// Returns the node at the controller's station, `StationNode::Off` if there is none; `None` for
/// Axon's own.
pub(crate) fn controller(fabric: &Fabric, incarnation: u64) -> Option<StationNode> {
    match fabric.network {
        Network::Axon if fabric.is_static() => Some(StationNode::Off),
        Network::Axon => None,
        Network::Ethernet | Network::Ecmp | Network::Program => Some(StationNode::Off),
        Network::PortLand => {
            let node = ManagerNode::new(ManagerConfig {
                mac: assemble::CONTROLLER_MAC,
                incarnation: incarnation as u32,
                interval: fabric.timers.heartbeat,
                retry: fabric.timers.retry,
                queue_bytes_max: fabric.controller.wire.queue,
            });
            Some(StationNode::Baseline(Box::new(Baseline::Manager(node))))
        }
    }
}

/// Returns the path cost of each port of each switch: by the rate of the connected link, or of the
/// fabric's links if nothing is connected.
fn path_costs(fabric: &Fabric) -> Vec<Vec<u32>> {
    let spare = path_cost(fabric.controller.wire.rate);
    let mut costs: Vec<Vec<u32>> =
        fabric.switches.iter().map(|switch| vec![spare; usize::from(switch.ports)]).collect();
    for link in &fabric.links {
        for end in [link.a, link.b] {
            costs[end.switch][end.port.index()] = path_cost(link.wire.rate);
        }
    }
    for host in &fabric.hosts {
        costs[host.switch][host.port.index()] = path_cost(host.wire.rate);
    }
    costs
}
