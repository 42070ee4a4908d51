//! The target `header` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| axon_fuzz::header::run(bytes));
