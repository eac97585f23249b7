//! Fuzz target: see `newsreel_fuzz::spool::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::manifest(data));
