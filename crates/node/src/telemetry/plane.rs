//! Telemetry of a data plane: counters, memory, ports, registers.

use super::flow_control::FlowControl;
use crate::counters::PortCounters;
use crate::port::PortKind;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use axon_wire::Bytes;
use serde::{Deserialize, Serialize};

/// Telemetry of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneTelemetry {
    /// The sum over all ports and the control plane.
    pub total: PortCounters,
    /// The shared packet memory, if it has pools.
    pub memory: Option<MemoryTelemetry>,
    /// The ports, by number from 0.
    pub ports: Vec<PortTelemetry>,
    /// The registers, if it is a device that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<RegisterTelemetry>,
}

/// Registers and counters of a device. Counters have 32 bits and wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterTelemetry {
    /// Registers of the device, and counters of its CPU as a port, by the names of its register
    /// map.
    pub device: BTreeMap<String, u32>,
    /// Registers and counters of the ports, by number from 0, by the same names.
    pub ports: Vec<BTreeMap<String, u32>>,
}

/// Pools of a shared packet memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTelemetry {
    /// The pool of the lossless priorities.
    pub lossless: PoolTelemetry,
    /// The pool of all other priorities.
    pub lossy: PoolTelemetry,
}

/// Usage of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolTelemetry {
    /// Bytes of the pool that are in use now.
    pub used_bytes: Bytes,
    /// Maximum of the bytes in use since the start.
    pub peak_bytes: Bytes,
}

/// Telemetry of a port of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTelemetry {
    /// The kind of the port.
    pub kind: PortKind,
    /// True if the port has carrier.
    pub up: bool,
    /// The counters of the port.
    pub counters: PortCounters,
    /// Frames queued for the port, over all traffic classes.
    pub queued_frames: u64,
    /// Bytes queued for the port, without FCS.
    pub queued_bytes: Bytes,
    /// Bytes of refused frames that the port keeps as their input.
    pub refused_bytes: Bytes,
    /// Number of routes of the port.
    pub routes: u64,
    /// PFC and PAUSE, where there are traffic classes.
    pub flow_control: Option<FlowControl>,
}
