//! Ports of a cycle of buffers, by name.

use crate::assemble::port_name;
use crate::model::{End, Fabric};
use axon_prove::{Buffer, Cycle};

/// Returns the two ends of the link that a buffer belongs to: the ingress port that the link leads
/// to, and the egress port that it leaves from. The first is empty if no link leaves there.
pub fn ends(fabric: &Fabric, buffer: Buffer) -> (String, String) {
    let from = End { switch: buffer.from.index(), port: buffer.egress };
    let over = fabric.links.iter().find(|link| link.a == from || link.b == from);
    let to = over.map(|link| if link.a == from { link.b } else { link.a });
    let name = |end: End| port_name(&fabric.switches[end.switch].name, end.port);
    (to.map_or_else(String::new, name), name(from))
}

/// Returns the ingress ports of a cycle in order, the first repeated at the end.
pub fn ingress_ports(fabric: &Fabric, cycle: &Cycle) -> Vec<String> {
    let ports = cycle.waits.iter().map(|wait| ends(fabric, wait.buffer).0);
    let first = ports.clone().next();
    ports.chain(first).collect()
}
