//! The plan of a network, with which all programs of its switches are configured.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Rate};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Which of the well-known topologies a network is, with its parameters. Nodes and links have the
/// numbers that the topology gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// None of these.
    #[default]
    Other,
    /// A fat tree of `k`-port switches: edge switches by pod, then aggregation switches by pod,
    /// then the core (M. Al-Fares et al., SIGCOMM 2008).
    FatTree {
        /// Ports of each switch.
        k: u32,
    },
    /// BCube: servers first, then the switches level by level (C. Guo et al., SIGCOMM 2009).
    Bcube {
        /// Ports of a switch.
        n: u32,
        /// The highest level.
        k: u32,
    },
    /// DCell: servers first, then the switches of the cells of level 0 (C. Guo et al., SIGCOMM
    /// 2008).
    Dcell {
        /// Servers of a cell of level 0.
        n: u32,
        /// The highest level.
        k: u32,
    },
}

/// A whole network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which topology it is.
    pub shape: Shape,
    /// Its switches and forwarding servers.
    pub nodes: Vec<PlanNode>,
    /// Its hosts.
    pub hosts: Vec<PlanHost>,
    /// Bits of the prefix that all hosts share.
    pub prefix_len: u8,
}

/// A switch, or a server that forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanNode {
    /// Its name: `s1`.
    pub name: String,
    /// Its address.
    pub mac: MacAddr,
    /// By port.
    pub ports: Vec<PlanPort>,
}

/// A port, and what is at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPort {
    /// What is there.
    pub neighbour: Neighbour,
    /// The rate of the link; that of the fabric's links where nothing is.
    pub rate: Rate,
}

/// What is at the other end of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neighbour {
    /// Nothing.
    Nothing,
    /// Another node, by its number from 0, and the port there.
    Node(u32, PortNo),
    /// A host, by its number from 0.
    Host(u32),
    /// An agent of this switch, which sees the packets that are selected for it and sends them back
    /// as they were, with the addresses of their hosts.
    Agent,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHost {
    /// Its name: `h1`.
    pub name: String,
    /// Its address.
    pub mac: MacAddr,
    /// Its fixed IPv4 address.
    pub ip: Ipv4Addr,
    /// The node that it is at, by its number from 0.
    pub node: u32,
    /// The port there.
    pub port: PortNo,
}

/// The place of one program in its network.
#[derive(Clone, Debug)]
pub struct Site {
    /// The network.
    pub plan: Arc<Plan>,
    /// The node that the program controls, by its number from 0.
    pub node: u32,
    /// Makes its random choices others than those of other nodes and other runs.
    pub seed: u64,
}

impl Site {
    /// The node that the program controls.
    pub fn own(&self) -> &PlanNode {
        &self.plan.nodes[self.node as usize]
    }

    /// Its ports, with what is at their other ends.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, Neighbour)> {
        let ports = (0..).map(PortNo).zip(&self.own().ports);
        ports.map(|(port, there)| (port, there.neighbour))
    }

    /// The hosts at its own ports.
    pub fn hosts(&self) -> impl Iterator<Item = &PlanHost> {
        self.plan.hosts.iter().filter(|host| host.node == self.node)
    }
}

impl Plan {
    /// The host with this address.
    pub fn host_of(&self, ip: Ipv4Addr) -> Option<&PlanHost> {
        self.hosts.iter().find(|host| host.ip == ip)
    }
}
