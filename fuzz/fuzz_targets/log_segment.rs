//! Fuzz target: see `newsreel_fuzz::spool::log_segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::log_segment(data));
