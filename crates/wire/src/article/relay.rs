//! What a relaying agent must check of one article's syntax (RFC 5537 section 3.6, steps 3 and 4; RFC 5536 section 3).
//!
//! Refused is what other servers could read differently or not at all: octets no article may have, a mandatory
//! field missing, doubled or malformed, a doubled field that agents act on, a broken Control, Supersedes or
//! Injection-Date.  Optional fields that only people read are let through as they are: real articles have had
//! empty Keywords, Followup-To with mail addresses and Expires like `5/1/93` since the beginning
//! (see [`odd_fields`](super::odd_fields)); what is tolerated in the others is in
//! `docs/decisions/0006-what-a-relayed-article-must-be.md`.  Policy (age, groups, size, names in Path) is not decided here.

use super::from;
use super::headers::Headers;
use super::known::{Known, KnownSet};
use super::octets::OctetFacts;
use super::optional::begins_with_verb;
use crate::date::{UnixTime, parse_relaxed};
use crate::error::{ArticleFault, MessageIdError};
use crate::message_id::MessageId;
use crate::newsgroups;
use crate::nntp::framing::TERMINATOR_LINE;
use crate::path::Path;

/// The fields that may be there only once because agents act on what they say.
pub const ONCE: KnownSet = KnownSet::of(&[
    Known::Date,
    Known::From,
    Known::MessageId,
    Known::Newsgroups,
    Known::Path,
    Known::Subject,
    Known::Approved,
    Known::Control,
    Known::Distribution,
    Known::Expires,
    Known::FollowupTo,
    Known::InjectionDate,
    Known::InjectionInfo,
    Known::References,
    Known::Supersedes,
    Known::Xref,
]);

/// Sizes and octet counts of one article in wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArticleFacts {
    /// Counts over everything, terminator included.
    pub octets: OctetFacts,
    /// Octets without stuffing and terminator: the `:bytes` metadata (RFC 3977 section 8.1.1).
    pub bytes: usize,
    /// Lines of the body: the `:lines` metadata (RFC 3977 section 8.1.2).
    pub lines: usize,
}

impl ArticleFacts {
    /// Counts, in one pass over the article.
    ///
    /// # Errors
    /// When the body does not end with the terminator.
    pub fn of(headers: &Headers<'_>) -> Result<Self, ArticleFault> {
        let (wire, body) = (headers.wire(), headers.body());
        if body != TERMINATOR_LINE && !body.ends_with(b"\r\n.\r\n") {
            return Err(ArticleFault::NotTerminated);
        }
        let octets = OctetFacts::of(wire);
        // The terminator is one line with one dot that is not part of the article.
        let stuffed = octets.dot_lines.saturating_sub(1);
        Ok(Self {
            octets,
            bytes: wire.len().saturating_sub(stuffed + TERMINATOR_LINE.len()),
            // Neither the blank line nor the terminator is a line of the body.
            lines: octets.crlf.saturating_sub(headers.lines() + 2),
        })
    }
}

/// What the check has read on its way, so that nobody reads it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayFacts<'a> {
    /// The article's own message-id.
    pub message_id: MessageId<'a>,
    /// The Date field.
    pub date: UnixTime,
    /// The Injection-Date field; RFC 5537 section 3.6 wants it, and else Date, looked at for the age.
    pub injection_date: Option<UnixTime>,
    /// The content of Newsgroups, at least one of whose names is well-formed; see [`newsgroups::split`].
    pub newsgroups: &'a [u8],
    /// The Path field.
    pub path: Path<'a>,
    /// The content of Control.
    pub control: Option<&'a [u8]>,
    /// The article this one replaces.
    pub supersedes: Option<MessageId<'a>>,
    /// The Expires field, if it can be read as a date.
    pub expires: Option<UnixTime>,
}

