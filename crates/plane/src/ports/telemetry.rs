//! Telemetry of ports: counters, queues, shared memory, flow control.

use super::blocked::{Blocked, WaitingQueue};
use super::core::Ports;
use super::shared_buffer::Memory;
use crate::qos::dcb_state::Dcb;
use axon_node::telemetry::{
    BlockedBuffer, FlowControl, MemoryTelemetry, PausedQueue, PoolTelemetry, PortTelemetry,
    QueuedBytes,
};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{PortNo, Time};

/// Returns the telemetry of one port at `now`, without routes, which ports do not have.
pub fn of_port(ports: &Ports, now: Time, port: PortNo) -> PortTelemetry {
    PortTelemetry {
        kind: ports.wires().kind(port).unwrap_or_default(),
        up: ports.wires().is_up(port),
        counters: ports.counters().port(port),
        queued_frames: ports.queues().frames(port),
        queued_bytes: ports.queues().bytes(port),
        refused_bytes: ports.queues().nacked_bytes(port),
        routes: 0,
        flow_control: ports.dcb().map(|_| of_flow_control(ports, now, port)),
    }
}

/// Returns the pools of the shared memory, if there are traffic classes.
pub fn of_memory(ports: &Ports) -> Option<MemoryTelemetry> {
    let pool = |memory: &Memory, lossless| {
        let (used_bytes, peak_bytes) = memory.pool(lossless);
        PoolTelemetry { used_bytes, peak_bytes }
    };
    ports
        .dcb()
        .map(Dcb::memory)
        .map(|memory| MemoryTelemetry { lossless: pool(memory, true), lossy: pool(memory, false) })
}

/// Returns PFC and PAUSE state of one port at `now`.
pub fn of_flow_control(ports: &Ports, now: Time, port: PortNo) -> FlowControl {
    let pauses = ports.dcb().and_then(|dcb| dcb.pauses(port));
    let counts =
        pauses.map_or([(0, 0); PRIORITIES], |pauses| Priority::ALL.map(|of| pauses.counts(of)));
    let queued = ports.queues().waiting(port);
    let blocked = |priority| blocked_buffer(ports, now, (port, priority));
    FlowControl {
        paused: pauses.map_or(PrioritySet::EMPTY, |pauses| pauses.paused(now)),
        xoff: pauses.map_or(PrioritySet::EMPTY, |pauses| pauses.requested()),
        requests: counts.map(|(requests, _)| requests),
        indications: counts.map(|(_, indications)| indications),
        queued: queued
            .map(|(class, ingress, bytes)| QueuedBytes { class, ingress, bytes })
            .collect(),
        blocked: Priority::ALL.into_iter().filter_map(blocked).collect(),
    }
}

fn blocked_buffer(
    ports: &Ports,
    now: Time,
    (ingress, priority): (PortNo, Priority),
) -> Option<BlockedBuffer> {
    let blocked = Blocked::of(ports, now, ingress, priority)?;
    let queue = |&WaitingQueue { egress, paused }: &WaitingQueue| PausedQueue { egress, paused };
    Some(BlockedBuffer {
        priority,
        left_frames: blocked.left,
        blocked_us: now.since(blocked.since).as_nanos() / 1_000,
        queues: blocked.waits.iter().map(queue).collect(),
    })
}
