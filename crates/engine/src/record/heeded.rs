//! The record of a message about groups that was heeded.
//!
//! As all records it says facts only, and decodes what is hostile.

use newsreel_wire::{Sequence, UnixTime};

use super::kind;
use super::octets::{Cursor, put_len};
use crate::control::heeded::List;
use crate::control::keyring::Signer;
use crate::control::meaning::Scope;
use crate::control::rules::Says;
use crate::control::shares::Holder;
use crate::error::Error;

/// A message about groups that was heeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeededRecord {
    /// Where the message stands in the log.
    pub(crate) at: Sequence,
    /// Its Date, but no later than it came.
    pub(crate) date: UnixTime,
    /// Whose share of the room it takes.
    pub(crate) holder: Holder,
    pub(crate) said: Said,
}

/// What it says something of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// A newgroup or rmgroup: this group.
    OfGroup(String),
    /// A checkgroups.
    List(List),
}

const IS_LIST: u8 = 1;
const HAS_SERIAL: u8 = 2;
const IS_SIGNED: u8 = 4;
const IS_APPROVED: u8 = 8;
const HAS_HOLDER: u8 = 16;
const HAS_SAYS: u8 = 32;

/// Octets of the payload that all have, with the record's entry in the frame.
const OCTETS: usize = 8 + 8 + 1 + Holder::OCTETS + 32;

impl HeededRecord {
    /// Octets in the log of one that is about one group.
    pub(crate) const fn octets_of_group(name: &str) -> usize {
        OCTETS + 2 + name.len()
    }

    /// Octets in the log.
    pub(crate) fn octets(&self) -> usize {
        let text = |text: &String| 2 + text.len();
        match &self.said {
            Said::OfGroup(name) => Self::octets_of_group(name),
            Said::List(list) => {
                let named = list.scope.named().iter().map(|(name, _)| 1 + text(name));
                let tops = list.scope.tops().iter().map(text);
                let says = list.says.iter().flat_map(Says::patterns);
                let says: usize = says.map(|(groups, _)| 1 + 2 + groups.len()).sum();
                let names = list.signer.iter().flat_map(|signer| &signer.names);
                let fingerprint = list.signer.as_ref();
                let fingerprint = fingerprint.map_or(0, |it| 4 + it.fingerprint().len());
                let texts: usize = named.chain(tops).chain(names.map(text)).sum();
                OCTETS + 8 + text(&list.sender) + fingerprint + 2 + 2 + texts + 2 + says
            }
        }
    }

    /// Writes the payload; its texts must be shorter than 64 KiB.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let put = |out: &mut Vec<u8>, text: &str| {
            put_len(out, text.len());
            out.extend_from_slice(text.as_bytes());
        };
        out.extend_from_slice(&self.at.0.to_le_bytes());
        out.extend_from_slice(&self.date.0.to_le_bytes());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let has_holder = flag(self.holder != Holder::default(), HAS_HOLDER);
        let put_holder = |out: &mut Vec<u8>| {
            if has_holder != 0 {
                out.extend_from_slice(&self.holder.0.to_le_bytes());
            }
        };
        let list = match &self.said {
            Said::OfGroup(name) => {
                out.push(has_holder);
                put(out, name);
                return put_holder(out);
            }
            Said::List(list) => list,
        };
        out.push(
            IS_LIST
                | has_holder
                | flag(list.says.is_some(), HAS_SAYS)
                | flag(list.serial.is_some(), HAS_SERIAL)
                | flag(list.signer.is_some(), IS_SIGNED)
                | flag(list.is_approved, IS_APPROVED),
        );
        if let Some(serial) = list.serial {
            out.extend_from_slice(&serial.to_le_bytes());
        }
        put(out, &list.sender);
        if let Some(signer) = &list.signer {
            put(out, signer.fingerprint());
            put_len(out, signer.names.len());
            for name in &signer.names {
                put(out, name);
            }
        }
        put_len(out, list.scope.named().len());
        for (name, is_in) in list.scope.named() {
            out.push(u8::from(*is_in));
            put(out, name);
        }
        put_len(out, list.scope.tops().len());
        for top in list.scope.tops() {
            put(out, top);
        }
        if let Some(says) = &list.says {
            put_len(out, says.patterns().len());
            for (groups, is_done) in says.patterns() {
                out.push(u8::from(is_done));
                put(out, groups);
            }
        }
        put_holder(out);
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::HEEDED, payload);
        let at = Sequence(cursor.u64()?);
        let date = UnixTime(cursor.u64()?);
        let [flags] = cursor.array()?;
        let holder = |cursor: &mut Cursor<'_>| match flags & HAS_HOLDER {
            0 => Ok(Holder::default()),
            _ => cursor.u64().map(Holder),
        };
        if flags & IS_LIST == 0 {
            let said = Said::OfGroup(cursor.text()?.to_owned());
            return Ok(Self {
                at,
                date,
                holder: holder(&mut cursor)?,
                said,
            });
        }
        let serial = match flags & HAS_SERIAL {
            0 => None,
            _ => Some(cursor.u64()?),
        };
        let sender = cursor.text()?.to_owned();
        let signer = match flags & IS_SIGNED {
            0 => None,
            _ => {
                let fingerprint = cursor.text()?.to_owned();
                let names = cursor.texts()?;
                Some(Signer::new(names, fingerprint))
            }
        };
        let named = marked_texts(&mut cursor)?;
        let tops = cursor.texts()?;
        let scope = Scope::new(named, tops.iter().map(String::as_str));
        let says = match flags & HAS_SAYS {
            0 => None,
            _ => {
                let says = Says::parse(&marked_texts(&mut cursor)?);
                Some(says.ok_or_else(|| cursor.damaged("a pattern in it is malformed"))?)
            }
        };
        let said = Said::List(List {
            serial,
            scope,
            sender,
            signer,
            is_approved: flags & IS_APPROVED != 0,
            says,
        });
        Ok(Self {
            at,
            date,
            holder: holder(&mut cursor)?,
            said,
        })
    }
}

