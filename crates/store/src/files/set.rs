//! A set of files, filled by one thread: a card for each article into the open batch of the catalogue, its text beside it.
//!
//! Nothing is written here, and no directory is looked at.  Where the file system has no room left, articles are put off.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use newsreel_wire::{BufferId, Sequence, SetId, Token, UnixTime};
use parking_lot::Mutex;

use super::batch::{Collected, FileBatch, Unwritten};
use super::card::Card;
use super::folder::{Folder, Scratch};
use super::hollows::Hollows;
use super::lent::Lender;
use super::lost;
use super::reader::FileReader;
use super::reclaim::Reclaim;
use super::removal::{Refused, Removal, Removed};
use super::roots::{LookAtMounts, Roots};
use super::{CATALOGUE, CATALOGUE_OCTETS, Naming, article_token, card_token};
use crate::config::{FileFormat, SetConfig};
use crate::error::{PlaceError, Result};
use crate::mark::Marking;
use crate::method::{
    BatchWrite, BufferReader, CheckpointWrite, Left, Marks, Missing, Place, Reservation,
    StorageMethod,
};
use crate::methods::segment::{self, SegmentSet};
use crate::methods::{OpenedSet, Opening};
use crate::records::home::Kind;
use crate::records::placing::ARTICLE_OCTETS_MAX;
use crate::store::Access;

/// So much stays free on the file system of a set, where the set does not say more.
const FREE_OCTETS_MIN: u64 = 16 << 20;
/// What a file costs beside its text: the rest of its last block, its inode, its name.
pub(super) const FILE_OCTETS: u64 = 8192;
/// A catalogue keeps so much of its newest cards in memory, whatever the set keeps of articles.
const RECENT_CARDS_OCTETS: u64 = 4 << 20;

/// A set of files.
#[derive(Debug)]
struct FileSet {
    reader: Arc<FileReader>,
    cards: SegmentSet,
    collected: Collected,
    scratch: Scratch,
    /// A card on its way.
    card: Vec<u8>,
    /// Octets that may be written before the file system is asked again.
    room: u64,
    free_octets_min: u64,
    /// In the files of the catalogue below this cycle there is no card.
    empty_below: Arc<AtomicU32>,
    /// What of the other files is overwritten.
    hollows: Arc<Hollows>,
    /// Whose files were removed, until that is durable.
    removed: Arc<Removed>,
    /// Whose files could not be removed.
    refused: Arc<Refused>,
    /// Those of them that the next commit tries again.
    again: Vec<Token>,
    /// It may have become more since that was looked at.
    may_be_emptier: bool,
}

/// Where the texts of a set are.
pub(crate) enum Texts {
    /// In files with such names.
    Files(Arc<dyn Naming>),
    /// In another spool.
    Lent(Arc<Lender>),
}

/// Opens a set of files whose names follow from this.
pub(crate) fn open(
    (kind, naming): (Kind, Arc<dyn Naming>),
    opening: &mut Opening<'_>,
    set: SetId,
    config: &SetConfig,
) -> Result<OpenedSet> {
    open_of((kind, Texts::Files(naming)), opening, set, config)
}

