//! Fuzz target: see `newsreel_fuzz::app::filter_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::filter_answer(data));
