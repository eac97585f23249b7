//! Settings of the store: `[[buffer]]`, `[[set]]`, `[[rule]]`.
//!
//! Without any of them there is one set, `main`, of two buffers of 1 GiB in the spool, and one
//! rule that puts everything there.  [`StoreConfig::problems`] lists everything wrong at once.

mod problems;

use std::path::PathBuf;

use newsreel_wire::Wildmat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::lent;
use crate::methods;
use crate::methods::cnfs::{self, BLOCK_MIN, Geometry};
use crate::methods::segment;

pub use problems::StoreProblem;

/// The smallest buffer, octets: room for the headers and a few reserved regions.
pub const BUFFER_OCTETS_MIN: u64 = 1 << 20;

/// `[[buffer]]`: one cyclic buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Its name, as in tokens: at most 15 letters, digits, `-`, `_`.
    pub name: String,
    /// Its file, or a block device; none: `buffers/NAME` in the spool.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Its size, octets, everything included. `newsreel store resize` gives one that is there another.
    pub octets: u64,
    /// Articles begin at multiples of this, octets: a power of two from 64 to 4096. None: 64. Larger blocks make the
    /// bitmap smaller and waste room.
    #[serde(default)]
    pub block_octets: Option<u64>,
    /// Write articles through the page cache. Otherwise they are written around it, which costs far less, and only the
    /// newest are in memory, see `recent_octets` of the set. Worth it where the whole buffer fits into memory and most
    /// articles are read.
    #[serde(default)]
    pub cached: bool,
    /// Do not write the file out when it is made; room on the disk is then not certain.
    #[serde(default)]
    pub sparse: bool,
    /// Serve what is in it and never write it, its header included: for one on NFS, or in a snapshot. It must be there, takes
    /// no articles, and keeps those that it has until it is retired (`newsreel store retire`) or let go.
    #[serde(default)]
    pub read_only: bool,
}

impl BufferConfig {
    /// The block size, octets.
    #[must_use]
    pub fn block(&self) -> u64 {
        self.block_octets.unwrap_or(BLOCK_MIN)
    }
}

/// In which order a set fills its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum SetOrder {
    /// A megabyte or a batch here, the next there.
    #[default]
    Interleave,
    /// One buffer to its end, then the next, of which nothing goes before.
    Sequential,
}

/// The form of a file that has one article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// Lines end with LF and no dot is stuffed, so that any program reads it; where that would not give the same octets back,
    /// as on the wire.
    #[default]
    Native,
    /// As on the wire.
    Wire,
}

