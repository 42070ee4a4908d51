//! Outbox without packets, for in-memory tests of agents.

use crate::agent::{Full, Outbox};
use alloc::vec::Vec;
use axon_cache::Handle;

/// Outbox of an agent that holds no packets and may send its own frames, which are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOutbox {
    /// Frames that the agent has sent, in order.
    pub sent: Vec<Vec<u8>>,
    /// Remaining room for frames. Unlimited if `None`.
    pub room: Option<usize>,
}

impl Outbox for MemoryOutbox {
    fn head(&mut self, _: Handle) -> Option<&mut [u8]> {
        None
    }

    fn payload(&mut self, _: Handle) -> Option<&mut [u8]> {
        None
    }

    fn resize_head(&mut self, _: Handle, _: usize) -> bool {
        false
    }

    fn forward(&mut self, _: Handle) {}

    fn drop(&mut self, _: Handle) {}

    fn fetch(&mut self, _: Handle, _: usize, _: usize) {}

    fn replace(&mut self, _: Handle, _: &[u8]) -> Result<(), Full> {
        Err(Full)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Full> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(1).ok_or(Full)?;
        }
        self.sent.push(frame.to_vec());
        Ok(())
    }
}