/// Opens a set with a catalogue.
pub(crate) fn open_of(
    (kind, texts): (Kind, Texts),
    opening: &mut Opening<'_>,
    set: SetId,
    config: &SetConfig,
) -> Result<OpenedSet> {
    let (naming, lender) = match texts {
        Texts::Files(naming) => (Some(naming), None),
        Texts::Lent(lender) => (None, Some(lender)),
    };
    let has_hierarchies = naming
        .as_ref()
        .is_some_and(|naming| naming.has_hierarchies());
    let own = || opening.spool_dir.join("articles").join(&config.name);
    let dir: PathBuf = config.directory.clone().unwrap_or_else(own);
    let recent = config.recent_octets.unwrap_or(RECENT_CARDS_OCTETS);
    let catalogue = SetConfig {
        name: config.name.clone(),
        method: kind.name.to_owned(),
        segment_octets: CATALOGUE_OCTETS,
        recent_octets: Some(recent.min(RECENT_CARDS_OCTETS)),
        ..SetConfig::default()
    };
    let may_write = opening.access != Access::ReadOnly && has_hierarchies;
    let marking = Marking::look(opening, config, &dir)?;
    let of = (&catalogue, dir.join(CATALOGUE), marking.mark(opening));
    let roots = Roots::open(opening.disk, &dir, &dir.join(CATALOGUE), may_write)?;
    let cards = segment::open_as(kind, opening, set, of)?;
    marking.keep(opening, config)?;
    let folder = Folder {
        roots,
        disk: Arc::clone(opening.disk),
        dir,
        format: match lender {
            Some(_) => FileFormat::Wire,
            None => config.format.unwrap_or_default(),
        },
        has_hierarchies,
        lender,
        told: Mutex::default(),
    };
    let hollows = Arc::<Hollows>::default();
    let reader = Arc::new(FileReader {
        cards: cards.buffer(),
        folder: Arc::new(folder),
        naming,
        hollows: Arc::clone(&hollows),
    });
    let placing = FileSet {
        reader: Arc::clone(&reader),
        cards,
        collected: Collected::default(),
        scratch: Scratch::default(),
        card: Vec::new(),
        room: u64::MAX,
        free_octets_min: config.free_octets_min.unwrap_or(FREE_OCTETS_MIN),
        empty_below: Arc::default(),
        hollows,
        removed: Arc::default(),
        refused: Arc::default(),
        again: Vec::new(),
        may_be_emptier: true,
    };
    Ok(OpenedSet {
        placing: Box::new(placing),
        readers: vec![reader as Arc<dyn BufferReader>],
        cyclic: Vec::new(),
    })
}

impl FileSet {
    /// The card of an article of these names whose text is behind `start` in the batch, and where its native form is.
    fn write_card(
        &mut self,
        place: &Place<'_>,
        names: Vec<String>,
        start: usize,
    ) -> Option<(Card, Option<Range<usize>>)> {
        let Collected { text, native, .. } = &mut self.collected;
        let text = text.get(start..)?;
        let mut card = Card::of(text, place.head_len, names, place.xref)?;
        let format = place.format.unwrap_or(self.reader.folder.format);
        let form = self.scratch.native(format, text);
        let form = form.map(|form| {
            let start = native.len();
            native.extend_from_slice(form);
            start..native.len()
        });
        if let Some(form) = &form {
            card.file_len = u32::try_from(form.len()).ok();
        }
        self.card.clear();
        card.encode(&mut self.card);
        Some((card, form))
    }

    /// Puts the article behind `start` in the batch into the catalogue.
    fn place_card(
        &mut self,
        place: &Place<'_>,
        names: Vec<String>,
        start: usize,
    ) -> std::result::Result<Token, PlaceError> {
        let limit = ARTICLE_OCTETS_MAX;
        let text = start..self.collected.text.len();
        let written = self.write_card(place, names, start);
        let (card, native) = written.ok_or(PlaceError::TooLarge { limit })?;
        let token = self.cards.place(&Place {
            article: &[&self.card],
            head_len: 0,
            ..*place
        })?;
        self.collected.articles.push(Unwritten {
            position: token.position(),
            arrival: place.arrival,
            text,
            native,
            head_len: card.head_len,
            names: std::iter::once(card.name).chain(card.links).collect(),
        });
        Ok(article_token(&token, card.article_len))
    }

    /// Takes an article, and room for a file of so many octets.
    fn place_named(
        &mut self,
        place: &Place<'_>,
        names: Vec<String>,
        file_len: u64,
    ) -> std::result::Result<Token, PlaceError> {
        let limit = ARTICLE_OCTETS_MAX;
        let len: usize = place.article.iter().map(|part| part.len()).sum();
        if len as u64 > limit {
            return Err(PlaceError::TooLarge { limit });
        }
        if !self.reader.cards.is_usable() {
            return Err(self.cards.refusal());
        }
        self.take_room(&names, file_len + FILE_OCTETS)?;
        let (text, native) = (self.collected.text.len(), self.collected.native.len());
        for part in place.article {
            self.collected.text.extend_from_slice(part);
        }
        let placed = self.place_card(place, names, text);
        if placed.is_err() {
            self.collected.text.truncate(text);
            self.collected.native.truncate(native);
        }
        placed
    }

