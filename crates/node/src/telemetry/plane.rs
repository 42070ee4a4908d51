//! What a data plane reports: counters, memory, ports.

use super::flow_control::FlowControl;
use crate::counters::PortCounters;
use crate::port::PortKind;
use alloc::vec::Vec;
use axon_wire::Bytes;
use serde::{Deserialize, Serialize};

/// A data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneTelemetry {
    /// The sum over all ports and the control plane.
    pub total: PortCounters,
    /// The shared packet memory, if it has pools.
    pub memory: Option<MemoryTelemetry>,
    /// By port number, from 0.
    pub ports: Vec<PortTelemetry>,
}

/// The pools of a shared packet memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTelemetry {
    /// The pool of the lossless priorities.
    pub lossless: PoolTelemetry,
    /// The pool of all other priorities.
    pub lossy: PoolTelemetry,
}

/// One pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolTelemetry {
    /// Bytes of the pool that are in use now.
    pub used_bytes: Bytes,
    /// The most that was in use at once, since the start.
    pub peak_bytes: Bytes,
}

/// A port of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTelemetry {
    /// What is plugged into it.
    pub kind: PortKind,
    /// Whether it has carrier.
    pub up: bool,
    /// What it has counted.
    pub counters: PortCounters,
    /// Frames queued for it, over all traffic classes.
    pub queued_frames: u64,
    /// Their bytes, without FCS.
    pub queued_bytes: Bytes,
    /// Bytes of frames that came in by it, that outputs refused, and that it keeps.
    pub refused_bytes: Bytes,
    /// Routes in its table.
    pub routes: u64,
    /// PFC and PAUSE, where there are traffic classes.
    pub flow_control: Option<FlowControl>,
}
