//! What an agent port carries with payloads that stay and with payloads that are copied.
//!
//! A switch (a software plane of three ports) gets frames from memory by its first port. Their
//! route leads to the agent port, and from there out by the third, where they are taken away. They
//! come as [`Arrival`] says. The agent rewrites a field of every head. Between are the plane, its
//! queues and the port, as `axon switch` runs them; the loop around them is the one below.

use super::super::counters::AgentCounters;
use super::super::port::AgentPort;
use super::super::setup::AgentPortSetup;
use super::process::{MeasuredAgent, Process};
use super::rewriter::FIELD_AT;
use super::{ATTACH_MAX, wait_for_agent};
use crate::clock::Clock;
use crate::port::{Pool, Port};
use anyhow::{Context, Result, ensure};
use axon_agents::node::PayloadMode;
use axon_node::{Action, Input, Node, PortKind};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::header::{self, PacketType};
use axon_wire::{Bytes, FrameBuf, HopWidth, MacAddr, PortNo, Span, Time};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

const IN: PortNo = PortNo(0);
const AGENT: PortNo = PortNo(1);
const OUT: PortNo = PortNo(2);
/// Frames that the switch takes in in one round.
const BATCH: usize = 64;
/// Buffers that frames come in: the slots of a lossless port's receive ring.
const BUFFERS: usize = 2048;
/// One frame in so many is compared byte by byte when it leaves.
const COMPARED: u64 = 1009;

/// What one turn has carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Frames that went through the agent and left the switch.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// How long that took.
    pub took: Duration,
    /// Bytes of frames that the port copied to the agent and from it, counted at each copy; also
    /// of the frames that left after that time, when no more came in.
    pub copied_bytes: u64,
    /// The frames that this is of.
    pub copied_packets: u64,
}

impl Turn {
    /// Bits of frames in a second, in units of 10^9.
    pub fn gbps(&self) -> f64 {
        8.0 * self.bytes as f64 / self.took.as_secs_f64() / 1e9
    }

    /// Frames in a second.
    pub fn packets_per_second(&self) -> f64 {
        self.packets as f64 / self.took.as_secs_f64()
    }

    /// Bytes copied between switch and agent for each frame, both ways together.
    pub fn copied_per_packet(&self) -> f64 {
        self.copied_bytes as f64 / self.copied_packets.max(1) as f64
    }
}

/// The turns of both kinds of payload, which alternated.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Payloads stayed in the switch.
    pub cached: Vec<Turn>,
    /// They were copied.
    pub copied: Vec<Turn>,
}

impl Turns {
    /// How many times the bits a second of copying payload caching carries: the least ratio of two
    /// neighbouring turns, the median, and the most.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let ratios = || self.cached.iter().zip(&self.copied).map(|(a, b)| a.gbps() / b.gbps());
        let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
        (least, median(ratios()), most)
    }
}

/// The middle one of some values; NaN if there is none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How frames get into the memory of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// As a NIC leaves them: in one of 2,048 buffers, each used once a round, so that the payload
    /// is in no cache of the CPU. Getting there takes no time of the CPU.
    Nic,
    /// As a packet socket leaves them: the switch copies each from a ring into the buffer that was
    /// free last, which takes its time, and the payload is in the cache afterwards.
    Socket,
}

impl Arrival {
    /// Both.
    pub const ALL: [Arrival; 2] = [Arrival::Nic, Arrival::Socket];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Arrival::Nic => "nic",
            Arrival::Socket => "socket",
        }
    }
}

/// A switch with its agent, which is a process of its own; see [`process`](super::process).
pub struct Running {
    bench: Bench,
    process: Process,
}

impl Running {
    /// Starts an agent, named `name` among those of this process, by `start` with its socket.
    ///
    /// # Errors
    /// The agent cannot be started, or is not attached within 10 s.
    pub fn start(
        name: &str,
        (payload, arrival, frame_bytes): (PayloadMode, Arrival, usize),
        start: impl FnOnce(&Path) -> Result<Process>,
    ) -> Result<Running> {
        let socket = format!("axon-agents-{name}-{}.sock", std::process::id());
        let socket = std::env::temp_dir().join(socket);
        let mut bench = Bench::new(&socket, payload, arrival, frame_bytes)?;
        let process = start(&socket)?;
        bench.wait()?;
        Ok(Running { bench, process })
    }

