//! Deadlock detection in a world: lossless buffers that have paused one another permanently.
//!
//! For each link between switches and each lossless priority, the detection determines whether the
//! switch at its end has sent XOFF, in which queues the frames of that buffer wait, and for which
//! priorities each of these is paused by its peer ([`axon_plane::Blocked`]).
//! [`axon_prove::deadlock`] finds the cycles. Priorities that share a class wait in the same queues
//! and are paused together, but each buffer waits only where its own frames do.

use crate::world::World;
use axon_controller::topology::SwitchIndex;
use axon_fabric::cycle as cycle_names;
use axon_fabric::model::{End, Fabric};
use axon_plane::{Blocked, WaitingQueue};
use axon_prove::{BlockedBuffer, Buffer, Cycle};
use axon_wire::{PortNo, Priority};
use serde::Serialize;

/// Deadlocked buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// Time of detection in nanoseconds. Detection runs at least once per millisecond.
    pub at_ns: u64,
    /// Ingress ports of the cycle, each waiting for the next; the first is repeated at the end.
    pub cycle: Vec<String>,
}

/// Returns whether the fabric's switches can pause each other at all.
pub(crate) fn is_possible(fabric: &Fabric) -> bool {
    fabric.dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty())
}

/// Returns a cycle of deadlocked buffers, if there is one now. A buffer is identified by the
/// sending end of its link, a switch by its number in the fabric.
pub fn cycle(world: &World) -> Option<Cycle> {
    let lossless = world.fabric().dcb.as_ref()?.lossless;
    let links = world.fabric().links.iter();
    let ways = links.flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let blocked: Vec<BlockedBuffer> = ways
        .flat_map(|(from, to)| lossless.iter().map(move |priority| (from, to, priority)))
        .filter_map(|(from, to, priority)| blocked(world, from, to, priority))
        .collect();
    axon_prove::deadlock(&blocked)
}

/// Returns a cycle of deadlocked buffers by port name, for the report.
pub(crate) fn named(world: &World) -> Option<Deadlock> {
    let cycle = cycle_names::ingress_ports(world.fabric(), &cycle(world)?);
    Some(Deadlock { at_ns: world.now().as_nanos(), cycle })
}

/// Returns the buffer at `to` for frames from `from`, if the sender is paused.
fn blocked(world: &World, from: End, to: End, priority: Priority) -> Option<BlockedBuffer> {
    let ports = world.switch(to.switch)?.plane().ports()?;
    let blocked = Blocked::of(ports, world.now(), to.port, priority)?;
    let buffers = |queue: &WaitingQueue| {
        let paused = queue.paused.iter();
        paused.map(|priority| buffer(to.switch, queue.egress, priority)).collect()
    };
    let waits = blocked.waits.iter().map(buffers).collect();
    Some(BlockedBuffer { buffer: buffer(from.switch, from.port, priority), waits })
}

/// Returns the buffer at the far end of a switch's port.
fn buffer(from: usize, egress: PortNo, priority: Priority) -> Buffer {
    Buffer { from: SwitchIndex(from as u32), egress, priority }
}
