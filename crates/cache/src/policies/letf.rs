//! LETF: the article that expires first goes.
//!
//! How long a server keeps an article it does not say, so all are taken to be kept for the same time: the oldest by its
//! date goes, of those the one that came first.

use super::{Article, Policy};
use crate::policy::by_article::{ByArticle, Ranking};

#[derive(Debug)]
struct Date;

impl Ranking for Date {
    fn came(&self, article: &Article) -> u64 {
        article.dated
    }

    fn used(&self, _: u32, _: u64) -> Option<u64> {
        None
    }
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByArticle::new(Date))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_oldest_article_goes(steps in steps()) {
            let victim = |plain: &Plain| plain.article_by(|known| (known.article.dated, known.came));
            follow(PolicyKind::Letf, Plain::new(victim), &steps)?;
        }
    }
}
