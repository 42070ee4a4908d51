//! An in-memory network of programmable switches. Wires have no latency, there is one clock, and
//! hosts only record the frames that they receive.

use axon_fabric::program;
use axon_node::{Action, Input, Node};
use axon_pipeline::{ProgramNode, TableName};
use axon_programs::{Neighbour, Plan, PlanHost, Site};
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A network and the events in it.
pub struct Net {
    pub plan: Arc<Plan>,
    pub nodes: Vec<ProgramNode>,
    pub now: Time,
    /// Frames received by hosts: host and frame.
    pub received: Vec<(u32, Vec<u8>)>,
    /// Frames sent by a node to another node.
    pub sent: Vec<(u32, Vec<u8>)>,
    /// Links that carry no frames, each given by one end. Their ports keep carrier.
    pub silent: BTreeSet<(u32, PortNo)>,
    queue: VecDeque<(u32, Input)>,
}

impl Net {
    /// Builds the network in a fabric file and runs it for a second without traffic.
    pub fn new(text: &str) -> Net {
        let mut fabric = axon_fabric::parse("test.yaml".as_ref(), text).unwrap();
        program::fix_addresses(&mut fabric);
        let plan = Arc::new(program::plan(&fabric));
        let kind = match &fabric.program.as_ref().unwrap().source {
            axon_fabric::model::ProgramSource::Ships(kind) => *kind,
            other => panic!("{other:?}"),
        };
        let nodes = (0..plan.nodes.len()).map(|node| {
            let site = Site { plan: plan.clone(), node: node as u32, seed: node as u64 };
            let config = program::pipeline_config(&fabric, node, 1);
            ProgramNode::new(config, kind.program(site))
        });
        let nodes = nodes.collect();
        let mut net = Net {
            plan: plan.clone(),
            nodes,
            now: Time::ZERO,
            received: Vec::new(),
            sent: Vec::new(),
            silent: BTreeSet::new(),
            queue: VecDeque::new(),
        };
        for (node, there) in (0..).zip(&plan.nodes) {
            for port in (0..there.ports.len() as u16).map(PortNo) {
                net.queue.push_back((node, Input::Link { port, up: true }));
            }
        }
        net.run(Span::from_secs(1));
        net
    }

    /// Advances time until shortly before the next program is due.
    pub fn run_until(&mut self, before: Span) {
        let due = self.nodes.iter().filter_map(Node::deadline).min();
        let due = due.expect("programs have deadlines") - before;
        self.run(due.since(self.now));
    }

