//! The two schedulers from Hedera (Al-Fares et al., NSDI 2010, §4.3 and §4.4), for any graph.
//!
//! Hedera moves large flows between the equal-cost paths of a fat tree, where choosing the core
//! switch chooses the path. Here the candidates are shortest paths drawn by a hash, up to
//! [`CANDIDATES`] of them, which on a fat tree are the same paths.
//!
//! Hedera uses a link's rate and estimates the natural demand of each flow, limited only by its
//! hosts' links. A controller that answers before the first frame has neither, so here a flow is
//! one unit, and one flow fills a link. If the fabric has more flows than that, nothing would fit.
//! So the limit is raised to the load in the fabric, see both files.

mod annealing;
mod first_fit;

pub use annealing::Annealing;
pub use first_fit::FirstFit;

/// Maximum number of candidate paths for a flow.
const CANDIDATES: u64 = 16;
