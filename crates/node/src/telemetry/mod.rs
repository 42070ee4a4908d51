//! Telemetry of nodes, data planes and ports, as types.
//!
//! Status tables, JSON and all other formats are made from these types only. The JSON is serde's: a
//! key is a field's name, with its unit as suffix (`_bytes`, `_bps`, `_us`, `_ticks` of 10 ps).
//! Port numbers are numbers; the control plane, as a port, is 65535. MAC addresses are text,
//! `02:00:00:00:00:01`. A set of priorities is a list of numbers. Counts by reason are an object
//! from the reason's name to the count; reasons that never occurred are left out.

pub mod bonds;
pub mod conflicts;
pub mod control;
pub mod counts;
pub mod dcbx;
pub mod flow_control;
pub mod node;
pub mod plane;
pub mod static_mode;
pub mod text;

pub use bonds::{BondTelemetry, MemberTelemetry, PartnerTelemetry};
pub use conflicts::{ConflictingHost, IpConflict};
pub use control::{
    ControllerCounters, ControllerHost, DhcpCounters, EdgeCounters, EdgeDebts, EdgeHost, EdgeRoute,
    Neighbour, PairTelemetry, PolicyTelemetry, QuarantineTelemetry, RefusedSetting, Restored,
    TenantTelemetry,
};
pub use counts::{Counts, Reason};
pub use dcbx::{DcbxTelemetry, Defence, LldpNeighbour, RemoteDcbx, RemoteEts, RemotePfc, Source};
pub use flow_control::{BlockedBuffer, FlowControl, PausedQueue, QueuedBytes};
pub use node::{
    AgentTelemetry, ControllerTelemetry, NodeTelemetry, ProgrammableTelemetry, ReactionPoint,
    SwitchTelemetry, TableCount,
};
pub use plane::{MemoryTelemetry, PlaneTelemetry, PoolTelemetry, PortTelemetry, RegisterTelemetry};
pub use static_mode::{Miscabled, StaticTelemetry};
