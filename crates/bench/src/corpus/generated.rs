//! Articles modelled on those of the CNFS paper, each a pure function of the seed and its index.
//!
//! Invariant: an article can be made, named and recognised by its index alone, in any order, so a
//! corpus of any length takes constant memory and a reader can check what it gets back. The body
//! does not depend on the base time. A body is lent from the text, never copied.
//! Must not read a clock: the base time is given.

use newsreel_wire::UnixTime;
use newsreel_wire::date::print_rfc5322;

use super::groups;
use super::words::{Cut, Text, Words};
use crate::random::{Dice, Ranks, Zipf, exp, mix};

const SIZE: u64 = 0x20;
const PARENT: u64 = 0x21;
const ROOT: u64 = 0x22;
const HEAD: u64 = 0x23;
const BODY: u64 = 0x24;
const IDENTITY: u64 = 0x25;
const NAMES: u64 = 0x26;

/// Of the wire size: the natural logarithm of the median and the deviation (mean 2.65 KB below the
/// limit of 32 KB, median 1.8 KB, 99th percentile 13 KB, as in a text feed).
const SIZE_MU: f64 = 7.5;
const SIZE_SIGMA: f64 = 0.86;
const SIZE_OCTETS_MAX: f64 = 32_000.0;
/// Of small ones: an article ends with a whole line, and all of them stay below 4 KB.
const SMALL_OCTETS_MAX: f64 = 3_900.0;

const REFERENCES_MAX: usize = 10;
const DATES_SPREAD_SECS: usize = 3 * 3600;
const BASE32: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// How large generated articles are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// As in a text feed: mean 2.65 KB, all below 32 KB.
    #[default]
    Text,
    /// As in a text feed, and none above 4 KB.
    Small,
    /// All of this many octets, to the nearest line.
    Fixed(u32),
}

/// What a generated corpus is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) seed: u64,
    pub(crate) groups: usize,
    pub(crate) is_even: bool,
    pub(crate) size: Size,
    pub(crate) crossposted_percent: u32,
    pub(crate) replies_percent: u32,
    pub(crate) base_time_secs: u64,
}

#[derive(Debug)]
pub(crate) struct Generated {
    model: Model,
    groups: Vec<String>,
    ranks: Ranks,
    words: Words,
    text: Text,
    hosts: Vec<String>,
    authors: Vec<String>,
    organizations: Vec<String>,
}

impl Generated {
    pub(crate) fn new(model: Model) -> Self {
        let words = Words::new(model.seed, 4000);
        let text_len = match model.size {
            Size::Text | Size::Small => 4 << 20,
            Size::Fixed(octets) => (octets as usize * 2).max(4 << 20),
        };
        let mut dice = Dice::new(model.seed, NAMES, 0);
        let hosts = (0..256)
            .map(|n| format!("host{n}.{}.example", words.any(&mut dice)))
            .collect::<Vec<_>>();
        let authors = (0..1024)
            .map(|_| author(&words, &hosts, &mut dice))
            .collect();
        let organizations = (0..128)
            .map(|_| {
                format!(
                    "{} {} Institute",
                    title(words.any(&mut dice)),
                    words.any(&mut dice)
                )
            })
            .collect();
        Self {
            groups: groups::names(model.groups.max(1)),
            ranks: match model.is_even {
                true => Ranks::Even(model.groups.max(1)),
                false => Ranks::Zipf(Zipf::new(model.groups.max(1))),
            },
            text: Text::new(model.seed, &words, text_len),
            words,
            hosts,
            authors,
            organizations,
            model,
        }
    }

    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Appends the message-id of article `n`: its index, a check that belongs to the seed, a host.
    pub(crate) fn write_message_id(&self, n: u64, out: &mut Vec<u8>) {
        let check = self.check(n);
        out.push(b'<');
        write_hex(out, n);
        out.push(b'.');
        write_check(out, check);
        out.push(b'@');
        let host = self
            .hosts
            .get((check >> 56) as usize)
            .map_or("", String::as_str);
        out.extend_from_slice(host.as_bytes());
        out.push(b'>');
    }

