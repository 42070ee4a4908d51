//! Axon nodes on real Linux hosts: ports, the run loop and the daemons.
//!
//! All unsafe code is in [`sys`], [`ring`] and [`fork`].

pub mod agent;
pub mod agent_port;
pub mod attach;
pub mod chain;
pub mod clock;
mod closing;
pub mod columns;
pub mod daemon;
pub mod dataplane;
pub mod dataplane_choice;
pub mod dcbx;
mod device_drops;
pub mod device_port;
pub mod flow_control;
pub mod fork;
pub mod incarnation;
pub mod inspect;
pub mod iproute;
pub mod kernel;
pub mod link_watch;
pub mod machine;
pub mod moderation;
pub mod namespace;
mod notes;
pub mod offload;
pub mod pacer;
pub mod packet;
mod pauses;
pub mod policy;
pub mod port;
mod port_capture;
pub mod probe;
pub mod process;
pub mod programmable;
pub mod record;
mod record_queue;
pub mod registers;
pub mod rekey;
pub mod replay;
pub mod request;
pub mod ring;
pub mod run;
mod seed;
pub mod send_port;
pub mod sniffer;
mod socket;
pub mod status;
pub mod store;
pub mod sys;
pub mod tables;
pub mod tap;
#[cfg(test)]
mod testing;
mod wake_latency;

pub use axon_log as log;
