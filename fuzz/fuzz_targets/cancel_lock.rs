//! Fuzz target: see `newsreel_fuzz::app::cancel_lock`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::cancel_lock(data));
