//! A trace from the access log of a running cache.
//!
//! Lines that are none are counted and passed over: a kill may tear the last one.

use newsreel_index::id_hash;

use super::Request;
use crate::access_log::AccessLine;
use crate::keep::{group_key, key_of};

/// What was read of logs so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logged {
    /// The requests, in the order of the lines.
    pub trace: Vec<Request>,
    /// Those that the cache which wrote it answered from what it kept.
    pub hits: u64,
    /// Lines that are none of such a log.
    pub wrong: u64,
}

impl Logged {
    /// The next line, without its end.
    pub fn read(&mut self, line: &[u8]) {
        let Some(line) = AccessLine::parse(line) else {
            self.wrong += 1;
            return;
        };
        self.hits += u64::from(line.is_hit);
        self.trace.push(Request {
            at: line.at,
            key: key_of(&id_hash(&[0; 32], line.id)),
            group: line
                .group
                .map_or(0, |name| group_key(name.as_str().as_bytes())),
            octets: line.octets,
            dated: line.dated,
        });
    }

    /// The requests as they came one behind the other, whatever order their logs were read in.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.trace.sort_by_key(|request| request.at);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_equal_requests_and_lines_that_are_none_are_counted() {
        let mut logged = Logged::default();
        for line in [
            "7 miss 100 3 misc.test <1@t.example>",
            "5 hit 100 3 misc.test <1@t.example>",
            "6 miss 50 2 alt.test <2@t.example>",
            "8 miss 50 2 - <3@t.exam",
        ] {
            logged.read(line.as_bytes());
        }
        let logged = logged.in_order();
        assert_eq!((logged.hits, logged.wrong), (1, 1));
        let [first, second, third] = logged.trace[..] else {
            panic!("{logged:?}");
        };
        assert_eq!((first.at, second.at, third.at), (5, 6, 7));
        assert_eq!((first.key, first.group), (third.key, third.group));
        assert!(first.key != second.key && first.group != second.group);
        assert_eq!((second.octets, second.dated), (50, 2));
    }
}
