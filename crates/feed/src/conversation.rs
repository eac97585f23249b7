//! What is said to a peer and what its answers mean: CHECK and TAKETHIS (RFC 4644), or IHAVE (RFC 3977 section 6.3.2).
//!
//! Pure: lines go in and out, nothing is sent here.  Answers come in the order of commands; one that fits no command ends the
//! conversation, because nothing after it can be trusted.  Whatever ends it, the articles that are not settled are handed back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::queue::{Item, Settled};

/// CHECK is left out above this share of wanted articles, and comes back below the other, in 1024ths.
const SKIP_FROM: u32 = 973;
const SKIP_TO: u32 = 922;
/// So many answers weigh as much as what was before.
const MEMORY: u32 = 32;

/// Less under way is no work for a while.
const AHEAD_FROM: usize = 16;
/// Answers do not wait longer for others.
const PAUSE_MAX_MS: u64 = 8;

/// How articles are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// CHECK and TAKETHIS, pipelined.
    Streaming,
    /// IHAVE, one at a time.
    Ihave,
}

/// What was asked, and waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Check,
    Takethis,
    Ihave,
    /// The text behind IHAVE.
    Text,
}

/// What an answer means.
#[derive(Debug)]
pub(crate) enum Word {
    /// The peer wants the article: see [`Conversation::next_text`].
    Wanted,
    /// The last word on an article.
    Settled(Item, Settled),
    /// The peer cannot make anything of this article, and says so.
    Unanswerable(Item, String),
    /// Not now.
    Deferred(Item),
    /// It is over.
    Over(Over),
}

/// Why a conversation is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// The peer goes away for now.
    Closing(String),
    /// The peer lets us not.
    Denied(String),
    /// The peer says what cannot be understood.
    Broken(String),
}

/// A conversation from the moment the peer is ready.
#[derive(Debug)]
pub(crate) struct Conversation {
    manner: Manner,
    window: usize,
    /// In the order of the commands.
    asked: VecDeque<(Asked, Item)>,
    /// Articles whose text the peer waits for.
    wanted: VecDeque<Item>,
    /// How many of 1024 articles the peer wants, of late.
    share: u32,
    /// CHECK is left out.
    skips: bool,
    /// It ended where an answer about the next article was due.
    blames: bool,
    /// What came since the last pause.
    answers: usize,
    pause_ms: u64,
}

/// What a conversation leaves.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The article at which it ended, where the peer does not say of itself why.
    pub(crate) blamed: Option<Item>,
    /// What is not settled besides.
    pub(crate) items: Vec<Item>,
}

impl Conversation {
    pub(crate) fn new(manner: Manner, window: u32) -> Self {
        let window = match manner {
            Manner::Streaming => window.max(1) as usize,
            Manner::Ihave => 1,
        };
        Self {
            manner,
            window,
            asked: VecDeque::new(),
            wanted: VecDeque::new(),
            share: 0,
            skips: false,
            blames: false,
            answers: 0,
            pause_ms: 0,
        }
    }

    /// How articles are offered.
    pub(crate) const fn manner(&self) -> Manner {
        self.manner
    }

    /// How many more articles may be offered now.
    pub(crate) fn room(&self) -> usize {
        let under_way = self.asked.len() + self.wanted.len();
        self.window.saturating_sub(under_way)
    }

