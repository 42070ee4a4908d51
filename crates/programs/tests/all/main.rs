//! Programs held to the data planes that they stand for.

mod axon_routes;
mod axon_step;
