//! The mix of LRUA and LRUG: the group that was asked for longest ago says where, and its article that was asked for longest
//! ago goes.
//!
//! The paper's authors tried "a hybrid replacement strategy (LRUA and LRUG mix)", found it no better, and do not say how they
//! mixed; this is the mix that keeps the unit of one and the choice of the other.

use super::Policy;
use crate::policy::by_group::{ByGroup, Unit};

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByGroup::new(|_| 0, Unit::Article))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_oldest_of_the_oldest_group_goes(steps in steps()) {
            let victim = |plain: &Plain| {
                let group = plain.group_by(|group| (0, group.last));
                let members = plain.articles.iter();
                let members = members.filter(|known| Some(known.article.group) == group);
                let oldest = members.min_by_key(|known| known.last);
                oldest.map(|known| known.article.key).into_iter().collect()
            };
            follow(PolicyKind::Hybrid, Plain::new(victim), &steps)?;
        }
    }
}
