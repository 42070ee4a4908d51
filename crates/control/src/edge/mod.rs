//! The edge: how hosts and the fabric meet at a switch (paper 001 §4.2.2 and §4.2.3).
//!
//! The data plane punts every host frame without a valid route. The edge learns hosts from it, and
//! then:
//!
//! - ARP, broadcast or unicast, is never forwarded. An existing flow gives the answer at once.
//!   Otherwise Axon-ARP (`setup`, `arrival`) sends a request to the controller, which forwards
//!   it to the target switch (`target`). That queries its host and replies. There are four
//!   phases, and each switch reserves memory before it sends.
//! - Neighbour discovery of IPv6 (`nd`) is served as ARP is.
//! - DHCP goes to the controller; whoever else answers clients is refused (`guard`).
//! - DHCPv6 ends here too, if the fabric file asks for it (`dhcpv6`).
//! - Router advertisements of IPv6 come from the edge (`ra`), if the fabric file asks for them.
//! - The fabric's own address answers ping (`ping`).
//! - Where a port's table is full, its hosts get masqueraded addresses (`masquerade`, `given`).
//! - A unicast frame is queued while a route for its MAC is looked up, or takes a route that
//!   is kept in software.
//! - Ports of a bond (`bonds`) are one place, and LACP says whether frames pass.
//! - A frame to a group (`members`, `senders`) becomes one unicast copy for each port with members,
//!   and so does other broadcast, if that is wanted.
//!
//! The controller may have all hosts asked for an address that nobody is known to have (`seek`),
//! those at ports that come up meanwhile included (`newcomers`).
//! Local hosts with an address are probed. A host that is silent too long is removed together with
//! its flows. Everything that a host can make grow is bounded. Nothing here depends on the order
//! of messages: see `flows`.

mod addresses;
mod advertising;
mod ageing;
mod arrival;
mod backup;
mod backups;
mod bond_ports;
mod bonds;
mod context;
mod dhcpv6;
mod flows;
mod given;
mod groups;
mod guard;
mod hosts;
mod inherited;
mod install;
mod intercept;
mod learning;
mod masquerade;
mod members;
mod nd;
mod newcomers;
mod ping;
mod places;
mod placing;
mod queries;
mod ra;
mod recall;
mod seek;
mod senders;
mod setup;
mod setups;
mod sought;
mod state;
mod target;
mod vlans;

#[cfg(test)]
mod pairs;
#[cfg(test)]
mod test_device;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use addresses::Addresses;
pub use ageing::ROUTE_LOOK;
pub use flows::{Flow, Placement};
pub(crate) use groups::COPIES_MAX;
pub use hosts::Host;
pub use state::{Edge, Fate};
pub use vlans::Edges;
