//! Brings the views up to the log: the one place that turns records into views.
//!
//! The same code serves a live commit and a replay, so that a restart leads to the same views.
//! It reads no clock and no random number; everything comes from the records.

use std::sync::Arc;

use newsreel_index::{HistoryEntry, Views};
use newsreel_journal::FrameBuilder;
use newsreel_wire::Sequence;

use crate::error::Error;
use crate::record::{ArticleRecord, GroupRecord, GroupRemovedRecord, kind};

/// Applies records to the views, in the order of the log, from one thread.
#[derive(Debug)]
pub(crate) struct Applier {
    views: Arc<Views>,
}

impl Applier {
    /// An applier for these views.
    pub(crate) fn new(views: Arc<Views>) -> Self {
        Self { views }
    }

    /// Applies all records of a frame.
    pub(crate) fn frame(&mut self, frame: &FrameBuilder) -> Result<(), Error> {
        for (sequence, kind, payload) in frame.records() {
            self.record(sequence, kind, payload)?;
        }
        Ok(())
    }

    /// Applies one record.  Records that concern no view are passed over.
    pub(crate) fn record(
        &mut self,
        sequence: Sequence,
        kind: u8,
        payload: &[u8],
    ) -> Result<(), Error> {
        match kind {
            kind::ARTICLE => self.article(sequence, payload),
            kind::GROUP_MADE => {
                let group = GroupRecord::decode(sequence, kind, payload)?;
                self.views.groups().make(&group.into());
                Ok(())
            }
            kind::GROUP_CHANGED => {
                let group = GroupRecord::decode(sequence, kind, payload)?;
                self.views.groups().change(&group.into());
                Ok(())
            }
            kind::GROUP_REMOVED => {
                let removed = GroupRemovedRecord::decode(sequence, payload)?;
                self.views.groups().remove(removed.id, removed.time);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn article(&mut self, sequence: Sequence, payload: &[u8]) -> Result<(), Error> {
        let article = ArticleRecord::decode(sequence, payload)?;
        if !article.groups.is_empty() {
            self.views.overview().append(
                &article.groups,
                &article.token,
                article.arrival,
                article.id,
                article.line,
            );
            self.views.groups().filed(&article.groups, article.arrival);
        }
        let entry = HistoryEntry { token: Some(article.token), arrival: article.arrival };
        self.views.history().insert(&article.id_hash, entry);
        Ok(())
    }
}
