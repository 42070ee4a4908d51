//! Senders and receivers in this program, which run on the hosts.

pub mod data;
pub mod datagrams;
pub mod inside;
pub mod packets;
