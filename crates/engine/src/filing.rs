//! What the sequencer gives an article: numbers, Xref, the final text, the overview line.
//!
//! [`GroupTable`] is the sequencer's own picture of the groups: the next number of each, ahead of what
//! readers see by what is not committed yet.  Everything here is memory work on buffers that are
//! used again for every article; nothing is parsed and nothing is written.

use std::collections::HashMap;

use newsreel_wire::{ArticleNumber, GroupId};
use smallvec::SmallVec;

use crate::accept::Candidate;
use crate::config::NumberOverflow;
use crate::places::Places;

/// How articles posted to a group are filed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filing {
    /// Under its own numbers.
    Here,
    /// Under the numbers of another group (`=other.group`).
    Alias(GroupId),
    /// Not filed in it (`j`, `x`, or removed).
    Nowhere,
}

/// A group as the sequencer sees it.
#[derive(Debug, Clone)]
pub(crate) struct GroupSlot {
    /// The number the next article gets.
    pub(crate) next: u64,
    /// Its name, for Xref.
    pub(crate) name: Box<str>,
    /// Where its articles go.
    pub(crate) filing: Filing,
}

/// The sequencer's groups, by id and by name.
#[derive(Debug)]
pub(crate) struct GroupTable {
    /// No group gives a larger one.
    number_max: u64,
    slots: Vec<Option<GroupSlot>>,
    names: HashMap<Box<str>, GroupId>,
    /// The last numbers that groups gave which were removed: the views may not have them yet.
    removed: HashMap<Box<str>, ArticleNumber>,
    /// Above every id ever given.
    next_id: u32,
}

/// The largest number offered to readers (RFC 3977 section 6 allows 31 bits).
pub(crate) const NUMBER_MAX: u64 = 0x7fff_ffff;

/// The largest number that commands can name: 16 digits (RFC 3977 section 9.8).
pub(crate) const NUMBER_LARGER_MAX: u64 = 9_999_999_999_999_999;

/// The last number that a group gives.
pub(crate) const fn number_max(overflow: NumberOverflow) -> u64 {
    match overflow {
        NumberOverflow::Stop => NUMBER_MAX,
        NumberOverflow::Larger => NUMBER_LARGER_MAX,
    }
}

/// So many numbers at the end of all are not given because an article had one of them elsewhere: what its Xref says would close a group.
pub(crate) const NUMBERS_SPARED: u64 = 1 << 24;

/// The number that an article gets in a group whose next is this and that gives none behind `number_max`: the one that it had elsewhere
/// where that is still to come and not near the end.
pub(crate) fn number_from(next: u64, wanted: ArticleNumber, number_max: u64) -> u64 {
    let is_kept = wanted.0 <= number_max - NUMBERS_SPARED;
    next.max(if is_kept { wanted.0 } else { 0 })
}

impl GroupTable {
    /// No groups yet.
    pub(crate) fn new(overflow: NumberOverflow) -> Self {
        Self {
            number_max: number_max(overflow),
            slots: Vec::new(),
            names: HashMap::new(),
            removed: HashMap::new(),
            next_id: 0,
        }
    }

