//! Rebuilding a damaged run from what the store still has.
//!
//! The engine gives the articles of the run's sequences, in their order; what can still be read of a damaged history
//! bucket is added (ids that are not in the store any more), and the new runs take the old one's place in the manifest.
//! Readers see all of it at once.  What was moved lies in the store under later sequences than those of its pack: which rows were
//! in a pack follows from their numbers (`gaps`), and rows that come out of order are put in order.

use std::collections::HashSet;
use std::sync::Arc;

use newsreel_wire::{ArticleNumber, GroupId, IdHash, Sequence, UnixTime};

use crate::apply::ArticleRow;
use crate::error::{Error, Result};
use crate::history::HistoryEntry;
use crate::history::bucket::{Bucket, salvage};
use crate::history::memory::MemoryPart;
use crate::history::page::{PAGE_OCTETS, Stored};
use crate::history::write::BucketWriter;
use crate::layers::{Layers, Run, Turn};
use crate::narrow::u32_of;
use crate::overview::interleave::{Interleave, overlap};
use crate::overview::pack::Pack;
use crate::overview::tail::{TailPart, TailRow};
use crate::overview::write::write_tails;
use crate::sealed::ends::HEADER_OCTETS;
use crate::sealed::reader::open_raw;
use crate::sealed::set::{DamagedRun, Slot};
use crate::sealed::window::read_piece;
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// A rebuild under way; dropped unfinished, it leaves everything as it was.
#[derive(Debug)]
pub struct Rebuild {
    views: Arc<Views>,
    damaged: DamagedRun,
    history: MemoryPart,
    overview: TailPart,
    buckets: Vec<Slot<Bucket>>,
    packs: Vec<Slot<Pack>>,
    new: Vec<RunMeta>,
    /// Parts of a pack that lie between each other, being put in order.
    interleave: Option<Interleave>,
    /// Withdrawn articles that have rows again; `None`: those that the store does not have any more, too.
    withdrawn: Option<HashSet<(GroupId, u64)>>,
}

impl Views {
    /// Begins to rebuild one of the [damaged](Views::damaged) runs; not one of group rows, which a checkpoint tells again.
    ///
    /// # Errors
    /// [`Error::NotDamaged`] when it is none of them; otherwise when the disk fails.
    pub fn rebuild(self: &Arc<Self>, run: u64) -> Result<Rebuild> {
        let mut damaged = self.damages.list().into_iter();
        // Of groups memory has everything, or nobody.
        let damaged = damaged.find(|one| one.run == run && one.kind != RunKind::Groups);
        let Some(damaged) = damaged else {
            return Err(Error::NotDamaged { run });
        };
        let mut rebuild = Rebuild {
            views: Arc::clone(self),
            damaged,
            history: MemoryPart::default(),
            overview: TailPart::default(),
            buckets: Vec::new(),
            packs: Vec::new(),
            new: Vec::new(),
            interleave: None,
            withdrawn: Some(HashSet::new()),
        };
        if rebuild.damaged.kind == RunKind::History {
            rebuild.salvage()?;
        }
        Ok(rebuild)
    }
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        self.views.catalog.discard(&self.new);
    }
}

impl Rebuild {
    /// What is being rebuilt, with the sequences whose articles are wanted.
    #[must_use]
    pub const fn damaged(&self) -> &DamagedRun {
        &self.damaged
    }

    /// The first and the last log sequence under which its articles lie in the store; `None`: there is no last one, because what
    /// was moved lies under later ones than what it is in a pack with.
    #[must_use]
    pub fn sequences(&self) -> (Sequence, Option<Sequence>) {
        let (first, last) = self.range();
        let is_pack = self.damaged.kind == RunKind::Overview;
        (first, Some(last).filter(|_| !is_pack))
    }

    /// Whether an article may be of what is being rebuilt, by one of its places.
    #[must_use]
    pub fn wants(&self, places: &[(GroupId, ArticleNumber)]) -> bool {
        let belongs = |(group, number): &(GroupId, ArticleNumber)| self.belongs(*group, *number);
        self.damaged.kind != RunKind::Overview || places.iter().any(belongs)
    }

    fn belongs(&self, group: GroupId, number: ArticleNumber) -> bool {
        let overview = &self.views.overview;
        overview.belongs(self.damaged.run, group, number.0)
    }