/// Writes that what was heeded of a hierarchy before is forgotten.
pub(crate) fn encode_forgotten(hierarchy: &str, out: &mut Vec<u8>) {
    put_len(out, hierarchy.len());
    out.extend_from_slice(hierarchy.as_bytes());
}

/// The hierarchy of which what was heeded before is forgotten.
pub(crate) fn decode_forgotten(sequence: Sequence, payload: &[u8]) -> Result<&str, Error> {
    Cursor::new(sequence, kind::FORGOTTEN, payload).text()
}

/// Texts with an octet before each, and their count in front.
fn marked_texts(cursor: &mut Cursor<'_>) -> Result<Vec<(String, bool)>, Error> {
    let mut texts = Vec::new();
    for _ in 0..cursor.u16()? {
        let [mark] = cursor.array()?;
        texts.push((cursor.text()?.to_owned(), mark != 0));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<HeededRecord> {
        let scope = |named: &[(&str, bool)], tops: &[&str]| {
            let named = named.iter().map(|it| (it.0.to_owned(), it.1)).collect();
            Scope::new(named, tops.iter().copied())
        };
        let signer = Signer::new(vec!["a".to_owned(), "b c".to_owned()], "AB12".to_owned());
        let says = [
            ("de.*,fr.x".to_owned(), true),
            ("de.alt.*".to_owned(), false),
        ];
        let list = List {
            serial: Some(u64::MAX),
            scope: scope(&[("de", true), ("de.alt", false)], &[]),
            sender: "a@b.example".to_owned(),
            signer: Some(signer),
            is_approved: false,
            says: Says::parse(&says),
        };
        let plain = List {
            serial: None,
            scope: scope(&[], &["alt", "de"]),
            sender: String::new(),
            signer: None,
            is_approved: true,
            says: None,
        };
        let group = Said::OfGroup("misc.test".to_owned());
        let all = [group, Said::List(list), Said::List(plain)];
        let record = |said: Said| HeededRecord {
            at: Sequence(77),
            date: UnixTime(5),
            holder: Holder(0),
            said,
        };
        all.map(record).to_vec()
    }

    #[test]
    fn a_heeded_message_round_trips() {
        for record in records() {
            for holder in [Holder(0), Holder(9 << 32)] {
                let record = HeededRecord {
                    holder,
                    ..record.clone()
                };
                let mut out = Vec::new();
                record.encode(&mut out);
                assert!(out.len() <= record.octets(), "{record:?}");
                assert_eq!(HeededRecord::decode(Sequence(1), &out).unwrap(), record);
                for len in 0..out.len() {
                    assert!(HeededRecord::decode(Sequence(1), &out[..len]).is_err());
                }
            }
        }
    }

    /// Those of before have no share, and do not say of which groups a list was done.
    #[test]
    fn records_of_before_are_read() {
        let of_before = b"\x4d\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0";
        let group = [&of_before[..], b"\0\x09\0misc.test"].concat();
        let read = |octets: &[u8]| HeededRecord::decode(Sequence(1), octets).unwrap();
        assert_eq!(read(&group), records()[0]);
        let plain = [&of_before[..], b"\x09\0\0\0\0\x02\0\x03\0alt\x02\0de"].concat();
        assert_eq!(read(&plain), records()[2]);
    }
}
