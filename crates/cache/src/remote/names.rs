//! Group ids for the names of a server's groups, given when a name is first met.
//!
//! An id keeps its name while the process lives, also when the group is gone for a while.

use std::collections::HashMap;
use std::sync::Arc;

use newsreel_wire::{GroupId, GroupName};

/// So many times as many names are met at most as there may be groups at the same time: groups go, and others come.
const TIMES: usize = 2;

#[derive(Debug)]
pub(super) struct Names {
    ids: HashMap<Arc<str>, GroupId>,
    names: Vec<Arc<str>>,
    most: usize,
}

impl Names {
    /// Those of so many groups at the same time.
    pub(super) fn new(groups_max: usize) -> Self {
        Self {
            ids: HashMap::new(),
            names: Vec::new(),
            most: groups_max.saturating_mul(TIMES),
        }
    }

    /// The id of a name, a new one if need be; none: there are too many.
    pub(super) fn id(&mut self, name: GroupName<'_>) -> Option<GroupId> {
        if let Some(id) = self.ids.get(name.as_str()) {
            return Some(*id);
        }
        if self.names.len() >= self.most {
            return None;
        }
        let id = GroupId(u32::try_from(self.names.len()).ok()?);
        let name: Arc<str> = name.as_str().into();
        self.names.push(name.clone());
        self.ids.insert(name, id);
        Some(id)
    }

    /// The name that has an id.
    pub(super) fn name(&self, id: GroupId) -> Option<Arc<str>> {
        self.names.get(usize::try_from(id.0).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_and_have_a_limit() {
        let mut names = Names::new(1);
        let name = |text: &'static str| GroupName::parse(text.as_bytes()).unwrap();
        let (one, two) = (names.id(name("a.one")), names.id(name("a.two")));
        assert_eq!((one, two), (Some(GroupId(0)), Some(GroupId(1))));
        assert_eq!(names.id(name("a.three")), None);
        assert_eq!(names.id(name("a.one")), one);
        assert_eq!(names.name(GroupId(1)).as_deref(), Some("a.two"));
        assert_eq!(names.name(GroupId(2)), None);
    }
}