    /// The index of the article with this message-id, if it is one of this corpus.
    pub(crate) fn find(&self, message_id: &[u8]) -> Option<u64> {
        let text = message_id.strip_prefix(b"<")?;
        let dot = memchr::memchr(b'.', text)?;
        let digits = text
            .get(..dot)
            .filter(|digits| (1..=16).contains(&digits.len()))?;
        let mut n = 0u64;
        for digit in digits {
            n = n << 4 | u64::from((*digit as char).to_digit(16)?);
        }
        let mut expected = Vec::with_capacity(64);
        self.write_message_id(n, &mut expected);
        (expected == message_id).then_some(n)
    }

    /// Appends the header block of article `n` with the empty line; the body is the cut.
    pub(crate) fn write_head(&self, n: u64, out: &mut Vec<u8>) -> Cut {
        let start = out.len();
        let root = self.root(n);
        let mut dice = Dice::new(self.model.seed, HEAD, n);
        self.write_origin(n, root, &mut dice, out);
        self.write_references(n, out);
        self.write_extras(&mut dice, out);
        let head_len = out.len() - start;
        let mut dice = Dice::new(self.model.seed, BODY, n);
        let left = self
            .octets(n)
            .saturating_sub(head_len + "Lines: 12\r\n\r\n.\r\n".len());
        let cut = self.text.cut(&mut dice, left.max(60));
        out.extend_from_slice(b"Lines: ");
        write_decimal(out, cut.lines as u64);
        out.extend_from_slice(b"\r\n\r\n");
        cut
    }

    pub(crate) fn body(&self, cut: Cut) -> &[u8] {
        self.text.get(cut)
    }

    /// The indices in `groups` that article `n` is posted to, into `out`; the first is the main one.
    pub(crate) fn newsgroups(&self, root: u64, out: &mut Vec<usize>) {
        let mut dice = Dice::new(self.model.seed, ROOT, root);
        out.clear();
        out.push(self.ranks.rank(dice.next()));
        if dice.chance(self.model.crossposted_percent as usize * 10) {
            // Two groups mostly, three now and then, more seldom.
            let extra = match dice.below(100) {
                0..68 => 1,
                68..88 => 2,
                88..95 => 3,
                _ => 4 + dice.below(4),
            };
            for _ in 0..extra {
                let rank = self.ranks.rank(dice.next());
                let rank = (rank..self.groups.len()).find(|rank| !out.contains(rank));
                out.extend(rank);
            }
        }
    }

    /// The first article of the thread that article `n` belongs to.
    pub(crate) fn root(&self, n: u64) -> u64 {
        let mut root = n;
        while let Some(parent) = self.parent(root) {
            root = parent;
        }
        root
    }

    /// The article that `n` replies to: a recent one, mostly a very recent one.
    fn parent(&self, n: u64) -> Option<u64> {
        let bits = mix(mix(self.model.seed ^ PARENT) ^ n);
        if bits % 1000 >= u64::from(self.model.replies_percent) * 10 {
            return None;
        }
        let scale = (bits >> 16) % 13;
        let distance = (1 << scale) + ((bits >> 24) & ((1 << scale) - 1));
        n.checked_sub(distance)
    }

    fn check(&self, n: u64) -> u64 {
        mix(mix(self.model.seed ^ IDENTITY) ^ n)
    }

    /// The size of article `n` that is aimed at.
    fn octets(&self, n: u64) -> usize {
        match self.model.size {
            Size::Fixed(octets) => octets as usize,
            Size::Text | Size::Small => {
                let most = match self.model.size {
                    Size::Small => SMALL_OCTETS_MAX,
                    Size::Text | Size::Fixed(_) => SIZE_OCTETS_MAX,
                };
                let mut dice = Dice::new(self.model.seed, SIZE, n);
                loop {
                    let octets = exp(SIZE_MU + SIZE_SIGMA * dice.normal());
                    if octets < most {
                        break octets as usize;
                    }
                }
            }
        }
    }