    /// The same with a [rewriter](super::process::MeasuredAgent::Rewriter).
    ///
    /// # Errors
    /// As [`Running::start`].
    pub fn rewriter(payload: PayloadMode, arrival: Arrival, frame_bytes: usize) -> Result<Running> {
        Running::start(&format!("{payload:?}"), (payload, arrival, frame_bytes), |socket| {
            Process::start(MeasuredAgent::Rewriter, Span::from_millis(1), socket)
        })
    }
}

/// Measures two alternately, each for `span`, and before that once to warm up.
///
/// # Errors
/// An agent has gone or failed, or frames are not as they should be.
pub fn alternate(mut pair: [Running; 2], rounds: usize, span: Span) -> Result<[Vec<Turn>; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    for number in 0..=rounds {
        for (running, found) in pair.iter_mut().zip(&mut found) {
            let turn = running.bench.turn(span)?;
            if number > 0 {
                found.push(turn);
            }
        }
    }
    for Running { bench, process } in pair {
        // The end of its attachment is the end of an agent.
        drop(bench);
        process.join()?;
    }
    Ok(found)
}

/// Measures frames of one length, payloads cached and copied alternately, each for `span`.
///
/// # Errors
/// As [`Running::start`] and [`alternate`].
pub fn cached_and_copied(
    (arrival, frame_bytes): (Arrival, usize),
    turns: usize,
    span: Span,
) -> Result<Turns> {
    let cached = Running::rewriter(PayloadMode::Cached, arrival, frame_bytes)?;
    let copied = Running::rewriter(PayloadMode::Copied, arrival, frame_bytes)?;
    let [cached, copied] = alternate([cached, copied], turns, span)?;
    Ok(Turns { cached, copied })
}

/// A switch with an agent, through which frames of one length go.
pub struct Bench {
    plane: Plane,
    port: AgentPort,
    clock: Clock,
    pool: Pool,
    payload: PayloadMode,
    frame_bytes: usize,
    arrival: Arrival,
    /// A frame as it comes in.
    whole: Vec<u8>,
    /// Buffers that frames come in, the one that was free last at the end.
    free: VecDeque<FrameBuf>,
    batch: Vec<FrameBuf>,
    received: Vec<FrameBuf>,
    actions: Vec<Action>,
    /// Wires for which the plane awaits `TxDone`.
    busy: Vec<PortNo>,
    packets: u64,
    in_switch: usize,
    wrong: u64,
}

impl Bench {
    /// A switch whose agent attaches at `socket`.
    ///
    /// # Errors
    /// The socket cannot be had, or the frame is too short for its route.
    pub fn new(
        socket: &Path,
        payload: PayloadMode,
        arrival: Arrival,
        frame_bytes: usize,
    ) -> Result<Bench> {
        let setup =
            AgentPortSetup { payload, frame_bytes_max: frame_bytes, ..AgentPortSetup::at(socket) };
        let port = AgentPort::open("s1-p1", &setup)?;
        let mut config = PlaneConfig::with_ports(3, MacAddr([2, 0, 0, 0, 0, 1]));
        (config.frame_bytes_max, config.queue_bytes_max) = (frame_bytes, Bytes(16 << 20));
        let mut plane = Plane::new(config);
        let mut actions = Vec::new();
        for port in [IN, AGENT, OUT] {
            plane.set_kind(port, PortKind::Axon);
            plane.handle(Time::ZERO, Input::Link { port, up: true }, &mut actions);
        }
        let mut whole: Vec<u8> = (0..frame_bytes).map(|at| at as u8).collect();
        let hops = [AGENT, OUT];
        header::emit(&mut whole, HopWidth::Eight, PacketType::Ethernet, &hops, &[])
            .context("a frame that is too short")?;
        ensure!(frame_bytes > 2 * FIELD_AT, "a frame of {frame_bytes} bytes is too short");
        Ok(Bench {
            plane,
            port,
            clock: Clock::start(),
            pool: Pool::default(),
            payload,
            frame_bytes,
            arrival,
            free: (0..BUFFERS).map(|_| FrameBuf::new(&whole)).collect(),
            whole,
            batch: Vec::new(),
            received: Vec::new(),
            actions,
            busy: Vec::new(),
            packets: 0,
            in_switch: 0,
            wrong: 0,
        })
    }

    /// Waits until the agent is attached.
    ///
    /// # Errors
    /// It does not come within 10 s.
    pub fn wait(&mut self) -> Result<()> {
        wait_for_agent(&mut self.port, &self.clock)
    }

