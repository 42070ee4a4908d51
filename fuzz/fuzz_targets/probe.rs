//! The target `probe` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| axon_fuzz::probe::run(bytes));
