//! Telemetry of ports: counters, queues, shared memory, flow control.

use super::blocked::WaitingQueue;
use super::core::Ports;
use super::memory::Memory;
use axon_node::telemetry::{
    BlockedBuffer, FlowControl, MemoryTelemetry, PausedQueue, PoolTelemetry, PortTelemetry,
    QueuedBytes,
};
use axon_wire::priority::Priority;
use axon_wire::{PortNo, Time};

impl Ports {
    /// Returns the telemetry of one port at `now`, without routes, which ports do not have.
    pub fn telemetry(&self, now: Time, port: PortNo) -> PortTelemetry {
        PortTelemetry {
            kind: self.kind(port).unwrap_or_default(),
            up: self.is_up(port),
            counters: self.counters().port(port),
            queued_frames: self.queued_frames(port),
            queued_bytes: self.queued_bytes(port),
            refused_bytes: self.nacked_bytes(port),
            routes: 0,
            flow_control: self.memory().map(|_| self.flow_control(now, port)),
        }
    }

    /// Returns the pools of the shared memory, if there are traffic classes.
    pub fn memory_telemetry(&self) -> Option<MemoryTelemetry> {
        let pool = |memory: &Memory, lossless| {
            let (used_bytes, peak_bytes) = memory.pool(lossless);
            PoolTelemetry { used_bytes, peak_bytes }
        };
        self.memory().map(|memory| MemoryTelemetry {
            lossless: pool(memory, true),
            lossy: pool(memory, false),
        })
    }

    /// Returns PFC and PAUSE state of one port at `now`.
    pub fn flow_control(&self, now: Time, port: PortNo) -> FlowControl {
        let counts = Priority::ALL.map(|priority| self.pfc_counts(port, priority));
        let queued = self.waiting(port);
        FlowControl {
            paused: self.paused(now, port),
            xoff: self.pause_requests(port),
            requests: counts.map(|(requests, _)| requests),
            indications: counts.map(|(_, indications)| indications),
            queued: queued
                .map(|(class, ingress, bytes)| QueuedBytes { class, ingress, bytes })
                .collect(),
            blocked: Priority::ALL
                .into_iter()
                .filter_map(|priority| self.blocked_buffer(now, port, priority))
                .collect(),
        }
    }

    fn blocked_buffer(
        &self,
        now: Time,
        ingress: PortNo,
        priority: Priority,
    ) -> Option<BlockedBuffer> {
        let blocked = self.blocked(now, ingress, priority)?;
        let queue =
            |&WaitingQueue { egress, paused }: &WaitingQueue| PausedQueue { egress, paused };
        Some(BlockedBuffer {
            priority,
            left_frames: blocked.left,
            blocked_us: now.since(blocked.since).as_nanos() / 1_000,
            queues: blocked.waits.iter().map(queue).collect(),
        })
    }
}
