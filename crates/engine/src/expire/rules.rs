//! The rules of expiry, prepared: which one is for an article in a group, and whether it lets that go.
//!
//! Pure: no clock, no overview.

use newsreel_store::StoreConfig;
use newsreel_wire::{SetId, UnixTime, Wildmat};

use super::config::ExpireRule;
use super::expires;
use crate::error::Error;

/// Why a group lets an article go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It stayed as long as its rule says.
    Age,
    /// As long as it asked for, within its rule.
    Expires,
    /// The group has more articles of its rule than that says.
    Articles,
    /// They have more octets together.
    Octets,
}

impl Why {
    /// Whether it goes because its group has more than a limit.
    pub(crate) const fn is_limit(self) -> bool {
        matches!(self, Self::Articles | Self::Octets)
    }

    /// In a word or two, for people and programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Expires => "Expires",
            Self::Articles => "articles_max",
            Self::Octets => "octets_max",
        }
    }
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) arrival: UnixTime,
    /// Of its row in the overview.
    pub(crate) flags: u16,
    /// As stored.
    pub(crate) octets: u64,
}

/// What a group has of a rule's articles beyond its limits: the oldest of them go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Surplus {
    pub(crate) articles: u64,
    pub(crate) octets: u64,
}

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    groups: Wildmat,
    /// The sets that it is for; none: all.
    sets: Option<Vec<SetId>>,
    entry: ExpireRule,
}

impl Rule {
    fn new(entry: &ExpireRule, store: &StoreConfig) -> Result<Self, Error> {
        let groups = Wildmat::parse(&entry.groups)
            .map_err(|why| Error::Setting(format!("expire.groups {:?}: {why}", entry.groups)))?;
        let of_class = |(at, set): (u8, &newsreel_store::SetConfig)| {
            (set.class() == entry.class).then_some(SetId(at))
        };
        let sets = (0..=u8::MAX).zip(&store.sets);
        let sets = (!entry.class.is_empty()).then(|| sets.filter_map(of_class).collect());
        Ok(Self {
            groups,
            sets,
            entry: entry.clone(),
        })
    }

    /// Whether it is for articles of this set.
    pub(crate) fn is_for(&self, set: SetId) -> bool {
        self.sets.as_ref().is_none_or(|sets| sets.contains(&set))
    }

    /// Whether it limits what a group has.
    pub(crate) fn has_limits(&self) -> bool {
        self.entry.articles_max.is_some() || self.entry.octets_max.is_some()
    }

    /// What there is beyond its limits, where a group has so much.
    pub(crate) fn surplus(&self, has: Surplus) -> Surplus {
        let beyond = |has: u64, most: Option<u64>| has.saturating_sub(most.unwrap_or(u64::MAX));
        Surplus {
            articles: beyond(has.articles, self.entry.articles_max),
            octets: beyond(has.octets, self.entry.octets_max),
        }
    }

    /// The least time that any article stays, seconds, whether it has an Expires field or not; none: nothing goes by age.
    fn shortest_s(&self) -> Option<u64> {
        let usual = self.entry.keep_s;
        let asked = match self.bounds() {
            (None, None) => None,
            (least, most) => Some(least.unwrap_or(0).min(most.unwrap_or(u64::MAX))),
        };
        usual.into_iter().chain(asked).min()
    }

    /// How long an article stays at the least and at the most that says when it expires, seconds.
    fn bounds(&self) -> (Option<u64>, Option<u64>) {
        let (least, most) = (self.entry.keep_s_min, self.entry.keep_s_max);
        let usual = self.entry.keep_s;
        (least.or(usual), most.or(usual))
    }

    /// How long an article stays, and why.
    fn stays_s(&self, subject: &Subject) -> Option<(u64, Why)> {
        let usual = self.entry.keep_s;
        let Some(asked) = expires::after_s(subject.flags) else {
            return usual.map(|keep| (keep, Why::Age));
        };
        match self.bounds() {
            // Nothing is said of ages at all.
            (None, None) => None,
            (least, most) => {
                let stays = asked.max(least.unwrap_or(0)).min(most.unwrap_or(u64::MAX));
                let why = match Some(stays) == usual {
                    true => Why::Age,
                    false => Why::Expires,
                };
                Some((stays, why))
            }
        }
    }

