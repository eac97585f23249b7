//! Fuzz target: see `newsreel_fuzz::spool::control_keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::control_keys(data));
