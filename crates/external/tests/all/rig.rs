//! A switch with two ports and a program at the other end of a socket.

use axon_external::{Limits, Peer, Queued, Session, Waiting};
use axon_node::{Action, Drop, Input, Node};
use axon_pipeline::{PipelineConfig, Program, ProgramNode};
use axon_programs::site::PlanPort;
use axon_programs::{Neighbour, Plan, PlanHost, PlanNode, Shape, Site};
use axon_wire::{FrameBuf, MacAddr, PortNo, Rate, Time};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// Address that the programs of these tests forward to port 1.
pub const KNOWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
/// Address whose frames the tables of these tests send to the program.
pub const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 10]);

/// Limit on a test's wait for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// Type of connection between a switch and its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Waiting,
    Queued,
}

pub const MODES: [Mode; 2] = [Mode::Waiting, Mode::Queued];

pub fn site() -> Site {
    let rate = Rate::gbps(1);
    let port = |neighbour| PlanPort { neighbour, rate };
    let ports = vec![port(Neighbour::Host(0)), port(Neighbour::Nothing)];
    let nodes = vec![PlanNode { name: "s1".into(), mac: OWN, ports }];
    let host = PlanHost {
        name: "h1".into(),
        mac: MacAddr([2, 0, 0, 0, 1, 1]),
        ip: [10, 0, 0, 1].into(),
        node: 0,
        port: PortNo(0),
    };
    let plan = Plan { shape: Shape::Other, nodes, hosts: vec![host], prefix_len: 24 };
    Site { plan: Arc::new(plan), node: 0, seed: 7 }
}

/// Builds a frame from a host to `to`.
pub fn frame(to: MacAddr) -> Vec<u8> {
    [&to.0[..], &[2, 0, 0, 0, 1, 1, 0x88, 0xb5], &[0; 46]].concat()
}

/// Returns a program whose other end is a thread in this process.
pub fn threaded(
    mode: Mode,
    limits: Limits,
    other: impl FnOnce(Session) + Send + 'static,
) -> Box<dyn Program> {
    let (near, far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || other(Session::new(far)));
    match mode {
        Mode::Waiting => Box::new(Waiting::new(Peer::new(near), &site(), limits)),
        Mode::Queued => Box::new(Queued::new(Peer::new(near), &site(), limits).unwrap()),
    }
}

/// A switch with two ports.
pub struct Rig {
    pub node: ProgramNode,
    /// Frames that have left the switch, each with its port.
    pub left: Vec<(PortNo, Vec<u8>)>,
    began: Instant,
    /// Current time, if it does not advance by itself.
    pub frozen: Option<Time>,
}

impl Rig {
    pub fn new(program: Box<dyn Program>) -> Rig {
        let node = ProgramNode::new(PipelineConfig::with_ports(2, OWN), program);
        Rig { node, left: Vec::new(), began: Instant::now(), frozen: None }
    }

    pub fn now(&self) -> Time {
        self.frozen.unwrap_or_else(|| Time::from_nanos(self.began.elapsed().as_nanos() as u64))
    }

    /// Passes an input to the switch and performs the resulting actions.
    pub fn handle(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.node.handle(self.now(), input, &mut actions);
        while !actions.is_empty() {
            for action in std::mem::take(&mut actions) {
                if let Action::Transmit { port, frame, .. } = action {
                    self.left.push((port, frame.bytes().to_vec()));
                    self.node.handle(self.now(), Input::TxDone { port }, &mut actions);
                }
            }
        }
    }

    pub fn links_up(&mut self) {
        for port in [PortNo(0), PortNo(1)] {
            self.handle(Input::Link { port, up: true });
        }
    }

    /// Receives a frame for `to` at port 0.
    pub fn receive(&mut self, to: MacAddr) {
        let frame = FrameBuf::new(&frame(to));
        let complete_at = self.now();
        self.handle(Input::Frame { port: PortNo(0), frame, complete_at, intact: true });
    }

    /// Advances time, by at least a little, until `done`.
    pub fn wait(&mut self, what: &str, done: impl Fn(&Rig) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            self.handle(Input::Timeout);
            if done(self) {
                return;
            }
            let failure = self.node.program().failure();
            assert!(Instant::now() < end, "{what} did not happen; the program: {failure:?}");
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    pub fn failure(&self) -> Option<String> {
        self.node.program().failure()
    }

    /// Returns the number of frames from port 0 that were dropped for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.node.pipeline().ports().counters().port(PortNo(0)).dropped(reason)
    }
}
