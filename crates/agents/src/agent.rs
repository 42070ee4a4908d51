//! Interface between an agent and its runtime. Events go in, requests come out, and time is an
//! argument.
//!
//! An event names a packet by its [`Handle`], and the agent accesses the bytes of the packet
//! through the [`Outbox`]. A head that the runtime shares with the switch is borrowed only while
//! the agent works on it, so the compiler rejects an agent that writes to a head that it has just
//! forwarded. The head of the packet in the present event is accessed in the same way as heads held
//! for long.

use alloc::collections::BTreeMap;
use axon_cache::Handle;
use axon_wire::{PortNo, Time};

/// Counters of an agent by name, for status reports and results.
pub type Counters = BTreeMap<&'static str, u64>;

/// Packet that the switch has passed to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Name of the packet until it is forwarded or dropped.
    pub handle: Handle,
    /// Length of its head, in bytes. The head consists of the first bytes of the frame, which the
    /// agent has.
    pub head_bytes: usize,
    /// Length of the whole frame, in bytes without FCS.
    pub frame_bytes: usize,
}

/// Event for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A packet has arrived. The agent holds it from now on.
    Packet(Packet),
    /// Result of [`Outbox::fetch`].
    Payload {
        /// Packet, which is still held.
        handle: Handle,
        /// Offset of `bytes` in the frame as received, in bytes.
        offset: usize,
        /// Requested bytes, or fewer at the end of the frame.
        bytes: &'a [u8],
    },
    /// The agent's deadline has passed or may have passed.
    Timeout,
}

/// Error: there is no room for another frame from the agent, or the frame is too long. Nothing was
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for a frame of the agent's own; expected a shorter frame, or a later try")]
pub struct Full;

/// Operations of an agent on packets. An agent holds a packet until it forwards or drops it.
///
/// The handle of a packet that is not held has no effect, except that the switch refuses and counts
/// it. Such answers are not counted if other answers leave no room for them.
pub trait Outbox {
    /// Returns the head of a held packet, to be read and rewritten in place, or `None` if the
    /// packet is not held.
    fn head(&mut self, handle: Handle) -> Option<&mut [u8]>;

    /// Returns the bytes after the head of a held packet, if the payload is copied to the agent.
    /// They are empty if the payload stays in the switch. Returns `None` if the packet is not held.
    fn payload(&mut self, handle: Handle) -> Option<&mut [u8]>;

    /// Resizes the head of a held packet to `bytes` at its front. A longer head begins with bytes
    /// of any value, and a shorter one loses its first bytes. The payload after it stays. Returns
    /// whether there was room. If not, the head is unchanged.
    fn resize_head(&mut self, handle: Handle, bytes: usize) -> bool;

    /// Sends a held packet into the switch through the agent port: its current head, followed by
    /// the payload from the switch's buffer.
    fn forward(&mut self, handle: Handle);

    /// Drops a held packet.
    fn drop(&mut self, handle: Handle);

    /// Requests `bytes` bytes of a held packet, starting at byte `offset` of the frame as received.
    /// They arrive as [`Event::Payload`] after the agent returns from this call, and cost a copy.
    fn fetch(&mut self, handle: Handle, offset: usize, bytes: usize);

    /// Sends a held packet with its current head and `payload` instead of its own payload.
    ///
    /// # Errors
    /// There is no room. The packet is still held.
    fn replace(&mut self, handle: Handle, payload: &[u8]) -> Result<(), Full>;

    /// Reads the switch's register of the bytes queued at a port (`OUTPUT_QUEUE_BYTES` in paper
    /// 004, section 3.3.2), as of the time when the switch last delivered packets. Returns `None`
    /// if the runtime cannot access the registers or there is no such port.
    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        let _ = port;
        None
    }

    /// Sends the agent's own frame, without FCS, into the switch through the agent port.
    ///
    /// # Errors
    /// There is no room, or the frame is too long.
    fn send(&mut self, frame: &[u8]) -> Result<(), Full>;
}

/// Program attached to a switch that processes packets.
pub trait Agent {
    /// Handles one event at `now`. It never blocks, fails or reads a clock. `now` never goes back.
    fn handle(&mut self, now: Time, event: Event<'_>, out: &mut dyn Outbox);

    /// Returns the time of the next [`Event::Timeout`]. Early and repeated calls are harmless.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Returns the counters of the agent.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}
