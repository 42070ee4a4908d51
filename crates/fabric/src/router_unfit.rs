//! Reasons that a router does not fit a fabric.

use axon_controller::router::RouterKind;

/// A router that does not fit a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The router divides routes into layers, and no priority has any.
    #[error("router layered: no priority has layers; expected dcb.layers, or another router")]
    NoLayers,
    /// There is no controller, and the router's choice does not follow from the graph alone.
    #[error(
        "router {}: there is no controller that knows what was placed, measured or drawn before; \
         expected shortest_path or up_down, or a fabric with a controller",
        .0.name()
    )]
    NeedsController(RouterKind),
    /// The router has an order, which the paths that the file states may break.
    #[error(
        "router {}: the file states paths, which may break its order; expected shortest_path",
        .0.name()
    )]
    StatedPaths(RouterKind),
}
