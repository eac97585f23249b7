//! Brings the views up to the log: the one place that turns records into views.
//!
//! The same code serves a live commit and a replay, so that a restart leads to the same views.
//! It reads no clock and no random number; everything comes from the records.

use std::sync::Arc;

use newsreel_index::{self as index, ArticleRow, Frozen, GroupChange, GroupRow, Views};
use newsreel_journal::Record;
use newsreel_wire::{ArticleNumber, Sequence, UnixTime};

use crate::error::Error;
use crate::expire::expires;
use crate::record::{
    ArticleRecord, GroupRecord, GroupRemovedRecord, LeftRecord, MovedRecord, RepackedRecord,
    WithdrawnRecord, decode_expires, decode_jump, decode_time, kind,
};

/// Applies records to the views, in the order of the log, from one thread.
#[derive(Debug)]
pub(crate) struct Applier {
    inner: index::Applier,
    /// What the last record said of the next one.
    expires: Option<UnixTime>,
}

impl Applier {
    /// An applier for these views.
    pub(crate) fn new(views: Arc<Views>) -> Self {
        Self {
            inner: index::Applier::new(views),
            expires: None,
        }
    }

    pub(crate) fn views(&self) -> Arc<Views> {
        Arc::clone(self.inner.views())
    }

    /// Applies records and shows them to the readers.
    pub(crate) fn records<'a>(
        &mut self,
        records: impl Iterator<Item = Record<'a>>,
    ) -> Result<(), Error> {
        for record in records {
            self.record(&record)?;
        }
        Ok(self.inner.publish()?)
    }

    /// Sets everything up to here aside for a checkpoint.
    pub(crate) fn freeze(&mut self, upto: Sequence) -> Result<Frozen, Error> {
        Ok(self.inner.freeze(upto)?)
    }

    /// Applies one record.  Records that concern no view are passed over.
    fn record(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let Record {
            sequence,
            kind,
            payload,
        } = *record;
        let expires = self.expires.take();
        match kind {
            kind::EXPIRES => self.expires = Some(decode_expires(sequence, payload)?),
            kind::ARTICLE => {
                let article = ArticleRecord::decode(sequence, payload)?;
                self.inner.article(&ArticleRow {
                    hash: article.id_hash,
                    token: article.token,
                    arrival: article.arrival,
                    flags: expires.map_or(0, |at| expires::flags(article.arrival, at)),
                    places: &article.groups,
                    id: article.id,
                    text: article.line,
                })?;
            }
            kind::GROUP_MADE | kind::GROUP_CHANGED => {
                let group = GroupRecord::decode(sequence, kind, payload)?;
                self.group(kind, &group)?;
            }
            kind::GROUP_REMOVED => {
                let removed = GroupRemovedRecord::decode(sequence, payload)?;
                self.inner.publish()?;
                self.inner.views().groups().remove(removed.id, removed.time);
            }
            kind::WITHDRAWN => {
                let it = WithdrawnRecord::decode(sequence, payload)?;
                let (hash, arrival) = (it.id_hash, it.remembered_from);
                self.inner.withdraw(hash, &it.token, arrival, &it.groups)?;
            }
            kind::LEFT => {
                let left = LeftRecord::decode(sequence, payload)?;
                self.inner.leave(&left.token, &left.groups)?;
            }
            kind::MOVED => {
                let it = MovedRecord::decode(sequence, payload)?;
                self.inner
                    .moved(it.id_hash, &it.token, it.arrival, it.is_withdrawn)?;
            }
            kind::REPACKED => {
                let RepackedRecord { old, new } = RepackedRecord::decode(sequence, payload)?;
                self.inner.repacked(old, new.as_ref())?;
            }
            kind::TIME => self
                .inner
                .views()
                .reset_time(decode_time(sequence, payload)?),
            kind::JUMPED => {
                let by = decode_jump(sequence, payload)?;
                self.inner.publish()?;
                let groups = self.inner.views().groups();
                for id in groups.sorted().iter() {
                    groups.raise_high(*id, ArticleNumber(groups.high(*id).0.saturating_add(by)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn group(&mut self, kind: u8, group: &GroupRecord<'_>) -> Result<(), Error> {
        self.inner.publish()?;
        let groups = self.inner.views().groups();
        if kind == kind::GROUP_MADE {
            groups.make(&GroupRow {
                id: group.id,
                name: group.name,
                status: group.status,
                created: group.time,
                creator: group.creator,
                description: group.description,
                high: group.high,
            })?;
        } else {
            groups.change(&GroupChange {
                id: group.id,
                status: group.status,
                description: group.description,
                time: group.time,
                high: group.high,
            });
        }
        Ok(())
    }
}
