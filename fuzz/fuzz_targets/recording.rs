//! The target `recording` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| axon_fuzz::recording::run(bytes));
