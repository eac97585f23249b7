//! Fuzz target: see `newsreel_fuzz::wire::range`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::wire::range(data));