    /// Puts a group in, or replaces it.
    pub(crate) fn set(&mut self, id: GroupId, slot: GroupSlot) {
        let at = id.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, None);
        }
        self.next_id = self.next_id.max(id.0.saturating_add(1));
        self.names.insert(slot.name.clone(), id);
        self.slots[at] = Some(slot);
    }

    /// Takes a group out; its id is not given again.
    pub(crate) fn remove(&mut self, id: GroupId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize).and_then(Option::take) {
            self.names.remove(&slot.name);
            let last = ArticleNumber(slot.next.saturating_sub(1));
            let removed = self.removed.entry(slot.name).or_default();
            *removed = last.max(*removed);
        }
    }

    /// The last number that a group of this name gave which was removed.
    pub(crate) fn taken(&self, name: &str) -> ArticleNumber {
        self.removed.get(name).copied().unwrap_or_default()
    }

    /// The names of all groups, in no order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name)
    }

    /// These groups, but with no number and no id that another picture of them gave already.
    pub(crate) fn above(mut self, other: &Self) -> Self {
        self.skip_ids(GroupId(other.next_id));
        for (slot, given) in self.slots.iter_mut().zip(&other.slots) {
            if let (Some(slot), Some(given)) = (slot, given) {
                slot.next = slot.next.max(given.next);
            }
        }
        for slot in self.slots.iter_mut().flatten() {
            // It was removed by a commit that failed, and so it is there.
            let taken = other.removed.get(&slot.name).copied().unwrap_or_default();
            slot.next = slot.next.max(taken.0.saturating_add(1));
        }
        self.removed.clone_from(&other.removed);
        self
    }

    /// Ids below this were given before, to groups that are gone.
    pub(crate) fn skip_ids(&mut self, next: GroupId) {
        self.next_id = self.next_id.max(next.0);
    }

    /// The id of the group of this name.
    pub(crate) fn find(&self, name: &str) -> Option<GroupId> {
        self.names.get(name).copied()
    }

    /// A group by its id.
    pub(crate) fn get_mut(&mut self, id: GroupId) -> Option<&mut GroupSlot> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// A group by its id.
    pub(crate) fn get(&self, id: GroupId) -> Option<&GroupSlot> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// The id that a new group gets.
    pub(crate) fn next_id(&self) -> GroupId {
        GroupId(self.next_id)
    }

    /// The group under whose numbers articles of this one are filed.
    fn target(&self, id: GroupId) -> GroupId {
        // An alias of an alias is refused when it is made, so one step is enough.
        match self.get(id).map(|slot| slot.filing) {
            Some(Filing::Alias(target)) => target,
            _ => id,
        }
    }

    /// Where an article of these groups is filed, with the numbers it would get; nothing changes
    /// until [`GroupTable::take`].
    pub(crate) fn numbers(&self, groups: &[GroupId]) -> Places {
        self.numbers_from(groups.iter().map(|group| (*group, ArticleNumber(0))))
    }

    /// The same for an article that had these numbers elsewhere: it keeps each, unless the group has given that one or a later
    /// one, or it is near the last that there is.
    pub(crate) fn numbers_from(
        &self,
        places: impl Iterator<Item = (GroupId, ArticleNumber)>,
    ) -> Places {
        let mut out = Places::new();
        for (group, wanted) in places {
            let id = self.target(group);
            let Some(slot) = self.get(id) else { continue };
            let number = number_from(slot.next, wanted, self.number_max);
            if slot.filing == Filing::Here
                && number <= self.number_max
                && out.iter().all(|(seen, _)| *seen != id)
            {
                out.push((id, ArticleNumber(number)));
            }
        }
        out
    }

    /// Whether one of these groups would file an article had it not given its last number.
    pub(crate) fn is_any_full(&self, groups: &[GroupId]) -> bool {
        groups.iter().any(|group| {
            self.get(self.target(*group))
                .is_some_and(|slot| slot.filing == Filing::Here && slot.next > self.number_max)
        })
    }

    /// These numbers are given; the next article gets later ones.
    pub(crate) fn take(&mut self, numbers: &[(GroupId, ArticleNumber)]) {
        let number_max = self.number_max;
        for (group, number) in numbers {
            if let Some(slot) = self.get_mut(*group) {
                slot.next = number.0 + 1;
                if number.0 == number_max {
                    tracing::warn!(group = %slot.name, "the group has given its last number and files no more articles");
                }
            }
        }
    }
}

/// In front of the content of Xref.
const XREF: &[u8] = b"Xref: ";

