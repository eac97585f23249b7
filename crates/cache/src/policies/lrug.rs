//! LRUG, the paper's choice: the group that was asked for longest ago goes, with all its articles.
//!
//! "The newsgroup should be seen as a unit": what was read in a group lately tells more of an article than that article
//! does.  Where a large group is the one that goes, much goes at once, and the hit rate may fall though there is more room.

use super::Policy;
use crate::policy::by_group::{ByGroup, Unit};

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByGroup::new(|_| 0, Unit::Group))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_group_that_was_read_longest_ago_goes(steps in steps()) {
            let victim = |plain: &Plain| plain.members(plain.group_by(|group| (0, group.last)));
            follow(PolicyKind::Lrug, Plain::new(victim), &steps)?;
        }
    }
}
