//! LFUG: the group that was asked for least often goes, with all its articles.
//!
//! A group counts from when its first article came until its last one went, so a new one starts from nothing: the paper
//! says that this policy cannot adopt to new requirements quickly.

use super::Policy;
use crate::policy::by_group::{ByGroup, Unit};

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(ByGroup::new(|uses| uses, Unit::Group))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::policies::PolicyKind;
    use crate::policy::model::{Plain, follow, steps};

    proptest! {
        #[test]
        fn prop_the_group_that_was_read_least_goes(steps in steps()) {
            let victim = |plain: &Plain| {
                plain.members(plain.group_by(|group| (group.uses, group.last)))
            };
            follow(PolicyKind::Lfug, Plain::new(victim), &steps)?;
        }
    }
}
