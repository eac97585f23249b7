//! Takes any octets for a record of the log, a spool's identity, the notes of a scrub, an Xref, a keyring, a control message:
//! the doors for fuzzers.
//!
//! Must never panic, whatever comes.

use newsreel_index::Groups;
use newsreel_wire::Sequence;
use newsreel_wire::article::Headers;

use crate::control::meaning::GroupAsked;
use crate::control::{groups, keyring, nocem, signed};

use crate::record::{
    ArticleRecord, CopyRecord, DueRecord, FeedRecord, GroupRecord, GroupRemovedRecord,
    HeededRecord, LeftRecord, MovedRecord, PendingRecord, RepackedRecord, ReservedRecord,
    StateRecord, WaitingRecord, WithdrawnRecord, decode_expires, decode_forgotten, decode_jump,
    decode_spool_made, decode_time, encode_forgotten, kind,
};

/// Decodes `octets` as the payload of a record of this kind; says whether it took them.
#[must_use]
pub fn decode_record(record_kind: u8, octets: &[u8]) -> bool {
    let at = Sequence(1);
    match record_kind {
        kind::ARTICLE => ArticleRecord::decode(at, octets).is_ok_and(|article| {
            // What it lends lies inside.
            article.groups.len() * 12 + article.id.len() + article.path.len() <= octets.len()
        }),
        kind::GROUP_MADE | kind::GROUP_CHANGED => {
            GroupRecord::decode(at, record_kind, octets).is_ok()
        }
        kind::GROUP_REMOVED => GroupRemovedRecord::decode(at, octets).is_ok(),
        kind::RESERVED => ReservedRecord::decode(at, octets).is_ok(),
        kind::STATE => StateRecord::decode(at, octets).is_ok(),
        kind::JUMPED => decode_jump(at, octets).is_ok(),
        kind::TIME => decode_time(at, octets).is_ok(),
        kind::SPOOL_MADE => decode_spool_made(at, octets).is_ok(),
        kind::WITHDRAWN => WithdrawnRecord::decode(at, octets).is_ok_and(|withdrawn| {
            let mut again = Vec::new();
            withdrawn.encode(&mut again);
            octets.starts_with(&again)
        }),
        kind::LEFT => LeftRecord::decode(at, octets).is_ok_and(|left| {
            let mut again = Vec::new();
            left.encode(&mut again);
            octets.starts_with(&again)
        }),
        kind::EXPIRES => decode_expires(at, octets).is_ok(),
        kind::FEED => FeedRecord::decode(at, octets).is_ok_and(|feed| {
            let mut again = Vec::new();
            feed.encode(&mut again);
            // Flags that this newsreel does not know are passed over.
            again.get(1..) == octets.get(1..)
        }),
        kind::COPY => CopyRecord::decode(at, octets).is_ok_and(|copy| {
            let mut again = Vec::new();
            copy.encode(&mut again);
            octets.starts_with(&again)
        }),
        kind::MOVED => MovedRecord::decode(at, octets).is_ok_and(|moved| {
            let mut again = Vec::new();
            moved.encode(&mut again);
            // Flags that this newsreel does not know are passed over.
            again
                .split_last()
                .is_some_and(|(_, front)| octets.starts_with(front))
        }),
        kind::REPACKED => RepackedRecord::decode(at, octets).is_ok_and(|repacked| {
            let mut again = Vec::new();
            repacked.encode(&mut again);
            octets.starts_with(&again)
        }),
        kind::CANCEL_PENDING => PendingRecord::decode(at, octets).is_ok_and(|pending| {
            let mut again = Vec::new();
            pending.encode(&mut again);
            octets.starts_with(&again)
        }),
        kind::FORGOTTEN => decode_forgotten(at, octets).is_ok_and(|hierarchy| {
            let mut again = Vec::new();
            encode_forgotten(hierarchy, &mut again);
            octets.starts_with(&again)
        }),
        kind::WAITING | kind::HEEDED | kind::DUE => decode_about_groups(record_kind, octets),
        _ => false,
    }
}

