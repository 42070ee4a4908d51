//! Throughput of an agent port with cached and with copied payloads.
//!
//! A switch (a software plane of three ports) receives frames from memory at its first port. Their
//! route leads to the agent port, and from there to the third port, where they are consumed.
//! [`Arrival`] describes the arrival of frames. The agent rewrites a field of every head. The
//! plane, its queues and the port are those of `axon switch`, but the run loop is in this file.

use super::super::counters::AgentCounters;
use super::super::port::AgentPort;
use super::super::setup::AgentPortSetup;
use super::process::{MeasuredAgent, Process};
use super::traffic::Traffic;
use super::{ATTACH_MAX, wait_for_agent};
use crate::clock::Clock;
use crate::port::{Pool, Port};
use anyhow::{Result, ensure};
use axon_agents::node::PayloadMode;
use axon_node::{Action, Input, Node, PortKind};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Span, Time};
use std::path::Path;
use std::time::Duration;

pub use super::traffic::Arrival;

const IN: PortNo = PortNo(0);
const AGENT: PortNo = PortNo(1);
const OUT: PortNo = PortNo(2);
/// Frames that the switch receives in one round.
const BATCH: usize = 64;

/// Result of one measurement interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Frames that passed the agent and left the switch.
    pub packets: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Duration.
    pub took: Duration,
    /// Frame bytes that the port copied to and from the agent, counted at each copy. They include
    /// frames that left after the interval, once no more came in.
    pub copied_bytes: u64,
    /// Frames that `copied_bytes` covers.
    pub copied_packets: u64,
}

impl Turn {
    /// Returns the throughput in Gb/s of frame bits.
    pub fn gbps(&self) -> f64 {
        8.0 * self.bytes as f64 / self.took.as_secs_f64() / 1e9
    }

    /// Returns the throughput in frames per second.
    pub fn packets_per_second(&self) -> f64 {
        self.packets as f64 / self.took.as_secs_f64()
    }

    /// Returns the bytes copied between switch and agent per frame, in both directions together.
    pub fn copied_per_packet(&self) -> f64 {
        self.copied_bytes as f64 / self.copied_packets.max(1) as f64
    }
}

/// Results of both payload modes, measured alternately.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Results with payloads that stay in the switch.
    pub cached: Vec<Turn>,
    /// Results with payloads that are copied.
    pub copied: Vec<Turn>,
}

impl Turns {
    /// Returns the throughput with cached payloads divided by that with copied payloads: the lowest
    /// ratio between two neighbouring intervals, the median, and the highest.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let ratios = || self.cached.iter().zip(&self.copied).map(|(a, b)| a.gbps() / b.gbps());
        let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
        (least, median(ratios()), most)
    }
}

/// Returns the median of these values, or NaN if there are none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Switch with its agent, a separate process; see [`process`](super::process).
pub struct Running {
    bench: Bench,
    process: Process,
}

impl Running {
    /// Starts a switch and, by calling `start` with its socket, the agent. `name` must be unique in
    /// this process.
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

    /// Starts a [rewriter](super::process::MeasuredAgent::Rewriter).
    ///
    /// # Errors
    /// As [`Running::start`].
    pub fn rewriter(payload: PayloadMode, arrival: Arrival, frame_bytes: usize) -> Result<Running> {
        Running::start(&format!("{payload:?}"), (payload, arrival, frame_bytes), |socket| {
            Process::start(MeasuredAgent::Rewriter, Span::from_millis(1), socket)
        })
    }
}

/// Measures two switches alternately, each for `span`, after one warm-up interval.
///
/// # Errors
/// An agent has gone or failed, or a frame is wrong.
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
        // An agent ends when it is detached.
        drop(bench);
        process.join()?;
    }
    Ok(found)
}

/// Measures frames of one length, alternately with cached and with copied payloads, each for
/// `span`.
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

/// Switch with an agent that forwards frames of one length.
pub struct Bench {
    plane: Plane,
    port: AgentPort,
    clock: Clock,
    pool: Pool,
    payload: PayloadMode,
    traffic: Traffic,
    batch: Vec<FrameBuf>,
    received: Vec<FrameBuf>,
    actions: Vec<Action>,
    /// Ports for which the plane awaits `TxDone`.
    busy: Vec<PortNo>,
}

impl Bench {
    /// Creates a switch whose agent attaches at `socket`.
    ///
    /// # Errors
    /// The socket cannot be opened, or the frame is too short for its route.
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
        Ok(Bench {
            plane,
            port,
            clock: Clock::start(),
            pool: Pool::default(),
            payload,
            traffic: Traffic::new(arrival, frame_bytes, &[AGENT, OUT])?,
            batch: Vec::new(),
            received: Vec::new(),
            actions,
            busy: Vec::new(),
        })
    }

    /// Waits until the agent is attached.
    ///
    /// # Errors
    /// The agent does not attach within 10 s.
    pub fn wait(&mut self) -> Result<()> {
        wait_for_agent(&mut self.port, &self.clock)
    }

    /// Forwards frames at full speed for `span`.
    ///
    /// # Errors
    /// The agent has gone, or a frame that left is wrong.
    pub fn turn(&mut self, span: Span) -> Result<Turn> {
        let (began, packets, copied) =
            (self.clock.now(), self.traffic.packets(), self.copied_bytes());
        let mut now = began;
        while now.since(began) < span {
            self.round(now, true)?;
            now = self.clock.now();
        }
        let passed = self.traffic.packets() - packets;
        let mut turn = Turn {
            packets: passed,
            bytes: passed * self.traffic.frame_bytes(),
            took: Duration::from_nanos(now.since(began).as_nanos()),
            copied_bytes: 0,
            copied_packets: 0,
        };
        // The next interval begins with an empty switch.
        while self.traffic.has_in_flight() {
            ensure!(self.clock.now().since(now) < ATTACH_MAX, "the agent keeps packets");
            self.round(self.clock.now(), false)?;
        }
        turn.copied_bytes = self.copied_bytes() - copied;
        turn.copied_packets = self.traffic.packets() - packets;
        let wrong = self.traffic.wrong();
        ensure!(wrong == 0, "{wrong} frames are not as they were");
        Ok(turn)
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> AgentCounters {
        self.port.agent_status().counters
    }

    fn copied_bytes(&self) -> u64 {
        let counters = self.counters();
        counters.copied_to_agent_bytes + counters.copied_from_agent_bytes
    }

    /// Runs one iteration of a run loop: transmit completions, reception, transmission.
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
            let Some(frame) = self.traffic.next() else { break };
            self.frame(now, IN, frame);
        }
        if !self.batch.is_empty() {
            self.port.transmit(&mut self.batch)?;
            // In copy mode, the buffers are free again at once.
            self.traffic.free(self.batch.drain(..));
        }
        Ok(())
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
                Action::Dropped { .. } | Action::Punt { .. } => self.traffic.lose(),
                _ => {}
            }
        }
        self.actions = actions;
    }

    /// Handles a frame that leaves the switch.
    fn leave(&mut self, frame: FrameBuf) {
        self.traffic.leave(&frame);
        match self.payload {
            PayloadMode::Cached => self.traffic.free([frame].into_iter()),
            PayloadMode::Copied => self.pool.recycle(frame),
        }
    }
}
