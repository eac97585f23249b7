//! What an entry judges without a program: header fields by pattern, how often one sender posts, how often one body comes.
//!
//! Memory is bounded: what was not seen for longest is forgotten.  The caller says what time it is, by a clock that only goes on.

use newsreel_service::{Subject, Verdict};
use newsreel_wire::article::{HeaderLimits, Headers, Known};
use newsreel_wire::nntp::framing::without_terminator;
use newsreel_wire::{Wildmat, WildmatError};
use parking_lot::Mutex;
use quick_cache::unsync::Cache;

use crate::SAID;
use crate::config::FilterRule;

/// Bodies, and senders, that an entry remembers, and articles that it counted.
pub const REMEMBERED_MAX: usize = 100_000;

/// Shorter bodies, without their blanks, are not counted as copies: many people say `Thanks!`.
pub const BODY_OCTETS_MIN: usize = 100;

const TOO_MANY_COPIES: &str = "Too many copies of the same text";
const TOO_MANY_OF_SENDER: &str = "Too many articles of this sender";

/// A field that may not be as a pattern says.
#[derive(Debug)]
struct BadField {
    name: String,
    pattern: Wildmat,
    verdict: Verdict,
}

/// The checks of one entry.
#[derive(Debug)]
pub(crate) struct Builtin {
    refuse: Vec<BadField>,
    copies: Option<Rate>,
    senders: Option<Rate>,
}

/// `Field: pattern`, the pattern in small letters.
pub(crate) fn field_and_pattern(text: &str) -> Result<(&str, Wildmat), String> {
    let (name, pattern) = text.split_once(':').unwrap_or_default();
    let is_name = |octet: u8| octet.is_ascii_graphic();
    if name.is_empty() || !name.bytes().all(is_name) || pattern.trim().is_empty() {
        return Err(format!(
            "{text:?} must be as in \"Subject: *make money fast*\""
        ));
    }
    let pattern = pattern.trim().to_ascii_lowercase();
    let said = |error: WildmatError| format!("{text:?}: {error}");
    let pattern = Wildmat::parse_text_pattern(pattern.as_bytes()).map_err(said)?;
    Ok((name, pattern))
}

impl Builtin {
    pub(crate) fn new(rule: &FilterRule) -> Result<Self, String> {
        let bad_field = |text: &String| {
            let (name, pattern) = field_and_pattern(text)?;
            let why = format!("Refused for its {name}");
            Ok(BadField {
                verdict: Verdict::Reject(SAID.kept(&why).unwrap_or("Refused for a header field")),
                name: name.to_owned(),
                pattern,
            })
        };
        let refuse = rule.refuse.iter().map(bad_field);
        Ok(Self {
            refuse: refuse.collect::<Result<_, String>>()?,
            copies: Rate::new(rule.copies_max, rule.copies_s),
            senders: Rate::new(rule.sender_articles_max, rule.sender_s),
        })
    }

    /// What becomes of an article that comes at this moment.
    pub(crate) fn judge(&self, subject: &Subject, now_ms: u64) -> Verdict {
        let Ok(headers) = Headers::scan_within(&subject.article, HeaderLimits::MOST) else {
            return Verdict::Accept;
        };
        if let Some(bad) = self.refuse.iter().find(|bad| bad.is_in(&headers)) {
            return bad.verdict;
        }
        let id = headers.content(Known::MessageId);
        if let Some(senders) = &self.senders
            && !senders.takes((digest(sender(subject, &headers).into_iter()), id), now_ms)
        {
            return Verdict::Reject(TOO_MANY_OF_SENDER);
        }
        // Cancels are all alike.
        let is_control = headers.get(Known::Control).is_some();
        if let Some(copies) = self.copies.as_ref().filter(|_| !is_control) {
            let body = without_terminator(headers.body());
            let text = || {
                body.iter()
                    .copied()
                    .filter(|one| !one.is_ascii_whitespace())
            };
            let is_long = text().nth(BODY_OCTETS_MIN - 1).is_some();
            if is_long && !copies.takes((digest(text()), id), now_ms) {
                return Verdict::Reject(TOO_MANY_COPIES);
            }
        }
        Verdict::Accept
    }
}

impl BadField {
    fn is_in(&self, headers: &Headers<'_>) -> bool {
        let mut named = headers
            .fields()
            .filter(|field| field.name.eq_ignore_ascii_case(self.name.as_bytes()));
        named.any(|field| {
            let content = String::from_utf8_lossy(field.content).to_ascii_lowercase();
            let words: Vec<&str> = content.split_ascii_whitespace().collect();
            self.pattern.matches(&words.join(" "))
        })
    }
}