/// `[[set]]`: buffers that share what a rule gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its name.
    pub name: String,
    /// The names of its buffers; a buffer belongs to one set. Only cyclic buffers (`cnfs`) have any. SIGHUP adds one that is
    /// new, with its `[[buffer]]`; what else changes waits for a restart.
    #[serde(default)]
    pub buffers: Vec<String>,
    /// How they are filled.
    #[serde(default)]
    pub order: SetOrder,
    /// The storage method.
    #[serde(default = "usual_method")]
    pub method: String,
    /// Memory for the newest articles of the set, octets: they are served without asking the disk. None: one
    /// thirty-second of the machine's memory, at most 1 GiB, for all sets that do not say, and 64 MiB at least for each.
    /// It is taken as articles come. Where each article is a file the system keeps the newest in memory, and this is for
    /// what is kept about them: 4 MiB at most.
    #[serde(default)]
    pub recent_octets: Option<u64>,
    /// Overwrite the text of articles that are withdrawn (cancelled, superseded, expired by a rule); otherwise nobody is shown
    /// it any more, and it stays in its buffer until that comes around, or its segment is dropped. It costs a write for each.
    /// Where each article is a file that is removed in any case.
    #[serde(default)]
    pub erase_withdrawn: bool,
    /// What `[[expire]]` rules call its articles; none: the name of the set. Several sets may be of one class.
    #[serde(default)]
    pub class: Option<String>,
    /// Where the files of a set lie that has no buffers; none: `segments/NAME` in the spool, `articles/NAME` where each
    /// article is a file (`md5spool`, `timehash`, `tradspool`).
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The buffer or segment of another spool whose articles the set has: on NFS, in a snapshot, of a server that is gone. It is read where it
    /// lies and never written; `newsreel store attach --in-place` makes its articles known here. Only for `attached`.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The form of new files where each article is one and its rule does not say; none: `native`. What readers are served is
    /// the same.
    #[serde(default)]
    pub format: Option<FileFormat>,
    /// How the directories of groups are kept, each a wildmat and a layout, as in `alt.binaries.* range1024`; the first that
    /// matches decides. `flat`, also where none matches: all articles of a group in its directory. The others keep many small
    /// ones: `range1024` (any number from 2 on) one for so many consecutive numbers; `yyy`, `456`, `34/56` and `56/34` by digits
    /// of the number, here of 123456: `yyy` is `345`, the three in front of the last, `34/56` a level of `34` with one of `56`
    /// below it. Only for `tradspool`, and only for what is written from now on.
    #[serde(default)]
    pub layouts: Vec<String>,
    /// Size of one segment, octets: what goes at once. Only for `segment`.
    #[serde(default = "usual_segment")]
    pub segment_octets: u64,
    /// Articles are stored packed by zstd at this level (1 is fast, 19 is small; 3 is usual), where that makes them smaller, with a
    /// dictionary that is made of the set's own articles for each segment of 8 MiB or more. Worth it for text; readers are served
    /// the same. None: as they are. Only for `segment`.
    #[serde(default)]
    pub compression_level: Option<i32>,
    /// Articles of segments go when they are older than this, seconds. As the only limit it is a guarantee: nothing goes
    /// earlier, and when the disk is full new articles are put off until old ones had their age.
    #[serde(default)]
    pub keep_s: Option<u64>,
    /// The oldest segments go when all together have more octets than this.
    #[serde(default)]
    pub keep_octets: Option<u64>,
    /// The oldest segments go when fewer octets than this are free on their disk. Where each article is a file new articles
    /// are put off then; none: 16 MiB there.
    #[serde(default)]
    pub free_octets_min: Option<u64>,
}

impl Default for SetConfig {
    fn default() -> Self {
        Self {
            name: "main".to_owned(),
            buffers: Vec::new(),
            order: SetOrder::Interleave,
            method: usual_method(),
            recent_octets: None,
            erase_withdrawn: false,
            class: None,
            directory: None,
            file: None,
            format: None,
            layouts: Vec::new(),
            segment_octets: usual_segment(),
            compression_level: None,
            keep_s: None,
            keep_octets: None,
            free_octets_min: None,
        }
    }
}

impl SetConfig {
    /// The class of its articles.
    #[must_use]
    pub fn class(&self) -> &str {
        self.class.as_ref().unwrap_or(&self.name)
    }

    /// Whether its articles lie in cyclic buffers.
    #[must_use]
    pub fn has_buffers(&self) -> bool {
        self.method == cnfs::NAME
    }

    /// Whether its articles lie in another spool: it takes no other.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.method == lent::NAME
    }

    /// Whether each article is a file of its own.
    #[must_use]
    pub fn is_in_files(&self) -> bool {
        methods::find(&self.method).is_some_and(|method| method.in_files)
    }
}

const fn usual_segment() -> u64 {
    64 << 20
}

fn usual_method() -> String {
    cnfs::NAME.to_owned()
}

/// Which groups of an article a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum GroupMatch {
    /// The first one, as in the paper.
    #[default]
    First,
    /// At least one.
    Any,
    /// Every one.
    All,
}

