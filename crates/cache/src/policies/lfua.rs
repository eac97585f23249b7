//! LFUA: the article that was asked for least often goes, of those the one asked for longest ago.
//!
//! It favours what everybody has read already, as the paper found.

use super::{Article, Policy};
use crate::policy::by_article::{ByArticle, Ranking};

#[derive(Debug)]
struct Uses;

impl Ranking for Uses {
    fn came(&self, article: &Article) -> u64 {
        article.uses.into()
    }

    fn used(&self, uses: u32, _: u64) -> Option<u64> {
        Some(uses.into())
    }
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByArticle::new(Uses))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_article_that_was_read_least_goes(steps in steps()) {
            let victim = |plain: &Plain| plain.article_by(|known| (known.uses.into(), known.last));
            follow(PolicyKind::Lfua, Plain::new(victim), &steps)?;
        }
    }
}
