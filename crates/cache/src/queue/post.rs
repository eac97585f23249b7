//! A post that waits, beside its text: for which servers, and how it stands with each of them.
//!
//! Kept as lines of text; the layout is in `docs/formats/cache.md`.

use std::fmt::Write as _;

use newsreel_wire::{MessageId, UnixTime};

/// The longest word of a server about a post that is kept, octets.
const SAID_OCTETS_MAX: usize = 300;

/// Servers that one post is for, at most.
pub const TARGETS_MAX: usize = 64;

/// How it stands with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is tried at that time.
    Waits,
    /// The server has it, since then.
    Sent,
    /// The server refused it then.
    Refused,
}

impl Standing {
    /// As it is told.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Sent => "sent",
            Self::Refused => "refused",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Waits, Self::Sent, Self::Refused];
        all.into_iter().find(|standing| standing.label() == text)
    }
}

/// A server that a post is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostTarget {
    /// The server's name: the first of those that may take it.
    pub server: String,
    /// How it stands.
    pub standing: Standing,
    /// How often the server was asked, but for when somebody wanted that and it was in vain: the wait doubles with each.
    pub tries: u32,
    /// When it is tried, or was sent or refused.
    pub at: UnixTime,
    /// What was said last; empty: nothing yet.
    pub said: String,
}

/// A post that waits, or that a server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPost {
    /// When it was taken.
    pub taken: UnixTime,
    /// Its message-id.
    pub id: String,
    /// The groups it is for, with commas between them.
    pub groups: String,
    /// Octets of its text.
    pub octets: u64,
    /// The servers.
    pub targets: Vec<PostTarget>,
}

/// A text as it may stand on a line of its own.
fn one_line(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut line = String::new();
    for c in text.trim().chars().map(clean) {
        if line.len() + c.len_utf8() > SAID_OCTETS_MAX {
            break;
        }
        line.push(c);
    }
    line.truncate(line.trim_end().len());
    line
}

impl PostTarget {
    /// One that is tried at once.
    #[must_use]
    pub fn new(server: &str, now: UnixTime) -> Self {
        Self {
            server: server.to_owned(),
            standing: Standing::Waits,
            tries: 0,
            at: now,
            said: String::new(),
        }
    }

    /// Something became of it.
    pub(super) fn stands(&mut self, standing: Standing, at: UnixTime, said: &str) {
        self.standing = standing;
        self.at = at;
        self.tries = self.tries.saturating_add(1);
        self.said = one_line(said);
    }

    /// It is tried at that time, and this was no try that counts.
    pub(super) fn put_off(&mut self, at: UnixTime, said: &str) {
        self.standing = Standing::Waits;
        self.at = at;
        self.said = one_line(said);
    }
}

impl QueuedPost {
    /// Whether every server has it.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        let mut targets = self.targets.iter();
        targets.all(|target| target.standing == Standing::Sent)
    }

    /// When it is to be tried next; none: never, if nobody says so.
    #[must_use]
    pub fn due(&self) -> Option<UnixTime> {
        let targets = self.targets.iter();
        let waiting = targets.filter(|target| target.standing == Standing::Waits);
        waiting.map(|target| target.at).min()
    }

    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self {
            taken,
            id,
            groups,
            octets,
            targets,
        } = self;
        let mut text = format!("{taken} {octets} {id}\n{groups}\n", taken = taken.0);
        for target in targets {
            let (standing, at) = (target.standing.label(), target.at.0);
            let (tries, server, said) = (target.tries, &target.server, &target.said);
            // A `String` takes everything.
            let _ = writeln!(text, "{standing} {tries} {at} {server} {said}");
        }
        text.into_bytes()
    }

    /// From what was kept; none: it is no such thing.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(octets).ok()?.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        let mut first = lines.next()?.splitn(3, ' ');
        let (taken, octets, id) = (first.next()?, first.next()?, first.next()?);
        MessageId::parse(id.as_bytes()).ok()?;
        let groups = lines.next()?;
        let targets = lines.map(|line| {
            let mut words = line.splitn(5, ' ');
            let mut word = || words.next();
            let target = PostTarget {
                standing: Standing::parse(word()?)?,
                tries: word()?.parse().ok()?,
                at: UnixTime(word()?.parse().ok()?),
                server: word()?.to_owned(),
                said: word()?.to_owned(),
            };
            let is_clean = one_line(&target.said) == target.said && !target.server.is_empty();
            is_clean.then_some(target)
        });
        let post = Self {
            taken: UnixTime(taken.parse().ok()?),
            id: id.to_owned(),
            groups: groups.to_owned(),
            octets: octets.parse().ok()?,
            targets: targets.collect::<Option<_>>()?,
        };
        let has_targets = (1..=TARGETS_MAX).contains(&post.targets.len());
        (has_targets && post.encode() == text_with_end(text)).then_some(post)
    }
}

/// The octets that a text was read from.
fn text_with_end(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post() -> QueuedPost {
        let mut one = PostTarget::new("one.example:119", UnixTime(7));
        one.stands(
            Standing::Refused,
            UnixTime(9),
            "441 no\r\n  such group\u{e9}\0",
        );
        QueuedPost {
            taken: UnixTime(5),
            id: "<1@t.example>".to_owned(),
            groups: "misc.test,a.b".to_owned(),
            octets: 99,
            targets: vec![one, PostTarget::new("[::1]:563", UnixTime(7))],
        }
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        let post = post();
        assert_eq!(QueuedPost::decode(&post.encode()), Some(post.clone()));
        assert_eq!(post.targets[0].said, "441 no    such group\u{e9}");
        // Those of version 1 are read for ever.
        let encoded = &include_bytes!("../../../../fuzz/corpus/cache_values/post")[..];
        assert_eq!(QueuedPost::decode(encoded), Some(post));
        for bad in [
            &encoded[..encoded.len() - 1],
            b"5 99 <1@t.example>\nmisc.test\n",
            b"05 99 <1@t.example>\nmisc.test\nwaits 0 7 a \n",
            b"5 99 1\nmisc.test\nwaits 0 7 a \n",
            b"5 99 <1@t.example>\nmisc.test\ngone 0 7 a \n",
            b"5 99 <1@t.example>\nmisc.test\nwaits 0 7 a  b\n",
        ] {
            assert_eq!(QueuedPost::decode(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn it_is_due_for_who_waits_and_sent_when_all_have_it() {
        let mut post = post();
        assert_eq!((post.due(), post.is_sent()), (Some(UnixTime(7)), false));
        post.targets[1].stands(Standing::Sent, UnixTime(8), "");
        assert_eq!((post.due(), post.is_sent()), (None, false));
        post.targets[0].stands(Standing::Sent, UnixTime(8), "");
        assert!(post.is_sent());
        let long = "x".repeat(SAID_OCTETS_MAX - 1) + "\u{e9}";
        post.targets[0].stands(Standing::Waits, UnixTime(8), &long);
        assert_eq!(post.targets[0].said.len(), SAID_OCTETS_MAX - 1);
    }
}
