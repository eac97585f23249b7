//! What each fuzz target of `newsreel-wire` does with its input.
//!
//! A function here must hold for any input: it calls one parser and asserts what the parser promises of its answer.
//! The fuzz targets call them, and so does an ordinary test of `newsreel-wire` that includes this file and replays the
//! committed corpora, so this file uses nothing but that crate.

use newsreel_wire::article::{
    ArticleFacts, HeaderLimits, Headers, Known, OctetFacts, check_relay, first_mailbox, is_address,
    odd_fields,
};
use newsreel_wire::batch::{BatchReader, Step};
use newsreel_wire::date::{UnixTime, parse_nntp, parse_relaxed, parse_rfc5322, print_rfc5322};
use newsreel_wire::mbox::{MboxReader, MboxStep, Quoting, unquote};
use newsreel_wire::nntp::block::{BlockSplitter, Portion};
use newsreel_wire::nntp::framing::{dot_stuff, dot_unstuff, find_end, lf_to_wire, wire_to_lf};
use newsreel_wire::nntp::line::{COMMAND_OCTETS_MAX, Command, LineSplitter, Split};
use newsreel_wire::overview::{self, OverviewFields};
use newsreel_wire::path::{Path, identity_is_valid};
use newsreel_wire::range::NumberRange;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupName, MessageId, TokenText, newsgroups};

/// A target: its name, which is also its corpus folder and its file in `fuzz_targets`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this crate.
pub const TARGETS: &[Target] = &[
    ("article", article),
    ("batch", batch),
    ("mbox", mbox),
    ("command_line", command_line),
    ("date", date),
    ("framing", framing),
    ("group_name", group_name),
    ("mailboxes", mailboxes),
    ("message_id", message_id),
    ("newsgroups", newsgroups),
    ("nntp_date", nntp_date),
    ("octets", octets),
    ("overview", overview),
    ("path", path),
    ("range", range),
    ("token_text", token_text),
    ("wildmat", wildmat),
];

/// Header scan, octet facts, both checks and the overview line of an article in wire form.
pub fn article(data: &[u8]) {
    let Ok(headers) = Headers::scan(data) else {
        return;
    };
    let mut at = 0;
    for field in headers.fields() {
        assert_eq!(field.start, at, "fields follow each other");
        assert!(field.start < field.content_start && field.content_start <= field.end - 2);
        at = field.end;
    }
    assert_eq!(at + 2, headers.body_start());
    assert!(headers.fields().len() <= HeaderLimits::USUAL.fields);
    for &known in Known::ALL {
        assert_eq!(
            headers.get(known).is_some(),
            headers.present().contains(known)
        );
    }
    let _ = odd_fields(&headers);
    let Ok(facts) = ArticleFacts::of(&headers) else {
        return;
    };
    assert!(facts.bytes < data.len() && facts.lines < data.len());
    let mut line = Vec::new();
    overview::write_fields(&headers, facts.bytes, facts.lines, &mut line);
    let fields = OverviewFields::parse(&line).expect("our own overview lines can be read");
    assert_eq!(fields.lines, Some(facts.lines as u64));
    if let Ok(relay) = check_relay(&headers, &facts) {
        assert!(facts.octets.is_clean());
        assert_eq!(
            overview::message_id(&line),
            Some(relay.message_id.as_bytes())
        );
        assert!(newsgroups::split(relay.newsgroups).any(|name| name.is_ok()));
        let _ = relay.path.contains(b"news.example");
    }
}

/// A batch, whole and in pieces of seven octets: the same articles and damages come out.
pub fn batch(data: &[u8]) {
    let read = |step: usize| {
        let mut reader = BatchReader::new(1000);
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        let mut pieces = data.chunks(step);
        loop {
            let piece = pieces.next();
            buf.extend_from_slice(piece.unwrap_or_default());
            loop {
                let used = match reader.next(&buf, piece.is_none()) {
                    Step::Incomplete { used } => {
                        buf.drain(..used);
                        break;
                    }
                    Step::End { .. } => return found,
                    Step::Padding { used } => used,
                    Step::Article { body, used } => {
                        found.push((buf.get(body).expect("inside the buffer").to_vec(), None));
                        used
                    }
                    Step::Damaged { at, why, used } => {
                        found.push((Vec::new(), Some((at, why))));
                        used
                    }
                };
                buf.drain(..used);
            }
            assert!(piece.is_some(), "at the end nothing is incomplete");
        }
    };
    assert_eq!(read(7), read(data.len().max(1)));
}

