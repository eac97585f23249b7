//! Fuzz target: see `newsreel_fuzz::spool::control_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::control_message(data));
