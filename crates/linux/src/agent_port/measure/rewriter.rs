//! Agent for throughput measurements.

use axon_agents::{Agent, Event, Outbox};
use axon_wire::Time;

/// Offset of the field that the agent rewrites, in bytes. It is after the longest header used here.
pub(super) const FIELD_AT: usize = 40;

/// Agent that increments a byte of each head and forwards the packet.
#[derive(Default)]
pub struct Rewriter {
    packets: u64,
}

impl Agent for Rewriter {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        let Event::Packet(packet) = event else { return };
        if let Some(field) = out.head(packet.handle).and_then(|head| head.get_mut(FIELD_AT)) {
            *field = field.wrapping_add(1);
        }
        self.packets += 1;
        out.forward(packet.handle);
    }

    fn counters(&self) -> axon_agents::Counters {
        [("packets", self.packets)].into()
    }
}
