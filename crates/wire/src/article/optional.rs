//! Optional fields whose content RFC 5536 section 3.2 does not allow.
//!
//! A relaying agent lets them pass, because refusing would lose articles that every other server has; an injecting
//! agent, which still has the author on the line, refuses them (RFC 5537 section 3.5).  Nothing here is on the
//! relaying path but the verb of Control.

use super::headers::{Headers, is_blank};
use super::known::{Known, KnownSet};
use super::mailbox::skip_blanks;
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
        Known::References => is_id_list(content),
        Known::Supersedes => MessageId::parse(content).is_ok(),
        Known::Lines => content.iter().all(u8::is_ascii_digit),
        Known::Archive => is_archive(content),
        Known::Control => begins_with_verb(content),
        _ => true,
    }
}

/// RFC 5536 section 3.2.10: message-ids with white space or comments between them.
fn is_id_list(content: &[u8]) -> bool {
    let Some(mut rest) = skip_blanks(content) else {
        return false;
    };
    while !rest.is_empty() {
        // What looks like a comment within the brackets is of the message-id.
        let end = match memchr::memchr(b'>', rest) {
            Some(end) => end + 1,
            None => return false,
        };
        let (id, after) = rest.split_at_checked(end).unwrap_or_default();
        let is_apart = |octet: &u8| is_blank(*octet) || *octet == b'(';
        let is_id = MessageId::parse(id).is_ok() && after.first().is_none_or(is_apart);
        match skip_blanks(after) {
            Some(after) if is_id => rest = after,
            _ => return false,
        }
    }
    true
}

/// RFC 5536 section 3.2.2: `yes` or `no`, with comments around it, then parameters behind a semicolon.
fn is_archive(content: &[u8]) -> bool {
    let rest = skip_blanks(content).unwrap_or_default();
    let len = rest
        .iter()
        .take_while(|octet| octet.is_ascii_alphabetic())
        .count();
    let (word, after) = rest.split_at_checked(len).unwrap_or_default();
    let is_word = word.eq_ignore_ascii_case(b"yes") || word.eq_ignore_ascii_case(b"no");
    let after = skip_blanks(after);
    is_word && after.is_some_and(|after| after.is_empty() || after.starts_with(b";"))
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

    /// Comments where RFC 5536 lets them be were refused.
    #[test]
    fn comments_are_regular() {
        for line in [
            "Archive: yes (comment)",
            "Archive: (a (b)) no (c) ; x=y",
            "References: (a) <1@a> (x) <2@a>(y)\n\t<3@a>",
            "References: <a(b)c@d>",
            "References: <1@a>\n <2@a>",
        ] {
            assert_eq!(odd(&format!("{line}\nSubject: ")), [], "{line}");
        }
        for (line, field) in [
            ("Archive: yes (open", Known::Archive),
            ("Archive: yes x", Known::Archive),
            ("Archive: yesno", Known::Archive),
            ("References: <1@a><2@a>", Known::References),
            ("References: <1@a> x", Known::References),
            ("References: <1@a> (open", Known::References),
            ("References: x <1@a>", Known::References),
        ] {
            assert_eq!(odd(line), [field], "{line}");
        }
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
