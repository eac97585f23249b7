//! How much a test does: a little in the daily run, all of it in CI (`NEWSREEL_TEST_SCALE=full`).

/// Whether everything is to be done.
pub(crate) fn is_full() -> bool {
    std::env::var_os("NEWSREEL_TEST_SCALE").is_some_and(|scale| scale == "full")
}

/// The one or the other.
pub(crate) fn scaled<T>(little: T, full: T) -> T {
    if is_full() { full } else { little }
}
