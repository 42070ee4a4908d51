//! How buffers that wait for each other are called.

use crate::assemble::port_name;
use crate::model::{End, Fabric};
use axon_prove::{Buffer, Cycle};

/// Where a buffer is: the ingress port that the link ends at, and the egress port that it comes
/// from. The first is empty if no link leaves there.
pub fn ends(fabric: &Fabric, buffer: Buffer) -> (String, String) {
    let from = End { switch: buffer.from.index(), port: buffer.egress };
    let over = fabric.links.iter().find(|link| link.a == from || link.b == from);
    let to = over.map(|link| if link.a == from { link.b } else { link.a });
    let name = |end: End| port_name(&fabric.switches[end.switch].name, end.port);
    (to.map_or_else(String::new, name), name(from))
}

/// The ingress ports of a cycle in a row, the first once more at its end.
pub fn round(fabric: &Fabric, cycle: &Cycle) -> Vec<String> {
    let ports = cycle.waits.iter().map(|wait| ends(fabric, wait.buffer).0);
    let first = ports.clone().next();
    ports.chain(first).collect()
}
