//! What a server says it can do (RFC 3977 section 5.2).
//!
//! A server without the command CAPABILITIES says nothing by that: what is asked of it is tried.

/// The longest list that is taken, octets; real ones have some 500.
pub const CAPABILITIES_OCTETS_MAX: usize = 16 << 10;

/// The list, perhaps unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The lines, as they came; none where the server has no such command.
    lines: Option<Vec<String>>,
}

impl Capabilities {
    /// A list that begins.
    pub(crate) const fn listed() -> Self {
        let lines = Some(Vec::new());
        Self { lines }
    }

    pub(crate) fn add(&mut self, line: &[u8]) {
        let lines = self.lines.get_or_insert_default();
        lines.push(String::from_utf8_lossy(line).into_owned());
    }

    /// Whether there is a list at all.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.lines.is_some()
    }

    /// The words behind a capability's label; none: it is not there.
    #[must_use]
    pub fn of(&self, label: &str) -> Option<impl Iterator<Item = &str>> {
        self.lines.iter().flatten().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let first = words.next()?;
            first.eq_ignore_ascii_case(label).then_some(words)
        })
    }

    /// Whether a capability is there.
    #[must_use]
    pub fn has(&self, label: &str) -> bool {
        self.of(label).is_some()
    }

    /// Whether a capability is there, with this word behind its label.
    #[must_use]
    pub fn has_with(&self, label: &str, word: &str) -> bool {
        let words = self.of(label);
        words.is_some_and(|mut words| words.any(|one| one.eq_ignore_ascii_case(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_their_words_are_found_in_any_case() {
        let mut list = Capabilities::default();
        assert!(!list.is_known() && !list.has("READER"));
        list = Capabilities::listed();
        assert!(list.is_known());
        for line in ["VERSION 2", "reader", "LIST ACTIVE\tNEWSGROUPS", ""] {
            list.add(line.as_bytes());
        }
        list.add(b"\xff");
        assert!(list.has("READER") && list.has("list") && !list.has("ACTIVE"));
        assert!(list.has_with("LIST", "newsgroups") && !list.has_with("LIST", "LIST"));
        assert!(!list.has_with("OVER", "MSGID"));
    }
}
