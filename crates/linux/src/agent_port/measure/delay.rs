//! Additional delay before congestion messages that an agent generates (paper 004, section 6.3).
//!
//! A source queries with a marked frame of 64 bytes. A table entry sends it to the agent port. The
//! agent reads the length of the queue that it watches, and answers. For comparison, another entry
//! returns a second frame at once, like hardware without any delay. As in the paper, the agent's
//! contribution is the difference between the two round-trip times. Neither includes the link of
//! the source.

use super::super::port::AgentPort;
use super::super::setup::AgentPortSetup;
use super::wait_for_agent;
use crate::clock::Clock;
use crate::port::{Pool, Port};
use anyhow::{Context, Result, ensure};
use axon_agents::{CongestionResponder, ResponderConfig};
use axon_node::{Action, Input, Node};
use axon_pipeline::{
    Action as Entry, Change, Control, Field, MacKey, PipelineConfig, Program, ProgramNode,
    Received, Register, Target, TcamEntry, Udlk, UdlkId,
};
use axon_plane::notification::cpid;
use axon_plane::qcn::CpConfig;
use axon_wire::cn::{CnTag, CnmFormat, CnmFrame};
use axon_wire::constants::ethertype;
use axon_wire::vlan::VlanTag;
use axon_wire::{FrameBuf, MacAddr, PortNo, Priority, Span, Time, TrafficClass};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::path::Path;

const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
const SINK: MacAddr = MacAddr([2, 0, 0, 0, 1, 2]);
const TO_SOURCE: PortNo = PortNo(0);
const TO_SINK: PortNo = PortNo(1);
const AGENT: PortNo = PortNo(2);
/// Query length in bytes, without FCS. With FCS, it is the paper's 64 bytes.
const QUERY_BYTES: usize = 60;
/// Offset of the query type: the first byte after the EtherType.
const ASKS_AT: usize = 22;
const KEY: UdlkId = UdlkId(0);
/// Number of 1,500-byte frames queued for the sink. Their bytes exceed the set point of 26,000
/// bytes.
const WAITING: usize = 40;
/// Time limit for an answer.
const ANSWER_MAX: Span = Span::from_secs(1);

/// Query type in a frame from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Congestion notification from the agent.
    Notification = 1,
    /// Frame returned unchanged by a table entry.
    Bounce = 2,
}

/// Creates the agent: a congestion point for the queue to the sink.
///
/// # Errors
/// Does not occur with the settings in this file.
pub(crate) fn responder() -> Result<CongestionResponder> {
    let config = ResponderConfig {
        mac: SWITCH,
        egress: TO_SINK,
        point: CpConfig::default(),
        cnm_priority: Priority::from_low_bits(6),
        cpid: cpid(SWITCH, TO_SINK, TrafficClass::ALL[0]),
    };
    Ok(CongestionResponder::new(config)?)
}

/// Control program that fills the tables once.
struct Entries(Vec<Change>);

impl Program for Entries {
    fn start(&mut self, _: Time, control: &mut dyn Control) {
        // A refused commit shows at the first query, which then gets no answer.
        let _ = control.commit(&self.0);
    }

    fn receive_packet(&mut self, _: Time, _: Received<'_>, _: &mut dyn Control) {}
}

fn entries() -> Vec<Change> {
    let mac = |mac, port| Change::Mac(MacKey { bridge: 0, mac }, Some(Target::Port(port).into()));
    let at = ASKS_AT as u8;
    let key = Udlk::new([Field::Bytes { first: at, last: at }]);
    let asks = |query: Query, port| {
        let action = Entry::from(Target::Port(port));
        let entry = TcamEntry { udlk: KEY, value: vec![query as u8], mask: vec![0xff], action };
        Change::Tcam(query as u16, Some(entry))
    };
    vec![
        mac(SOURCE, TO_SOURCE),
        mac(SINK, TO_SINK),
        Change::Udlk(KEY, Some(key)),
        asks(Query::Notification, AGENT),
        asks(Query::Bounce, TO_SOURCE),
    ]
}

fn frame(bytes: usize, asks: u8) -> FrameBuf {
    let priority = Priority::from_low_bits(3);
    let mut frame = [SINK.0, SOURCE.0].concat();
    frame.extend_from_slice(&VlanTag::of_priority(priority).emit());
    frame.extend_from_slice(&CnTag { flow: 1 }.emit());
    frame.extend_from_slice(&ethertype::PROBE.to_be_bytes());
    frame.resize(bytes, 0);
    frame[ASKS_AT] = asks;
    FrameBuf::new(&frame)
}

/// Programmable switch with a congested port and an agent.
pub struct CongestedSwitch {
    node: ProgramNode,
    port: AgentPort,
    clock: Clock,
    pool: Pool,
    to_agent: Vec<FrameBuf>,
    received: Vec<FrameBuf>,
    actions: Vec<Action>,
    /// True if the agent port still has to report a `TxDone`.
    busy: bool,
    answer: Option<(Time, FrameBuf)>,
}

impl CongestedSwitch {
    /// Creates a switch whose agent attaches at `socket`.
    ///
    /// # Errors
    /// The socket cannot be opened.
    pub fn new(socket: &Path) -> Result<CongestedSwitch> {
        let port = AgentPort::open("s1-p2", &AgentPortSetup::at(socket))?;
        let node =
            ProgramNode::new(PipelineConfig::with_ports(3, SWITCH), Box::new(Entries(entries())));
        let mut bench = CongestedSwitch {
            node,
            port,
            clock: Clock::start(),
            pool: Pool::default(),
            to_agent: Vec::new(),
            received: Vec::new(),
            actions: Vec::new(),
            busy: false,
            answer: None,
        };
        for port in [TO_SOURCE, TO_SINK, AGENT] {
            bench.feed(Input::Link { port, up: true });
        }
        for _ in 0..WAITING {
            bench.arrives(TO_SOURCE, frame(1_500, 0));
        }
        Ok(bench)
    }