/// Checks what a relaying agent must check of an article's syntax.
///
/// # Errors
/// The first reason not to take the article.
pub fn check_relay<'a>(
    headers: &Headers<'a>,
    facts: &ArticleFacts,
) -> Result<RelayFacts<'a>, ArticleFault> {
    check_octets(&facts.octets)?;
    if let Some(known) = Known::MANDATORY.without(headers.present()).first() {
        return Err(ArticleFault::Missing(known));
    }
    if let Some(known) = headers.doubled().and(ONCE).first() {
        return Err(ArticleFault::Doubled(known));
    }
    required(headers, Known::Subject)?;
    from::check(required(headers, Known::From)?).map_err(ArticleFault::From)?;
    let message_id = message_id(headers, Known::MessageId)?;
    let newsgroups = required(headers, Known::Newsgroups)?;
    newsgroups::check(newsgroups).map_err(ArticleFault::Newsgroups)?;
    let path = Path::parse(required(headers, Known::Path)?).map_err(ArticleFault::Path)?;
    path.check().map_err(ArticleFault::Path)?;
    let date = date(headers, Known::Date)?;
    let mut relay = RelayFacts {
        message_id,
        date,
        injection_date: None,
        newsgroups,
        path,
        control: None,
        supersedes: None,
        expires: None,
    };
    if !headers.present().and(ACTED_ON).is_empty() {
        check_acted_on(headers, &mut relay)?;
    }
    Ok(relay)
}

/// Optional fields that agents act on.
const ACTED_ON: KnownSet = KnownSet::of(&[
    Known::Approved,
    Known::Control,
    Known::Expires,
    Known::InjectionDate,
    Known::Supersedes,
]);

fn check_acted_on<'a>(
    headers: &Headers<'a>,
    relay: &mut RelayFacts<'a>,
) -> Result<(), ArticleFault> {
    let present = headers.present();
    if present.contains(Known::Approved) {
        required(headers, Known::Approved)?;
    }
    if present.contains(Known::InjectionDate) {
        relay.injection_date = Some(date(headers, Known::InjectionDate)?);
    }
    if present.contains(Known::Control) {
        relay.control = Some(control(headers)?);
    }
    if present.contains(Known::Supersedes) {
        relay.supersedes = Some(message_id_of(headers, Known::Supersedes)?);
    }
    if relay.control.is_some() && relay.supersedes.is_some() {
        return Err(ArticleFault::ControlAndSupersedes);
    }
    relay.expires = expires(headers);
    Ok(())
}

/// When the article asks to be removed (RFC 5536 section 3.2.5); what is no date says nothing.
pub fn expires(headers: &Headers<'_>) -> Option<UnixTime> {
    let content = headers.content(Known::Expires)?;
    parse_relaxed(content).ok()
}

/// NUL, bare CR and bare LF, which no article may have (RFC 5536 section 2.2).
///
/// # Errors
/// The first of them that is there.
pub const fn check_octets(octets: &OctetFacts) -> Result<(), ArticleFault> {
    if octets.nul > 0 {
        return Err(ArticleFault::Nul);
    }
    if octets.bare_cr() > 0 {
        return Err(ArticleFault::BareCr);
    }
    if octets.bare_lf() > 0 {
        return Err(ArticleFault::BareLf);
    }
    Ok(())
}

/// The content of a field that must be there and say something.
fn required<'a>(headers: &Headers<'a>, known: Known) -> Result<&'a [u8], ArticleFault> {
    match headers.content(known) {
        None => Err(ArticleFault::Missing(known)),
        Some([]) => Err(ArticleFault::Blank(known)),
        Some(content) => Ok(content),
    }
}

/// Control begins with a verb.
fn control<'a>(headers: &Headers<'a>) -> Result<&'a [u8], ArticleFault> {
    let content = required(headers, Known::Control)?;
    if begins_with_verb(content) {
        Ok(content)
    } else {
        Err(ArticleFault::Control)
    }
}

fn message_id_of<'a>(headers: &Headers<'a>, field: Known) -> Result<MessageId<'a>, ArticleFault> {
    let content = required(headers, field)?;
    MessageId::parse(content).map_err(|why| ArticleFault::MessageId { field, why })
}

