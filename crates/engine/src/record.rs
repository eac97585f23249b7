//! The records of the log: what happened, in the order in which it became true.
//!
//! A record says facts only; every view (history, overview, groups) follows from them by
//! [`Applier`](crate::applier::Applier), the same for a live commit and for a replay.  Placement (the local token) is
//! the first part of an article record and separable from the facts behind it.  Decoding treats
//! its input as hostile: a damaged record is an error that says where, never a panic.
//! The byte layout is in `docs/formats/log-records.md`.

mod due;
mod groups;
mod heeded;
mod moves;
mod octets;
mod waiting;

use newsreel_service::cancel_lock::{LockPrint, LockPrints};
use newsreel_wire::article::Content;
use newsreel_wire::{
    ArticleNumber, BufferId, GroupId, IdHash, Position, Sequence, Token, UnixTime,
};
use smallvec::SmallVec;

use crate::control::shares::Holder;
use crate::error::Error;
pub(crate) use due::{DueKind, DueRecord};
pub(crate) use groups::{GroupRecord, GroupRemovedRecord};
pub(crate) use heeded::{HeededRecord, Said, decode_forgotten, encode_forgotten};
pub(crate) use moves::{CopyRecord, MovedRecord, RepackedRecord};
use octets::{Cursor, put_len, put_places};
pub(crate) use waiting::WaitingRecord;

/// The kind octet of each record.  A number, once given, keeps its meaning for ever.
pub(crate) mod kind {
    /// An article was accepted.
    pub(crate) const ARTICLE: u8 = 1;
    /// A region of a cyclic buffer may be overwritten from now on.
    pub(crate) const RESERVED: u8 = 2;
    /// A group was made, or made again.
    pub(crate) const GROUP_MADE: u8 = 3;
    /// A group's status or description was changed.
    pub(crate) const GROUP_CHANGED: u8 = 4;
    /// A group was removed.
    pub(crate) const GROUP_REMOVED: u8 = 5;
    /// The spool was made: its hash key.
    pub(crate) const SPOOL_MADE: u8 = 6;
    /// The engine's own state at a checkpoint.
    pub(crate) const STATE: u8 = 7;
    /// The server stopped cleanly; everything before is durable.
    pub(crate) const STOPPED: u8 = 8;
    /// After an unclean stop without durability: every high mark jumped.
    pub(crate) const JUMPED: u8 = 9;
    /// Nothing happened at this sequence; it stays a hole.
    pub(crate) const HOLE: u8 = 10;
    /// What time it is: the history forgets by this.
    pub(crate) const TIME: u8 = 11;
    /// An article is not offered any more; its id stays known.
    pub(crate) const WITHDRAWN: u8 = 12;
    /// A cancel came before the article it is about.
    pub(crate) const CANCEL_PENDING: u8 = 13;
    /// An article is not offered in some of its groups any more.
    pub(crate) const LEFT: u8 = 14;
    /// When the article of the next record asks to go.
    pub(crate) const EXPIRES: u8 = 15;
    /// What outgoing feeds must know of the article that follows.
    pub(crate) const FEED: u8 = 16;
    /// A copy of an article lies in another set; nobody is led to it yet.
    pub(crate) const COPY: u8 = 17;
    /// An article lies elsewhere from now on.
    pub(crate) const MOVED: u8 = 18;
    /// A pack of the overview was written anew, with the new tokens of articles that were moved.
    pub(crate) const REPACKED: u8 = 19;
    /// A message about groups was heeded.
    pub(crate) const HEEDED: u8 = 20;
    /// A message about groups waits for approval.
    pub(crate) const WAITING: u8 = 21;
    /// What was heeded of a hierarchy before is forgotten.
    pub(crate) const FORGOTTEN: u8 = 22;
    /// Something is to be done behind a message, or was.
    pub(crate) const DUE: u8 = 23;
}

/// Where the article or the copy lies of which a record tells, if it tells of one.
pub(crate) fn token_in(record: &newsreel_journal::Record<'_>) -> Option<Token> {
    let (sequence, payload) = (record.sequence, record.payload);
    match record.kind {
        kind::COPY => Some(CopyRecord::decode(sequence, payload).ok()?.token),
        kind::ARTICLE => Some(ArticleRecord::decode(sequence, payload).ok()?.token),
        _ => None,
    }
}

