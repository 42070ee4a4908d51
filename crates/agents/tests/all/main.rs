//! Tests of agents at their ports, from incoming to outgoing frames.

mod congestion;
mod forwarder;
mod forwarder_forged;
mod in_network_cache;
mod node;
mod port;
