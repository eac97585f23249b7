//! What of the articles the policy wants to stay when their segment goes, and what it knows of them.
//!
//! The policy has room for half of what may be kept.  What it lets go is there until its segment goes, and if it is asked for by
//! then it is wanted again; so room that the policy does not have is used all the same.  Whatever a policy wants, no more than half
//! of a segment stays: so no more than as much again is written as comes (decision 0026).
//!
//! What a policy knows is read from the table before it is asked for the first time, and after it was exchanged for
//! another.

use std::collections::{HashMap, HashSet};
use std::fmt;

use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{GroupName, IdHash, UnixTime, date, newsgroups};
use parking_lot::Mutex;

use super::error::Result;
use super::row::Row;
use super::table::Table;
use super::{Keep, Kept};
use crate::policies::{Article, PolicyKind, Room, WANTED_PART, Worth};

/// So many uses are remembered at most until they are noted in the table; of more only the policy knows.
pub const USES_NOTED_MAX: usize = 1 << 16;

/// Of a segment so many parts of a hundred stay at most.
const STAY_PART: u64 = 50;

/// How an article was asked for since that was noted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// How often.
    pub(super) times: u32,
    /// The last time, among all uses.
    pub(super) last: u64,
    /// The last time, by the clock.
    pub(super) at: UnixTime,
}

/// Stands for an article in policies.
pub(crate) fn key_of(id: &IdHash) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = id.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Stands for a group: FNV-1a of its name.
pub(crate) fn group_key(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The first group of an article, and its date; 0 where that is not said.
pub(crate) fn group_and_date(wire: &[u8]) -> (Option<GroupName<'_>>, u64) {
    let Ok(headers) = Headers::scan_stored(wire) else {
        return (None, 0);
    };
    let groups = headers.content(Known::Newsgroups).unwrap_or_default();
    let first = newsgroups::split(groups).flatten().next();
    let dated = headers.content(Known::Date).unwrap_or_default();
    (first, date::parse_relaxed(dated).map_or(0, |dated| dated.0))
}

/// What policies know of an article: what stands for the first of its groups, and its date; 0 where that is not said.
pub(super) fn facts_of(kept: &Kept) -> (u64, u64) {
    let (group, dated) = kept.group_and_date();
    let group = group.map_or(0, |group| group_key(group.as_bytes()));
    (group, dated)
}

/// An article as policies know it.
fn article_of(id: &IdHash, row: &Row) -> Article {
    Article {
        key: key_of(id),
        group: row.group,
        octets: row.token.len().into(),
        dated: row.dated,
        uses: row.uses.max(1),
    }
}

/// What of a segment may stay.
#[derive(Debug)]
pub(super) struct Stay<'p> {
    /// Its articles that are pinned.
    pub(super) pinned: &'p HashSet<IdHash>,
    /// So many octets of them stay, whatever the policy wants.
    pub(super) pinned_octets_max: u64,
    pub(super) segment_octets: u64,
}

struct State {
    kind: PolicyKind,
    /// None: what it knows is still to be read.
    room: Option<Room>,
    uses: HashMap<IdHash, Use>,
    /// The last use of all.
    last: u64,
}

/// The policy and what it knows.
pub(super) struct Wanted {
    octets_max: u64,
    articles_max: usize,
    state: Mutex<State>,
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Wanted")
            .field("kind", &state.kind)
            .field("octets_max", &self.octets_max)
            .finish_non_exhaustive()
    }
}

impl Wanted {
    /// A policy that is to know what the table does.
    pub(super) fn new(kind: PolicyKind, octets: u64, articles_max: usize) -> Self {
        let state = State {
            kind,
            room: None,
            uses: HashMap::new(),
            last: 0,
        };
        Self {
            octets_max: octets / 100 * WANTED_PART,
            articles_max,
            state: Mutex::new(state),
        }
    }

    pub(super) fn kind(&self) -> PolicyKind {
        self.state.lock().kind
    }

    /// Another policy, which learns first.
    pub(super) fn set_kind(&self, kind: PolicyKind) {
        let mut state = self.state.lock();
        if state.kind != kind {
            state.kind = kind;
            state.room = None;
        }
    }

    /// The table knows other articles than before, and has noted this last use: the policy learns anew.
    pub(super) fn unlearn(&self, last: u64) {
        let mut state = self.state.lock();
        state.room = None;
        state.last = state.last.max(last);
    }

    /// Octets and articles that are wanted.
    pub(super) fn figures(&self) -> (u64, usize) {
        let state = self.state.lock();
        let room = state.room.as_ref();
        room.map_or((0, 0), |room| (room.octets(), room.articles()))
    }

