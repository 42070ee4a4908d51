//! Line of devices with hosts: testbed of the thesis for latency (000 §4.4, §4.6) and header
//! overhead (§4.3.1).

use anyhow::{Result, ensure};
use axon_fabric::model::{Device, Fabric, Network};
use axon_sim::World;
use axon_wire::{Span, Time};
use std::path::Path;

/// Fabric file, which also runs by itself: `axon sim experiments/papers/src/axon/line.yaml`.
const FILE: &str = include_str!("line.yaml");
/// Part of the file that the experiments replace.
const TOPOLOGY: &str = "switches: 5, hosts_per_switch: 1";
/// Timeout of hosts to get their addresses.
const BOOT_MAX: Span = Span::from_secs(60);
/// Maximum convergence time of a spanning tree: listening and learning, 15 s each, and a hello.
const SPANNING_TREE: Span = Span::from_secs(32);

/// Parameters of a line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Number of devices in the line.
    pub switches: usize,
    /// Hosts at each device.
    pub hosts_per_switch: usize,
    /// Device profile: the stages that a frame passes.
    pub device: Device,
    /// Kind of network.
    pub network: Network,
}

impl Default for Line {
    /// Returns the line of the file: five Axon prototypes.
    fn default() -> Line {
        Line {
            switches: 5,
            hosts_per_switch: 1,
            device: Device::axon_netfpga(),
            network: Network::Axon,
        }
    }
}

impl Line {
    /// Returns a line of Axon prototypes, cut-through.
    pub(crate) fn of_axons(switches: usize) -> Line {
        Line { switches, ..Line::default() }
    }

    /// Returns a line of commodity store-and-forward Ethernet switches (000 figure 4.4).
    pub(crate) fn of_switches(switches: usize) -> Line {
        let (device, network) = (Device::store_and_forward(), Network::Ethernet);
        Line { switches, device, network, ..Line::default() }
    }

    /// Builds the fabric of this line.
    ///
    /// # Errors
    /// The line cannot be built: no switches, or more than hops can name.
    pub(crate) fn fabric(&self) -> Result<Fabric> {
        let Line { switches, hosts_per_switch, device, network } = self;
        let topology = format!("switches: {switches}, hosts_per_switch: {hosts_per_switch}");
        let text = FILE.replace(TOPOLOGY, &topology);
        let mut fabric = axon_fabric::parse(Path::new("line.yaml"), &text)?;
        fabric.device = device.clone();
        fabric.network = *network;
        Ok(fabric)
    }

    /// Builds the fabric with two hosts only: one at the first device and one at the last.
    ///
    /// # Errors
    /// See [`Line::fabric`].
    pub(crate) fn ends(&self) -> Result<Fabric> {
        let mut fabric = Line { hosts_per_switch: 2, ..self.clone() }.fabric()?;
        let last = fabric.hosts.len() - 1;
        fabric.hosts = vec![fabric.hosts[0].clone(), fabric.hosts[last].clone()];
        Ok(fabric)
    }
}

/// Boots a world until every host has its address and frames pass; with a spanning tree, until all
/// of its timers have expired (IEEE 802.1D-2004: twice the forward delay).
///
/// # Errors
/// A host has no address after a minute.
pub(crate) fn booted(fabric: &Fabric, seed: u64) -> Result<World> {
    let mut world = World::new(fabric, seed);
    let all = world.run_until_true(Time::ZERO + BOOT_MAX, World::all_have_addresses);
    ensure!(all, "{}: not every host got an address", fabric.name);
    if fabric.network == Network::Ethernet {
        world.run_for(SPANNING_TREE);
    }
    Ok(world)
}

/// Checks that every byte sent is delivered, dropped for a counted reason, or in a queue.
///
/// # Errors
/// The accounts do not balance.
pub(crate) fn check_conservation(world: &World) -> Result<()> {
    world.engine().check_conservation().map_err(|fault| anyhow::anyhow!("accounts: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_line_and_can_be_made_longer() {
        let fabric = axon_fabric::parse(Path::new("line.yaml"), FILE).unwrap();
        assert_eq!(fabric, Line::default().fabric().unwrap());
        let longer = Line { switches: 7, hosts_per_switch: 2, ..Line::default() };
        let fabric = longer.fabric().unwrap();
        assert_eq!((fabric.switches.len(), fabric.hosts.len(), fabric.links.len()), (7, 14, 6));
        let ends: Vec<usize> = longer.ends().unwrap().hosts.iter().map(|h| h.switch).collect();
        assert_eq!(ends, [0, 6]);
        let ends = Line::of_axons(1).ends().unwrap();
        assert_eq!(ends.hosts.len(), 2);
        assert_ne!(ends.hosts[0].port, ends.hosts[1].port);
    }
}
