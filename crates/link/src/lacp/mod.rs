//! Link aggregation: negotiation of one logical link over several links (IEEE 802.1AX-2014 clause
//! 6). Without a clock.
//!
//! [`port`] is the state of one port: its partner, its transmissions, and its permission to carry
//! frames. [`selection`] chooses the ports that lead to one partner. A switch's edge and a
//! simulated host run the same code: the one is the actor where the other is the partner.

pub mod port;
pub mod selection;

pub use port::{LacpConfig, LacpPort, Mux, Receive};
pub use selection::Selection;
