//! A lab: a fabric on one machine, with each node in its own network namespace. The veth pairs that
//! join the namespaces have the port names of the fabric file.
//!
//! A lab works as root, and without root if the kernel allows user namespaces. Nothing in it is
//! visible from the machine's own namespaces; see [`namespaces`].
//!
//! It differs from real links as follows. The latency and loss in the fabric file apply only to the
//! simulator and are not emulated here; rates are. Hosts are dual stack if the file has IPv6
//! addresses. Otherwise, IPv6 is off until the user enables it.

#![forbid(unsafe_code)]

pub mod alarms;
mod announce;
pub mod attached;
pub mod bonds;
mod bridge;
mod changing;
mod daemons;
pub mod deadlock;
mod enter;
mod internal_process;
mod interrupt;
mod links;
mod moved;
mod moves;
pub mod namespaces;
mod neighbours;
mod node;
mod options;
mod own_program;
mod ping;
mod pings;
pub mod plan;
pub mod policy;
pub mod restored;
mod root;
mod running;
mod start;
pub mod state;
mod supervisor;
pub mod table;
#[cfg(test)]
#[path = "../../linux/src/testing.rs"]
mod testing;
mod uplinks;
pub mod view;

// `testing` names them as modules of its own crate.
#[cfg(test)]
use axon_linux::{dataplane_choice, status};
pub use deadlock::Deadlock;
pub use internal_process::part;
pub use moves::Moved;
pub use options::{RecordInto, Report, UpOptions};
pub use pings::{Family, Ping};
pub use root::STATE_VARIABLE;
pub use running::Lab;
pub use start::{Interrupted, down, up};
pub use state::StateDir;
pub use supervisor::Progress;
