//! Articles in segments: placed one behind the other, the oldest segment dropped whole.  What the policy wants of it is placed
//! again first.
//!
//! Large articles have segments of their own (R17), so that one of them does not push many small ones out.  Both share the room: of the
//! two oldest segments that goes of which less is wanted.
//!
//! There is no log: an article is found by its row in the table, and where the buffer stands is noted in the same change.  After a
//! crash both are as they were at the last durable change, and what lies behind is written over.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind};
use newsreel_store::{
    Access, BatchWrite, Blocking, CheckpointWrite, Marks, Place, PlaceError, ReadError,
    Reservation, RuleConfig, SetConfig, Store, StoreConfig, StoreReader, Want,
};
use newsreel_wire::{BufferId, IdHash, MessageId, Sequence, SetId, Token, UnixTime};

use super::block::LINE_OCTETS_MAX;
use super::error::Result;
use super::pins::Pins;
use super::row::Row;
use super::table::{Change, Table};
use super::wanted::{Stay, Wanted, facts_of};
use super::{Keep, KeepSettings, Kept, Made};

/// The names of the sets, and of the directories of their files: articles, and large ones.
const SETS: [&str; 2] = ["articles", "large"];

/// The directory of the store's register of buffers.
const REGISTER: &str = "buffers";

/// An article that came.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its message-id.
    pub id: Box<[u8]>,
    /// The hash of that.
    pub hash: IdHash,
    /// The article.
    pub kept: Arc<Kept>,
}

/// The half that places.
#[derive(Debug)]
pub(super) struct Articles {
    store: Store,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// What names its files.
    spool: [u8; 16],
    sequence: u64,
    segment_octets: u64,
    /// Octets of all segments that may be there.
    octets_max: u64,
    /// Octets of all segments as room was made last: nothing goes for a disk that has no more room until one was begun since.
    settled_octets: u64,
    /// That the disk has not the room that the settings say was told.
    is_told: bool,
    /// Articles of more octets are large; 0: none is.
    large_octets: u64,
    written: Written,
}

/// What was written since the start, octets of articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Of those that came.
    pub came: u64,
    /// Of those that were written again, as their segment went.
    pub again: u64,
}

/// About so many octets are placed again at once.
const AGAIN_OCTETS: u64 = 1 << 20;

/// An article of a segment that goes, to be placed again.
struct Again {
    id: IdHash,
    row: Row,
    article: Vec<u8>,
    head_len: usize,
}

/// Removes the files of articles.
pub(super) fn remove_files(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for folder in SETS.into_iter().chain([REGISTER]) {
        let folder = dir.join(folder);
        if !disk.exists(&folder)? {
            continue;
        }
        for entry in disk.list(&folder)? {
            if !entry.is_dir {
                disk.remove(&folder.join(&entry.name))?;
            }
        }
    }
    Ok(())
}

/// Removes everything.
pub(super) fn remove_all(disk: &dyn Disk, dir: &Path) -> Result<()> {
    remove_files(disk, dir)?;
    remove_table(disk, dir)
}

