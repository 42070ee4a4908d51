//! A line of devices with hosts: the ground on which the thesis measures latency (000 §4.4,
//! §4.6) and header overhead (§4.3.1).

use anyhow::{Result, ensure};
use axon_fabric::model::{Device, Fabric, Network};
use axon_sim::World;
use axon_wire::{Span, Time};
use std::path::Path;

/// As it runs by itself: `axon sim crates/papers/src/axon/line.yaml`.
const FILE: &str = include_str!("line.yaml");
/// What of the file the experiments change.
const TOPOLOGY: &str = "switches: 5, hosts_per_switch: 1";
/// How long hosts may take to get their addresses.
const BOOT_MAX: Span = Span::from_secs(60);
/// How long a spanning tree may take at most: listening and learning, 15 s each, and a hello.
const SPANNING_TREE: Span = Span::from_secs(32);

/// Which line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Devices in it.
    pub switches: usize,
    /// Hosts at each.
    pub hosts_per_switch: usize,
    /// What a frame goes through in each.
    pub device: Device,
    /// What the devices are.
    pub network: Network,
}

impl Default for Line {
    /// As the file says: five Axon prototypes.
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
    /// Axon prototypes, cut-through.
    pub fn of_axons(switches: usize) -> Line {
        Line { switches, ..Line::default() }
    }

    /// Commodity store-and-forward Ethernet switches (000 figure 4.4).
    pub fn of_switches(switches: usize) -> Line {
        let (device, network) = (Device::store_and_forward(), Network::Ethernet);
        Line { switches, device, network, ..Line::default() }
    }

    /// The fabric of this line.
    ///
    /// # Errors
    /// It cannot be built: no switch, or more than hops can name.
    pub fn fabric(&self) -> Result<Fabric> {
        let Line { switches, hosts_per_switch, device, network } = self;
        let topology = format!("switches: {switches}, hosts_per_switch: {hosts_per_switch}");
        let text = FILE.replace(TOPOLOGY, &topology);
        let mut fabric = axon_fabric::parse(Path::new("line.yaml"), &text)?;
        fabric.device = device.clone();
        fabric.network = *network;
        Ok(fabric)
    }

    /// The same with two hosts alone: one at the first device and one at the last.
    ///
    /// # Errors
    /// As [`Line::fabric`].
    pub fn ends(&self) -> Result<Fabric> {
        let mut fabric = Line { hosts_per_switch: 2, ..self.clone() }.fabric()?;
        let last = fabric.hosts.len() - 1;
        fabric.hosts = vec![fabric.hosts[0].clone(), fabric.hosts[last].clone()];
        Ok(fabric)
    }
}

/// A world in which every host has its address and frames pass: where a spanning tree has to
/// be found first, after all of its timers (IEEE 802.1D-2004: twice the forward delay).
///
/// # Errors
/// One has none after a minute.
pub fn booted(fabric: &Fabric, seed: u64) -> Result<World> {
    let mut world = World::new(fabric, seed);
    let all = world.run_until_true(Time::ZERO + BOOT_MAX, World::all_have_addresses);
    ensure!(all, "{}: not every host got an address", fabric.name);
    if fabric.network == Network::Ethernet {
        world.run_for(SPANNING_TREE);
    }
    Ok(world)
}

/// Every byte that was sent is delivered, dropped for a counted reason, or in a queue.
///
/// # Errors
/// Where the accounts do not balance.
pub fn check_conservation(world: &World) -> Result<()> {
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
