//! The record of a message about groups that was heeded.
//!
//! As all records it says facts only, and decodes what is hostile.

use newsreel_wire::{Sequence, UnixTime};

use super::{Cursor, kind, put_len};
use crate::control::groups::Scope;
use crate::control::heeded::List;
use crate::control::keyring::Signer;
use crate::error::Error;

/// A message about groups that was heeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeededRecord {
    /// Where the message stands in the log.
    pub(crate) at: Sequence,
    /// Its Date, but no later than it came.
    pub(crate) date: UnixTime,
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

/// Octets of the payload that all have, with the record's entry in the frame.
const OCTETS: usize = 8 + 8 + 1 + 32;

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
                let named = list.scope.named.iter().map(|(name, _)| 1 + text(name));
                let tops = list.scope.tops.iter().map(text);
                let names = list.signer.iter().flat_map(|signer| &signer.names);
                let fingerprint = list.signer.as_ref();
                let fingerprint = fingerprint.map_or(0, |it| 4 + it.fingerprint().len());
                let texts: usize = named.chain(tops).chain(names.map(text)).sum();
                OCTETS + 8 + text(&list.sender) + fingerprint + 2 + 2 + texts
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
        let list = match &self.said {
            Said::OfGroup(name) => {
                out.push(0);
                return put(out, name);
            }
            Said::List(list) => list,
        };
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(
            IS_LIST
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
        put_len(out, list.scope.named.len());
        for (name, is_in) in &list.scope.named {
            out.push(u8::from(*is_in));
            put(out, name);
        }
        put_len(out, list.scope.tops.len());
        for top in &list.scope.tops {
            put(out, top);
        }
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::HEEDED, payload);
        let at = Sequence(cursor.u64()?);
        let date = UnixTime(cursor.u64()?);
        let [flags] = cursor.array()?;
        if flags & IS_LIST == 0 {
            let said = Said::OfGroup(cursor.text()?.to_owned());
            return Ok(Self { at, date, said });
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
        let mut named = Vec::new();
        for _ in 0..cursor.u16()? {
            let [is_in] = cursor.array()?;
            named.push((cursor.text()?.to_owned(), is_in != 0));
        }
        let tops = cursor.texts()?;
        let said = Said::List(List {
            serial,
            scope: Scope { named, tops },
            sender,
            signer,
            is_approved: flags & IS_APPROVED != 0,
        });
        Ok(Self { at, date, said })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_heeded_message_round_trips() {
        let scope = |named: &[(&str, bool)], tops: &[&str]| Scope {
            named: named.iter().map(|it| (it.0.to_owned(), it.1)).collect(),
            tops: tops.iter().map(|it| (*it).to_owned()).collect(),
        };
        let signer = Signer::new(vec!["a".to_owned(), "b c".to_owned()], "AB12".to_owned());
        let list = List {
            serial: Some(u64::MAX),
            scope: scope(&[("de", true), ("de.alt", false)], &[]),
            sender: "a@b.example".to_owned(),
            signer: Some(signer),
            is_approved: false,
        };
        let plain = List {
            serial: None,
            scope: scope(&[], &["alt", "de"]),
            sender: String::new(),
            signer: None,
            is_approved: true,
        };
        let group = Said::OfGroup("misc.test".to_owned());
        for said in [group, Said::List(list), Said::List(plain)] {
            let (at, date) = (Sequence(77), UnixTime(5));
            let record = HeededRecord { at, date, said };
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
