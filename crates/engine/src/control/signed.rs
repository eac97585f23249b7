//! Signatures of control messages as pgpcontrol's `signcontrol` makes them: the field X-PGP-Sig, over some header fields and
//! the body.
//!
//! What a message does must follow from what is signed, so a signature that leaves out a field on which that depends is none.
//! The text is that of INN's `pgpverify`: the names, the fields, an empty line, the body, without blanks at the ends of lines.

use newsreel_openpgp::{Signature, signature_block};
use newsreel_wire::article::Headers;

use super::groups::plain_body;

/// The field.
const FIELD: &[u8] = b"X-PGP-Sig";

/// Fields that are signed or nothing is: what is asked for, by whom, and what tells it from an older message.
const NEEDED: [&str; 4] = ["Control", "From", "Message-ID", "Date"];

/// Fields that can be signed; real messages have six or seven.
pub const SIGNED_FIELDS_MAX: usize = 64;

/// What a message brings to be verified.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) signature: Signature,
    /// What is signed, with LF at the ends of lines.
    pub(crate) text: Vec<u8>,
}

/// Whether somebody says to have signed it.
pub(crate) fn is_signed(headers: &Headers<'_>) -> bool {
    headers.find(FIELD).is_some()
}

/// Reads the signature; what is wrong with it.
pub(crate) fn read(headers: &Headers<'_>) -> Result<Signed, String> {
    let content = only(headers, FIELD)?.ok_or("it is not signed")?;
    let text = String::from_utf8_lossy(content);
    let mut words = text.split_ascii_whitespace();
    let (Some(_version), Some(names)) = (words.next(), words.next()) else {
        return Err("its X-PGP-Sig has not its parts".to_owned());
    };
    let names: Vec<&str> = names.split(',').collect();
    if names.len() > SIGNED_FIELDS_MAX {
        return Err("its X-PGP-Sig names too many fields".to_owned());
    }
    for needed in NEEDED {
        if !names.iter().any(|name| name.eq_ignore_ascii_case(needed)) {
            return Err(format!("its {needed} is not signed"));
        }
    }
    let block: Vec<&str> = words.collect();
    let said = |why: newsreel_openpgp::Error| format!("its X-PGP-Sig: {why}");
    let block = signature_block(block.join("\n").as_bytes()).map_err(said)?;
    let signature = Signature::read(&block).map_err(said)?;
    let mut signed = format!("X-Signed-Headers: {}\n", names.join(",")).into_bytes();
    for name in names {
        signed.extend_from_slice(name.as_bytes());
        signed.extend_from_slice(b": ");
        signed.extend_from_slice(only(headers, name.as_bytes())?.unwrap_or_default());
        signed.push(b'\n');
    }
    signed.push(b'\n');
    signed.extend_from_slice(&plain_body(headers));
    let text = without_blanks_at_ends(&signed);
    Ok(Signed { signature, text })
}

/// The content of a field that must not be there twice.
fn only<'a>(headers: &Headers<'a>, name: &[u8]) -> Result<Option<&'a [u8]>, String> {
    let mut found = headers
        .fields()
        .filter(|field| field.name.eq_ignore_ascii_case(name));
    let first = found.next();
    match found.next() {
        Some(_) => Err(format!("it has {} twice", String::from_utf8_lossy(name))),
        None => Ok(first.map(|field| field.content)),
    }
}

/// Lines with LF at their ends for CRLF, and no blanks before it.
fn without_blanks_at_ends(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        let (line, end) = match line {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => (line, &b"\n"[..]),
            line => (line, &b""[..]),
        };
        let blanks = line.iter().rev();
        let blanks = blanks.take_while(|octet| matches!(octet, b' ' | b'\t'));
        let kept = match end {
            [] => line.len(),
            _ => line.len() - blanks.count(),
        };
        made.extend_from_slice(line.get(..kept).unwrap_or_default());
        made.extend_from_slice(end);
    }
    made
}
