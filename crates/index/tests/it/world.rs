//! Views on a memory disk beside a model of plain maps, fed from one log that can be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::{Disk, MemoryDisk};
use newsreel_index::{
    Applier, ArticleRow, Column, Error, Frozen, GroupChange, GroupFacts, GroupRow, HistoryEntry,
    IndexConfig, Liveness, PackFacts, Population, Views, Wait,
};
use newsreel_wire::{
    ArticleNumber, BufferId, GroupId, IdHash, Position, Sequence, Token, TokenParts, UnixTime,
};
use parking_lot::Mutex;

pub(crate) const DIR: &str = "/spool/index";
pub(crate) const SPOOL: [u8; 16] = [7; 16];
const ALL: (ArticleNumber, ArticleNumber) = (ArticleNumber(0), ArticleNumber(u64::MAX));

/// Floors that a test moves; four buffers.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    floors: [AtomicU64; 4],
    epoch: AtomicU64,
    /// The time of the test.
    now: AtomicU64,
    /// When which floor was raised how far.
    raised: Mutex<Vec<(u64, u16, u64)>>,
}

impl Marks {
    pub(crate) fn raise(&self, buffer: u16, floor: u64) {
        self.floors[usize::from(buffer)].fetch_max(floor, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let now = self.now.load(Ordering::SeqCst);
        self.raised.lock().push((now, buffer, floor));
    }

    /// When the floor rose above this place.
    fn went(&self, token: &Token) -> Option<u64> {
        let raised = self.raised.lock();
        let above = raised
            .iter()
            .find(|(_, buffer, floor)| *buffer == token.buffer().0 && *floor > token.position().0);
        above.map(|(time, ..)| *time)
    }
}

impl Liveness for Marks {
    fn floor(&self, buffer: BufferId) -> Position {
        Position(self.floors[usize::from(buffer.0)].load(Ordering::SeqCst))
    }

