//! Fuzz target: see `newsreel_fuzz::spool::history_page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::history_page(data));
