//! A controller that is told of a fabric and asked for flows, and what its registry says.
//!
//! No frames here: what switches would say arrives as they would say it, and the answers of
//! the controller are counted, or looked at for what a failure costs.

use anyhow::{Context as _, Result, ensure};
use axon_control::controller::Controller;
use axon_control::controller::router::Router;
use axon_control::effect::Effect;
use axon_control::seal::Sealer;
use axon_control::stream::Stream;
use axon_fabric::assemble;
use axon_fabric::model::{End, Fabric, Link};
use axon_wire::message::{
    ArpRequest, ControllerHello, Item, Message, Peer, PortState, Role, Segment, Target,
};
use axon_wire::{Hops, Life, NodeId, PortNo, Span, Time};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The address of the first host; it has not to be one of the subnet's pool.
const FIRST_IP: u32 = 0x0a10_0000;
/// Rounds of a router that improves what it has placed; more are not waited for.
const ROUNDS_MAX: u32 = 40;
/// The bytes of the frame check sequence.
const FCS_BYTES: usize = 4;

/// A controller and the fabric that it was told of.
#[derive(Debug)]
pub struct Told<'a> {
    fabric: &'a Fabric,
    controller: Controller,
    ports: Vec<Vec<PortState>>,
    now: Time,
}

/// How flows lie on the links between switches, both directions of a link together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean hops of a route, the one to the host included.
    pub route_hops: f64,
    /// Mean flows of a link.
    pub mean: f64,
    /// Their standard deviation over the links.
    pub sd: f64,
    /// Flows of the fullest link.
    pub max: f64,
}

/// What the failure of one link made the controller say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Routes given another path or removed.
    pub routes: usize,
    /// Packets on the reliable streams, several commands in one where they go to one switch.
    pub packets: usize,
    /// Their bytes as frames at the controller, routes, seals and FCS included.
    pub bytes: usize,
}

fn life(switch: usize) -> Life {
    Life { node: assemble::switch_id(switch), incarnation: 1 }
}

fn ip(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(FIRST_IP + host as u32))
}