    /// Carries frames for as long as `span`, as fast as it goes.
    ///
    /// # Errors
    /// The agent has gone, or a frame left that is not as it should be.
    pub fn turn(&mut self, span: Span) -> Result<Turn> {
        let (began, packets, copied) = (self.clock.now(), self.packets, self.copied_bytes());
        let mut now = began;
        while now.since(began) < span {
            self.round(now, true)?;
            now = self.clock.now();
        }
        let mut turn = Turn {
            packets: self.packets - packets,
            bytes: (self.packets - packets) * self.frame_bytes as u64,
            took: Duration::from_nanos(now.since(began).as_nanos()),
            copied_bytes: 0,
            copied_packets: 0,
        };
        // The next turn begins with an empty switch.
        while self.in_switch > 0 {
            ensure!(self.clock.now().since(now) < ATTACH_MAX, "the agent keeps packets");
            self.round(self.clock.now(), false)?;
        }
        turn.copied_bytes = self.copied_bytes() - copied;
        turn.copied_packets = self.packets - packets;
        ensure!(self.wrong == 0, "{} frames are not as they were", self.wrong);
        Ok(turn)
    }

    /// What the port has counted.
    pub fn counters(&self) -> AgentCounters {
        self.port.agent_status().counters
    }

    fn copied_bytes(&self) -> u64 {
        let counters = self.counters();
        counters.copied_to_agent_bytes + counters.copied_from_agent_bytes
    }

    /// As a run loop does: wires, frames, and what was decided leaves at the end.
    fn round(&mut self, now: Time, fills: bool) -> Result<()> {
        ensure!(self.port.carrier() == Some(true), "the agent has gone");
        self.port.receive(&mut self.pool, &mut self.received)?;
        let mut received = std::mem::take(&mut self.received);
        for frame in received.drain(..) {
            self.frame(now, AGENT, frame);
        }
        self.received = received;
        self.free_wires(now);
        for _ in 0..BATCH {
            if !fills || self.port.room() <= self.batch.len() {
                break;
            }
            let Some(frame) = self.next() else { break };
            self.in_switch += 1;
            self.frame(now, IN, frame);
        }
        if !self.batch.is_empty() {
            self.port.transmit(&mut self.batch)?;
            // Where payloads are copied, the buffers are free again.
            self.free.extend(self.batch.drain(..));
        }
        Ok(())
    }

    /// The next frame, in the memory of the switch.
    fn next(&mut self) -> Option<FrameBuf> {
        let (store, copied) = match self.arrival {
            Arrival::Nic => (self.free.pop_front()?, FIELD_AT + 1),
            Arrival::Socket => (self.free.pop_back()?, self.whole.len()),
        };
        let mut frame = FrameBuf::from_vec(store.into_vec(), FrameBuf::HEADROOM);
        frame.bytes_mut()[..copied].copy_from_slice(&self.whole[..copied]);
        Some(frame)
    }

    fn frame(&mut self, now: Time, port: PortNo, frame: FrameBuf) {
        self.feed(now, Input::Frame { port, frame, complete_at: now, intact: true });
        self.free_wires(now);
    }

    fn free_wires(&mut self, now: Time) {
        let mut at = 0;
        while let Some(&port) = self.busy.get(at) {
            if port == AGENT && self.port.room() <= self.batch.len() {
                at += 1;
                continue;
            }
            self.busy.swap_remove(at);
            self.feed(now, Input::TxDone { port });
        }
    }

    fn feed(&mut self, now: Time, input: Input) {
        let mut actions = std::mem::take(&mut self.actions);
        self.plane.handle(now, input, &mut actions);
        for action in actions.drain(..) {
            match action {
                Action::Transmit { port, frame, .. } => {
                    self.busy.push(port);
                    if port == AGENT { self.batch.push(frame) } else { self.leave(frame) }
                }
                Action::Dropped { .. } | Action::Punt { .. } => self.wrong += 1,
                _ => {}
            }
        }
        self.actions = actions;
    }

    /// A frame leaves the switch.
    fn leave(&mut self, frame: FrameBuf) {
        self.packets += 1;
        self.in_switch -= 1;
        let bytes = frame.bytes();
        let rewritten = bytes.get(FIELD_AT) == Some(&(self.whole[FIELD_AT].wrapping_add(1)));
        if !rewritten || bytes.len() != self.frame_bytes {
            self.wrong += 1;
        }
        if self.packets.is_multiple_of(COMPARED) {
            let rest = bytes.iter().enumerate().skip(FIELD_AT + 1);
            self.wrong += u64::from(!rest.into_iter().all(|(at, byte)| *byte == at as u8));
        }
        match self.payload {
            PayloadMode::Cached => self.free.push_back(frame),
            PayloadMode::Copied => self.pool.recycle(frame),
        }
    }
}
