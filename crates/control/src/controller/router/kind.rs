//! The routers by the names that fabric files use.

use super::{
    Annealing, CongestionAware, Ecmp, FirstFit, Layered, Router, ShortestPaths, UpDown, Weighted,
};
use alloc::boxed::Box;

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

    /// Whether all its paths, backups too, follow an order in which no buffers wait for each other
    /// in a cycle.
    pub const fn is_ordered(self) -> bool {
        matches!(self, RouterKind::UpDown | RouterKind::Layered)
    }

    /// Whether a flow's path follows from the graph and the flow alone, not from what was
    /// placed, measured or drawn before.
    pub const fn is_fixed(self) -> bool {
        matches!(self, RouterKind::ShortestPath | RouterKind::UpDown)
    }
}
