//! Any bytes as a recording of a node, as a frame in one, and as what follows a whole block: no
//! panic, memory in proportion to the input, and records in order.

#[path = "../../crates/capture/tests/all/recording/model.rs"]
mod model;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    model::check(bytes);
}
