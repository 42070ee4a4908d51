//! Simulated hosts: a real IP stack behind a simulated NIC, and the applications on it.
//!
//! A [`Host`] is a node: its input is frames, carrier and time, its output frames.
#![forbid(unsafe_code)]

mod addressing;
pub mod apps;
pub mod arp_host;
mod bond;
pub mod bridge;
mod config;
mod datagram;
pub mod dcb_nic;
mod device;
mod gateway;
mod host;
mod interface;
mod ipv4;
mod ipv6;
pub mod lost;
mod nic;
pub mod ping;
mod reception;
mod resolve;
pub mod rx_ring;
mod stack;
mod tcp;
mod vlan;

pub use config::{HostConfig, HostVlan, PORT};
pub use datagram::Ends;
pub use host::Host;
pub use ping::{PingPlan, PingStats};
