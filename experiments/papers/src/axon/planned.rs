//! Flows placed by a controller in a fabric, without a simulator: their spread over links, and the
//! routes and bytes that a link failure costs.

use anyhow::{Context as _, Result, ensure};
use axon_controller::Effect;
use axon_controller::router::Router;
use axon_fabric::assemble;
use axon_fabric::model::{End, Fabric, Link};
use axon_link::seal::Sealer;
use axon_link::stream::Stream;
use axon_wire::message::{Message, Role, Segment};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, NodeId, Span};
use std::collections::BTreeMap;

/// The bytes of the frame check sequence.
const FCS_BYTES: usize = 4;

/// Controller that has learned a fabric, and the flows that it has placed.
#[derive(Debug)]
pub struct Planned<'a> {
    fabric: &'a Fabric,
    plan: axon_fabric::planned::Planned<'a>,
}

/// Distribution of flows over the links between switches, both directions of a link together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean hops of a route, the one to the host included.
    pub route_hops: f64,
    /// Mean flows of a link.
    pub mean: f64,
    /// Standard deviation of the flows over the links.
    pub sd: f64,
    /// Flows of the fullest link.
    pub max: f64,
}

/// Cost of one link failure: commands of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Routes given another path or removed.
    pub routes: usize,
    /// Packets on the reliable streams, several commands in one where they go to one switch.
    pub packets: usize,
    /// Their bytes as frames at the controller, routes, seals and FCS included.
    pub bytes: usize,
}

impl<'a> Planned<'a> {
    /// Makes a controller with this router that has learned the whole fabric.
    pub(crate) fn new(fabric: &'a Fabric, router: Box<dyn Router>, seed: u64) -> Planned<'a> {
        let plan = axon_fabric::planned::Planned::new(fabric, router, seed);
        Planned { fabric, plan }
    }

    /// Requests routes in both directions for each pair of hosts, by index.
    ///
    /// # Errors
    /// A request is not answered.
    pub fn ask(&mut self, pairs: &[(usize, usize)]) -> Result<()> {
        let mut answered = 0;
        for &(source, target) in pairs {
            answered += usize::from(self.plan.ask(source, target));
        }
        ensure!(answered == pairs.len(), "{answered} of {} requests answered", pairs.len());
        Ok(())
    }

    /// Requests routes for each pair of hosts, then runs the router's rounds.
    ///
    /// # Errors
    /// A request is not answered.
    pub(crate) fn place(&mut self, pairs: &[(usize, usize)]) -> Result<()> {
        self.ask(pairs)?;
        self.plan.settle();
        Ok(())
    }

    /// Returns the number of routes moved since the start.
    pub(crate) fn moved(&self) -> u64 {
        self.plan.controller().counters().routes_moved
    }

    /// Returns the number of flows of a link, both directions together.
    fn flows(&self, link: &Link) -> usize {
        let one = |end: End| {
            let switch = self.plan.controller().graph().index_of(assemble::switch_id(end.switch));
            switch.map_or(0, |switch| self.plan.controller().flows().over(switch, end.port).count())
        };
        one(link.a) + one(link.b)
    }

    /// Returns the distribution of the flows.
    pub(crate) fn spread(&self) -> Spread {
        let flows: Vec<f64> = self.fabric.links.iter().map(|at| self.flows(at) as f64).collect();
        let links = flows.len() as f64;
        let mean = flows.iter().sum::<f64>() / links;
        let variance = flows.iter().map(|flows| (flows - mean).powi(2)).sum::<f64>() / links;
        let routes = self.plan.controller().flows();
        let hops: usize = routes.iter().map(|(_, route)| route.len() + 1).sum();
        let route_hops = hops as f64 / routes.len() as f64;
        Spread { route_hops, mean, sd: variance.sqrt(), max: flows.into_iter().fold(0.0, f64::max) }
    }

    /// Fails the fullest link at both ends, and counts the commands that the controller sends.
    ///
    /// # Errors
    /// The fabric has no links, or the controller sends an unexpected message.
    pub(crate) fn fail_fullest(&mut self) -> Result<Failure> {
        let fullest = self.fabric.links.iter().max_by_key(|&link| self.flows(link));
        let fullest = fullest.context("no links")?.clone();
        let out = self.plan.cut(&fullest);
        let mut streams: BTreeMap<NodeId, Stream> = BTreeMap::new();
        let mut failure = Failure::default();
        for effect in out {
            let Effect::Command { to, item } = effect else { continue };
            failure.routes += 1;
            let fresh = || Stream::new(Incarnation { node: to, number: 1 }, Span::from_millis(50));
            streams.entry(to).or_insert_with(fresh).push(VlanId::NONE, item);
        }
        let own = Incarnation { node: assemble::CONTROLLER_ID, number: 1 };
        let mut sealer = Sealer::new(&self.fabric.keys, own, Role::Controller);
        for (node, mut stream) in streams {
            let hops =
                self.plan.controller_mut().path_to(node).context("a switch without a way to it")?;
            let mut sent = 0;
            while let Some((vlan, segment)) = stream.poll(self.plan.now()) {
                sent += segment.items.len() as u64;
                let peer = stream.peer();
                let sealed = sealer.seal_routed(peer, (vlan, &Message::Segment(segment)));
                failure.packets += 1;
                let header = self.fabric.hop_width.header_bytes(hops.0.len());
                failure.bytes += header + sealed.len() + FCS_BYTES;
                let _none = stream
                    .receive(self.plan.now(), Segment { first: 0, ack: sent, items: Vec::new() });
            }
        }
        Ok(failure)
    }
}