    /// Whether no article is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.wanted.is_empty()
    }

    /// Whether CHECK is left out at present.
    pub(crate) const fn skips(&self) -> bool {
        self.skips
    }

    /// How long answers may be left to come together, called when some have come: the peer has texts meanwhile.  None where it may soon
    /// have none.
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        let answers = std::mem::take(&mut self.answers);
        let is_ahead =
            self.skips && self.window >= AHEAD_FROM && self.asked.len() * 2 > self.window;
        // In twice the time come twice as many: a quarter of the window at the most.
        self.pause_ms = match is_ahead && answers * 8 <= self.window {
            true => (self.pause_ms * 2).clamp(1, PAUSE_MAX_MS),
            false => u64::from(is_ahead),
        };
        is_ahead.then(|| Duration::from_millis(self.pause_ms))
    }

    /// Offers an article.
    pub(crate) fn offer(&mut self, item: Item, out: &mut Vec<u8>) {
        let (asked, verb) = match self.manner {
            Manner::Streaming if self.skips => {
                self.wanted.push_back(item);
                return;
            }
            Manner::Streaming => (Asked::Check, "CHECK "),
            Manner::Ihave => (Asked::Ihave, "IHAVE "),
        };
        command(verb, &item, out);
        self.asked.push_back((asked, item));
    }

    /// What was offered by IHAVE, and the peer has not answered for.
    pub(crate) fn offered_by_ihave(&self) -> Option<&Item> {
        let last = self.asked.back();
        last.and_then(|(asked, item)| (*asked == Asked::Ihave).then_some(item))
    }

    /// What was offered last is taken back, and its command.
    pub(crate) fn unoffer(&mut self) -> Option<Item> {
        self.asked.pop_back().map(|(_, item)| item)
    }

    /// The next article whose text is to be sent; its command, if it takes one, is in `out` then, and the text must follow, or
    /// nothing.  Until [`Conversation::sent`] or [`Conversation::without_text`] says which, the peer waits for it.
    pub(crate) fn next_text(&self, out: &mut Vec<u8>) -> Option<&Item> {
        let item = self.wanted.front()?;
        if self.manner == Manner::Streaming {
            command("TAKETHIS ", item, out);
        }
        Some(item)
    }

    /// The text is behind the command.
    pub(crate) fn sent(&mut self) {
        let asked = match self.manner {
            Manner::Streaming => Asked::Takethis,
            Manner::Ihave => Asked::Text,
        };
        let item = self.wanted.pop_front();
        self.asked.extend(item.map(|item| (asked, item)));
    }

    /// There is no text now, and the command is taken back.
    pub(crate) fn without_text(&mut self) -> Option<Item> {
        self.wanted.pop_front()
    }

    /// What an answer means; the line is without its CRLF.
    pub(crate) fn answer(&mut self, line: &[u8]) -> Word {
        self.answers += 1;
        let text = String::from_utf8_lossy(line);
        let code = line.first_chunk::<3>().map_or(&b"   "[..], |code| code);
        match code {
            b"400" | b"503" => return Word::Over(Over::Closing(text.into_owned())),
            b"480" | b"483" | b"502" => return Word::Over(Over::Denied(text.into_owned())),
            _ => {}
        }
        let Some((asked, item)) = self.asked.pop_front() else {
            return Word::Over(Over::Broken(format!("an answer to nothing: {text}")));
        };
        let has_id = matches!(asked, Asked::Check | Asked::Takethis);
        let id = text.split(' ').nth(1);
        // A word about syntax need not repeat what it does not understand.
        if code == b"501" && id.is_none_or(|id| !id.starts_with('<') || id == &*item.offered.id) {
            return Word::Unanswerable(item, text.into_owned());
        }
        if has_id && id != Some(&*item.offered.id) {
            let why = format!("an answer about {}: {text}", item.offered.id);
            self.asked.push_front((asked, item));
            self.blames = true;
            return Word::Over(Over::Broken(why));
        }
        match (asked, code) {
            (Asked::Check, b"238") | (Asked::Ihave, b"335") => {
                self.learn(asked == Asked::Check);
                self.wanted.push_back(item);
                Word::Wanted
            }
            (Asked::Check, b"438") => {
                self.unlearn();
                Word::Settled(item, Settled::Refused)
            }
            (Asked::Ihave, b"435") => Word::Settled(item, Settled::Refused),
            (Asked::Takethis, b"239") => {
                self.learn(true);
                Word::Settled(item, Settled::Accepted)
            }
            (Asked::Takethis, b"439") => {
                self.unlearn();
                Word::Settled(item, Settled::Rejected)
            }
            (Asked::Text, b"235") => Word::Settled(item, Settled::Accepted),
            (Asked::Text, b"437") => Word::Settled(item, Settled::Rejected),
            (Asked::Check, b"431") | (Asked::Ihave | Asked::Text, b"436") => Word::Deferred(item),
            _ => {
                self.asked.push_front((asked, item));
                self.blames = true;
                Word::Over(Over::Broken(format!("an answer that fits nothing: {text}")))
            }
        }
    }

    /// The connection ends without a word of the peer: it may be the article whose answer is due.
    pub(crate) const fn blame(&mut self) {
        self.blames = true;
    }

    /// What is not settled.
    pub(crate) fn into_rest(mut self) -> Rest {
        let blamed = match self.blames {
            true => self.asked.pop_front().map(|(_, item)| item),
            false => None,
        };
        let asked = self.asked.into_iter().map(|(_, item)| item);
        let items = asked.chain(self.wanted).collect();
        Rest { blamed, items }
    }

    fn learn(&mut self, is_streaming: bool) {
        if is_streaming {
            self.share += (1024 - self.share).div_ceil(MEMORY);
            self.skips |= self.share >= SKIP_FROM;
        }
    }

    fn unlearn(&mut self) {
        self.share -= self.share.div_ceil(MEMORY);
        self.skips &= self.share > SKIP_TO;
    }
}

