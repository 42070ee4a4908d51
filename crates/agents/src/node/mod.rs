//! Simulator node of an agent at its port: the payload cache, the agent, and one wire.
//!
//! A completely received frame gets a payload buffer, waits for one, or is dropped, depending on
//! the configuration. Its head goes to the agent when the agent's CPU is free. A forwarded packet
//! keeps its buffer until the wire has taken it.
//!
//! The agent is behind a link to an extra port of its switch. The link models the path between
//! switch and CPU. On Linux, the two share memory instead.

mod config;
mod head;
mod held;

use crate::agent::{Agent, Event, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_cache::{CacheCounters, ConfigError, Handle};
use axon_node::{Action, Drop, Input, Node, NodeKind, Shortcuts};
use axon_wire::{FrameBuf, PortNo, Time};
pub use config::{AgentPortConfig, CPU_PORT_LATENCY, CPU_PORT_RATE, PayloadMode, WhenFull};
pub use head::HEAD_ROOM_BYTES;
use held::{Fetched, Held};

/// Number of the only port of an agent.
pub const PORT: PortNo = PortNo(0);

/// Event that the agent has not handled yet.
#[derive(Debug)]
enum Queued {
    Packet(Handle),
    Fetched(Fetched),
}

/// Frame that has no payload buffer yet.
#[derive(Debug)]
struct Coming {
    /// Arrival time of its last byte.
    complete_at: Time,
    intact: bool,
    frame: FrameBuf,
}

/// Simulator node of an agent at its port.
#[derive(Debug)]
pub struct AgentNode<A: ?Sized> {
    config: AgentPortConfig,
    held: Held,
    coming: VecDeque<Coming>,
    /// Number of bytes in `coming`.
    coming_bytes: u64,
    /// Queued events for the agent, each with the time at which its CPU is done with it.
    events: VecDeque<(Time, Queued)>,
    /// Time at which the agent's CPU becomes idle.
    cpu_free: Time,
    carrier: bool,
    busy: bool,
    received: u64,
    agent: Box<A>,
}

impl<A: Agent + ?Sized> AgentNode<A> {
    /// Creates the node of an agent that has just been attached. The node has no carrier.
    ///
    /// # Errors
    /// The configuration is out of range.
    pub fn new(config: AgentPortConfig, agent: Box<A>) -> Result<AgentNode<A>, ConfigError> {
        Ok(AgentNode {
            config,
            held: Held::new(config)?,
            coming: VecDeque::new(),
            coming_bytes: 0,
            events: VecDeque::new(),
            cpu_free: Time::ZERO,
            carrier: false,
            busy: false,
            received: 0,
            agent,
        })
    }

    /// Returns the agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Returns the counters of the payload cache.
    pub fn cache_counters(&self) -> &CacheCounters {
        self.held.cache().counters()
    }

    /// Returns the number of refused handles of packets that the agent did not hold.
    pub fn refused(&self) -> u64 {
        self.held.refused
    }

    /// Shows the agent the queue lengths of its switch, in bytes by port, as of the time when the
    /// switch sent the next packets.
    pub fn show_queues(&mut self, bytes: &[u64]) {
        self.held.queues.clear();
        self.held.queues.extend_from_slice(bytes);
    }

    /// Returns the number of frames that came in, the number that the agent itself has made, and
    /// the number that are currently here.
    pub fn accounts(&self) -> (u64, u64, u64) {
        let here = self.coming.len() as u64 + self.held.frames();
        (self.received, self.held.own, here)
    }

    fn come(&mut self, now: Time, coming: Coming) {
        self.received += 1;
        let bytes = coming.frame.bytes().len() as u64;
        let waits = self.coming.front().is_some_and(|first| first.complete_at <= now);
        if waits && self.coming_bytes + bytes > self.config.queue_bytes_max.0 {
            self.held.ended.push((Drop::QueueFull, coming.frame));
            return;
        }
        self.coming_bytes += bytes;
        self.coming.push_back(coming);
    }

    /// Gives payload buffers to completely received frames.
    fn admit(&mut self, now: Time) {
        while self.coming.front().is_some_and(|coming| coming.complete_at <= now) {
            let waits = self.config.when_full == WhenFull::Wait;
            if waits && self.held.cache().room() == 0 {
                return;
            }
            let Some(Coming { intact, frame, .. }) = self.coming.pop_front() else { return };
            self.coming_bytes -= frame.bytes().len() as u64;
            if !intact {
                self.held.ended.push((Drop::BadFcs, frame));
                continue;
            }
            match self.held.receive(frame) {
                Ok(handle) => self.queue(now, Queued::Packet(handle)),
                Err(frame) => self.held.ended.push((Drop::QueueFull, frame)),
            }
        }
    }

    fn queue(&mut self, now: Time, event: Queued) {
        self.cpu_free = self.cpu_free.max(now) + self.config.service;
        self.events.push_back((self.cpu_free, event));
    }

    /// Delivers due events to the agent. Returns whether there were any.
    fn act(&mut self, now: Time) -> bool {
        if self.agent.deadline().is_some_and(|deadline| deadline <= now) {
            self.agent.handle(now, Event::Timeout, &mut self.held);
        }
        self.take_fetched(now);
        if self.events.front().is_none_or(|(due, _)| *due > now) {
            return false;
        }
        let Some((_, event)) = self.events.pop_front() else { return false };
        match event {
            Queued::Packet(handle) => {
                // The packet may have been reclaimed in the meantime.
                if let Some((head_bytes, frame_bytes)) = self.held.sizes(handle) {
                    let packet = Packet { handle, head_bytes, frame_bytes };
                    self.agent.handle(now, Event::Packet(packet), &mut self.held);
                }
            }
            Queued::Fetched(Fetched { handle, offset, bytes }) => {
                if self.held.sizes(handle).is_some() {
                    let event = Event::Payload { handle, offset, bytes: &bytes };
                    self.agent.handle(now, event, &mut self.held);
                }
            }
        }
        self.take_fetched(now);
        true
    }

    fn take_fetched(&mut self, now: Time) {
        while let Some(fetched) = self.held.fetched.pop_front() {
            self.queue(now, Queued::Fetched(fetched));
        }
    }

    /// Puts the next frame on the wire if it is idle. Returns whether this has freed a payload
    /// buffer.
    fn transmit(&mut self, now: Time, out: &mut Vec<Action>) -> bool {
        let mut sent = false;
        while !self.busy
            && let Some(frame) = self.held.next()
        {
            sent = true;
            if !self.carrier {
                self.held.ended.push((Drop::PortDown, frame));
                continue;
            }
            self.busy = true;
            out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
        }
        sent
    }
}

impl<A: Agent + ?Sized> Node for AgentNode<A> {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.held.now = now;
        match input {
            Input::Frame { frame, complete_at, intact, .. } => {
                self.come(now, Coming { complete_at, intact, frame });
            }
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => (self.carrier, self.busy) = (up, false),
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Host)));
            }
        }
        self.held.expire();
        loop {
            self.admit(now);
            let acted = self.act(now);
            if !self.transmit(now, out) && !acted {
                break;
            }
        }
        let ended = self.held.ended.drain(..);
        out.extend(ended.map(|(reason, frame)| Action::Dropped { ingress: PORT, reason, frame }));
    }

    fn deadline(&self) -> Option<Time> {
        let first = self.coming.front().map(|coming| coming.complete_at);
        // Frames without a buffer wait for the agent or the wire, and not until a fixed time.
        let arrival = first.filter(|&complete_at| complete_at > self.held.now);
        let event = self.events.front().map(|(due, _)| *due);
        let expiry = self.held.cache().next_expiry();
        [arrival, event, expiry, self.agent.deadline()].into_iter().flatten().min()
    }
}

impl<A: Agent + ?Sized> Shortcuts for AgentNode<A> {}
