//! Fuzz target: see `newsreel_fuzz::spool::logins`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::logins(data));
