//! BCube (C. Guo et al., SIGCOMM 2009) on the programmable data plane, as in paper 004 §5.1.
//!
//! Servers forward; the switches between them are plain Ethernet. The source writes the whole path
//! into the packet, the TTL is the index of the next hop in it, and TCAM entries match index and
//! hop together. The source queries the servers of all parallel paths for their available
//! bandwidth, and puts each flow on the best path.

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

/// Returns the structure of a network that the program supports.
pub(crate) fn of(plan: &Plan) -> Option<Cube> {
    let Shape::Bcube { n, k } = plan.shape else { return None };
    Cube::new(n, k).filter(|one| hosts_fit(plan, one.servers()))
}