/// Who posted it: here the address; elsewhere what the server says where it was posted, or else who it is from.
fn sender(subject: &Subject, headers: &Headers<'_>) -> Vec<u8> {
    if let Some(address) = subject.from.filter(|_| subject.is_post) {
        let network = newsreel_wire::network_of(address);
        return format!("network {network}").into_bytes();
    }
    let info = headers.content(Known::InjectionInfo).unwrap_or_default();
    let site = info
        .split(|octet| *octet == b';')
        .next()
        .unwrap_or_default();
    for name in [&b"posting-account"[..], b"posting-host"] {
        if let Some(value) = parameter(info, name) {
            return [site.trim_ascii(), b" ", name, b" ", value].concat();
        }
    }
    let host = headers.content(Known::NntpPostingHost);
    host.or_else(|| headers.content(Known::From))
        .unwrap_or_default()
        .to_vec()
}

/// The value of a parameter of Injection-Info, quotes and all (RFC 5536 section 3.2.8).
fn parameter<'a>(info: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut parameters = info.split(|octet| *octet == b';').skip(1);
    parameters.find_map(|one| {
        let at = one.iter().position(|octet| *octet == b'=')?;
        let (found, value) = one.split_at_checked(at)?;
        let value = value.get(1..)?.trim_ascii();
        (found.trim_ascii().eq_ignore_ascii_case(name) && !value.is_empty()).then_some(value)
    })
}

fn digest(octets: impl Iterator<Item = u8>) -> u128 {
    let mut hasher = blake3::Hasher::new();
    let mut part = [0; 1024];
    let mut octets = octets.peekable();
    while octets.peek().is_some() {
        let mut len = 0;
        for (place, octet) in part.iter_mut().zip(octets.by_ref()) {
            *place = octet;
            len += 1;
        }
        hasher.update(part.get(..len).unwrap_or_default());
    }
    let mut half = [0; 16];
    for (place, octet) in half.iter_mut().zip(hasher.finalize().as_bytes()) {
        *place = *octet;
    }
    u128::from_le_bytes(half)
}

/// How often something may come: so many in a time, and then none until it has been quiet for the time of one.  An article counts
/// once, however often it is offered: it may have been put off, or several peers have it.
#[derive(Debug)]
struct Rate {
    /// Milliseconds that one costs, and that there are to spend.
    cost_ms: u64,
    room_ms: u64,
    seen: Mutex<Seen>,
}

/// What came, and which articles those were: whether they were taken.
#[derive(Debug)]
struct Seen {
    buckets: Cache<u128, Bucket>,
    articles: Cache<u128, bool>,
}

/// What is left to spend, and when that was so.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    room_ms: u64,
    at_ms: u64,
}

impl Rate {
    /// So many in so many seconds; none where any number may come.
    fn new(max: u32, time_s: u64) -> Option<Self> {
        let cost_ms = time_s.saturating_mul(1000).checked_div(max.into())?.max(1);
        Some(Self {
            cost_ms,
            room_ms: cost_ms.saturating_mul(max.into()),
            seen: Mutex::new(Seen {
                buckets: Cache::new(REMEMBERED_MAX),
                articles: Cache::new(REMEMBERED_MAX),
            }),
        })
    }

