//! Payload caching in a forwarder (Yocum and Chase, *Fast Forwarding on Myrinet*: "003").
//!
//! A forwarder reads the header of a packet and sends the packet on. With payload caching, the NIC
//! keeps the payload, so that the payload crosses the I/O bus once instead of twice. This crate
//! computes the gain in two independent ways:
//!
//! - [`network`] is the paper's open queueing network, with visits and service times of stations,
//!   saturation, response time and, by Little's law, the size of the cache. [`lanai`] derives its
//!   stations from the paper's hardware, and [`pcie`] from today's PCI Express and Ethernet.
//! - [`forwarder`] simulates the machine event by event, with the NIC memory that DMA engines and
//!   the processor share, the bus, the rings, the buffers and the host.
//!
//! The crate uses floats for queueing theory. No code that forwards frames depends on it.

#![forbid(unsafe_code)]

pub mod forwarder;
pub mod hardware;
pub mod lanai;
pub mod network;
pub mod pcie;