    fn cycle_octets(&self, _: BufferId) -> u64 {
        1 << 20
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }
}

/// Limits so small that little data makes many runs and blocks.
pub(crate) fn small() -> IndexConfig {
    IndexConfig {
        runs_max: 4,
        merge_runs_max: 3,
        block_rows_max: 6,
        block_text_bytes_max: 300,
        compress_rows_min: 60,
        step_bytes: 2000,
        cache_bytes_max: 64 << 10,
        history_cache_bytes_max: 64 << 10,
        facts_groups_max: 64,
        remember_s: 1000,
        ..IndexConfig::default()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Article {
    pub(crate) key: u64,
    pub(crate) token: Token,
    pub(crate) arrival: u64,
    pub(crate) places: Vec<(GroupId, ArticleNumber)>,
}

impl Article {
    pub(crate) fn id(&self) -> String {
        format!("<{}@t.example>", self.key)
    }

    /// Some texts repeat and compress, some are long, one is empty.
    pub(crate) fn text(&self) -> String {
        match self.key % 7 {
            0 => String::new(),
            1 => format!("Re: {}", "again ".repeat(self.key as usize % 90)),
            _ => format!("Subject {}\tfrom\t{}", self.key, hash(self.key)),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Record {
    Article(Article),
    Remember(u64, u64),
    Withdraw(Article),
    Make(u32, String),
    Change(u32, String),
    Remove(u32),
    Raise(u32, u64),
    Move(Moved),
}

/// Articles that lie elsewhere from now on, and the pack that says so.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    /// With their new tokens; those that were withdrawn.
    pub(crate) articles: Vec<(Article, bool)>,
    /// Places that are offered no more.
    pub(crate) left: Vec<(Token, GroupId, ArticleNumber)>,
    pub(crate) old: u64,
    pub(crate) new: Option<PackFacts>,
}

pub(crate) fn hash(key: u64) -> IdHash {
    let mut octets = [0; 16];
    for (nth, half) in octets.chunks_mut(8).enumerate() {
        let mut z = (key * 2 + nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        half.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    IdHash(octets)
}

/// What the maps know of a group.
#[derive(Debug, Default, Clone)]
pub(crate) struct GroupModel {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) is_removed: bool,
    pub(crate) high: u64,
    pub(crate) rows: BTreeMap<u64, Article>,
    pub(crate) withdrawn: BTreeSet<u64>,
}

/// The maps.
#[derive(Debug, Default, Clone)]
pub(crate) struct Model {
    pub(crate) groups: BTreeMap<u32, GroupModel>,
    pub(crate) history: BTreeMap<u64, (Option<Token>, u64)>,
}

impl Model {
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Article(article) => {
                let entry = (Some(article.token), article.arrival);
                self.history.insert(article.key, entry);
                for (group, number) in &article.places {
                    let group = self.groups.entry(group.0).or_default();
                    group.rows.insert(number.0, article.clone());
                    group.high = number.0;
                }
            }
            Record::Remember(key, arrival) => {
                self.history.insert(*key, (None, *arrival));
            }
            Record::Withdraw(article) => {
                self.history.insert(article.key, (None, article.arrival));
                for (group, number) in &article.places {
                    let group = self.groups.entry(group.0).or_default();
                    group.withdrawn.insert(number.0);
                }
            }
            Record::Make(id, name) => {
                let former = self.groups.values().filter(|group| group.name == *name);
                let high = former.map(|group| group.high).max().unwrap_or(0);
                let made = GroupModel {
                    name: name.clone(),
                    status: "y".to_owned(),
                    high,
                    ..GroupModel::default()
                };
                self.groups.insert(*id, made);
            }
            Record::Change(id, status) => {
                self.groups
                    .entry(*id)
                    .or_default()
                    .status
                    .clone_from(status);
            }
            Record::Remove(id) => self.groups.entry(*id).or_default().is_removed = true,
            Record::Raise(id, high) => {
                let group = self.groups.entry(*id).or_default();
                group.high = group.high.max(*high);
            }
            Record::Move(moved) => self.apply_move(moved),
        }
    }

    fn apply_move(&mut self, moved: &Moved) {
        for (article, is_withdrawn) in &moved.articles {
            let token = Some(article.token).filter(|_| !is_withdrawn);
            self.history.insert(article.key, (token, article.arrival));
            for (group, number) in &article.places {
                let group = self.groups.entry(group.0).or_default();
                group.rows.insert(number.0, article.clone());
            }
        }
        for (_, group, number) in &moved.left {
            let group = self.groups.entry(group.0).or_default();
            group.withdrawn.insert(number.0);
        }
    }
}

/// The views, the model, and the log that made both.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) config: IndexConfig,
    pub(crate) marks: Arc<Marks>,
    pub(crate) model: Model,
    pub(crate) log: Vec<Record>,
    pub(crate) views: Arc<Views>,
    pub(crate) applier: Applier,
    pub(crate) frozen: Option<Frozen>,
    pub(crate) next_key: u64,
    pub(crate) positions: [u64; 4],
    pub(crate) time: u64,
}

fn open(disk: &Arc<dyn Disk>, config: &IndexConfig, marks: &Arc<Marks>) -> (Arc<Views>, u64) {
    let liveness = || Arc::clone(marks) as Arc<dyn Liveness>;
    let open = || {
        let disk = Arc::clone(disk);
        Views::open(disk, Path::new(DIR), config.clone(), SPOOL, liveness())
    };
    let opened = open().or_else(|error| {
        // The power went while the first files were written.
        assert!(matches!(error, Error::ManifestLost { .. }), "{error}");
        let (place, log_from) = (Path::new(DIR), Sequence(1));
        let to_come = Views::is_manifest_to_come(Arc::clone(disk), place, SPOOL, log_from);
        assert!(to_come.unwrap());
        let views = Views::open_anew(Arc::clone(disk), place, config.clone(), SPOOL, liveness())?;
        Ok::<_, Error>((views, None))
    });
    let (views, checkpoint) = opened.unwrap();
    (views, checkpoint.map_or(0, |sequence| sequence.0))
}

impl World {
    pub(crate) fn new(disk: &Arc<dyn Disk>, config: IndexConfig) -> Self {
        let marks = Arc::new(Marks::default());
        let (views, checkpoint) = open(disk, &config, &marks);
        assert_eq!(checkpoint, 0);
        views.sweep().unwrap();
        let mut world = Self {
            applier: Applier::new(Arc::clone(&views)),
            views,
            config,
            marks,
            model: Model::default(),
            log: Vec::new(),
            frozen: None,
            next_key: 1,
            positions: [0; 4],
            time: 1_000_000,
        };
        world.pass(0);
        world
    }

    /// A world to which the same has happened, to be [reopened](World::reopen) on what is left of the other's disk.
    pub(crate) fn with_history_of(other: &Self) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        Self {
            marks: Arc::clone(&other.marks),
            model: other.model.clone(),
            log: other.log.clone(),
            next_key: other.next_key,
            positions: other.positions,
            time: other.time,
            ..Self::new(&disk, other.config.clone())
        }
    }

    /// A world with groups 0..count.
    pub(crate) fn with_groups(disk: &Arc<dyn Disk>, config: IndexConfig, count: u32) -> Self {
        let mut world = Self::new(disk, config);
        for id in 0..count {
            world.record(Record::Make(id, format!("group.n{id}")));
        }
        world
    }

    /// Opens the views again from a disk and replays the log behind its checkpoint.
    pub(crate) fn reopen(&mut self, disk: &Arc<dyn Disk>) {
        self.frozen = None;
        let (views, checkpoint) = open(disk, &self.config, &self.marks);
        self.views = views;
        self.applier = Applier::new(Arc::clone(&self.views));
        self.views.set_time(UnixTime(self.time));
        assert!(checkpoint as usize <= self.log.len());
        for record in &self.log[checkpoint as usize..] {
            apply(&mut self.applier, record);
        }
        self.applier.publish().unwrap();
        self.views.sweep().unwrap();
    }

    /// Time goes on.
    pub(crate) fn pass(&mut self, seconds: u64) {
        self.time += seconds;
        self.marks.now.store(self.time, Ordering::SeqCst);
        self.views.set_time(UnixTime(self.time));
    }

    pub(crate) fn record(&mut self, record: Record) {
        self.model.apply(&record);
        apply(&mut self.applier, &record);
        self.log.push(record);
    }

    /// One article into these groups, in a buffer.
    pub(crate) fn article(&mut self, groups: &[u32], buffer: u16) -> Article {
        let mut places = Vec::new();
        for id in groups {
            let Some(group) = self.model.groups.get(id) else {
                continue;
            };
            let filed = places.iter().any(|(filed, _)| *filed == GroupId(*id));
            if !group.is_removed && !filed {
                places.push((GroupId(*id), ArticleNumber(group.high + 1)));
            }
        }
        let position = &mut self.positions[usize::from(buffer)];
        *position += 10;
        let parts = TokenParts {
            method: 1,
            buffer: BufferId(buffer),
            len: 500,
            position: Position(*position),
            ..TokenParts::default()
        };
        let article = Article {
            key: self.next_key,
            token: Token::new(parts),
            arrival: self.time,
            places,
        };
        self.next_key += 1;
        self.record(Record::Article(article.clone()));
        article
    }

    /// Many articles, spread over the groups and buffers.
    pub(crate) fn articles(&mut self, count: u64, groups: u32) {
        for nth in 0..count {
            let mixed = hash(self.next_key * 31 + nth).prefix();
            let first = (mixed % u64::from(groups)) as u32;
            let second = (mixed >> 20) as u32 % groups;
            let buffer = (self.next_key / 5 % 3) as u16;
            let both = [first, second];
            let take = 1 + usize::from(mixed.is_multiple_of(5));
            self.article(&both[..take], buffer);
        }
        self.applier.publish().unwrap();
    }

    pub(crate) fn sequence(&self) -> Sequence {
        Sequence(self.log.len() as u64)
    }

    pub(crate) fn freeze(&mut self) {
        let sequence = self.sequence();
        self.frozen = Some(self.applier.freeze(sequence).unwrap());
    }

    pub(crate) fn install(&mut self) {
        if let Some(mut frozen) = self.frozen.take() {
            frozen.write().unwrap();
            self.views.install(frozen).unwrap();
        }
    }

    pub(crate) fn marks_of(&self, buffer: u16) -> u64 {
        self.marks.floor(BufferId(buffer)).0
    }

    pub(crate) fn checkpoint(&mut self) {
        self.freeze();
        self.install();
    }

    pub(crate) fn compact(&self) {
        let mut steps = 0;
        while self.views.compact_step().unwrap() {
            steps += 1;
            assert!(steps < 100_000, "compaction does not come to an end");
        }
    }

    pub(crate) fn is_live(&self, token: &Token) -> bool {
        token.position() >= self.marks.floor(token.buffer())
    }

    /// The articles of a group that must be offered.
    pub(crate) fn live(&self, group: &GroupModel) -> BTreeMap<u64, Article> {
        let mut rows = group.rows.clone();
        rows.retain(|number, article| {
            self.is_live(&article.token) && !group.withdrawn.contains(number)
        });
        rows
    }

    /// Compares everything the views answer with the maps.
    pub(crate) fn check(&mut self) {
        self.applier.publish().unwrap();
        for (id, group) in &self.model.groups {
            if group.is_removed {
                assert!(!self.views.groups().exists(GroupId(*id)), "group {id}");
            } else {
                self.check_group(GroupId(*id), group);
            }
        }
        self.check_names();
        self.check_history();
        self.check_census();
        self.check_places();
        assert_eq!(self.views.damaged(), []);
    }

    fn check_group(&self, id: GroupId, group: &GroupModel) {
        let overview = self.views.overview();
        let live = self.live(group);
        let facts = self.views.group_facts(id, Wait::Yes).unwrap();
        let low = live.keys().next().copied().unwrap_or(group.high + 1);
        let expect = GroupFacts {
            low: ArticleNumber(low),
            high: ArticleNumber(group.high),
            count: live.len() as u64,
        };
        assert_eq!(facts, expect, "group {id}");
        let mut numbers = Vec::new();
        let more = overview.numbers(id, ALL, usize::MAX, Wait::Yes, &mut numbers);
        assert_eq!(more.unwrap(), None);
        let numbers: Vec<u64> = numbers.iter().map(|number| number.0).collect();
        assert_eq!(
            numbers,
            live.keys().copied().collect::<Vec<_>>(),
            "group {id}"
        );
        let mut lines = Vec::new();
        let more = overview.lines(id, ALL, usize::MAX, Wait::Yes, &mut lines);
        assert_eq!(more.unwrap(), None);
        let expect = live
            .iter()
            .map(|(number, article)| (*number, article.text()));
        assert_eq!(
            split_lines(&lines),
            expect.collect::<Vec<_>>(),
            "group {id}"
        );
        self.check_pieces(id, &live);
        self.check_columns(id, group, &live);
        self.check_news(id, &live);
    }

    /// How much lies in each buffer.
    pub(crate) fn population(&self) -> BTreeMap<BufferId, Population> {
        let mut expect: BTreeMap<BufferId, Population> = BTreeMap::new();
        let tokens = self.model.history.values().filter_map(|(token, _)| *token);
        for token in tokens.filter(|token| self.is_live(token)) {
            let buffer = expect.entry(token.buffer()).or_default();
            buffer.articles += 1;
            buffer.octets += u64::from(token.len());
        }
        expect
    }

    fn check_census(&self) {
        let census = self.views.history().census(u64::MAX).unwrap();
        assert_eq!((census.buffers, census.is_exact), (self.population(), true));
    }

    /// The same answers in small pieces, over a part of the range.
    fn check_pieces(&self, id: GroupId, live: &BTreeMap<u64, Article>) {
        let overview = self.views.overview();
        let bounds = (
            live.keys().nth(live.len() / 4),
            live.keys().nth(live.len() * 3 / 4),
        );
        let (Some(&low), Some(&high)) = bounds else {
            return;
        };
        let expect: Vec<u64> = live.range(low..=high).map(|(number, _)| *number).collect();
        let (mut from, mut numbers) = (ArticleNumber(low), Vec::new());
        let to = ArticleNumber(high);
        loop {
            let limit = numbers.len() + 3;
            let next = overview.numbers(id, (from, to), limit, Wait::Yes, &mut numbers);
            match next.unwrap() {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(
            numbers.iter().map(|n| n.0).collect::<Vec<_>>(),
            expect,
            "group {id}"
        );
        let (mut from, mut numbers) = (ArticleNumber(low), Vec::new());
        loop {
            let mut lines = Vec::new();
            let next = overview.lines(id, (from, to), 200, Wait::Yes, &mut lines);
            let lines = split_lines(&lines);
            let before_last = lines.iter().rev().skip(1).map(|(_, text)| text.len());
            assert!(
                before_last.sum::<usize>() < 200,
                "no more than was asked for"
            );
            numbers.extend(lines.iter().map(|(number, _)| *number));
            match next.unwrap() {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(numbers, expect, "group {id}");
    }

    fn check_columns(&self, id: GroupId, group: &GroupModel, live: &BTreeMap<u64, Article>) {
        let overview = self.views.overview();
        let mut message_id = Vec::new();
        let numbers = group
            .rows
            .keys()
            .copied()
            .chain([0, group.high + 1, u64::MAX]);
        for number in numbers {
            let at = ArticleNumber(number);
            let expect = |article: Option<(&u64, &Article)>| {
                article.map(|(number, article)| (*number, article.token, article.id()))
            };
            let see = |column: Option<Column>, id: &[u8]| {
                let id = String::from_utf8(id.to_vec()).unwrap();
                column.map(|column| (column.number.0, column.token, id))
            };
            let column = overview.column(id, at, Wait::Yes, &mut message_id).unwrap();
            let seen = see(column, &message_id);
            assert_eq!(
                seen,
                expect(live.get_key_value(&number)),
                "group {id} number {number}"
            );
            if let (Some(column), Some(article)) = (column, live.get(&number)) {
                assert_eq!(column.arrival, UnixTime(article.arrival));
                assert_eq!(column.flags, (article.key % 1000) as u16);
            }
            let next = overview
                .next_live(id, at, Wait::Yes, &mut message_id)
                .unwrap();
            let above = number
                .checked_add(1)
                .and_then(|from| live.range(from..).next());
            assert_eq!(
                see(next, &message_id),
                expect(above),
                "next of {id}:{number}"
            );
            let prev = overview
                .prev_live(id, at, Wait::Yes, &mut message_id)
                .unwrap();
            let below = live.range(..number).next_back();
            assert_eq!(
                see(prev, &message_id),
                expect(below),
                "prev of {id}:{number}"
            );
        }
    }

    fn check_news(&self, id: GroupId, live: &BTreeMap<u64, Article>) {
        let since = self.time.saturating_sub(30);
        let mut seen = Vec::new();
        let mut from = ArticleNumber(0);
        while let Some(next) = self
            .views
            .overview()
            .newnews(id, from, UnixTime(since), Wait::Yes, |token, id| {
                seen.push((*token, String::from_utf8(id.to_vec()).unwrap()));
                if seen.len() % 5 == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap()
        {
            from = next;
        }
        let news = live.values().filter(|article| article.arrival >= since);
        let expect: Vec<_> = news.map(|article| (article.token, article.id())).collect();
        assert_eq!(seen, expect, "group {id}");
    }

    fn check_names(&self) {
        let mut names = Vec::new();
        let more = self.views.groups().list(None, "", usize::MAX, |group| {
            names.push((group.name().to_owned(), group.status().to_owned()));
        });
        assert!(!more);
        let there = self.model.groups.values().filter(|group| !group.is_removed);
        let mut expect: Vec<_> = there
            .map(|group| (group.name.clone(), group.status.clone()))
            .collect();
        expect.sort();
        assert_eq!(names, expect);
        for (id, group) in &self.model.groups {
            assert_eq!(
                self.views.groups().high(GroupId(*id)),
                ArticleNumber(group.high)
            );
            let found = self.views.groups().by_name(&group.name);
            let found = found.filter(|found| found.id() == GroupId(*id));
            assert_eq!(found.is_some(), !group.is_removed, "{}", group.name);
        }
    }

    fn check_history(&self) {
        for (key, (token, arrival)) in &self.model.history {
            let seen = self.views.history().lookup(&hash(*key)).unwrap();
            let live = token.filter(|token| self.is_live(token));
            // Of what was overwritten the time of that counts.
            let went = token.and_then(|token| self.marks.went(&token));
            let since = went.unwrap_or(0).max(*arrival);
            let is_old = since + self.config.remember_s < self.time;
            let Some(seen) = seen else {
                assert!(live.is_none() && is_old, "key {key} is forgotten");
                continue;
            };
            let arrival = UnixTime(*arrival);
            let expect = HistoryEntry {
                token: live,
                arrival,
            };
            assert_eq!(seen, expect, "key {key}");
        }
        for key in 0..50 {
            let unknown = hash(1_000_000 + key);
            assert_eq!(self.views.history().lookup(&unknown).unwrap(), None);
        }
    }
}

/// Numbers and texts of overview lines.
pub(crate) fn split_lines(lines: &[u8]) -> Vec<(u64, String)> {
    let lines = str::from_utf8(lines).unwrap().split_inclusive("\r\n");
    lines
        .map(|line| {
            let (number, text) = line.split_once('\t').unwrap();
            let text = text.strip_suffix("\r\n").unwrap();
            (number.parse().unwrap(), text.to_owned())
        })
        .collect()
}

pub(crate) fn row<'a>(article: &'a Article, id: &'a str, text: &'a str) -> ArticleRow<'a> {
    ArticleRow {
        hash: hash(article.key),
        token: article.token,
        arrival: UnixTime(article.arrival),
        flags: (article.key % 1000) as u16,
        places: &article.places,
        id: id.as_bytes(),
        text: text.as_bytes(),
    }
}

fn apply(applier: &mut Applier, record: &Record) {
    let views = Arc::clone(applier.views());
    if !matches!(record, Record::Article(_)) {
        applier.publish().unwrap();
    }
    match record {
        Record::Article(article) => {
            let (id, text) = (article.id(), article.text());
            applier.article(&row(article, &id, &text)).unwrap();
        }
        Record::Remember(key, arrival) => {
            let arrival = UnixTime(*arrival);
            let entry = HistoryEntry {
                token: None,
                arrival,
            };
            applier.remember(hash(*key), &entry).unwrap();
        }
        Record::Withdraw(article) => {
            let (hash, arrival) = (hash(article.key), UnixTime(article.arrival));
            applier
                .withdraw(hash, &article.token, arrival, &article.places)
                .unwrap();
        }
        Record::Make(id, name) => views
            .groups()
            .make(&GroupRow {
                id: GroupId(*id),
                name,
                status: "y",
                created: UnixTime(5),
                creator: "tester",
                description: "made by a test",
                high: ArticleNumber(0),
            })
            .unwrap(),
        Record::Change(id, status) => views.groups().change(&GroupChange {
            id: GroupId(*id),
            status,
            description: "changed",
            time: UnixTime(6),
            high: ArticleNumber(0),
        }),
        Record::Remove(id) => views.groups().remove(GroupId(*id), UnixTime(7)),
        Record::Move(moved) => {
            for (article, is_withdrawn) in &moved.articles {
                let (hash, arrival) = (hash(article.key), UnixTime(article.arrival));
                applier
                    .moved(hash, &article.token, arrival, *is_withdrawn)
                    .unwrap();
            }
            for (token, group, number) in &moved.left {
                applier.leave(token, &[(*group, *number)]).unwrap();
            }
            applier.repacked(moved.old, moved.new.as_ref()).unwrap();
        }
        Record::Raise(id, high) => {
            views
                .groups()
                .raise_high(GroupId(*id), ArticleNumber(*high));
        }
    }
}
