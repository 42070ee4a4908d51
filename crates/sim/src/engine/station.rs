//! Stations, which stand at the ends of links: switches, the controller, hosts, test nodes.

use crate::engine::accounts::Accounts;
use crate::engine::adapter::Adapter;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::event::{Common, Kind};
use crate::engine::headless::Headless;
use crate::host::Host;
use crate::host::arp_host::ArpHost;
use crate::world::baselines::Baseline;
use axon_agents::{Agent, AgentNode, node};
use axon_control::node::{ControllerNode, SwitchNode};
use axon_node::{Action, Awaited, Counters, Dataplane, Input, Node};
use axon_wire::Time;

/// The node of a station in its present incarnation, or none without power.
pub enum StationNode {
    /// Without power.
    Off,
    /// A switch.
    Switch(Box<SwitchNode<SwitchPlane>>),
    /// The controller.
    Controller(Box<ControllerNode<SwitchPlane>>),
    /// A host.
    Host(Box<Host>),
    /// A host that speaks ARP only.
    ArpHost(Box<ArpHost>),
    /// A switch of another network, or PortLand's fabric manager.
    Baseline(Box<Baseline>),
    /// An agent at its port.
    Agent(Box<AgentNode<dyn Agent + Send>>),
    /// The data plane of a switch whose node has crashed.
    Headless(Box<Headless>),
    /// A node that is suspended, whatever it is.
    Stopped(Box<Stopped>),
    /// Any other node: tests bring their own.
    Other(Box<dyn Node + Send>),
}

impl StationNode {
    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !matches!(self, StationNode::Off)
    }

    /// The node as a trait object, whatever it is.
    pub(crate) fn as_node(&mut self) -> &mut dyn Node {
        match self {
            // A box of nothing takes no memory.
            StationNode::Off => Box::leak(Box::new(NoNode)),
            StationNode::Switch(node) => &mut **node,
            StationNode::Controller(node) => &mut **node,
            StationNode::Host(node) => &mut **node,
            StationNode::ArpHost(node) => &mut **node,
            StationNode::Baseline(node) => &mut **node,
            StationNode::Agent(node) => &mut **node,
            StationNode::Headless(node) => &mut **node,
            StationNode::Stopped(node) => &mut **node,
            StationNode::Other(node) => &mut **node,
        }
    }

    /// What its plane has counted, if it has one.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        match self {
            StationNode::Switch(node) => Some(node.plane().counters()),
            StationNode::Controller(node) => Some(node.plane().counters()),
            StationNode::Baseline(node) => Some(node.ports().counters()),
            StationNode::Headless(left) => Some(left.plane.counters()),
            StationNode::Stopped(stopped) => stopped.node.counters(),
            StationNode::Off
            | StationNode::Host(_)
            | StationNode::ArpHost(_)
            | StationNode::Agent(_)
            | StationNode::Other(_) => None,
        }
    }

    /// Whether frames pass through it: a switch or a controller.
    pub(crate) fn is_transit(&self) -> bool {
        match self {
            StationNode::Switch(_)
            | StationNode::Controller(_)
            | StationNode::Baseline(_)
            | StationNode::Headless(_) => true,
            StationNode::Stopped(stopped) => stopped.node.is_transit(),
            _ => false,
        }
    }

    /// Whether it makes a light frame whole where it reads its payload.
    #[inline]
    fn takes_light(&self) -> bool {
        match self {
            StationNode::Switch(node) => !matches!(node.plane(), SwitchPlane::Reference(_)),
            StationNode::Host(_) => true,
            _ => false,
        }
    }

    /// Whether it is a host, whose NIC drops a frame with a bad FCS.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, StationNode::Host(_) | StationNode::ArpHost(_))
    }
}

/// A node that is suspended for a while, as a process may be that is stopped or starved: its ports
/// keep carrier, what comes in waits, and no timer runs. When it goes on, it is given all of that
/// at once, in order.
pub struct Stopped {
    /// The node, as it was when it was stopped.
    pub(crate) node: StationNode,
    /// What it will be given.
    pub(crate) inputs: Vec<Input>,
}

