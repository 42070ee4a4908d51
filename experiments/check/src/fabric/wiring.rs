//! Wiring of the model: ports, links, hosts and the controller.

use axon_wire::message::LinkEnd;
use axon_wire::{MacAddr, NodeId, PortNo};
use std::net::Ipv4Addr;

/// Number of ports per switch: one for a host, two for links, and one for the controller.
pub const PORTS: u16 = 4;
/// Port to which a host is connected.
pub const HOST: PortNo = PortNo(0);
/// Port to which the controller is connected, at the first switch.
pub(crate) const CONTROLLER: PortNo = PortNo(3);
/// Node ID of the controller.
pub(crate) const CONTROLLER_NODE: NodeId = NodeId(99);

/// Switches with node IDs from 1 on, their links, and two hosts. The first host is at switch 1, and
/// the other at the last switch.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// Number of switches.
    pub switches: usize,
    /// Both ends of each link.
    pub links: Vec<[LinkEnd; 2]>,
}

fn end(node: usize, port: u16) -> LinkEnd {
    LinkEnd { node: node_id(node), port: PortNo(port) }
}

/// Returns the node ID of a switch, given its index from 0.
pub(crate) fn node_id(switch: usize) -> NodeId {
    NodeId(switch as u64 + 1)
}

/// Returns the index of a switch, given its node ID.
pub(crate) fn place_of(node: NodeId) -> usize {
    node.0.saturating_sub(1) as usize
}

/// Returns the MAC address of a host.
pub(crate) fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8 + 1])
}

/// Returns the IPv4 address of a host.
pub(crate) fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

impl Wiring {
    /// Creates switches in a line, or in a ring if there are three.
    ///
    /// # Panics
    /// If the number of switches is not 1 to 3.
    pub(crate) fn new(switches: usize) -> Wiring {
        let links = match switches {
            1 => vec![],
            2 => vec![[end(0, 1), end(1, 2)]],
            3 => vec![[end(0, 1), end(1, 2)], [end(1, 1), end(2, 2)], [end(2, 1), end(0, 2)]],
            _ => panic!("1 to 3 switches, not {switches}"),
        };
        Wiring { switches, links }
    }

    /// Returns the number of hosts.
    pub(crate) const fn hosts(&self) -> usize {
        2
    }

    /// Returns the port of a host. In a fabric with one switch, the second host is at its next
    /// port.
    pub(crate) fn host_at(&self, host: usize) -> LinkEnd {
        match host {
            0 => end(0, HOST.0),
            _ if self.switches == 1 => end(0, 1),
            _ => end(self.switches - 1, HOST.0),
        }
    }

    /// Returns the host at a port.
    pub(crate) fn host_of(&self, at: LinkEnd) -> Option<usize> {
        (0..self.hosts()).find(|&host| self.host_at(host) == at)
    }

    /// Returns the link at a port, and the other end of that link.
    pub(crate) fn link(&self, at: LinkEnd) -> Option<(usize, LinkEnd)> {
        let find = |(index, [a, b]): (usize, &[LinkEnd; 2])| match at {
            _ if *a == at => Some((index, *b)),
            _ if *b == at => Some((index, *a)),
            _ => None,
        };
        self.links.iter().enumerate().find_map(find)
    }
}