    /// Waits until the agent is attached.
    ///
    /// # Errors
    /// The agent does not attach within 10 s.
    pub fn wait(&mut self) -> Result<()> {
        wait_for_agent(&mut self.port, &self.clock)
    }

    /// Sends one query and returns the time until the answer arrives.
    ///
    /// # Errors
    /// No answer within a second, or an unexpected one.
    pub fn ask(&mut self, query: Query) -> Result<Span> {
        let began = self.clock.now();
        self.arrives(TO_SOURCE, frame(QUERY_BYTES, query as u8));
        self.flush()?;
        let (ended, answer) = loop {
            if let Some(answer) = self.answer.take() {
                break answer;
            }
            ensure!(self.clock.now().since(began) < ANSWER_MAX, "{query:?}: no answer");
            self.round()?;
        };
        let bytes = answer.bytes();
        match query {
            Query::Bounce => ensure!(
                bytes == frame(QUERY_BYTES, query as u8).bytes(),
                "a changed frame came back"
            ),
            Query::Notification => {
                let cnm = CnmFrame::parse(bytes, &CnmFormat::default());
                let cnm = cnm.context("the agent's answer")?.cnm;
                ensure!(cnm.feedback > 0, "a notification without congestion");
            }
        }
        Ok(ended.since(began))
    }

    /// Runs one iteration of a run loop: wait, receive, send.
    fn round(&mut self) -> Result<()> {
        if !self.port.before_wait() {
            let mut fds = [PollFd::new(self.port.fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::from(100_u8))?;
        }
        self.port.receive(&mut self.pool, &mut self.received)?;
        ensure!(self.port.carrier() == Some(true), "the agent has gone");
        let mut received = std::mem::take(&mut self.received);
        received.drain(..).for_each(|frame| self.arrives(AGENT, frame));
        self.received = received;
        if std::mem::take(&mut self.busy) {
            self.feed(Input::TxDone { port: AGENT });
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        if self.to_agent.is_empty() {
            return Ok(());
        }
        let pipeline = self.node.pipeline();
        let queue = |port| pipeline.read_register(Register::QueueBytes(PortNo(port))).ok();
        self.port.show_queues(&mut (0..3).map(queue));
        self.port.transmit(&mut self.to_agent)?;
        self.to_agent.drain(..).for_each(|frame| self.pool.recycle(frame));
        Ok(())
    }

    fn arrives(&mut self, port: PortNo, frame: FrameBuf) {
        let complete_at = self.clock.now();
        self.feed(Input::Frame { port, frame, complete_at, intact: true });
    }

    fn feed(&mut self, input: Input) {
        let mut actions = std::mem::take(&mut self.actions);
        self.node.handle(self.clock.now(), input, &mut actions);
        let mut done = false;
        for action in actions.drain(..) {
            match action {
                Action::Transmit { port: AGENT, frame, .. } => {
                    self.busy = true;
                    self.to_agent.push(frame);
                }
                Action::Transmit { port: TO_SOURCE, frame, .. } => {
                    self.answer = Some((self.clock.now(), frame));
                    done = true;
                }
                // The wire to the sink stays busy, which causes the congestion.
                _ => {}
            }
        }
        self.actions = actions;
        if done {
            self.feed(Input::TxDone { port: TO_SOURCE });
        }
    }
}
