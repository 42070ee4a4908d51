//! Finds a deadlock in a world: lossless buffers that have paused one another for good.
//!
//! For each link between switches and each lossless priority, see whether the
//! switch at its end has sent XOFF; if so, note in which queues the frames of that
//! buffer wait, and for which priorities each of these is paused by its peer
//! ([`axon_plane::Ports::blocked`]). What that amounts to, [`axon_prove::deadlock`]
//! knows. Priorities that share a class wait in the same queues and are paused together, but each
//! buffer waits only where frames of its own do.

use crate::world::World;
use axon_control::controller::topology::SwitchIndex;
use axon_fabric::cycle as cycle_names;
use axon_fabric::model::End;
use axon_plane::WaitingQueue;
use axon_prove::{BlockedBuffer, Buffer, Cycle};
use axon_wire::{PortNo, Priority};
use serde::Serialize;

/// Buffers that were found to wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// When they were first seen to, in nanoseconds: looked at once in a millisecond or more
    /// often.
    pub at_ns: u64,
    /// Their ingress ports, each waiting for the next, the first once more at the end.
    pub cycle: Vec<String>,
}

impl World {
    /// Whether the fabric's switches can pause each other at all.
    pub(crate) fn has_lossless(&self) -> bool {
        self.fabric().dcb.as_ref().is_some_and(|dcb| !dcb.lossless.is_empty())
    }

    /// A cycle of buffers that wait for each other for ever, if there is one now. A buffer is
    /// named by the end of its link that sends, the switch by its number in the fabric.
    pub fn deadlock(&self) -> Option<Cycle> {
        let lossless = self.fabric().dcb.as_ref()?.lossless;
        let links = self.fabric().links.iter();
        let ways = links.flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let blocked: Vec<BlockedBuffer> = ways
            .flat_map(|(from, to)| lossless.iter().map(move |priority| (from, to, priority)))
            .filter_map(|(from, to, priority)| self.blocked(from, to, priority))
            .collect();
        axon_prove::deadlock(&blocked)
    }

    /// The same with the names of the ports, for the report.
    pub(crate) fn named_deadlock(&self) -> Option<Deadlock> {
        let cycle = cycle_names::ingress_ports(self.fabric(), &self.deadlock()?);
        Some(Deadlock { at_ns: self.now().as_nanos(), cycle })
    }

    /// The buffer at `to` of what comes from `from`, if the sender is paused.
    fn blocked(&self, from: End, to: End, priority: Priority) -> Option<BlockedBuffer> {
        let ports = self.switch(to.switch)?.plane().ports()?;
        let blocked = ports.blocked(self.now(), to.port, priority)?;
        let buffers = |queue: &WaitingQueue| {
            let paused = queue.paused.iter();
            paused.map(|priority| buffer(to.switch, queue.egress, priority)).collect()
        };
        let waits = blocked.waits.iter().map(buffers).collect();
        Some(BlockedBuffer { buffer: buffer(from.switch, from.port, priority), waits })
    }
}

/// The buffer at the far end of a switch's port.
fn buffer(from: usize, egress: PortNo, priority: Priority) -> Buffer {
    Buffer { from: SwitchIndex(from as u32), egress, priority }
}
