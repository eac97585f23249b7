//! Time, passed in: wall time for what articles carry, monotonic time for waits and rates.
//!
//! Wall time may step either way; nothing may order by it.  Monotonic time never goes back.

mod fake;
mod real;

use std::fmt::Debug;
use std::time::Duration;

pub use fake::FakeClock;
pub use real::RealClock;

/// Time since 1970-01-01 00:00:00 UTC, leap seconds not counted; times before it are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime {
    /// Whole seconds.
    pub secs: u64,
    /// Nanoseconds of the started second.
    pub nanos: u32,
}

/// Where time comes from.
pub trait Clock: Send + Sync + Debug {
    /// What the calendar says.  May step.
    fn now(&self) -> WallTime;

    /// Time since some fixed moment of this clock.  Never goes back.
    fn monotonic(&self) -> Duration;
}