/// An accepted article, as the log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArticleRecord<'a> {
    /// Where the text lies here.
    pub(crate) token: Token,
    /// The keyed hash of the message-id.
    pub(crate) id_hash: IdHash,
    /// When it arrived.
    pub(crate) arrival: UnixTime,
    /// Octets of the article as served, without dot-stuffing and terminator.
    pub(crate) octets: u32,
    /// The groups it is filed in, with its numbers; none in transit mode.
    pub(crate) groups: SmallVec<[(GroupId, ArticleNumber); 4]>,
    /// The message-id.
    pub(crate) id: &'a [u8],
    /// The content of Path as stored.
    pub(crate) path: &'a [u8],
    /// The overview line behind the number; empty in transit mode.
    pub(crate) line: &'a [u8],
}

impl<'a> ArticleRecord<'a> {
    /// Writes the record's payload; `id`, `path` and `line` must be shorter than 64 KiB.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode_article_head(
            out,
            &self.token,
            &self.id_hash,
            self.arrival,
            self.octets,
            &self.groups,
            (self.id.len(), self.path.len()),
        );
        out.extend_from_slice(self.id);
        out.extend_from_slice(self.path);
        out.extend_from_slice(self.line);
    }

    /// Reads a payload written by [`ArticleRecord::encode`].
    pub(crate) fn decode(sequence: Sequence, payload: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::ARTICLE, payload);
        let token = Token::from_bytes(cursor.array()?);
        let id_hash = IdHash(cursor.array()?);
        let arrival = UnixTime(cursor.u64()?);
        let octets = cursor.u32()?;
        let group_count = cursor.u16()?;
        let id_len = cursor.u16()?;
        let path_len = cursor.u16()?;
        let mut groups = SmallVec::new();
        for _ in 0..group_count {
            groups.push((GroupId(cursor.u32()?), ArticleNumber(cursor.u64()?)));
        }
        let id = cursor.take(usize::from(id_len))?;
        let path = cursor.take(usize::from(path_len))?;
        let line = cursor.rest();
        Ok(Self {
            token,
            id_hash,
            arrival,
            octets,
            groups,
            id,
            path,
            line,
        })
    }
}

/// The fixed part and the groups of an article record, for the sequencer, which writes the texts
/// behind it straight from where they lie.
pub(crate) fn encode_article_head(
    out: &mut Vec<u8>,
    token: &Token,
    id_hash: &IdHash,
    arrival: UnixTime,
    octets: u32,
    groups: &[(GroupId, ArticleNumber)],
    (id_len, path_len): (usize, usize),
) {
    out.extend_from_slice(token.as_bytes());
    out.extend_from_slice(&id_hash.0);
    out.extend_from_slice(&arrival.0.to_le_bytes());
    out.extend_from_slice(&octets.to_le_bytes());
    put_len(out, groups.len());
    put_len(out, id_len);
    put_len(out, path_len);
    for (group, number) in groups {
        out.extend_from_slice(&group.0.to_le_bytes());
        out.extend_from_slice(&number.0.to_le_bytes());
    }
}

/// A region of a buffer that may be overwritten once this record is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReservedRecord {
    /// The buffer.
    pub(crate) buffer: BufferId,
    /// Up to where, in the buffer's present cycle.
    pub(crate) up_to: Position,
}

impl ReservedRecord {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.buffer.0.to_le_bytes());
        out.extend_from_slice(&self.up_to.0.to_le_bytes());
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::RESERVED, payload);
        Ok(Self {
            buffer: BufferId(cursor.u16()?),
            up_to: Position(cursor.u64()?),
        })
    }
}

/// Why an article is not offered any more, though its buffer may still have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Somebody who may asked for it.
    Cancelled = 1,
    /// A rule let it go.
    Expired = 2,
}

impl Reason {
    fn from_octet(octet: u8) -> Option<Self> {
        match octet {
            1 => Some(Self::Cancelled),
            2 => Some(Self::Expired),
            _ => None,
        }
    }
}

