//! What no section can check alone: keys of different sections that must fit each other.
//!
//! A value that somebody wrote holds in full, or is a problem that names both keys and says what would be right.  A
//! default gives way instead: it becomes what the written keys leave room for, so `config show` prints what is in force.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use newsreel_engine::Mode;
use newsreel_service::posting::PostingClients;
use newsreel_session::SessionConfig;
use newsreel_store::methods::tradspool;
use newsreel_store::{BufferConfig, StoreConfig};

use super::places::nearest;
use super::problem::Problem;
use super::schema;
use super::{Clients, Config};

/// Keys that nobody wrote whose values follow from a key that somebody did, by that key.  Where a value comes from is no
/// part of a configuration: all of these are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived(BTreeMap<String, String>);

impl Derived {
    /// The key that was written, from which this one follows.
    pub(crate) fn written(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What our Path entry and Xref may add to an article, and rounding.
const ADDED_OCTETS: u64 = 4 << 10;

/// By how much longer than it may be old an article is remembered, if nobody says otherwise.
const REMEMBER_MARGIN_S: u64 = 86_400;

/// A configuration whose keys are made to fit each other.
pub(super) struct Across<'c> {
    config: &'c mut Config,
    places: &'c BTreeMap<String, (usize, usize)>,
    unsound: &'c BTreeSet<String>,
    problems: Vec<Problem>,
}

/// One bound of a key: how much, and what sets it.
struct Bound {
    most: u64,
    /// The keys that set it.
    keys: &'static [&'static str],
    /// What of it is too much, as in `more than session.article_bytes_max = 4MiB lets in`.
    because: String,
    /// What would be right.
    right: String,
}

/// The lists of the store.
const STORE: &[&str] = &["buffer", "set", "rule"];

/// Makes defaults fit what is written; what is written and does not fit is a problem.  `places` says where each key
/// stands that is written; `unsound` names what could not be read, so that nothing is told that follows from it.
pub(super) fn settle(
    config: &mut Config,
    places: &BTreeMap<String, (usize, usize)>,
    unsound: &BTreeSet<String>,
) -> Vec<Problem> {
    let mut across = Across {
        config,
        places,
        unsound,
        problems: Vec::new(),
    };
    across.session_memory();
    across.article_octets();
    across.header_octets();
    across.rules();
    across.names();
    across.classes();
    across.log_segment();
    across.remember();
    across.parts();
    across.access();
    across.tls();
    across.problems
}

