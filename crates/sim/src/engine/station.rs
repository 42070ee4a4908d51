//! What stands at the ends of links: switches, the controller, hosts, and test nodes.

use crate::engine::accounts::Accounts;
use crate::engine::adapter::Harness;
use crate::engine::event::{Common, Kind};
use crate::host::Host;
use crate::host::arp_host::ArpHost;
use crate::world::baselines::Baseline;
use axon_control::node::{ControllerNode, SwitchNode};
use axon_plane::{Action, Input, Node};
use axon_wire::{FrameBuf, Time};

/// A node in one of its lives, or the lack of one.
pub enum Body {
    /// Without power.
    Off,
    /// A switch.
    Switch(Box<SwitchNode<FrameBuf>>),
    /// The controller.
    Controller(Box<ControllerNode<FrameBuf>>),
    /// A host.
    Host(Box<Host>),
    /// A host that speaks ARP only.
    ArpHost(Box<ArpHost>),
    /// A switch of another network, or PortLand's fabric manager.
    Baseline(Box<Baseline>),
    /// Any other node: tests bring their own.
    Other(Box<dyn Node<FrameBuf> + Send>),
}

impl Body {
    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !matches!(self, Body::Off)
    }

    /// The node, whatever it is.
    pub(crate) fn node(&mut self) -> &mut dyn Node<FrameBuf> {
        match self {
            // A box of nothing takes no memory.
            Body::Off => Box::leak(Box::new(Nobody)),
            Body::Switch(node) => &mut **node,
            Body::Controller(node) => &mut **node,
            Body::Host(node) => &mut **node,
            Body::ArpHost(node) => &mut **node,
            Body::Baseline(node) => &mut **node,
            Body::Other(node) => &mut **node,
        }
    }

    /// Whether it is in the middle of ways: a switch or a controller.
    pub(crate) fn is_transit(&self) -> bool {
        matches!(self, Body::Switch(_) | Body::Controller(_) | Body::Baseline(_))
    }

    /// Whether it is a host, whose network card drops a frame with a bad FCS.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Body::Host(_) | Body::ArpHost(_))
    }
}

/// A place in the world, whatever stands there.
pub struct Station {
    /// What stands there now.
    pub body: Body,
    pub(crate) harness: Harness,
}

/// Where there is no power: nothing happens.
struct Nobody;

impl Node<FrameBuf> for Nobody {
    fn handle(&mut self, _: Time, _: Input<FrameBuf>, _: &mut Vec<Action<FrameBuf>>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Calls a function that takes any node with the one that stands here: where most frames go
/// (switches and hosts) one made for its type, with nothing left to find out at run time.
macro_rules! with_node {
    ($body:expr, |$node:ident| $call:expr) => {
        match $body {
            Body::Switch(node) => {
                let $node = &mut **node;
                $call
            }
            Body::Host(node) => {
                let $node = &mut **node;
                $call
            }
            other => {
                let $node = other.node();
                $call
            }
        }
    };
}

impl Station {
    pub(crate) fn new(name: String, number: usize) -> Station {
        let number = u32::try_from(number).expect("fewer than 2^32 stations");
        Station { body: Body::Off, harness: Harness::new(name, number) }
    }

    /// `s1`, `h1`, `c1`.
    pub fn name(&self) -> &str {
        &self.harness.name
    }

    /// What has passed over all its lives.
    pub fn accounts(&self) -> Accounts {
        let mut sum = self.harness.past.clone();
        sum.add(&self.harness.accounts);
        sum
    }

    /// Handles an event.
    #[inline]
    pub(crate) fn meet(&mut self, kind: Kind, common: &mut Common) {
        let harness = &mut self.harness;
        with_node!(&mut self.body, |node| harness.meet(node, kind, common));
    }

    /// Hands the body an input.
    pub(crate) fn hand(&mut self, input: Input<FrameBuf>, common: &mut Common) {
        let harness = &mut self.harness;
        with_node!(&mut self.body, |node| harness.hand(node, input, common));
    }

    /// Delivers the `TxDone`s that are due.
    pub(crate) fn free_wires(&mut self, common: &mut Common) {
        let node = self.body.node();
        self.harness.free_wires(node, common);
        self.harness.await_wires(node, common);
    }

    /// Lets the body look at its clock.
    pub(crate) fn nudge(&mut self, common: &mut Common) {
        self.harness.arm(self.body.node().deadline(), common);
    }
}