    /// Writes down what was asked for since the last time, and has a policy know what the table does that knows nothing.  Nobody
    /// places articles meanwhile; who asks for one does not wait for it.
    pub(super) fn learn(&self, table: &Table) -> Result<()> {
        let (uses, last, unlearnt) = {
            let mut state = self.state.lock();
            let unlearnt = state.room.is_none().then_some(state.kind);
            (std::mem::take(&mut state.uses), state.last, unlearnt)
        };
        if !uses.is_empty()
            && let Err(error) = table.change(false, |change| change.put_uses(&uses, last))
        {
            self.give_back(uses);
            return Err(error);
        }
        let Some(kind) = unlearnt else {
            return Ok(());
        };
        let mut room = self.learnt(table, kind)?;
        let mut state = self.state.lock();
        let mut since: Vec<(u64, u64)> = state
            .uses
            .iter()
            .map(|(id, noted)| (noted.last, key_of(id)))
            .collect();
        since.sort_unstable();
        for (_, key) in since {
            room.touch(key);
        }
        // If it was exchanged once more the next one learns.
        if state.kind == kind {
            state.room = Some(room);
        }
        Ok(())
    }

    /// These uses could not be noted: they are with the next ones.
    fn give_back(&self, uses: HashMap<IdHash, Use>) {
        let mut state = self.state.lock();
        for (id, before) in uses {
            if let Some(noted) = state.uses.get_mut(&id) {
                noted.times = noted.times.saturating_add(before.times);
                noted.at = noted.at.max(before.at);
            } else if state.uses.len() < USES_NOTED_MAX {
                state.uses.insert(id, before);
            }
        }
    }

    /// A policy that knows what the table does.  What is asked for from here on was asked for later than all of that.
    fn learnt(&self, table: &Table, kind: PolicyKind) -> Result<Room> {
        let mut known = Vec::new();
        table.each_article(|id, row| known.push((row.used, article_of(id, &row))))?;
        known.sort_by_key(|(used, article)| (*used, article.key));
        let last = known.last().map_or(0, |(used, _)| *used);
        {
            let mut state = self.state.lock();
            state.last = state.last.max(last);
        }
        let mut room = Room::new(kind, self.octets_max, self.articles_max);
        let mut gone = Vec::new();
        for (_, article) in known {
            room.insert(article, &mut gone);
            gone.clear();
        }
        Ok(room)
    }

    /// An article was asked for that is kept.
    pub(super) fn asked(&self, id: &IdHash, kept: &Kept, at: UnixTime) {
        let key = key_of(id);
        let mut state = self.state.lock();
        state.last += 1;
        let last = state.last;
        if let Some(noted) = state.uses.get_mut(id) {
            noted.times = noted.times.saturating_add(1);
            (noted.last, noted.at) = (last, at);
        } else if state.uses.len() < USES_NOTED_MAX {
            state.uses.insert(*id, Use { times: 1, last, at });
        }
        let Some(room) = state.room.as_mut() else {
            return;
        };
        if !room.touch(key) {
            let (group, dated) = facts_of(kept);
            room.insert(
                Article {
                    key,
                    group,
                    octets: kept.wire.len() as u64,
                    dated,
                    uses: 1,
                },
                &mut Vec::new(),
            );
        }
    }

    /// Articles came that were asked for, and have these rows but for their last use, which is noted in them.
    pub(super) fn came(&self, rows: &mut [(IdHash, Row)]) {
        let mut state = self.state.lock();
        for (id, row) in rows {
            state.last += 1;
            row.used = state.last;
            let article = article_of(id, row);
            if let Some(room) = &mut state.room {
                room.insert(article, &mut Vec::new());
            }
        }
    }

