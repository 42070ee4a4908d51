//! Agent behind the CPU port of a programmable switch, in place of a control program. It gets the
//! packets that entries trap or mirror to the CPU, and can read the registers (paper 004, sections
//! 3.2 and 5.2).
//!
//! It gets whole frames, because the CPU port of that switch keeps no payloads.

use crate::agent::{Agent, Counters, Event, Full, Outbox, Packet};
use crate::node::HEAD_ROOM_BYTES;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_cache::Handle;
use axon_pipeline::{Change, Control, Program, Received, Register};
use axon_wire::{PortNo, Span, Time};

/// Maximum number of packets queued for the agent.
const PACKETS_MAX: usize = 4096;
/// Whole frame with headroom.
#[derive(Debug)]
struct Held {
    store: Vec<u8>,
    start: usize,
    received: usize,
}

/// CPU port with an agent in place of a control program.
#[derive(Debug)]
pub struct CpuPort<A> {
    agent: A,
    /// Table entries that are installed at the start.
    entries: Vec<Change>,
    /// Delay from the arrival of a packet to its delivery to the agent.
    delay: Span,
    held: BTreeMap<Handle, Held>,
    next: u64,
    waiting: VecDeque<(Time, Handle)>,
    fetched: Vec<(Handle, usize, Vec<u8>)>,
    /// Packets dropped for lack of room.
    dropped: u64,
    failure: Option<String>,
}

impl<A: Agent> CpuPort<A> {
    /// Creates the port for an agent. `entries` are the initial table entries of the switch, and
    /// `delay` is the delivery delay.
    pub fn new(agent: A, entries: Vec<Change>, delay: Span) -> CpuPort<A> {
        CpuPort {
            agent,
            entries,
            delay,
            held: BTreeMap::new(),
            next: 0,
            waiting: VecDeque::new(),
            fetched: Vec::new(),
            dropped: 0,
            failure: None,
        }
    }

    /// Returns the agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Returns the agent's counters, and the number of packets dropped before they reached the
    /// agent.
    pub fn counters(&self) -> Counters {
        let mut counters = self.agent.counters();
        counters.insert("cpu_dropped", self.dropped);
        counters
    }

    fn act(&mut self, now: Time, control: &mut dyn Control) {
        let CpuPort { agent, held, fetched, waiting, .. } = self;
        let mut session = Session { held, fetched, control };
        if agent.deadline().is_some_and(|deadline| deadline <= now) {
            agent.handle(now, Event::Timeout, &mut session);
        }
        while waiting.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, handle)) = waiting.pop_front() else { break };
            let Some(packet) = session.held.get(&handle) else { continue };
            let bytes = packet.received;
            let packet = Packet { handle, head_bytes: bytes, frame_bytes: bytes };
            agent.handle(now, Event::Packet(packet), &mut session);
        }
        while let Some((handle, offset, bytes)) = session.fetched.pop() {
            let event = Event::Payload { handle, offset, bytes: &bytes };
            agent.handle(now, event, &mut session);
        }
    }
}

impl<A: Agent + Send> Program for CpuPort<A> {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        let refused = control.commit(&self.entries).err();
        self.failure = refused.map(|error| format!("the tables refuse its entries: {error}"));
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        if self.held.len() >= PACKETS_MAX {
            self.dropped += 1;
            return;
        }
        let mut store = alloc::vec![0; HEAD_ROOM_BYTES];
        store.extend_from_slice(received.frame);
        let handle = Handle::from_raw(self.next);
        self.next += 1;
        let held = Held { store, start: HEAD_ROOM_BYTES, received: received.frame.len() };
        self.held.insert(handle, held);
        self.waiting.push_back((now + self.delay, handle));
        self.act(now, control);
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        self.act(now, control);
    }

    fn deadline(&self) -> Option<Time> {
        let packet = self.waiting.front().map(|(due, _)| *due);
        [packet, self.agent.deadline()].into_iter().flatten().min()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

/// Access to the switch during one call of the agent.
struct Session<'a> {
    held: &'a mut BTreeMap<Handle, Held>,
    fetched: &'a mut Vec<(Handle, usize, Vec<u8>)>,
    control: &'a mut dyn Control,
}

impl Outbox for Session<'_> {
    fn head(&mut self, handle: Handle) -> Option<&mut [u8]> {
        self.held.get_mut(&handle).map(|held| &mut held.store[held.start..])
    }

    fn payload(&mut self, handle: Handle) -> Option<&mut [u8]> {
        self.held.get_mut(&handle).map(|_| &mut [][..])
    }

    fn resize_head(&mut self, handle: Handle, bytes: usize) -> bool {
        let Some(held) = self.held.get_mut(&handle) else { return false };
        let start = held.store.len().checked_sub(bytes);
        held.start = start.unwrap_or(held.start);
        start.is_some()
    }

    fn forward(&mut self, handle: Handle) {
        if let Some(held) = self.held.remove(&handle) {
            self.control.inject_packet(None, &held.store[held.start..]);
        }
    }

    fn drop(&mut self, handle: Handle) {
        self.held.remove(&handle);
    }

    fn fetch(&mut self, handle: Handle, offset: usize, bytes: usize) {
        let Some(held) = self.held.get(&handle) else { return };
        let frame = &held.store[HEAD_ROOM_BYTES..];
        let end = offset.saturating_add(bytes).min(frame.len());
        self.fetched.push((handle, offset, frame[offset.min(end)..end].to_vec()));
    }

    fn replace(&mut self, handle: Handle, payload: &[u8]) -> Result<(), Full> {
        // The head is the whole frame, so nothing follows it.
        if let Some(held) = self.held.remove(&handle) {
            self.control.inject_packet(None, &[&held.store[held.start..], payload].concat());
        }
        Ok(())
    }

    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        self.control.read_register(Register::QueueBytes(port)).ok()
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Full> {
        self.control.inject_packet(None, frame);
        Ok(())
    }
}
