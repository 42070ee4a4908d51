//! Programs compared with the data planes that they implement, and fabrics of forwarding servers.

mod axon_routes;
mod axon_step;
mod servers;
