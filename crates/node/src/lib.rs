//! Contract between nodes, data planes and runtimes: inputs, outputs and shared types.
//!
//! This crate reads no clock, opens no socket, spawns no thread and contains no forwarding
//! algorithm.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod agenda;
pub mod capabilities;
pub mod command;
pub mod contract;
pub mod counters;
pub mod dataplane;
pub mod keys;
pub mod node;
pub mod path;
pub mod policy;
pub mod port;
pub mod probe;
pub mod random;
pub mod routes;
pub mod settings;
pub mod shortcuts;
pub mod snapshot;
pub mod store;
pub mod telemetry;
pub mod vlans;

pub use capabilities::{Capabilities, Feature, FeatureSet, Need, Needs};
pub use command::{Command, CommandError, Done, NodeKind, Reply, Request, RequestId};
pub use contract::{Action, Drop, Input, Note, Punt, Refusal};
pub use counters::{Counters, PortCounters, PortEvent};
pub use dataplane::{Dataplane, PortView, QueueState};
pub use keys::{KeyMismatch, Keys, Secret, SwitchKeys};
pub use node::Node;
pub use path::{Step, SwitchIndex};
pub use policy::{HostPair, PolicyChange, PolicyDone, PolicyRefusal, Subject};
pub use port::PortKind;
pub use routes::{RouteAnswer, RouteChange, RouteError, RouteKey, RouteTicket};
pub use settings::{PortSetting, SettingError, SettingName, Treatment};
pub use shortcuts::{Awaited, Shortcuts};
pub use snapshot::{Masqueraded, PortSnapshot, Snapshot};
pub use store::{
    KeyInVlan, StoreChange, StoreKey, Stored, StoredHost, StoredInVlan, StoredLease, StoredLease6,
    StoredState,
};
pub use vlans::PortVlans;
