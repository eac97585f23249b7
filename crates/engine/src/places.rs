//! What the views must say of a stored article, read from the article itself: its places by Xref, its overview line.
//!
//! The Xref of a stored article is ours and was true when it was written.  Groups may have been removed since, or made
//! again with new numbers, so a place is only a place while its group is there and the number is not a former one's.

use std::collections::HashMap;

use newsreel_index::Groups;
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{ArticleNumber, GroupId, overview, xref};
use smallvec::SmallVec;

/// Groups and numbers of one article.
pub(crate) type Places = SmallVec<[(GroupId, ArticleNumber); 4]>;

/// The highest numbers of removed groups by name, as [`Groups::retired`] tells them.
pub(crate) type Retired = HashMap<String, ArticleNumber>;

/// The groups and numbers that an Xref of ours names, as far as the groups are still there.
pub(crate) fn places(groups: &Groups, retired: &Retired, content: &[u8]) -> Places {
    let place = |(name, number): (&str, ArticleNumber)| {
        let group = groups.by_name(name)?;
        let is_former = retired.get(name).is_some_and(|high| number <= *high);
        (!is_former).then_some((group.id(), number))
    };
    xref::places(content).filter_map(place).collect()
}

/// Appends the overview line of a stored article, without the number in front.
pub(crate) fn write_line(headers: &Headers<'_>, facts: &ArticleFacts, out: &mut Vec<u8>) {
    overview::write_fields(headers, facts.bytes, facts.lines, out);
    if let Some(xref) = headers.content(Known::Xref) {
        overview::write_named("Xref", xref, out);
    }
}
