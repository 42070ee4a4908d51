//! Result for a host's frame.

use alloc::vec::Vec;
use axon_wire::{MacAddr, Route};

/// Result for a host's frame without a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The frame was ARP or DHCP and has been handled.
    Served,
    /// Forward the frame on this route, which is kept in software.
    Forward(Route),
    /// Forward the frame on this route, which is kept in software, with this destination instead of
    /// the masqueraded one.
    Readdress(Route, MacAddr),
    /// Queue the frame until there is a route to this destination.
    Wait(MacAddr),
    /// Copy the frame: each copy is forwarded, or queued.
    Copies(Vec<Outcome>),
}