    /// Whether a group lets this article go; what goes is taken off the surplus.
    pub(crate) fn judge(
        &self,
        subject: &Subject,
        surplus: &mut Surplus,
        now: UnixTime,
    ) -> Option<Why> {
        let by_age = self.stays_s(subject).and_then(|(stays, why)| {
            let is_due = now.0 >= subject.arrival.0.saturating_add(stays);
            is_due.then_some(why)
        });
        let why = if by_age.is_some() {
            by_age
        } else if surplus.articles > 0 {
            Some(Why::Articles)
        } else if surplus.octets > 0 {
            Some(Why::Octets)
        } else {
            None
        };
        if why.is_some() {
            surplus.articles = surplus.articles.saturating_sub(1);
            surplus.octets = surplus.octets.saturating_sub(subject.octets);
        }
        why
    }
}

/// All rules.
#[derive(Debug, Default)]
pub(crate) struct ExpireRules(Vec<Rule>);

impl ExpireRules {
    /// Prepares the rules of a configuration.
    pub(crate) fn new(entries: &[ExpireRule], store: &StoreConfig) -> Result<Self, Error> {
        let rules = entries.iter().map(|entry| Rule::new(entry, store));
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that are for every group, and so for an article in none, in order, each with its place among all.
    pub(crate) fn of_any_group(&self) -> Vec<(usize, &Rule)> {
        let rules = self.0.iter().enumerate();
        rules.filter(|(_, it)| it.entry.groups == "*").collect()
    }

    /// Those that are for a group, in order, each with its place among all.
    pub(crate) fn of(&self, group: &str) -> OfGroup<'_> {
        let rules = self.0.iter().enumerate();
        let rules: Vec<_> = rules.filter(|(_, it)| it.groups.matches(group)).collect();
        let shortest = rules.iter().filter_map(|(_, rule)| rule.shortest_s()).min();
        OfGroup {
            rules,
            shortest_s: shortest.unwrap_or(u64::MAX),
        }
    }
}

