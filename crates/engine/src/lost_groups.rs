//! Groups whose rows are lost in both files, brought back as far as the log or their articles still name them.
//!
//! The log, as far back as it reaches, tells of groups as they were made and changed.  Of the others the overview knows
//! the ids, and an article's own Xref the name under which it has that number.  A group without articles that the log
//! no longer tells of stays lost.  It happens before anything is taken, so that nothing is refused for want of a group.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_index::{Column, DamagedRun, GroupRow, REBUILT, Views, Wait};
use newsreel_journal::{Record, SpoolId};
use newsreel_store::{Access, Blocking, StoreReader, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{ArticleNumber, GroupId, GroupName, UnixTime};

use crate::error::Error;
use crate::record::{GroupRecord, GroupRemovedRecord, kind};
use crate::recover::whole_log;

/// What can be done about it, for those who are told.
pub(crate) const WHAT_TO_DO: &str = "put the file back from a copy while the server is stopped, or make what is missing \
     again with `newsreel group import` or `newsreel group add`, and then say `newsreel group forget-lost`";

/// A group as the log tells of it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    name: String,
    status: String,
    description: String,
    creator: String,
    high: ArticleNumber,
    created: UnixTime,
    removed: Option<UnixTime>,
}

/// Groups by their ids.
pub(crate) type Groups = BTreeMap<GroupId, Told>;

/// What a group is called, by its articles.
#[derive(Debug, Default)]
struct Guess {
    /// Every article that was looked at has its number under each of these.
    names: Vec<String>,
    /// When the first of the articles arrived.
    arrival: UnixTime,
    /// So many were looked at.
    rows: usize,
}

/// Articles of a group that are looked at for its name, at most.
const ROWS_MAX: usize = 4096;

/// Brings back what can be; says what is lost.
pub(crate) fn bring_back(views: &Views, told: &Groups, store: &StoreReader) -> Result<(), Error> {
    let lost = views.lost_groups();
    if lost.is_empty() {
        return Ok(());
    }
    bring_back_told(views, told)?;
    let nameless = views.nameless().len();
    let unknown = bring_back_named(views, store)?;
    for run in &lost {
        tell(run, nameless - unknown, unknown);
    }
    Ok(())
}

fn tell(run: &DamagedRun, brought_back: usize, unknown: usize) {
    tracing::error!(
        why = run.why,
        first = run.first.0,
        last = run.last.0,
        brought_back,
        unknown,
        what_to_do = WHAT_TO_DO,
        "both files of these group rows are lost: groups that were made or changed between the two sequences come back \
         from the log and from their articles, as open groups without a description; those without articles, and \
         cancels by number, are not known any more; no number and no id is given again"
    );
}

/// The groups that the log tells of, from its oldest segment on; none when no group is wanted, or
/// when a server may be writing the log beside us.
pub(crate) fn told(
    views: &Views,
    disk: &Arc<dyn Disk>,
    (log, id): (&Path, SpoolId),
    access: Access,
) -> Result<Groups, Error> {
    let mut told = Groups::new();
    if views.numbers_lost() == 0 || access == Access::ReadOnly {
        return Ok(told);
    }
    let (_, mut recovery) = whole_log(disk, log, id)?;
    while let Some(frame) = recovery.next_frame()? {
        for record in frame.records() {
            // What cannot be decoded was complained of where it matters.
            let _ = note(&mut told, &record);
        }
    }
    Ok(told)
}

fn note(told: &mut Groups, record: &Record<'_>) -> Result<(), Error> {
    let (sequence, payload) = (record.sequence, record.payload);
    match record.kind {
        kind::GROUP_MADE => {
            let group = GroupRecord::decode(sequence, record.kind, payload)?;
            let made = Told {
                name: group.name.to_owned(),
                status: group.status.to_owned(),
                description: group.description.to_owned(),
                creator: group.creator.to_owned(),
                high: group.high,
                created: group.time,
                removed: None,
            };
            told.insert(group.id, made);
        }
        kind::GROUP_CHANGED => {
            let change = GroupRecord::decode(sequence, record.kind, payload)?;
            if let Some(group) = told.get_mut(&change.id) {
                change.status.clone_into(&mut group.status);
                change.description.clone_into(&mut group.description);
                group.high = group.high.max(change.high);
            }
        }
        kind::GROUP_REMOVED => {
            let removed = GroupRemovedRecord::decode(sequence, payload)?;
            if let Some(group) = told.get_mut(&removed.id) {
                group.removed = Some(removed.time);
            }
        }
        _ => {}
    }
    Ok(())
}

