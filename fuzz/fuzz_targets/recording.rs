//! Any bytes as a recording of a node, as a frame in one, and as what follows a whole block: no
//! panic, memory in proportion to the input, and records in order.
#![no_main]

#[path = "../../crates/capture/tests/all/recording/model.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| model::check(bytes));
