//! Fuzz target: see `newsreel_fuzz::wire::mbox`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::wire::mbox(data));