    /// Counts one more, in the article of this message-id; `false`: it is one too many.
    fn takes(&self, (what, id): (u128, Option<&[u8]>), now_ms: u64) -> bool {
        let article = id.map(|id| digest(what.to_le_bytes().into_iter().chain(id.iter().copied())));
        let mut seen = self.seen.lock();
        let known = article.and_then(|article| seen.articles.get(&article).copied());
        if known == Some(true) {
            return true;
        }
        let bucket = seen.buckets.get(&what).copied().unwrap_or(Bucket {
            room_ms: self.room_ms,
            at_ms: now_ms,
        });
        let gained = now_ms.saturating_sub(bucket.at_ms);
        let room = bucket.room_ms.saturating_add(gained).min(self.room_ms);
        let left = room.checked_sub(self.cost_ms);
        // That it is offered once more is no noise of its own.
        if left.is_some() || known.is_none() {
            let bucket = Bucket {
                room_ms: left.unwrap_or(0),
                at_ms: now_ms,
            };
            seen.buckets.insert(what, bucket);
        }
        if let Some(article) = article {
            seen.articles.insert(article, left.is_some());
        }
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(text: &str) -> Builtin {
        let rule: FilterRule = toml::from_str(&format!("name = 'it'\n{text}")).unwrap();
        Builtin::new(&rule).unwrap()
    }

    fn subject(fields: &str, body: &str) -> Subject {
        let text = format!("Newsgroups: a.b\r\n{fields}\r\n{body}\r\n.\r\n");
        Subject {
            article: text.into_bytes().into(),
            from: "192.0.2.7".parse().ok(),
            is_post: false,
        }
    }

    fn takes(builtin: &Builtin, fields: &str, body: &str, now_s: u64) -> bool {
        builtin.judge(&subject(fields, body), now_s * 1000) == Verdict::Accept
    }

    #[test]
    fn fields_are_refused_by_pattern() {
        let builtin = builtin(
            "refuse = ['Subject: *Make Money, Fast*', 'X-Spam: *', 'Path: *!spam.example!*']",
        );
        let judged = |fields: &str| builtin.judge(&subject(fields, "x"), 0);
        for fields in [
            "Subject: MAKE MONEY, FAST!!\r\n",
            "subject: a\r\n make  money,\r\n\tfast\r\n",
        ] {
            assert_eq!(
                judged(fields),
                Verdict::Reject("Refused for its Subject"),
                "{fields}"
            );
        }
        assert_eq!(judged("Subject: money\r\n"), Verdict::Accept);
        let refused = |name: &'static str| Verdict::Reject(name);
        assert_eq!(judged("x-spam: 1\r\n"), refused("Refused for its X-Spam"));
        assert_eq!(
            judged("Path: a!spam.example!b\r\n"),
            refused("Refused for its Path")
        );
        assert_eq!(judged("Path: a!nospam.example!b\r\n"), Verdict::Accept);
        for bad in ["Subject", ": *", "Subject:", "Sub ject: x", "Subject: [a"] {
            assert!(field_and_pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn copies_of_a_body_are_counted() {
        let builtin = builtin("copies_max = 3\ncopies_s = 30");
        let text = "buy this, it is cheap\r\n".repeat(8);
        for now in 0..3 {
            assert!(takes(&builtin, "Subject: a\r\n", &text, now));
        }
        // Other blanks and other fields make no other text.
        let copy = text.replace(' ', "\t ").replace("\r\n", "\r\n\r\n");
        assert!(!takes(&builtin, "Subject: b\r\n", &copy, 4));
        assert!(takes(&builtin, "", &text.replace("cheap", "dear"), 4));
        assert!(takes(&builtin, "Control: cancel <a@b>\r\n", &text, 4));
        // As long as they come, none is taken; when it has been quiet for a while, one is.
        for now in 5..50 {
            assert!(!takes(&builtin, "", &text, now), "{now}");
        }
        assert!(takes(&builtin, "", &text, 60));
        for now in 0..20 {
            assert!(takes(&builtin, "", "Thanks!", now), "too short to count");
        }
    }

    /// One that was put off came again, was counted each time, and refused for good in the end.
    #[test]
    fn an_article_counts_once_however_often_it_is_offered() {
        let builtin =
            builtin("copies_max = 2\ncopies_s = 60\nsender_articles_max = 2\nsender_s = 60");
        let text = "buy this, it is cheap\r\n".repeat(8);
        let fields = |n: u8| format!("Message-ID: <{n}@a.example>\r\nFrom: a@b.example\r\n");
        for now in 0..20 {
            assert!(takes(&builtin, &fields(1), &text, 0), "{now}");
        }
        assert!(takes(&builtin, &fields(2), &text, 0));
        // One that was refused keeps nobody out by coming again: in the time of one, one has room.
        for now in 1..30 {
            assert!(!takes(&builtin, &fields(3), &text, now), "{now}");
        }
        assert!(takes(&builtin, &fields(3), &text, 31));
        assert!(takes(&builtin, &fields(1), &text, 31));
        assert!(!takes(&builtin, &fields(4), &text, 32));
    }

    #[test]
    fn articles_of_a_sender_are_counted() {
        let elsewhere =
            |more: &str| format!("Injection-Info: news.a.example; {more}\r\nFrom: a@b.example\r\n");
        for (one, other) in [
            (
                elsewhere("posting-host=\"192.0.2.1\""),
                elsewhere("posting-host=\"192.0.2.2\""),
            ),
            (
                elsewhere("posting-host=\"h\"; posting-account=\"1\""),
                elsewhere("posting-host=\"h\"; posting-account=\"2\""),
            ),
            (
                "NNTP-Posting-Host: a\r\n".to_owned(),
                "NNTP-Posting-Host: b\r\n".to_owned(),
            ),
            (
                "From: a@b.example\r\n".to_owned(),
                "From: c@b.example\r\n".to_owned(),
            ),
        ] {
            let builtin = builtin("sender_articles_max = 2\nsender_s = 60");
            let said = [&one, &one, &one, &other].map(|it| takes(&builtin, it, "x", 1));
            assert_eq!(said, [true, true, false, true], "{one}");
            assert!(takes(&builtin, &one, "x", 32), "{one}");
        }
        // Of what is posted here only the address counts, whatever it says of itself.
        let builtin = builtin("sender_articles_max = 1\nsender_s = 60");
        let posted = |from: &str, host: &str| {
            let subject = Subject {
                from: from.parse().ok(),
                is_post: true,
                ..subject(&format!("NNTP-Posting-Host: {host}\r\n"), "x")
            };
            builtin.judge(&subject, 0) == Verdict::Accept
        };
        assert!(posted("2001:db8::1", "a"));
        assert!(!posted("2001:db8::2", "b"), "the same /64 network");
        assert!(posted("2001:db8:1::1", "a"));
    }
}
