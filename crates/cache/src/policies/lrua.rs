//! LRUA: the article that was asked for longest ago goes.

use super::{Article, Policy};
use crate::policy::by_article::{ByArticle, Ranking};

#[derive(Debug)]
struct LastUse;

impl Ranking for LastUse {
    fn came(&self, _: &Article) -> u64 {
        0
    }

    fn used(&self, _: u32, _: u64) -> Option<u64> {
        Some(0)
    }
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByArticle::new(LastUse))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_article_that_was_read_longest_ago_goes(steps in steps()) {
            let victim = |plain: &Plain| plain.article_by(|known| (0, known.last));
            follow(PolicyKind::Lrua, Plain::new(victim), &steps)?;
        }
    }
}
