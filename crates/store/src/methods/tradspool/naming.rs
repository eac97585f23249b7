//! Names by group and number.
//!
//! A name follows from group, number and layout alone.  A part of a group's name that could be an article, or a directory that
//! keeps some, gets a comma behind it, which no group's name has: article 5 of `a` is `a/5`, and `a.5` lies in `a/5,`.
//! An article that is in no group (a control message, where no group is for it) is named by its sequence, below `,`.

use std::ffi::OsStr;

use newsreel_layout::{Algorithm, Name};
use newsreel_wire::{ArticleNumber, xref};

use super::Layouts;
use crate::files::Naming;
use crate::method::Place;

/// What is put behind a part of a group's name.
const MARK: char = ',';
/// Octets of a part that is too long for a file system; of what it is cut into.
const PART_OCTETS_MAX: usize = 240;

/// Names by group and number.
#[derive(Debug)]
pub(super) struct ByNumber {
    pub(super) layouts: Layouts,
}

impl Naming for ByNumber {
    fn names(&self, place: &Place<'_>) -> Vec<String> {
        let name = |(group, number)| name(group, number, self.layouts.of(group));
        let mut names: Vec<String> = xref::places(place.xref).map(name).collect();
        if names.is_empty() {
            names.push(format!("{MARK}/{}", place.sequence.0));
        }
        names
    }

    fn has_hierarchies(&self) -> bool {
        true
    }
}

/// The name of an article in one group.
fn name(group: &str, number: ArticleNumber, layout: Option<Algorithm>) -> String {
    let mut path = String::with_capacity(group.len() + 24);
    for part in group.split('.') {
        write_part(part, &mut path);
    }
    let number = number.0.to_string();
    let placed = match (layout, Name::parse(OsStr::new(&number))) {
        (Some(layout), Ok(name)) => layout.place(name),
        _ => return path + &number,
    };
    // Buckets have names of letters and digits.
    path + placed.to_str().unwrap_or(&number)
}

/// Appends a part of a group's name, and a slash.
fn write_part(part: &str, path: &mut String) {
    let mut rest = part;
    while rest.len() > PART_OCTETS_MAX {
        let mut ends = (0..=PART_OCTETS_MAX).rev();
        let cut = ends.find(|at| rest.is_char_boundary(*at));
        let cut = cut.unwrap_or_default();
        path.push_str(&rest[..cut]);
        path.push(MARK);
        path.push('/');
        rest = &rest[cut..];
    }
    path.push_str(rest);
    if is_like_a_number(rest) {
        path.push(MARK);
    }
    path.push('/');
}

/// Whether it could be an article, also one whose name was taken, or a bucket of articles.
fn is_like_a_number(part: &str) -> bool {
    let digits = part.strip_prefix('r').unwrap_or(part).trim_end_matches('+');
    !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(group: &str, number: u64, layout: Option<&str>) -> String {
        let layout = layout.map(|layout| layout.parse().unwrap());
        name(group, ArticleNumber(number), layout)
    }

    #[test]
    fn groups_are_directories_and_numbers_files() {
        assert_eq!(named("comp.lang.c++", 7, None), "comp/lang/c++/7");
        assert_eq!(named("junk", 2_147_483_647, None), "junk/2147483647");
        for (layout, path) in [
            ("yyy", "misc/test/234/12345"),
            ("34/56", "misc/test/23/45/12345"),
            ("range1024", "misc/test/r12288/12345"),
        ] {
            assert_eq!(named("misc.test", 12345, Some(layout)), path);
        }
    }

    /// What no name of one group can be is the name of another, or a directory on the way to it.
    #[test]
    fn no_article_stands_in_the_way_of_a_group() {
        for (group, path) in [
            ("a.5", "a/5,/1"),
            ("a.5.b", "a/5,/b/1"),
            ("a.5+", "a/5+,/1"),
            ("a.r1024", "a/r1024,/1"),
            ("5", "5,/1"),
            ("a.0d", "a/0d/1"),
            ("a.r", "a/r/1"),
            ("a.+", "a/+/1"),
            ("a.rr5", "a/rr5/1"),
        ] {
            assert_eq!(named(group, 1, None), path);
        }
    }

    #[test]
    fn a_part_that_no_file_system_takes_is_cut() {
        let long = "\u{fc}".repeat(225);
        let path = named(&format!("a.{long}"), 1, None);
        let parts: Vec<&str> = path.split('/').collect();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() < 255));
        assert_eq!(
            parts[1..3].concat(),
            format!("{}{MARK}{}", &long[..240], &long[240..])
        );
    }

    #[test]
    fn names_are_those_of_the_xref() {
        let layouts = Layouts::parse(&["b.* yyy".to_owned()]).unwrap();
        let naming = ByNumber { layouts };
        let names = |xref: &[u8]| naming.names(&place(xref));
        assert_eq!(names(b"us a:7 b.c:12345"), ["a/7", "b/c/234/12345"]);
        assert_eq!(names(b""), [",/1"]);
    }

    fn place(xref: &[u8]) -> Place<'_> {
        Place {
            sequence: newsreel_wire::Sequence(1),
            arrival: newsreel_wire::UnixTime(1),
            id_hash: newsreel_wire::IdHash::default(),
            id: b"<1@t.example>",
            set: newsreel_wire::SetId(0),
            format: None,
            xref,
            article: &[],
            head_len: 0,
        }
    }
}
