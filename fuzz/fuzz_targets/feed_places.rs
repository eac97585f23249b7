//! Fuzz target: see `newsreel_fuzz::spool::feed_places`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::feed_places(data));