    /// What removes the files of these cards, and overwrites them.
    fn removal(&mut self, tokens: Vec<Token>, is_again: bool) -> Option<Box<dyn BatchWrite>> {
        let cards = &self.reader.cards;
        if tokens.is_empty() || !cards.is_usable() {
            return None;
        }
        self.may_be_emptier = true;
        Some(Box::new(Removal {
            cards: Arc::clone(cards),
            folder: Arc::clone(&self.reader.folder),
            hollows: Arc::clone(&self.hollows),
            tokens,
            refused: Arc::clone(&self.refused),
            is_again,
            removed: Arc::clone(&self.removed),
            is_large: false,
        }))
    }

    /// Says what of the catalogue is lost, and what to do.
    fn tell_of_damage(&self) -> Result<()> {
        let cards = &self.reader.cards;
        let Some(what) = lost::damage(cards)? else {
            return Ok(());
        };
        let name = &cards.name;
        let then = match &self.reader.folder.lender {
            None => format!(
                "articles whose cards were there are not served until `newsreel store scrub {name}` beside the server, or the \
                 server's own scrub, has made the cards again from the articles' files, which are left as they are"
            ),
            Some(lender) => format!(
                "articles whose cards were there are not served, though they may lie in {path} still: `newsreel store attach --in-place \
                 {path}` makes the cards again, under the same numbers",
                path = lender.path().display()
            ),
        };
        let why = format!("{}: {what}; {then}", lost::TOLD);
        if !cards.read_only {
            tracing::error!(set = name, catalogue = %cards.home.path().display(), "{why}");
        }
        cards.complain(why);
        Ok(())
    }

    /// Room as the file systems tell it now.
    fn ask_for_room(&mut self, now: Option<UnixTime>) {
        let folder = &self.reader.folder;
        match folder.free_octets() {
            Ok(free) => self.room = free.saturating_sub(self.free_octets_min),
            // Before the first article there is no directory.
            Err(_) => self.room = u64::MAX,
        }
        folder.roots.ask_for_room(self.free_octets_min, now);
    }

    /// Takes room where the file of an article of these names will lie: its links need none.  What gets no card in the end has
    /// taken it until the file system is asked again.
    fn take_room(&mut self, names: &[String], octets: u64) -> std::result::Result<(), PlaceError> {
        let roots = &self.reader.folder.roots;
        let on_root = names.first().and_then(|name| roots.take_room(name, octets));
        let has_room = on_root.unwrap_or_else(|| {
            let left = self.room.checked_sub(octets);
            self.room = left.unwrap_or(self.room);
            left.is_some()
        });
        match has_room {
            true => Ok(()),
            false => Err(PlaceError::NeedsReservation),
        }
    }
}

