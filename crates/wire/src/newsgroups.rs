//! Lists of newsgroup names: the content of Newsgroups and Followup-To (RFC 5536 sections 3.1.4 and 3.2.6).
//!
//! Names are separated by commas with any folding white space around them.  Nothing is collected: the caller gets
//! one name after the other and decides what a bad one means.

use memchr::memchr;

use crate::article::trim;
use crate::error::GroupNameError;
use crate::group::GroupName;

/// The names of a list, in order.
#[derive(Debug, Clone)]
pub struct GroupNames<'a> {
    rest: Option<&'a [u8]>,
}

/// Takes a list apart.  An empty list, and nothing between two commas, give one [`GroupNameError::Empty`].
#[must_use]
pub const fn split(content: &[u8]) -> GroupNames<'_> {
    GroupNames {
        rest: Some(content),
    }
}

impl<'a> Iterator for GroupNames<'a> {
    type Item = Result<GroupName<'a>, GroupNameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let content = self.rest?;
        let name = match memchr(b',', content).and_then(|comma| content.split_at_checked(comma)) {
            Some((name, after)) => {
                self.rest = after.get(1..);
                name
            }
            None => {
                self.rest = None;
                content
            }
        };
        Some(GroupName::parse(trim(name)))
    }
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
        assert_eq!(show(""), "Empty");
        assert_eq!(show("a,,b,"), "a|Empty|b|Empty");
        assert_eq!(show("a b,c"), "Octet|c");
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
