//! What the cache keeps (decision 0020): articles in segments of the store, and beside them a table of all that is small.
//!
//! Nothing in it is needed: what is lost or damaged is fetched again, so errors are told here and become "not kept".  Never
//! more is kept than the settings say; which articles go a policy says, and of overview that of the groups goes that were asked
//! for longest ago.  All calls may wait for the disk but those that say otherwise.  The files are described in
//! `docs/formats/cache.md`.

mod articles;
mod backend;
mod block;
mod error;
mod group;
mod listed;
mod overview;
mod pins;
mod row;
pub(crate) mod sealed;
mod table;
mod wanted;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use newsreel_host::{Disk, Lock, random_bytes};
use newsreel_index::id_hash;
use newsreel_net::LineLimit;
use newsreel_store::StoreReader;
use newsreel_wire::article::{ArticleFacts, Headers};
use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, IdHash, MessageId, UnixTime};
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::policies::PolicyKind;
use crate::remote::Routes;
use articles::Articles;
use error::Result;
use overview::Groups;
use pins::Pins;
use table::Table;
use wanted::Wanted;

pub use articles::{Fetched, Written};
pub(crate) use backend::OnDisk;
pub(crate) use block::bare_line;
pub use block::{BLOCK_NUMBERS, Block, each_of, place_of, places_in};
pub use error::KeepError;
pub use group::KeptGroup;
pub use listed::{Dropped, LISTED_ARTICLES_MAX, ListedArticle, ListedGroup};
pub use pins::PINS_MAX;
pub use row::Row;
pub use wanted::USES_NOTED_MAX;
pub(crate) use wanted::{group_and_date, group_key, key_of};

/// The fact that has the identity: 16 octets that name the store's files, and 32 for the key of hashes.
const IDENTITY: &str = "identity";

/// The fact that says which server the numbers of a group come from.
const ROUTES: &str = "routes";

/// In front of a server's name: the fact that has the list of its groups.
const LIST: &str = "list ";

/// The fact that has the size of segments.
const SEGMENT_OCTETS: &str = "segment octets";

/// The file in a cache's directory that has its table.
pub const TABLE: &str = "table.redb";

/// The largest segment, octets.
pub const SEGMENT_OCTETS_MAX: u64 = 64 << 20;

/// The smallest segment.
const SEGMENT_OCTETS_MIN: u64 = 1 << 20;

/// So many segments there are at least, so that one that goes takes no more than this part of all with it.
const SEGMENTS_MIN: u64 = 8;

/// ... and so many where they may be small enough.
const SEGMENTS_USUAL: u64 = 16;

/// After so many checkpoints for which there is no table it is tried to open it again: with one every 5 seconds each minute.
const CHECKPOINTS_IN_VAIN: u32 = 12;

/// What an entry in memory costs beside its octets.
const ENTRY_OCTETS: u64 = 128;

/// How much is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepSettings {
    /// The directory, which no spool may be.
    pub directory: PathBuf,
    /// Octets of articles.
    pub octets: u64,
    /// Articles of more octets are large, and lie apart from the others; 0: none is.
    pub large_octets: u64,
    /// Octets of overview.
    pub overview_octets: u64,
    /// The overview lines of articles that are not large are made from these, and not kept.
    pub makes_lines: bool,
    /// Octets of articles in memory.
    pub memory_octets: u64,
    /// Octets of overview in memory.
    pub overview_memory_octets: u64,
    /// Octets of the table in memory.
    pub table_memory_octets: usize,
    /// What says which articles go.
    pub policy: PolicyKind,
    /// Articles that it looks after.
    pub policy_articles_max: usize,
    /// Octets of articles that stay for pins; never more than half of all.
    pub pinned_octets: u64,
}

impl KeepSettings {
    /// The least that can be kept, octets.
    pub const OCTETS_MIN: u64 = SEGMENTS_MIN * SEGMENT_OCTETS_MIN;

    /// Octets of a segment; those of one that is there already, where it may be.
    fn segment_octets(&self, there: Option<u64>) -> u64 {
        let of =
            |segments: u64| (self.octets / segments).clamp(SEGMENT_OCTETS_MIN, SEGMENT_OCTETS_MAX);
        let (most, usual) = (of(SEGMENTS_MIN), 1_u64 << of(SEGMENTS_USUAL).ilog2());
        there.filter(|there| *there <= most).unwrap_or(usual)
    }
}

/// Why segments of this size cannot be gone on with.
fn outgrown(settings: &KeepSettings, there: u64) -> String {
    format!(
        "cache.octets = {} is too little for the segments of {there} octets that are there: what was kept is thrown away; with {} or more \
         it would have stayed",
        settings.octets,
        there.saturating_mul(SEGMENTS_MIN)
    )
}

