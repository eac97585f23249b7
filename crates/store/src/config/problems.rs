//! Everything that is wrong with the lists of the store, at once, each with what would be right.

use newsreel_wire::{BUFFER_NAME_OCTETS_MAX, OFFSET_MAX, Wildmat};

use super::{BUFFER_OCTETS_MIN, SetConfig, StoreConfig};
use crate::files::lent;
use crate::methods;
use crate::methods::cnfs::{BLOCK_MAX, BLOCK_MIN, BUFFER_OCTETS_MAX, Geometry};
use crate::methods::segment::{self, SEGMENT_OCTETS_MIN};
use crate::methods::tradspool;

/// Levels of zstd.
const LEVELS: std::ops::RangeInclusive<i32> = 1..=19;
/// A message lists so many names.
const NAMES_SHOWN_MAX: usize = 20;

/// Something that is wrong with the lists of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreProblem {
    /// The key it concerns.
    pub key: String,
    /// What would be right.
    pub right: String,
    /// The key in tables of another list from which it follows too.
    pub follows: Option<&'static str>,
}

impl StoreConfig {
    /// What is wrong.
    #[must_use]
    pub fn problems(&self) -> Vec<StoreProblem> {
        let mut problems = Vec::new();
        for at in 0..self.buffers.len() {
            self.check_buffer(at, &mut problems);
        }
        for at in 0..self.sets.len() {
            self.check_set(at, &mut problems);
        }
        for at in 0..self.rules.len() {
            self.check_rule(at, &mut problems);
        }
        self.check_links(&mut problems);
        let mut wrong = |right| {
            problems.push(StoreProblem {
                key: "set".to_owned(),
                right,
                follows: Some("rule"),
            });
        };
        if self.rules.is_empty() {
            let sets = quoted(self.sets.iter().map(|set| &set.name));
            wrong(format!(
                "there is no rule, so no article could be taken: add a [[rule]] that names one of {sets}"
            ));
        }
        let sets = self.sets.len();
        if sets > usize::from(u8::MAX) {
            wrong(format!("there are {sets} sets; at most 255 are right"));
        }
        problems
    }