    /// Articles are not kept any more.
    pub(super) fn went<'i>(&self, ids: impl IntoIterator<Item = &'i IdHash>) {
        let mut state = self.state.lock();
        for id in ids {
            state.uses.remove(id);
            if let Some(room) = &mut state.room {
                room.remove(key_of(id));
            }
        }
    }

    /// How many octets of a segment are wanted, and when one of its articles was asked for last, among all uses.
    pub(super) fn worth(&self, rows: &[(IdHash, Row)]) -> (u64, u64) {
        let state = self.state.lock();
        let (mut octets, mut last) = (0, 0);
        for (id, row) in rows {
            let noted = state.uses.get(id).map_or(0, |noted| noted.last);
            last = last.max(row.used).max(noted);
            let room = state.room.as_ref();
            if room.is_some_and(|room| room.worth(key_of(id)).is_some()) {
                octets += u64::from(row.token.len());
            }
        }
        (octets, last)
    }

    /// Which articles of a segment stay, in the order in which they lie: those that are pinned or wanted, and of more than may stay
    /// those that are worth most.  And which of them stay for pins alone, whatever the policy wants.
    pub(super) fn staying(
        &self,
        rows: Vec<(IdHash, Row)>,
        stay: &Stay<'_>,
    ) -> (Vec<(IdHash, Row)>, HashSet<IdHash>) {
        let state = self.state.lock();
        let worth = |id: &IdHash| state.room.as_ref()?.worth(key_of(id));
        let pinned = rows.iter().filter(|(id, _)| stay.pinned.contains(id));
        let pinned = pinned.map(|(id, row)| (worth(id).unwrap_or_default(), *id, *row));
        let mut staying = chosen(pinned.collect(), stay.pinned_octets_max);
        let octets: u64 = staying
            .iter()
            .map(|(_, row)| u64::from(row.token.len()))
            .sum();
        let stays: HashSet<IdHash> = staying.iter().map(|(id, _)| *id).collect();
        let others = rows.into_iter().filter(|(id, _)| !stays.contains(id));
        let wanted = others.filter_map(|(id, row)| Some((worth(&id)?, id, row)));
        let most = stay.segment_octets / 100 * STAY_PART;
        staying.extend(chosen(wanted.collect(), most.saturating_sub(octets)));
        staying.sort_by_key(|(_, row)| row.token.position());
        (staying, stays)
    }
}

/// Of articles and what they are worth so many octets, those of most worth, in the order in which they lie.
fn chosen(mut wanted: Vec<(Worth, IdHash, Row)>, octets_max: u64) -> Vec<(IdHash, Row)> {
    wanted.sort_by_key(|(worth, _, row)| (std::cmp::Reverse(*worth), row.token.position()));
    let mut octets = 0;
    let fits = |(_, _, row): &(Worth, IdHash, Row)| {
        let more = octets + u64::from(row.token.len());
        let fits = more <= octets_max;
        if fits {
            octets = more;
        }
        fits
    };
    wanted.retain(fits);
    wanted.sort_by_key(|(_, _, row)| row.token.position());
    wanted.into_iter().map(|(_, id, row)| (id, row)).collect()
}

impl Keep {
    /// Which policy says what goes.
    #[must_use]
    pub fn policy(&self) -> PolicyKind {
        self.wanted.kind()
    }

    /// Another policy says what goes from now on.
    pub fn set_policy(&self, kind: PolicyKind) {
        self.wanted.set_kind(kind);
    }
}

#[cfg(test)]
mod tests {
    use newsreel_wire::{BufferId, Position, SetId, Token, TokenParts};

    use super::*;

    fn row(at: u64, len: u32) -> Row {
        let token = Token::new(TokenParts {
            method: 2,
            set: SetId(0),
            buffer: BufferId(0),
            len,
            position: Position::new(1, at * 512),
            tail: [0; 8],
        });
        Row {
            token,
            group: 0,
            dated: 0,
            used: 0,
            uses: 1,
            used_at: 0,
        }
    }

    #[test]
    fn what_is_worth_most_stays_where_not_all_may() {
        let id = |at: u8| IdHash([at; 16]);
        let wanted = [(1_u64, 40), (9, 40), (5, 30), (7, 90)];
        let wanted = (0_u8..)
            .zip(wanted)
            .map(|(at, (worth, len))| ((worth, 0), id(at), row(at.into(), len)));
        let ids = |octets_max| {
            let chosen = chosen(wanted.clone().collect(), octets_max);
            chosen.iter().map(|(id, _)| id.0[0]).collect::<Vec<_>>()
        };
        assert_eq!(ids(1000), [0, 1, 2, 3]);
        assert_eq!(ids(170), [1, 2, 3]);
        // The one that is too large makes room for smaller ones.
        assert_eq!(ids(75), [1, 2]);
        assert_eq!(ids(0), Vec::<u8>::new());
    }

    #[test]
    fn an_article_says_its_group_and_date() {
        let wire = b"Newsgroups: misc.test,alt.test\r\nDate: Thu, 01 Jan 2026 00:00:00 +0000\r\n\r\nx\r\n.\r\n";
        let kept = Kept::new(wire.to_vec().into()).unwrap();
        assert_eq!(facts_of(&kept), (group_key(b"misc.test"), 1_767_225_600));
        let kept = Kept::new(b"Subject: x\r\n\r\n.\r\n".to_vec().into()).unwrap();
        assert_eq!(facts_of(&kept), (0, 0));
        assert_ne!(group_key(b"misc.test"), group_key(b"misc.tesu"));
    }
}