/// An article that is withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithdrawnRecord {
    /// Why.
    pub(crate) reason: Reason,
    /// Where it lies.
    pub(crate) token: Token,
    /// The keyed hash of its message-id.
    pub(crate) id_hash: IdHash,
    /// From when on its id is remembered: when it went.
    pub(crate) remembered_from: UnixTime,
    /// Its groups and numbers.
    pub(crate) groups: SmallVec<[(GroupId, ArticleNumber); 4]>,
}

impl WithdrawnRecord {
    /// Octets of the payload apart from the groups, and of each of them.
    pub(crate) const OCTETS: usize = 1 + 24 + 16 + 8 + 2;
    pub(crate) const GROUP_OCTETS: usize = 4 + 8;

    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.reason as u8);
        out.extend_from_slice(self.token.as_bytes());
        out.extend_from_slice(&self.id_hash.0);
        out.extend_from_slice(&self.remembered_from.0.to_le_bytes());
        put_places(out, &self.groups);
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::WITHDRAWN, payload);
        let [reason] = cursor.array()?;
        let Some(reason) = Reason::from_octet(reason) else {
            return Err(cursor.damaged("a reason that this newsreel does not know"));
        };
        let token = Token::from_bytes(cursor.array()?);
        let id_hash = IdHash(cursor.array()?);
        let remembered_from = UnixTime(cursor.u64()?);
        Ok(Self {
            reason,
            token,
            id_hash,
            remembered_from,
            groups: cursor.places()?,
        })
    }
}

/// An article that is not offered in some of its groups any more, and stays in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftRecord {
    /// Where it lies.
    pub(crate) token: Token,
    /// The groups and numbers that it leaves.
    pub(crate) groups: SmallVec<[(GroupId, ArticleNumber); 4]>,
}

impl LeftRecord {
    /// Octets of the payload apart from the groups, which take as many as in [`WithdrawnRecord`].
    pub(crate) const OCTETS: usize = 24 + 2;

    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.token.as_bytes());
        put_places(out, &self.groups);
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::LEFT, payload);
        Ok(Self {
            token: Token::from_bytes(cursor.array()?),
            groups: cursor.places()?,
        })
    }
}

/// A cancel whose target was not here: that is judged when it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingRecord {
    /// The keyed hash of the target's message-id.
    pub(crate) target: IdHash,
    /// When the cancel came.
    pub(crate) since: UnixTime,
    /// The locks that its keys open.
    pub(crate) keys: LockPrints,
    /// Whose share of the room it takes.
    pub(crate) holder: Holder,
}

impl PendingRecord {
    /// Octets of the payload apart from the keys and the holder.
    pub(crate) const OCTETS: usize = 16 + 8 + 1;

    /// Writes the payload; a cancel has fewer keys than an octet counts.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.target.0);
        out.extend_from_slice(&self.since.0.to_le_bytes());
        let count = u8::try_from(self.keys.len()).unwrap_or(u8::MAX);
        out.push(count);
        for key in self.keys.iter().take(usize::from(count)) {
            out.extend_from_slice(&key.0);
        }
        if self.holder != Holder::default() {
            out.extend_from_slice(&self.holder.0.to_le_bytes());
        }
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::CANCEL_PENDING, payload);
        let target = IdHash(cursor.array()?);
        let since = UnixTime(cursor.u64()?);
        let [count] = cursor.array()?;
        let keys: Result<_, Error> = (0..count).map(|_| Ok(LockPrint(cursor.array()?))).collect();
        let keys = keys?;
        let holder = match cursor.is_empty() {
            // As all were once.
            true => Holder::default(),
            false => Holder(cursor.u64()?),
        };
        Ok(Self {
            target,
            since,
            keys,
            holder,
        })
    }
}

/// What the engine must know to go on from a checkpoint without the log before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StateRecord {
    /// The key of the message-id hash.
    pub(crate) hash_key: [u8; 32],
    /// Whether answers were given before anything was on disk.
    pub(crate) is_volatile: bool,
    /// Per buffer: end of the last committed article, and the reserved mark.
    pub(crate) buffers: Vec<(BufferId, Position, Position)>,
}

