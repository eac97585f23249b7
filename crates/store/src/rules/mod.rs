//! Storage rules: which set takes an article.  In order; the first rule that matches decides.
//!
//! Pure: no buffer is touched, so sessions may ask before an article is queued.

mod fields;

use std::collections::HashSet;

use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{SetId, UnixTime, Verdict, Wildmat, newsgroups};

use self::fields::{FieldRefusal, FieldRules};

use crate::config::{FileFormat, GroupMatch, RuleConfig, StoreConfig};
use crate::error::{Error, Result};

/// What the rules look at: facts that the sessions have anyway.
#[derive(Debug, Clone, Copy)]
pub struct RuleSubject<'a> {
    /// The article as it came.
    pub headers: &'a Headers<'a>,
    /// Octets in wire form.
    pub octets: u64,
    /// When it came.
    pub arrival: UnixTime,
}

impl RuleSubject<'_> {
    /// The groups it names.  Names that are none match nothing; the sessions refuse such articles before.
    fn names(&self) -> impl Iterator<Item = &str> {
        let content = self.headers.content(Known::Newsgroups);
        let names = newsgroups::split(content.unwrap_or_default());
        names.flatten().map(|name| name.as_str())
    }

    /// How many groups it names, each counted once.
    fn distinct_names(&self) -> usize {
        self.names().collect::<HashSet<_>>().len()
    }
}

/// What the first rule that matches decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The set.
    pub set: SetId,
    /// The form of its file; none: what the set says.
    pub format: Option<FileFormat>,
    /// The rule's place in the configuration, counted from 0.
    pub rule: usize,
}

/// What one rule said of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleNote {
    /// Its place in the configuration, counted from 0.
    pub rule: usize,
    /// The set it would put the article into.
    pub set: String,
    /// Whether it took the article.
    pub taken: bool,
    /// The form that the file of an article gets from it, where each is one.
    pub format: Option<FileFormat>,
    /// Why, or why not.
    pub why: String,
}

#[derive(Debug)]
struct Rule {
    groups: Wildmat,
    /// A group that meets a poison pattern (`@`) keeps the article from this rule, wherever it stands.
    has_poison: bool,
    matching: GroupMatch,
    larger_than: Option<u64>,
    octets_max: u64,
    groups_min: usize,
    fields: FieldRules,
    set: SetId,
    set_name: String,
    /// What it says of the form of files.
    format: Option<FileFormat>,
    /// What that set says; none where it has no file for each article.
    set_format: Option<FileFormat>,
    takes_everything: bool,
}

/// Why a rule takes an article.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason<'a> {
    Everything,
    Group(&'a str),
    AllGroups(usize),
}

/// Why a rule passes an article on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal<'a> {
    TooSmall,
    TooLarge,
    FewGroups(usize),
    NoGroup,
    Poison(&'a str),
    FirstDoesNotMatch(&'a str),
    NoneMatches,
    OneDoesNotMatch(&'a str),
    Field(FieldRefusal),
}

/// The rules, ready to be asked.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Prepares the rules of a configuration without problems.
    ///
    /// # Errors
    /// When it has some after all.
    pub fn new(config: &StoreConfig) -> Result<Self> {
        let rules = config.rules.iter().map(|rule| Rule::new(rule, config));
        Ok(Self {
            rules: rules.collect::<Result<_>>()?,
        })
    }

    /// Where this article goes.  `None`: no rule matches.
    #[must_use]
    pub fn choose(&self, subject: &RuleSubject<'_>) -> Option<Chosen> {
        let mut rules = self.rules.iter().enumerate();
        let (at, rule) = rules.find(|(_, rule)| rule.judge(subject).is_ok())?;
        Some(Chosen {
            set: rule.set,
            format: rule.format,
            rule: at,
        })
    }

    /// What each rule said, up to the one that took the article; the last one did unless none did.
    #[must_use]
    pub fn explain(&self, subject: &RuleSubject<'_>) -> Vec<RuleNote> {
        let mut notes = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let verdict = rule.judge(subject);
            let taken = verdict.is_ok();
            notes.push(RuleNote {
                rule: at,
                set: rule.set_name.clone(),
                taken,
                format: rule.format.or(rule.set_format),
                why: match verdict {
                    Ok(reason) => rule.tell_reason(&reason, subject),
                    Err(refusal) => rule.tell_refusal(&refusal, subject),
                },
            });
            if taken {
                break;
            }
        }
        notes
    }
}

