//! In-memory network of programs for tests, with links that have no delay and no loss.

use crate::site::{Neighbour, Plan, Site};
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use axon_node::{Action, Command, Done, Drop, Input, Node, Reply, Request, RequestId};
use axon_pipeline::{
    Change, PipelineConfig, Program, ProgramNode, TableName, TablesAnswer, TablesRequest,
};
use axon_wire::host_frame::{self, Arp, Kind, classify};
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Frame on a link: receiving node and port.
type InFlight = (u32, PortNo, FrameBuf);

/// Frame sent by a node.
#[derive(Clone, Debug)]
pub struct Hop {
    pub node: u32,
    pub port: PortNo,
    pub frame: Vec<u8>,
}

pub struct Net {
    pub plan: Arc<Plan>,
    nodes: Vec<ProgramNode>,
    now: Time,
    in_flight: VecDeque<InFlight>,
    /// Frames received by hosts.
    pub received: Vec<(u32, Vec<u8>)>,
    /// Frames sent by nodes.
    pub hops: Vec<Hop>,
    pub drops: Vec<(u32, Drop)>,
    /// Nodes that are stopped but keep their carrier.
    stopped: BTreeSet<u32>,
}

impl Net {
    /// Creates all nodes, with carrier on all their ports, and lets them settle for two seconds.
    pub(crate) fn new(plan: Plan, program: impl Fn(Site) -> Box<dyn Program>) -> Net {
        let plan = Arc::new(plan);
        let node = |number: u32| {
            let own = &plan.nodes[number as usize];
            let mut config = PipelineConfig::with_ports(own.ports.len() as u16, own.mac);
            config.frame_bytes_max = 1600;
            config.seed = u64::from(number) * 77;
            let site = Site { plan: plan.clone(), node: number, seed: 1 };
            ProgramNode::new(config, program(site))
        };
        let mut net = Net {
            nodes: (0..plan.nodes.len() as u32).map(node).collect(),
            plan: plan.clone(),
            now: Time::ZERO,
            in_flight: VecDeque::new(),
            received: Vec::new(),
            hops: Vec::new(),
            drops: Vec::new(),
            stopped: BTreeSet::new(),
        };
        for node in 0..plan.nodes.len() as u32 {
            for port in 0..plan.nodes[node as usize].ports.len() as u16 {
                net.carrier(node, PortNo(port), true);
            }
        }
        net.run(Span::from_secs(2));
        net
    }

    /// Sets the carrier of one port.
    pub(crate) fn carrier(&mut self, node: u32, port: PortNo, up: bool) {
        self.handle(node, Input::Link { port, up });
        self.settle();
    }

    /// Sets the carrier of both ends of a link.
    pub(crate) fn link(&mut self, node: u32, port: PortNo, up: bool) {
        let there = self.plan.nodes[node as usize].ports[port.index()].neighbour;
        self.carrier(node, port, up);
        if let Neighbour::Node(other, far) = there {
            self.carrier(other, far, up);
        }
    }

    /// Stops or resumes a node.
    pub(crate) fn stop(&mut self, node: u32, is_stopped: bool) {
        if is_stopped {
            self.stopped.insert(node);
        } else {
            self.stopped.remove(&node);
        }
    }

    /// Advances time until `before` ahead of the next program deadline.
    pub(crate) fn run_until(&mut self, before: Span) {
        let due = self.nodes.iter().filter_map(|node| node.deadline()).min();
        let due = due.expect("programs have deadlines") - before;
        self.run(due.since(self.now));
    }

