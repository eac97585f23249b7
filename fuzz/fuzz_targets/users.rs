//! Fuzz target: see `newsreel_fuzz::spool::users`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::users(data));
