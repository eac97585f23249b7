//! What is told about groups: one group's facts, rows of LIST, and where a chunked listing goes on.

use std::fmt;

use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, UnixTime};

/// A group's facts at one moment, as GROUP tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its id; sessions keep this, not the name.
    pub id: GroupId,
    /// The lowest number offered; `high + 1` when the group is empty.  Never falls.
    pub low: ArticleNumber,
    /// The highest number ever given (and committed).
    pub high: ArticleNumber,
    /// Articles offered now, exactly.
    pub count: u64,
    /// The number that is selected with the group, where it has articles.
    pub first: ArticleNumber,
    /// What the status field says.
    pub status: GroupStatus,
}

/// The status field of LIST ACTIVE (RFC 3977 section 7.6.3, RFC 6048 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupStatus {
    /// `y`: posting is permitted.
    Open,
    /// `n`: posting is not permitted, relayed articles are filed.
    NoPosting,
    /// `m`: postings go to the moderator.
    Moderated,
    /// `j`: nothing is filed here; articles go to the junk group or nowhere.
    Junk,
    /// `x`: nothing is filed or posted.
    Closed,
    /// `=name`: filed in another group instead.
    Alias,
}

impl GroupStatus {
    /// From the text of the status field; `None` when it is none of the known ones.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "y" => Self::Open,
            "n" => Self::NoPosting,
            "m" => Self::Moderated,
            "j" => Self::Junk,
            "x" => Self::Closed,
            _ if text.starts_with('=') => Self::Alias,
            _ => return None,
        })
    }
}

/// One row of a listing, borrowed for the length of a visit.
#[derive(Debug, Clone, Copy)]
pub struct GroupRow<'a> {
    /// The group's name.
    pub name: GroupName<'a>,
    /// Its facts.
    pub info: GroupInfo,
    /// The status field as text: `y`, `n`, `m`, `j`, `x` or `=other.group`.
    pub status: &'a str,
    /// When it was made.
    pub created: UnixTime,
    /// Who made it: no spaces, as LIST ACTIVE.TIMES wants.
    pub creator: &'a str,
    /// The description of LIST NEWSGROUPS: no CR, LF, NUL; may be empty.
    pub description: &'a str,
}

/// A row of a listing that outlives the visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    name: Box<str>,
    /// The group's facts.
    pub info: GroupInfo,
    status: Box<str>,
    created: UnixTime,
    creator: Box<str>,
    description: Box<str>,
}

impl HeldRow {
    /// Keeps what a visit shows.
    #[must_use]
    pub fn of(row: &GroupRow<'_>) -> Self {
        Self {
            name: row.name.as_str().into(),
            info: row.info,
            status: row.status.into(),
            created: row.created,
            creator: row.creator.into(),
            description: row.description.into(),
        }
    }

    /// The group's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// Shows it to a visit of its own.
    pub fn visit(&self, visit: &mut (dyn FnMut(GroupRow<'_>) + Send)) {
        // It was parsed when the row came.
        if let Ok(name) = GroupName::parse(self.name.as_bytes()) {
            visit(GroupRow {
                name,
                info: self.info,
                status: &self.status,
                created: self.created,
                creator: &self.creator,
                description: &self.description,
            });
        }
    }
}

/// Which groups a listing visits.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupSelect<'a> {
    /// Only groups this pattern matches.
    pub wildmat: Option<&'a Wildmat>,
    /// Only groups made at or after this time.
    pub created_since: Option<UnixTime>,
    /// Only groups whose line in LIST ACTIVE changed at or after this time (see [`LastChanges`](crate::LastChanges)).
    pub changed_since: Option<UnixTime>,
    /// Only groups with a description (LIST NEWSGROUPS).
    pub described: bool,
    /// Name, marks and status of a row are enough: what it says besides need not be known.
    pub bare: bool,
    /// The rows' counts are shown: else they may be of more articles than GROUP counts.
    pub counts: bool,
}

impl<'a> GroupSelect<'a> {
    /// What the name of every group of the listing begins with: no others need be looked at.
    #[must_use]
    pub fn prefix(&self) -> &'a str {
        self.wildmat.map_or("", Wildmat::prefix)
    }

    /// Whether a group belongs to the listing, for all that its attributes say.
    #[must_use]
    pub fn takes(&self, name: &str, created: UnixTime, description: &str) -> bool {
        self.created_since.is_none_or(|since| created >= since)
            && !(self.described && description.is_empty())
            && self.wildmat.is_none_or(|wildmat| wildmat.matches(name))
    }
}

/// Where a chunked listing stands: after a name, or at its end.  Listings go by name, octet order.
///
/// A name and not a place, so that groups made and removed between two chunks neither repeat nor hide others.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GroupCursor {
    after: String,
    done: bool,
}

impl GroupCursor {
    /// The last name examined; empty at the start.
    #[must_use]
    pub fn after(&self) -> &str {
        &self.after
    }

    /// Whether the listing is complete.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// The service has examined all groups up to and including `name`.
    pub fn advance(&mut self, name: &str) {
        self.after.clear();
        self.after.push_str(name);
    }

    /// Nothing is left.
    pub const fn finish(&mut self) {
        self.done = true;
    }
}

impl fmt::Debug for GroupCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GroupCursor(after {:?}{})",
            self.after,
            if self.done { ", done" } else { "" }
        )
    }
}