    /// Advances time by `span`.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let nodes = (0..).zip(&self.nodes).filter(|(node, _)| !self.stopped.contains(node));
            let due = nodes.filter_map(|(_, node)| node.deadline()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            for node in 0..self.nodes.len() as u32 {
                if self.nodes[node as usize].deadline().is_some_and(|at| at <= self.now) {
                    self.handle(node, Input::Timeout);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    fn handle(&mut self, node: u32, input: Input) {
        if self.stopped.contains(&node) {
            return;
        }
        let mut out = Vec::new();
        self.nodes[node as usize].handle(self.now, input, &mut out);
        let mut inputs = VecDeque::new();
        loop {
            for action in core::mem::take(&mut out) {
                match action {
                    Action::Transmit { port, frame, .. } => {
                        inputs.push_back(Input::TxDone { port });
                        self.transmit(node, port, frame);
                    }
                    Action::Dropped { reason, .. } if !reason.is_ordinary() => {
                        self.drops.push((node, reason));
                    }
                    _ => {}
                }
            }
            let Some(input) = inputs.pop_front() else { break };
            self.nodes[node as usize].handle(self.now, input, &mut out);
        }
    }

    fn transmit(&mut self, node: u32, port: PortNo, frame: FrameBuf) {
        self.hops.push(Hop { node, port, frame: frame.bytes().to_vec() });
        match self.plan.nodes[node as usize].ports[port.index()].neighbour {
            Neighbour::Node(other, far) => {
                self.in_flight.push_back((other, far, frame));
            }
            Neighbour::Host(host) => self.received.push((host, frame.bytes().to_vec())),
            Neighbour::Nothing | Neighbour::Agent => {}
        }
    }

    fn settle(&mut self) {
        let mut frames = 0;
        while let Some((node, port, frame)) = self.in_flight.pop_front() {
            frames += 1;
            assert!(frames < 100_000, "frames go round and round");
            let complete_at = self.now;
            self.handle(node, Input::Frame { port, frame, complete_at, intact: true });
        }
    }

    /// Sends a frame from a host and records the results in `received`, `hops` and `drops`.
    pub(crate) fn send(&mut self, host: u32, frame: &[u8]) {
        self.received.clear();
        self.hops.clear();
        self.drops.clear();
        let host = &self.plan.hosts[host as usize];
        self.inject(host.node, host.port, frame);
    }

    /// Injects a frame at a port of a node.
    pub(crate) fn inject(&mut self, node: u32, port: PortNo, frame: &[u8]) {
        self.in_flight.push_back((node, port, FrameBuf::new(frame)));
        self.settle();
    }

    /// Returns the MAC address that a host resolves by ARP.
    pub(crate) fn resolve(&mut self, host: u32, ip: Ipv4Addr) -> Option<MacAddr> {
        let own = self.plan.hosts[host as usize].clone();
        self.send(host, &host_frame::request(own.mac, own.ip, MacAddr::BROADCAST, ip));
        let reply = self.received.iter().find(|(at, _)| *at == host)?;
        match classify(&reply.1) {
            Kind::Arp(Arp { sender_mac, sender_ip, .. }) if sender_ip == ip => Some(sender_mac),
            _ => None,
        }
    }

    /// Sends a datagram between hosts after ARP. Returns the number of switches on its path if it
    /// arrived unchanged, and only at its destination.
    pub(crate) fn datagram(&mut self, from: u32, to: u32, flow: u16) -> Option<usize> {
        let plan = self.plan.clone();
        let (a, b) = (&plan.hosts[from as usize], &plan.hosts[to as usize]);
        let mac = self.resolve(from, b.ip)?;
        let frame = datagram(a.mac, mac, a.ip, b.ip, flow);
        self.send(from, &frame);
        let [(host, received)] = &self.received[..] else { return None };
        let is_there = *host == to && received[..6] == b.mac.0 && received[12..14] == frame[12..14];
        let same = received[26..] == frame[26..];
        (is_there && same).then_some(self.hops.len())
    }

    /// Returns all pairs of hosts between which datagrams do not arrive.
    pub(crate) fn unreached(&mut self, flow: u16) -> Vec<(u32, u32)> {
        let hosts = self.plan.hosts.len() as u32;
        let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| a != b && self.datagram(a, b, flow).is_none()).collect()
    }

    /// Returns the number of entries in one of a node's tables.
    pub(crate) fn count(&self, node: u32, table: TableName) -> u32 {
        self.nodes[node as usize].pipeline().tables().count(table).entries
    }

    /// Changes the tables of a node, as an operator would do.
    pub(crate) fn commit(&mut self, node: u32, changes: &[Change]) {
        let request = Request::Tables(TablesRequest::Commit(changes.to_vec()).to_bytes());
        let command = Command { id: RequestId(1), request };
        let mut out = Vec::new();
        self.nodes[node as usize].handle(self.now, Input::Command(command), &mut out);
        let done = Done::Tables(TablesAnswer::Committed(changes.len() as u32).to_bytes());
        let is_done = |reply: &Reply| reply.result.as_ref() == Ok(&done);
        let replies = out.iter().filter_map(|action| match action {
            Action::Reply(reply) => Some(reply),
            _ => None,
        });
        assert!(replies.into_iter().all(is_done) && !out.is_empty(), "{out:?}");
    }

    pub(crate) fn node(&self, node: u32) -> &ProgramNode {
        &self.nodes[node as usize]
    }

    /// Returns one end of each link between nodes.
    pub(crate) fn links(&self) -> Vec<(u32, PortNo)> {
        let plan = self.plan.clone();
        let ends = (0..).zip(&plan.nodes).flat_map(|(node, of): (u32, _)| {
            let ports = (0..).map(PortNo).zip(&of.ports);
            ports.filter_map(move |(port, there)| match there.neighbour {
                Neighbour::Node(other, _) if other > node => Some((node, port)),
                _ => None,
            })
        });
        ends.collect()
    }
}

/// Returns a UDP datagram of 40 bytes with a valid IPv4 header.
pub(crate) fn datagram(
    from: MacAddr,
    to: MacAddr,
    from_ip: Ipv4Addr,
    to_ip: Ipv4Addr,
    flow: u16,
) -> Vec<u8> {
    let mut frame = alloc::vec![0; 14 + 20 + 40];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&from_ip.octets());
    frame[30..34].copy_from_slice(&to_ip.octets());
    let words = frame[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[34..36].copy_from_slice(&flow.to_be_bytes());
    frame[38..40].copy_from_slice(&[0, 40]);
    frame
}