/// An article in memory.
#[derive(Debug, Clone)]
pub struct Kept {
    /// All of it in wire form.
    pub wire: Bytes,
    /// Octets of its header block, empty line not included.
    pub head_len: usize,
    /// The first group that it names, and its date: looked for once, as each reader of it is counted by them.
    said: OnceLock<(Option<Box<str>>, u64)>,
    /// What is counted over all of it, once.
    counted: OnceLock<Option<(usize, usize)>>,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        (&self.wire, self.head_len) == (&other.wire, other.head_len)
    }
}

impl Eq for Kept {}

impl Kept {
    /// An article as it came; none: it has no end of its header block.
    #[must_use]
    pub fn new(wire: Bytes) -> Option<Self> {
        let head_len = Self::head_len_of(&wire)?;
        Some(Self::with_head(wire, head_len))
    }

    /// An article with a header block of so many octets.
    const fn with_head(wire: Bytes, head_len: usize) -> Self {
        Self {
            wire,
            head_len,
            said: OnceLock::new(),
            counted: OnceLock::new(),
        }
    }

    /// The first group that it names, and its date; 0 where that is not said.
    pub(crate) fn group_and_date(&self) -> (Option<&str>, u64) {
        let (group, dated) = self.said.get_or_init(|| {
            let (group, dated) = group_and_date(&self.wire);
            (group.map(|group| group.as_str().into()), dated)
        });
        (group.as_deref(), *dated)
    }

    /// Its octets and the lines of its body, as overview tells them; none: it is no article.
    pub(crate) fn bytes_and_lines(&self, headers: &Headers<'_>) -> Option<(usize, usize)> {
        let count = || {
            let facts = ArticleFacts::of(headers).ok()?;
            Some((facts.bytes, facts.lines))
        };
        *self.counted.get_or_init(count)
    }

    /// Octets of the header block of an article, or its beginning, empty line not included; none: it has no end of it.
    #[must_use]
    pub fn head_len_of(wire: &[u8]) -> Option<usize> {
        match wire.strip_prefix(b"\r\n") {
            Some(_) => Some(0),
            None => Some(memchr::memmem::find(wire, b"\r\n\r\n")? + 2),
        }
    }
}

#[derive(Clone)]
struct Octets;

impl Weighter<IdHash, Arc<Kept>> for Octets {
    fn weight(&self, _: &IdHash, kept: &Arc<Kept>) -> u64 {
        kept.wire.len() as u64 + ENTRY_OCTETS
    }
}

impl Weighter<(Arc<str>, u64), Arc<Block>> for Octets {
    fn weight(&self, _: &(Arc<str>, u64), block: &Arc<Block>) -> u64 {
        block.octets() + ENTRY_OCTETS
    }
}

/// Articles have so many octets, about.
const ARTICLE_OCTETS_USUAL: u64 = 4 << 10;

/// Blocks have so many octets, about.
const BLOCK_OCTETS_USUAL: u64 = 32 << 10;

fn items(octets: u64, each: u64) -> usize {
    usize::try_from(octets / each).map_or(usize::MAX, |items| items.max(16))
}

/// A group whose numbers come from another server than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renumbered {
    /// Its name.
    pub group: Box<str>,
    /// The server before.
    pub from: String,
    /// The one from now on.
    pub to: String,
}

/// What is kept, in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFigures {
    /// Articles.
    pub articles: u64,
    /// Octets of articles.
    pub octets: u64,
    /// Octets of overview.
    pub overview_octets: u64,
    /// Groups that something is known of.
    pub groups: usize,
    /// Octets of articles in memory.
    pub memory_octets: u64,
    /// Octets of overview in memory.
    pub overview_memory_octets: u64,
    /// Nothing is kept but in memory: the table failed, or its disk did and has not come back.
    pub is_broken: bool,
    /// Which policy says what goes.
    pub policy: PolicyKind,
    /// Octets of articles that it wants to stay.
    pub wanted_octets: u64,
    /// What was written since the start.
    pub written: Written,
    /// The wildmats that are pinned.
    pub pins: Vec<String>,
    /// Octets that stay for them, whatever the policy wants.
    pub pinned_octets: u64,
    /// ... and how many may.
    pub pinned_octets_max: u64,
}

/// Which overview lines are made and not kept.
#[derive(Debug, Clone, Copy)]
struct Made {
    /// Any are.
    wanted: bool,
    /// Those of articles of so many octets at most.
    octets_max: u64,
}

