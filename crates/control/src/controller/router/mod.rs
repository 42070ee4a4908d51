//! Which way a flow goes.
//!
//! A [`Router`] answers with a path for each flow, one at a time. Some look at the graph
//! only; others at the flows they have placed so far, or at the load that was measured, and
//! take a second look at what they placed, in rounds. docs/routers.md says when to use which.

mod congestion;
mod ecmp;
mod hedera;
mod layered;
mod loads;
mod search;
mod shortest;
#[cfg(test)]
mod testing;
mod tree;
mod up_down;
mod weighted;

pub use congestion::CongestionAware;
pub use ecmp::Ecmp;
pub use hedera::{Annealing, FirstFit};
pub use layered::Layered;
pub use loads::Loads;
pub use shortest::ShortestPaths;
pub use tree::FixedTies;
pub use up_down::UpDown;
pub use weighted::Weighted;

use super::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
pub use axon_node::Step;
use axon_wire::message::PortBytes;
use axon_wire::{Layer, MacAddr, NodeId, PortNo, Span};
use core::fmt::Debug;

/// What a router knows of a flow: the frames that one host port sends to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The switch it enters by.
    pub from: SwitchIndex,
    /// The switch it leaves by.
    pub to: SwitchIndex,
    /// Its [`flow_hash`].
    pub hash: u64,
    /// The host it leads to, by its index in the host table.
    pub towards: u32,
}

/// Finds paths between switches.
///
/// What it answers follows from its seed, the graph, its arguments and what it was told
/// before: the flows that are placed and removed, and the load that was measured. The same
/// calls in the same order give the same answers, everywhere. No answer is needed to find a
/// later one, so a controller that starts again with nothing in memory converges to good
/// routes too, if not to the same ones.
///
/// A path never comes by a switch twice.
pub trait Router: Debug + Send {
    /// Replaces `path` with the links that `flow` should take; no link at all where both ends
    /// are the same switch. Says whether there is a path, and leaves `path` empty otherwise.
    /// The flow is not counted among those that are placed.
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool;

    /// The shortest paths of this graph, for what is no flow: control messages. Kept with
    /// the router since most need them themselves.
    fn shortest(&mut self) -> &mut ShortestPaths;

    /// A flow takes this path from now on.
    fn placed(&mut self, _path: &[Step]) {}

    /// A flow takes this path no more.
    fn removed(&mut self, _path: &[Step]) {}

    /// Whether the flow that takes `current`, and has just been [`Router::removed`] from it,
    /// is worth meta; leaves its new path in `path` if so. Asked in rounds, of every flow:
    /// when links have come, and regularly if [`Router::improves`]. What is moved may be
    /// reordered, so it should gain by it.
    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        let distance = self.shortest().distance(graph, flow.from, flow.to);
        distance.is_some_and(|distance| distance < current.len())
            && self.path(graph, flow, path)
            && path.len() < current.len()
    }

    /// The graph has changed. Says whether paths that were allowed may break a rule of its own
    /// now, so that all those in use are to be shown to [`Router::allows`].
    fn changed(&mut self, _graph: &Graph) -> bool {
        false
    }

    /// Whether a flow may take this path on this layer: always, where only its length matters.
    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        true
    }

    /// The layer that a flow is to take this path on, the one that the router has just answered or
    /// a shortest; `None` if there is none that allows it.
    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.allows(graph, path, Layer::ZERO).then_some(Layer::ZERO)
    }

    /// Whether it wants to look again at placed flows, round by round until it has settled,
    /// and anew when flows have come or loads were measured.
    fn improves(&self) -> bool {
        false
    }

    /// Whether a round that moved so many of so many flows is the last: by default, if it
    /// moved one in 64 or fewer, for what more there is to gain is not worth the moves.
    fn settled(&self, moved: usize, flows: usize) -> bool {
        moved <= flows / 64
    }

    /// A round begins, and these are the flows, all placed.
    fn round(&mut self, _graph: &Graph, _flows: &[Flow]) {}

    /// How often it wants to know what each link carries, in heartbeats; never without.
    fn measures(&self) -> Option<u32> {
        None
    }

    /// A switch sent this many bytes out of each of these ports in this time.
    fn measured(&mut self, _graph: &Graph, _switch: SwitchIndex, _over: Span, _sent: &[PortBytes]) {
    }
}

