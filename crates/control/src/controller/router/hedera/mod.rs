//! The two schedulers of Hedera (Al-Fares et al., NSDI 2010, §4.3 and §4.4), for any graph.
//!
//! Hedera moves large flows between the equal-cost paths of a fat tree, where choosing the
//! core switch chooses the path. Here the candidates are shortest paths drawn by a hash, up
//! to [`CANDIDATES`] of them, which on a fat tree are the same paths.
//!
//! Hedera knows a link's rate and estimates what each flow would send if only its hosts'
//! links were in the way. A controller that answers before the first frame knows neither: a
//! flow is one unit here and a link is full with one. In a fabric that has more flows than
//! that everywhere, nothing would fit anywhere, so what counts as full is raised to what the
//! fabric has to carry: both files say how.

mod annealing;
mod first_fit;

pub use annealing::Annealing;
pub use first_fit::FirstFit;

/// Paths that are tried for a flow.
const CANDIDATES: u64 = 16;
