//! Whole nodes, assembled once for every runtime: plane, seals, discovery and either the edge
//! agent ([`SwitchNode`]) or the controller ([`ControllerNode`]).
//!
//! A node handles one input in rounds. The plane answers with actions; those that are punts go to
//! the control plane, whose [`Effect`](crate::effect::Effect)s come back as frames for the plane;
//! the round ends when no part has output. A frame in transit takes no part in this: it goes
//! through the plane and out.

mod alone;
mod chassis;
mod congested;
mod controller;
mod dcbx;
mod failover;
mod host_limits;
mod lacp;
mod lacp_ports;
mod load;
mod lost;
mod pause_meter;
mod port_kind;
mod prober;
mod refused;
mod revoked;
mod settings;
mod spread;
mod switch;
mod telemetry;
pub(crate) mod waiting;

pub use chassis::Refusals;
pub use controller::ControllerNode;
pub use switch::SwitchNode;
