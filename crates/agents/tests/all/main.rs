//! Agents at their ports, from frames in to frames out.

mod congestion;
mod forwarder;
mod forwarder_forged;
mod in_network_cache;
mod node;
mod port;
