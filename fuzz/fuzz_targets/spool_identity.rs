//! Fuzz target: see `newsreel_fuzz::spool::spool_identity`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::spool_identity(data));