impl Rule {
    fn new(rule: &RuleConfig, config: &StoreConfig) -> Result<Self> {
        let mut sets = config.sets.iter().zip((0..=u8::MAX).map(SetId));
        let Some((its, set)) = sets.find(|(set, _)| set.name == rule.set) else {
            return Err(Error::Config(format!("there is no set {:?}", rule.set)));
        };
        let groups = Wildmat::parse(&rule.groups)
            .map_err(|why| Error::Config(format!("groups {:?}: {why}", rule.groups)))?;
        let octets_max = rule.octets_max.unwrap_or(u64::MAX);
        let groups_min = rule.groups_min.map_or(0, |min| min as usize);
        let fields = FieldRules::new(rule)?;
        let takes_everything = rule.takes_everything();
        Ok(Self {
            has_poison: rule.groups.contains('@'),
            groups,
            matching: rule.matching,
            larger_than: rule.larger_than,
            octets_max,
            groups_min,
            fields,
            set,
            set_name: rule.set.clone(),
            format: rule.format,
            set_format: its.is_in_files().then(|| its.format.unwrap_or_default()),
            takes_everything,
        })
    }

    fn judge<'a>(
        &self,
        subject: &'a RuleSubject<'_>,
    ) -> std::result::Result<Reason<'a>, Refusal<'a>> {
        if self.takes_everything {
            return Ok(Reason::Everything);
        }
        if self
            .larger_than
            .is_some_and(|limit| subject.octets <= limit)
        {
            return Err(Refusal::TooSmall);
        }
        if subject.octets > self.octets_max {
            return Err(Refusal::TooLarge);
        }
        if self.groups_min > 1 {
            let count = subject.distinct_names();
            if count < self.groups_min {
                return Err(Refusal::FewGroups(count));
            }
        }
        let poison = |name: &&str| self.groups.verdict(name) == Verdict::Poison;
        if self.has_poison
            && let Some(name) = subject.names().find(poison)
        {
            return Err(Refusal::Poison(name));
        }
        let first = subject.names().next().ok_or(Refusal::NoGroup)?;
        let reason = match self.matching {
            GroupMatch::First if self.groups.matches(first) => Reason::Group(first),
            GroupMatch::First => return Err(Refusal::FirstDoesNotMatch(first)),
            GroupMatch::Any => subject
                .names()
                .find(|name| self.groups.matches(name))
                .map(Reason::Group)
                .ok_or(Refusal::NoneMatches)?,
            GroupMatch::All => match subject.names().find(|name| !self.groups.matches(name)) {
                Some(name) => return Err(Refusal::OneDoesNotMatch(name)),
                None => Reason::AllGroups(subject.names().count()),
            },
        };
        self.fields.judge(subject).map_err(Refusal::Field)?;
        Ok(reason)
    }

    /// Every condition that the rule has, and that holds.
    fn tell_reason(&self, reason: &Reason<'_>, subject: &RuleSubject<'_>) -> String {
        let groups = self.groups.as_str();
        let mut holds = vec![match reason {
            Reason::Everything => "it takes everything".to_owned(),
            Reason::Group(name) => format!("{name} matches {groups:?}"),
            Reason::AllGroups(count) => format!("all {count} groups match {groups:?}"),
        }];
        let octets = subject.octets;
        if let Some(least) = self.larger_than {
            holds.push(format!("{octets} octets are more than {least}"));
        }
        if self.octets_max < u64::MAX {
            holds.push(format!("{octets} octets are at most {}", self.octets_max));
        }
        if self.groups_min > 1 {
            let (count, least) = (subject.distinct_names(), self.groups_min);
            holds.push(format!("{count} groups are {least} or more"));
        }
        self.fields.tell_held(&mut holds);
        holds.join(", ")
    }

    fn tell_refusal(&self, refusal: &Refusal<'_>, subject: &RuleSubject<'_>) -> String {
        let groups = self.groups.as_str();
        match refusal {
            Refusal::TooSmall => format!(
                "{} octets are not more than {}",
                subject.octets,
                self.larger_than.unwrap_or(0)
            ),
            Refusal::TooLarge => {
                format!(
                    "{} octets are more than {}",
                    subject.octets, self.octets_max
                )
            }
            Refusal::FewGroups(1) => format!("1 group, it wants {} or more", self.groups_min),
            Refusal::FewGroups(count) => {
                format!("{count} groups, it wants {} or more", self.groups_min)
            }
            Refusal::NoGroup => "the article names no group".to_owned(),
            Refusal::Poison(name) => format!("{name} is poison to {groups:?}"),
            Refusal::FirstDoesNotMatch(name) => {
                format!("{name}, the first group, does not match {groups:?}")
            }
            Refusal::NoneMatches => format!("no group matches {groups:?}"),
            Refusal::OneDoesNotMatch(name) => format!("{name} does not match {groups:?}"),
            Refusal::Field(refusal) => self.fields.tell(refusal),
        }
    }
}

#[cfg(test)]
mod tests;