/// Writes the content of Xref: `server group:number ...` (RFC 5536 section 3.2.14).
pub(crate) fn write_xref(
    out: &mut Vec<u8>,
    server: &str,
    numbers: &[(GroupId, ArticleNumber)],
    groups: &GroupTable,
) {
    out.extend_from_slice(server.as_bytes());
    let mut digits = itoa::Buffer::new();
    for (group, number) in numbers {
        let Some(slot) = groups.get(*group) else {
            continue;
        };
        out.push(b' ');
        out.extend_from_slice(slot.name.as_bytes());
        out.push(b':');
        out.extend_from_slice(digits.format(number.0).as_bytes());
    }
}

/// The same as a header line.
pub(crate) fn write_xref_line(
    out: &mut Vec<u8>,
    server: &str,
    numbers: &[(GroupId, ArticleNumber)],
    groups: &GroupTable,
) {
    out.extend_from_slice(XREF);
    write_xref(out, server, numbers, groups);
    out.extend_from_slice(b"\r\n");
}

/// What such a line says; nothing where there is none.
pub(crate) fn xref_content(line: &[u8]) -> &[u8] {
    let content = line.strip_prefix(XREF).unwrap_or_default();
    content.trim_ascii_end()
}

/// The pieces of the final article, in order, and the length of its header block.
///
/// Our Path entry goes in front of the content of Path, a foreign Xref goes out, ours goes to the
/// end of the header block; all other octets stay as they came (RFC 5537 section 3.6).
pub(crate) fn parts<'a>(
    candidate: &'a Candidate,
    path_entry: &'a [u8],
    xref_line: &'a [u8],
) -> (SmallVec<[&'a [u8]; 8]>, usize) {
    let article = &candidate.article[..];
    let mut parts: SmallVec<[&[u8]; 8]> = SmallVec::new();
    let path_at = candidate.path.start as usize;
    let body_at = candidate.head_end as usize;
    let mut push = |part: &'a [u8]| {
        if !part.is_empty() {
            parts.push(part);
        }
    };
    match &candidate.xref {
        None => {
            push(&article[..path_at]);
            push(path_entry);
            push(&article[path_at..body_at]);
        }
        Some(xref) if (xref.start as usize) < path_at => {
            push(&article[..xref.start as usize]);
            push(&article[xref.end as usize..path_at]);
            push(path_entry);
            push(&article[path_at..body_at]);
        }
        Some(xref) => {
            push(&article[..path_at]);
            push(path_entry);
            push(&article[path_at..xref.start as usize]);
            push(&article[xref.end as usize..body_at]);
        }
    }
    push(xref_line);
    let head_len = parts.iter().map(|part| part.len()).sum();
    parts.push(&article[body_at..]);
    (parts, head_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::tests::candidate_of;

    fn table() -> GroupTable {
        let mut table = GroupTable::new(NumberOverflow::Stop);
        for (id, name, filing) in [
            (0, "misc.test", Filing::Here),
            (1, "misc.alias", Filing::Alias(GroupId(0))),
            (2, "misc.gone", Filing::Nowhere),
        ] {
            let slot = GroupSlot {
                next: 7,
                name: name.into(),
                filing,
            };
            table.set(GroupId(id), slot);
        }
        table
    }

    #[test]
    fn aliases_file_once_and_removed_groups_not_at_all() {
        let mut table = table();
        let numbers = table.numbers(&[GroupId(1), GroupId(0), GroupId(2), GroupId(9)]);
        assert_eq!(&numbers[..], &[(GroupId(0), ArticleNumber(7))]);
        table.take(&numbers);
        assert_eq!(table.numbers(&[GroupId(0)])[0].1, ArticleNumber(8));
        let mut xref = Vec::new();
        write_xref_line(&mut xref, "news.example", &numbers, &table);
        assert_eq!(xref, b"Xref: news.example misc.test:7\r\n");
        assert_eq!(xref_content(&xref), b"news.example misc.test:7");
        assert_eq!(xref_content(b""), b"");
    }

    #[test]
    fn a_number_from_elsewhere_is_kept_if_it_is_to_come() {
        let table = table();
        let last = NUMBER_MAX - NUMBERS_SPARED;
        for (wanted, number) in [
            (0, 7),
            (6, 7),
            (7, 7),
            (9, 9),
            (last, last),
            (last + 1, 7),
            (NUMBER_MAX, 7),
            (NUMBER_MAX + 1, 7),
        ] {
            let places = [(GroupId(1), ArticleNumber(wanted))];
            let numbers = table.numbers_from(places.into_iter());
            assert_eq!(
                numbers[..],
                [(GroupId(0), ArticleNumber(number))],
                "{wanted}"
            );
        }
    }

    #[test]
    fn a_full_group_stops_filing() {
        let mut table = table();
        table.set(
            GroupId(0),
            GroupSlot {
                next: NUMBER_MAX + 1,
                name: "misc.test".into(),
                filing: Filing::Here,
            },
        );
        assert!(table.numbers(&[GroupId(0)]).is_empty());
        assert!(table.is_any_full(&[GroupId(2), GroupId(1)]));
        assert!(!table.is_any_full(&[GroupId(2), GroupId(9)]));
        table.number_max = NUMBER_LARGER_MAX;
        assert_eq!(
            table.numbers(&[GroupId(1)])[..],
            [(GroupId(0), ArticleNumber(NUMBER_MAX + 1))]
        );
        assert!(!table.is_any_full(&[GroupId(0)]));
    }

    #[test]
    fn only_path_and_xref_change() {
        for (article, expect) in [
            (
                "Path: a!b\r\nXref: x misc.test:1\r\nSubject: s\r\n\r\nbody\r\n.\r\n",
                "Path: us!a!b\r\nSubject: s\r\nXref: us misc.test:7\r\n\r\nbody\r\n.\r\n",
            ),
            (
                "Xref: x misc.test:1\r\n misc.two:2\r\nPath: a!b\r\nSubject: s\r\n\r\n.\r\n",
                "Path: us!a!b\r\nSubject: s\r\nXref: us misc.test:7\r\n\r\n.\r\n",
            ),
            (
                "Subject: s\r\nPath: a!b\r\n\r\nbody\r\n.\r\n",
                "Subject: s\r\nPath: us!a!b\r\nXref: us misc.test:7\r\n\r\nbody\r\n.\r\n",
            ),
        ] {
            let candidate = candidate_of(article);
            let (parts, head_len) = parts(&candidate, b"us!", b"Xref: us misc.test:7\r\n");
            let whole = parts.concat();
            assert_eq!(String::from_utf8_lossy(&whole), expect);
            assert_eq!(
                &whole[head_len..head_len + 2],
                b"\r\n",
                "the empty line follows the head"
            );
        }
    }

    /// A group that is made again before the views know what it gave, or that is there again as the commit failed which removed it,
    /// gave numbers a second time.
    #[test]
    fn a_group_that_was_removed_gives_no_number_again() {
        let slot = |next: u64| GroupSlot {
            next,
            name: "a.b".into(),
            filing: Filing::Here,
        };
        let table = |id: u32, next: u64| {
            let mut table = GroupTable::new(NumberOverflow::Stop);
            table.set(GroupId(id), slot(next));
            table
        };
        let mut removed = table(1, 8);
        assert_eq!(removed.taken("a.b"), ArticleNumber(0));
        removed.remove(GroupId(1));
        assert_eq!(removed.taken("a.b"), ArticleNumber(7));
        // Made again with fewer, and removed again.
        removed.set(GroupId(2), slot(3));
        removed.remove(GroupId(2));
        assert_eq!(removed.taken("a.b"), ArticleNumber(7));
        let again = table(1, 5).above(&removed);
        assert_eq!(again.get(GroupId(1)).unwrap().next, 8);
        assert_eq!(again.next_id(), GroupId(3));
        assert_eq!(again.taken("a.b"), ArticleNumber(7));
    }
}
