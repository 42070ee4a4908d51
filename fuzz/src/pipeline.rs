//! A pipeline and its reference interpreter among arbitrary changes of the tables and frames:
//! `Twins` checks after every one that both answer alike.

#[path = "../../crates/pipeline/tests/all/reference/mod.rs"]
mod reference;
#[path = "../../crates/pipeline/tests/all/twins/mod.rs"]
mod twins;

use crate::Reader;
use twins::{Draw, Twins};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut next = || reader.byte();
    let mut draw = Draw(&mut next);
    let Some(mut twins) = Twins::new(&mut draw, 0) else { return };
    while twins.step(&mut draw).is_some() {}
    twins.finish();
}
