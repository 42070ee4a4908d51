//! An agent at its port, with a wire that the test always serves.

use axon_agents::node::PORT;
use axon_agents::{Agent, AgentNode, AgentPortConfig};
use axon_node::{Action, Drop, Input, Node};
use axon_wire::{FrameBuf, MacAddr, Span, Time};
use std::net::Ipv4Addr;

use axon_agents::packet::{Ends, udp};

/// An agent, its wire, and the frames that have left.
pub struct Port<A> {
    pub node: AgentNode<A>,
    pub now: Time,
    pub sent: Vec<Vec<u8>>,
    /// Number of sent frames that the network has processed.
    pub seen: usize,
    pub dropped: Vec<Drop>,
    /// True if the wire accepts frames. If false, it stays busy with the first one.
    pub wire: bool,
}

impl<A: Agent> Port<A> {
    pub fn new(config: AgentPortConfig, agent: A) -> Port<A> {
        let node = AgentNode::new(config, Box::new(agent)).unwrap();
        let (sent, dropped) = (Vec::new(), Vec::new());
        let mut port = Port { node, now: Time::ZERO, sent, seen: 0, dropped, wire: true };
        port.input(Input::Link { port: PORT, up: true });
        port
    }

    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut out = Vec::new();
            self.node.handle(self.now, input, &mut out);
            for action in out {
                match action {
                    Action::Transmit { frame, .. } => {
                        self.sent.push(frame.bytes().to_vec());
                        if self.wire {
                            inputs.push(Input::TxDone { port: PORT });
                        }
                    }
                    Action::Dropped { reason, .. } => self.dropped.push(reason),
                    other => panic!("{other:?}"),
                }
            }
        }
        // Conservation: each frame that was received or made has left, is held, or was dropped.
        let (received, own, here) = self.node.accounts();
        let out = (self.sent.len() + self.dropped.len()) as u64;
        assert_eq!(received + own, out + here, "{received} in, {own} made, {here} here");
    }

    /// Delivers a frame to the agent. Returns the frames that the agent sends at once.
    pub fn give(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let before = self.sent.len();
        let frame = FrameBuf::new(frame);
        self.input(Input::Frame { port: PORT, frame, complete_at: self.now, intact: true });
        self.sent[before..].to_vec()
    }

    /// Frees the wire for the next frame.
    pub fn tx_done(&mut self) {
        self.input(Input::TxDone { port: PORT });
    }

    /// Advances time by `span`, and handles every deadline in between.
    pub fn wait(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(deadline) = self.node.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.input(Input::Timeout);
        }
        self.now = end;
    }

    /// Returns the value of the agent's counter with this name.
    pub fn count(&self, name: &str) -> u64 {
        self.node.agent().counters()[name]
    }
}

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Returns the addresses and ports from a port of the client to a port of the server.
pub fn ends(from: u16, to: u16) -> Ends {
    let macs = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    Ends { macs, addresses: (CLIENT, SERVER), ports: (from, to) }
}

/// Builds the frame of a datagram.
pub fn datagram(ends: &Ends, payload: &[u8]) -> Vec<u8> {
    udp(ends, &[payload])
}
