//! A progress bar on a terminal, nothing elsewhere.
//!
//! Invariant: drawing happens on standard error, and only when it is a terminal, so that results on
//! standard output stay clean. Must not be on a measured thread.

use std::fmt;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `total` operations, or a counter where the end is not known.
    pub(crate) fn new(shown: bool, what: &str, total: Option<u64>) -> Self {
        if !shown {
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        // indicatif draws nothing when standard error is not a terminal.
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template = if total.is_some() {
            "{msg} {bar:40} {human_pos}/{human_len} ({rate}/s) {eta}"
        } else {
            "{msg} {spinner} {human_pos} ({rate}/s) {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
            };
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_message(what.to_owned());
        Self { bar }
    }

    pub(crate) fn at(&self, done: u64) {
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
