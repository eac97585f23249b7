//! Storage rules: which set takes an article.  In order; the first rule that matches decides.
//!
//! Pure: no buffer is touched, so sessions may ask before an article is queued.

use newsreel_wire::{SetId, Verdict, Wildmat, newsgroups};

use crate::config::{GroupMatch, RuleConfig, StoreConfig};
use crate::error::{Error, Result};

/// What the rules look at: facts that the sessions have anyway.
#[derive(Debug, Clone, Copy)]
pub struct RuleSubject<'a> {
    /// The content of Newsgroups.
    pub newsgroups: &'a [u8],
    /// Octets in wire form.
    pub octets: u64,
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
    set: SetId,
    set_name: String,
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

    /// The set that takes this article, and the number of the rule that said so.  `None`: no rule matches.
    #[must_use]
    pub fn choose(&self, subject: &RuleSubject<'_>) -> Option<(SetId, usize)> {
        let rules = self.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| rule.judge(subject).is_ok())
            .map(|(at, rule)| (rule.set, at))
            .next()
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
                why: match verdict {
                    Ok(reason) => rule.tell_reason(&reason),
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
        let set = config.sets.iter().position(|set| set.name == rule.set);
        let set = set.and_then(|at| u8::try_from(at).ok()).map(SetId);
        let Some(set) = set else {
            return Err(Error::Config(format!("there is no set {:?}", rule.set)));
        };
        let groups = Wildmat::parse(&rule.groups)
            .map_err(|why| Error::Config(format!("groups {:?}: {why}", rule.groups)))?;
        let octets_max = rule.octets_max.unwrap_or(u64::MAX);
        let groups_min = rule.groups_min.map_or(0, |min| min as usize);
        let takes_everything = groups.matches_all()
            && rule.larger_than.is_none()
            && octets_max == u64::MAX
            && groups_min <= 1;
        Ok(Self {
            has_poison: rule.groups.contains('@'),
            groups,
            matching: rule.matching,
            larger_than: rule.larger_than,
            octets_max,
            groups_min,
            set,
            set_name: rule.set.clone(),
            takes_everything,
        })
    }

    fn judge<'a>(&self, subject: &RuleSubject<'a>) -> std::result::Result<Reason<'a>, Refusal<'a>> {
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
        // Names that are none match nothing; the sessions refuse such articles before.
        let names = || {
            newsgroups::split(subject.newsgroups)
                .flatten()
                .map(|name| name.as_str())
        };
        if self.groups_min > 1 {
            let count = names().count();
            if count < self.groups_min {
                return Err(Refusal::FewGroups(count));
            }
        }
        let poison = |name: &&str| self.groups.verdict(name) == Verdict::Poison;
        if self.has_poison
            && let Some(name) = names().find(poison)
        {
            return Err(Refusal::Poison(name));
        }
        let first = names().next().ok_or(Refusal::NoGroup)?;
        match self.matching {
            GroupMatch::First if self.groups.matches(first) => Ok(Reason::Group(first)),
            GroupMatch::First => Err(Refusal::FirstDoesNotMatch(first)),
            GroupMatch::Any => names()
                .find(|name| self.groups.matches(name))
                .map(Reason::Group)
                .ok_or(Refusal::NoneMatches),
            GroupMatch::All => match names().find(|name| !self.groups.matches(name)) {
                Some(name) => Err(Refusal::OneDoesNotMatch(name)),
                None => Ok(Reason::AllGroups(names().count())),
            },
        }
    }

    fn tell_reason(&self, reason: &Reason<'_>) -> String {
        let groups = self.groups.as_str();
        match reason {
            Reason::Everything => "it takes everything".to_owned(),
            Reason::Group(name) => format!("{name} matches {groups:?}"),
            Reason::AllGroups(count) => format!("all {count} groups match {groups:?}"),
        }
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
            Refusal::FewGroups(count) => format!("{count} groups, it wants {}", self.groups_min),
            Refusal::NoGroup => "the article names no group".to_owned(),
            Refusal::Poison(name) => format!("{name} is poison to {groups:?}"),
            Refusal::FirstDoesNotMatch(name) => {
                format!("{name}, the first group, does not match {groups:?}")
            }
            Refusal::NoneMatches => format!("no group matches {groups:?}"),
            Refusal::OneDoesNotMatch(name) => format!("{name} does not match {groups:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{RuleConfig, SetConfig};

    fn rules(list: &[(&str, GroupMatch, Option<u64>, Option<u32>)]) -> Rules {
        let mut config = StoreConfig::two_buffers(1 << 20);
        config.rules.clear();
        config.sets.clear();
        for (at, (groups, matching, larger_than, groups_min)) in list.iter().enumerate() {
            let name = format!("s{at}");
            config.sets.push(SetConfig {
                name: name.clone(),
                buffers: vec!["C0".to_owned()],
                ..SetConfig::default()
            });
            config.rules.push(RuleConfig {
                groups: (*groups).to_owned(),
                matching: *matching,
                larger_than: *larger_than,
                octets_max: None,
                groups_min: *groups_min,
                set: name,
            });
        }
        Rules::new(&config).unwrap()
    }

    fn choose(rules: &Rules, newsgroups: &str, octets: u64) -> Option<usize> {
        let subject = RuleSubject {
            newsgroups: newsgroups.as_bytes(),
            octets,
        };
        rules.choose(&subject).map(|(_, at)| at)
    }

    #[test]
    fn the_rules_of_the_paper() {
        use GroupMatch::First;
        let rules = rules(&[
            ("*warez*", First, None, None),
            ("*binaries*", First, None, None),
            ("*", First, Some(100_000), None),
            ("*", First, None, Some(10)),
            ("*", First, None, None),
        ]);
        assert_eq!(choose(&rules, "alt.binaries.x,misc.test", 5), Some(1));
        assert_eq!(
            choose(&rules, "misc.test,alt.binaries.x", 5),
            Some(4),
            "first group only"
        );
        assert_eq!(
            choose(&rules, "misc.test", 100_000),
            Some(4),
            "strictly more"
        );
        assert_eq!(choose(&rules, "misc.test", 100_001), Some(2));
        let ten = (0..10)
            .map(|n| format!("a.g{n}"))
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(choose(&rules, &ten, 5), Some(3), "ten or more");
        let nine = (0..9)
            .map(|n| format!("a.g{n}"))
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(choose(&rules, &nine, 5), Some(4));
    }

    /// What the rules say, as lines.
    fn explain(rules: &Rules, newsgroups: &str, octets: u64) -> Vec<String> {
        let subject = RuleSubject {
            newsgroups: newsgroups.as_bytes(),
            octets,
        };
        let notes = rules.explain(&subject).into_iter();
        let sign = |taken| if taken { '+' } else { '-' };
        notes
            .map(|note| {
                format!(
                    "{} {}{} {}",
                    note.rule,
                    sign(note.taken),
                    note.set,
                    note.why
                )
            })
            .collect()
    }

    #[test]
    fn explain_says_what_each_rule_said() {
        use GroupMatch::{All, Any, First};
        let rules = rules(&[
            ("*", First, Some(100), None),
            ("*", First, None, Some(3)),
            ("comp.*,@*.poison", First, None, None),
            ("news.*", All, None, None),
            ("rec.*", Any, None, None),
            ("*", First, None, None),
        ]);
        assert_eq!(
            explain(&rules, "misc.a,alt.b", 7),
            [
                "0 -s0 7 octets are not more than 100",
                "1 -s1 2 groups, it wants 3",
                "2 -s2 misc.a, the first group, does not match \"comp.*,@*.poison\"",
                "3 -s3 misc.a does not match \"news.*\"",
                "4 -s4 no group matches \"rec.*\"",
                "5 +s5 it takes everything",
            ]
        );
        let last = |newsgroups: &str| explain(&rules, newsgroups, 7).pop().unwrap();
        assert_eq!(
            last("comp.a,misc.b"),
            "2 +s2 comp.a matches \"comp.*,@*.poison\""
        );
        assert_eq!(last("news.a,news.b"), "3 +s3 all 2 groups match \"news.*\"");
        assert_eq!(last("misc.a,rec.b"), "4 +s4 rec.b matches \"rec.*\"");
        let poisoned = explain(&rules, "comp.a,misc.poison", 7);
        assert_eq!(
            poisoned[2],
            "2 -s2 misc.poison is poison to \"comp.*,@*.poison\""
        );
    }

    #[test]
    fn no_group_meets_no_rule_but_one_for_everything() {
        let some = rules(&[
            ("*", GroupMatch::All, None, None),
            ("a.*", GroupMatch::All, None, None),
        ]);
        assert_eq!(choose(&some, "", 1), Some(0));
        let some = rules(&[("a.*", GroupMatch::All, None, None)]);
        assert_eq!(explain(&some, "", 1), ["0 -s0 the article names no group"]);
    }

    #[test]
    fn a_size_limit_of_zero_is_a_limit() {
        let some = rules(&[("*", GroupMatch::First, Some(0), None)]);
        assert_eq!(
            (choose(&some, "a.b", 0), choose(&some, "a.b", 1)),
            (None, Some(0))
        );
    }

    proptest! {
        #[test]
        fn prop_explain_agrees_with_choose(
            list in proptest::collection::vec(
                ("(!|@)?[ab*]\\.?[ab*]{1,3}(,[!@]?[ab]{1,2}\\*?)?", 0u8..3, proptest::option::of(0u64..9), proptest::option::of(0u32..4)),
                1..6,
            ),
            newsgroups in "([ab]{1,2}(\\.[ab]{1,2})?,){0,3}[ab]",
            octets in 0u64..9,
        ) {
            let matching = |n| [GroupMatch::First, GroupMatch::Any, GroupMatch::All][usize::from(n)];
            let list: Vec<_> = list.iter().map(|(g, m, l, n)| (g.as_str(), matching(*m), *l, *n)).collect();
            let rules = rules(&list);
            let subject = RuleSubject { newsgroups: newsgroups.as_bytes(), octets };
            let notes = rules.explain(&subject);
            let taken = notes.last().filter(|note| note.taken).map(|note| note.rule);
            prop_assert_eq!(rules.choose(&subject).map(|(_, at)| at), taken);
            let refused = &notes[..notes.len() - usize::from(taken.is_some())];
            prop_assert!(refused.iter().all(|note| !note.taken));
        }
    }

    #[test]
    fn any_and_all_and_poison() {
        let rules = rules(&[
            ("comp.*,@alt.*", GroupMatch::Any, None, None),
            ("news.*", GroupMatch::All, None, None),
        ]);
        assert_eq!(choose(&rules, "misc.a,comp.b", 5), Some(0));
        assert_eq!(choose(&rules, "comp.b,alt.c", 5), None);
        assert_eq!(choose(&rules, "news.a,news.b", 5), Some(1));
        assert_eq!(choose(&rules, "news.a,misc.b", 5), None);
    }
}
