//! Fuzz target: see `newsreel_fuzz::spool::pull_marks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::pull_marks(data));
