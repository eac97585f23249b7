//! Bringing the views forward: the one writer, on the engine's applier thread.
//!
//! Articles are collected and published as a batch, so that a batch costs one piece of memory for its texts and no
//! article an allocation of its own.  Applying is publishing: call it after the commit.  Applying a record twice (a replay)
//! changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_wire::{ArticleNumber, GroupId, IdHash, Token, UnixTime};

use crate::error::{Error, Result};
use crate::history::HistoryEntry;
use crate::history::page::Stored;
use crate::narrow::u32_of;
use crate::overview::tail::TailRow;
use crate::overview::withdrawn::Withdrawn;
use crate::views::Views;

/// An article as the views take it from its log record.
#[derive(Debug, Clone, Copy)]
pub struct ArticleRow<'a> {
    /// The keyed hash of its message-id.
    pub hash: IdHash,
    /// Where it is stored.
    pub token: Token,
    /// When it arrived.
    pub arrival: UnixTime,
    /// Kept with the row, not looked at here.
    pub flags: u16,
    /// Its groups and numbers; none in transit mode.
    pub places: &'a [(GroupId, ArticleNumber)],
    /// Its message-id.
    pub id: &'a [u8],
    /// Its overview line behind the number, without CRLF.
    pub text: &'a [u8],
}

/// Texts of a batch beyond which it is split.
const CHUNK_OCTETS: usize = 8 << 20;

/// The writer.  There is one for a [`Views`]; it belongs to the applier thread.
#[derive(Debug)]
pub struct Applier {
    pub(crate) views: Arc<Views>,
    texts: Vec<u8>,
    rows: Vec<(GroupId, TailRow)>,
    entries: Vec<Stored>,
}

impl Applier {
    /// The writer for these views.
    #[must_use]
    pub const fn new(views: Arc<Views>) -> Self {
        Self {
            views,
            texts: Vec::new(),
            rows: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The views it writes.
    #[must_use]
    pub const fn views(&self) -> &Arc<Views> {
        &self.views
    }

    /// Adds an article to the open batch; readers see it when the batch is published.
    ///
    /// # Errors
    /// As [`Applier::publish`], which is called when a batch has grown very large.
    pub fn article(&mut self, article: &ArticleRow<'_>) -> Result<()> {
        if self.texts.len() + article.id.len() + article.text.len() > CHUNK_OCTETS {
            self.publish()?;
        }
        let entry = HistoryEntry {
            token: Some(article.token),
            arrival: article.arrival,
        };
        self.entries.push(Stored::new(article.hash, &entry));
        if article.places.is_empty() {
            return Ok(());
        }
        let row = TailRow {
            number: 0,
            token: article.token,
            arrival: u32::try_from(article.arrival.0).unwrap_or(u32::MAX),
            chunk: 0,
            at: u32_of(self.texts.len()),
            text_len: u32_of(article.text.len()),
            id_len: u16::try_from(article.id.len()).unwrap_or(0),
            flags: article.flags,
        };
        let id = &article.id[..usize::from(row.id_len)];
        self.texts.extend_from_slice(id);
        self.texts.extend_from_slice(article.text);
        for (group, number) in article.places {
            let row = TailRow {
                number: number.0,
                ..row
            };
            self.rows.push((*group, row));
        }
        Ok(())
    }

    /// Shows the open batch to the readers.
    ///
    /// # Errors
    /// [`Error::TailFull`] when no checkpoint was written for very long; the batch is kept then.
    pub fn publish(&mut self) -> Result<()> {
        if !self.rows.is_empty() {
            let tail = self.views.overview.layers.active();
            let chunk = tail.next_chunk();
            if !tail.add_chunk(&self.texts) {
                return Err(Error::TailFull);
            }
            for (group, row) in &self.rows {
                // The mark rises first, so that a count never exceeds it.
                if self.views.groups.filed(*group, ArticleNumber(row.number)) {
                    tail.append(*group, TailRow { chunk, ..*row });
                }
            }
            tail.count_rows(self.rows.len() as u64);
            self.rows.clear();
        }
        self.texts.clear();
        if !self.entries.is_empty() {
            let history = self.views.history.layers.active();
            self.entries.iter().for_each(|entry| history.insert(*entry));
            self.entries.clear();
        }
        Ok(())
    }

    /// An id that the history does not have is known from now on.
    ///
    /// # Errors
    /// As [`Applier::publish`]: what was added before comes first.
    pub fn remember(&mut self, hash: IdHash, entry: &HistoryEntry) -> Result<()> {
        self.publish()?;
        self.views.history.insert(Stored::new(hash, entry));
        Ok(())
    }

    /// An article lies elsewhere from now on; a withdrawn one stays withdrawn.
    ///
    /// # Errors
    /// As [`Applier::publish`]: what was added before comes first.
    pub fn moved(
        &mut self,
        hash: IdHash,
        token: &Token,
        arrival: UnixTime,
        is_withdrawn: bool,
    ) -> Result<()> {
        self.publish()?;
        let entry = HistoryEntry {
            token: Some(*token),
            arrival,
        };
        self.views.history.insert(Stored {
            is_withdrawn,
            ..Stored::new(hash, &entry)
        });
        Ok(())
    }

    /// An article is not offered any more, though its buffer still has it: it was cancelled, superseded or found
    /// damaged.  Its id stays known.
    ///
    /// # Errors
    /// As [`Applier::publish`]: what was added before comes first.
    pub fn withdraw(
        &mut self,
        hash: IdHash,
        token: &Token,
        arrival: UnixTime,
        places: &[(GroupId, ArticleNumber)],
    ) -> Result<()> {
        self.publish()?;
        let entry = HistoryEntry {
            token: Some(*token),
            arrival,
        };
        self.views.history.insert(Stored {
            is_withdrawn: true,
            ..Stored::new(hash, &entry)
        });
        self.leave(token, places)
    }

    /// An article is not offered in these places any more, whatever else holds of it.
    ///
    /// # Errors
    /// As [`Applier::publish`]: what was added before comes first.
    pub fn leave(&mut self, token: &Token, places: &[(GroupId, ArticleNumber)]) -> Result<()> {
        self.publish()?;
        for (group, number) in places {
            let withdrawn = Withdrawn::new(*group, *number, token);
            self.views.overview.withdrawn().add(withdrawn);
            self.views.withdrawn.lock().push(withdrawn);
        }
        self.views.withdrawals.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}
