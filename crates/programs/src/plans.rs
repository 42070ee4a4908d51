//! Plans of small networks for tests.

use crate::site::{Neighbour, Plan, PlanHost, PlanNode, PlanPort, Shape};
use alloc::format;
use axon_wire::{MacAddr, PortNo, Rate};
use core::net::Ipv4Addr;

const RATE: Rate = Rate::gbps(1);

fn nodes(count: u32) -> Plan {
    let node = |number: u32| PlanNode {
        name: format!("s{}", number + 1),
        mac: MacAddr([2, 1, 0, 0, (number >> 8) as u8, number as u8]),
        ports: [].into(),
    };
    Plan { nodes: (0..count).map(node).collect(), prefix_len: 16, ..Plan::default() }
}

fn port(plan: &mut Plan, node: u32, neighbour: Neighbour) -> PortNo {
    let ports = &mut plan.nodes[node as usize].ports;
    ports.push(PlanPort { neighbour, rate: RATE });
    PortNo(ports.len() as u16 - 1)
}

fn link(plan: &mut Plan, a: u32, b: u32) {
    let at_a = port(plan, a, Neighbour::Nothing);
    let at_b = port(plan, b, Neighbour::Node(a, at_a));
    plan.nodes[a as usize].ports[at_a.index()].neighbour = Neighbour::Node(b, at_b);
}

fn hosts(plan: &mut Plan, node: u32, count: u32) {
    for _ in 0..count {
        let number = plan.hosts.len() as u32;
        let port = port(plan, node, Neighbour::Host(number));
        let [_, _, high, low] = (256 + number).to_be_bytes();
        plan.hosts.push(PlanHost {
            name: format!("h{}", number + 1),
            mac: MacAddr([2, 0, 0, 0, high, low]),
            ip: Ipv4Addr::new(10, 0, high, low),
            node,
            port,
        });
    }
}

/// Ring of switches with one host each.
pub(crate) fn ring(switches: u32) -> Plan {
    let mut plan = nodes(switches);
    for node in 0..switches {
        hosts(&mut plan, node, 1);
    }
    for node in 0..switches {
        link(&mut plan, node, (node + 1) % switches);
    }
    plan
}

/// Fat tree of `k`-port switches with `k / 2` hosts on each edge switch.
pub(crate) fn fat_tree(k: u32) -> Plan {
    let (half, edges) = (k / 2, k * k / 2);
    let mut plan = nodes(2 * edges + half * half);
    plan.shape = Shape::FatTree { k };
    for edge in 0..edges {
        hosts(&mut plan, edge, half);
    }
    for pod in 0..k {
        for one in 0..half {
            for other in 0..half {
                link(&mut plan, pod * half + one, edges + pod * half + other);
            }
        }
        for one in 0..half {
            for other in 0..half {
                link(&mut plan, edges + pod * half + one, 2 * edges + one * half + other);
            }
        }
    }
    plan
}

/// Leaves with two hosts each. Every leaf is linked to every spine.
pub(crate) fn leaf_spine(leaves: u32, spines: u32) -> Plan {
    let mut plan = nodes(leaves + spines);
    for leaf in 0..leaves {
        hosts(&mut plan, leaf, 2);
        for spine in 0..spines {
            link(&mut plan, leaf, leaves + spine);
        }
    }
    plan
}

/// Fat tree of `k`-port switches with the addresses in the paper: 10.pod.switch.id, from id 2.
pub(crate) fn structural(k: u32) -> Plan {
    let mut plan = fat_tree(k);
    let half = k / 2;
    for (number, host) in (0..).zip(&mut plan.hosts) {
        let (edge, id) = (number / half, number % half + 2);
        host.ip = Ipv4Addr::new(10, (edge / half) as u8, (edge % half) as u8, id as u8);
    }
    plan
}
