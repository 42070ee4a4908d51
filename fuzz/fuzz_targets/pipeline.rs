//! A pipeline and its reference interpreter among arbitrary changes of the tables and frames:
//! `Twins` checks after every one that both answer alike.
#![no_main]

#[path = "../../crates/pipeline/tests/all/reference/mod.rs"]
mod reference;
#[path = "../../crates/pipeline/tests/all/twins/mod.rs"]
mod twins;

use axon_fuzz::Reader;
use libfuzzer_sys::fuzz_target;
use twins::{Draw, Twins};

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let mut next = || reader.byte();
    let mut draw = Draw(&mut next);
    let Some(mut twins) = Twins::new(&mut draw, 0) else { return };
    while twins.step(&mut draw).is_some() {}
    twins.finish();
});
