//! The list of groups: where it has to be fetched whole it is told as it comes, to all who want it meanwhile.
//!
//! A list whose end does not come is told to nobody as whole, and is not kept.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::{Arriving, ServiceError};
use tokio::time::Instant;

use super::Inner;
use super::arrivals::Coming;
use super::flights::{Flight, Landed, Wanted};
use crate::remote::{TakeList, Wants};

/// So often is asked again for a list that others gave up.
const TRIES: usize = 3;

/// A list as who fetches it holds it.
struct Arrival<'f, C: Connect> {
    inner: &'f Inner<C>,
    flight: &'f Flight,
    /// What was told of it; none: nothing.
    coming: Option<Arc<Coming>>,
}

impl<C: Connect> Arrival<'_, C> {
    fn begun(&mut self) -> &Arc<Coming> {
        self.coming.get_or_insert_with(|| {
            let coming = Arc::new(Coming::new(Box::default(), 0, Vec::new()));
            self.flight.land(Landed::Coming(Arc::clone(&coming)));
            coming
        })
    }
}

impl<C: Connect> TakeList for Arrival<'_, C> {
    fn lines(&mut self, lines: &[u8]) {
        self.begun().arriving.came(lines);
    }

    fn is_whole(&mut self) {
        let coming = Arc::clone(self.begun());
        let octets = coming.arriving.seen(<[u8]>::len) as u64;
        for (is_hit, uncounted, _) in coming.is_whole(octets) {
            self.inner.counts.list.came(is_hit, uncounted);
        }
        coming.arriving.ended(Ok(()));
    }

    fn has_begun(&self) -> bool {
        self.coming.is_some()
    }
}

impl<C: Connect> Drop for Arrival<'_, C> {
    fn drop(&mut self) {
        if let Some(coming) = &self.coming {
            const CUT: ServiceError = ServiceError::Fault("the list of groups broke off");
            // Of one that is whole this is not the end.
            coming.arriving.ended(Err(CUT));
        }
    }
}

impl<C: Connect> Inner<C> {
    /// The list, or its beginning: what follows is told as it comes.
    pub(super) async fn list(
        self: &Arc<Self>,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        let (begun, had) = (Instant::now(), out.len());
        let mut is_kept = self.there.has_fresh_list(Wants::Active);
        // Where nothing may be told again that was told before, each fetches his own.
        let may_come = !is_kept && self.there.may_share_list();
        if may_come {
            let (coming, is_for_others) = self.coming_list().await?;
            if let Some(coming) = coming {
                let list = &self.counts.list;
                list.answered(is_for_others, 0, begun);
                list.came(is_for_others, coming.joined(is_for_others, 0));
                return Ok(Some(Arc::clone(&coming.arriving)));
            }
            is_kept = is_for_others;
        }
        match may_come {
            true => self.there.last_list(out).await?,
            false => self.there.new_list(out).await?,
        }
        let octets = out.iter().skip(had).map(Bytes::len).sum();
        self.counts.list.answered(is_kept, octets, begun);
        Ok(None)
    }

    /// The list as it comes, and whether others had it fetched; none: it is there.
    async fn coming_list(self: &Arc<Self>) -> Result<(Option<Arc<Coming>>, bool), ServiceError> {
        for _ in 0..TRIES {
            let mut is_for_others = true;
            let landing = self.flights.landing(Wanted::List, |flight| {
                is_for_others = false;
                let inner = Arc::clone(self);
                self.spawn(async move { inner.fetch_list(&flight).await });
            });
            match landing.wait().await {
                // Its beginning is no use to anybody.
                Landed::Coming(coming) if coming.arriving.has_failed() => {}
                Landed::Coming(coming) => {
                    return Ok((Some(Arc::clone(coming)), is_for_others));
                }
                Landed::Told => return Ok((None, is_for_others)),
                Landed::Failed(error) => return Err(error.clone()),
                Landed::Found(_) | Landed::Missing | Landed::Lost => {}
            }
        }
        Err(NO_LIST)
    }

    async fn fetch_list(&self, flight: &Flight) {
        let mut arrival = Arrival {
            inner: self,
            flight,
            coming: None,
        };
        let fetched = self.there.fetch_list(&mut arrival).await;
        drop(arrival);
        flight.land(fetched.map_or_else(Landed::Failed, |()| Landed::Told));
    }
}

/// What stands for an error that nobody told.
const NO_LIST: ServiceError = ServiceError::Fault("the list of groups could not be fetched");