/// The routers there are, by the names that fabric files use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouterKind {
    /// `shortest_path`: one shortest path per flow, of several equal ones by its hash.
    #[default]
    ShortestPath,
    /// `ecmp`: a shortest path drawn anew for each flow by a seeded random number.
    Ecmp,
    /// `spain`: greedy weighted shortest path, a link's weight the flows on it (paper 001
    /// §5.5).
    Spain,
    /// `hedera_gff`: Hedera's global first fit.
    HederaFirstFit,
    /// `hedera_sa`: Hedera's simulated annealing.
    HederaAnnealing,
    /// `congestion_aware`: by the load that links were measured to carry.
    CongestionAware,
    /// `balanced`: our own best spread of flows over links.
    Balanced,
    /// `up_down`: shortest paths that never go up after down, free of deadlock.
    UpDown,
    /// `layered`: shortest paths on several layers, each free of deadlock.
    Layered,
}

impl RouterKind {
    /// All of them, in order.
    pub const ALL: [RouterKind; 9] = [
        RouterKind::ShortestPath,
        RouterKind::Ecmp,
        RouterKind::Spain,
        RouterKind::HederaFirstFit,
        RouterKind::HederaAnnealing,
        RouterKind::CongestionAware,
        RouterKind::Balanced,
        RouterKind::UpDown,
        RouterKind::Layered,
    ];

    /// The name in fabric files and results.
    pub const fn name(self) -> &'static str {
        match self {
            RouterKind::ShortestPath => "shortest_path",
            RouterKind::Ecmp => "ecmp",
            RouterKind::Spain => "spain",
            RouterKind::HederaFirstFit => "hedera_gff",
            RouterKind::HederaAnnealing => "hedera_sa",
            RouterKind::CongestionAware => "congestion_aware",
            RouterKind::Balanced => "balanced",
            RouterKind::UpDown => "up_down",
            RouterKind::Layered => "layered",
        }
    }

    /// The router of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<RouterKind> {
        RouterKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A router of this kind; `seed` feeds those that draw, and `layers`, 1 to 8, are there for
    /// those that use more than one.
    pub fn build(self, seed: u64, layers: u8) -> Box<dyn Router> {
        match self {
            RouterKind::ShortestPath => Box::<ShortestPaths>::default(),
            RouterKind::Ecmp => Box::new(Ecmp::new(seed)),
            RouterKind::Spain => Box::new(Weighted::spain()),
            RouterKind::HederaFirstFit => Box::<FirstFit>::default(),
            RouterKind::HederaAnnealing => Box::new(Annealing::new(seed)),
            RouterKind::CongestionAware => Box::<CongestionAware>::default(),
            RouterKind::Balanced => Box::new(Weighted::balanced()),
            RouterKind::UpDown => Box::<UpDown>::default(),
            RouterKind::Layered => Box::new(Layered::new(layers)),
        }
    }

    /// Whether a flow's path follows from the graph and the flow alone, not from what was
    /// placed, measured or drawn before.
    pub const fn is_fixed(self) -> bool {
        matches!(self, RouterKind::ShortestPath | RouterKind::UpDown)
    }
}

/// The hash of the frames that one port of a switch sends to one host: they share one place
/// in its route memory, so they share a path.
pub fn flow_hash(node: NodeId, port: PortNo, destination: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&destination.0);
    mix(mix(node.0 ^ (u64::from(port.0) << 48)) ^ u64::from_le_bytes(word))
}

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): every bit of the result
/// depends on every bit of the argument.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
