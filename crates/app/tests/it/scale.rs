//! How much a test does, and to which binary: a little to the one the tests were built with in the daily run, all of it
//! to the release binary in CI (`NEWSREEL_TEST_SCALE=full`).

use std::path::PathBuf;

/// Whether everything is to be done.
pub(crate) fn is_full() -> bool {
    std::env::var_os("NEWSREEL_TEST_SCALE").is_some_and(|scale| scale == "full")
}

/// The one or the other.
pub(crate) fn scaled<T>(little: T, full: T) -> T {
    if is_full() { full } else { little }
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_newsreel"));
    if !is_full() {
        return built;
    }
    let release = built.parent().unwrap().with_file_name("release");
    let release = release.join("newsreel");
    let how = "it is made by: cargo build --locked --release --package newsreel-app";
    assert!(release.exists(), "no {}; {how}", release.display());
    release
}