    /// Adds an article that the store has; in the order of the sequences.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn article(&mut self, article: &ArticleRow<'_>) -> Result<()> {
        match self.damaged.kind {
            RunKind::History => {
                let entry = HistoryEntry {
                    token: Some(article.token),
                    arrival: article.arrival,
                };
                self.history.insert(Stored {
                    is_withdrawn: self.is_withdrawn(article),
                    ..Stored::new(article.hash, &entry)
                });
            }
            RunKind::Overview => self.row(article)?,
            RunKind::Groups => {}
        }
        let config = &self.views.config;
        if self.history.rows() >= config.history_rows_max
            || self.overview.octets() >= config.tail_bytes_max
        {
            self.seal()?;
        }
        Ok(())
    }

    /// Whether this article was withdrawn: the old bucket may still tell, and the overview knows by its numbers.
    fn is_withdrawn(&self, article: &ArticleRow<'_>) -> bool {
        let salvaged = self.history.get(&article.hash);
        let by_number = |(group, number): &(GroupId, ArticleNumber)| {
            let of_group = self.views.overview.withdrawn().of(*group);
            of_group.is_some_and(|of_group| of_group.has(number.0))
        };
        salvaged.is_some_and(|stored| stored.is_withdrawn) || article.places.iter().any(by_number)
    }

    fn row(&mut self, article: &ArticleRow<'_>) -> Result<()> {
        let mut places: Vec<(GroupId, ArticleNumber)> = article.places.to_vec();
        places.retain(|(group, number)| self.belongs(*group, *number));
        let withdrawn = self.views.overview.withdrawn();
        places.retain(|(group, number)| {
            let of_group = withdrawn.of(*group);
            let Some(of_group) = of_group.filter(|it| it.has(number.0)) else {
                return true;
            };
            // Of one that lies in two places, only one has the row.
            let is_it = !of_group.has_elsewhere(number.0, &article.token);
            if let Some(found) = self.withdrawn.as_mut().filter(|_| is_it) {
                found.insert((*group, number.0));
            }
            is_it
        });
        match places.is_empty() {
            true => Ok(()),
            false => self.put(article, &places),
        }
    }

    fn put(&self, article: &ArticleRow<'_>, places: &[(GroupId, ArticleNumber)]) -> Result<()> {
        let chunk = self.overview.next_chunk();
        // As when it was applied: what is too long for an id is none.
        let id_len = u16::try_from(article.id.len()).unwrap_or(0);
        let id = &article.id[..id_len.into()];
        if !self.overview.add_chunk(&[id, article.text].concat()) {
            return Err(Error::TailFull);
        }
        for (group, number) in places {
            let row = TailRow {
                number: number.0,
                token: article.token,
                arrival: u32::try_from(article.arrival.0).unwrap_or(u32::MAX),
                chunk,
                at: 0,
                text_len: u32_of(article.text.len()),
                id_len,
                flags: article.flags,
            };
            self.overview.put(*group, row);
        }
        self.overview.count_rows(places.len() as u64);
        Ok(())
    }

    /// What was withdrawn counts as a row that is not offered, also where the store does not have it any more.
    fn rows_of_withdrawn(&mut self) -> Result<()> {
        let is_pack = self.damaged.kind == RunKind::Overview;
        let Some(found) = self.withdrawn.take().filter(|_| is_pack) else {
            return Ok(());
        };
        for one in self.views.overview.withdrawn().all() {
            let place = (one.group, ArticleNumber(one.number));
            if found.contains(&(one.group, one.number)) || !self.belongs(place.0, place.1) {
                continue;
            }
            let row = ArticleRow {
                hash: IdHash([0; 16]),
                token: one.token(),
                arrival: UnixTime(0),
                flags: 0,
                places: &[place],
                id: b"",
                text: b"",
            };
            self.put(&row, &[place])?;
        }
        Ok(())
    }

    /// Adds what can still be read of the damaged bucket.
    fn salvage(&mut self) -> Result<()> {
        let place = self.views.catalog.place();
        let (kind, run) = (self.damaged.kind, self.damaged.run);
        let files = open_raw(place.disk.as_ref(), &place.dir, (kind, run));
        let ends = files.iter().map(|file| file.len().unwrap_or(0));
        let end = ends.max().unwrap_or(0);
        let mut offset = HEADER_OCTETS as u64;
        let mut entries = Vec::new();
        while offset + PAGE_OCTETS as u64 <= end {
            for file in &files {
                if entries.is_empty()
                    && let Some(octets) = read_piece(file, offset, PAGE_OCTETS)
                {
                    salvage(&octets, run, offset, &mut entries);
                }
            }
            entries
                .drain(..)
                .for_each(|entry| self.history.insert(entry));
            if self.history.rows() >= self.views.config.history_rows_max {
                self.seal()?;
            }
            offset += PAGE_OCTETS as u64;
        }
        Ok(())
    }

    /// Makes a run of what is in memory.
    fn seal(&mut self) -> Result<()> {
        let views = &self.views;
        let (place, range) = (views.catalog.place(), self.range());
        if self.history.rows() > 0 {
            let id = views.catalog.new_run();
            let mut writer = BucketWriter::create(place, id, range, self.history.rows())?;
            self.history.sorted(|stored| writer.push(stored))?;
            let meta = writer.finish()?;
            self.new.push(meta);
            self.buckets.push(views.history.layers.open_new(&meta)?);
            self.history = MemoryPart::default();
        }
        if self.overview.rows() > 0 {
            let id = views.catalog.new_run();
            let mut floors = views.overview.floors();
            let meta = write_tails(place, id, range, &views.config, &self.overview, &mut floors)?;
            if let Some(meta) = meta {
                self.new.push(meta);
                self.packs.push(views.overview.layers.open_new(&meta)?);
            }
            self.overview = TailPart::default();
        }
        Ok(())
    }

    /// Goes on with making files of what was added, a bounded piece of it.  `true`: all is in them.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn step(&mut self) -> Result<bool> {
        self.rows_of_withdrawn()?;
        self.seal()?;
        let views = Arc::clone(&self.views);
        let (place, config) = (views.catalog.place(), &views.config);
        let Some(mut interleave) = self.interleave.take() else {
            let packs: Vec<_> = self.packs.iter().filter_map(|it| it.run.clone()).collect();
            if !overlap(&packs) {
                return Ok(true);
            }
            let id = views.catalog.new_run();
            let interleave = Interleave::begin(place, id, self.range(), packs, config)?;
            self.interleave = Some(interleave);
            return Ok(false);
        };
        let mut floors = views.overview.floors();
        if !interleave.step(&mut floors, views.overview.cache(), config.step_bytes)? {
            self.interleave = Some(interleave);
            return Ok(false);
        }
        let whole = interleave.finish()?;
        let parts = std::mem::replace(&mut self.new, whole.into_iter().collect());
        views.catalog.discard(&parts);
        self.packs.clear();
        for meta in &self.new {
            self.packs.push(views.overview.layers.open_new(meta)?);
        }
        Ok(true)
    }

    const fn range(&self) -> (Sequence, Sequence) {
        (self.damaged.first, self.damaged.last)
    }

    /// Puts the new runs in the place of the damaged one.
    ///
    /// # Errors
    /// When the disk fails or is full; the damaged run stays then.
    pub fn finish(mut self) -> Result<()> {
        while !self.step()? {}
        let views = Arc::clone(&self.views);
        let old = [self.damaged.run];
        // What becomes of the new files is the catalog's business from here on.
        let new = std::mem::take(&mut self.new);
        match self.damaged.kind {
            RunKind::History => {
                let buckets = std::mem::take(&mut self.buckets);
                put(&views, &views.history.layers, old, &new, buckets)
            }
            RunKind::Overview => {
                let packs = std::mem::take(&mut self.packs);
                put(&views, &views.overview.layers, old, &new, packs)
            }
            RunKind::Groups => Ok(()),
        }
    }
}

/// Puts new runs in the place of an old one, for the next start and for readers.
fn put<R: Run>(
    views: &Views,
    layers: &Layers<R>,
    old: [u64; 1],
    new: &[RunMeta],
    slots: Vec<Slot<R>>,
) -> Result<()> {
    // Meanwhile the log may have replaced it.
    let _repacks = views.repacks.hold();
    let [run] = old;
    if layers.runs().slots.iter().all(|slot| slot.meta.id != run) {
        views.catalog.discard(new);
        return Err(Error::NotDamaged { run });
    }
    views.commit(R::KIND, &old, new)?;
    layers.replace(&old, slots, Turn::Rebuilt);
    Ok(())
}
