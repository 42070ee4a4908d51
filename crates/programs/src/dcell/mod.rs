//! DCell (C. Guo et al., SIGCOMM 2008) on the programmable data plane, as in paper 004, appendix A.
//!
//! Servers forward, and the switches in cells of level 0 are plain Ethernet. The outer IPv4
//! destination is derived from the server's number, which is hierarchical, so prefixes select the
//! next hop. A packet whose next neighbour is lost goes via a proxy in another cell. Its header
//! then has a flag and the proxy's address, and TCAM entries that match both take precedence over
//! the prefixes.

mod cells;
mod entries;
mod header;
mod local;
mod program;
mod routes;

use crate::server::hosts_fit;
use crate::site::{Plan, Shape};

pub use cells::Cells;
pub(crate) use entries::EXPECTED;
pub use entries::{FLAG_KEY, OVERHEAD_BYTES};
pub(crate) use program::Dcell;
pub use routes::{Detour, Route, detour, path, routes};

/// Returns the DCell structure of a network, if the program supports it.
pub(crate) fn of(plan: &Plan) -> Option<Cells> {
    let Shape::Dcell { n, k } = plan.shape else { return None };
    Cells::new(n, k).filter(|one| hosts_fit(plan, one.servers()))
}
