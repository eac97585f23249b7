//! Fuzz target: see `newsreel_fuzz::app::group_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::group_list(data));