impl<'a> Told<'a> {
    /// A controller with this router to which every switch has told its neighbours and its
    /// hosts, in order.
    pub fn new(fabric: &'a Fabric, router: Box<dyn Router>, seed: u64) -> Told<'a> {
        let config = assemble::controller_config(fabric, 1, seed);
        let mut controller = Controller::with_router(&config, router);
        let (now, mut out) = (Time::ZERO, Vec::new());
        let End { switch, port } = fabric.controller.at;
        let attached = Some((assemble::switch_id(switch), port));
        controller.attached(now, PortNo(0), attached, &mut out);
        let mut ports: Vec<Vec<PortState>> = vec![Vec::new(); fabric.switches.len()];
        for link in &fabric.links {
            for (here, there) in [(link.a, link.b), (link.b, link.a)] {
                let (node, role) = (assemble::switch_id(there.switch), Role::Switch);
                let peer = Peer::Axon { node, port: there.port, role };
                ports[here.switch].push(PortState { port: here.port, peer });
            }
        }
        let mut told = Told { fabric, controller, ports, now };
        for switch in 0..told.ports.len() {
            told.hello(switch, 1, &mut out);
        }
        for (index, host) in fabric.hosts.iter().enumerate() {
            let seen = Item::HostSeen { port: host.port, mac: host.mac, ip: Some(ip(index)) };
            told.controller.item(now, life(host.switch), seen, &mut out);
        }
        told
    }

    fn hello(&mut self, switch: usize, version: u64, out: &mut Vec<Effect>) {
        let ports = self.ports[switch].clone();
        let hello = ControllerHello { version, nonce: 0, ports };
        self.controller.controller_hello(self.now, life(switch), Hops::to_control(), hello, out);
    }

    /// Each pair of hosts, by index, asks for routes in both directions; nothing else happens.
    ///
    /// # Errors
    /// A request is not answered.
    pub fn ask(&mut self, pairs: &[(usize, usize)]) -> Result<()> {
        let mut out = Vec::new();
        let before = self.controller.counters().arp_answered;
        for &(source, target) in pairs {
            let host = &self.fabric.hosts[source];
            let request = ArpRequest {
                id: 7,
                port: host.port,
                source_mac: host.mac,
                source_ip: Some(ip(source)),
                target: Target::Ip(ip(target)),
            };
            self.controller.arp_request(self.now, life(host.switch), request, &mut out);
            out.clear();
        }
        let answered = self.controller.counters().arp_answered - before;
        ensure!(answered == pairs.len() as u64, "{answered} of {} requests answered", pairs.len());
        Ok(())
    }

    /// The same; then the router has its rounds.
    ///
    /// # Errors
    /// A request is not answered.
    pub fn place(&mut self, pairs: &[(usize, usize)]) -> Result<()> {
        self.ask(pairs)?;
        let mut out = Vec::new();
        // A round has a batch each heartbeat, and ten heartbeats before the next.
        let batches = pairs.len() as u64 * 2 / 1_000 + 20;
        let heartbeat = self.fabric.timers.heartbeat;
        let end = self.now + heartbeat * (batches * u64::from(ROUNDS_MAX));
        while let Some(deadline) = self.controller.deadline().filter(|&at| at <= end) {
            self.now = self.now.max(deadline);
            self.controller.timeout(self.now, &mut out);
            out.clear();
        }
        self.now += Span::from_secs(60);
        Ok(())
    }

    /// Routes that were moved since the start.
    pub fn moved(&self) -> u64 {
        self.controller.counters().routes_moved
    }

    /// Flows of a link, both directions together.
    fn flows(&self, link: &Link) -> usize {
        let one = |end: End| {
            let switch = self.controller.graph().index_of(assemble::switch_id(end.switch));
            switch.map_or(0, |switch| self.controller.flows().over(switch, end.port).count())
        };
        one(link.a) + one(link.b)
    }

    /// How the flows lie.
    pub fn spread(&self) -> Spread {
        let flows: Vec<f64> = self.fabric.links.iter().map(|at| self.flows(at) as f64).collect();
        let links = flows.len() as f64;
        let mean = flows.iter().sum::<f64>() / links;
        let variance = flows.iter().map(|flows| (flows - mean).powi(2)).sum::<f64>() / links;
        let routes = self.controller.flows();
        let hops: usize = routes.iter().map(|(_, route)| route.len() + 1).sum();
        let route_hops = hops as f64 / routes.len() as f64;
        Spread { route_hops, mean, sd: variance.sqrt(), max: flows.into_iter().fold(0.0, f64::max) }
    }

    /// Takes the fullest link down at both ends, and counts what the controller says.
    ///
    /// # Errors
    /// The fabric has no links, or the controller says anything else than expected.
    pub fn fail_fullest(&mut self) -> Result<Failure> {
        let fullest = self.fabric.links.iter().max_by_key(|&link| self.flows(link));
        let fullest = fullest.context("no links")?.clone();
        let mut out = Vec::new();
        for end in [fullest.a, fullest.b] {
            self.ports[end.switch].retain(|state| state.port != end.port);
            self.hello(end.switch, 2, &mut out);
        }
        let mut streams: BTreeMap<NodeId, Stream> = BTreeMap::new();
        let mut failure = Failure::default();
        for effect in out {
            let Effect::Command { to, item } = effect else { continue };
            failure.routes += 1;
            let fresh = || Stream::new(Life { node: to, incarnation: 1 }, Span::from_millis(50));
            streams.entry(to).or_insert_with(fresh).push(item);
        }
        let mut sealer =
            Sealer::new(&self.fabric.key, Life { node: assemble::CONTROLLER_ID, incarnation: 1 });
        for (node, mut stream) in streams {
            let hops = self.controller.path_to(node).context("a switch without a way to it")?;
            let mut sent = 0;
            while let Some(segment) = stream.poll(self.now) {
                sent += segment.items.len() as u64;
                let peer = stream.peer();
                let sealed = sealer.seal(Some(peer), &Message::Segment(segment));
                failure.packets += 1;
                let header = self.fabric.hop_width.header_bytes(hops.0.len());
                failure.bytes += header + sealed.len() + FCS_BYTES;
                let _none =
                    stream.receive(self.now, Segment { first: 0, ack: sent, items: Vec::new() });
            }
        }
        Ok(failure)
    }
}