/// The same of a record about messages about groups.
fn decode_about_groups(record_kind: u8, octets: &[u8]) -> bool {
    let (at, mut again) = (Sequence(1), Vec::new());
    if record_kind == kind::WAITING {
        return WaitingRecord::decode(at, octets).is_ok_and(|waiting| {
            waiting.encode(&mut again);
            // Flags that this newsreel does not know are passed over.
            let front = again.split_last().map(|(_, front)| front);
            front.is_some_and(|front| octets.starts_with(front))
        });
    }
    if record_kind == kind::DUE {
        return DueRecord::decode(at, octets).is_ok_and(|due| {
            due.encode(&mut again);
            // What this newsreel does not know it takes for nothing.
            let front = again.split_last().map(|(_, front)| front);
            front.is_some_and(|front| octets.starts_with(front))
        });
    }
    HeededRecord::decode(at, octets).is_ok_and(|heeded| {
        heeded.encode(&mut again);
        // Flags that this newsreel does not know are passed over, and any octet but 0 means the same.
        HeededRecord::decode(at, &again).is_ok_and(|read| read == heeded)
    })
}

/// Takes `octets` for the file that makes a directory a spool; says whether they are one.
#[must_use]
pub fn decode_identity(octets: &[u8]) -> bool {
    // A fuzzer does not get past a checksum.
    let mut whole = octets.to_vec();
    if let Some((body, crc)) = whole.split_last_chunk_mut::<4>() {
        *crc = crc32c::crc32c(body).to_le_bytes();
    }
    let _ = crate::spool::parse(octets);
    crate::spool::parse(&whole).is_ok()
}

/// Takes `octets` for what a scrub noted, as they are and behind a right checksum; says whether they are that.
#[must_use]
pub fn decode_scrub(octets: &[u8]) -> bool {
    crate::scrub_state::again(octets)
}

/// Takes `octets` for what is noted of when groups changed, as they are and behind a right checksum; says whether they are that.
#[must_use]
pub fn decode_changes(octets: &[u8]) -> bool {
    crate::last_changes::again(octets)
}

/// Takes `octets` for the Xref of a stored article: names and numbers, each as it stands there.
pub fn named(octets: &[u8]) -> impl Iterator<Item = (&str, u64)> {
    newsreel_wire::xref::places(octets).map(|(name, number)| (name, number.0))
}

/// Takes `rows` for those of a keyring, behind a right checksum; says whether they are that.
#[must_use]
pub fn decode_keyring(rows: &[u8]) -> bool {
    keyring::decode_made(rows)
}

/// Articles of a notice that are looked at here.
const LISTED_MAX: usize = 2000;

/// Takes `octets` for a message about groups: how many changes it asks for where there is no group yet, and of how many octets a
/// signature is.
#[must_use]
pub fn control_message(octets: &[u8]) -> Option<(usize, Option<usize>)> {
    let headers = Headers::scan(octets).ok()?;
    if let Ok(Some(notice)) = nocem::read(&groups::text(&headers), LISTED_MAX) {
        assert!(!notice.listed.is_empty() && notice.listed.len() <= LISTED_MAX);
    }
    let text = signed::read(&headers).ok().map(|signed| signed.text.len());
    let message = groups::read(&headers)?.ok()?;
    let asks = message.meaning.asks(&Groups::default());
    // Where no group is here it asks for what it names, each once, and finds nothing wanting where that is done.
    assert!(asks.iter().map(GroupAsked::name).is_sorted_by(|a, b| a < b));
    for asked in &asks {
        let GroupAsked::Make {
            name,
            status,
            description,
        } = asked
        else {
            panic!("{asked:?}");
        };
        let there = Some((status.as_str(), description.as_str()));
        assert!(message.meaning.is_about(name) && message.meaning.asks_of(name, there).is_none());
    }
    Some((asks.len(), text))
}
