//! Optional fields whose content RFC 5536 section 3.2 does not allow.
//!
//! A relaying agent lets them pass, because refusing would lose articles that every other server has; an injecting
//! agent, which still has the author on the line, refuses them (RFC 5537 section 3.5).  Nothing here is on the
//! relaying path but the verb of Control.

use super::headers::Headers;
use super::known::{Known, KnownSet};
use crate::date::parse_rfc5322;
use crate::message_id::MessageId;
use crate::newsgroups;

/// The known optional fields that are blank, or whose content is not what RFC 5536 section 3.2 says.
#[must_use]
pub fn odd_fields(headers: &Headers<'_>) -> KnownSet {
    let mut odd = KnownSet::NONE;
    for field in headers.present().without(Known::MANDATORY).iter() {
        if headers
            .content(field)
            .is_none_or(|content| !is_regular(field, content))
        {
            odd.insert(field);
        }
    }
    odd
}

fn is_regular(field: Known, content: &[u8]) -> bool {
    if content.is_empty() {
        return false;
    }
    match field {
        Known::Distribution => content.split(|&octet| octet == b',').all(is_distribution),
        Known::Expires | Known::InjectionDate => parse_rfc5322(content).is_ok(),
        Known::FollowupTo => {
            content == b"poster" || newsgroups::split(content).all(|name| name.is_ok())
        }
        Known::References => words(content).all(|word| MessageId::parse(word).is_ok()),
        Known::Supersedes => MessageId::parse(content).is_ok(),
        Known::Lines => content.iter().all(u8::is_ascii_digit),
        Known::Archive => {
            let word = content
                .split(|&octet| octet == b';')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            word.eq_ignore_ascii_case(b"yes") || word.eq_ignore_ascii_case(b"no")
        }
        Known::Control => begins_with_verb(content),
        _ => true,
    }
}

fn words(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// RFC 5536 section 3.2.4, `dist-name`.
fn is_distribution(name: &[u8]) -> bool {
    let plain = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'-' | b'_');
    let name = name.trim_ascii();
    name.first().is_some_and(u8::is_ascii_alphanumeric) && name.iter().all(plain)
}

/// RFC 5536 section 3.2.3: Control begins with a verb.
pub(super) fn begins_with_verb(content: &[u8]) -> bool {
    words(content).next().is_some_and(is_verb)
}

/// A verb is a token of RFC 2045 section 5.1.
fn is_verb(verb: &[u8]) -> bool {
    let is_in_token =
        |octet: &u8| octet.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(octet);
    !verb.is_empty() && verb.iter().all(is_in_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(fields: &str) -> Vec<Known> {
        let wire = format!("{fields}\n\n.\n").replace('\n', "\r\n");
        odd_fields(&Headers::scan(wire.as_bytes()).unwrap())
            .iter()
            .collect()
    }

    #[test]
    fn regular_fields() {
        let fields = "Distribution: world, na\nExpires: 1 Jan 2024 00:00 GMT\nFollowup-To: poster\nReferences: <1@a>\n <2@a>\n\
            Supersedes: <1@a>\nLines: 17\nArchive: no; x=y\nControl: cancel <1@a>\nSummary: any thing\nSubject: ";
        assert_eq!(odd(fields), []);
        assert_eq!(odd("Followup-To: a.b,c.d"), []);
    }

    #[test]
    fn odd_ones() {
        for (line, field) in [
            ("Distribution: all of us", Known::Distribution),
            ("Distribution: world,", Known::Distribution),
            ("Distribution: a.b", Known::Distribution),
            ("Expires: 5/1/93", Known::Expires),
            ("Injection-Date: 1 Jan 2024", Known::InjectionDate),
            ("Followup-To: me@a.example", Known::FollowupTo),
            ("References: your <1@a>", Known::References),
            ("Supersedes: <1@a> <2@a>", Known::Supersedes),
            ("Lines: many", Known::Lines),
            ("Archive: perhaps", Known::Archive),
            ("Control: (cancel) <1@a>", Known::Control),
            ("Keywords: \t", Known::Keywords),
        ] {
            assert_eq!(odd(line), [field], "{line}");
        }
    }
}