impl Stopped {
    /// Frames that wait for it.
    pub(crate) fn frames(&self) -> u64 {
        let frames = self.inputs.iter().filter(|input| matches!(input, Input::Frame { .. }));
        frames.count() as u64
    }
}

impl Node for Stopped {
    fn handle(&mut self, _: Time, input: Input, _: &mut Vec<Action>) {
        self.inputs.push(input);
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn awaited(&mut self) -> Awaited {
        Awaited::None
    }
}

/// A place in the world with ports, whatever node runs there.
#[repr(C, align(64))]
pub struct Station {
    /// The node that runs there now.
    pub node: StationNode,
    pub(crate) adapter: Adapter,
}

const _: () = assert!(
    std::mem::offset_of!(Station, adapter.accounts.nowhere) == 128,
    "what every frame that passes needs is in two cache lines"
);

/// The node of a station without power: it ignores every input.
struct NoNode;

impl Node for NoNode {
    fn handle(&mut self, _: Time, _: Input, _: &mut Vec<Action>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Calls a function that takes any node with the one that stands here: where most frames go
/// (switches and hosts) one made for its type, with nothing left to find out at run time.
macro_rules! with_node {
    ($station_node:expr, |$node:ident| $call:expr) => {
        match $station_node {
            StationNode::Switch(node) => {
                let $node = &mut **node;
                $call
            }
            StationNode::Host(node) => {
                let $node = &mut **node;
                $call
            }
            other => {
                let $node = other.as_node();
                $call
            }
        }
    };
}

impl Station {
    pub(crate) fn new(name: String, number: usize) -> Station {
        let number = u32::try_from(number).expect("fewer than 2^32 stations");
        Station { node: StationNode::Off, adapter: Adapter::new(name, number) }
    }

    /// `s1`, `h1`, `c1`.
    pub fn name(&self) -> &str {
        &self.adapter.name
    }

    /// Frames in and out over all its incarnations.
    pub fn accounts(&self) -> Accounts {
        let mut sum = self.adapter.accounts.clone();
        if let Some(past) = &self.adapter.past {
            sum.add(past);
        }
        sum
    }

    /// Handles an event.
    #[inline]
    pub(crate) fn handle(&mut self, kind: Kind, common: &mut Common) {
        let adapter = &mut self.adapter;
        match kind {
            Kind::Arrive { port, intact, carrier, complete_at, mut frame } => {
                if frame.is_light() && !self.node.takes_light() {
                    frame.make_whole();
                }
                with_node!(&mut self.node, |node| {
                    adapter.arrive(node, (port, carrier), (frame, complete_at, intact), common);
                });
            }
            Kind::TxDone => with_node!(&mut self.node, |node| adapter.tx_done(node, common)),
            Kind::Wake => with_node!(&mut self.node, |node| adapter.wake(node, common)),
            Kind::Queues { carrier, bytes } => self.take_queues(carrier, &bytes),
        }
    }

    /// An agent is shown the queues of its switch.
    #[cold]
    fn take_queues(&mut self, carrier: u32, bytes: &[u64]) {
        if let StationNode::Agent(node) = &mut self.node
            && self.adapter.has_carrier(node::PORT, carrier)
        {
            node.show_queues(bytes);
        }
    }

    /// Delivers an input to the node.
    pub(crate) fn deliver(&mut self, input: Input, common: &mut Common) {
        let adapter = &mut self.adapter;
        with_node!(&mut self.node, |node| adapter.deliver(node, input, common));
    }

    /// Delivers the `TxDone`s that are due.
    pub(crate) fn free_wires(&mut self, common: &mut Common) {
        let node = self.node.as_node();
        self.adapter.free_wires(node, common);
        self.adapter.await_wires(node, common);
    }

    /// Puts the node's deadline in the queue of events.
    pub(crate) fn nudge(&mut self, common: &mut Common) {
        self.adapter.arm(self.node.as_node().deadline(), common);
    }
}