/// Removes the table.
pub(super) fn remove_table(disk: &dyn Disk, dir: &Path) -> Result<()> {
    match disk.remove(&dir.join(super::TABLE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The row of an article that was asked for the first time.
fn row_of(token: Token, kept: &Kept, now: UnixTime) -> Row {
    let (group, dated) = facts_of(kept);
    Row {
        token,
        group,
        dated,
        used: 0,
        uses: 1,
        used_at: now.0,
    }
}

/// So many segments may be begun before anything goes: one by what comes, and one for what of the oldest is placed again.
const AHEAD: u64 = 2;

fn store_config(settings: &KeepSettings, segment: u64) -> StoreConfig {
    let set = |name: &str| SetConfig {
        name: name.to_owned(),
        method: "segment".to_owned(),
        directory: Some(settings.directory.join(name)),
        segment_octets: segment,
        // What both have together is looked after here.
        keep_octets: Some(settings.octets.saturating_sub(AHEAD * segment)),
        // Those in memory are kept in front of the store.
        recent_octets: Some(0),
        ..SetConfig::default()
    };
    StoreConfig {
        buffers: Vec::new(),
        sets: SETS.map(set).to_vec(),
        rules: vec![RuleConfig {
            set: SETS[0].to_owned(),
            ..RuleConfig::default()
        }],
        dropped: Vec::new(),
    }
}

impl Articles {
    /// Opens the segments, which go on where the table says.
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        settings: &KeepSettings,
        (spool, segment): ([u8; 16], u64),
        table: &Table,
    ) -> Result<Self> {
        let config = store_config(settings, segment);
        let (marks, sequence) = table.marks()?;
        if marks.is_empty() {
            // Of what lies there nobody knows.
            remove_files(disk.as_ref(), &settings.directory)?;
        }
        let buffers: Vec<BufferId> = marks.iter().map(|marks| marks.buffer).collect();
        let mut store = Store::open(
            disk,
            &settings.directory,
            spool,
            &config,
            &buffers,
            Access::Write,
            &mut |_, _, _| {},
        )?;
        store.resume(&marks, Sequence(sequence))?;
        let articles = Self {
            store,
            disk: Arc::clone(disk),
            directory: settings.directory.clone(),
            spool,
            sequence,
            segment_octets: segment,
            octets_max: settings.octets,
            settled_octets: 0,
            is_told: false,
            large_octets: settings.large_octets,
            written: Written::default(),
        };
        articles.forget_what_went(table)?;
        Ok(articles)
    }

    /// What lies in segments that went is not known any more.
    fn forget_what_went(&self, table: &Table) -> Result<()> {
        let (floors, marks) = (self.reader(), self.marks());
        table.change(false, |change| {
            for buffer in marks.iter().map(|marks| marks.buffer) {
                change.forget_below(buffer, floors.floor(buffer))?;
            }
            Ok(())
        })
    }

    /// Goes on with a table that is as it was some time ago: of what was placed since nothing is known.
    pub(super) fn resume(&self, table: &Table, pins: &Pins) -> Result<()> {
        self.forget_what_went(table)?;
        let marks = self.marks();
        table.change(true, |change| {
            pins.note_all(change)?;
            change.put_marks(&marks, self.sequence)
        })
    }

    /// A table that is new says what the segments are named by, and how large they are.
    pub(super) fn name(&self, table: &Table, key: &[u8; 32]) -> Result<()> {
        table.change(true, |change| {
            change.put_fact(super::IDENTITY, &[&self.spool[..], key].concat())?;
            change.put_fact(super::SEGMENT_OCTETS, &self.segment_octets.to_le_bytes())
        })
    }

    pub(super) fn reader(&self) -> Arc<StoreReader> {
        self.store.reader()
    }

    fn marks(&self) -> Vec<Marks> {
        let mut marks = Vec::new();
        self.store.marks(&mut marks);
        marks
    }

    pub(super) const fn written(&self) -> Written {
        self.written
    }

    /// Drops what there is too much of; what is wanted of it stays, and what is pinned, but for a whole round that made no room.  Where the
    /// disk is full one segment goes, for who comes next to see whether that was enough.
    fn make_room(
        &mut self,
        table: &Table,
        (wanted, pins): (&Wanted, &Pins),
        now: UnixTime,
    ) -> Result<()> {
        let mut dropping: Vec<Reservation> = Vec::new();
        // From where something went last, if that made no room.
        let mut in_vain = None;
        let mut has_gone = false;
        let mut turns = self.octets() / self.segment_octets;
        loop {
            let (before, free) = (self.octets(), self.free());
            let is_short = self.is_short(pins);
            let is_too_much = is_short || before.saturating_add(self.ahead(pins)) > self.octets_max;
            if has_gone && !is_too_much {
                break;
            }
            self.store.reservations(Some(now), &mut dropping);
            if dropping.is_empty() && is_too_much {
                dropping.extend(self.least_wanted(table, (wanted, pins), in_vain)?);
            }
            let Some(buffer) = dropping.first().map(|it| it.buffer) else {
                break;
            };
            if is_short && !std::mem::replace(&mut self.is_told, true) {
                self.tell_of_disk(free);
            }
            for reservation in dropping.drain(..) {
                self.go(table, (wanted, pins), (reservation, turns > 0), now)?;
            }
            (has_gone, turns) = (true, turns.saturating_sub(1));
            let is_less = self.octets() < before;
            in_vain = (!is_less).then_some(buffer);
            if is_less && self.free() <= free {
                // Whoever takes the room that this gives is not given all of it.
                self.settled_octets = self.octets();
            }
        }
        self.settled_octets = self.octets();
        Ok(())
    }

    /// Octets of the segments that may be begun before anything goes.  Of one that is full of what is pinned not all may fit into one that
    /// is begun for it: with pins there is room for another.
    fn ahead(&self, pins: &Pins) -> u64 {
        (AHEAD + u64::from(!pins.are_none())) * self.segment_octets
    }

    /// Whether the disk has no room for those, and for as much as a segment beside them, which is the table's, since one was begun.
    fn is_short(&self, pins: &Pins) -> bool {
        let least = self.ahead(pins) + self.segment_octets;
        self.octets() > self.settled_octets && self.free() < least
    }

    fn tell_of_disk(&self, free: u64) {
        let (directory, octets) = (self.directory.display(), self.octets_max);
        tracing::warn!(target: "newsreel::cache", %directory, octets, free, "the disk has less room than `cache.octets`: articles go earlier, \
            and no more than half of what it has for them stays for pins; give it more, or make `cache.octets` smaller");
    }

    /// Octets that are free on the disk; where that cannot be told there is room.
    fn free(&self) -> u64 {
        self.disk.free_bytes(&self.directory).unwrap_or(u64::MAX)
    }

    /// Octets of all segments.
    fn octets(&self) -> u64 {
        self.reader().facts().iter().map(|it| it.octets).sum()
    }

    /// The set of a buffer.
    fn set_of(&self, buffer: BufferId) -> SetId {
        let place = self.marks().iter().position(|it| it.buffer == buffer);
        SetId(place.and_then(|set| set.try_into().ok()).unwrap_or(0))
    }

    /// Of the sets' oldest segments the one of which the fewest octets stay, and of two the one that was read longest ago; not that of
    /// this buffer, where there is another.
    fn least_wanted(
        &self,
        table: &Table,
        (wanted, pins): (&Wanted, &Pins),
        in_vain: Option<BufferId>,
    ) -> Result<Option<Reservation>> {
        let mut oldest: Vec<Reservation> = Vec::new();
        oldest.extend(
            self.marks()
                .iter()
                .filter_map(|it| self.store.oldest(it.buffer)),
        );
        if oldest.len() > 1 {
            oldest.retain(|it| Some(it.buffer) != in_vain);
        }
        if oldest.len() == 1 {
            return Ok(oldest.pop());
        }
        let mut ranked = Vec::new();
        for reservation in oldest {
            let floor = reservation.up_to.one_cycle_before();
            let (octets, used) = wanted.worth(&table.articles_below(reservation.buffer, floor)?);
            let pinned = pins.stayed_below(self.set_of(reservation.buffer), floor);
            ranked.push(((octets.max(pinned), used), reservation));
        }
        let least = ranked.into_iter().min_by_key(|(rank, _)| *rank);
        Ok(least.map(|(_, reservation)| reservation))
    }

    /// Drops what lies below a position; what is wanted of it stays, and what is pinned, where it may.  Where that cannot be placed again
    /// nothing goes, unless the disk is full: then it is placed where the segment was.  Only then, where others took the room that was
    /// left for it, is it for a moment nowhere but in memory: nothing else could go for it.
    fn go(
        &mut self,
        table: &Table,
        (wanted, pins): (&Wanted, &Pins),
        (reservation, may_stay): (Reservation, bool),
        now: UnixTime,
    ) -> Result<()> {
        let floor = reservation.up_to.one_cycle_before();
        let set = self.set_of(reservation.buffer);
        let going = table.articles_below(reservation.buffer, floor)?;
        let ids: Vec<IdHash> = going.iter().map(|(id, _)| *id).collect();
        let pinned = self.pinned(&going, pins);
        let stay = Stay {
            pinned: &pinned,
            pinned_octets_max: pins.room((set, floor), self.pinned_octets_max()),
            segment_octets: self.segment_octets,
        };
        let (staying, for_pins) = match may_stay {
            true => wanted.staying(going, &stay),
            false => Default::default(),
        };
        let (reader, mut memory, mut stayed) = (self.reader(), Vec::new(), HashSet::new());
        let staying = staying.into_iter().filter_map(|(id, row)| {
            let read = reader.read(&row.token, Want::Whole, Blocking::Yes, &mut memory);
            let stored = read.ok()?;
            Some(Again {
                id,
                row,
                article: memory.get(stored.octets)?.to_vec(),
                head_len: stored.head_len,
            })
        });
        let staying = self.place_again(table, staying, (pins, &for_pins), (&mut stayed, now))?;
        // Behind a crash too everything that is in the table is in a file that is there.
        table.change(true, |change| {
            change.forget_below(reservation.buffer, floor)?;
            pins.note(change)
        })?;
        self.store.reserved(reservation);
        pins.went(set, floor);
        let waits = !staying.is_empty();
        let staying = staying.into_iter();
        let placed = self.place_again(table, staying, (pins, &for_pins), (&mut stayed, now));
        wanted.went(ids.iter().filter(|id| !stayed.contains(id)));
        placed?;
        // Nothing tells any more where it was before.
        match waits {
            true => table.change(true, |change| pins.note(change)),
            false => Ok(()),
        }
    }

    /// How much may stay for pins on this disk: half of what it has for articles, and room beside that for one segment of others, those
    /// that are begun before anything goes, and the table.
    fn pinned_octets_max(&self) -> u64 {
        let on_disk = self.octets().saturating_add(self.free());
        let others = (AHEAD + 3) * self.segment_octets;
        (on_disk / 2).min(on_disk.saturating_sub(others))
    }

    /// Those of a segment's articles that are pinned, as their own headers say.
    fn pinned(&self, going: &[(IdHash, Row)], pins: &Pins) -> HashSet<IdHash> {
        let (reader, mut memory) = (self.reader(), Vec::new());
        let mut pinned = HashSet::new();
        if pins.are_none() {
            return pinned;
        }
        for (id, row) in going {
            let read = reader.read(&row.token, Want::Whole, Blocking::Yes, &mut memory);
            let article = read.ok().and_then(|stored| memory.get(stored.octets));
            if article.is_some_and(|article| pins.has_article(article)) {
                pinned.insert(*id);
            }
        }
        pinned
    }

    /// Places articles again that lie in a segment which goes, and notes those that were; gives those for which there is no room.
    fn place_again(
        &mut self,
        table: &Table,
        staying: impl Iterator<Item = Again>,
        (pins, pinned): (&Pins, &HashSet<IdHash>),
        (stayed, now): (&mut HashSet<IdHash>, UnixTime),
    ) -> Result<Vec<Again>> {
        let (mut rows, mut octets, mut without_room) = (Vec::new(), 0, Vec::new());
        let mut written = |articles: &mut Self, rows: &mut Vec<(IdHash, Row)>| -> Result<()> {
            articles.write(table, pins, rows)?;
            for (id, Row { token, .. }) in rows.drain(..) {
                if pinned.contains(&id) {
                    pins.stays(&token);
                }
                articles.written.again += u64::from(token.len());
                stayed.insert(id);
            }
            Ok(())
        };
        let mut refusal = None;
        for again in staying {
            if !without_room.is_empty() {
                without_room.push(again);
                continue;
            }
            // In its own set, whatever its size: hardly more than one segment is begun for all that stay.
            let (set, place) = (again.row.token.set(), (&*again.article, again.head_len));
            match self.place_one(set, (&again.id, b""), place, now) {
                Ok(token) => {
                    octets += u64::from(token.len());
                    rows.push((again.id, Row { token, ..again.row }));
                }
                Err(PlaceError::TooLarge { .. }) => {}
                Err(PlaceError::NeedsReservation) => without_room.push(again),
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
            if octets >= AGAIN_OCTETS {
                written(self, &mut rows)?;
                octets = 0;
            }
        }
        written(self, &mut rows)?;
        refusal.map_or(Ok(without_room), |error| Err(error.into()))
    }

    /// Where an article of this size lies.
    fn set_for(&self, kept: &Kept) -> SetId {
        let is_large = self.large_octets > 0 && kept.wire.len() as u64 > self.large_octets;
        SetId(is_large.into())
    }

    fn place_one(
        &mut self,
        set: SetId,
        (hash, id): (&IdHash, &[u8]),
        (article, head_len): (&[u8], usize),
        now: UnixTime,
    ) -> std::result::Result<Token, PlaceError> {
        let sequence = Sequence(self.sequence + 1);
        let placed = self.store.place(&Place {
            sequence,
            arrival: now,
            id_hash: *hash,
            id,
            set,
            format: None,
            xref: b"",
            article: &[article],
            head_len: u32::try_from(head_len).unwrap_or(u32::MAX),
        });
        if placed.is_ok() {
            self.sequence = sequence.0;
        }
        placed
    }

    /// Keeps articles.
    fn keep(
        &mut self,
        table: &Table,
        (wanted, pins): (&Wanted, &Pins),
        articles: &[Fetched],
        now: UnixTime,
    ) -> Result<()> {
        // A batch is of one set, and each is synced.
        let mut articles: Vec<&Fetched> = articles.iter().collect();
        articles.sort_by_key(|fetched| self.set_for(&fetched.kept).0);
        let mut rest = &*articles;
        while !rest.is_empty() {
            self.make_room(table, (wanted, pins), now)?;
            let (mut rows, mut octets) = (Vec::new(), 0);
            let set = rest
                .first()
                .map_or(SetId(0), |first| self.set_for(&first.kept));
            // What is placed before room is made again takes no more than there is left for it, in one set.
            while let Some((first, behind)) = rest.split_first()
                && self.set_for(&first.kept) == set
                && (rows.is_empty() || octets + first.kept.wire.len() as u64 <= AGAIN_OCTETS / 2)
            {
                let kept = &first.kept;
                let place = (&*kept.wire, kept.head_len);
                let placed = self.place_one(set, (&first.hash, &first.id), place, now);
                match placed {
                    Ok(token) => {
                        octets += u64::from(token.len());
                        rows.push((first.hash, row_of(token, kept, now)));
                    }
                    // What was collected is written first; an article that no empty batch takes is not kept.
                    Err(PlaceError::NeedsReservation) if !rows.is_empty() => break,
                    Err(error) => {
                        tracing::debug!(target: "newsreel::cache", %error, "an article is not kept");
                    }
                }
                rest = behind;
            }
            wanted.came(&mut rows);
            if let Err(error) = self.write(table, pins, &rows) {
                wanted.went(rows.iter().map(|(id, _)| id));
                return Err(error);
            }
            self.written.came += octets;
        }
        Ok(())
    }

    fn write(&mut self, table: &Table, pins: &Pins, rows: &[(IdHash, Row)]) -> Result<()> {
        let mut batches: Vec<Box<dyn BatchWrite>> = Vec::new();
        self.store.seal(&mut batches);
        for batch in &mut batches {
            batch.write()?;
            batch.sync()?;
        }
        self.store.recycle(&mut batches);
        let (marks, sequence) = (self.marks(), self.sequence);
        table.change(false, |change| {
            change.put_articles(rows)?;
            pins.note(change)?;
            change.put_marks(&marks, sequence)
        })
    }

    /// Makes what was kept so far durable.
    pub(super) fn checkpoint(&mut self, table: &Table) -> Result<()> {
        if !table.is_changed() {
            return Ok(());
        }
        let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
        self.store.checkpoint(&mut writes);
        table.change(true, |_| Ok(()))?;
        for write in &mut writes {
            write.write()?;
        }
        Ok(())
    }
}

impl Keep {
    /// An article, which is asked for at this time.
    #[must_use]
    pub fn article(&self, id: &IdHash, now: UnixTime) -> Option<Arc<Kept>> {
        if let Some(kept) = self.article_in_memory(id, now) {
            return Some(kept);
        }
        let kept = Arc::new(self.read(id)?);
        self.take_into_memory(id, &kept);
        self.wanted.asked(id, &kept, now);
        Some(kept)
    }

    /// An article that was read from the disk, unless it was let go since.
    pub(super) fn take_into_memory(&self, id: &IdHash, kept: &Arc<Kept>) {
        self.in_memory.insert(*id, Arc::clone(kept));
        // Who lets it go removes its row first, and what is in memory behind that.
        if self.told(self.table.article(id)).flatten().is_none() {
            self.in_memory.remove(id);
        }
    }

    /// An article that nobody asks for: of which something is made that is.
    #[must_use]
    pub fn article_unasked(&self, id: &IdHash) -> Option<Arc<Kept>> {
        let at_hand = self.article_at_hand(id);
        at_hand.or_else(|| Some(Arc::new(self.read(id)?)))
    }

    /// An article from the disk.  One that is damaged, or not there, is not kept any more.
    pub(super) fn read(&self, id: &IdHash) -> Option<Kept> {
        let token = self.told(self.table.article(id))??.token;
        let mut memory = Vec::new();
        let reader = self.reader.get()?;
        let read = reader.read(&token, Want::Whole, Blocking::Yes, &mut memory);
        let stored = match read {
            Ok(stored) if stored.id_hash == *id => stored,
            Ok(_) | Err(ReadError::Gone) => return self.lost(id, &token),
            Err(error) => {
                // Damaged, or lost with the power: it is fetched again.
                if let Some(more) = self.lines.admit() {
                    tracing::warn!(target: "newsreel::cache", %error, more, "an article is lost");
                }
                return match error {
                    ReadError::Corrupt { .. } | ReadError::Removed => self.lost(id, &token),
                    // Of a disk that fails it may be had later.
                    _ => None,
                };
            }
        };
        let wire = memory.get(stored.octets)?.to_vec().into();
        Some(Kept::with_head(wire, stored.head_len))
    }

    /// What should lie there does not.
    fn lost(&self, id: &IdHash, token: &Token) -> Option<Kept> {
        let forget = |change: &Change<'_>| change.forget_at(id, token);
        self.told(self.table.change(false, forget))?;
        self.wanted.went([id]);
        None
    }

    /// Whether an article lies there still.
    pub(super) fn is_live(&self, token: &Token) -> bool {
        let reader = self.reader.get();
        reader.is_some_and(|reader| reader.is_live(token))
    }

    /// Whether the overview line of an article is made from it whenever it is wanted (R22), and not kept.
    #[must_use]
    pub fn makes_line(&self, kept: &Kept, line: &[u8]) -> bool {
        let Made { wanted, octets_max } = self.made;
        wanted && kept.wire.len() as u64 <= octets_max && line.len() <= LINE_OCTETS_MAX
    }

    /// Where an article lies that is kept on disk, and what policies know of it.
    fn live_row(&self, id: &IdHash) -> Option<Row> {
        let row = self.told(self.table.article(id)).flatten()?;
        self.is_live(&row.token).then_some(row)
    }

    /// Octets of an article, if it is kept on disk.
    #[must_use]
    pub fn article_octets(&self, id: &IdHash) -> Option<u64> {
        Some(self.live_row(id)?.token.len().into())
    }

    /// Whether an article is kept.
    #[must_use]
    pub fn has_article(&self, id: &IdHash) -> bool {
        self.in_memory.peek(id).is_some() || self.live_row(id).is_some()
    }

    /// Those of these articles that are kept.
    pub(super) fn kept_of(&self, ids: &[IdHash]) -> HashSet<IdHash> {
        let in_memory = ids.iter().filter(|id| self.in_memory.peek(*id).is_some());
        let mut kept: HashSet<IdHash> = in_memory.copied().collect();
        let looked = self.table.rows_of(ids, |id, row| {
            if self.is_live(&row.token) {
                kept.insert(*id);
            }
        });
        self.told(looked);
        kept
    }

    /// Keeps articles, but those under whose message-ids others are kept: what is kept stays, whoever sends another one.  Gives the
    /// hashes of these message-ids.  Of what somebody lets go nothing is kept: that is asked until nobody can let go of it what is not
    /// there yet.
    pub fn keep_articles(
        &self,
        articles: &[Fetched],
        now: UnixTime,
        is_let_go: &dyn Fn(&IdHash) -> bool,
    ) -> HashSet<IdHash> {
        let (mut seen, mut refused) = (HashMap::new(), HashSet::new());
        let mut new: Vec<Fetched> = articles.to_vec();
        new.retain(|came| !is_let_go(&came.hash));
        // Who asks from here on is given them; the disk is looked at behind that.
        new.retain(|came| {
            let is_first = !seen.contains_key(&came.hash);
            let first = seen
                .entry(came.hash)
                .or_insert_with(|| self.first_in_memory(came));
            let is_same = first.wire == came.kept.wire;
            if !is_same {
                refused.insert(came.hash);
            }
            is_first && is_same
        });
        // Who lets go of what is there has to wait from here on.
        let mut placing = self.articles.lock();
        for gone in new.extract_if(.., |came| is_let_go(&came.hash)) {
            self.in_memory.remove(&gone.hash);
        }
        let Some(placing) = placing.as_mut().filter(|_| !self.table.is_broken()) else {
            return refused;
        };
        // The key may have been had since they came.
        new.retain(|came| MessageId::parse(&came.id).is_ok_and(|id| self.id_hash(id) == came.hash));
        // What is on disk from here on was placed by this caller.
        new.retain(|came| {
            let there = self.read(&came.hash);
            let is_new = there.is_none();
            if let Some(other) = there.filter(|there| there.wire != came.kept.wire) {
                refused.insert(came.hash);
                self.take_into_memory(&came.hash, &Arc::new(other));
            }
            is_new
        });
        // Before anything goes the policy has to know what is there.
        let learnt = self.wanted.learn(&self.table);
        let keep = |()| placing.keep(&self.table, (&self.wanted, &self.pins), &new, now);
        self.told(learnt.and_then(keep));
        refused
    }

    /// The article in memory under the message-id of one that came: that one, if there is no other.
    fn first_in_memory(&self, came: &Fetched) -> Arc<Kept> {
        let came_first = || Ok::<_, Infallible>(Arc::clone(&came.kept));
        let Ok(first) = self.in_memory.get_or_insert_with(&came.hash, came_first);
        first
    }
}