/// A mail folder, whole and in pieces of seven octets: the same messages come out, and can be unquoted.
pub fn mbox(data: &[u8]) {
    let read = |step: usize| {
        let mut reader = MboxReader::new(1000);
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        let mut pieces = data.chunks(step);
        let mut at_end = false;
        loop {
            let used = match reader.next(&buf, at_end) {
                MboxStep::Incomplete { used } => {
                    assert!(!at_end || used > 0, "at the end nothing is incomplete");
                    match pieces.next() {
                        Some(piece) => buf.extend_from_slice(piece),
                        None => at_end = true,
                    }
                    used
                }
                MboxStep::End { .. } => return found,
                MboxStep::Message { body, used } => {
                    let message = buf.get(body).expect("inside the buffer");
                    let mut text = Vec::new();
                    unquote(message, Quoting::Once, &mut text);
                    unquote(message, Quoting::Each, &mut text);
                    found.push(text);
                    used
                }
                MboxStep::Damaged { used, .. } => used,
            };
            buf.drain(..used);
        }
    };
    assert_eq!(read(7), read(data.len().max(1)));
}

/// Command lines, whole and in pieces of five octets.
pub fn command_line(data: &[u8]) {
    let read = |step: usize| {
        let mut splitter = LineSplitter::default();
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        for piece in data.chunks(step) {
            buf.extend_from_slice(piece);
            loop {
                let used = match splitter.next(&buf) {
                    Split::Incomplete { used } => {
                        buf.drain(..used);
                        break;
                    }
                    Split::Line { line, used } => {
                        assert!(line.len() + 2 <= COMMAND_OCTETS_MAX && !line.contains(&b'\n'));
                        let command = Command::parse(line);
                        assert!(command.args.iter().all(|arg| !arg.is_empty()));
                        found.push(Ok(line.to_vec()));
                        used
                    }
                    Split::Bad { why, used } => {
                        found.push(Err(why));
                        used
                    }
                };
                buf.drain(..used);
            }
        }
        found
    };
    assert_eq!(read(5), read(data.len().max(1)));
}

/// A list of mailboxes: the address that is found is one, and stands in the text.
pub fn mailboxes(data: &[u8]) {
    if let Ok(address) = first_mailbox(data) {
        assert!(is_address(address) && address.is_ascii());
        assert_eq!(first_mailbox(address), Ok(address));
        assert!(data.windows(address.len()).any(|part| part == address));
    }
}

/// An article date: what the strict reader takes, the relaxed one takes too, and what is printed is read back.
pub fn date(data: &[u8]) {
    let relaxed = parse_relaxed(data);
    if let Ok(time) = parse_rfc5322(data) {
        assert_eq!(relaxed, Ok(time));
    }
    if let Ok(time) = relaxed {
        let mut printed = Vec::new();
        print_rfc5322(time, &mut printed);
        if time < UnixTime(253_402_300_800) {
            assert_eq!(parse_rfc5322(&printed), Ok(time));
        }
    }
}

/// The first block passed on while it comes ends where it ends.
fn in_portions(data: &[u8], whole: Option<usize>) {
    let (mut splitter, mut front, mut given) = (BlockSplitter::default(), 0, 0);
    for upto in (0..=data.len()).step_by(3).chain([data.len()]) {
        match splitter.next(data.get(front..upto).unwrap_or_default()) {
            Portion::More => {}
            Portion::Part(len) => front += len,
            Portion::Last(len) => {
                given = front + len;
                break;
            }
        }
    }
    assert_eq!((given > 0).then_some(given), whole);
}

/// Finding ends in pieces, stuffing and unstuffing.
pub fn framing(data: &[u8]) {
    let whole = find_end(data, 0);
    let mut scanned = 0;
    let mut in_pieces = None;
    while in_pieces.is_none() && scanned < data.len() {
        let upto = (scanned + 3).min(data.len());
        in_pieces = find_end(data.get(..upto).unwrap_or_default(), scanned);
        scanned = upto;
    }
    assert_eq!(in_pieces, whole);
    in_portions(data, whole);

    let (mut wire, mut back) = (Vec::new(), Vec::new());
    dot_stuff(data, &mut wire);
    assert_eq!(find_end(&wire, 0), Some(wire.len()));
    dot_unstuff(&wire, &mut back);
    assert!(back.starts_with(data) && back.len() <= data.len() + 2);

    wire.clear();
    back.clear();
    lf_to_wire(data, &mut wire);
    assert_eq!(find_end(&wire, 0), Some(wire.len()));
    wire_to_lf(&wire, &mut back);
    if !data.contains(&b'\r') {
        assert!(back.starts_with(data) && back.len() <= data.len() + 1);
    }
}

