//! Stations, the endpoints of links: switches, the controller, hosts, test nodes.

use crate::engine::accounts::Accounts;
use crate::engine::adapter::Adapter;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::event::{Common, Kind};
use crate::engine::headless::Headless;
use crate::link::timing::Timing;
use crate::world::baselines::Baseline;
use axon_agents::{Agent, AgentNode, node};
use axon_fabric::model::Device;
use axon_node::{Action, Awaited, Counters, Dataplane, Input, Node, Shortcuts, Stored};
use axon_simhost::Host;
use axon_simhost::arp_host::ArpHost;
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::Time;

/// Node of a station's current incarnation, or none without power.
pub enum StationNode {
    /// Powered off.
    Off,
    /// Switch.
    Switch(Box<SwitchNode<SwitchPlane>>),
    /// Controller.
    Controller(Box<ControllerNode<SwitchPlane>>),
    /// Host.
    Host(Box<Host>),
    /// Host that implements ARP only.
    ArpHost(Box<ArpHost>),
    /// Switch of another network, or PortLand's fabric manager.
    Baseline(Box<Baseline>),
    /// Agent at its port.
    Agent(Box<AgentNode<dyn Agent + Send>>),
    /// Data plane of a switch whose node has crashed.
    Headless(Box<Headless>),
    /// Suspended node of any type.
    Stopped(Box<Stopped>),
    /// Any other node, for tests.
    Other(Box<dyn Shortcuts + Send>),
}

impl StationNode {
    /// Returns whether the station has power.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self, StationNode::Off)
    }

    /// Returns the node as a trait object.
    pub(crate) fn as_node(&mut self) -> &mut dyn Shortcuts {
        match self {
            // A box of a zero-sized type allocates no memory.
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

    /// Returns the counters of the node's plane, if it has one.
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

    /// Returns whether frames pass through the node: a switch or a controller.
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

    /// Returns whether the node completes a light frame where it reads its payload.
    #[inline]
    fn takes_light(&self) -> bool {
        match self {
            StationNode::Switch(node) => !matches!(node.plane(), SwitchPlane::Reference(_)),
            StationNode::Host(_) => true,
            _ => false,
        }
    }

    /// Returns whether the node is a host, whose NIC drops frames with a bad FCS.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, StationNode::Host(_) | StationNode::ArpHost(_))
    }
}

/// Suspended node, like a stopped or starved process. Its ports keep carrier, its input is queued,
/// and no timer runs. On resume, it receives all queued input at once, in order.
pub struct Stopped {
    /// Node in its state at suspension.
    pub(crate) node: StationNode,
    /// Queued input.
    pub(crate) inputs: Vec<Input>,
}

impl Stopped {
    /// Returns the number of queued frames.
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
}

impl Shortcuts for Stopped {
    fn awaited(&mut self) -> Awaited {
        Awaited::None
    }
}

/// Station in the world, with ports, independent of the node that runs there.
#[repr(C, align(64))]
pub struct Station {
    /// Current node.
    pub node: StationNode,
    adapter: Adapter,
}

const _: () = assert!(
    std::mem::offset_of!(Station, adapter) + Adapter::PASSING_BYTES == 128,
    "what every frame that passes needs is in two cache lines"
);

/// Node of a station without power, which ignores every input.
struct NoNode;

impl Node for NoNode {
    fn handle(&mut self, _: Time, _: Input, _: &mut Vec<Action>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for NoNode {}

/// Calls a generic function with the station's node. It is monomorphized for switches and hosts,
/// which handle most frames, so that they need no dynamic dispatch.
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

    /// Returns the station's name: `s1`, `h1`, `c1`.
    pub fn name(&self) -> &str {
        &self.adapter.profile().name
    }

    /// Returns the frame counters over all incarnations.
    pub fn accounts(&self) -> Accounts {
        self.adapter.ledger().total()
    }

    /// Returns the adapter of the node.
    #[inline]
    pub(crate) fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Returns the adapter of the node for changes.
    #[inline]
    pub(crate) fn adapter_mut(&mut self) -> &mut Adapter {
        &mut self.adapter
    }

    /// Sets a switch's timing to that of a device. Call it before anything is connected. Without
    /// it, the switch stores and forwards in zero time.
    pub fn set_device(&mut self, device: &Device) {
        self.adapter.profile_mut().timing = Timing::of(device);
    }

    /// Makes the pipelines of switches treat frames from this station as a host's. Call it before
    /// anything is connected.
    pub fn set_host(&mut self) {
        self.adapter.profile_mut().host = true;
    }

    /// Returns the number of the next incarnation of the node, from 1, strictly increasing.
    pub fn next_incarnation(&self) -> u64 {
        self.adapter.ledger().incarnations + 1
    }

    /// Returns the data that the nodes have kept for the next incarnation, by key.
    pub fn stored(&self) -> Vec<Stored> {
        self.adapter.store().all()
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
            Kind::TxDone => with_node!(&mut self.node, |node| {
                adapter.free_wires(node, common);
                adapter.await_wires(node, common);
                adapter.arm(node.deadline(), common);
            }),
            Kind::Wake => with_node!(&mut self.node, |node| adapter.wake(node, common)),
            Kind::Queues { carrier, bytes } => self.take_queues(carrier, &bytes),
        }
    }

    /// Passes a switch's queue lengths to its agent.
    #[cold]
    fn take_queues(&mut self, carrier: u32, bytes: &[u64]) {
        if let StationNode::Agent(node) = &mut self.node
            && let Some(port_state) = self.adapter.ports().get(node::PORT.index())
            && port_state.cable.as_ref().is_some_and(|cable| cable.carrier == carrier)
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

    /// Queues an event for the node's deadline.
    pub(crate) fn nudge(&mut self, common: &mut Common) {
        self.adapter.arm(self.node.as_node().deadline(), common);
    }
}
