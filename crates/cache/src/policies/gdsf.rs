//! GDSF, greedy dual size with frequency (Cherkasova 1998; Arlitt and others 2000): an article is worth how often it was asked for by
//! its octets, and what has gone meanwhile.
//!
//! What goes leaves its rank behind as the ground on which everything stands that comes or is read later: so what was read often long
//! ago goes in the end.  With one use costing the same whatever the size, it is made for hit rates.

use super::{Article, Policy};
use crate::policy::by_article::{ByArticle, Ranking};

#[derive(Debug, Default)]
struct Value {
    ground: f64,
}

impl Value {
    /// Numbers that are not negative have the order of their bits.
    fn of(&self, uses: u32, octets: u64) -> u64 {
        (self.ground + f64::from(uses) / octets.max(1) as f64).to_bits()
    }
}

impl Ranking for Value {
    fn came(&self, article: &Article) -> u64 {
        self.of(article.uses, article.octets)
    }

    fn used(&self, uses: u32, octets: u64) -> Option<u64> {
        Some(self.of(uses, octets))
    }

    fn went(&mut self, rank: u64) {
        self.ground = f64::from_bits(rank);
    }
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByArticle::new(Value::default()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policies::PolicyKind;
    use crate::policy::model::{Naive, follow, steps};

    /// The rule as it is published, and nothing that makes it fast.
    #[derive(Default)]
    struct Published {
        ground: f64,
        /// Article, uses, value, when that was said.
        held: Vec<(Article, u32, f64, u64)>,
    }

    impl Naive for Published {
        fn came(&mut self, article: &Article, step: u64) {
            let value = self.ground + f64::from(article.uses) / article.octets as f64;
            self.held.push((*article, article.uses, value, step));
        }

        fn used(&mut self, key: u64, step: u64) {
            for (article, uses, value, when) in &mut self.held {
                if article.key == key {
                    *uses += 1;
                    *value = self.ground + f64::from(*uses) / article.octets as f64;
                    *when = step;
                }
            }
        }

        fn went(&mut self, key: u64) {
            self.held.retain(|held| held.0.key != key);
        }

        fn victims(&mut self) -> Vec<u64> {
            let by_value = |one: &&(Article, u32, f64, u64), other: &&(Article, u32, f64, u64)| {
                one.2.total_cmp(&other.2).then(one.3.cmp(&other.3))
            };
            let lowest = self.held.iter().min_by(by_value).copied();
            lowest.map_or_else(Vec::new, |(article, _, value, _)| {
                self.ground = value;
                vec![article.key]
            })
        }
    }

    proptest! {
        #[test]
        fn prop_what_goes_is_what_the_published_rule_says(steps in steps()) {
            follow(PolicyKind::Gdsf, Published::default(), &steps)?;
        }
    }

    /// Without ageing what was read often once would stay for ever.
    #[test]
    fn what_was_read_often_goes_when_nobody_reads_it_any_more() {
        let mut policy = make();
        let article = |key| Article {
            key,
            group: 0,
            octets: 1000,
            dated: 0,
            uses: 1,
        };
        policy.insert(article(0));
        (0..50).for_each(|_| assert!(policy.touch(0)));
        let mut gone = Vec::new();
        for key in 1..1000 {
            policy.insert(article(key));
            if policy.articles() > 10 {
                policy.evict(&mut gone);
            }
        }
        assert!(gone.contains(&0));
        assert!(gone.iter().position(|key| *key == 0) > Some(400));
    }
}
