//! Clones of articles: the same ones again under message-ids of their own, as the paper on the toaster made them of a captured feed.
//!
//! A delimiter and the clone's number go behind the host of a message-id, in Message-ID, in Supersedes, and where a cancel names its
//! target; nothing else of an article changes. The octets that a batch counts are those of the clone, since batches are written
//! from articles.
//! Invariant: which original an id is a clone of follows from the id alone.

/// Between host and number: a host has none, and the grammar of message-ids lets it stand there.
const DELIMITER: u8 = b'=';

/// Which articles are originals, and how often they come again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clones {
    /// Index of the first original.
    pub(super) first: u64,
    /// Index after the last one.
    pub(super) end: u64,
    /// How many clones there are of each.
    pub(super) clones: u64,
}

impl Clones {
    /// Index after the last clone.
    pub(super) const fn all_end(&self) -> u64 {
        let each = self.end - self.first;
        self.first
            .saturating_add(each.saturating_mul(self.clones.saturating_add(1)))
    }

    /// The original of article `n`, and the number of its clone: 0 for the original itself, and for what is none of them.
    pub(super) const fn origin(&self, n: u64) -> (u64, u64) {
        if n < self.end || n >= self.all_end() {
            return (n, 0);
        }
        let each = self.end - self.first;
        let behind = n - self.first;
        (self.first + behind % each, behind / each)
    }

    /// The index of a clone of an original; none where there is no such clone.
    pub(super) const fn index(&self, original: u64, clone: u64) -> Option<u64> {
        if original < self.first || original >= self.end || clone > self.clones {
            return None;
        }
        Some(original + clone * (self.end - self.first))
    }
}

/// Appends the message-id of a clone of the article that has this one.
pub(super) fn write_id(id: &[u8], clone: u64, out: &mut Vec<u8>) {
    // A host may be an address in brackets: what is said of it stays within them.
    let host_end = id.len() - tail_len(id);
    let (host, tail) = id.split_at(host_end);
    out.extend_from_slice(host);
    out.push(DELIMITER);
    out.extend_from_slice(itoa::Buffer::new().format(clone).as_bytes());
    out.extend_from_slice(tail);
}

/// The message-id that this one is a clone's of, and its number.
pub(super) fn original_of(id: &[u8]) -> Option<(Vec<u8>, u64)> {
    let (text, tail) = id.split_at(id.len() - tail_len(id));
    let at = memchr::memrchr(DELIMITER, text)?;
    let (host, number) = text.split_at(at);
    let number = std::str::from_utf8(number.get(1..)?).ok()?;
    let clone = number.parse().ok().filter(|&clone: &u64| clone > 0)?;
    // One number is written one way.
    (clone.to_string() == number).then(|| ([host, tail].concat(), clone))
}

/// Octets of what closes a message-id.
fn tail_len(id: &[u8]) -> usize {
    [&b"]>"[..], b">"]
        .into_iter()
        .find(|tail| id.ends_with(tail))
        .map_or(0, <[u8]>::len)
}

/// Appends the header block of a clone.
pub(super) fn write_head(head: &[u8], clone: u64, out: &mut Vec<u8>) {
    let mut rest = head;
    while !rest.is_empty() {
        let (field, behind) = rest.split_at(field_len(rest));
        rest = behind;
        match ids_of(field) {
            Ids::Own(from, to) => {
                out.extend_from_slice(field.get(..from).unwrap_or_default());
                write_id(field.get(from..to).unwrap_or_default(), clone, out);
                out.extend_from_slice(field.get(to..).unwrap_or_default());
            }
            Ids::Targets => write_targets(field, clone, out),
            Ids::Untouched => out.extend_from_slice(field),
        }
    }
}

/// What of a header field changes.
enum Ids {
    /// What lies from here to there is the article's own id.
    Own(usize, usize),
    /// All ids in it.
    Targets,
    /// Nothing.
    Untouched,
}

