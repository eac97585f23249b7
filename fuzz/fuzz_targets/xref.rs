//! Fuzz target: see `newsreel_fuzz::spool::xref`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::spool::xref(data));
