//! Groups: name, status, description, when and by whom it was made, and the largest number it ever gave.
//!
//! Ids are given by the log and never reused, and neither are numbers: a removed group leaves a tombstone, and a group made
//! again under its name goes on above its high mark.  Changes come from the applier thread, after it published what came
//! before them; reads run beside it.

mod marks;
pub(crate) mod merge;
mod row;
pub(crate) mod seal;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use newsreel_wire::{ArticleNumber, GroupId, UnixTime};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use row::Attributes;
use seal::GroupRun;
use table::Table;

pub use marks::GROUPS_MAX;
pub(crate) use marks::HighMarks;
pub use row::{Group, GroupChange, GroupRow, REBUILT};

/// The view.
#[derive(Debug, Default)]
pub struct Groups {
    table: Table,
    marks: Arc<HighMarks>,
    /// Above every id ever given.
    next_id: AtomicU32,
    revision: AtomicU64,
    /// No group that nobody knows any more gave a larger number.
    lost_numbers: AtomicU64,
    /// Changed since the last freeze, in attributes or by a mark that no article raised.
    changed: Mutex<Vec<GroupId>>,
}

impl Groups {
    /// The high marks, to be read elsewhere.
    pub(crate) const fn marks(&self) -> &Arc<HighMarks> {
        &self.marks
    }

