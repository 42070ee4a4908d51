//! Interface of a node to its runtime.

use crate::contract::{Action, Input};
use alloc::vec::Vec;
use axon_wire::{PortNo, Time};

/// A switch or a controller, as seen by its runtime.
pub trait Node {
    /// Handles one input at `now` and appends its actions to `out`.
    ///
    /// Never blocks, never fails, never reads a clock. `now` never goes back.
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>);

    /// Returns the time of the next [`Input::Timeout`]. Early or repeated calls are harmless.
    fn deadline(&self) -> Option<Time>;

    /// Returns the bytes queued for the wire of a port now, as read by the agents of a switch;
    /// `None` if the node does not count them, or there is no such port.
    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        let _ = port;
        None
    }
}
