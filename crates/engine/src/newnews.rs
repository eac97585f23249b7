//! NEWNEWS of the local service: the groups in turn, a bounded number of them in each visit to a thread that may wait.

use std::collections::VecDeque;

use newsreel_index::{Error as IndexError, Wait};
use newsreel_service::{GroupCursor, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, Token, UnixTime, Wildmat};

use crate::local::{GROUPS_STEP, LocalService, blocking, index_fault, more_until};
use crate::shared::Shared;

/// Where a NEWNEWS listing stands: which groups were looked at, which of them are still to be listed, and from which
/// number of the first.
#[derive(Debug, Default)]
pub struct NewnewsCursor {
    groups: GroupCursor,
    found: VecDeque<GroupId>,
    from: ArticleNumber,
}

/// Groups whose new articles are looked for in one visit to a thread that may wait.
const NEWNEWS_GROUPS_STEP: usize = 64;

impl LocalService {
    /// Appends the next message-ids, up to about so many octets; `false`: there are no more.
    pub(crate) async fn new_articles(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut NewnewsCursor,
        (limit_bytes, out): (usize, &mut Vec<u8>),
    ) -> Result<bool, ServiceError> {
        if cursor.found.is_empty() {
            self.next_groups(wildmat, cursor);
        }
        let step = cursor.found.len().min(NEWNEWS_GROUPS_STEP);
        if step > 0 {
            let found: Vec<GroupId> = cursor.found.iter().copied().take(step).collect();
            let (from, room) = (cursor.from, limit_bytes.saturating_sub(out.len()).max(1));
            let listed = blocking(&self.shared, move |shared| {
                new_articles(shared, &found, from, since, room)
            });
            let (done, from, text) = listed.await?.map_err(|error| index_fault(&error))?;
            out.extend_from_slice(&text);
            cursor.found.drain(..done);
            cursor.from = from;
        }
        Ok(!cursor.found.is_empty() || !cursor.groups.is_done())
    }

    /// Looks for groups that a NEWNEWS is about, among so many that it does not hold its task long.
    fn next_groups(&self, wildmat: &Wildmat, cursor: &mut NewnewsCursor) {
        let after = Some(cursor.groups.after()).filter(|after| !after.is_empty());
        let mut last = None;
        let found = &mut cursor.found;
        let groups = self.shared.views.groups();
        let more = groups.list(after, wildmat.prefix(), GROUPS_STEP, |group| {
            last = Some(group.name().to_owned());
            if wildmat.matches(group.name()) {
                found.push_back(group.id());
            }
        });
        cursor.from = ArticleNumber(1);
        match last {
            Some(last) if more => cursor.groups.advance(&last),
            _ => cursor.groups.finish(),
        }
    }
}

/// The message-ids of what came to these groups since then, from this number of the first one on, up to about `room`
/// octets; how many groups are done with, and where to go on in the next.
fn new_articles(
    shared: &Shared,
    groups: &[GroupId],
    mut from: ArticleNumber,
    since: UnixTime,
    room: usize,
) -> Result<(usize, ArticleNumber, Vec<u8>), IndexError> {
    let overview = shared.views.overview();
    let mut text = Vec::new();
    for (done, group) in groups.iter().enumerate() {
        if text.len() >= room {
            return Ok((done, from, text));
        }
        let visit = |_: &Token, id: &[u8]| {
            text.extend_from_slice(id);
            text.extend_from_slice(b"\r\n");
            more_until(text.len() >= room)
        };
        if let Some(next) = overview.newnews(*group, from, since, Wait::Yes, visit)? {
            return Ok((done, next, text));
        }
        from = ArticleNumber(1);
    }
    Ok((groups.len(), from, text))
}
