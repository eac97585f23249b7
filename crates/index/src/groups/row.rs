//! A group's attributes, packed into one piece of memory, which is also how they are stored.
//!
//! ```text
//! 0..4    id
//! 4       1: removed (the name and the id stay taken)
//! 5..9    created, seconds (up to 2106)
//! 9..13   last change of an attribute, seconds
//! 13..21  lengths of name, status, creator, description, two octets each
//! 21..    these texts, UTF-8
//! ```
//! A [`Group`] is consistent: it is only made from attributes or from octets that were checked.

use std::fmt;
use std::sync::Arc;

use newsreel_wire::{ArticleNumber, GroupId, UnixTime};

use crate::cursor::{Bad, Cursor, array_at};

const HEAD_OCTETS: usize = 21;
const LENGTHS_AT: usize = 13;

/// The creator of groups whose rows were lost, when they are brought back.
pub const REBUILT: &str = "rebuilt";

/// A group as the log tells it when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupRow<'a> {
    /// Its id, never given to another group.
    pub id: GroupId,
    /// Its name.
    pub name: &'a str,
    /// The status field of LIST ACTIVE: `y`, `n`, `m`, `j`, `x` or `=other.group`.
    pub status: &'a str,
    /// When it was made.
    pub created: UnixTime,
    /// Who made it.
    pub creator: &'a str,
    /// Its line in LIST NEWSGROUPS.
    pub description: &'a str,
    /// Numbers up to here are taken; a former group of this name may raise it.
    pub high: ArticleNumber,
}

/// A group as the log tells it when it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupChange<'a> {
    /// Which group.
    pub id: GroupId,
    /// The new status.
    pub status: &'a str,
    /// The new description.
    pub description: &'a str,
    /// When.
    pub time: UnixTime,
    /// Numbers up to here are taken, if more than were before.
    pub high: ArticleNumber,
}

/// A group's attributes at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct Group(Arc<[u8]>);

/// The attributes of [`Group`], to make one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) id: GroupId,
    pub(crate) is_removed: bool,
    pub(crate) created: UnixTime,
    pub(crate) changed: UnixTime,
    pub(crate) name: &'a str,
    pub(crate) status: &'a str,
    pub(crate) creator: &'a str,
    pub(crate) description: &'a str,
}

/// The longest prefix that fits the two octets of its length, cut between characters, and that length.
fn fitting(text: &str) -> (u16, &str) {
    let mut len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    while !text.is_char_boundary(len.into()) {
        len -= 1;
    }
    (len, &text[..len.into()])
}

impl Group {
    pub(crate) fn new(attributes: &Attributes<'_>) -> Self {
        let texts = [
            attributes.name,
            attributes.status,
            attributes.creator,
            attributes.description,
        ]
        .map(fitting);
        let len: usize = texts.iter().map(|(len, _)| usize::from(*len)).sum();
        let mut out = Vec::with_capacity(HEAD_OCTETS + len);
        out.extend_from_slice(&attributes.id.0.to_le_bytes());
        out.push(u8::from(attributes.is_removed));
        for time in [attributes.created, attributes.changed] {
            let seconds = u32::try_from(time.0).unwrap_or(u32::MAX);
            out.extend_from_slice(&seconds.to_le_bytes());
        }
        for (len, _) in texts {
            out.extend_from_slice(&len.to_le_bytes());
        }
        for (_, text) in texts {
            out.extend_from_slice(text.as_bytes());
        }
        Self(out.into())
    }

    /// Checks the stored form.
    pub(crate) fn decode(octets: &[u8]) -> Result<Self, Bad> {
        let mut cursor = Cursor::new(octets);
        cursor.take(4)?;
        if cursor.u8()? > 1 {
            return Err(Bad("a group is neither there nor removed"));
        }
        cursor.take(8)?;
        let lens = [cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?];
        for len in lens {
            std::str::from_utf8(cursor.take(usize::from(len))?)
                .map_err(|_| Bad("a group's text is not UTF-8"))?;
        }
        cursor.finish()?;
        Ok(Self(octets.into()))
    }

    /// The stored form.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            id: self.id(),
            is_removed: self.is_removed(),
            created: self.created(),
            changed: self.changed(),
            name: self.name(),
            status: self.status(),
            creator: self.creator(),
            description: self.description(),
        }
    }

    /// Whether an older row of the same group says more: this one was only guessed when that was lost.
    pub(crate) fn yields_to(&self, old: &Self) -> bool {
        self.creator() == REBUILT && self.changed() == self.created() && *self != *old
    }

    fn text(&self, nth: usize) -> &str {
        let len =
            |nth: usize| usize::from(u16::from_le_bytes(array_at(&self.0, LENGTHS_AT + 2 * nth)));
        let at = HEAD_OCTETS + (0..nth).map(len).sum::<usize>();
        let octets = self.0.get(at..at + len(nth)).unwrap_or_default();
        std::str::from_utf8(octets).unwrap_or_default()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> GroupId {
        GroupId(u32::from_le_bytes(array_at(&self.0, 0)))
    }

    /// Whether it was removed.
    pub(crate) fn is_removed(&self) -> bool {
        array_at::<1>(&self.0, 4) == [1]
    }

    /// When it was made.
    #[must_use]
    pub fn created(&self) -> UnixTime {
        UnixTime(u64::from(u32::from_le_bytes(array_at(&self.0, 5))))
    }

    /// When an attribute was changed last.
    #[must_use]
    pub fn changed(&self) -> UnixTime {
        UnixTime(u64::from(u32::from_le_bytes(array_at(&self.0, 9))))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text(0)
    }

    /// The status field of LIST ACTIVE.
    #[must_use]
    pub fn status(&self) -> &str {
        self.text(1)
    }

    /// Who made it.
    #[must_use]
    pub fn creator(&self) -> &str {
        self.text(2)
    }

    /// Its line in LIST NEWSGROUPS.
    #[must_use]
    pub fn description(&self) -> &str {
        self.text(3)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.attributes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Group {
        Group::new(&Attributes {
            id: GroupId(7),
            is_removed: false,
            created: UnixTime(1),
            changed: UnixTime(2),
            name: "misc.test",
            status: "=misc.other",
            creator: "\u{e5}dmin@example",
            description: "For tests",
        })
    }

    #[test]
    fn attributes_come_back() {
        let group = Group::decode(group().octets()).unwrap();
        assert_eq!(
            (group.id(), group.created(), group.changed()),
            (GroupId(7), UnixTime(1), UnixTime(2))
        );
        assert_eq!((group.name(), group.status()), ("misc.test", "=misc.other"));
        assert_eq!(
            (group.creator(), group.description()),
            ("\u{e5}dmin@example", "For tests")
        );
    }

    #[test]
    fn damage_is_refused_or_harmless() {
        let good = group().octets().to_vec();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x81;
            if let Ok(group) = Group::decode(&bad) {
                let _ = format!("{group:?}");
            }
            assert!(Group::decode(&good[..at]).is_err());
        }
    }

    #[test]
    fn texts_too_long_are_cut_between_characters() {
        let long = "\u{e5}".repeat(40_000);
        let cut = Group::new(&Attributes {
            description: &long,
            ..group().attributes()
        });
        assert_eq!(Group::decode(cut.octets()), Ok(cut.clone()));
        assert_eq!(cut.description().len(), 65_534);
    }
}
