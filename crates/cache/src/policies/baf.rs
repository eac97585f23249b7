//! BAF: the biggest article goes, of those the one that came first.  Who reads binaries pays for all others.

use super::{Article, Policy};
use crate::policy::by_article::{ByArticle, Ranking};

#[derive(Debug)]
struct Smallness;

impl Ranking for Smallness {
    fn came(&self, article: &Article) -> u64 {
        u64::MAX - article.octets
    }

    fn used(&self, _: u32, _: u64) -> Option<u64> {
        None
    }
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByArticle::new(Smallness))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_biggest_article_goes(steps in steps()) {
            let victim = |plain: &Plain| plain.article_by(|known| (u64::MAX - known.article.octets, known.came));
            follow(PolicyKind::Baf, Plain::new(victim), &steps)?;
        }
    }
}