impl StorageMethod for FileSet {
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        // What lies in another spool takes nothing but what is there.
        let naming = self.reader.naming.as_ref().ok_or(PlaceError::Suspended)?;
        let names = naming.names(place);
        let roots = &self.reader.folder.roots;
        if roots.keeps_out(names.iter().map(String::as_str)) {
            return Err(PlaceError::Suspended);
        }
        let len: usize = place.article.iter().map(|part| part.len()).sum();
        self.place_named(place, names, len as u64)
    }

    fn refer(
        &mut self,
        place: &Place<'_>,
        lies_at: &str,
    ) -> std::result::Result<Token, PlaceError> {
        match self.reader.folder.lender {
            Some(_) => self.place_named(place, vec![lies_at.to_owned()], 0),
            None => Err(PlaceError::NoSet),
        }
    }

    fn began(&mut self, now: UnixTime) {
        self.cards.began(now);
    }

    fn reservations(&mut self, now: Option<UnixTime>, out: &mut Vec<Reservation>) {
        self.cards.reservations(now, out);
        let empty_below = self.empty_below.load(Ordering::Relaxed);
        if empty_below > self.reader.cards.floor().cycle().max(1) {
            out.extend(self.cards.dropping(empty_below));
        }
        self.ask_for_room(now);
        // While the disk fails nothing of it is tried, nor forgotten.
        if self.again.is_empty() && self.reader.cards.is_usable() {
            self.again = now.map(|now| self.refused.due(now)).unwrap_or_default();
        }
    }

    fn reserved(&mut self, reservation: Reservation) {
        self.cards.reserved(reservation);
    }

    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        let mut cards = Vec::new();
        self.cards.seal(&mut cards);
        let buffer = &self.reader.cards;
        // One at most: a set has one catalogue.
        for cards in cards {
            out.push(Box::new(FileBatch {
                given_up: buffer.given_up(),
                buffer: Arc::clone(buffer),
                folder: Arc::clone(&self.reader.folder),
                cards,
                collected: std::mem::take(&mut self.collected),
                made: Vec::new(),
                removed: Arc::clone(&self.removed),
                hollows: Arc::clone(&self.hollows),
            }));
        }
        let again = std::mem::take(&mut self.again);
        out.extend(self.removal(again, true));
    }

    fn suspend(&mut self, buffer: BufferId, why: &str) {
        if self.reader.cards.has_only_refused() {
            return;
        }
        self.cards.suspend(buffer, why);
        // Whatever failed on a root keeps out what is to go there, and nothing else.
        if self.reader.folder.roots.take_news() {
            self.cards.go_on();
        }
    }

    fn marks(&self, out: &mut Vec<Marks>) {
        self.cards.marks(out);
    }

    fn replayed(&mut self, token: &Token) {
        self.cards.replayed(token);
    }

    fn withdrawn(&mut self, tokens: &[Token], out: &mut Vec<Box<dyn BatchWrite>>) {
        let cards = &self.reader.cards;
        let own = tokens.iter().filter(|token| token.buffer() == cards.id);
        let tokens: Vec<Token> = own.map(card_token).collect();
        out.extend(self.removal(tokens, false));
    }

    fn is_ahead(&self, marks: &[Marks], log_end: Sequence) -> Result<bool> {
        self.cards.is_ahead(marks, log_end)
    }

    fn may_have_left(&self, marks: &[Marks], missing: Missing) -> Result<bool> {
        self.cards.may_have_left(marks, missing)
    }

    fn left_over(&self, marks: &[Marks], missing: Missing, out: &mut Vec<Left>) -> Result<bool> {
        let first = out.len();
        let is_all = self.cards.left_over(marks, missing, out)?;
        let mut memory = Vec::new();
        let found = out.iter_mut().skip(first);
        for (_, token) in found.flat_map(|left| &mut left.articles) {
            // Of a card that cannot be read nothing is told: its article is damaged.
            let read = self.reader.token_of(token, &mut memory);
            *token = read.unwrap_or_else(|_| article_token(token, 0));
        }
        Ok(is_all)
    }

    fn distrust(&mut self) {
        self.cards.distrust();
    }

    fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()> {
        self.cards.resume(marks, log_end)?;
        self.tell_of_damage()?;
        if self.reader.cards.is_usable() {
            self.ask_for_room(None);
        }
        Ok(())
    }

    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        self.cards.checkpoint(out);
        let folder = &self.reader.folder;
        if self.reader.cards.is_usable() && folder.has_hierarchies {
            out.push(Box::new(LookAtMounts(Arc::clone(folder))));
        }
        let waits = self.hollows.waits() || self.removed.waits();
        let has_news = std::mem::take(&mut self.may_be_emptier) || waits;
        if self.reader.cards.is_usable() && has_news {
            out.push(Box::new(Reclaim {
                cards: Arc::clone(&self.reader.cards),
                empty_below: Arc::clone(&self.empty_below),
                hollows: Arc::clone(&self.hollows),
                folder: Arc::clone(&self.reader.folder),
                removed: Arc::clone(&self.removed),
            }));
        }
    }
}
