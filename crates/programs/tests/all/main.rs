//! Programs held to the data planes that they stand for, and fabrics of forwarding servers.

mod axon_routes;
mod axon_step;
mod servers;
