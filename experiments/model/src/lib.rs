//! Payload caching in a forwarder (Yocum and Chase, *Fast Forwarding on Myrinet*: "003").
//!
//! A forwarder reads the header of a packet and sends the packet on. With payload caching the NIC
//! keeps the payload, so that it crosses the I/O bus once instead of twice. This crate computes the
//! gain in two independent ways:
//!
//! - [`network`] is the paper's open queueing network: stations with visits and service times,
//!   saturation, response time and, by Little's law, the size of the cache. [`lanai`] derives its
//!   stations from the paper's hardware, [`pcie`] from PCI Express and Ethernet of today.
//! - [`forwarder`] simulates the machine event by event: the memory of the NIC that DMA engines and
//!   the processor share, the bus, the rings, the buffers and the host.
//!
//! The crate uses floats for queueing theory; nothing that forwards a frame depends on it.

#![forbid(unsafe_code)]

pub mod forwarder;
pub mod hardware;
pub mod lanai;
pub mod network;
pub mod pcie;
