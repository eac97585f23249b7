//! Fuzz target: see `newsreel_fuzz::spool::cache_values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::cache_values(data));
