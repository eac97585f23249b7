//! Mail folders: one message behind the other, plain or packed as batches are.
//!
//! Read in pieces: it takes no more memory than its largest message.

use std::io::{self, Read};

use anyhow::{Context as _, Result};
use newsreel_wire::mbox::{MboxReader, MboxStep, Quoting, unquote};

use super::Takes;
use crate::batches::unpack::unpack;
use crate::posting;

/// So much is read at once.
const READ_OCTETS: u64 = 256 << 10;

/// Hands over all messages of a folder.
pub(crate) fn take(input: &mut dyn Read, quoting: Quoting, taker: &mut dyn Takes) -> Result<()> {
    let mut found = unpack(input).context("cannot read it")?;
    let mut reader = MboxReader::new(posting::ARTICLE_OCTETS_MAX);
    let (mut buf, mut start, mut at_end) = (Vec::new(), 0, false);
    let mut message = Vec::new();
    loop {
        let rest = buf.get(start..).unwrap_or_default();
        let used = match reader.next(rest, at_end) {
            MboxStep::End { .. } => return Ok(()),
            MboxStep::Incomplete { used } => {
                start += used;
                // At the end something is passed over, or the end is there.
                if !at_end {
                    taker.flush();
                    buf.drain(..start);
                    start = 0;
                    at_end = !more(&mut *found.reader, found.was_packed, &mut buf, taker)?;
                }
                continue;
            }
            MboxStep::Message { body, used } => {
                message.clear();
                unquote(rest.get(body).unwrap_or_default(), quoting, &mut message);
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

/// Reads some more; `false`: there is no more.
fn more(
    reader: &mut dyn Read,
    was_packed: bool,
    buf: &mut Vec<u8>,
    taker: &mut dyn Takes,
) -> Result<bool> {
    match read(reader, buf) {
        Ok(more) => Ok(more),
        Err(error) if was_packed => {
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
