//! Fuzz target: see `newsreel_fuzz::app::control_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::control_rules(data));
