//! Where keys stand in the file that a configuration came from, for whoever finds out later that something is wrong with one.
//!
//! No part of what is configured: all of these are equal.

use std::collections::BTreeMap;

/// Lines and columns, from 1, by key; keys of tables in lists carry the place in the list, `buffer[1].name`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(BTreeMap<String, (usize, usize)>);

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Places {
    pub(super) const fn new(places: BTreeMap<String, (usize, usize)>) -> Self {
        Self(places)
    }

    /// Whether somebody wrote it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Where a key stands, or what it would belong into.
    pub(crate) fn of(&self, key: &str) -> (usize, usize) {
        nearest(&self.0, key)
    }
}

/// Where a key stands, or the table that it would stand in; zeros: in no line.
pub(super) fn nearest(places: &BTreeMap<String, (usize, usize)>, key: &str) -> (usize, usize) {
    let mut path = key;
    loop {
        if let Some(place) = places.get(path) {
            return *place;
        }
        match path.rfind(['.', '[']) {
            Some(end) => path = path.get(..end).unwrap_or_default(),
            None => return (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_missing_where_it_belongs() {
        let places = BTreeMap::from([
            ("peer".to_owned(), (3, 1)),
            ("peer[0]".to_owned(), (3, 1)),
            ("peer[1]".to_owned(), (7, 1)),
            ("peer[1].name".to_owned(), (8, 8)),
        ]);
        for (key, place) in [
            ("peer[1].name", (8, 8)),
            ("peer[1].address", (7, 1)),
            ("peer[1].feed[0].program", (7, 1)),
            ("peer[9].name", (3, 1)),
            ("listen.backlog", (0, 0)),
            ("", (0, 0)),
        ] {
            assert_eq!(nearest(&places, key), place, "{key}");
        }
    }
}