fn ids_of(field: &[u8]) -> Ids {
    let Some(colon) = memchr::memchr(b':', field) else {
        return Ids::Untouched;
    };
    let (name, value) = field.split_at(colon + 1);
    let begins_with = |words: &[&str]| {
        let mut said = value
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        words.iter().all(|word| {
            said.next()
                .is_some_and(|said| said.eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    if is(b"message-id:") {
        // It may stand on a line of its own.
        let text = value.trim_ascii_start();
        let from = field.len() - text.len();
        return Ids::Own(from, from + first_line(text).len());
    }
    let cancels = (is(b"control:") || is(b"also-control:")) && begins_with(&["cancel"]);
    let says_so = is(b"subject:") && begins_with(&["cmsg", "cancel"]);
    match is(b"supersedes:") || cancels || says_so {
        true => Ids::Targets,
        false => Ids::Untouched,
    }
}

/// The first line of a field's content that has been trimmed in front.
pub(super) fn first_line(content: &[u8]) -> &[u8] {
    let line = memchr::memchr(b'\n', content).unwrap_or(content.len());
    content.get(..line).unwrap_or_default().trim_ascii_end()
}

/// Octets of the field that begins here, with the lines that go on with it; the empty line is one, too.
pub(super) fn field_len(head: &[u8]) -> usize {
    for at in memchr::memchr_iter(b'\n', head) {
        if !matches!(head.get(at + 1), Some(b' ' | b'\t')) {
            return at + 1;
        }
    }
    head.len()
}

fn write_targets(field: &[u8], clone: u64, out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(from) = memchr::memchr(b'<', rest) {
        let Some(len) = memchr::memchr(b'>', rest.get(from..).unwrap_or_default()) else {
            break;
        };
        let to = from + len + 1;
        out.extend_from_slice(rest.get(..from).unwrap_or_default());
        write_id(rest.get(from..to).unwrap_or_default(), clone, out);
        rest = rest.get(to..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: &str) {
        let mut out = Vec::new();
        write_head(head.as_bytes(), 2, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn an_article_gets_another_id_and_names_those_of_its_clone() {
        check(
            "Path: a!b\r\nMESSAGE-ID:  <1@x.example> \r\nReferences: <0@x.example>\r\nSupersedes:\r\n <0@x.example>\r\n\r\n",
            "Path: a!b\r\nMESSAGE-ID:  <1@x.example=2> \r\nReferences: <0@x.example>\r\nSupersedes:\r\n <0@x.example=2>\r\n\r\n",
        );
        check(
            "Subject: cmsg cancel <9@x>\r\nControl: cancel\r\n\t<9@x>\r\nMessage-ID: <1@[192.0.2.1]>\r\n\r\n",
            "Subject: cmsg cancel <9@x=2>\r\nControl: cancel\r\n\t<9@x=2>\r\nMessage-ID: <1@[192.0.2.1=2]>\r\n\r\n",
        );
    }

    /// An id on a line of its own stayed what it was, so that the clone was the original once more.
    #[test]
    fn an_id_on_a_line_of_its_own_becomes_another() {
        check(
            "Message-ID:\r\n <1@x.example>\r\nSubject: s\r\n\r\n",
            "Message-ID:\r\n <1@x.example=2>\r\nSubject: s\r\n\r\n",
        );
        check(
            "Message-ID: \r\n\t <1@x.example> \r\n\r\n",
            "Message-ID: \r\n\t <1@x.example=2> \r\n\r\n",
        );
    }

    #[test]
    fn what_is_no_target_stays() {
        let head = "Subject: cancel <9@x>\r\nControl: newgroup a.b <c@d>\r\nIn-Reply-To: <9@x>\r\nX: <9@x>\r\nSupersedes: <9@x\r\nodd\r\n";
        check(head, head);
    }

    #[test]
    fn an_original_is_known_by_its_clone() {
        for id in [
            "<1@x.example>",
            "<1@[192.0.2.1]>",
            "<a=b@c=3>",
            "odd",
            "<=1>",
        ] {
            let mut clone = Vec::new();
            write_id(id.as_bytes(), 12, &mut clone);
            assert_eq!(original_of(&clone), Some((id.as_bytes().to_vec(), 12)));
        }
        for id in [
            "<1@x.example>",
            "<a=b@c>",
            "<1@x=0>",
            "<1@x=01>",
            "<1@x=+1>",
            "",
        ] {
            assert_eq!(original_of(id.as_bytes()), None, "{id}");
        }
    }

    #[test]
    fn indices_go_round() {
        let clones = Clones {
            first: 5,
            end: 8,
            clones: 2,
        };
        assert_eq!(clones.all_end(), 14);
        let origins: Vec<_> = (4..15).map(|n| clones.origin(n)).collect();
        let each = [
            (5, 0),
            (6, 0),
            (7, 0),
            (5, 1),
            (6, 1),
            (7, 1),
            (5, 2),
            (6, 2),
            (7, 2),
        ];
        let around = [(4, 0)].into_iter().chain(each).chain([(14, 0)]);
        assert_eq!(origins, around.collect::<Vec<_>>());
        for (n, (original, clone)) in (5..14).zip(each) {
            assert_eq!(clones.index(original, clone), Some(n));
        }
        assert_eq!((clones.index(8, 0), clones.index(5, 3)), (None, None));
    }
}
