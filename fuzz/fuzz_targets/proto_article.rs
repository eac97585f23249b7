//! Fuzz target: see `newsreel_fuzz::app::proto_article`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| newsreel_fuzz::app::proto_article(data));