impl StateRecord {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.hash_key);
        out.push(u8::from(self.is_volatile));
        put_len(out, self.buffers.len());
        for (buffer, end, reserved) in &self.buffers {
            out.extend_from_slice(&buffer.0.to_le_bytes());
            out.extend_from_slice(&end.0.to_le_bytes());
            out.extend_from_slice(&reserved.0.to_le_bytes());
        }
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::STATE, payload);
        let hash_key = cursor.array()?;
        let [is_volatile] = cursor.array()?;
        let count = cursor.u16()?;
        let mut buffers = Vec::new();
        for _ in 0..count {
            buffers.push((
                BufferId(cursor.u16()?),
                Position(cursor.u64()?),
                Position(cursor.u64()?),
            ));
        }
        Ok(Self {
            hash_key,
            is_volatile: is_volatile != 0,
            buffers,
        })
    }
}

/// Reads the payload of a `JUMPED` record: by how much every high mark went up.
pub(crate) fn decode_jump(sequence: Sequence, payload: &[u8]) -> Result<u64, Error> {
    Cursor::new(sequence, kind::JUMPED, payload).u64()
}

/// Reads the payload of a `TIME` record.
pub(crate) fn decode_time(sequence: Sequence, payload: &[u8]) -> Result<UnixTime, Error> {
    Cursor::new(sequence, kind::TIME, payload)
        .u64()
        .map(UnixTime)
}

/// Reads the payload of an `EXPIRES` record.
pub(crate) fn decode_expires(sequence: Sequence, payload: &[u8]) -> Result<UnixTime, Error> {
    Cursor::new(sequence, kind::EXPIRES, payload)
        .u64()
        .map(UnixTime)
}

/// What outgoing feeds must know of the article that follows and its own record does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeedRecord<'a> {
    /// It was injected here.
    pub(crate) is_posted: bool,
    /// It is a control message.
    pub(crate) is_control: bool,
    /// What its body is, if it was looked at.
    pub(crate) content: Option<Content>,
    /// The content of Newsgroups, with the names that are not here.
    pub(crate) newsgroups: &'a [u8],
    /// The content of Distribution; empty where there is none.
    pub(crate) distribution: &'a [u8],
}

impl<'a> FeedRecord<'a> {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let content = match self.content {
            None => 0,
            Some(Content::Text) => 1,
            Some(Content::Binary) => 2,
            Some(Content::YEnc) => 3,
        };
        out.push(u8::from(self.is_posted) | u8::from(self.is_control) << 1 | content << 2);
        let len = u32::try_from(self.newsgroups.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(self.newsgroups);
        out.extend_from_slice(self.distribution);
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::FEED, payload);
        let [flags] = cursor.array()?;
        let len = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
        Ok(Self {
            is_posted: flags & 1 != 0,
            is_control: flags & 2 != 0,
            content: match flags >> 2 & 3 {
                1 => Some(Content::Text),
                2 => Some(Content::Binary),
                3 => Some(Content::YEnc),
                _ => None,
            },
            newsgroups: cursor.take(len)?,
            distribution: cursor.rest(),
        })
    }
}

