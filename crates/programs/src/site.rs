//! Plan of a network, which is the configuration of all its programs.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Rate};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Well-known topology of a network, with its parameters. Nodes and links have the numbers that the
/// topology gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Any other topology.
    #[default]
    Other,
    /// Fat tree of `k`-port switches: edge switches by pod, then aggregation switches by pod, then
    /// the core (M. Al-Fares et al., SIGCOMM 2008).
    FatTree {
        /// Ports of each switch.
        k: u32,
    },
    /// BCube: servers first, then the switches level by level (C. Guo et al., SIGCOMM 2009).
    Bcube {
        /// Ports of a switch.
        n: u32,
        /// Highest level, counted from 0.
        k: u32,
    },
    /// DCell: servers first, then the switches of the cells of level 0 (C. Guo et al., SIGCOMM
    /// 2008).
    Dcell {
        /// Servers of a cell of level 0.
        n: u32,
        /// Highest level, counted from 0.
        k: u32,
    },
}

/// Network that a control program runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Topology of the network.
    pub shape: Shape,
    /// Switches and forwarding servers.
    pub nodes: Vec<PlanNode>,
    /// Hosts of the network.
    pub hosts: Vec<PlanHost>,
    /// Length of the prefix that all hosts share, in bits.
    pub prefix_len: u8,
}

/// Switch or forwarding server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanNode {
    /// Name of the node, such as `s1`.
    pub name: String,
    /// MAC address of the node.
    pub mac: MacAddr,
    /// Ports in order of their numbers.
    pub ports: Vec<PlanPort>,
}

/// Port and its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPort {
    /// Neighbour at the other end.
    pub neighbour: Neighbour,
    /// Rate of the link; without a neighbour that of the fabric's links.
    pub rate: Rate,
}

/// Neighbour of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neighbour {
    /// No neighbour is connected.
    Nothing,
    /// Another node, by its number from 0, and its port.
    Node(u32, PortNo),
    /// Host, by its number from 0.
    Host(u32),
    /// Agent of this switch. It gets the packets selected for it and returns them unchanged, with
    /// the addresses of their hosts.
    Agent,
}

/// Host and its attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHost {
    /// Name of the host, such as `h1`.
    pub name: String,
    /// MAC address of the host.
    pub mac: MacAddr,
    /// Fixed IPv4 address of the host.
    pub ip: Ipv4Addr,
    /// Node of the host, by its number from 0.
    pub node: u32,
    /// Port of the node.
    pub port: PortNo,
}

/// Position of one program in its network.
#[derive(Clone, Debug)]
pub struct Site {
    /// Plan of the network.
    pub plan: Arc<Plan>,
    /// Number, from 0, of the node that the program controls.
    pub node: u32,
    /// Seed for its random choices, which differs for each node and run.
    pub seed: u64,
}

impl Site {
    /// Returns the node that the program controls.
    pub fn own(&self) -> &PlanNode {
        &self.plan.nodes[self.node as usize]
    }

    /// Returns the node's ports with their neighbours.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (PortNo, Neighbour)> {
        let ports = (0..).map(PortNo).zip(&self.own().ports);
        ports.map(|(port, there)| (port, there.neighbour))
    }

    /// Returns the hosts on the node's ports.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &PlanHost> {
        self.plan.hosts.iter().filter(|host| host.node == self.node)
    }
}

impl Plan {
    /// Returns the host with this address.
    pub(crate) fn host_of(&self, ip: Ipv4Addr) -> Option<&PlanHost> {
        self.hosts.iter().find(|host| host.ip == ip)
    }
}
