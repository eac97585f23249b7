//! Mail folders: one message behind the other, plain or packed as batches are.
//!
//! Read in pieces: it takes no more memory than its largest message.

use std::io::{self, Read};

use anyhow::{Context as _, Result};
use newsreel_wire::date::print_rfc5322;
use newsreel_wire::mbox::{MboxReader, MboxStep, Quoting, came, unquote};

use super::Takes;
use crate::batches::unpack::unpack;
use crate::input::Unread;
use crate::posting;

/// So much is read at once.
const READ_OCTETS: u64 = 256 << 10;

/// Hands over all messages of a folder.
pub(crate) fn take(input: &mut dyn Read, quoting: Quoting, taker: &mut dyn Takes) -> Result<()> {
    let mut found = unpack(input).context("cannot read it")?;
    let mut reader = MboxReader::new(posting::ARTICLE_OCTETS_MAX);
    let (mut buf, mut start, mut at_end) = (Vec::new(), 0, false);
    let (mut message, mut unread) = (Vec::new(), None);
    loop {
        let rest = buf.get(start..).unwrap_or_default();
        let used = match reader.next(rest, at_end) {
            MboxStep::End { .. } => return Ok(()),
            MboxStep::Incomplete { used } => {
                start += used;
                if let Some(error) = unread {
                    return Err(error);
                }
                // At the end something is passed over, or the end is there.
                if !at_end {
                    taker.flush();
                    buf.drain(..start);
                    start = 0;
                    // What was read up to a bad sector is taken first.
                    match more(&mut *found.reader, found.was_packed, &mut buf, taker) {
                        Ok(more) => at_end = !more,
                        Err(error) => unread = Some(error),
                    }
                }
                continue;
            }
            MboxStep::Message { body, used } => {
                message.clear();
                let line = rest.get(..body.start).unwrap_or_default();
                unquote(rest.get(body).unwrap_or_default(), quoting, &mut message);
                complete(line, &mut message);
                taker.article(&message)?;
                used
            }
            MboxStep::Damaged { at, why, used } => {
                let damages = taker.damages();
                damages.add(Some(at), &why.to_string());
                damages.keep(rest.get(..used).unwrap_or_default())?;
                used
            }
        };
        start += used;
    }
}

/// Puts in front what messages in folders may lack and articles may not: Path, as nobody relayed it; Date, as the `From ` line has it.
fn complete(from_line: &[u8], message: &mut Vec<u8>) {
    let lines = message.split(|octet| *octet == b'\n');
    let header = lines.take_while(|line| !line.trim_ascii_end().is_empty());
    let has = |field: &[u8]| {
        let mut lines = header.clone();
        let name = |line: &[u8]| {
            line.get(..field.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(field))
        };
        lines.any(name)
    };
    // Without one it is no article, and stays as it is.
    if !has(b"Message-ID:") {
        return;
    }
    let (path, date) = (has(b"Path:"), has(b"Date:"));
    let is_crlf = header
        .clone()
        .next()
        .is_some_and(|line| line.ends_with(b"\r"));
    let end = if is_crlf { "\r\n" } else { "\n" };
    let mut added = Vec::new();
    if !path {
        added.extend_from_slice(b"Path: not-for-mail");
        added.extend_from_slice(end.as_bytes());
    }
    if let (false, Some(came)) = (date, came(from_line)) {
        added.extend_from_slice(b"Date: ");
        print_rfc5322(came, &mut added);
        added.extend_from_slice(end.as_bytes());
    }
    message.splice(..0, added);
}

/// Reads some more; `false`: there is no more.
fn more(
    reader: &mut dyn Read,
    was_packed: bool,
    buf: &mut Vec<u8>,
    taker: &mut dyn Takes,
) -> Result<bool> {
    match read(reader, buf) {
        Ok(more) => Ok(more),
        Err(error) if was_packed && !Unread::is(&error) => {
            let why = format!("it cannot be unpacked: {error}");
            taker.damages().add(None, &why);
            Ok(false)
        }
        Err(error) => Err(error).context("cannot read it"),
    }
}

fn read(reader: &mut dyn Read, buf: &mut Vec<u8>) -> io::Result<bool> {
    Ok(reader.take(READ_OCTETS).read_to_end(buf)? > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::batches::damages::Damages;
    use crate::imports::Counts;
    use crate::input::tests::ends_unread;

    fn completed(message: &str) -> String {
        let mut message = message.as_bytes().to_vec();
        complete(b"From a Thu Nov 26 09:41:07 2026\n", &mut message);
        String::from_utf8(message).unwrap()
    }

    /// Messages in front of what could not be read were lost with it, and it counted as damage.
    #[test]
    fn what_stands_in_front_of_a_bad_sector_is_taken() {
        let messages: String = (0..3)
            .map(|n| format!("From x\nMessage-ID: <{n}@x.example>\n\ntext\n\n"))
            .collect();
        let mut damages = Damages::named();
        let mut counts = Counts {
            articles: 0,
            rejected: BTreeMap::new(),
            damages: &mut damages,
        };
        let mut input = ends_unread(Path::new("bad"), messages.as_bytes());
        let error = take(&mut input, Quoting::None, &mut counts).unwrap_err();
        assert_eq!(
            Unread::of(&error).unwrap().to_string(),
            "cannot read bad: Input/output error (os error 5)"
        );
        // Whether the last one goes on behind that nobody knows.
        assert_eq!(counts.articles, 2);
        assert!(!damages.said().contains("damaged"), "{}", damages.said());
    }

    #[test]
    fn what_a_folder_leaves_out_is_put_in_front() {
        let bare = "Message-ID: <1@x>\n\nPath: a\nDate: b\n";
        let front = "Path: not-for-mail\nDate: Thu, 26 Nov 2026 09:41:07 +0000\n";
        assert_eq!(completed(bare), format!("{front}{bare}"));
        let crlf = |text: &str| text.replace('\n', "\r\n");
        assert_eq!(completed(&crlf(bare)), crlf(front) + &crlf(bare));
        for whole in [
            "path: a\ndate: b\nMESSAGE-ID: <1@x>\n\nc",
            "no article\n",
            "",
        ] {
            assert_eq!(completed(whole), whole);
        }
        let no_date = "From: a\nPath: b\nMessage-ID: <1@x>\n\nc";
        assert!(completed(no_date).starts_with("Date: Thu, 26"));
        let mut message = no_date.as_bytes().to_vec();
        complete(b"From -42\n", &mut message);
        assert_eq!(message, no_date.as_bytes());
    }
}
