//! The groups of hierarchies that rules do not drop: for who looks at many messages about the same hierarchies, one after the other.
//!
//! What rules drop counts for nothing, so no number of groups of which something waits ends the search among them.  Where they
//! drop much, the rest is remembered for the next message, as long as one looks: who asks again has it looked for anew.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;

use newsreel_index::{Group, Groups};

use super::keyring::Signer;
use super::meaning::each_in;
use super::rules::{Action, Chosen, becomes};

/// Groups that rules drop and that may be passed over again with each message.
const PASSED_MAX: usize = 500;

/// Groups that are remembered of all hierarchies together: what has no room is looked for again.
const GROUPS_MAX: usize = 200_000;

/// Which of the rules there are for a message, who signed it, and the hierarchy.
type Key = (Vec<usize>, Option<String>, String);

/// What was found by the rules of one configuration.
#[derive(Debug, Default)]
pub(super) struct Undropped(RefCell<Found>);

#[derive(Debug, Default)]
struct Found {
    of: HashMap<Key, Vec<Group>>,
    groups: usize,
}

impl Undropped {
    /// Visits the groups of a hierarchy that these rules do not drop, until that is enough.
    pub(super) fn each(
        &self,
        groups: &Groups,
        (rules, signer): (&Chosen<'_>, Option<&Signer>),
        top: &str,
        visit: &mut dyn FnMut(&Group) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let signed = signer.map(|signer| signer.fingerprint().to_owned());
        let key = (rules.numbers(), signed, top.to_owned());
        if let Some(found) = self.0.borrow().of.get(&key) {
            return found.iter().try_for_each(visit);
        }
        let (mut left, mut passed) = (Vec::new(), 0);
        let mut flow = ControlFlow::Continue(());
        let walked = each_in(groups, top, &mut |group| {
            if becomes(&rules.action(group.name()), signer) == Action::Drop {
                passed += 1;
                return ControlFlow::Continue(());
            }
            left.push(group.clone());
            if flow.is_continue() {
                flow = visit(group);
            }
            match passed > PASSED_MAX {
                // All of the rest, so that it need not be passed over again.
                true => ControlFlow::Continue(()),
                false => flow,
            }
        });
        let mut found = self.0.borrow_mut();
        if walked.is_continue() && passed > PASSED_MAX && found.groups + left.len() <= GROUPS_MAX {
            found.groups += left.len();
            found.of.insert(key, left);
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use newsreel_index::GroupRow;
    use newsreel_wire::{ArticleNumber, GroupId, UnixTime};

    use super::*;
    use crate::control::groups::Verb;
    use crate::control::rules::Rules;

    /// Each list that waits was held against all groups of its hierarchies that a rule drops: 3,000 lists and 20,000 groups took
    /// minutes.
    #[test]
    fn what_rules_drop_is_passed_over_once() {
        let groups = Groups::default();
        for id in 0..2000 {
            let name = match id % 100 {
                0 => format!("de.kept.n{id}"),
                _ => format!("de.alt.n{id}"),
            };
            let row = GroupRow {
                id: GroupId(id + 1),
                created: UnixTime(1),
                high: ArticleNumber(0),
                name: &name,
                status: "y",
                creator: "",
                description: "",
            };
            groups.make(&row).unwrap();
        }
        let rules = [
            "all:*:*:log",
            "all:*:de.alt.*:drop",
            "all:a@b.example:de.kept.*:drop",
        ];
        let rules = Rules::parse(&rules.map(str::to_owned)).unwrap();
        let undropped = Undropped::default();
        let visited = |sender: &str, top: &str, most: usize| {
            let chosen = rules.of(Verb::Checkgroups, sender);
            let mut names = Vec::new();
            let _ = undropped.each(&groups, (&chosen, None), top, &mut |group| {
                names.push(group.name().to_owned());
                match names.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            names
        };
        let remembered = || undropped.0.borrow().of.len();
        let all = visited("x@b.example", "de", usize::MAX);
        assert_eq!((all.len(), remembered()), (20, 1));
        assert!(all.iter().all(|name| name.starts_with("de.kept.")));
        // What was removed since shows that it is not looked for again.
        groups.remove(GroupId(1), UnixTime(2));
        assert_eq!(visited("x@b.example", "de", usize::MAX), all);
        assert_eq!(visited("x@b.example", "de", 3), all[..3]);
        // Others have other rules, and a hierarchy of which little is dropped is looked at again.
        assert_eq!(visited("a@b.example", "de", usize::MAX), [""; 0]);
        assert_eq!(visited("x@b.example", "de.kept", 5).len(), 5);
        assert_eq!(visited("x@b.example", "de.kept", 50).len(), 19);
        assert_eq!(remembered(), 2);
        // Whoever has enough behind many that are dropped leaves all for the next one.
        let again = Undropped::default();
        let chosen = rules.of(Verb::Checkgroups, "x@b.example");
        let mut one = |_: &Group| ControlFlow::Break(());
        let flow = again.each(&groups, (&chosen, None), "de", &mut one);
        assert!(flow.is_break());
        let found = again.0.borrow();
        assert_eq!(found.of.values().map(Vec::len).collect::<Vec<_>>(), [19]);
    }
}
