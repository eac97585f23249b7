//! Fuzz target: see `newsreel_fuzz::app::control_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::control_request(data));