/// The rules of one group.
#[derive(Debug)]
pub(crate) struct OfGroup<'a> {
    pub(crate) rules: Vec<(usize, &'a Rule)>,
    /// No article goes by age that is younger, seconds.
    pub(crate) shortest_s: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn rule(change: impl FnOnce(&mut ExpireRule)) -> Rule {
        let mut entry = ExpireRule::default();
        change(&mut entry);
        Rule::new(&entry, &StoreConfig::default()).unwrap()
    }

    /// The first day on which an article goes that asks to go on this day, or on none, and why.
    fn goes(rule: &Rule, asks: Option<u64>) -> Option<(u64, Why)> {
        let arrival = UnixTime(1_000_000);
        let expires = asks.map(|day| UnixTime(arrival.0 + day * DAY));
        let subject = Subject {
            arrival,
            flags: expires.map_or(0, |at| expires::flags(arrival, at)),
            octets: 1,
        };
        (0..100).find_map(|day| {
            let now = UnixTime(arrival.0 + day * DAY);
            let why = rule.judge(&subject, &mut Surplus::default(), now)?;
            Some((day, why))
        })
    }

    #[test]
    fn expires_counts_within_what_the_rule_lets_it() {
        let plain = rule(|it| it.keep_s = Some(10 * DAY));
        for asks in [None, Some(2), Some(50)] {
            assert_eq!(goes(&plain, asks), Some((10, Why::Age)), "{asks:?}");
        }
        let heeds = rule(|it| {
            it.keep_s_min = Some(DAY);
            it.keep_s = Some(10 * DAY);
            it.keep_s_max = Some(30 * DAY);
        });
        assert_eq!(goes(&heeds, None), Some((10, Why::Age)));
        assert_eq!(goes(&heeds, Some(0)), Some((1, Why::Expires)));
        assert_eq!(goes(&heeds, Some(5)), Some((5, Why::Expires)));
        assert_eq!(goes(&heeds, Some(20)), Some((20, Why::Expires)));
        assert_eq!(goes(&heeds, Some(50)), Some((30, Why::Expires)));
        // Only what asks to go does.
        let asked = rule(|it| it.keep_s_min = Some(3 * DAY));
        assert_eq!(goes(&asked, None), None);
        assert_eq!(goes(&asked, Some(1)), Some((3, Why::Expires)));
        assert_eq!(goes(&asked, Some(7)), Some((7, Why::Expires)));
        assert_eq!(goes(&rule(|_| {}), Some(1)), None);
    }

    /// A group was left where all that was looked at was younger than `keep_s_min`, though others stayed for less.
    #[test]
    fn no_article_goes_before_the_shortest_time() {
        let days = [None, Some(3), Some(7), Some(20)];
        for nth in 0..64 {
            let [least, usual, most] = [nth % 4, nth / 4 % 4, nth / 16].map(|at: usize| days[at]);
            let rule = rule(|it| {
                let day = |days: Option<u64>| days.map(|days| days * DAY);
                (it.keep_s_min, it.keep_s, it.keep_s_max) = (day(least), day(usual), day(most));
            });
            if !rule.entry.problems().is_empty() {
                continue;
            }
            let asks = [None, Some(0), Some(50)];
            let first = asks
                .iter()
                .filter_map(|asks| goes(&rule, *asks))
                .min_by_key(|(day, _)| *day);
            // What has passed when it comes stays an hour.
            let shortest = rule.shortest_s().map(|it| it.div_ceil(DAY).max(1));
            assert_eq!(
                first.map(|(day, _)| day),
                shortest,
                "{least:?} {usual:?} {most:?}"
            );
        }
    }

    #[test]
    fn the_oldest_beyond_the_limits_go() {
        let limits = rule(|it| {
            it.articles_max = Some(3);
            it.octets_max = Some(100);
        });
        let has = Surplus {
            articles: 5,
            octets: 150,
        };
        let mut surplus = limits.surplus(has);
        let mut judge = || {
            let subject = Subject {
                arrival: UnixTime(0),
                flags: 0,
                octets: 20,
            };
            limits.judge(&subject, &mut surplus, UnixTime(1))
        };
        let whys = [judge(), judge(), judge(), judge()];
        let (articles, octets) = (Some(Why::Articles), Some(Why::Octets));
        assert_eq!(whys, [articles, articles, octets, None]);
        assert!(limits.has_limits() && !rule(|_| {}).has_limits());
    }

    #[test]
    fn classes_are_those_of_the_sets() {
        let mut store = StoreConfig::default();
        for class in [None, Some("short"), Some("main")] {
            store.sets.push(newsreel_store::SetConfig {
                name: "x".to_owned(),
                class: class.map(str::to_owned),
                ..store.sets[0].clone()
            });
        }
        let of = |class: &str| {
            let entry = ExpireRule {
                class: class.to_owned(),
                ..ExpireRule::default()
            };
            let rule = Rule::new(&entry, &store).unwrap();
            (0..4)
                .filter(|at| rule.is_for(SetId(*at)))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(""), [0, 1, 2, 3]);
        assert_eq!(of("main"), [0, 3]);
        assert_eq!(of("x"), [1]);
        assert_eq!(of("short"), [2]);
        let rules = ["a.*", "*,!a.b", "b"].map(|groups| ExpireRule {
            groups: groups.to_owned(),
            keep_s: Some(groups.len() as u64),
            ..ExpireRule::default()
        });
        let rules = ExpireRules::new(&rules, &store).unwrap();
        let places = |group: &str| {
            let of = rules.of(group);
            let places: Vec<usize> = of.rules.iter().map(|(at, _)| *at).collect();
            (places, of.shortest_s)
        };
        assert_eq!(places("a.b"), (vec![0], 3));
        assert_eq!(places("b"), (vec![1, 2], 1));
    }
}
