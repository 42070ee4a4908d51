//! Kinds of routers, by their names in fabric files.

use super::{
    Annealing, CongestionAware, Ecmp, FirstFit, Layered, Router, ShortestPaths, UpDown, Weighted,
};
use alloc::boxed::Box;

/// Kind of router, by its name in fabric files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouterKind {
    /// `shortest_path`: one shortest path per flow. The flow's hash chooses among equal ones.
    #[default]
    ShortestPath,
    /// `ecmp`: a shortest path drawn from a seeded generator each time a flow is placed.
    Ecmp,
    /// `spain`: greedy weighted shortest path. The weight of a link is its number of flows (paper
    /// 001 §5.5).
    Spain,
    /// `hedera_gff`: Hedera's global first fit.
    HederaFirstFit,
    /// `hedera_sa`: Hedera's simulated annealing.
    HederaAnnealing,
    /// `congestion_aware`: paths chosen by the measured load on links.
    CongestionAware,
    /// `balanced`: greedy paths that balance the number of flows on links.
    Balanced,
    /// `up_down`: shortest paths that never go up after they have gone down, free of deadlock.
    UpDown,
    /// `layered`: shortest paths on several layers, each free of deadlock.
    Layered,
}

impl RouterKind {
    /// All kinds of routers.
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

    /// Returns the name of the kind in fabric files and results.
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

    /// Returns the kind with this name, or `None` if there is none.
    pub fn named(name: &str) -> Option<RouterKind> {
        RouterKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Creates a router of this kind. `seed` is used by random routers, and `layers`, 1 to 8, by
    /// those that use more than one layer.
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

    /// Returns whether all paths of such a router, including backups, follow an order in which no
    /// cycle of buffers forms.
    pub const fn is_ordered(self) -> bool {
        matches!(self, RouterKind::UpDown | RouterKind::Layered)
    }

    /// Returns whether a flow's path depends only on the graph and the flow. It then does not
    /// depend on flows placed, load measured or random numbers drawn earlier.
    pub const fn is_fixed(self) -> bool {
        matches!(self, RouterKind::ShortestPath | RouterKind::UpDown)
    }
}