impl Across<'_> {
    fn is_written(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// A key with its value and, where it stands in the file, its line.
    fn said(&self, key: &str, value: u64) -> String {
        let value = printed(key, value);
        match self.places.get(key) {
            Some((line, _)) => format!("{key} = {value} (line {line})"),
            None => format!("{key} = {value} (the default)"),
        }
    }

    /// Notes from which written key a default's value follows.
    fn follows(&mut self, key: &str, from: &str) {
        let written = match self.is_written(from) {
            true => Some(from.to_owned()),
            false => self.config.derived.0.get(from).cloned(),
        };
        if let Some(written) = written {
            self.config.derived.0.insert(key.to_owned(), written);
        }
    }

    /// Whether a key's value is what was meant: it was read, or it is a default that gives way to such keys only.
    fn is_sound(&self, key: &str) -> bool {
        if self.unsound.iter().any(|other| are_related(key, other)) {
            return false;
        }
        if self.is_written(key) {
            return true;
        }
        let mut gives_way_to = match key {
            "session.article_bytes_max" => &["session.large_articles_bytes_max"][..],
            "articles.octets_max" => &["session.article_bytes_max", "buffer", "set", "rule"],
            "articles.header_octets_max" => &["articles.octets_max"],
            _ => &[],
        }
        .iter();
        gives_way_to.all(|other| self.is_sound(other))
    }

    /// Tells that `key` does not fit `others`, if the values of all are what was meant.
    fn problem(&mut self, key: &str, others: &[&str], what: String, right: String) {
        if !self.is_sound(key) || !others.iter().all(|other| self.is_sound(other)) {
            return;
        }
        let (line, column) = nearest(self.places, key);
        self.problems.push(Problem {
            line,
            column,
            what,
            right,
        });
    }

    /// Holds a value against its bounds: what it becomes.
    fn bounded(&mut self, key: &str, value: u64, bounds: &[Bound]) -> u64 {
        let least = bounds.iter().min_by_key(|bound| bound.most);
        if !self.is_written(key) {
            return match least.filter(|bound| bound.most < value) {
                Some(bound) => {
                    self.follows(key, bound.keys.first().unwrap_or(&key));
                    bound.most
                }
                None => value,
            };
        }
        for bound in bounds.iter().filter(|bound| bound.most < value) {
            let what = format!("{key} = {} is {}", printed(key, value), bound.because);
            self.problem(key, bound.keys, what, bound.right.clone());
        }
        value
    }

    /// Nothing is secured without a certificate and its key.
    fn tls(&mut self) {
        let tls = &self.config.tls;
        let (given, missing): (Vec<_>, Vec<_>) =
            [("tls.certificate", &tls.certificate), ("tls.key", &tls.key)]
                .into_iter()
                .partition(|(_, path)| !path.as_os_str().is_empty());
        let needed_by = match self.config.listen.tls_addresses.is_empty() {
            true if !tls.more.is_empty() => Some("tls.more"),
            true if !tls.clients.as_os_str().is_empty() => Some("tls.clients"),
            true => given.first().map(|(key, _)| *key),
            false => Some("listen.tls_addresses"),
        };
        let (Some(key), Some((missing, _))) = (needed_by, missing.first()) else {
            return;
        };
        let what = format!("{key} is of no use without {missing}");
        let right = "give tls.certificate and tls.key, files in PEM".to_owned();
        self.problem(key, &[missing], what, right);
    }

    /// `[[access]]` decides alone: keys that decide without it would be in force nowhere.
    fn access(&mut self) {
        let mut entries = self.config.access.iter();
        let mut peers = self.config.peer.iter();
        let for_certificates = entries
            .position(|entry| !entry.certificates.is_empty())
            .map(|at| format!("access[{at}].certificates"))
            .or_else(|| {
                let at = peers.position(|peer| !peer.from_certificates.is_empty())?;
                Some(format!("peer[{at}].from_certificates"))
            });
        if let Some(key) = for_certificates
            && self.config.tls.clients.as_os_str().is_empty()
        {
            let what = format!("{key} fits nobody without tls.clients");
            let right = "give tls.clients, the file of the authorities of clients' certificates";
            self.problem(&key, &["tls.clients"], what, right.to_owned());
        }
        let is_a_peers = |name: &str| name.starts_with("[[peer]] ");
        let mut entries = self.config.access.iter();
        if let Some(at) = entries.position(|entry| is_a_peers(&entry.name)) {
            let what =
                format!("access[{at}].name begins with [[peer]], as the entries of peers do");
            self.problem(
                &format!("access[{at}].name"),
                &[],
                what,
                "give it another name".to_owned(),
            );
        }
        if self.config.access.is_empty() {
            return;
        }
        // A default that is written says nothing else than no line.
        let says = [
            (
                "server.clients",
                self.config.server.clients != Clients::default(),
            ),
            (
                "posting.clients",
                self.config.posting.clients != PostingClients::default(),
            ),
        ];
        for (key, says) in says {
            if says {
                let what = format!("{key} decides nothing beside [[access]]");
                let right = "take it out; the entries of [[access]] say who may do what".to_owned();
                self.problem(key, &["access"], what, right);
            }
        }
    }

    /// `session.large_articles_bytes_max`: room for one article while its chunk grows, or none ever comes in.
    fn session_memory(&mut self) {
        const KEY: &str = "session.large_articles_bytes_max";
        const ARTICLE: &str = "session.article_bytes_max";
        let session = &mut self.config.session;
        let (memory, article) = (session.large_articles_bytes_max, session.article_bytes_max);
        let least = session.article_room();
        if memory >= least {
            return;
        }
        if !self.places.contains_key(ARTICLE) {
            session.article_bytes_max = memory / SessionConfig::CHUNK_TIMES_MAX;
            self.follows(ARTICLE, KEY);
        } else if !self.places.contains_key(KEY) {
            session.large_articles_bytes_max = least;
            self.follows(KEY, ARTICLE);
        } else {
            let what = format!(
                "{KEY} = {} has no room for one article with {}",
                printed(KEY, memory as u64),
                self.said(ARTICLE, article as u64)
            );
            let right = format!("give {} or more", printed(KEY, least as u64));
            self.problem(KEY, &[ARTICLE], what, right);
        }
    }

    /// `articles.octets_max`: no more than a session reads and a buffer takes.
    fn article_octets(&mut self) {
        const KEY: &str = "articles.octets_max";
        let value = u64::from(self.config.articles.octets_max);
        let read = self.config.session.article_bytes_max as u64;
        let mut bounds = vec![Bound {
            most: read,
            keys: &["session.article_bytes_max"],
            because: format!(
                "more than {} lets in",
                self.said("session.article_bytes_max", read)
            ),
            right: format!(
                "give octets_max {} or less, or session.article_bytes_max {} or more",
                printed(KEY, read),
                printed(KEY, value)
            ),
        }];
        if let Some((most, set)) = largest_set(&self.config.store) {
            let octets = largest_buffer(&self.config.store, set);
            let needed = (value + ADDED_OCTETS) * 4;
            bounds.push(Bound {
                most,
                keys: STORE,
                because: format!(
                    "more than a quarter of a buffer: the largest, of set {set:?}, has {}",
                    self.said("buffer.octets", octets)
                        .replace(" (the default)", "")
                ),
                right: format!(
                    "give octets_max {} or less, or a buffer.octets of {} or more",
                    printed(KEY, most),
                    printed(KEY, needed.next_multiple_of(1 << 20))
                ),
            });
        }
        let value = self.bounded(KEY, value, &bounds);
        self.config.articles.octets_max = u32::try_from(value).unwrap_or(u32::MAX);
    }

    /// `articles.header_octets_max`: no more than the article.
    fn header_octets(&mut self) {
        const KEY: &str = "articles.header_octets_max";
        let value = u64::from(self.config.articles.header_octets_max);
        let article = u64::from(self.config.articles.octets_max);
        let bounds = [Bound {
            most: article,
            keys: &["articles.octets_max"],
            because: format!("more than {}", self.said("articles.octets_max", article)),
            right: "a header block is part of its article".to_owned(),
        }];
        let value = self.bounded(KEY, value, &bounds);
        self.config.articles.header_octets_max = u32::try_from(value).unwrap_or(u32::MAX);
    }

    /// `[[rule]]`: sizes that occur, and that the set can take.
    fn rules(&mut self) {
        let article = u64::from(self.config.articles.octets_max);
        let rules = self.config.store.rules.clone();
        for (at, rule) in rules.iter().enumerate() {
            let key = format!("rule[{at}].octets_max");
            let takes = self.config.store.article_octets_max(&rule.set);
            if let (Some(most), Some(takes)) = (rule.octets_max, takes)
                && most > takes
                && self.is_written(&key)
            {
                let what = format!(
                    "{key} = {} is more than set {:?} takes, a quarter of its largest buffer",
                    printed("rule.octets_max", most),
                    rule.set
                );
                let right = format!(
                    "give {} or less, or a larger buffer.octets",
                    printed("rule.octets_max", rounded(takes))
                );
                self.problem(&key, STORE, what, right);
            }
            let key = format!("rule[{at}].larger_than");
            if let Some(more) = rule.larger_than
                && more >= article
                && self.is_written(&key)
            {
                let what = format!(
                    "{key} = {} leaves nothing for this rule with {}",
                    printed("rule.larger_than", more),
                    self.said("articles.octets_max", article)
                );
                let right = "give less, or a larger articles.octets_max".to_owned();
                self.problem(&key, &["articles.octets_max"], what, right);
            }
        }
    }

    /// `tradspool` names files by group and number, and in transit mode nothing has a number.
    fn names(&mut self) {
        if self.config.engine.mode != Mode::Transit {
            return;
        }
        let sets = self.config.store.sets.iter().enumerate();
        let named = sets.filter(|(_, set)| set.method == tradspool::NAME);
        let keys: Vec<String> = named.map(|(at, _)| format!("set[{at}].method")).collect();
        for key in keys {
            let what = format!(
                "{key} = \"tradspool\" names files by the numbers of articles, and engine.mode = \"transit\" gives none"
            );
            let right = "take another method, or engine.mode = \"reader\"".to_owned();
            self.problem(&key, &["engine.mode"], what, right);
        }
    }

    /// `[[expire]]` names classes that there are, and groups, which transit has none of.
    fn classes(&mut self) {
        let entries = self.config.expire.clone();
        for (at, entry) in entries.iter().enumerate() {
            let mut classes = self.config.store.sets.iter().map(|set| set.class());
            if entry.class.is_empty() || classes.any(|class| class == entry.class) {
                continue;
            }
            let key = format!("expire[{at}].class");
            let what = format!("{key} = {:?} is the class of no set", entry.class);
            let right =
                "name a set, or what `class` of one or more says, or take the key out".to_owned();
            self.problem(&key, STORE, what, right);
        }
        if !entries.is_empty() && self.config.engine.mode == Mode::Transit {
            let what =
                "[[expire]] goes by groups, and engine.mode = \"transit\" has none".to_owned();
            let right =
                "take it out: buffers and segments drop their articles by themselves".to_owned();
            self.problem("expire", &["engine.mode"], what, right);
        }
    }

    /// `log.segment_octets`: two of the largest records, so that the log can always go on.
    fn log_segment(&mut self) {
        const KEY: &str = "log.segment_octets";
        let header = "articles.header_octets_max";
        let value = self.config.log.segment_octets;
        let least = self.config.articles.segment_octets_min();
        if value >= least {
            return;
        }
        let octets = u64::from(self.config.articles.header_octets_max);
        let groups = u64::from(self.config.articles.groups_max);
        let what = format!(
            "{KEY} = {} cannot hold the records of articles with {} and {}",
            printed(KEY, value),
            self.said(header, octets),
            self.said("articles.groups_max", groups)
        );
        let right = format!("give it {} or more", printed(KEY, least));
        let written = [KEY, header, "articles.groups_max"];
        let at = written.into_iter().find(|key| self.is_written(key));
        self.problem(at.unwrap_or(KEY), &written, what, right);
    }

    /// What one may have of what all have: no more than that.
    fn parts(&mut self) {
        let listen = &self.config.listen;
        let (part, whole) = self.within(
            (
                "listen.connections_per_address_max",
                listen.connections_per_address_max,
            ),
            ("listen.connections_max", listen.connections_max),
        );
        let listen = &mut self.config.listen;
        (listen.connections_per_address_max, listen.connections_max) = (part, whole);
        let engine = &self.config.engine;
        let (part, whole) = self.within(
            (
                "engine.offers_per_connection_max",
                engine.offers_per_connection_max,
            ),
            ("engine.offers_max", engine.offers_max),
        );
        let engine = &mut self.config.engine;
        (engine.offers_per_connection_max, engine.offers_max) = (part, whole);
        let engine = &self.config.engine;
        let (part, whole) = self.within(
            ("engine.commit_octets_max", engine.commit_octets_max),
            ("engine.queue_octets_max", engine.queue_octets_max),
        );
        let engine = &mut self.config.engine;
        (engine.commit_octets_max, engine.queue_octets_max) = (part, whole);
        let moderation = &self.config.moderation;
        let (least, most) = self.within(
            ("moderation.retry_s_min", moderation.retry_s_min),
            ("moderation.retry_s_max", moderation.retry_s_max),
        );
        let moderation = &mut self.config.moderation;
        (moderation.retry_s_min, moderation.retry_s_max) = (least, most);
    }

    /// A part and the whole it is taken from, as they become.
    fn within<T: Copy + Ord + TryInto<u64>>(
        &mut self,
        (key, part): (&'static str, T),
        (other, whole): (&'static str, T),
    ) -> (T, T) {
        if part <= whole {
            return (part, whole);
        }
        if !self.is_written(key) {
            self.follows(key, other);
            return (whole, whole);
        }
        if !self.is_written(other) {
            self.follows(other, key);
            return (part, part);
        }
        let number = |value: T| value.try_into().unwrap_or(u64::MAX);
        let (most, value) = (number(whole), number(part));
        let what = format!(
            "{key} = {} is more than {}, of which it is a part",
            printed(key, value),
            self.said(other, most)
        );
        let right = format!(
            "give {} or less, or {other} {} or more",
            printed(key, most),
            printed(other, value)
        );
        self.problem(key, &[other], what, right);
        (part, whole)
    }

    /// `index.remember_s`: as long as an article may be old, or one that is gone comes in again.
    fn remember(&mut self) {
        const KEY: &str = "index.remember_s";
        let age = self.config.articles.age_s_max;
        let value = self.config.index.remember_s;
        if !self.is_written(KEY) {
            let most = schema::find(KEY).and_then(|key| key.limits.as_ref());
            let most = most.map_or(u64::MAX, |limits| limits.end().unsigned_abs());
            let wanted = value.max(age.saturating_add(REMEMBER_MARGIN_S)).min(most);
            self.config.index.remember_s = wanted;
            if wanted != value {
                self.follows(KEY, "articles.age_s_max");
            }
        } else if value < age {
            let what = format!(
                "{KEY} = {} is less than {}: an article that is gone would be taken again",
                printed(KEY, value),
                self.said("articles.age_s_max", age)
            );
            let right = format!("give {} or more", printed(KEY, age));
            self.problem(KEY, &["articles.age_s_max"], what, right);
        }
    }
}

/// Buffers that are to have another size than they were made with, and what to do: no start changes it.
pub(crate) fn resized(old: &Config, new: &Config) -> Vec<String> {
    let size = |octets| printed("buffer.octets", octets);
    let resized = |buffer: &BufferConfig| {
        let name = &buffer.name;
        let before = old.store.buffers.iter().find(|it| it.name == *name)?;
        let (there, wanted) = (before.octets, buffer.octets);
        let instead = match wanted.cmp(&there) {
            Ordering::Equal => return None,
            Ordering::Greater => format!(
                "for more room say `newsreel store resize {name}` with this configuration, or add another [[buffer]] beside it"
            ),
            Ordering::Less => {
                format!("for less room say `newsreel store resize {name}` with this configuration")
            }
        };
        Some(format!(
            "the size of buffer {name:?} cannot change from {} to {}: set its `octets` back to {}; {instead}",
            size(there),
            size(wanted),
            size(there)
        ))
    };
    new.store.buffers.iter().filter_map(resized).collect()
}

/// Whether one path of a key is the other, or lies below it.
fn are_related(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let rest = long.strip_prefix(short);
    rest.is_some_and(|rest| short.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A value as a file would say it.
fn printed(key: &str, value: u64) -> String {
    match schema::find(key).and_then(|key| key.unit) {
        Some(unit) => unit.print(value),
        None => value.to_string(),
    }
}

/// What an article may have as it comes, of what a buffer takes: whole KiB.
const fn rounded(takes: u64) -> u64 {
    let left = takes.saturating_sub(ADDED_OCTETS);
    left - left % 1024
}

/// The largest article that any rule's set takes, and that set.
fn largest_set(store: &StoreConfig) -> Option<(u64, &str)> {
    let takes = store.rules.iter().filter_map(|rule| {
        let takes = store.article_octets_max(&rule.set)?;
        Some((rounded(takes), rule.set.as_str()))
    });
    takes.max_by_key(|(takes, _)| *takes)
}

/// The size of a set's largest buffer.
fn largest_buffer(store: &StoreConfig, set: &str) -> u64 {
    let set = store.sets.iter().find(|one| one.name == set);
    let names = set.map(|set| set.buffers.as_slice()).unwrap_or_default();
    let buffers = store
        .buffers
        .iter()
        .filter(|buffer| !buffer.read_only && names.contains(&buffer.name));
    buffers.map(|buffer| buffer.octets).max().unwrap_or(0)
}
