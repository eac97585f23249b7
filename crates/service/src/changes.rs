//! When each group was last seen to differ from what LIST ACTIVE said of it before: what LIST ACTIVE.MODTIME goes by.
//!
//! A moment noted is never before the change: who was shown a group's line at some moment and asks for what changed since
//! then is told of every later change, perhaps twice, never not.  Nothing is kept until somebody asks, and nothing on a
//! disk: in a server that was started again every group counts as changed when it is first looked at.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};

use newsreel_wire::{ArticleNumber, GroupId, UnixTime};

use crate::group::GroupRow;

/// The last changes of the groups that were looked at.
#[derive(Debug, Default)]
pub struct LastChanges {
    seen: HashMap<GroupId, Seen>,
    /// The latest moment noted or looked at; moments do not step back when the clock does.
    latest: UnixTime,
}

/// What was seen of a group, and when it was first seen so.
#[derive(Debug, Clone, Copy)]
struct Seen {
    high: ArticleNumber,
    low: ArticleNumber,
    /// Hash of the status field: which group an alias stands for may change, too.
    status: u64,
    at: UnixTime,
}

impl LastChanges {
    /// Looks at a group, at a moment that is not before its facts were taken, and says whether it changed at or
    /// after `since`.  A `since` that is still to come, as after the clock was set back, takes every group.
    pub fn look(&mut self, row: &GroupRow<'_>, since: UnixTime, now: UnixTime) -> bool {
        self.latest = self.latest.max(now);
        let mut status = DefaultHasher::new();
        status.write(row.status.as_bytes());
        let sight = Seen {
            high: row.info.high,
            low: row.info.low,
            status: status.finish(),
            at: self.latest,
        };
        let seen = self.seen.entry(row.info.id).or_insert(sight);
        if (seen.high, seen.low, seen.status) != (sight.high, sight.low, sight.status) {
            *seen = sight;
        }
        seen.at >= since || since > self.latest
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
