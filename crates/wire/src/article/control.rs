//! The content of Control: a verb and its arguments (RFC 5536 section 3.2.3, RFC 5537 section 5).
//!
//! Syntax only: what a message asks for is not decided here, nor whether it may.

use super::optional::begins_with_verb;
use crate::message_id::MessageId;

/// A control message's verb and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control<'a> {
    verb: &'a str,
    arguments: &'a [u8],
}

impl<'a> Control<'a> {
    /// Takes the content of a Control field apart; `None`: it begins with no verb.
    #[must_use]
    pub fn parse(content: &'a [u8]) -> Option<Self> {
        if !begins_with_verb(content) {
            return None;
        }
        let content = content.trim_ascii();
        let end = content.iter().position(u8::is_ascii_whitespace);
        let (verb, arguments) = content.split_at(end.unwrap_or(content.len()));
        Some(Self {
            verb: std::str::from_utf8(verb).ok()?,
            arguments,
        })
    }

    /// The verb as it is written; letters count the same in any case ([`Control::is`]).
    #[must_use]
    pub const fn verb(&self) -> &'a str {
        self.verb
    }

    /// Whether this is its verb.
    #[must_use]
    pub const fn is(&self, verb: &str) -> bool {
        self.verb.eq_ignore_ascii_case(verb)
    }

    /// What stands behind the verb, word by word.
    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let words = self.arguments.split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    }

    /// The article that a cancel is about; `None`: it is none, or names no article, or more than one.
    #[must_use]
    pub fn cancelled(&self) -> Option<MessageId<'a>> {
        let mut arguments = self.arguments();
        match (self.is("cancel"), arguments.next(), arguments.next()) {
            (true, Some(id), None) => MessageId::parse(id).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, expected: &str) {
        let text = match Control::parse(content.as_bytes()) {
            None => "none".to_owned(),
            Some(control) => {
                let words = control.arguments().map(String::from_utf8_lossy);
                let id = control.cancelled().map_or("", |id| id.as_str());
                format!("{} {:?} {id}", control.verb(), words.collect::<Vec<_>>())
            }
        };
        assert_eq!(text.trim_end(), expected, "{content:?}");
    }

    #[test]
    fn verbs_and_arguments() {
        check("cancel <1@a>", "cancel [\"<1@a>\"] <1@a>");
        check(" Cancel\r\n <1@a> ", "Cancel [\"<1@a>\"] <1@a>");
        check("cancel <1@a> <2@a>", "cancel [\"<1@a>\", \"<2@a>\"]");
        check("cancel 1@a", "cancel [\"1@a\"]");
        check("cancel", "cancel []");
        check(
            "newgroup a.b moderated",
            "newgroup [\"a.b\", \"moderated\"]",
        );
        check("newgroup <1@a>", "newgroup [\"<1@a>\"]");
        check("(cancel) <1@a>", "none");
        check("", "none");
    }
}
