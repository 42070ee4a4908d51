//! What runs on the hosts: senders and receivers of this very program.

pub mod data;
pub mod datagrams;
pub mod inside;
pub mod packets;