/// A newsgroup name.
pub fn group_name(data: &[u8]) {
    if let Ok(name) = GroupName::parse(data) {
        assert_eq!(name.as_bytes(), data);
        assert!(name.components().all(|component| !component.is_empty()));
        let exact = Wildmat::parse_argument(data).expect("a name is a wildmat");
        assert!(exact.matches(name.as_str()));
        assert_eq!(exact.prefix(), name.as_str());
    }
}

/// A message-id.
pub fn message_id(data: &[u8]) {
    if let Ok(id) = MessageId::parse(data) {
        assert_eq!(id.as_bytes(), data);
        let _ = id.has_two_parts();
    }
}

/// A list of newsgroup names.
pub fn newsgroups(data: &[u8]) {
    let good = newsgroups::split(data).filter(Result::is_ok).count();
    assert_eq!(good > 0, newsgroups::check(data).is_ok());
}

/// Date and time of NEWGROUPS, separated by a space.
pub fn nntp_date(data: &[u8]) {
    let mut words = data.splitn(2, |&octet| octet == b' ');
    let (date, time) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    if let Ok(read) = parse_nntp(date, time, UnixTime(1_795_219_200)) {
        assert!(read <= UnixTime(253_402_300_800), "the last leap second");
        assert!(date.len() == 6 || date.len() == 8);
    }
}

/// Octet facts against counts that are obviously right.
pub fn octets(data: &[u8]) {
    let count = |pattern: &[u8]| {
        data.windows(pattern.len())
            .filter(|window| *window == pattern)
            .count()
    };
    let facts = OctetFacts::of(data);
    assert_eq!(
        (facts.cr, facts.lf, facts.nul),
        (count(b"\r"), count(b"\n"), count(b"\0"))
    );
    assert_eq!(facts.crlf, count(b"\r\n"));
    assert_eq!(
        facts.dot_lines,
        count(b"\n.") + usize::from(data.starts_with(b"."))
    );
    assert_eq!(
        (facts.octets, facts.non_ascii),
        (data.len(), !data.is_ascii())
    );
}

/// An overview line, and any octets as a field's content.
pub fn overview(data: &[u8]) {
    if let Ok(fields) = OverviewFields::parse(data) {
        assert_eq!(overview::message_id(data), Some(fields.message_id));
        for &known in Known::ALL {
            let _ = fields.header(known);
        }
    }
    let mut out = Vec::new();
    overview::unfold(data, &mut out);
    assert!(out.len() <= data.len());
    assert!(
        !out.iter()
            .any(|octet| matches!(octet, b'\t' | b'\r' | b'\n' | 0))
    );
}

/// A path.
pub fn path(data: &[u8]) {
    let Ok(path) = Path::parse(data) else { return };
    for entry in path.entries() {
        if !entry.identity.is_empty() {
            assert!(path.contains(entry.identity));
        }
    }
    if let Ok(text) = std::str::from_utf8(path.tail()) {
        let _ = identity_is_valid(text);
    }
}

/// A range of article numbers.
pub fn range(data: &[u8]) {
    if let Ok(range) = NumberRange::parse(data) {
        assert_eq!(NumberRange::parse(range.to_string().as_bytes()), Ok(range));
        assert_eq!(range.contains(range.low), !range.is_empty());
        let clamped = range.clamp(ArticleNumber(1), ArticleNumber(100));
        assert!(clamped.is_none_or(|(first, last)| first <= last
            && range.contains(first)
            && range.contains(last)));
    }
}

/// A token's text form: one token has one text.
pub fn token_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(token) = TokenText::parse(text) {
        assert_eq!(token.to_string(), text);
    }
}

/// A wildmat on the first line, a text to match on the rest.
pub fn wildmat(data: &[u8]) {
    let mut lines = data.splitn(2, |&octet| octet == b'\n');
    let (pattern, text) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(wildmat) = Wildmat::parse_argument(pattern) else {
        return;
    };
    let matches = wildmat.matches(text);
    assert!(matches || !wildmat.matches_all());
    assert!(!matches || text.starts_with(wildmat.prefix()));
    if let Ok(config) = Wildmat::parse(wildmat.as_str()) {
        let _ = config.verdict(text);
    }
}