fn command(verb: &str, item: &Item, out: &mut Vec<u8>) {
    out.extend_from_slice(verb.as_bytes());
    out.extend_from_slice(item.offered.id.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use newsreel_wire::Sequence;

    use super::*;
    use crate::queue::Offered;

    fn item(n: u64) -> Item {
        let offered = Offered {
            sequence: Sequence(n),
            filed: None,
            id: format!("<{n}@x>").into(),
            octets: None,
            text: crate::text::Slot::default(),
        };
        Item::new(Arc::new(offered), false)
    }

    /// Plays lines: `>` offers an article, `<` is an answer; says what was sent and what each answer meant.
    fn play(talk: &mut Conversation, script: &str) -> String {
        let mut said = String::new();
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let mut out = Vec::new();
            match line.split_at(1) {
                (">", n) => talk.offer(item(n.parse().unwrap()), &mut out),
                (_, answer) => {
                    said += &match talk.answer(answer.as_bytes()) {
                        Word::Wanted => String::new(),
                        Word::Settled(item, how) => format!("{} {how:?}\n", item.offered.id),
                        Word::Deferred(item) => format!("{} later\n", item.offered.id),
                        Word::Unanswerable(item, why) => {
                            format!("{} never: {why}\n", item.offered.id)
                        }
                        Word::Over(over) => format!("{over:?}\n"),
                    };
                }
            }
            while talk.next_text(&mut out).is_some() {
                out.extend_from_slice(b"text\n");
                talk.sent();
            }
            said += &String::from_utf8(out).unwrap().replace("\r\n", "; ");
        }
        said
    }

    /// An article whose text was being read when its connection was cut was nobody's.
    #[test]
    fn an_article_is_there_until_its_text_is_sent() {
        let mut talk = Conversation::new(Manner::Streaming, 10);
        play(&mut talk, ">1\n>2\n");
        let mut out = Vec::new();
        assert!(matches!(talk.answer(b"238 <1@x>"), Word::Wanted));
        assert!(talk.next_text(&mut out).is_some());
        let ids = talk.into_rest().items.into_iter();
        let ids: Vec<_> = ids.map(|item| item.offered.id.clone()).collect();
        assert_eq!(ids, ["<2@x>".into(), "<1@x>".into()]);
    }

    #[test]
    fn check_and_takethis() {
        let mut talk = Conversation::new(Manner::Streaming, 3);
        let said = play(
            &mut talk,
            ">1\n>2\n>3\n<238 <1@x>\n<438 <2@x>\n<431 <3@x>\n<239 <1@x>\n>4\n<238 <4@x> go on\n<439 <4@x>",
        );
        let expected = "CHECK <1@x>; CHECK <2@x>; CHECK <3@x>; TAKETHIS <1@x>; text\n<2@x> Refused\n<3@x> later\n\
                        <1@x> Accepted\nCHECK <4@x>; TAKETHIS <4@x>; text\n<4@x> Rejected\n";
        assert_eq!(said, expected);
        assert!(talk.is_idle() && talk.room() == 3);
    }

    #[test]
    fn ihave_is_one_at_a_time() {
        let mut talk = Conversation::new(Manner::Ihave, 100);
        let said = play(
            &mut talk,
            ">1\n<335 go on\n<235 ok\n>2\n<435 no\n>3\n<436 later\n>4\n<335\n<437 bad\n>5\n<335\n<436 later",
        );
        let expected = "IHAVE <1@x>; text\n<1@x> Accepted\nIHAVE <2@x>; <2@x> Refused\nIHAVE <3@x>; <3@x> later\n\
                        IHAVE <4@x>; text\n<4@x> Rejected\nIHAVE <5@x>; text\n<5@x> later\n";
        assert_eq!(said, expected);
    }

    #[test]
    fn nothing_is_settled_by_what_fits_nothing() {
        for (answer, over) in [
            ("400 going down", "Closing"),
            ("503 slow down", "Closing"),
            ("480 who are you", "Denied"),
            ("502 no", "Denied"),
            ("500 what?", "Broken"),
            ("238 <2@x>", "Broken"),
            ("239 <1@x>", "Broken"),
            ("438", "Broken"),
            ("", "Broken"),
            ("23", "Broken"),
        ] {
            let mut talk = Conversation::new(Manner::Streaming, 9);
            let said = play(&mut talk, &format!(">1\n>2\n<{answer}"));
            assert!(said.contains(over), "{answer}: {said}");
            let Rest { blamed, items } = talk.into_rest();
            let blamed = blamed.map(|item| item.offered.sequence.0);
            // What a peer says of itself is no article's fault.
            assert_eq!(blamed, (over == "Broken").then_some(1), "{answer}");
            assert_eq!(items.len(), 2 - blamed.iter().count(), "{answer}");
        }
        let mut talk = Conversation::new(Manner::Streaming, 9);
        let said = play(
            &mut talk,
            ">1\n>2\n>3\n<501 what id?\n<501 <2@x> no\n<501 <9@x>",
        );
        assert!(
            said.contains("<1@x> never: 501 what id?\n<2@x> never: 501 <2@x> no\nBroken"),
            "{said}"
        );
        let mut talk = Conversation::new(Manner::Streaming, 9);
        assert!(play(&mut talk, "<238 <1@x>").contains("an answer to nothing"));
    }

    #[test]
    fn check_is_left_out_while_nearly_everything_is_wanted() {
        let mut talk = Conversation::new(Manner::Streaming, 1);
        let asks = |talk: &mut Conversation, code: &str| {
            let said = play(talk, ">1");
            let wanted = match said.contains("CHECK") {
                true if code == "yes" => play(talk, "<238 <1@x>\n<239 <1@x>"),
                true => play(talk, "<438 <1@x>"),
                false if code == "yes" => play(talk, "<239 <1@x>"),
                false => play(talk, "<439 <1@x>"),
            };
            assert!(wanted.contains("<1@x>"));
            said.contains("CHECK")
        };
        let before: Vec<bool> = (0..100).map(|_| asks(&mut talk, "yes")).collect();
        let asked = before.iter().filter(|asked| **asked).count();
        assert!((20..=80).contains(&asked), "{asked}");
        assert!(talk.skips() && !before[99]);
        // Now and then one that the peer has changes nothing; several do.
        asks(&mut talk, "no");
        assert!(talk.skips());
        (0..6).for_each(|_| {
            asks(&mut talk, "no");
        });
        assert!(!talk.skips());
    }

    /// Whoever asks first waits for answers: there the next text depends on each.
    #[test]
    fn answers_come_together_while_more_than_half_of_many_texts_are_on_their_way() {
        for (window, from) in [(16, Some(9)), (15, None)] {
            let mut talk = Conversation::new(Manner::Streaming, window);
            for n in 1..=16 {
                play(&mut talk, &format!(">{n}"));
                assert_eq!(talk.pause(), None, "{window}: {n} are asked for");
            }
            for code in ["238", "239"] {
                for n in 1..=16 {
                    play(&mut talk, &format!("<{code} <{n}@x>"));
                }
            }
            while !talk.skips() {
                play(&mut talk, ">17\n<238 <17@x>\n<239 <17@x>");
            }
            assert!(talk.is_idle() && talk.pause().is_none());
            let ahead = (1..=16).find(|n| {
                play(&mut talk, &format!(">{n}"));
                talk.pause().is_some()
            });
            assert_eq!(ahead, from, "{window}");
        }
    }

    /// As long as few come; where many come at once the peer is fast, or would soon have nothing to do.
    #[test]
    fn the_pause_is_longer_where_few_answers_come() {
        let mut talk = Conversation::new(Manner::Streaming, 32);
        (talk.skips, talk.share) = (true, 1024);
        let mut next = 1..;
        let mut due = 1..;
        let mut after = |answers: usize| {
            for _ in 0..answers {
                let n = due.next().unwrap();
                play(&mut talk, &format!("<239 <{n}@x>"));
            }
            let pause = talk.pause().map(|pause| pause.as_millis());
            while talk.room() > 0 {
                let n = next.next().unwrap();
                play(&mut talk, &format!(">{n}"));
            }
            pause
        };
        assert_eq!(after(0), None);
        let pauses = [1, 1, 4, 4, 4, 5, 1, 16, 1].map(&mut after);
        let expected = [
            Some(1),
            Some(2),
            Some(4),
            Some(8),
            Some(8),
            Some(1),
            Some(2),
            None,
            Some(1),
        ];
        assert_eq!(pauses, expected);
    }
}
