//! Fuzz target: see `newsreel_fuzz::wire::newsgroups`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::wire::newsgroups(data));