    fn check_buffer(&self, at: usize, problems: &mut Vec<StoreProblem>) {
        let buffer = &self.buffers[at];
        let before = &self.buffers[..at];
        let mut wrong = |field, right| problems.push(at_field("buffer", at, field, right));
        if !is_name(&buffer.name) {
            wrong(
                "name",
                format!("{:?} is not 1 to 15 of A-Z a-z 0-9 - _", buffer.name),
            );
        }
        if before.iter().any(|other| other.name == buffer.name) {
            wrong("name", is_taken("buffer", &buffer.name));
        }
        if buffer
            .path
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            let right =
                "an empty path is no file: give one, or leave the key out for a file in the spool";
            wrong("path", right.to_owned());
        } else if let Some(path) = &buffer.path
            && let Some(other) = before
                .iter()
                .find(|other| other.path.as_ref() == Some(path))
        {
            wrong(
                "path",
                format!(
                    "{} is that of buffer {:?} already: give each buffer a file of its own",
                    path.display(),
                    other.name
                ),
            );
        }
        let block = buffer.block();
        if !(BUFFER_OCTETS_MIN..=BUFFER_OCTETS_MAX).contains(&buffer.octets) {
            wrong(
                "octets",
                format!(
                    "{} is not within {BUFFER_OCTETS_MIN} to {BUFFER_OCTETS_MAX}",
                    buffer.octets
                ),
            );
        } else if Geometry::of(buffer.octets, block).is_none() {
            wrong(
                "block_octets",
                format!("{block} is not a power of two within {BLOCK_MIN} to {BLOCK_MAX}"),
            );
        }
    }

    /// Names of one list in another.
    fn check_links(&self, problems: &mut Vec<StoreProblem>) {
        let mut wrong = |list, at, field, right, follows| {
            problems.push(StoreProblem {
                follows: Some(follows),
                ..at_field(list, at, field, right)
            });
        };
        for (at, buffer) in self.buffers.iter().enumerate() {
            let sets = self.sets.iter();
            let users = sets
                .filter(|set| set.buffers.contains(&buffer.name))
                .count();
            if users != 1 {
                let right = match users {
                    0 => format!(
                        "{:?} is in no set: name it in `buffers` of one",
                        buffer.name
                    ),
                    _ => format!("{:?} is in {users} sets: leave it in one", buffer.name),
                };
                wrong("buffer", at, "name", right, "set.buffers");
            }
        }
        for (at, set) in self.sets.iter().enumerate() {
            for name in &set.buffers {
                if !self.buffers.iter().any(|buffer| buffer.name == *name) {
                    let names = self.buffers.iter().map(|buffer| &buffer.name);
                    let right = is_missing("buffer", name, names);
                    wrong("set", at, "buffers", right, "buffer.name");
                }
            }
        }
        for (at, rule) in self.rules.iter().enumerate() {
            if self
                .sets
                .iter()
                .any(|set| set.name == rule.set && self.is_read_only(set))
            {
                let right = format!(
                    "every buffer of set {:?} is `read_only`: name a set that takes articles",
                    rule.set
                );
                wrong("rule", at, "set", right, "buffer.read_only");
            }
            if self
                .sets
                .iter()
                .any(|set| set.name == rule.set && set.is_attached())
            {
                let right = format!(
                    "set {:?} has the articles of its `file` and takes no others: name a set that does",
                    rule.set
                );
                wrong("rule", at, "set", right, "set.method");
            }
            if !self.sets.iter().any(|set| set.name == rule.set) {
                let names = self.sets.iter().map(|set| &set.name);
                let right = is_missing("set", &rule.set, names);
                wrong("rule", at, "set", right, "set.name");
            }
        }
    }

    /// Whether it has buffers, all of them known, and none of them is written.
    #[must_use]
    pub fn is_read_only(&self, set: &SetConfig) -> bool {
        let is_read_only = |name: &String| {
            let mut buffers = self.buffers.iter();
            buffers.any(|one| one.read_only && one.name == *name)
        };
        set.has_buffers() && !set.buffers.is_empty() && set.buffers.iter().all(is_read_only)
    }

    fn check_set(&self, at: usize, problems: &mut Vec<StoreProblem>) {
        let set = &self.sets[at];
        let mut wrong =
            |field: &'static str, right| problems.push(at_field("set", at, field, right));
        if set.has_buffers() && set.buffers.is_empty() {
            let right = format!("set {:?} has no buffer: name one or more", set.name);
            wrong("buffers", right);
        }
        if !set.has_buffers() && methods::find(&set.method).is_some() {
            self.check_own_files(at, &mut wrong);
        }
        if set.format.is_some() && methods::find(&set.method).is_some() && !set.is_in_files() {
            let right = format!(
                "{:?} keeps no file for each article: leave the key out",
                set.method
            );
            wrong("format", right);
        }
        self.check_compression(at, &mut wrong);
        self.check_attached(at, &mut wrong);
        if set.method == tradspool::NAME {
            if let Err(right) = tradspool::Layouts::parse(&set.layouts) {
                wrong("layouts", right);
            }
        } else if !set.layouts.is_empty() {
            let right = format!(
                "{:?} has no directories of groups: leave the key out",
                set.method
            );
            wrong("layouts", right);
        }
        if set.method == segment::NAME {
            self.check_segments(at, &mut wrong);
        } else if set.is_in_files() {
            self.check_files(at, &mut wrong);
        }
        if set.class.as_ref().is_some_and(String::is_empty) {
            let right = "an empty name: give one, or leave the key out for the name of the set";
            wrong("class", right.to_owned());
        }
        if self.sets[..at].iter().any(|other| other.name == set.name) {
            wrong("name", is_taken("set", &set.name));
        }
        for (nth, name) in set.buffers.iter().enumerate() {
            let before = set.buffers[..nth].iter().filter(|other| *other == name);
            if before.count() == 1 {
                let right = format!("{name:?} is there twice: name each buffer once");
                wrong("buffers", right);
            }
        }
        if methods::find(&set.method).is_none() {
            let names: Vec<&str> = methods::all().map(|method| method.name).collect();
            wrong(
                "method",
                format!("{:?} is none of {}", set.method, names.join(", ")),
            );
        }
    }

    /// A set without buffers, which has a name in tokens itself.
    fn check_own_files(&self, at: usize, wrong: &mut dyn FnMut(&'static str, String)) {
        let set = &self.sets[at];
        if !set.buffers.is_empty() {
            let right = format!("{:?} has files of its own: leave the key out", set.name);
            wrong("buffers", right);
        }
        if !is_name(&set.name) {
            let right = format!("{:?} is not 1 to 15 of A-Z a-z 0-9 - _", set.name);
            wrong("name", right);
        }
        if self.buffers.iter().any(|buffer| buffer.name == set.name) {
            wrong("name", is_taken("buffer", &set.name));
        }
        let directories = self.sets[..at].iter().map(|other| &other.directory);
        if set.directory.is_some() && directories.into_iter().any(|other| *other == set.directory) {
            let right = "another set has it already: give each set a directory of its own";
            wrong("directory", right.to_owned());
        }
    }

    /// Whether it is said whose articles it has, if it has another spool's.
    fn check_attached(&self, at: usize, wrong: &mut dyn FnMut(&'static str, String)) {
        let set = &self.sets[at];
        let right = match &set.file {
            Some(_) if !set.is_attached() => format!(
                "{:?} has articles of its own: leave the key out, or take method {:?}",
                set.method,
                lent::NAME
            ),
            None if set.is_attached() => {
                "there is none: name the buffer or segment whose articles it has".to_owned()
            }
            Some(file) if file.as_os_str().is_empty() => {
                "an empty path is no file: name the buffer or segment".to_owned()
            }
            Some(file)
                if self.sets[..at]
                    .iter()
                    .any(|it| it.file.as_ref() == Some(file)) =>
            {
                "another set has it already: each article is known once".to_owned()
            }
            _ => return,
        };
        wrong("file", right);
    }

    fn check_compression(&self, at: usize, wrong: &mut dyn FnMut(&'static str, String)) {
        let set = &self.sets[at];
        let Some(level) = set.compression_level else {
            return;
        };
        if set.method != segment::NAME {
            let right = format!(
                "{:?} packs nothing: leave the key out, or take method {:?}",
                set.method,
                segment::NAME
            );
            wrong("compression_level", right);
        } else if !LEVELS.contains(&level) {
            let (least, most) = (LEVELS.start(), LEVELS.end());
            let right = format!("{level} is not within {least} to {most}");
            wrong("compression_level", right);
        }
    }

    fn check_segments(&self, at: usize, wrong: &mut dyn FnMut(&'static str, String)) {
        let set = &self.sets[at];
        let octets = set.segment_octets;
        if Geometry::of(octets, BLOCK_MIN).is_none() || octets < SEGMENT_OCTETS_MIN {
            let right = format!("{octets} is not within {SEGMENT_OCTETS_MIN} to {OFFSET_MAX}");
            wrong("segment_octets", right);
        }
        if set.keep_octets.is_some_and(|keep| keep < 2 * octets) {
            let right = format!("less than two segments of {octets} octets: give more");
            wrong("keep_octets", right);
        }
    }

    /// A set whose articles are files of their own: nothing of it goes by itself.
    fn check_files(&self, at: usize, wrong: &mut dyn FnMut(&'static str, String)) {
        let set = &self.sets[at];
        let limits = [
            ("keep_s", set.keep_s.is_some()),
            ("keep_octets", set.keep_octets.is_some()),
        ];
        for (key, is_given) in limits {
            if is_given {
                let right = format!(
                    "the articles of {:?} go by [[expire]] or when they are withdrawn: leave the key out, or take method \"segment\"",
                    set.method
                );
                wrong(key, right);
            }
        }
    }

    fn check_rule(&self, at: usize, problems: &mut Vec<StoreProblem>) {
        let rule = &self.rules[at];
        let mut wrong = |field, right| problems.push(at_field("rule", at, field, right));
        let wildmats = [
            ("groups", Some(&rule.groups)),
            ("from", rule.from.as_ref()),
            ("path", rule.path.as_ref()),
        ];
        for (field, wildmat) in wildmats {
            if let Some(Err(error)) = wildmat.map(|text| Wildmat::parse(text)) {
                wrong(field, error.to_string());
            }
        }
        if rule.format.is_some()
            && let Some(set) = self.sets.iter().find(|set| set.name == rule.set)
            && methods::find(&set.method).is_some()
            && !set.is_in_files()
        {
            let right = format!(
                "set {:?} ({:?}) keeps no file for each article: leave the key out",
                set.name, set.method
            );
            wrong("format", right);
        }
        if let Some(name) = &rule.header
            && !is_field_name(name)
        {
            wrong("header", format!("{name:?} is no name of a header field"));
        }
        if let (Some(least), Some(most)) = (rule.expires_s_min, rule.expires_s_max)
            && least > most
        {
            wrong(
                "expires_s_max",
                format!("no time is at least {least} and at most {most} seconds"),
            );
        }
        if let (Some(more), Some(most)) = (rule.larger_than, rule.octets_max)
            && more >= most
        {
            wrong(
                "octets_max",
                format!(
                    "no article is larger than {more} and at most {most}: give more than larger_than"
                ),
            );
        }
    }
}

/// What is wrong with a field of the table at this place of a list.
fn at_field(list: &str, at: usize, field: &str, right: String) -> StoreProblem {
    StoreProblem {
        key: format!("{list}[{at}].{field}"),
        right,
        follows: None,
    }
}

/// What is wrong with a name that another table of the same list has.
fn is_taken(what: &str, name: &str) -> String {
    format!("another {what} is called {name:?}: give each {what} a name of its own")
}

/// What is wrong with the name of something that is not there, and what there is.
fn is_missing<'n>(
    what: &str,
    name: &str,
    there: impl ExactSizeIterator<Item = &'n String>,
) -> String {
    match there.len() {
        0 => format!("there is no {what} {name:?}: add a [[{what}]] with that name"),
        _ => format!("there is no {what} {name:?}: name one of {}", quoted(there)),
    }
}

/// Names as a file has them, each once; of many only the first.
fn quoted<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for name in names.map(|name| format!("{name:?}")) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let more = all.len().saturating_sub(NAMES_SHOWN_MAX);
    all.truncate(NAMES_SHOWN_MAX);
    match more {
        0 => all.join(", "),
        _ => format!("{} and {more} more", all.join(", ")),
    }
}

fn is_name(name: &str) -> bool {
    // The register lies beside the buffers.
    name != "register"
        && (1..=BUFFER_NAME_OCTETS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
}

/// RFC 5536 section 2.2: printable ASCII but the colon.
fn is_field_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|octet| octet.is_ascii_graphic() && octet != b':')
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::FileFormat;

    fn problems(change: impl FnOnce(&mut StoreConfig)) -> Vec<String> {
        let mut config = StoreConfig::default();
        change(&mut config);
        let problems = config.problems().into_iter();
        let said = |problem: StoreProblem| format!("{}: {}", problem.key, problem.right);
        problems.map(said).collect()
    }

    #[test]
    fn each_problem_says_what_would_be_right() {
        assert_eq!(
            problems(|config| config.buffers[0].block_octets = Some(100)),
            ["buffer[0].block_octets: 100 is not a power of two within 64 to 4096"]
        );
        assert_eq!(
            problems(|config| config.sets[0].method = "dbz".to_owned()),
            [
                "set[0].method: \"dbz\" is none of cnfs, segment, md5spool, timehash, tradspool, attached"
            ]
        );
        assert_eq!(
            problems(|config| {
                let set = &mut config.sets[0];
                (set.method, set.name) = ("md5spool".to_owned(), "C0".to_owned());
                (set.keep_s, set.keep_octets) = (Some(1), Some(1));
                config.rules[0].set = "C0".to_owned();
            }),
            [
                "set[0].buffers: \"C0\" has files of its own: leave the key out",
                "set[0].name: another buffer is called \"C0\": give each buffer a name of its own",
                "set[0].keep_s: the articles of \"md5spool\" go by [[expire]] or when they are withdrawn: leave the key out, or take \
                 method \"segment\"",
                "set[0].keep_octets: the articles of \"md5spool\" go by [[expire]] or when they are withdrawn: leave the key out, or take \
                 method \"segment\"",
            ]
        );
        let problems_of_unknown = problems(|config| {
            config.sets[0].buffers = vec!["X".to_owned()];
        });
        let wrong = problems_of_unknown.iter();
        assert!(
            !wrong.clone().any(|it| it.contains("read_only")),
            "{problems_of_unknown:?}"
        );
        for (method, level, expected) in [
            (
                "cnfs",
                3,
                "\"cnfs\" packs nothing: leave the key out, or take method \"segment\"",
            ),
            ("segment", 20, "20 is not within 1 to 19"),
        ] {
            let problems = problems(|config| {
                let set = &mut config.sets[0];
                (set.method, set.compression_level) = (method.to_owned(), Some(level));
            });
            let expected = format!("set[0].compression_level: {expected}");
            assert!(problems.contains(&expected), "{problems:?}");
        }
        assert_eq!(
            problems(|config| {
                let set = &mut config.sets[0];
                (set.format, set.layouts) = (Some(FileFormat::Wire), vec!["* yyy".to_owned()]);
                config.rules[0].format = Some(FileFormat::Native);
            }),
            [
                "set[0].format: \"cnfs\" keeps no file for each article: leave the key out",
                "set[0].layouts: \"cnfs\" has no directories of groups: leave the key out",
                "rule[0].format: set \"main\" (\"cnfs\") keeps no file for each article: leave the key out",
            ]
        );
        assert_eq!(
            problems(|config| {
                let set = &mut config.sets[0];
                set.method = "tradspool".to_owned();
                (set.format, set.layouts) = (Some(FileFormat::Wire), vec!["yyy".to_owned()]);
                set.buffers.clear();
                config.buffers.clear();
            }),
            [
                "set[0].layouts: \"yyy\" is no wildmat of groups and a layout, as in \"alt.binaries.* range1024\""
            ]
        );
        assert_eq!(
            problems(|config| config.sets[0].buffers.push("C1".to_owned())),
            ["set[0].buffers: \"C1\" is there twice: name each buffer once"]
        );
        assert_eq!(
            problems(|config| {
                (config.rules[0].larger_than, config.rules[0].octets_max) = (Some(9), Some(9));
            }),
            [
                "rule[0].octets_max: no article is larger than 9 and at most 9: give more than larger_than"
            ]
        );
        assert_eq!(
            problems(|config| {
                let rule = &mut config.rules[0];
                rule.from = Some("a[".to_owned());
                rule.header = Some("To:".to_owned());
                (rule.expires_s_min, rule.expires_s_max) = (Some(9), Some(8));
            }),
            [
                "rule[0].from: character class in wildmat is not closed: add ]",
                "rule[0].header: \"To:\" is no name of a header field",
                "rule[0].expires_s_max: no time is at least 9 and at most 8 seconds",
            ]
        );
        assert_eq!(
            problems(|config| {
                for buffer in &mut config.buffers {
                    buffer.path = Some(PathBuf::from("/dev/x"));
                }
            }),
            [
                "buffer[1].path: /dev/x is that of buffer \"C0\" already: give each buffer a file of its own"
            ]
        );
        assert_eq!(
            problems(|config| config.buffers[1].path = Some(PathBuf::new())),
            [
                "buffer[1].path: an empty path is no file: give one, or leave the key out for a file in the spool"
            ]
        );
        assert_eq!(
            problems(|config| {
                config.buffers[1].name = "C0".to_owned();
                config.sets[0].buffers = vec!["C0".to_owned(), "C1".to_owned()];
                config.rules[0].set = "other".to_owned();
            }),
            [
                "buffer[1].name: another buffer is called \"C0\": give each buffer a name of its own",
                "set[0].buffers: there is no buffer \"C1\": name one of \"C0\"",
                "rule[0].set: there is no set \"other\": name one of \"main\""
            ]
        );
        let many = |config: &mut StoreConfig| {
            config.sets[0].buffers = (0..30).map(|n| format!("B{n}")).collect();
            config.sets[0].buffers.push("B0".to_owned());
            config.sets[0].buffers.push("B0".to_owned());
            config.buffers = vec![config.buffers[0].clone(); 30];
            for (n, buffer) in config.buffers.iter_mut().enumerate() {
                buffer.name = format!("B{n}");
            }
            config.sets[0].buffers.push("X".to_owned());
        };
        let found = problems(many);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].ends_with("\"B18\", \"B19\" and 10 more"),
            "{found:?}"
        );
        assert_eq!(
            problems(|config| config.rules.clear()),
            [
                "set: there is no rule, so no article could be taken: add a [[rule]] that names one of \"main\""
            ]
        );
    }

    #[test]
    fn the_default_is_sound_and_all_problems_are_named() {
        assert_eq!(StoreConfig::default().problems(), []);
        let mut config = StoreConfig::default();
        config.buffers[1].name = "C0".to_owned();
        config.buffers[0].octets = 5;
        config.rules[0].set = "other".to_owned();
        config.rules[0].groups = "a[".to_owned();
        let keys: Vec<String> = config
            .problems()
            .into_iter()
            .map(|problem| problem.key)
            .collect();
        for key in [
            "buffer[0].octets",
            "buffer[1].name",
            "rule[0].set",
            "rule[0].groups",
        ] {
            assert!(keys.iter().any(|found| found == key), "{key} in {keys:?}");
        }
    }
}
