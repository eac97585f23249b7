//! What policies are compared with: models that look at everything anew at each step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::Article;
use crate::policies::PolicyKind;

/// What happens to a policy.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// This article is asked for.
    Asked(Article),
    /// It went otherwise.
    Went(u64),
    /// There is no room.
    Full,
}

/// Steps over a few articles in fewer groups; what an article is does not change.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let article = (0..40_u64, 1..4_u32).prop_map(|(key, uses)| Article {
        key,
        group: key % 7,
        octets: 1 + key * key % 23,
        dated: key * 31 % 17,
        uses,
    });
    let step = prop_oneof![
        6 => article.prop_map(Step::Asked),
        1 => (0..40_u64).prop_map(Step::Went),
        2 => Just(Step::Full),
    ];
    prop::collection::vec(step, 0..150)
}

/// A policy by its definition.
pub(crate) trait Naive {
    fn came(&mut self, article: &Article, step: u64);
    fn used(&mut self, key: u64, step: u64);
    fn went(&mut self, key: u64);
    /// What goes; it is told to have gone then.
    fn victims(&mut self) -> Vec<u64>;
}

/// Does the same with both, and compares.
pub(crate) fn follow(
    kind: PolicyKind,
    mut model: impl Naive,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let (mut policy, mut held) = (kind.make(), BTreeMap::new());
    for (at, step) in steps.iter().enumerate() {
        let at = at as u64;
        match step {
            Step::Asked(article) => {
                let is_held = held.contains_key(&article.key);
                prop_assert_eq!(policy.touch(article.key), is_held);
                if is_held {
                    model.used(article.key, at);
                } else {
                    policy.insert(*article);
                    model.came(article, at);
                    held.insert(article.key, article.octets);
                }
            }
            Step::Went(key) => {
                prop_assert_eq!(policy.remove(*key), held.remove(key).is_some());
                model.went(*key);
            }
            Step::Full => {
                let mut gone = Vec::new();
                policy.evict(&mut gone);
                let count = gone.len();
                let gone: BTreeSet<u64> = gone.into_iter().collect();
                prop_assert_eq!(gone.len(), count, "none goes twice");
                let expected: BTreeSet<u64> = model.victims().into_iter().collect();
                prop_assert_eq!(&gone, &expected, "step {}", at);
                prop_assert_eq!(gone.is_empty(), held.is_empty());
                for key in gone {
                    // What would have gone first is worth least.
                    held.remove(&key);
                    model.went(key);
                }
            }
        }
        prop_assert_eq!(policy.octets(), held.values().sum::<u64>());
        prop_assert_eq!(policy.articles(), held.len());
        for key in 0..40 {
            prop_assert_eq!(policy.worth(key).is_some(), held.contains_key(&key));
        }
    }
    Ok(())
}

/// An article of a [`Plain`] model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) article: Article,
    pub(crate) uses: u32,
    pub(crate) came: u64,
    pub(crate) last: u64,
}

/// A group of one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownGroup {
    pub(crate) uses: u64,
    pub(crate) last: u64,
}

/// A model whose victims follow from what it knows of each article and group.
pub(crate) struct Plain {
    pub(crate) articles: Vec<Known>,
    groups: BTreeMap<u64, KnownGroup>,
    victims: fn(&Self) -> Vec<u64>,
}

impl Plain {
    pub(crate) fn new(victims: fn(&Self) -> Vec<u64>) -> Self {
        Self {
            articles: Vec::new(),
            groups: BTreeMap::new(),
            victims,
        }
    }

    /// The article that is lowest by something.
    pub(crate) fn article_by(&self, by: impl Fn(&Known) -> (u64, u64)) -> Vec<u64> {
        let lowest = self.articles.iter().min_by_key(|known| by(known));
        lowest.map(|known| known.article.key).into_iter().collect()
    }

    /// The group that is lowest by something.
    pub(crate) fn group_by(&self, by: impl Fn(&KnownGroup) -> (u64, u64)) -> Option<u64> {
        let lowest = self.groups.iter().min_by_key(|(_, group)| by(group));
        lowest.map(|(group, _)| *group)
    }

    /// The articles of a group.
    pub(crate) fn members(&self, group: Option<u64>) -> Vec<u64> {
        let members = self.articles.iter();
        let members = members.filter(|known| Some(known.article.group) == group);
        members.map(|known| known.article.key).collect()
    }

    fn group_used(&mut self, group: u64, uses: u64, step: u64) {
        let group = self.groups.entry(group).or_default();
        group.uses += uses;
        group.last = step;
    }
}

impl Naive for Plain {
    fn came(&mut self, article: &Article, step: u64) {
        self.articles.push(Known {
            article: *article,
            uses: article.uses,
            came: step,
            last: step,
        });
        self.group_used(article.group, article.uses.into(), step);
    }

    fn used(&mut self, key: u64, step: u64) {
        let held = self.articles.iter_mut();
        for known in held.filter(|known| known.article.key == key) {
            known.uses += 1;
            known.last = step;
        }
        let group = self.articles.iter().find(|known| known.article.key == key);
        if let Some(group) = group.map(|known| known.article.group) {
            self.group_used(group, 1, step);
        }
    }

    fn went(&mut self, key: u64) {
        self.articles.retain(|known| known.article.key != key);
        let there: BTreeSet<u64> = self
            .articles
            .iter()
            .map(|known| known.article.group)
            .collect();
        self.groups.retain(|group, _| there.contains(group));
    }

    fn victims(&mut self) -> Vec<u64> {
        (self.victims)(self)
    }
}
