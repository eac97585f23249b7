//! Fuzz target: see `newsreel_fuzz::app::framer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::framer(data));
