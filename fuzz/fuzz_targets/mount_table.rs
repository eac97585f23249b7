//! Fuzz target: see `newsreel_fuzz::app::mount_table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::mount_table(data));