    /// Delivers all frames and advances time by `span`.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            self.settle();
            let due = self.nodes.iter().filter_map(Node::deadline).min();
            let Some(due) = due.filter(|&due| due <= end) else { break };
            self.now = self.now.max(due);
            for node in 0..self.nodes.len() as u32 {
                if self.nodes[node as usize].deadline().is_some_and(|at| at <= self.now) {
                    self.queue.push_back((node, Input::Timeout));
                }
            }
        }
        self.now = end;
    }

    fn settle(&mut self) {
        let mut out = Vec::new();
        let mut steps = 0;
        while let Some((node, input)) = self.queue.pop_front() {
            steps += 1;
            assert!(steps < 1_000_000, "frames go round");
            self.nodes[node as usize].handle(self.now, input, &mut out);
            for action in out.drain(..) {
                let Action::Transmit { port, frame, .. } = action else { continue };
                self.queue.push_back((node, Input::TxDone { port }));
                self.carry(node, port, frame);
            }
        }
    }

    fn carry(&mut self, node: u32, port: PortNo, frame: FrameBuf) {
        match self.plan.nodes[node as usize].ports[port.index()].neighbour {
            Neighbour::Nothing | Neighbour::Agent => {}
            Neighbour::Host(host) => self.received.push((host, frame.bytes().to_vec())),
            Neighbour::Node(to, there) => {
                if self.silent.contains(&(node, port)) || self.silent.contains(&(to, there)) {
                    return;
                }
                self.sent.push((node, frame.bytes().to_vec()));
                // As on a wire, without the sender's headroom.
                let frame = FrameBuf::new(frame.bytes());
                let complete_at = self.now;
                let input = Input::Frame { port: there, frame, complete_at, intact: true };
                self.queue.push_back((to, input));
            }
        }
    }

    /// Removes or restores carrier on a node's ports to other nodes, at both ends.
    pub fn set_links(&mut self, node: u32, up: bool, which: impl Fn(u32) -> bool) {
        let ports = self.plan.nodes[node as usize].ports.clone();
        for (port, there) in (0..).map(PortNo).zip(ports) {
            if let Neighbour::Node(to, far) = there.neighbour
                && which(to)
            {
                self.queue.push_back((node, Input::Link { port, up }));
                self.queue.push_back((to, Input::Link { port: far, up }));
            }
        }
        self.settle();
    }

    /// Returns the host of a server, by the server's number.
    pub fn host_at(&self, server: u32) -> &PlanHost {
        self.plan.hosts.iter().find(|host| host.node == server).unwrap()
    }

    /// Sends a frame from the host of a server.
    pub fn send(&mut self, server: u32, frame: &[u8]) {
        let port = self.host_at(server).port;
        self.send_at(server, port, frame);
    }

    /// Delivers a frame to a server at a port.
    pub fn send_at(&mut self, server: u32, port: PortNo, frame: &[u8]) {
        let frame = FrameBuf::new(frame);
        let input = Input::Frame { port, frame, complete_at: self.now, intact: true };
        self.queue.push_back((server, input));
        self.settle();
    }

    /// Sends a UDP datagram between the hosts of two servers and waits for it. Returns the servers
    /// that forwarded it, in order, or `None` if it did not arrive exactly once and unchanged.
    pub fn datagram(&mut self, from: u32, to: u32, l4_port: u16) -> Option<Vec<u32>> {
        let (source, target) = (self.host_at(from).clone(), self.host_at(to).clone());
        self.between(&source, &target, l4_port)
    }

    /// Sends a UDP datagram between two hosts. Returns the same as `datagram`.
    pub fn between(
        &mut self,
        source: &PlanHost,
        target: &PlanHost,
        l4_port: u16,
    ) -> Option<Vec<u32>> {
        let (from, to) = (source.node, target.node);
        let gateway = self.plan.nodes[from as usize].mac;
        let frame = datagram(source.mac, gateway, source.ip, target.ip, l4_port);
        (self.sent, self.received) = Default::default();
        self.send_at(from, source.port, &frame);
        self.run(Span::from_millis(200));
        let marker = &frame[frame.len() - 16..];
        let carries = |bytes: &[u8]| bytes.windows(16).any(|part| part == marker);
        let got = self.received.iter().filter(|(_, bytes)| carries(bytes));
        let got: Vec<&(u32, Vec<u8>)> = got.collect();
        let expected = [&target.mac.0[..], &self.plan.nodes[to as usize].mac.0, &frame[12..]];
        let [(host, bytes)] = got[..] else { return None };
        let is_right = self.plan.hosts[*host as usize] == *target && *bytes == expected.concat();
        let servers = self.servers();
        let way = self.sent.iter().filter(|(node, bytes)| *node < servers && carries(bytes));
        is_right.then(|| way.map(|(node, _)| *node).collect())
    }

    /// Returns the number of nodes with hosts, which are the first ones.
    pub fn servers(&self) -> u32 {
        self.plan.hosts.iter().map(|host| host.node + 1).max().unwrap()
    }

    /// Returns the number of entries in one of a node's tables.
    pub fn count(&self, node: u32, table: TableName) -> u32 {
        self.nodes[node as usize].pipeline().tables().count(table).entries
    }
}

/// Builds the frame of a datagram. Its payload contains its addresses and ports.
pub fn datagram(
    source_mac: MacAddr,
    destination_mac: MacAddr,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    l4_port: u16,
) -> Vec<u8> {
    let mut frame = [&destination_mac.0[..], &source_mac.0, &[8, 0]].concat();
    let mut header = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 17, 0, 0];
    header.extend(source.octets());
    header.extend(destination.octets());
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend(l4_port.to_be_bytes());
    frame.extend([0x30, 0x39, 0, 24, 0, 0]);
    frame.extend(b"axon");
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend([l4_port.to_be_bytes(), [0x55; 2]].concat());
    frame
}
