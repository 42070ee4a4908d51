//! What an agent is to its runtime: events in, requests out, time is an argument.
//!
//! An event names a packet by its [`Handle`]; its bytes are reached through the [`Outbox`]. So a
//! head that the runtime shares with the switch is lent for as long as the agent works on it, and
//! no longer: the compiler refuses an agent that writes to a head which it has just forwarded. And
//! a head of the present event and one held since long are reached in the same way.

use alloc::collections::BTreeMap;
use axon_cache::Handle;
use axon_wire::{PortNo, Time};

/// What an agent has counted, by name, for status and results.
pub type Counters = BTreeMap<&'static str, u64>;

/// A packet that the switch has handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its name until it is forwarded or dropped.
    pub handle: Handle,
    /// Bytes of its head, which the agent has: the first of the frame.
    pub head_bytes: usize,
    /// Bytes of the whole frame, without FCS.
    pub frame_bytes: usize,
}

/// An event for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A packet has come. The agent holds it from now on.
    Packet(Packet),
    /// The answer to [`Outbox::fetch`].
    Payload {
        /// The packet. It is still held.
        handle: Handle,
        /// Where `bytes` begin in the frame as it came in, in bytes.
        offset: usize,
        /// What stands there: as much as was asked for, or as there is up to the end of the frame.
        bytes: &'a [u8],
    },
    /// The agent's deadline has passed, or may have.
    Timeout,
}

/// An agent has no room for another frame of its own, or the frame is longer than may be sent.
/// Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for a frame of the agent's own; expected a shorter frame, or a later try")]
pub struct Full;

/// What an agent may do with packets. A packet that it does nothing with, it holds.
///
/// A handle that is not of a held packet changes nothing: the switch counts it and refuses it. More
/// such answers than there is room for beside the others are not counted.
pub trait Outbox {
    /// The head of a held packet, to read and to rewrite in place; `None` if it is not held.
    fn head(&mut self, handle: Handle) -> Option<&mut [u8]>;

    /// What stands behind the head of a held packet, where the payload is copied to the agent.
    /// Empty where it stays with the switch; `None` if the packet is not held.
    fn payload(&mut self, handle: Handle) -> Option<&mut [u8]>;

    /// Makes the head of a held packet `bytes` long, at its front: a longer one begins with bytes
    /// of any value, a shorter one has lost its first bytes. The payload behind it stays. Says
    /// whether there was room; the head is as it was if not.
    fn resize_head(&mut self, handle: Handle, bytes: usize) -> bool;

    /// Sends a held packet by the agent port into the switch: its head as it is now, and behind it
    /// the payload from the switch's buffer.
    fn forward(&mut self, handle: Handle);

    /// Drops a held packet.
    fn drop(&mut self, handle: Handle);

    /// Asks for `bytes` bytes of a held packet, from byte `offset` of the frame as it came in. They
    /// come as [`Event::Payload`] after this call of the agent, and cost a copy.
    fn fetch(&mut self, handle: Handle, offset: usize, bytes: usize);

    /// Sends a held packet with its head as it is now and `payload` behind it, in place of the
    /// payload that it came with.
    ///
    /// # Errors
    /// There is no room for it. The packet is still held.
    fn replace(&mut self, handle: Handle, payload: &[u8]) -> Result<(), Full>;

    /// Reads the register of the switch that says how many bytes wait for the wire of a port
    /// (`OUTPUT_QUEUE_BYTES` of paper 004, section 3.3.2), as it was when the switch last gave
    /// packets. `None` where the runtime has no way to the registers, or there is no such port.
    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        let _ = port;
        None
    }

    /// Sends a frame of the agent's own, without FCS, by the agent port into the switch.
    ///
    /// # Errors
    /// There is no room for it, or it is too long.
    fn send(&mut self, frame: &[u8]) -> Result<(), Full>;
}

/// A program beside a switch that looks at packets.
pub trait Agent {
    /// Handles one event at `now`. Never blocks, never fails, never reads a clock. `now` never goes
    /// back.
    fn handle(&mut self, now: Time, event: Event<'_>, out: &mut dyn Outbox);

    /// When to call with [`Event::Timeout`] next. Early or repeated calls are harmless.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// What it has counted so far.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}
