//! How fast something may go: a second's worth at once, then only so much a second.
//!
//! A connection has a pace of its own, and shares others: with all connections of its address, with all of its user, and with all whom
//! the same entry is for.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// What may be run up before it must be waited for.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Paces that a connection shares with others.
pub(super) const SHARED: usize = 3;

/// One pace of one thing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    per_s: u64,
    /// When what has been spent will have been paid for.
    paid_at: Option<Instant>,
}

impl Bucket {
    pub(crate) const fn new(per_s: u64) -> Self {
        Self {
            per_s,
            paid_at: None,
        }
    }

    /// Takes one, if no more than `at_once` are unpaid for with it; at this pace from now on.
    pub(crate) fn take(&mut self, per_s: u64, at_once: u64, now: Instant) -> bool {
        self.per_s = per_s;
        if per_s == 0 {
            return true;
        }
        let before = *self;
        let unpaid_max = Duration::from_secs_f64(at_once as f64 / per_s as f64);
        self.spend(1, now);
        let is_within = self
            .paid_at
            .is_none_or(|paid_at| paid_at - now <= unpaid_max);
        if !is_within {
            *self = before;
        }
        is_within
    }

    /// Whether what has been spent is paid for.
    pub(crate) fn is_paid(&self, now: Instant) -> bool {
        self.paid_at.is_none_or(|paid_at| paid_at <= now)
    }

    /// So many were spent now; how long to wait before anything more is.
    pub(crate) fn spend(&mut self, count: u64, now: Instant) -> Duration {
        if self.per_s == 0 {
            return Duration::ZERO;
        }
        let from = self.paid_at.map_or(now, |paid_at| paid_at.max(now));
        // A day is more than anything that is sent at once costs; a clock has room for it.
        const LONGEST: Duration = Duration::from_secs(86_400);
        let cost = Duration::try_from_secs_f64(count as f64 / self.per_s as f64);
        let paid_at = from + cost.unwrap_or(LONGEST).min(LONGEST);
        self.paid_at = Some(paid_at);
        (paid_at - now).saturating_sub(AT_ONCE)
    }
}

/// A pace that several connections share; none: any number.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedPace(Option<Arc<Mutex<Bucket>>>);

impl SharedPace {
    /// So many a second; 0: any number.
    pub(super) fn new(per_s: u64) -> Self {
        Self((per_s > 0).then(|| Arc::new(Mutex::new(Bucket::new(per_s)))))
    }

    /// Any number a second.
    pub(super) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// As many a second from now on for who comes; others keep what they had.
    pub(super) fn becomes(&mut self, per_s: u64) {
        let before = self.0.as_ref().map_or(0, |bucket| bucket.lock().per_s);
        if before != per_s {
            *self = Self::new(per_s);
        }
    }

    /// Whether what has been spent is paid for, so that a new one would be the same.
    pub(super) fn is_paid(&self, now: Instant) -> bool {
        let bucket = self.0.as_ref();
        bucket.is_none_or(|bucket| bucket.lock().is_paid(now))
    }
}

/// One connection's pace of one thing.
#[derive(Debug, Clone)]
pub struct Pace {
    own: Bucket,
    /// None: it shares none, as most.
    shared: Option<Box<[SharedPace; SHARED]>>,
}

impl Pace {
    /// So many a second; 0: any number.
    #[must_use]
    pub fn new(per_s: u64) -> Self {
        Self {
            own: Bucket::new(per_s),
            shared: None,
        }
    }

    /// The same, and no faster than these let it together with others.
    pub(super) fn shared(self, shared: [SharedPace; SHARED]) -> Self {
        let is_any = shared.iter().any(|shared| shared.0.is_some());
        Self {
            shared: is_any.then(|| Box::new(shared)),
            ..self
        }
    }

    fn buckets(&self) -> impl Iterator<Item = &Mutex<Bucket>> {
        let shared = self.shared.iter().flat_map(|shared| shared.iter());
        shared.filter_map(|shared| shared.0.as_deref())
    }

    /// The most that is spent at once; none: any number.
    #[must_use]
    pub fn at_once_max(&self) -> Option<usize> {
        let shared = self.buckets().map(|bucket| bucket.lock().per_s);
        let all = std::iter::once(self.own.per_s).chain(shared);
        let least = all.filter(|per_s| *per_s > 0).min()?;
        Some(usize::try_from(least).unwrap_or(usize::MAX))
    }

    /// So many were spent now; how long to wait before anything more is.
    pub fn spend(&mut self, count: u64) -> Duration {
        if self.own.per_s == 0 && self.shared.is_none() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let shared = self.buckets();
        let longest = shared.map(|bucket| bucket.lock().spend(count, now)).max();
        self.own.spend(count, now).max(longest.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_at_once_then_only_so_much() {
        let mut pace = Pace::new(100);
        assert_eq!(pace.spend(100), Duration::ZERO);
        assert_eq!(pace.spend(50), Duration::from_millis(500));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(pace.spend(100), Duration::ZERO);
        // What was not used is not saved up.
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(pace.spend(100), Duration::ZERO);
        assert_eq!(pace.spend(100), Duration::from_secs(1));
        assert_eq!(pace.spend(u64::MAX), Duration::from_secs(86_400 + 1));
        assert_eq!(pace.at_once_max(), Some(100));
        assert_eq!(Pace::new(0).at_once_max(), None);
        assert_eq!(Pace::new(0).spend(u64::MAX), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_at_once_then_only_so_much() {
        let (mut bucket, begun) = (Bucket::new(10), Instant::now());
        let taken = |bucket: &mut Bucket, now| {
            let per_s = bucket.per_s;
            (0..100).filter(|_| bucket.take(per_s, 30, now)).count()
        };
        assert_eq!(taken(&mut bucket, begun), 30);
        // Who is refused owes no more for it.
        assert_eq!(taken(&mut bucket, begun + Duration::from_secs(1)), 10);
        assert!(!bucket.is_paid(begun + Duration::from_secs(3)));
        assert!(bucket.is_paid(begun + Duration::from_secs(4)));
        assert_eq!(taken(&mut Bucket::new(0), begun), 100);
    }

    /// Two who share a pace have it together, and each has their own besides.
    #[tokio::test(start_paused = true)]
    async fn what_is_shared_is_spent_by_all() {
        let shared = SharedPace::new(100);
        let pace = |own| {
            Pace::new(own).shared([SharedPace::default(), shared.clone(), SharedPace::default()])
        };
        let (mut one, mut other) = (pace(0), pace(50));
        assert_eq!(
            (one.at_once_max(), other.at_once_max()),
            (Some(100), Some(50))
        );
        assert_eq!(one.spend(100), Duration::ZERO);
        assert_eq!(other.spend(50), Duration::from_millis(500));
        assert!(!shared.is_paid(Instant::now()));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert!(shared.is_paid(Instant::now()));
        assert_eq!(one.spend(50), Duration::ZERO);
        assert_eq!(
            other.spend(100),
            Duration::from_secs(1),
            "its own is slower"
        );
    }
}
