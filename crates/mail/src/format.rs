//! The file of one waiting mail; see `docs/formats/mail.md`.

use newsreel_service::OfferedId;
use newsreel_service::posting::Mail;
use newsreel_wire::MessageId;
use thiserror::Error as ThisError;

const MAGIC: &[u8; 8] = b"NRMAIL\0\0";
const VERSION: u32 = 1;
/// Magic, version, checksum of what follows.
const FRONT_OCTETS: usize = 16;
/// Lengths of id, sender and recipient, two zero octets, length of the text.
const LENGTHS_OCTETS: usize = 12;

/// A file is no longer than this, octets: the largest article and its envelope.
pub const FILE_OCTETS_MAX: usize = 1 << 30;

/// Why a file holds no mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ThisError)]
pub(crate) enum FormatError {
    #[error("it does not begin as a waiting mail does")]
    Magic,
    #[error("it is of version {0}, which this program does not know")]
    Version(u32),
    #[error("its checksum is wrong")]
    Checksum,
    #[error("its parts are not as long as it says")]
    Lengths,
    #[error("its message-id or an address is malformed")]
    Envelope,
}

/// The octets of a mail's file; `None` where a part is too long for one.
pub(crate) fn encode(mail: &Mail) -> Option<Vec<u8>> {
    let parts = [
        mail.id.as_bytes(),
        mail.sender.as_bytes(),
        mail.to.as_bytes(),
    ];
    let mut out = Vec::with_capacity(FRONT_OCTETS + LENGTHS_OCTETS + 512 + mail.text.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for part in parts {
        out.extend_from_slice(&u16::try_from(part.len()).ok()?.to_le_bytes());
    }
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&u32::try_from(mail.text.len()).ok()?.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&mail.text);
    Some(sealed(&out))
}

/// The same octets with magic, version and the right checksum in front.
pub(crate) fn sealed(octets: &[u8]) -> Vec<u8> {
    let rest = octets.get(FRONT_OCTETS..).unwrap_or_default();
    let mut out = Vec::with_capacity(FRONT_OCTETS + rest.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(rest).to_le_bytes());
    out.extend_from_slice(rest);
    out
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    let four = octets.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}

fn u16_at(octets: &[u8], at: usize) -> Option<usize> {
    let two = octets.get(at..)?.first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*two)))
}

/// Reads a mail's file.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode(octets: &[u8]) -> Result<Mail, FormatError> {
    if !octets.starts_with(MAGIC) {
        return Err(FormatError::Magic);
    }
    match u32_at(octets, 8) {
        Some(VERSION) => {}
        Some(other) => return Err(FormatError::Version(other)),
        None => return Err(FormatError::Lengths),
    }
    let rest = octets.get(FRONT_OCTETS..).ok_or(FormatError::Lengths)?;
    if u32_at(octets, 12) != Some(crc32c::crc32c(rest)) {
        return Err(FormatError::Checksum);
    }
    parts(rest)
        .ok_or(FormatError::Lengths)?
        .ok_or(FormatError::Envelope)
}

/// `None`: lengths that do not add up; `Some(None)`: an envelope that is none.
fn parts(rest: &[u8]) -> Option<Option<Mail>> {
    let lens = [u16_at(rest, 0)?, u16_at(rest, 2)?, u16_at(rest, 4)?];
    let text_len = usize::try_from(u32_at(rest, 8)?).ok()?;
    let all = LENGTHS_OCTETS + lens.iter().sum::<usize>() + text_len;
    if u16_at(rest, 6)? != 0 || rest.len() != all {
        return None;
    }
    let mut after = rest.get(LENGTHS_OCTETS..)?;
    let mut next = |len| {
        let (part, behind) = after.split_at_checked(len)?;
        after = behind;
        Some(part)
    };
    let (id, sender, to) = (next(lens[0])?, next(lens[1])?, next(lens[2])?);
    let address = |octets: &[u8]| {
        let is_one = newsreel_wire::article::is_address(octets);
        let text = String::from_utf8(octets.to_vec()).ok();
        text.filter(|text| is_one && !text.starts_with('-'))
    };
    let mail = || {
        Some(Mail {
            id: OfferedId::from(MessageId::parse(id).ok()?),
            sender: address(sender)?,
            to: address(to)?,
            text: after.to_vec(),
        })
    };
    Some(mail())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn mail(id: &str) -> Mail {
        Mail {
            id: OfferedId::from(MessageId::parse(id.as_bytes()).unwrap()),
            sender: "usenet@a.example".to_owned(),
            to: "mod@m.example".to_owned(),
            text: b"To: mod@m.example\r\nSubject: s\r\n\r\n.\r\n\xff\r\n".to_vec(),
        }
    }

    #[test]
    fn a_mail_comes_back_and_damage_is_told() {
        let octets = encode(&mail("<1@a>")).unwrap();
        assert_eq!(decode(&octets), Ok(mail("<1@a>")));
        let changed = |at: usize, to: u8| {
            let mut other = octets.clone();
            other[at] = to;
            decode(&other)
        };
        assert_eq!(changed(0, b'X'), Err(FormatError::Magic));
        assert_eq!(changed(8, 2), Err(FormatError::Version(2)));
        assert_eq!(changed(13, !octets[13]), Err(FormatError::Checksum));
        for (at, octet) in octets.iter().enumerate().skip(FRONT_OCTETS) {
            assert_eq!(changed(at, !octet), Err(FormatError::Checksum), "{at}");
        }
        for len in 0..octets.len() {
            assert!(decode(&octets[..len]).is_err(), "{len}");
            assert!(decode(&sealed(&octets[..len])).is_err(), "{len}");
        }
        let mut other = mail("<1@a>");
        other.to = "-oX@a".to_owned();
        assert_eq!(decode(&encode(&other).unwrap()), Err(FormatError::Envelope));
        other.to = "x".repeat(70_000);
        assert_eq!(encode(&other), None);
    }

    /// A file that was written by other means than ours; those of version 1 are read for ever.
    #[test]
    fn files_of_version_1_are_read() {
        let one = include_bytes!("../../../fuzz/corpus/waiting_mail/one");
        assert_eq!(decode(one), Ok(mail("<1@a>")));
        assert_eq!(encode(&mail("<1@a>")).as_deref(), Some(&one[..]));
    }

    proptest! {
        #[test]
        fn prop_any_octets_are_refused_or_written_the_same(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = crate::fuzz::decode(&octets);
            let _ = crate::fuzz::decode_made(&octets);
        }
    }
}
