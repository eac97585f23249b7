//! How fast is fetched what nobody asks for.

use std::time::Duration;

use tokio::time::Instant;

/// So many octets a second, about.
pub(super) struct Rate {
    octets_per_s: u64,
    /// From when on more may be fetched.
    free_at: Instant,
}

impl Rate {
    /// 0 octets a second: as fast as it goes.
    pub(super) fn new(octets_per_s: u64) -> Self {
        Self {
            octets_per_s,
            free_at: Instant::now(),
        }
    }

    /// Waits as long as these octets take.  Time in which nothing was fetched is not made up for.
    pub(super) async fn pause(&mut self, octets: u64) {
        if let Some(us) = octets
            .saturating_mul(1_000_000)
            .checked_div(self.octets_per_s)
        {
            self.free_at = self.free_at.max(Instant::now()) + Duration::from_micros(us);
            tokio::time::sleep_until(self.free_at).await;
        }
    }
}
