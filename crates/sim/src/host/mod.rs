//! Hosts: a real IP stack behind a simulated NIC, and the applications on it.

mod applications;
pub mod apps;
pub mod arp_host;
pub(crate) mod bond;
pub mod bridge;
mod config;
pub(crate) mod datagram;
pub mod dcb_nic;
mod flow_control;
mod gateway;
mod interface;
mod ipv6;
pub(crate) mod lost;
mod nic;
mod node;
pub mod ping;
mod reaching;
mod resolve;
mod rx_ring;
mod stack;
mod tcp;

pub use config::{HostConfig, HostVlan};
pub use node::{Host, PORT};
