//! Fuzz target: see `newsreel_fuzz::wire::wildmat`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::wire::wildmat(data));
