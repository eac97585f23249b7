//! Fuzz target: see `newsreel_fuzz::wire::message_id`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::wire::message_id(data));