fn bring_back_told(views: &Views, told: &Groups) -> Result<(), Error> {
    for (id, group) in told {
        if views.groups().is_named(*id) {
            continue;
        }
        let row = GroupRow {
            id: *id,
            name: &group.name,
            status: &group.status,
            created: group.created,
            creator: &group.creator,
            description: &group.description,
            high: group.high,
        };
        views.bring_back(&row, group.removed)?;
    }
    Ok(())
}

/// Names the groups that only the overview knows.  How many could not be named.
fn bring_back_named(views: &Views, store: &StoreReader) -> Result<usize, Error> {
    let mut open = views.nameless();
    let mut memory = Vec::new();
    loop {
        let before = open.len();
        let mut unclear = Vec::new();
        for group in open {
            let guess = guess(views, store, group, &mut memory);
            match &guess.names[..] {
                [name] => name_it(views, group, name, guess.arrival)?,
                names => unclear.push((names.len(), Reverse(guess.rows), group)),
            }
        }
        if unclear.is_empty() || unclear.len() == before {
            // What is left was filed alike as far as it can be read.  Whoever has most rows fits the fewest names.
            unclear.sort_unstable();
            open = unclear.into_iter().map(|(_, _, group)| group).collect();
            break;
        }
        open = unclear.into_iter().map(|(_, _, group)| group).collect();
    }
    let mut unknown = 0;
    for group in open {
        let guess = guess(views, store, group, &mut memory);
        match guess.names.first() {
            Some(name) => name_it(views, group, name, guess.arrival)?,
            None => unknown += 1,
        }
    }
    Ok(unknown)
}

/// Of the groups of one name the one with the largest id is there, and the others were removed.
fn name_it(views: &Views, id: GroupId, name: &str, created: UnixTime) -> Result<(), Error> {
    let row = GroupRow {
        id,
        name,
        status: "y",
        created,
        creator: REBUILT,
        description: "",
        high: ArticleNumber(0),
    };
    let groups = views.groups();
    let other = groups.last_of(name);
    let is_former = other.is_some_and(|other| other > id);
    views.bring_back(&row, is_former.then_some(created))?;
    if let Some(other) = other {
        groups.remove(other.min(id), created);
    }
    Ok(())
}

/// The names that all articles of a group agree on; it stops when one is left.
fn guess(views: &Views, store: &StoreReader, group: GroupId, memory: &mut Vec<u8>) -> Guess {
    let mut guess: Option<Guess> = None;
    views.overview().sample(group, |column| {
        let Some(names) = names_of(views, store, group, column, memory) else {
            return ControlFlow::Continue(());
        };
        let guess = guess.get_or_insert_with(|| Guess {
            names: names.clone(),
            arrival: column.arrival,
            rows: 0,
        });
        guess.names.retain(|name| names.contains(name));
        guess.rows += 1;
        match guess.names.len() < 2 || guess.rows == ROWS_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    guess.unwrap_or_default()
}

/// The groups in which an article has this number, by its Xref, but for those of which another id is known.
fn names_of(
    views: &Views,
    store: &StoreReader,
    group: GroupId,
    column: &Column,
    memory: &mut Vec<u8>,
) -> Option<Vec<String>> {
    let stored = store.read(&column.token, Want::Whole, Blocking::Yes, memory);
    let wire = memory.get(stored.ok()?.octets)?;
    let headers = Headers::scan_stored(wire).ok()?;
    let xref = headers.content(Known::Xref)?;
    let is_another = |name: &str| {
        let known = views.groups().last_of(name).filter(|id| *id != group);
        known.is_some_and(|id| {
            let mut message_id = Vec::new();
            let overview = views.overview();
            let row = overview.column(id, column.number, Wait::Yes, &mut message_id);
            row.is_ok_and(|row| row.is_some_and(|row| row.token.same_place(&column.token)))
        })
    };
    let names = newsreel_wire::xref::places(xref).filter(|(name, number)| {
        let is_name = GroupName::parse(name.as_bytes()).is_ok();
        is_name && *number == column.number && !is_another(name)
    });
    Some(names.map(|(name, _)| name.to_owned()).collect())
}
