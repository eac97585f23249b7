//! Storage rules: which set takes an article.  In order; the first rule that matches decides.
//!
//! Pure: no buffer is touched, so sessions may ask before an article is queued.

use newsreel_wire::{SetId, Verdict, Wildmat, newsgroups};

use crate::config::{GroupMatch, StoreConfig};
use crate::error::{Error, Result};

/// What the rules look at.
#[derive(Debug, Clone, Copy)]
pub struct RuleSubject<'a> {
    /// The content of Newsgroups.
    pub newsgroups: &'a [u8],
    /// Octets in wire form.
    pub octets: u64,
}

#[derive(Debug)]
struct Rule {
    groups: Wildmat,
    matching: GroupMatch,
    larger_than: u64,
    octets_max: u64,
    groups_min: usize,
    set: SetId,
    takes_everything: bool,
}

/// The rules, ready to be asked.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Prepares the rules of a configuration without problems.
    pub fn new(config: &StoreConfig) -> Result<Self> {
        let mut rules = Vec::new();
        for rule in &config.rules {
            let set = config.sets.iter().position(|set| set.name == rule.set);
            let set = set.and_then(|at| u8::try_from(at).ok()).map(SetId);
            let Some(set) = set else {
                return Err(Error::Config(format!("there is no set {:?}", rule.set)));
            };
            let groups = Wildmat::parse(&rule.groups)
                .map_err(|why| Error::Config(format!("groups {:?}: {why}", rule.groups)))?;
            let larger_than = rule.larger_than.unwrap_or(0);
            let octets_max = rule.octets_max.unwrap_or(u64::MAX);
            let groups_min = rule.groups_min.unwrap_or(0) as usize;
            let takes_everything = groups.matches_all()
                && larger_than == 0
                && octets_max == u64::MAX
                && groups_min <= 1;
            rules.push(Rule {
                groups,
                matching: rule.matching,
                larger_than,
                octets_max,
                groups_min,
                set,
                takes_everything,
            });
        }
        Ok(Self { rules })
    }

    /// The set that takes this article, and the number of the rule that said so.  `None`: no rule
    /// matches.
    #[must_use]
    pub fn choose(&self, subject: &RuleSubject<'_>) -> Option<(SetId, usize)> {
        let at = self.rules.iter().position(|rule| rule.matches(subject))?;
        Some((self.rules[at].set, at))
    }
}

impl Rule {
    fn matches(&self, subject: &RuleSubject<'_>) -> bool {
        if self.takes_everything {
            return true;
        }
        if subject.octets <= self.larger_than && self.larger_than > 0
            || subject.octets > self.octets_max
        {
            return false;
        }
        let names = || newsgroups::split(subject.newsgroups).flatten();
        if self.groups_min > 1 && names().count() < self.groups_min {
            return false;
        }
        let mut verdicts = names().map(|name| self.groups.verdict(name.as_str()));
        match self.matching {
            GroupMatch::First => verdicts.next() == Some(Verdict::Match),
            GroupMatch::Any => {
                let mut any = false;
                for verdict in verdicts {
                    match verdict {
                        Verdict::Poison => return false,
                        Verdict::Match => any = true,
                        Verdict::NoMatch => {}
                    }
                }
                any
            }
            GroupMatch::All => verdicts.all(|verdict| verdict == Verdict::Match),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{RuleConfig, SetConfig, SetOrder};

    fn rules(list: &[(&str, GroupMatch, Option<u64>, Option<u32>)]) -> Rules {
        let mut config = StoreConfig::two_buffers(1 << 20);
        config.rules.clear();
        config.sets.clear();
        for (at, (groups, matching, larger_than, groups_min)) in list.iter().enumerate() {
            let name = format!("s{at}");
            config.sets.push(SetConfig {
                name: name.clone(),
                buffers: vec!["C0".to_owned()],
                order: SetOrder::Interleave,
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
