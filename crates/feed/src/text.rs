//! Articles' texts on their way out: an article that goes to several peers is read from the store once.
//!
//! A text is kept only while another feed may want it, and only the newest ones, up to a limit.  What is gone or damaged is said
//! as gone: no peer waits for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use newsreel_engine::LocalService;
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part, ServiceError};
use newsreel_wire::MessageId;
use parking_lot::Mutex;

use crate::queue::Offered;

/// Texts kept for feeds that want them too, octets: some seconds of a full feed, in which the others come by.
pub const KEPT_OCTETS_MAX: usize = 64 << 20;

/// A text that is kept, or not.
#[derive(Debug, Default)]
pub(crate) struct Slot(tokio::sync::Mutex<Option<Bytes>>);

/// Reads texts.
#[derive(Debug)]
pub(crate) struct Texts {
    service: Arc<LocalService>,
    kept: Mutex<Kept>,
    reads: AtomicU64,
    sent: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    texts: VecDeque<(Weak<Offered>, usize)>,
    octets: usize,
}

impl Texts {
    pub(crate) fn new(service: Arc<LocalService>) -> Self {
        Self {
            service,
            kept: Mutex::default(),
            reads: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    /// Reads from the store, and articles that were sent.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (
            self.reads.load(Ordering::Relaxed),
            self.sent.load(Ordering::Relaxed),
        )
    }

    /// So many articles were sent: not all that is read is wanted.
    pub(crate) fn were_sent(&self, many: usize) {
        self.sent.fetch_add(many as u64, Ordering::Relaxed);
    }

    /// Appends an article as it goes over the wire, terminator and all; `false`: it is gone.
    pub(crate) async fn append(
        &self,
        offered: &Arc<Offered>,
        memory: &mut ArticleBuf,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        // Others who want it now wait until it is read.
        let mut slot = offered.text.0.lock().await;
        if let Some(text) = slot.as_ref() {
            out.extend_from_slice(text);
            return Ok(true);
        }
        let Ok(id) = MessageId::parse(offered.id.as_bytes()) else {
            return Ok(false);
        };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let found = self
            .service
            .article(ArticleQuery::ById(id), Part::Whole, memory)
            .await?;
        if found.is_none() {
            return Ok(false);
        }
        let text = memory.content();
        out.extend_from_slice(text);
        if Arc::strong_count(offered) > 1 {
            *slot = Some(Bytes::copy_from_slice(text));
            let len = text.len();
            drop(slot);
            self.keep(offered, len);
        }
        Ok(true)
    }

    /// Keeps this one, and lets old ones go.
    fn keep(&self, offered: &Arc<Offered>, octets: usize) {
        let mut kept = self.kept.lock();
        kept.octets += octets;
        kept.texts.push_back((Arc::downgrade(offered), octets));
        while kept.octets > KEPT_OCTETS_MAX
            || kept
                .texts
                .front()
                .is_some_and(|(it, _)| it.strong_count() == 0)
        {
            let Some((old, octets)) = kept.texts.pop_front() else {
                return;
            };
            kept.octets -= octets;
            // Who has the lock writes it out at this moment, and it goes with the article.
            if let Some(old) = old.upgrade()
                && let Ok(mut slot) = old.text.0.try_lock()
            {
                *slot = None;
            }
        }
    }
}
