//! Senders and receivers of this program, run on the hosts.

pub mod data;
pub mod datagrams;
pub mod inside;
pub mod packets;
