//! Which time to go by: the calendar, as long as it goes on as the monotone clock does.
//!
//! A calendar that jumped by more than a day may be right now or may have been right before; nobody here can tell.
//! Until somebody does, nothing is judged by age and nothing is forgotten.  Looking costs no lock and no system call
//! beyond asking the clocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use newsreel_host::Clock;
use newsreel_wire::UnixTime;

/// The calendar may differ by so much from what was expected, seconds.
pub const JUMP_S_MAX: i64 = 86_400;

/// Compares the calendar with the monotone clock.
#[derive(Debug)]
pub(crate) struct Timekeeper {
    clock: Arc<dyn Clock>,
    /// By how much the calendar that is trusted is ahead of the monotone clock, seconds.
    offset_s: AtomicI64,
}

impl Timekeeper {
    /// Goes on from the last time that the log tells of; a log that tells of none takes the calendar as it is.
    pub(crate) fn new(clock: Arc<dyn Clock>, last: Option<UnixTime>) -> Self {
        let keeper = Self {
            clock,
            offset_s: AtomicI64::new(0),
        };
        let calendar = keeper.calendar().0;
        let last = last.map_or(calendar, |last| last.0);
        let offset = seconds(last).saturating_sub(keeper.monotonic());
        keeper.offset_s.store(offset, Ordering::Relaxed);
        keeper
    }

    /// What the calendar says, right or wrong.
    pub(crate) fn calendar(&self) -> UnixTime {
        UnixTime(self.clock.now().secs)
    }

    /// The time to judge by; `None` while nobody knows what the time is.
    pub(crate) fn judging(&self) -> Option<UnixTime> {
        self.jump_s().is_none().then(|| self.calendar())
    }

    /// By how much the calendar jumped, if it did and nobody said yet that it is right.
    pub(crate) fn jump_s(&self) -> Option<i64> {
        let jump = self.offset_now() - self.offset_s.load(Ordering::Relaxed);
        (jump.abs() > JUMP_S_MAX).then_some(jump)
    }

    /// The calendar is right as it is.
    pub(crate) fn trust(&self) {
        self.offset_s.store(self.offset_now(), Ordering::Relaxed);
    }

    fn monotonic(&self) -> i64 {
        seconds(self.clock.monotonic().as_secs())
    }

    fn offset_now(&self) -> i64 {
        seconds(self.calendar().0).saturating_sub(self.monotonic())
    }
}

fn seconds(n: u64) -> i64 {
    // A quarter of the range, so that differences cannot overflow.
    i64::try_from(n).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// A jump in words, with what to do.
pub(crate) fn describe(jump_s: i64) -> String {
    let (hours, direction) = (
        jump_s.unsigned_abs() / 3600,
        if jump_s > 0 { "ahead" } else { "back" },
    );
    format!(
        "the clock jumped {hours} hours {direction}: nothing is refused for its age and no id is forgotten until it is \
         set right, or confirmed with `newsreel clock confirm`"
    )
}

/// The same of a start: by how much the calendar is off from the last run, which nobody here can tell from a pause of that length.
pub(crate) fn describe_start(jump_s: i64) -> String {
    let hours = jump_s.unsigned_abs() / 3600;
    let what = match jump_s > 0 {
        true => format!(
            "the clock is {hours} hours ahead of the last run, which is right where the server was off for so long: if it is right,"
        ),
        false => format!(
            "the clock is {hours} hours behind the last run, so it is wrong now, or was then: set it right if it is wrong now; if it is right,"
        ),
    };
    format!(
        "{what} say so with `newsreel clock confirm`; until then nothing is refused for its age and no id is forgotten"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use newsreel_host::{FakeClock, WallTime};

    use super::*;

    #[test]
    fn small_steps_are_followed_and_large_ones_are_not() {
        let clock = Arc::new(FakeClock::new(1_000_000));
        let keeper = Timekeeper::new(Arc::clone(&clock) as Arc<dyn Clock>, None);
        clock.advance(Duration::from_secs(500_000));
        assert_eq!(keeper.judging(), Some(UnixTime(1_500_000)), "time passes");
        let set = |secs| clock.set(WallTime { secs, nanos: 0 });
        set(1_500_000 + 86_400);
        assert_eq!(keeper.jump_s(), None);
        set(1_500_000 + 86_401);
        assert_eq!((keeper.jump_s(), keeper.judging()), (Some(86_401), None));
        set(1_400_000);
        assert_eq!(keeper.jump_s(), Some(-100_000));
        keeper.trust();
        assert_eq!(keeper.judging(), Some(UnixTime(1_400_000)));
        set(u64::MAX);
        assert!(keeper.jump_s().is_some());
        let last = Some(UnixTime(1_000_000));
        let later = Timekeeper::new(clock, last);
        assert!(later.jump_s().is_some(), "it jumped while nobody looked");
    }

    /// A clock behind the last run was told to be right where the server had been off for so long.
    #[test]
    fn a_clock_behind_the_last_run_has_words_of_its_own() {
        let (ahead, behind) = (describe_start(200_000), describe_start(-200_000));
        assert!(ahead.contains("55 hours ahead of") && ahead.contains("was off for so long"));
        assert!(
            behind.contains("55 hours behind") && !behind.contains("was off"),
            "{behind}"
        );
    }
}