/// Reads the payload of a `SPOOL_MADE` record: the key of the message-id hash.
pub(crate) fn decode_spool_made(sequence: Sequence, payload: &[u8]) -> Result<[u8; 32], Error> {
    Cursor::new(sequence, kind::SPOOL_MADE, payload).array()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Parts = (Vec<(u32, u64)>, Vec<u8>, Vec<u8>, Vec<u8>);

    fn article() -> impl Strategy<Value = Parts> {
        (
            proptest::collection::vec((any::<u32>(), any::<u64>()), 0..6),
            proptest::collection::vec(any::<u8>(), 0..250),
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::vec(any::<u8>(), 0..600),
        )
    }

    proptest! {
        #[test]
        fn prop_article_round_trip((groups, id, path, line) in article(), hash: [u8; 16]) {
            let record = ArticleRecord {
                token: Token::from_bytes([7; 24]),
                id_hash: IdHash(hash),
                arrival: UnixTime(1_000_000),
                octets: 2650,
                groups: groups.iter().map(|(g, n)| (GroupId(*g), ArticleNumber(*n))).collect(),
                id: &id,
                path: &path,
                line: &line,
            };
            let mut out = Vec::new();
            record.encode(&mut out);
            prop_assert_eq!(ArticleRecord::decode(Sequence(1), &out).unwrap(), record);
        }

        #[test]
        fn prop_no_input_panics(kind in 0u8..12, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ArticleRecord::decode(Sequence(1), &bytes);
            let _ = ReservedRecord::decode(Sequence(1), &bytes);
            let _ = GroupRecord::decode(Sequence(1), kind, &bytes);
            let _ = GroupRemovedRecord::decode(Sequence(1), &bytes);
            let _ = StateRecord::decode(Sequence(1), &bytes);
            let _ = PendingRecord::decode(Sequence(1), &bytes);
            let _ = LeftRecord::decode(Sequence(1), &bytes);
            let _ = FeedRecord::decode(Sequence(1), &bytes);
            let _ = CopyRecord::decode(Sequence(1), &bytes);
            let _ = MovedRecord::decode(Sequence(1), &bytes);
            let _ = RepackedRecord::decode(Sequence(1), &bytes);
            let _ = HeededRecord::decode(Sequence(1), &bytes);
            let _ = WaitingRecord::decode(Sequence(1), &bytes);
        }
    }

    #[test]
    fn small_records_round_trip() {
        let mut out = Vec::new();
        let group = GroupRecord {
            id: GroupId(3),
            time: UnixTime(5),
            high: ArticleNumber(100),
            name: "misc.test",
            status: "y",
            description: "Tests",
            creator: "admin",
        };
        group.encode(&mut out);
        assert_eq!(
            GroupRecord::decode(Sequence(1), kind::GROUP_MADE, &out).unwrap(),
            group
        );
        out.clear();
        let state = StateRecord {
            hash_key: [9; 32],
            is_volatile: true,
            buffers: vec![(BufferId(1), Position(64), Position(4096))],
        };
        state.encode(&mut out);
        assert_eq!(StateRecord::decode(Sequence(1), &out).unwrap(), state);
        let pending = PendingRecord {
            target: IdHash([3; 16]),
            since: UnixTime(7),
            keys: [LockPrint([1; 32]), LockPrint([2; 32])]
                .into_iter()
                .collect(),
            holder: Holder(5),
        };
        let mut text = Vec::new();
        pending.encode(&mut text);
        assert_eq!(PendingRecord::decode(Sequence(1), &text).unwrap(), pending);
        assert!(PendingRecord::decode(Sequence(1), &text[..text.len() - 1]).is_err());
        let before = PendingRecord::decode(Sequence(1), &text[..text.len() - Holder::OCTETS]);
        let holder = Holder::default();
        assert_eq!(before.unwrap(), PendingRecord { holder, ..pending });
        let left = LeftRecord {
            token: Token::from_bytes([7; 24]),
            groups: [
                (GroupId(1), ArticleNumber(2)),
                (GroupId(3), ArticleNumber(4)),
            ]
            .into_iter()
            .collect(),
        };
        text.clear();
        left.encode(&mut text);
        assert_eq!(LeftRecord::decode(Sequence(1), &text).unwrap(), left);
        assert!(LeftRecord::decode(Sequence(1), &text[..text.len() - 1]).is_err());
        text.clear();
        let feed = FeedRecord {
            is_posted: false,
            is_control: true,
            content: None,
            newsgroups: b"misc.test,a.b",
            distribution: b"",
        };
        for content in [
            Some(Content::Text),
            Some(Content::Binary),
            Some(Content::YEnc),
            None,
        ] {
            text.clear();
            let feed = FeedRecord { content, ..feed };
            feed.encode(&mut text);
            assert_eq!(FeedRecord::decode(Sequence(1), &text).unwrap(), feed);
        }
        assert!(FeedRecord::decode(Sequence(1), &text[..text.len() - 1]).is_err());
        out.pop();
        let error = StateRecord::decode(Sequence(44), &out)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("44") && error.contains("too early"),
            "{error}"
        );
    }
}