    /// A group by its name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<Group> {
        self.table.named(name).filter(|group| !group.is_removed())
    }

    /// A group by its id.
    #[must_use]
    pub fn by_id(&self, id: GroupId) -> Option<Group> {
        self.table.get(id).filter(|group| !group.is_removed())
    }

    /// Whether a group of that id is there.
    #[must_use]
    pub fn exists(&self, id: GroupId) -> bool {
        self.by_id(id).is_some()
    }

    /// The largest number the group, removed or not, ever gave.
    #[must_use]
    pub fn high(&self, id: GroupId) -> ArticleNumber {
        self.marks.get(id)
    }

    /// Where the numbers of a group made under this name now begin: above those of former groups of the name.
    #[must_use]
    pub fn former_high(&self, name: &str) -> ArticleNumber {
        let former = self.table.named(name);
        former.map_or(ArticleNumber(0), |group| self.high(group.id()))
    }

    /// Where the numbers of a group made now begin: above those of former groups of the name.  While group rows are lost, any
    /// name may have had one: above what that can have given.
    #[must_use]
    pub fn taken(&self, name: &str) -> ArticleNumber {
        match self.table.named(name) {
            Some(former) => self.high(former.id()),
            None => ArticleNumber(self.lost_numbers.load(Ordering::Acquire)),
        }
    }

    /// The newest group that had this name, removed or not.
    #[must_use]
    pub fn last_of(&self, name: &str) -> Option<GroupId> {
        self.table.named(name).map(|group| group.id())
    }

    /// Of every name that removed groups had, the largest number one of them gave.  Rows up to it are theirs, not
    /// those of a group that has the name now.
    #[must_use]
    pub fn retired(&self) -> HashMap<String, ArticleNumber> {
        let mut retired = HashMap::new();
        let ids = (0..self.next_id().0).map(GroupId);
        for group in ids.filter_map(|id| self.table.get(id)) {
            if group.is_removed() {
                let high = retired.entry(group.name().to_owned()).or_default();
                *high = self.high(group.id()).max(*high);
            }
        }
        retired
    }

    /// The ids of all groups, in octet order of their names: a snapshot.
    #[must_use]
    pub fn sorted(&self) -> Arc<[GroupId]> {
        self.table.sorted()
    }

    /// Visits up to `limit` groups in octet order of their names, those after `after` whose names begin with `prefix`, and looks at few
    /// others; `true`: there may be more.
    pub fn list(
        &self,
        after: Option<&str>,
        prefix: &str,
        limit: usize,
        mut visit: impl FnMut(&Group),
    ) -> bool {
        let sorted = self.sorted();
        let is_named = |id: &GroupId, is: &dyn Fn(&str) -> bool| {
            let group = self.table.get(*id);
            group.is_some_and(|group| is(group.name()))
        };
        let is_before = |name: &str| name < prefix || after.is_some_and(|after| name <= after);
        let rest = &sorted[sorted.partition_point(|id| is_named(id, &is_before))..];
        let begins = |name: &str| name.starts_with(prefix);
        let rest = &rest[..rest.partition_point(|id| is_named(id, &begins))];
        for id in rest.iter().take(limit) {
            if let Some(group) = self.by_id(*id) {
                visit(&group);
            }
        }
        rest.len() > limit
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id the next group gets.
    #[must_use]
    pub fn next_id(&self) -> GroupId {
        GroupId(self.next_id.load(Ordering::Acquire))
    }

    /// Changes with every change of a group's attributes and when groups come and go (not with high marks).
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Octets it takes in memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.octets() + u64::from(self.next_id().0) * size_of::<AtomicU64>() as u64
    }

    /// A group was made, or made again.  It goes on above what a former group of its name gave.
    ///
    /// # Errors
    /// When there are too many.
    pub fn make(&self, row: &GroupRow<'_>) -> Result<()> {
        if row.id.0 as usize >= GROUPS_MAX {
            return Err(Error::TooManyGroups { limit: GROUPS_MAX });
        }
        let high = row.high.max(self.former_high(row.name));
        self.marks.raise(row.id, high);
        self.put(Group::new(&Attributes {
            id: row.id,
            is_removed: false,
            created: row.created,
            changed: row.created,
            name: row.name,
            status: row.status,
            creator: row.creator,
            description: row.description,
        }));
        Ok(())
    }

    /// A group's status or description was changed.
    pub fn change(&self, change: &GroupChange<'_>) {
        self.raise_high(change.id, change.high);
        if let Some(group) = self.by_id(change.id) {
            self.put(Group::new(&Attributes {
                status: change.status,
                description: change.description,
                changed: change.time,
                ..group.attributes()
            }));
        }
    }

    /// A group was removed: its rows are dead, its id, name and numbers stay taken.
    pub fn remove(&self, id: GroupId, time: UnixTime) {
        if let Some(group) = self.by_id(id) {
            self.put(Group::new(&Attributes {
                is_removed: true,
                changed: time,
                ..group.attributes()
            }));
        }
    }

    /// Numbers up to here count as given, though perhaps no article has them.
    pub fn raise_high(&self, id: GroupId, high: ArticleNumber) {
        if self.marks.raise(id, high) {
            self.changed.lock().push(id);
        }
    }

    fn put(&self, group: Group) {
        let id = group.id();
        self.next_id.fetch_max(id.0 + 1, Ordering::AcqRel);
        self.table.put(group);
        self.changed.lock().push(id);
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    /// An article got this number; `false`: it had been given before.  The row itself goes to the overview, which
    /// freezes and keeps the mark.
    pub(crate) fn filed(&self, id: GroupId, number: ArticleNumber) -> bool {
        self.marks.raise(id, number)
    }

    /// Ids below this may have been given.
    pub(crate) fn skip_ids(&self, next: GroupId) {
        self.next_id.fetch_max(next.0, Ordering::AcqRel);
    }

    /// Groups that nobody knows any more gave numbers up to here.
    pub(crate) fn set_lost_numbers(&self, last: ArticleNumber) {
        self.lost_numbers.store(last.0, Ordering::Release);
    }

    /// Whether a group has this id, or had it.
    #[must_use]
    pub fn is_named(&self, id: GroupId) -> bool {
        self.table.get(id).is_some()
    }

    /// The next checkpoint tells of every group, because what older ones told is lost.
    pub(crate) fn tell_again(&self) {
        self.changed
            .lock()
            .extend((0..self.next_id().0).map(GroupId));
    }

    /// Takes what changed, as it is now, for a checkpoint.  The marks must be those of this moment: a replay from here
    /// takes a number at or below them for one that was applied before.
    pub(crate) fn freeze(&self) -> GroupRun {
        let mut changed = std::mem::take(&mut *self.changed.lock());
        changed.sort_unstable();
        changed.dedup();
        self.snapshot(&changed)
    }

    /// These groups as they are now.
    fn snapshot(&self, ids: &[GroupId]) -> GroupRun {
        GroupRun {
            rows: ids.iter().filter_map(|id| self.table.get(*id)).collect(),
            marks: ids.iter().map(|id| (*id, self.high(*id))).collect(),
            withdrawn: Vec::new(),
        }
    }

    fn load_row(&self, row: &Group) {
        self.skip_ids(GroupId(row.id().0 + 1));
        if self
            .table
            .get(row.id())
            .is_some_and(|old| row.yields_to(&old))
        {
            return;
        }
        let former = self.table.named(row.name());
        self.table.put(row.clone());
        // One that came back behind a group which was made in its place.
        let is_former =
            |former: &Group| former.id() < row.id() && !former.is_removed() && !row.is_removed();
        if let Some(former) = former.filter(is_former) {
            self.raise_high(row.id(), self.high(former.id()));
            self.remove(former.id(), row.created());
        }
    }

    /// Takes up what a sealed run says; runs come from the oldest to the newest.
    pub(crate) fn load(&self, run: &GroupRun) {
        for row in &run.rows {
            if (row.id().0 as usize) < GROUPS_MAX {
                self.load_row(row);
            }
        }
        for (group, number) in &run.marks {
            self.marks.raise(*group, *number);
            if (group.0 as usize) < GROUPS_MAX {
                self.skip_ids(GroupId(group.0 + 1));
            }
        }
        self.revision.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32, name: &str) -> GroupRow<'_> {
        GroupRow {
            id: GroupId(id),
            name,
            status: "y",
            created: UnixTime(10),
            creator: "me",
            description: "",
            high: ArticleNumber(0),
        }
    }

    fn names(groups: &Groups) -> Vec<String> {
        let mut names = Vec::new();
        let more = groups.list(None, "", 100, |group| names.push(group.name().to_owned()));
        assert!(!more);
        names
    }

    #[test]
    fn a_group_made_again_goes_on_above_its_old_mark() {
        let groups = Groups::default();
        groups.make(&row(0, "misc.test")).unwrap();
        assert!(groups.filed(GroupId(0), ArticleNumber(17)));
        groups.remove(GroupId(0), UnixTime(20));
        assert!(groups.by_name("misc.test").is_none() && !groups.exists(GroupId(0)));
        assert_eq!(groups.former_high("misc.test"), ArticleNumber(17));
        assert_eq!(groups.next_id(), GroupId(1));
        groups.make(&row(1, "misc.test")).unwrap();
        assert_eq!(groups.high(GroupId(1)), ArticleNumber(17));
        assert_eq!(groups.by_name("misc.test").unwrap().id(), GroupId(1));
        groups.remove(GroupId(1), UnixTime(30));
        groups.make(&row(2, "misc.test")).unwrap();
        assert_eq!(groups.high(GroupId(2)), ArticleNumber(17));
        assert_eq!(names(&groups), ["misc.test"]);
        assert_eq!(groups.retired()["misc.test"], ArticleNumber(17));
    }

    #[test]
    fn the_list_follows_what_comes_and_goes() {
        let groups = Groups::default();
        for (id, name) in ["b.one", "a.two", "c.three", "b"].iter().enumerate() {
            groups.make(&row(id as u32, name)).unwrap();
        }
        assert_eq!(names(&groups), ["a.two", "b", "b.one", "c.three"]);
        groups.remove(GroupId(0), UnixTime(20));
        groups.make(&row(4, "b.a")).unwrap();
        groups.make(&row(5, "b.one")).unwrap();
        assert_eq!(names(&groups), ["a.two", "b", "b.a", "b.one", "c.three"]);
        let mut two = Vec::new();
        assert!(groups.list(Some("b"), "", 2, |group| two.push(group.id())));
        assert_eq!(two, [GroupId(4), GroupId(5)]);
        for (after, prefix, more, expected) in [
            (None, "b.", false, &["b.a", "b.one"][..]),
            (None, "b", true, &["b", "b.a"]),
            (Some("b.a"), "b.", false, &["b.one"]),
            (Some("c"), "b.", false, &[]),
            (None, "b.one", false, &["b.one"]),
            (None, "bb", false, &[]),
        ] {
            let mut names = Vec::new();
            let left = groups.list(after, prefix, 2, |group| {
                names.push(group.name().to_owned())
            });
            assert_eq!(
                (names.as_slice(), left),
                (
                    expected
                        .iter()
                        .map(|&name| name.to_owned())
                        .collect::<Vec<_>>()
                        .as_slice(),
                    more
                ),
                "{after:?} {prefix}"
            );
        }
    }

    #[test]
    fn changes_survive_a_snapshot() {
        let groups = Groups::default();
        groups.make(&row(0, "a.b")).unwrap();
        groups.make(&row(1, "c.d")).unwrap();
        groups.change(&GroupChange {
            id: GroupId(1),
            status: "m",
            description: "moderated",
            time: UnixTime(30),
            high: ArticleNumber(9),
        });
        groups.remove(GroupId(0), UnixTime(31));
        let again = Groups::default();
        again.load(&groups.freeze());
        let group = again.by_name("c.d").unwrap();
        assert_eq!((group.status(), group.description()), ("m", "moderated"));
        assert_eq!(
            (group.created(), group.changed()),
            (UnixTime(10), UnixTime(30))
        );
        assert_eq!(again.high(GroupId(1)), ArticleNumber(9));
        assert_eq!(again.next_id(), GroupId(2));
        assert_eq!(again.len(), 1);
        assert_eq!(groups.freeze(), GroupRun::default());
    }
}
