//! When each group was last seen to differ from what LIST ACTIVE said of it before: what LIST ACTIVE.MODTIME goes by.
//!
//! A moment noted is never before the change: who was shown a group's line at some moment and asks for what changed since
//! then is told of every later change, perhaps twice, never not.  Nothing is kept until somebody asks.  Who owns this may keep its
//! rows where it stops and give them back where it starts again, if nobody was shown any line in between.

use std::collections::HashMap;

use newsreel_wire::{ArticleNumber, GroupId, UnixTime};

use crate::group::GroupRow;

/// The last changes of the groups that were looked at.
#[derive(Debug, Default)]
pub struct LastChanges {
    seen: HashMap<GroupId, LastChange>,
    /// The latest moment noted or looked at; moments do not step back when the clock does.
    latest: UnixTime,
}

/// What was seen of a group, and when it was first seen so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastChange {
    /// The low mark.
    pub low: ArticleNumber,
    /// The high mark.
    pub high: ArticleNumber,
    /// The hash of the status field, the same in every run: which group an alias stands for may change, too.
    pub status: u64,
    /// The moment.
    pub at: UnixTime,
}

fn status_hash(status: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(status.as_bytes()).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl LastChanges {
    /// Looks at a group, at a moment that is not before its facts were taken, and says whether it changed at or
    /// after `since`.  A `since` that is still to come, as after the clock was set back, takes every group.
    pub fn look(&mut self, row: &GroupRow<'_>, since: UnixTime, now: UnixTime) -> bool {
        self.latest = self.latest.max(now);
        let sight = LastChange {
            low: row.info.low,
            high: row.info.high,
            status: status_hash(row.status),
            at: self.latest,
        };
        let seen = self.seen.entry(row.info.id).or_insert(sight);
        if (seen.high, seen.low, seen.status) != (sight.high, sight.low, sight.status) {
            *seen = sight;
        }
        seen.at >= since || since > self.latest
    }

    /// What is noted, in no order.
    pub fn rows(&self) -> impl Iterator<Item = (GroupId, LastChange)> {
        self.seen.iter().map(|(id, row)| (*id, *row))
    }

    /// The latest moment noted or looked at.
    #[must_use]
    pub const fn latest(&self) -> UnixTime {
        self.latest
    }

    /// What was noted once.
    pub fn restored(
        latest: UnixTime,
        rows: impl IntoIterator<Item = (GroupId, LastChange)>,
    ) -> Self {
        Self {
            seen: rows.into_iter().collect(),
            latest,
        }
    }
}

#[cfg(test)]
mod tests {
    use newsreel_wire::GroupName;

    use super::*;
    use crate::group::{GroupInfo, GroupStatus};

    /// Looks at `<id> <low> <high> <status>`.
    fn look(changes: &mut LastChanges, line: &str, since: u64, now: u64) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let row = GroupRow {
            name: GroupName::parse(b"misc.test").unwrap(),
            info: GroupInfo {
                id: GroupId(number(0) as u32),
                low: ArticleNumber(number(1)),
                high: ArticleNumber(number(2)),
                count: 0,
                first: ArticleNumber(number(1)),
                status: GroupStatus::parse(words[3]).unwrap(),
            },
            status: words[3],
            created: UnixTime(0),
            creator: "me",
            description: "",
        };
        changes.look(&row, UnixTime(since), UnixTime(now))
    }

    #[test]
    fn what_changed_is_told_to_who_saw_it_before() {
        let mut changes = LastChanges::default();
        let at = &mut changes;
        assert!(look(at, "7 1 5 y", 0, 100), "never looked at");
        assert!(!look(at, "7 1 5 y", 101, 110), "nothing new");
        for (line, now) in [
            ("7 1 6 y", 120),
            ("7 2 6 y", 130),
            ("7 2 6 =a.b", 140),
            ("7 2 6 =a.c", 150),
        ] {
            assert!(look(at, line, now - 5, now), "{line}");
            assert!(look(at, line, now, now + 5), "{line}: in the same second");
            assert!(!look(at, line, now + 1, now + 5), "{line}: told already");
        }
        assert!(look(at, "8 1 0 y", 155, 160), "another group");
    }

    /// Once every group counted as changed after a restart.
    #[test]
    fn what_is_given_back_counts_as_before() {
        let mut before = LastChanges::default();
        assert!(look(&mut before, "7 1 5 y", 0, 100));
        assert!(look(&mut before, "8 1 5 y", 0, 200));
        let after = || LastChanges::restored(before.latest(), before.rows());
        assert!(!look(&mut after(), "7 1 5 y", 101, 300), "as it was");
        assert!(look(&mut after(), "7 1 5 y", 100, 300));
        assert!(look(&mut after(), "7 1 6 y", 300, 300), "changed since");
        assert!(
            look(&mut after(), "7 1 6 y", 200, 150),
            "the clock went back"
        );
        assert!(!look(&mut after(), "8 1 5 y", 201, 300));
    }

    /// A clock that is set back must not date a change before what somebody was shown already.
    #[test]
    fn a_clock_set_back_hides_nothing() {
        let mut changes = LastChanges::default();
        let at = &mut changes;
        assert!(look(at, "7 1 5 y", 0, 1000));
        assert!(look(at, "7 1 6 y", 1000, 400));
        assert!(look(at, "7 1 6 y", 1000, 1001), "noted at 1000, not at 400");
        assert!(!look(at, "7 1 6 y", 1001, 1001));
        let mut again = LastChanges::default();
        assert!(look(&mut again, "7 1 6 y", 401, 400), "from a time to come");
        assert!(look(&mut again, "7 1 6 y", 402, 400));
    }
}