/// `[[rule]]`: what goes into a set; the first rule that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// A wildmat that the first of an article's groups has to match, or those that `match` says.
    #[serde(default = "everything")]
    pub groups: String,
    /// Which groups of the article it is held against.
    #[serde(default, rename = "match")]
    pub matching: GroupMatch,
    /// Only articles strictly larger than this, octets in wire form (`~>100000` in the paper).
    #[serde(default)]
    pub larger_than: Option<u64>,
    /// Only articles of at most this size, octets in wire form.
    #[serde(default)]
    pub octets_max: Option<u64>,
    /// Only articles crossposted to this many groups or more (`~G10` in the paper); one that is named twice
    /// is one.
    #[serde(default)]
    pub groups_min: Option<u32>,
    /// Only articles whose From matches this wildmat.
    #[serde(default)]
    pub from: Option<String>,
    /// Only articles whose Path, as it came, matches this wildmat.
    #[serde(default)]
    pub path: Option<String>,
    /// Only articles that have a header field of this name.
    #[serde(default)]
    pub header: Option<String>,
    /// Only articles that carry this: `text`, `binary` (uuencode, base64, MIME) or `yenc`.
    #[serde(default)]
    pub content: Option<RuleContent>,
    /// Only articles that want to go (Expires) no earlier than this after they came, seconds.
    #[serde(default)]
    pub expires_s_min: Option<u64>,
    /// Only articles that want to go (Expires) no later than this after they came, seconds.
    #[serde(default)]
    pub expires_s_max: Option<u64>,
    /// The set they go to.
    pub set: String,
    /// The form of their files where each article of the set is one; none: what the set says. Articles that `newsreel store
    /// move` brings have the form of the set.
    #[serde(default)]
    pub format: Option<FileFormat>,
}

impl RuleConfig {
    /// Whether no article is left for the rules behind it.
    #[must_use]
    pub fn takes_everything(&self) -> bool {
        let Self {
            groups,
            matching: _,
            larger_than,
            octets_max,
            groups_min,
            from,
            path,
            header,
            content,
            expires_s_min,
            expires_s_max,
            set: _,
            format: _,
        } = self;
        let numbers = [larger_than, octets_max, expires_s_min, expires_s_max];
        let texts = [from, path, header];
        Wildmat::parse(groups).is_ok_and(|groups| groups.matches_all())
            && numbers.iter().all(|number| number.is_none())
            && texts.iter().all(|text| text.is_none())
            && content.is_none()
            && groups_min.is_none_or(|least| least <= 1)
    }
}

impl Default for RuleConfig {
    fn default() -> Self {
        Self {
            groups: everything(),
            matching: GroupMatch::First,
            larger_than: None,
            octets_max: None,
            groups_min: None,
            from: None,
            path: None,
            header: None,
            content: None,
            expires_s_min: None,
            expires_s_max: None,
            set: SetConfig::default().name,
            format: None,
        }
    }
}

/// What an article carries, as a rule asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleContent {
    /// Something to read.
    Text,
    /// A file, not in yEnc.
    Binary,
    /// A file in yEnc.
    YEnc,
}

fn everything() -> String {
    "*".to_owned()
}

/// Buffers, sets and rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// The buffers.
    #[serde(default, rename = "buffer")]
    pub buffers: Vec<BufferConfig>,
    /// The sets.
    #[serde(default, rename = "set")]
    pub sets: Vec<SetConfig>,
    /// The rules, in order.
    #[serde(default, rename = "rule")]
    pub rules: Vec<RuleConfig>,
    /// Buffers of the spool that are let go, with the articles in them.  Any other that is not named above is an error.
    #[serde(skip)]
    pub dropped: Vec<String>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::two_buffers(1 << 30)
    }
}

/// What part of the machine's memory the newest articles get where nothing else is said.
const RECENT_SHARE: u64 = 32;
/// And within which bounds: for each set, and for all together.
const RECENT_MIN: u64 = 64 << 20;
const RECENT_MAX: u64 = 1 << 30;

