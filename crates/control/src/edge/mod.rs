//! The edge: how hosts and the fabric meet at a switch (paper 001 §4.2.2 and §4.2.3).
//!
//! The data plane hands over every host frame without a valid route. The edge learns from it
//! who is where, and then:
//!
//! - ARP, broadcast or unicast, is never passed on. For an existing flow the answer is known;
//!   otherwise Axon-ARP (`setup`, `arrival`) asks the controller, whose
//!   request reaches the target switch (`target`), which asks its host and answers. Four
//!   phases, and each switch reserves memory before it asks.
//! - DHCP goes to the controller.
//! - A unicast frame waits while a route for its MAC is sought, or takes a route that only
//!   software has.
//! - Other broadcast and multicast ends here.
//!
//! Local hosts with an address are probed; one that is silent too long takes its flows along.
//! Everything that a host can make grow is bounded. Nothing here depends on the order of
//! messages: see `flows`.

mod arrival;
mod context;
mod flows;
mod hosts;
mod install;
mod intercept;
mod learning;
mod places;
mod placing;
mod queries;
mod recall;
mod setup;
mod setups;
mod state;
mod target;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use flows::{Flow, Placement};
pub use hosts::Host;
pub use state::{Edge, EdgeCounters, Fate};
