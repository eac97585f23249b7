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

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use newsreel_host::{Disk, Lock, OpenMode, random_bytes};
use newsreel_index::id_hash;
use newsreel_net::LineLimit;
use newsreel_store::StoreReader;
use newsreel_wire::article::{ArticleFacts, Headers};
use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, IdHash, MessageId, UnixTime};
use parking_lot::{Mutex, RwLock};
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
pub(crate) use backend::{OnDisk, is_fault_of_disk};
pub(crate) use block::bare_line;
pub use block::{BLOCK_NUMBERS, Block, each_of, place_of, places_in};
pub use error::KeepError;
pub(crate) use error::is_of_disk;
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

/// So many groups that are not there are noted at most while nobody knows what the table has: readers name them.  One more comes
/// back with its table, until the server is asked for it again.
const UNREAD_GONE_MAX: usize = 10_000;

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

/// The groups whose numbers come from another server than by the routes that were noted.
fn renumbered(before: Option<Vec<u8>>, routes: &Routes, groups: &Groups) -> Vec<Renumbered> {
    let Some(before) = before.as_deref().and_then(Routes::decode) else {
        return Vec::new();
    };
    let renumbered = groups.names().filter_map(|name| {
        let (from, to) = (before.numbering_name(name)?, routes.numbering_name(name)?);
        (from != to).then(|| Renumbered {
            group: name.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    });
    renumbered.collect()
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
    disk: Arc<dyn Disk>,
    settings: KeepSettings,
    /// Of the table; until that can be used one for what is in memory only.
    key: RwLock<[u8; 32]>,
    made: Made,
    table: Table,
    reader: OnceLock<Arc<StoreReader>>,
    /// None: the disk failed at the start, and has not come back.
    articles: Mutex<Option<Articles>>,
    /// Which server each group's numbers come from, as far as that was said.
    routes: Mutex<Option<Routes>>,
    wanted: Wanted,
    pins: Pins,
    /// Held for a moment only: never while the disk is waited for.
    groups: Mutex<Groups>,
    /// Groups that went or became others since the table was durable: it may have what they were.
    renewed: Mutex<HashSet<Box<str>>>,
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
    /// Opens what there is; what cannot be used is removed, and begun anew.  Where the disk fails or is full nothing is removed, and
    /// nothing is kept but in memory until it can be used.
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
        let keep = Self::closed(disk, settings, lock)?;
        let begun = keep.begin(&mut keep.articles.lock());
        match begun {
            Err(error) if error.is_of_disk() => keep.table.failed(&error),
            other => other?,
        }
        Ok(keep)
    }

    /// With nothing in it that lies on the disk.
    fn closed(disk: &Arc<dyn Disk>, settings: &KeepSettings, lock: Box<dyn Lock>) -> Result<Self> {
        let (memory, blocks) = (settings.memory_octets, settings.overview_memory_octets);
        let path = settings.directory.join(TABLE);
        let (policy, octets) = (settings.policy, settings.octets);
        Ok(Self {
            disk: Arc::clone(disk),
            settings: settings.clone(),
            key: RwLock::new(random_bytes()?),
            made: Made {
                wanted: settings.makes_lines,
                octets_max: match settings.large_octets {
                    0 => u64::MAX,
                    octets => octets,
                },
            },
            table: Table::closed(disk, &path, settings.table_memory_octets),
            reader: OnceLock::new(),
            articles: Mutex::default(),
            routes: Mutex::default(),
            wanted: Wanted::new(policy, octets, settings.policy_articles_max),
            pins: Pins::new(settings.pinned_octets.min(octets / 2)),
            groups: Mutex::new(Groups::new(settings.overview_octets)),
            renewed: Mutex::default(),
            changing: Mutex::default(),
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

    /// Takes what lies on the disk; what of it cannot be used is removed, but where the disk failed.
    fn begin(&self, begun: &mut Option<Articles>) -> Result<()> {
        let directory = &self.settings.directory;
        let (articles, key) = match self.parts() {
            Err(error) if !error.is_of_disk() => {
                tracing::error!(target: "newsreel::cache", %error, "the cache begins anew");
                self.table.close();
                articles::remove_all(self.disk.as_ref(), directory)?;
                self.parts()?
            }
            parts => parts?,
        };
        self.disk.sync_dir(directory)?;
        self.pins.read(&self.table)?;
        // What is in memory is of the key before.
        *self.key.write() = key;
        self.in_memory.clear();
        self.reload_groups()?;
        self.reader.get_or_init(|| articles.reader());
        *begun = Some(articles);
        Ok(())
    }

    fn parts(&self) -> Result<(Articles, [u8; 32])> {
        let (table, settings) = (&self.table, &self.settings);
        table.open(OpenMode::CreateOrOpen)?;
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
        match there {
            Some(there) if there != segment => {
                return Err(KeepError::Settings(outgrown(settings, there)));
            }
            Some(_) => {}
            None => {
                let octets = segment.to_le_bytes();
                table.change(true, |change| change.put_fact(SEGMENT_OCTETS, &octets))?;
            }
        }
        let wrong = || KeepError::Settings("its identity is damaged".to_owned());
        let (spool, key) = identity.split_first_chunk().ok_or_else(wrong)?;
        let key = key.try_into().map_err(|_| wrong())?;
        let articles = Articles::open(&self.disk, settings, (*spool, segment), table)?;
        Ok((articles, key))
    }

    /// The groups whose numbers come from another server than before, by these routes; none while the table cannot be used: it is
    /// looked at again before what lies there is gone on with.
    ///
    /// # Errors
    /// When it cannot be read which server that was.
    pub fn renumbered(&self, routes: &Routes) -> Result<Vec<Renumbered>> {
        match self.table.fact(ROUTES) {
            Err(_) if self.table.is_broken() => Ok(Vec::new()),
            before => Ok(renumbered(before?, routes, &self.groups.lock())),
        }
    }

    /// Notes which server each group's numbers come from.  What is kept of these groups goes, as they have other numbers now.
    ///
    /// # Errors
    /// When it cannot be noted, but for a table that cannot be used: it is noted when it can.
    pub fn take_routes(&self, routes: &Routes, others: &[Renumbered]) -> Result<()> {
        for other in others {
            self.renew_group(&other.group, false);
        }
        *self.routes.lock() = Some(routes.clone());
        match self.note_routes(routes) {
            Err(_) if self.table.is_broken() => Ok(()),
            noted => noted,
        }
    }

    fn note_routes(&self, routes: &Routes) -> Result<()> {
        let octets = routes.encode();
        if self.table.fact(ROUTES)?.as_ref() == Some(&octets) {
            return Ok(());
        }
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

    /// Keeps the list of a server's groups, as it is given where it can be; whether it is on disk.
    pub(crate) fn put_list(&self, server: &str, octets: impl FnOnce() -> Vec<u8>) -> bool {
        let name = format!("{LIST}{server}");
        let put = self
            .table
            .change(true, |change| change.put_fact(&name, &octets()));
        self.told(put).is_some()
    }

    /// The list of a server's groups that is kept.
    pub(crate) fn list(&self, server: &str) -> Option<Vec<u8>> {
        self.told(self.table.fact(&format!("{LIST}{server}")))?
    }

    /// The hash under which an article is kept.
    #[must_use]
    pub fn id_hash(&self, id: MessageId<'_>) -> IdHash {
        id_hash(&self.key.read(), id)
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
        let files = self.reader.get().map(|reader| reader.facts());
        let (pins, pinned_octets, pinned_octets_max) = self.pins.figures();
        KeptFigures {
            articles: self.told(self.table.articles()).unwrap_or_default(),
            octets: files.iter().flatten().map(|file| file.live_octets).sum(),
            overview_octets,
            groups,
            memory_octets: self.in_memory.weight(),
            overview_memory_octets: self.blocks_in_memory.weight(),
            is_broken: self.table.is_broken(),
            policy: self.policy(),
            wanted_octets: self.wanted.figures().0,
            written: self
                .articles
                .lock()
                .as_ref()
                .map(Articles::written)
                .unwrap_or_default(),
            pins,
            pinned_octets,
            pinned_octets_max,
        }
    }

    /// Makes all that is kept durable.  Where the disk failed it is tried every so many times to go on; a table that is damaged begins
    /// anew at once.
    pub fn checkpoint(&self) {
        if self.table.is_broken() {
            let vain = self.vain_checkpoints.fetch_add(1, Ordering::AcqRel) + 1;
            if self.table.is_damaged() || vain.is_multiple_of(CHECKPOINTS_IN_VAIN) {
                self.reopen();
            }
            return;
        }
        let mut articles = self.articles.lock();
        // It may have failed while somebody else had them.
        let Some(articles) = articles.as_mut().filter(|_| !self.table.is_broken()) else {
            return;
        };
        let renewed = std::mem::take(&mut *self.renewed.lock());
        let learnt = self.wanted.learn(&self.table);
        let durable = learnt.and_then(|()| articles.checkpoint(&self.table));
        if self.told(durable).is_none() {
            self.renewed.lock().extend(renewed);
        }
    }

    /// Goes on with what was durable when the disk failed, if it can be had, and anew where it is damaged.
    fn reopen(&self) {
        let mut articles = self.articles.lock();
        let _changing = self.changing.lock();
        if !self.table.may_come_back() {
            return;
        }
        let reopened = match articles.as_ref() {
            Some(articles) => self.reopen_with(articles),
            None => self.begin(&mut articles),
        };
        match reopened {
            Ok(()) => self.table.came_back(),
            Err(error) => self.table.failed(&error),
        }
    }

    fn reopen_with(&self, articles: &Articles) -> Result<()> {
        // Of one that is damaged that was told.
        if !self.table.is_damaged() {
            let opened = self.table.open(OpenMode::ReadWrite);
            match opened.and_then(|()| self.go_on_with(articles)) {
                // What it says of groups may be theirs who number them otherwise: that is for the next start.
                Err(error) if !error.is_of_disk() && !matches!(error, KeepError::Settings(_)) => {
                    tracing::error!(target: "newsreel::cache", %error, "the cache begins anew");
                }
                done => return done,
            }
        }
        self.table.close();
        articles::remove_table(self.disk.as_ref(), &self.settings.directory)?;
        self.table.open(OpenMode::CreateOrOpen)?;
        self.go_on_with(articles)
    }

    fn go_on_with(&self, articles: &Articles) -> Result<()> {
        if self.table.fact(IDENTITY)?.is_none() {
            // It is new: the segments go on, with nothing in them that is known.
            articles.name(&self.table, &self.key.read())?;
        }
        articles.resume(&self.table, &self.pins)?;
        self.reload_groups()
    }

    /// What the table says becomes known in memory together with what was told since that was durable, unless its numbers are those
    /// of other servers than now.
    fn reload_groups(&self) -> Result<()> {
        let mut groups = Groups::read(&self.table, self.settings.overview_octets)?;
        let last_use = self.table.last_use()?;
        self.remove_renewed(&mut groups)?;
        let routes = self.routes.lock().clone();
        if let Some(routes) = &routes {
            let others = renumbered(self.table.fact(ROUTES)?, routes, &groups);
            if let Some(first) = others.first() {
                let error = KeepError::Settings(format!(
                    "the numbers of {} groups, {} among them, come from another server than before",
                    others.len(),
                    first.group
                ));
                self.table.stays_closed(&error);
                self.blocks_in_memory.clear();
                return Err(error);
            }
            self.note_routes(routes)?;
        }
        self.blocks_in_memory.clear();
        self.take_newer(&mut groups)?;
        self.groups.lock().become_those(groups);
        self.wanted.unlearn(last_use);
        Ok(())
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
