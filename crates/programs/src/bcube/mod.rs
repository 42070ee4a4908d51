//! BCube (C. Guo et al., SIGCOMM 2009) on the programmable data plane, as in paper 004 §5.1.
//!
//! Servers forward, and the switches between them are plain Ethernet. The source writes the whole
//! path into the packet. The TTL is the index of the next hop in that path, and TCAM entries match
//! index and hop together. The source queries the servers on all parallel paths about their
//! available bandwidth, and puts each flow on the best path.

mod bandwidth;
mod cube;
mod entries;
mod failures;
mod flows;
mod header;
mod local;
mod paths;
mod probe;
mod program;
mod query;
mod router;

use crate::server::hosts_fit;
use crate::site::{Plan, Shape};

pub use cube::{Cube, Nha};
pub(crate) use entries::EXPECTED;
pub use entries::{INDEX_VALUES, OVERHEAD_BYTES, ROUTING_KEY};
pub use paths::{Path, around, parallel};
pub(crate) use program::Bcube;

/// Returns the BCube structure of a network, if the program supports it.
pub(crate) fn of(plan: &Plan) -> Option<Cube> {
    let Shape::Bcube { n, k } = plan.shape else { return None };
    Cube::new(n, k).filter(|one| hosts_fit(plan, one.servers()))
}
