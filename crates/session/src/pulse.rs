//! Time limits without a timer per command: a slow pulse and counts of beats.
//!
//! The timer beats at a quarter of the smallest limit (at most every 15 s) however many commands come, and each beat
//! looks at what happened since the last one.  A limit is met a quarter late at worst, never early.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::config::SessionConfig;
use crate::end::End;
use crate::memory::Account;

const BEAT_MAX: Duration = Duration::from_secs(15);

/// Limits in beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beats {
    beat: Duration,
    idle: u32,
    command: u32,
    article_stall: u32,
    article: u32,
    write_stall: u32,
}

impl Beats {
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let limits = [
            config.idle_s,
            config.command_s,
            config.article_stall_s,
            config.article_s,
            config.write_stall_s,
        ];
        let least = limits.into_iter().min().unwrap_or(1).max(1);
        let beat = (Duration::from_secs(least) / 4).min(BEAT_MAX);
        let beats = |limit_s: u64| {
            let beats = Duration::from_secs(limit_s)
                .as_nanos()
                .div_ceil(beat.as_nanos());
            // The first beat comes at any time after the start.
            u32::try_from(beats).unwrap_or(u32::MAX).saturating_add(1)
        };
        Self {
            beat,
            idle: beats(config.idle_s),
            command: beats(config.command_s),
            article_stall: beats(config.article_stall_s),
            article: beats(config.article_s),
            write_stall: beats(config.write_stall_s),
        }
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The next command.
    Command,
    /// The rest of a command line.
    Line,
    /// The rest of an article.
    Article,
    /// Answers from the service: as long as it takes.
    Service,
    /// Its own rate lets the rest of an article come.
    Paying,
    /// Room for our replies.
    Writing,
}

#[derive(Debug)]
pub(crate) struct Pulse {
    beats: Beats,
    /// Who is slow may have to make room for others.
    memory: Account,
    /// Made when the connection waits for the first time.
    sleep: Option<Pin<Box<Sleep>>>,
    /// Beats since anything moved, while the other side was waited for.
    quiet: u32,
    /// Beats in which more of the line or article that is being read was waited for.
    partial: u32,
    /// Beats in which the piece that is being sent was.
    sending: u32,
}

impl Pulse {
    pub(crate) const fn new(beats: Beats, memory: Account) -> Self {
        Self {
            beats,
            memory,
            sleep: None,
            quiet: 0,
            partial: 0,
            sending: 0,
        }
    }

    /// So many octets moved; none: answers came.
    pub(crate) fn moved(&mut self, octets: usize) {
        self.quiet = 0;
        self.memory.moved(octets);
    }

    /// A line or an article is complete.
    pub(crate) const fn completed(&mut self) {
        self.partial = 0;
    }

    /// What is sent from here on is another piece.
    pub(crate) const fn sends(&mut self) {
        self.sending = 0;
    }

    /// Ready when what is being sent has to make room for others: in the middle of a reply nothing can be said.
    pub(crate) fn poll_out(&self, cx: &Context<'_>) -> Poll<End> {
        self.memory.poll_out(cx).map(|()| End::WriteStalled)
    }

    /// Ready at a beat: with the limit that has been passed, if any.
    pub(crate) fn poll_beat(
        &mut self,
        cx: &mut Context<'_>,
        waiting: Waiting,
    ) -> Poll<Option<End>> {
        if let Poll::Ready(end) = self.poll_out(cx) {
            match waiting {
                Waiting::Writing => return Poll::Ready(Some(end)),
                Waiting::Service => {}
                _ => return Poll::Ready(Some(End::NoMemory)),
            }
        }
        let beat = self.beats.beat;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(beat)));
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        sleep.as_mut().reset(Instant::now() + beat);
        self.quiet = self.quiet.saturating_add(1);
        match waiting {
            Waiting::Line | Waiting::Article => self.partial = self.partial.saturating_add(1),
            Waiting::Writing => self.sending = self.sending.saturating_add(1),
            // It is we who are slow.
            Waiting::Service | Waiting::Paying => self.quiet = 0,
            Waiting::Command => {}
        }
        Poll::Ready(self.passed(waiting))
    }

    const fn passed(&self, waiting: Waiting) -> Option<End> {
        let beats = &self.beats;
        match waiting {
            Waiting::Command if self.quiet >= beats.idle => Some(End::Idle),
            Waiting::Line if self.partial >= beats.command => Some(End::Slow),
            Waiting::Article
                if self.quiet >= beats.article_stall || self.partial >= beats.article =>
            {
                Some(End::Slow)
            }
            Waiting::Writing
                if self.quiet >= beats.write_stall || self.sending >= beats.article =>
            {
                Some(End::WriteStalled)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::Budget;

    fn account() -> Account {
        Arc::new(Budget::new(1, 1)).account(None)
    }

    #[tokio::test(start_paused = true)]
    async fn limits_are_met_a_quarter_late_at_worst() {
        let config = SessionConfig {
            idle_s: 40,
            command_s: 4,
            article_s: 20,
            ..SessionConfig::default()
        };
        let mut pulse = Pulse::new(Beats::new(&config), account());
        for (waiting, limit_s, end, is_moving) in [
            (Waiting::Command, 40, End::Idle, false),
            (Waiting::Line, 4, End::Slow, false),
            (Waiting::Article, 20, End::Slow, true),
            (Waiting::Writing, 20, End::WriteStalled, true),
        ] {
            pulse.moved(1);
            pulse.completed();
            pulse.sends();
            let begun = Instant::now();
            let passed = loop {
                if is_moving {
                    pulse.moved(1);
                }
                let beat = std::future::poll_fn(|cx| pulse.poll_beat(cx, waiting)).await;
                if let Some(end) = beat {
                    break end;
                }
            };
            assert_eq!(passed, end);
            let took = begun.elapsed().as_secs_f64();
            assert!(
                (f64::from(limit_s)..=f64::from(limit_s) + 2.1).contains(&took),
                "{took}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_service_is_waited_for_nobody_else_is_slow() {
        let config = SessionConfig {
            idle_s: 40,
            command_s: 4,
            ..SessionConfig::default()
        };
        let mut pulse = Pulse::new(Beats::new(&config), account());
        for waiting in [Waiting::Service; 100]
            .iter()
            .chain(&[Waiting::Line, Waiting::Command])
        {
            let beat = std::future::poll_fn(|cx| pulse.poll_beat(cx, *waiting)).await;
            assert_eq!(beat, None);
        }
    }
}
