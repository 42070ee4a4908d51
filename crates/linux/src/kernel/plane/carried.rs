//! Frames that the kernel carried or lost since this process started. The kernel's counters
//! continue from one process to the next, so the values at the start are subtracted. If queues were
//! replaced in the meantime, the drops that they counted are missing.

use crate::kernel::tables::{Devices, Tables};
use crate::kernel::{KernelError, Traffic};
use axon_node::telemetry::PlaneTelemetry;
use axon_node::{Drop, PortCounters, PortEvent};
use axon_wire::PortNo;
use std::collections::BTreeMap;

/// Kernel counters at the start of this process.
pub(super) struct Before {
    /// Traffic of each port.
    traffic: Vec<Traffic>,
    /// Ifindex of each port's device, from its first carrier on, and the drops at the device's
    /// queues at that time, by ingress port.
    queues: Vec<(u32, BTreeMap<PortNo, u64>)>,
}

impl Before {
    /// Reads the counters of `count` ports.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub(super) fn read(tables: &impl Tables, count: u16) -> Result<Before, KernelError> {
        let ports = (0..count).map(PortNo);
        let traffic = ports.map(|port| tables.traffic(port)).collect::<Result<_, _>>()?;
        Ok(Before { traffic, queues: vec![Default::default(); usize::from(count)] })
    }

    /// Reads the drops at a device's queues when a port gets the device.
    pub(super) fn device(&mut self, tables: &impl Tables, port: PortNo, ifindex: u32) {
        if let Some(queue) = self.queues.get_mut(port.index())
            && queue.0 != ifindex
        {
            // If this fails, the drops are read at the next change of carrier. Earlier drops do not
            // count then.
            if let Ok(drops) = tables.queue_drops(ifindex) {
                *queue = (ifindex, drops.into_iter().collect());
            }
        }
    }

    /// Adds the traffic and the drops since the start.
    pub(super) fn add_since(
        &self,
        tables: &impl Tables,
        devices: &Devices,
        telemetry: &mut PlaneTelemetry,
    ) {
        for ((number, port), before) in (0..).zip(&mut telemetry.ports).zip(&self.traffic) {
            if let Ok(traffic) = tables.traffic(PortNo(number)) {
                add(&mut port.counters, &traffic, before);
                add(&mut telemetry.total, &traffic, before);
            }
        }
        telemetry.total.count_many(PortEvent::Drop(Drop::NotDecided), tables.node_drops());
        for (egress, (known, before)) in (0..).map(PortNo).zip(&self.queues) {
            let ifindex = devices.get(egress);
            if *known != ifindex {
                continue;
            }
            // Drops that cannot be read are omitted.
            for (ingress, count) in tables.queue_drops(ifindex).unwrap_or_default() {
                // If the queues of a device were set up anew, their counters started from zero.
                let before = before.get(&ingress).copied().unwrap_or(0);
                let count = count.checked_sub(before).unwrap_or(count);
                if let Some(port) = telemetry.ports.get_mut(ingress.index()) {
                    port.counters.count_many(PortEvent::Drop(Drop::QueueFull), count);
                    telemetry.total.count_many(PortEvent::Drop(Drop::QueueFull), count);
                }
            }
        }
    }
}

fn add(counters: &mut PortCounters, now: &Traffic, before: &Traffic) {
    counters.rx_frames += now.in_frames.saturating_sub(before.in_frames);
    counters.rx_bytes += now.in_bytes.saturating_sub(before.in_bytes);
    counters.tx_frames += now.out_frames.saturating_sub(before.out_frames);
    counters.tx_bytes += now.out_bytes.saturating_sub(before.out_bytes);
    let lost = now.lost_packets.saturating_sub(before.lost_packets);
    counters.count_many(PortEvent::Drop(Drop::NotDecided), lost);
}
