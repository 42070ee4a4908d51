//! Frames of a throughput measurement: their memory, and the check of those that leave the switch.

use super::rewriter::FIELD_AT;
use anyhow::{Context, Result, ensure};
use axon_wire::header::{self, PacketType};
use axon_wire::{FrameBuf, HopWidth, PortNo};
use std::collections::VecDeque;

/// Number of receive buffers: the slots in the receive ring of a lossless port.
const BUFFERS: usize = 2048;
/// Sampling interval, in frames, for the byte-by-byte comparison at the egress.
const COMPARED: u64 = 1009;

/// Path by which frames reach the memory of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Like a NIC: into one of 2,048 buffers, each used once per round, so that the payload is in
    /// no CPU cache. Arrival takes no CPU time.
    Nic,
    /// Like a packet socket: the switch copies each frame from a ring into the most recently freed
    /// buffer. This takes CPU time and leaves the payload in the cache.
    Socket,
}

impl Arrival {
    /// All variants.
    pub const ALL: [Arrival; 2] = [Arrival::Nic, Arrival::Socket];

    /// Returns the name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Arrival::Nic => "nic",
            Arrival::Socket => "socket",
        }
    }
}

/// Frames of one length that a switch receives and sends.
pub(super) struct Traffic {
    arrival: Arrival,
    /// Frame as it arrives.
    whole: Vec<u8>,
    /// Free receive buffers, with the most recently freed one at the end.
    free: VecDeque<FrameBuf>,
    in_switch: usize,
    /// Frames that have left the switch.
    packets: u64,
    wrong: u64,
}

impl Traffic {
    /// Creates frames of `frame_bytes` bytes with a route over these hops.
    ///
    /// # Errors
    /// The frame is too short for its route.
    pub(super) fn new(arrival: Arrival, frame_bytes: usize, hops: &[PortNo]) -> Result<Traffic> {
        let mut whole: Vec<u8> = (0..frame_bytes).map(|at| at as u8).collect();
        header::emit(&mut whole, HopWidth::Eight, PacketType::Ethernet, hops, &[])
            .context("a frame that is too short")?;
        ensure!(frame_bytes > 2 * FIELD_AT, "a frame of {frame_bytes} bytes is too short");
        let free = (0..BUFFERS).map(|_| FrameBuf::new(&whole)).collect();
        Ok(Traffic { arrival, whole, free, in_switch: 0, packets: 0, wrong: 0 })
    }

    /// Returns the length of a frame, in bytes.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.whole.len() as u64
    }

    /// Returns the number of frames that have left the switch.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns whether frames are in flight in the switch or with its agent.
    pub(super) const fn has_in_flight(&self) -> bool {
        self.in_switch > 0
    }

    /// Returns the number of wrong frames.
    pub(super) const fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Returns the next frame, in the memory of the switch.
    pub(super) fn next(&mut self) -> Option<FrameBuf> {
        let (store, copied) = match self.arrival {
            Arrival::Nic => (self.free.pop_front()?, FIELD_AT + 1),
            Arrival::Socket => (self.free.pop_back()?, self.whole.len()),
        };
        self.in_switch += 1;
        let mut frame = FrameBuf::from_vec(store.into_vec(), FrameBuf::HEADROOM);
        frame.bytes_mut()[..copied].copy_from_slice(&self.whole[..copied]);
        Some(frame)
    }

    /// Takes back receive buffers.
    pub(super) fn free(&mut self, frames: impl Iterator<Item = FrameBuf>) {
        self.free.extend(frames);
    }

    /// Counts a frame that the switch has dropped.
    pub(super) fn lose(&mut self) {
        self.wrong += 1;
    }

    /// Counts and checks a frame that leaves the switch.
    pub(super) fn leave(&mut self, frame: &FrameBuf) {
        self.packets += 1;
        self.in_switch -= 1;
        let bytes = frame.bytes();
        let rewritten = bytes.get(FIELD_AT) == Some(&(self.whole[FIELD_AT].wrapping_add(1)));
        if !rewritten || bytes.len() != self.whole.len() {
            self.wrong += 1;
        }
        if self.packets.is_multiple_of(COMPARED) {
            let rest = bytes.iter().enumerate().skip(FIELD_AT + 1);
            self.wrong += u64::from(!rest.into_iter().all(|(at, byte)| *byte == at as u8));
        }
    }
}