impl StoreConfig {
    /// The buffer of this name.
    pub(crate) fn buffer(&self, name: &str) -> Result<&BufferConfig> {
        let mut buffers = self.buffers.iter();
        buffers.find(|buffer| buffer.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.buffers.iter().map(|it| it.name.as_str()).collect();
            Error::NoBuffer {
                name: name.to_owned(),
                there: names.join(", "),
            }
        })
    }

    /// The names of the buffers that are only served.
    pub(crate) fn never_written(&self) -> Vec<String> {
        let never = self.buffers.iter().filter(|buffer| buffer.read_only);
        never.map(|buffer| buffer.name.clone()).collect()
    }

    /// Memory for the newest articles of a set, octets, on a machine with so much of it.
    #[must_use]
    pub fn recent_octets(&self, set: &SetConfig, machine_octets: u64) -> u64 {
        let silent = self.sets.iter().filter(|set| set.recent_octets.is_none());
        let share = (machine_octets / RECENT_SHARE).min(RECENT_MAX) / silent.count().max(1) as u64;
        set.recent_octets.unwrap_or(share.max(RECENT_MIN))
    }

    /// These settings with one buffer more, which `other` has, in the place that it has there.
    pub fn take_in(&mut self, name: &str, other: &Self) {
        let named = |buffer: &&BufferConfig| buffer.name == name;
        self.buffers
            .extend(other.buffers.iter().find(named).cloned());
        let place = |name: &str| other.buffers.iter().position(|buffer| buffer.name == name);
        self.buffers.sort_by_key(|buffer| place(&buffer.name));
        let wanting = |set: &&SetConfig| set.buffers.iter().any(|buffer| buffer == name);
        let Some(like) = other.sets.iter().find(wanting) else {
            return;
        };
        for set in self.sets.iter_mut().filter(|set| set.name == like.name) {
            set.buffers.push(name.to_owned());
            let place = |name: &String| like.buffers.iter().position(|buffer| buffer == name);
            set.buffers.sort_by_key(place);
        }
    }

    /// These settings without a buffer.
    pub fn take_out(&mut self, name: &str) {
        self.buffers.retain(|buffer| buffer.name != name);
        for set in &mut self.sets {
            set.buffers.retain(|buffer| buffer != name);
        }
    }

    /// One set `main` of two buffers of this size, taking everything.
    #[must_use]
    pub fn two_buffers(octets: u64) -> Self {
        let buffer = |name: &str| BufferConfig {
            name: name.to_owned(),
            path: None,
            octets,
            block_octets: None,
            cached: false,
            sparse: false,
            read_only: false,
        };
        Self {
            buffers: vec![buffer("C0"), buffer("C1")],
            sets: vec![SetConfig {
                buffers: vec!["C0".to_owned(), "C1".to_owned()],
                ..SetConfig::default()
            }],
            rules: vec![RuleConfig::default()],
            dropped: Vec::new(),
        }
    }

    /// The largest article that a set takes, octets as stored; `None` when there is no such set, or no buffer
    /// that takes any.
    #[must_use]
    pub fn article_octets_max(&self, set: &str) -> Option<u64> {
        let set = self.sets.iter().find(|one| one.name == set)?;
        if set.method == segment::NAME {
            let layout = Geometry::of(set.segment_octets, BLOCK_MIN)?;
            return Some(segment::article_octets_max(layout.capacity()));
        }
        if set.is_in_files() {
            return Some(cnfs::ARTICLE_OCTETS_MAX);
        }
        let buffers = self.buffers.iter();
        let buffers = buffers.filter(|one| !one.read_only && set.buffers.contains(&one.name));
        let layouts = buffers.filter_map(|buffer| Geometry::of(buffer.octets, buffer.block()));
        layouts
            .map(|layout| cnfs::article_octets_max(layout.capacity()))
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_articles_get_a_share_of_the_memory() {
        let mut config = StoreConfig::two_buffers(1 << 30);
        let of = |config: &StoreConfig, at: usize, machine: u64| {
            config.recent_octets(&config.sets[at], machine)
        };
        // A small machine, one in between, a large one.
        assert_eq!(of(&config, 0, 1 << 30), 64 << 20);
        assert_eq!(of(&config, 0, 16 << 30), 512 << 20);
        assert_eq!(of(&config, 0, 1 << 40), 1 << 30);
        config.sets.push(SetConfig {
            recent_octets: Some(7),
            ..SetConfig::default()
        });
        assert_eq!(of(&config, 1, 1 << 40), 7);
        assert_eq!(
            of(&config, 0, 16 << 30),
            512 << 20,
            "what is said is not shared"
        );
        config.sets.push(SetConfig::default());
        assert_eq!(of(&config, 0, 16 << 30), 256 << 20, "two share it");
        assert_eq!(of(&config, 2, 1 << 30), 64 << 20);
    }
}
