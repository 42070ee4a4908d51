//! Conventional Ethernet switch: a learning bridge that runs RSTP.

pub mod fdb;
mod node;
pub mod plane;

pub use node::{BridgeNode, BridgeNodeConfig};
pub use plane::{Bridge, BridgeConfig};