    fn write_origin(&self, n: u64, root: u64, dice: &mut Dice, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Path: ");
        for _ in 0..2 + dice.below(4) {
            out.extend_from_slice(self.host(dice.below(64)).as_bytes());
            out.push(b'!');
        }
        out.extend_from_slice(b"not-for-mail\r\nFrom: ");
        let widest = dice.below(self.authors.len()) + 1;
        let author = self
            .authors
            .get(dice.below(widest))
            .map_or("", String::as_str);
        out.extend_from_slice(author.as_bytes());
        out.extend_from_slice(b"\r\nNewsgroups: ");
        let mut posted_to = Vec::with_capacity(8);
        self.newsgroups(root, &mut posted_to);
        for (place, rank) in posted_to.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(self.groups.get(*rank).map_or("", String::as_str).as_bytes());
        }
        out.extend_from_slice(if n == root {
            b"\r\nSubject: "
        } else {
            b"\r\nSubject: Re: "
        });
        let mut subject = Dice::new(self.model.seed, ROOT, !root);
        for place in 0..3 + subject.below(6) {
            if place > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(self.words.common(&mut subject).as_bytes());
        }
        out.extend_from_slice(b"\r\nDate: ");
        let age = dice.below(DATES_SPREAD_SECS) as u64;
        // Always as long, so that an article's size does not depend on the day of the benchmark.
        print_rfc5322(UnixTime(self.model.base_time_secs.saturating_sub(age)), out);
        out.extend_from_slice(b"\r\nMessage-ID: ");
        self.write_message_id(n, out);
        out.extend_from_slice(b"\r\n");
    }

    /// The thread above article `n`, the oldest first; of a long one the root and the latest.
    fn write_references(&self, n: u64, out: &mut Vec<u8>) {
        if matches!(self.model.size, Size::Fixed(octets) if octets < 1200) {
            return; // no room: the size was asked for
        }
        let mut ancestors = Vec::with_capacity(16);
        ancestors.extend(std::iter::successors(self.parent(n), |&n| self.parent(n)));
        if ancestors.is_empty() {
            return;
        }
        out.extend_from_slice(b"References:");
        let skipped = ancestors.len().saturating_sub(REFERENCES_MAX);
        for (place, ancestor) in ancestors.iter().rev().enumerate() {
            if place == 0 || place > skipped {
                out.extend_from_slice(if place % 2 == 0 { b" " } else { b"\r\n " });
                self.write_message_id(*ancestor, out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    fn write_extras(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        let organization = dice.pick(&self.organizations).map_or("", String::as_str);
        field(out, b"Organization: ", organization.as_bytes());
        let host = self.host(dice.below(256));
        field(out, b"NNTP-Posting-Host: ", host.as_bytes());
        if matches!(self.model.size, Size::Fixed(octets) if octets < 1200) {
            return;
        }
        if dice.chance(600) {
            field(out, b"MIME-Version: ", b"1.0");
            field(out, b"Content-Type: ", b"text/plain; charset=UTF-8");
            field(out, b"Content-Transfer-Encoding: ", b"8bit");
        }
        match dice.below(4) {
            0 => field(out, b"User-Agent: ", b"reader/1.7.3 (unix)"),
            1 | 2 => field(out, b"X-Newsreader: ", b"threads 4.1.9 PL2"),
            _ => {}
        }
        if dice.chance(200) {
            field(out, b"Distribution: ", b"world");
        }
        if dice.chance(100) {
            field(
                out,
                b"Reply-To: ",
                self.authors.first().map_or("", String::as_str).as_bytes(),
            );
        }
        if dice.chance(120) {
            out.extend_from_slice(b"Xref: ");
            out.extend_from_slice(host.as_bytes());
            out.push(b' ');
            out.extend_from_slice(self.groups.first().map_or("", String::as_str).as_bytes());
            out.push(b':');
            write_decimal(out, 1000 + dice.below(90_000) as u64);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn host(&self, n: usize) -> &str {
        self.hosts.get(n).map_or("", String::as_str)
    }
}

fn author(words: &Words, hosts: &[String], dice: &mut Dice) -> String {
    let (first, last) = (words.any(dice), words.any(dice));
    let host = dice.pick(hosts).map_or("", String::as_str);
    format!("{} {} <{first}.{last}@{host}>", title(first), title(last))
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + letters.as_str()
    })
}

fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_hex(out: &mut Vec<u8>, number: u64) {
    let digits = (16 - number.leading_zeros() / 4).max(1);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * place) & 15) as usize]);
    }
}

fn write_check(out: &mut Vec<u8>, check: u64) {
    for place in 0..8 {
        out.push(BASE32[(check >> (5 * place) & 31) as usize]);
    }
}