/// The article's own message-id: here RFC 5536 section 3.1.3 wants both parts.
fn message_id<'a>(headers: &Headers<'a>, field: Known) -> Result<MessageId<'a>, ArticleFault> {
    let id = message_id_of(headers, field)?;
    if id.has_two_parts() {
        Ok(id)
    } else {
        Err(ArticleFault::MessageId {
            field,
            why: MessageIdError::NoAt,
        })
    }
}

fn date(headers: &Headers<'_>, field: Known) -> Result<UnixTime, ArticleFault> {
    parse_relaxed(required(headers, field)?).map_err(|why| ArticleFault::Date { field, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{DateError, FromError, GroupNameError, PathError};

    const GOOD: &str = "Path: a!b\nFrom: x@a.example\nNewsgroups: a.b,c.d\nSubject: s\nDate: 1 Jan 2024 00:00:00 +0000\nMessage-ID: <1@a.example>\n";

    /// The verdict on the good article with some lines replaced or added.
    fn verdict(changes: &[(&str, &str)], added: &str, body: &str) -> Result<(), ArticleFault> {
        let mut text = GOOD.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from));
            text = text.replace(from, to);
        }
        let wire = format!("{text}{added}\n{body}.\n")
            .replace('\n', "\r\n")
            .replace('|', "\n");
        let headers = Headers::scan(wire.as_bytes())?;
        check_relay(&headers, &ArticleFacts::of(&headers)?).map(|_| ())
    }

    fn changed(from: &str, to: &str) -> Result<(), ArticleFault> {
        verdict(&[(from, to)], "", "body\n")
    }

    fn with(added: &str) -> Result<(), ArticleFault> {
        verdict(&[], added, "body\n")
    }

    #[test]
    fn reads_on_its_way() {
        let wire = format!("{GOOD}Injection-Date: 2 Jan 2024 00:00:00 GMT\nExpires: soon\nSupersedes: <0@a>\n\n..dot\nline\n.\n")
            .replace('\n', "\r\n");
        let headers = Headers::scan(wire.as_bytes()).unwrap();
        let facts = ArticleFacts::of(&headers).unwrap();
        assert_eq!(
            (facts.bytes, facts.lines, facts.octets.octets),
            (wire.len() - 4, 2, wire.len())
        );
        let relay = check_relay(&headers, &facts).unwrap();
        assert_eq!(
            (relay.message_id.as_str(), relay.newsgroups),
            ("<1@a.example>", &b"a.b,c.d"[..])
        );
        assert_eq!(
            (relay.date, relay.injection_date),
            (UnixTime(1_704_067_200), Some(UnixTime(1_704_153_600)))
        );
        assert_eq!((relay.expires, relay.control), (None, None));
        assert_eq!(relay.supersedes.map(|id| id.as_str()), Some("<0@a>"));
    }

    #[test]
    fn an_empty_body_is_an_article() {
        assert_eq!(verdict(&[], "", ""), Ok(()));
    }

    #[test]
    fn octets() {
        assert_eq!(verdict(&[], "", "a\0b\n"), Err(ArticleFault::Nul));
        assert_eq!(verdict(&[], "", "a\rb\n"), Err(ArticleFault::BareCr));
        assert_eq!(verdict(&[], "", "a|b\n"), Err(ArticleFault::BareLf));
        assert_eq!(verdict(&[], "X: \u{e9}\n", "\u{e9}\n"), Ok(()));
        let headers = Headers::scan(b"A: b\r\n\r\nopen\r\n").unwrap();
        assert_eq!(ArticleFacts::of(&headers), Err(ArticleFault::NotTerminated));
        let headers = Headers::scan(b"A: b\r\n\r\na.\r\n").unwrap();
        assert_eq!(ArticleFacts::of(&headers), Err(ArticleFault::NotTerminated));
    }

    #[test]
    fn mandatory_fields_are_there_once_and_say_something() {
        for known in Known::MANDATORY.iter() {
            let line = GOOD
                .lines()
                .find(|line| line.starts_with(known.name()))
                .unwrap();
            assert_eq!(
                changed(&format!("{line}\n"), ""),
                Err(ArticleFault::Missing(known))
            );
            assert_eq!(
                with(&format!("{line}\n")),
                Err(ArticleFault::Doubled(known))
            );
            assert_eq!(
                changed(line, &format!("{known}: \n \t")),
                Err(ArticleFault::Blank(known))
            );
        }
    }

    #[test]
    fn their_contents_are_well_formed() {
        let id = |why| {
            Err(ArticleFault::MessageId {
                field: Known::MessageId,
                why,
            })
        };
        assert_eq!(
            changed("<1@a.example>", "1@a.example"),
            id(MessageIdError::Brackets)
        );
        assert_eq!(
            changed("<1@a.example>", "<1.a.example>"),
            id(MessageIdError::NoAt)
        );
        assert_eq!(
            changed("<1@a.example>", "<1@a> <2@a>"),
            id(MessageIdError::Octet)
        );
        assert_eq!(changed("Message-ID: <", "Message-ID: \n  <"), Ok(()));
        assert_eq!(changed("a.b,c.d", "a.b, c.d"), Ok(()));
        assert_eq!(changed("a.b,c.d", "a.b,,c.d,"), Ok(()));
        assert_eq!(changed("a.b,c.d", "a.b,me@a.example"), Ok(()));
        let newsgroups = |why| Err(ArticleFault::Newsgroups(why));
        assert_eq!(changed("a.b,c.d", ","), newsgroups(GroupNameError::Empty));
        assert_eq!(
            changed("a.b,c.d", "a.b c.d"),
            newsgroups(GroupNameError::Octet)
        );
        assert_eq!(changed("a!b", "a!\x07b"), Ok(()));
        assert_eq!(
            changed("a!b", "a b"),
            Err(ArticleFault::Path(PathError::Space))
        );
        assert_eq!(
            changed("x@a.example", "not an address at all <<<"),
            Err(ArticleFault::From(FromError::Bracket))
        );
        assert_eq!(changed("x@a.example", "X <x@a.example>"), Ok(()));
        assert_eq!(
            changed("1 Jan 2024 00:00:00 +0000", "1 Jan 84 0:00"),
            Ok(())
        );
        assert_eq!(
            changed("1 Jan 2024", "31 Feb 2024"),
            Err(ArticleFault::Date {
                field: Known::Date,
                why: DateError::Range
            })
        );
    }

    #[test]
    fn optional_fields_that_agents_act_on() {
        assert_eq!(with("Control: cancel <0@a>\n"), Ok(()));
        assert_eq!(
            with("Control: \n"),
            Err(ArticleFault::Blank(Known::Control))
        );
        assert_eq!(
            with("Control: (cancel) <0@a>\n"),
            Err(ArticleFault::Control)
        );
        assert_eq!(with("Control: \n cancel <0@a>\n"), Ok(()));
        assert_eq!(
            with("Approved: \n"),
            Err(ArticleFault::Blank(Known::Approved))
        );
        assert_eq!(
            with("Xref: a b:1\nXref: a b:2\n"),
            Err(ArticleFault::Doubled(Known::Xref))
        );
        assert_eq!(
            with("Control: cancel <0@a>\nSupersedes: <0@a>\n"),
            Err(ArticleFault::ControlAndSupersedes)
        );
        let supersedes = ArticleFault::MessageId {
            field: Known::Supersedes,
            why: MessageIdError::Brackets,
        };
        assert_eq!(with("Supersedes: that one\n"), Err(supersedes));
        let injected = ArticleFault::Date {
            field: Known::InjectionDate,
            why: DateError::Month,
        };
        assert_eq!(with("Injection-Date: now\n"), Err(injected));
    }

    #[test]
    fn what_only_people_read_is_let_through() {
        for line in [
            "Keywords: ",
            "Lines: 1\nLines: 1",
            "Expires: 5/1/93",
            "Followup-To: me@a.example",
            "Distribution: all of us",
            "References: your message of today",
            "Organization: \n \n \t\n x",
        ] {
            assert_eq!(with(&format!("{line}\n")), Ok(()), "{line}");
        }
    }
}
