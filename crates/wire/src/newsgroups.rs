//! Lists of newsgroup names: the content of Newsgroups and Followup-To (RFC 5536 sections 3.1.4 and 3.2.6).
//!
//! Names are separated by commas with any folding white space around them.  Nothing between two commas, or behind the
//! last one, is no name and is passed over: programs have written such lists since 1984.  Nothing is collected: the
//! caller gets one name after the other and decides what a bad one means.

use memchr::memchr;

use crate::article::trim;
use crate::error::GroupNameError;
use crate::group::GroupName;

/// The names of a list, in order.
#[derive(Debug, Clone)]
pub struct GroupNames<'a> {
    rest: &'a [u8],
}

/// Takes a list apart.
#[must_use]
pub const fn split(content: &[u8]) -> GroupNames<'_> {
    GroupNames { rest: content }
}

impl<'a> Iterator for GroupNames<'a> {
    type Item = Result<GroupName<'a>, GroupNameError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = memchr(b',', self.rest).unwrap_or(self.rest.len());
            let (name, after) = self.rest.split_at_checked(end).unwrap_or_default();
            self.rest = after.get(1..).unwrap_or_default();
            let name = trim(name);
            if !name.is_empty() {
                return Some(GroupName::parse(name));
            }
        }
        None
    }
}

/// Whether a relaying agent may take an article with this list: at least one name must be well-formed.  Others name
/// groups that no server can have, and do no more harm than unknown ones.
///
/// # Errors
/// What is wrong with the first name, when none is well-formed.
pub fn check(content: &[u8]) -> Result<(), GroupNameError> {
    let mut first = None;
    for name in split(content) {
        match name {
            Ok(_) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(GroupNameError::Empty))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn show(content: &str) -> String {
        let names = split(content.as_bytes());
        let shown: Vec<_> = names
            .map(|name| name.map_or_else(|error| format!("{error:?}"), |name| name.to_string()))
            .collect();
        shown.join("|")
    }

    #[test]
    fn takes_lists_apart() {
        assert_eq!(show("a.b"), "a.b");
        assert_eq!(show("a.b,c.d"), "a.b|c.d");
        assert_eq!(show(" a.b ,\r\n\tc.d "), "a.b|c.d");
        assert_eq!(show(""), "");
        assert_eq!(show(" , "), "");
        assert_eq!(show("a,,b, "), "a|b");
        assert_eq!(show("a b,c"), "Octet|c");
    }

    #[test]
    fn one_good_name_is_enough() {
        assert_eq!(check(b"a.b,,me@a.example"), Ok(()));
        assert_eq!(check(b"me@a.example,a.b"), Ok(()));
        assert_eq!(check(b" , "), Err(GroupNameError::Empty));
        assert_eq!(check(b"a..b,c d"), Err(GroupNameError::EmptyComponent));
    }

    proptest! {
        #[test]
        fn prop_lists_round_trip(names in proptest::collection::vec("[a-z]{1,8}(\\.[a-z0-9+-]{1,8}){0,3}", 1..20)) {
            let list = names.join(", ");
            let found: Vec<_> = split(list.as_bytes()).map(|name| name.unwrap().as_str().to_owned()).collect();
            prop_assert_eq!(found, names);
        }
    }
}
