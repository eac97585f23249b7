//! What the views must say of a stored article, read from the article itself: its places by Xref, its overview line.
//!
//! The Xref of a stored article is ours and was true when it was written.  Groups may have been removed since, or made
//! again with new numbers, so a place is only a place while its group is there and the number is not a former one's.

use std::collections::HashMap;

use newsreel_index::Groups;
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{ArticleNumber, GroupId, overview};
use smallvec::SmallVec;

/// Groups and numbers of one article.
pub(crate) type Places = SmallVec<[(GroupId, ArticleNumber); 4]>;

/// The highest numbers of removed groups by name, as [`Groups::retired`] tells them.
pub(crate) type Retired = HashMap<String, ArticleNumber>;

/// The groups and numbers that an Xref of ours names, as far as the groups are still there.
pub(crate) fn places(groups: &Groups, retired: &Retired, xref: &[u8]) -> Places {
    let place = |(name, number): (&str, ArticleNumber)| {
        let group = groups.by_name(name)?;
        let is_former = retired.get(name).is_some_and(|high| number <= *high);
        (!is_former).then_some((group.id(), number))
    };
    named(xref).filter_map(place).collect()
}

/// What an Xref names, groups that are gone included.
pub(crate) fn named(xref: &[u8]) -> impl Iterator<Item = (&str, ArticleNumber)> {
    let xref = std::str::from_utf8(xref).unwrap_or_default();
    xref.split_ascii_whitespace().skip(1).filter_map(|place| {
        let (name, number) = place.rsplit_once(':')?;
        Some((name, ArticleNumber(number.parse().ok()?)))
    })
}

/// Appends the overview line of a stored article, without the number in front.
pub(crate) fn write_line(headers: &Headers<'_>, facts: &ArticleFacts, out: &mut Vec<u8>) {
    overview::write_fields(headers, facts.bytes, facts.lines, out);
    if let Some(xref) = headers.content(Known::Xref) {
        overview::write_named("Xref", xref, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xref_is_taken_apart() {
        let named: Vec<_> = named(b"us misc.test:7 x\r\n misc.a:b:8 misc.c:x").collect();
        let expect = [
            ("misc.test", ArticleNumber(7)),
            ("misc.a:b", ArticleNumber(8)),
        ];
        assert_eq!(named, expect);
        assert_eq!(super::named(b"us \xff:1").count(), 0);
    }
}