/// What is kept.
pub struct Keep {
    key: [u8; 32],
    made: Made,
    table: Table,
    reader: Arc<StoreReader>,
    articles: Mutex<Articles>,
    wanted: Wanted,
    pins: Pins,
    /// Held for a moment only: never while the disk is waited for.
    groups: Mutex<Groups>,
    /// Who changes groups or their overview holds this all the time.
    changing: Mutex<()>,
    in_memory: Cache<IdHash, Arc<Kept>, Octets>,
    blocks_in_memory: Cache<(Arc<str>, u64), Arc<Block>, Octets>,
    lines: LineLimit,
    /// Since the table failed.
    vain_checkpoints: AtomicU32,
    /// Nobody else uses the directory.
    _lock: Box<dyn Lock>,
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep")
            .field("table", &self.table)
            .field("octets_in_memory", &self.in_memory.weight())
            .field("overview_in_memory", &self.blocks_in_memory.weight())
            .finish_non_exhaustive()
    }
}

impl Keep {
    /// Opens what there is; what cannot be used is removed, and begun anew.
    ///
    /// # Errors
    /// When the settings cannot be, another process uses the directory, or nothing can be made there.
    pub fn open(disk: &Arc<dyn Disk>, settings: &KeepSettings) -> Result<Self> {
        if settings.octets < KeepSettings::OCTETS_MIN {
            let (octets, least) = (settings.octets, KeepSettings::OCTETS_MIN);
            let why = format!("{octets} octets are too few to keep articles in; give it {least}");
            return Err(KeepError::Settings(why));
        }
        disk.create_dir_all(&settings.directory)?;
        let lock = disk.lock(&settings.directory.join("lock"))?;
        let (table, articles, key) = match Self::parts(disk, settings) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!(target: "newsreel::cache", %error, "the cache begins anew");
                articles::remove_all(disk.as_ref(), &settings.directory)?;
                Self::parts(disk, settings)?
            }
        };
        disk.sync_dir(&settings.directory)?;
        let groups = Groups::read(&table, settings.overview_octets)?;
        let wanted = Wanted::new(
            settings.policy,
            settings.octets,
            settings.policy_articles_max,
            table.last_use()?,
        );
        let pins = Pins::read(&table, settings.pinned_octets.min(settings.octets / 2))?;
        let (memory, blocks) = (settings.memory_octets, settings.overview_memory_octets);
        let made = Made {
            wanted: settings.makes_lines,
            octets_max: match settings.large_octets {
                0 => u64::MAX,
                octets => octets,
            },
        };
        Ok(Self {
            key,
            made,
            reader: articles.reader(),
            articles: Mutex::new(articles),
            wanted,
            pins,
            groups: Mutex::new(groups),
            changing: Mutex::default(),
            table,
            in_memory: Cache::with_weighter(items(memory, ARTICLE_OCTETS_USUAL), memory, Octets),
            blocks_in_memory: Cache::with_weighter(
                items(blocks, BLOCK_OCTETS_USUAL),
                blocks,
                Octets,
            ),
            lines: LineLimit::default(),
            vain_checkpoints: AtomicU32::new(0),
            _lock: lock,
        })
    }

    fn parts(disk: &Arc<dyn Disk>, settings: &KeepSettings) -> Result<(Table, Articles, [u8; 32])> {
        let path = settings.directory.join(TABLE);
        let table = Table::open(disk, &path, settings.table_memory_octets)?;
        let identity = match table.fact(IDENTITY)? {
            Some(identity) => identity,
            None => {
                let identity = random_bytes::<48>()?.to_vec();
                table.change(true, |change| change.put_fact(IDENTITY, &identity))?;
                identity
            }
        };
        let there = table.fact(SEGMENT_OCTETS)?;
        let there = there.and_then(|octets| octets.try_into().ok().map(u64::from_le_bytes));
        let segment = settings.segment_octets(there);
        if let Some(there) = there.filter(|there| *there != segment) {
            return Err(KeepError::Settings(outgrown(settings, there)));
        }
        let octets = segment.to_le_bytes();
        table.change(true, |change| change.put_fact(SEGMENT_OCTETS, &octets))?;
        let wrong = || KeepError::Settings("its identity is damaged".to_owned());
        let (spool, key) = identity.split_first_chunk().ok_or_else(wrong)?;
        let key = key.try_into().map_err(|_| wrong())?;
        let articles = Articles::open(disk, settings, (*spool, segment), &table)?;
        Ok((table, articles, key))
    }

    /// The groups whose numbers come from another server than before, by these routes.
    ///
    /// # Errors
    /// When it cannot be read which server that was.
    pub fn renumbered(&self, routes: &Routes) -> Result<Vec<Renumbered>> {
        let before = self.table.fact(ROUTES)?;
        let Some(before) = before.as_deref().and_then(Routes::decode) else {
            return Ok(Vec::new());
        };
        let groups = self.groups.lock();
        let renumbered = groups.names().filter_map(|name| {
            let (from, to) = (before.numbering_name(name)?, routes.numbering_name(name)?);
            (from != to).then(|| Renumbered {
                group: name.clone(),
                from: from.to_owned(),
                to: to.to_owned(),
            })
        });
        Ok(renumbered.collect())
    }

    /// Notes which server each group's numbers come from.  What is kept of these groups goes, as they have other numbers now.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub fn take_routes(&self, routes: &Routes, others: &[Renumbered]) -> Result<()> {
        for other in others {
            self.remove_group(&other.group);
        }
        let octets = routes.encode();
        self.table
            .change(true, |change| change.put_fact(ROUTES, &octets))
    }

    /// Some of a group's numbers with the message-ids that they have, far apart.
    #[must_use]
    pub fn sampled(&self, group: &str, most: usize) -> Vec<(ArticleNumber, Box<[u8]>)> {
        let mut firsts = Vec::new();
        let looked = self.table.each_block(group, |number, block| {
            let line = block.lines().next();
            firsts.extend(line.and_then(|(place, line)| {
                let number = number
                    .checked_mul(BLOCK_NUMBERS)?
                    .checked_add(place.into())?;
                Some((ArticleNumber(number), message_id(line)?.into()))
            }));
        });
        self.told(looked);
        let step = firsts.len().div_ceil(most.max(1)).max(1);
        firsts.into_iter().rev().step_by(step).collect()
    }

    /// Keeps the list of a server's groups, as it is given.
    pub(crate) fn put_list(&self, server: &str, octets: &[u8]) {
        let name = format!("{LIST}{server}");
        let put = self
            .table
            .change(false, |change| change.put_fact(&name, octets));
        self.told(put);
    }

    /// The list of a server's groups that is kept.
    pub(crate) fn list(&self, server: &str) -> Option<Vec<u8>> {
        self.told(self.table.fact(&format!("{LIST}{server}")))?
    }

    /// The hash under which an article is kept.
    #[must_use]
    pub fn id_hash(&self, id: MessageId<'_>) -> IdHash {
        id_hash(&self.key, id)
    }

    /// An article, which is asked for at this time, if it is in memory; never waits.
    #[must_use]
    pub fn article_in_memory(&self, id: &IdHash, now: UnixTime) -> Option<Arc<Kept>> {
        let kept = self.in_memory.get(id)?;
        self.wanted.asked(id, &kept, now);
        Some(kept)
    }

    /// An article that nobody asks for, if it is in memory; never waits.
    #[must_use]
    pub fn article_at_hand(&self, id: &IdHash) -> Option<Arc<Kept>> {
        self.in_memory.peek(id)
    }

    /// What is kept, in figures; may wait for the disk.
    #[must_use]
    pub fn figures(&self) -> KeptFigures {
        let (overview_octets, groups) = self.groups.lock().figures();
        let files = self.reader.facts();
        let (pins, pinned_octets, pinned_octets_max) = self.pins.figures();
        KeptFigures {
            articles: self.told(self.table.articles()).unwrap_or_default(),
            octets: files.iter().map(|file| file.live_octets).sum(),
            overview_octets,
            groups,
            memory_octets: self.in_memory.weight(),
            overview_memory_octets: self.blocks_in_memory.weight(),
            is_broken: self.table.is_broken(),
            policy: self.policy(),
            wanted_octets: self.wanted.figures().0,
            written: self.articles.lock().written(),
            pins,
            pinned_octets,
            pinned_octets_max,
        }
    }

    /// Makes all that is kept durable.  Where the disk failed it is tried every so many times to go on.
    pub fn checkpoint(&self) {
        if self.table.is_broken() {
            let vain = self.vain_checkpoints.fetch_add(1, Ordering::AcqRel) + 1;
            if vain.is_multiple_of(CHECKPOINTS_IN_VAIN) {
                self.go_on();
            }
            return;
        }
        let mut articles = self.articles.lock();
        let learnt = self.wanted.learn(&self.table);
        self.told(learnt.and_then(|()| articles.checkpoint(&self.table)));
    }

    /// Goes on with what was durable when the disk failed, if it can be had.
    fn go_on(&self) {
        let articles = self.articles.lock();
        let _changing = self.changing.lock();
        if !self.table.reopened() {
            return;
        }
        let overview_octets_max = self.groups.lock().octets_max();
        let gone_on = articles.go_on(&self.table, &self.pins);
        let read = gone_on.and_then(|()| Groups::read(&self.table, overview_octets_max));
        // Why it cannot be used once more was told when it failed first.
        if let Ok(groups) = read {
            *self.groups.lock() = groups;
            self.blocks_in_memory.clear();
            self.wanted.unlearn();
            self.table.goes_on();
        }
    }

    /// What went wrong is told, and nothing more is made of it.
    fn told<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            // That was told when it happened.
            Err(_) if self.table.is_broken() => None,
            Err(error) => {
                if let Some(more) = self.lines.admit() {
                    tracing::error!(target: "newsreel::cache", %error, more, "cannot be kept");
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
