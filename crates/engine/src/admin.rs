//! The sequencer's answers to administrators: groups, articles that go, buffers, a checkpoint, the stop.
//!
//! A request is checked against the sequencer's own picture, put into the open commit as records,
//! and answered when that commit is durable.  A refused one changes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::SyncSender;

use newsreel_service::cancel_lock::PRINT_OCTETS;
use newsreel_wire::{GroupId, GroupName, Sequence, UnixTime};

use crate::config::NumberOverflow;
use crate::control::shares::Holder;
use crate::error::Error;
use crate::filing::{Filing, GroupSlot, NUMBER_LARGER_MAX, NUMBER_MAX};
use crate::places::Places;
use crate::record::{
    GroupRecord, GroupRemovedRecord, LeftRecord, PendingRecord, WithdrawnRecord, kind,
};
use crate::requests::{BufferChange, GroupChange, GroupSpec, Request, Waiting};
use crate::sequencer::Sequencer;
use crate::shared::Shared;

/// Changed groups are in a checkpoint within this, milliseconds.
const GROUPS_WITHIN_MS: u64 = 5000;

/// Octets of a record's entry in the frame, at most.
pub(crate) const RECORD_OCTETS: usize = 32;

/// Octets of a group's record and its entry in the frame, texts apart.
pub(crate) const GROUP_OCTETS: usize = 64;

/// The longest description and creator, octets: a line of LIST stays readable.
pub const GROUP_TEXT_OCTETS_MAX: usize = 512;

/// High marks of new groups are below this, so that there are numbers to go on with.
pub const GROUP_HIGH_END: u64 = NUMBER_LARGER_MAX;

/// A group as a commit under way changes it.
#[derive(Debug)]
pub(crate) struct Unsettled {
    pub(crate) sequence: Sequence,
    status: String,
    description: String,
}

impl Sequencer {
    /// Does what is asked, or says at once why not.
    pub(crate) fn request(&mut self, request: Request, answer: SyncSender<Result<(), Error>>) {
        let is_of_groups = request.is_of_groups();
        let is_copy = matches!(request, Request::Copy(_));
        let result = match request {
            Request::Move(moving) => return self.put_move(moving, answer),
            Request::Stop => {
                self.retry_checkpoint_now();
                self.stopping.push(Waiting {
                    answer,
                    result: Ok(()),
                    is_copy: false,
                });
                return;
            }
            Request::Checkpoint => {
                self.checkpoints.wanted = true;
                Ok(())
            }
            Request::TrustClock if self.broken.is_none() => {
                self.trust_clock();
                Ok(())
            }
            _ if self.broken.is_some() => Err(Error::LogFailed {
                why: self.broken.clone().unwrap_or_default(),
            }),
            Request::AddGroups(groups) => self.add_groups(&groups),
            Request::SetGroups(changes) => self.set_groups(&changes),
            Request::RemoveGroup { name } => self.remove_group(&name),
            Request::ChangeGroups(heeding, id) => self.approve(&heeding, id),
            Request::ForgetHeeded(hierarchy) => self.forget_heeded(&hierarchy),
            Request::DueIsOver(id) => self.due_is_over(id),
            Request::Write(write) => {
                self.open.writes.push(write);
                Ok(())
            }
            Request::Withdraw { moves, .. } | Request::Expire { moves, .. }
                if moves != self.moves =>
            {
                // What it says of their places may be no longer true.
                Err(Error::Moved)
            }
            Request::Withdraw {
                articles, awaited, ..
            } => self.withdraw(&articles, &[], &awaited),
            Request::Expire {
                withdrawn, left, ..
            } => self.withdraw(&withdrawn, &left, &[]),
            Request::Copy(copies) => self.copy(&copies),
            Request::Clear(tokens) => {
                self.store.withdrawn(&tokens, &mut self.open.writes);
                Ok(())
            }
            Request::Buffers(change) => self.change_buffer(change),
            Request::TrustClock => Ok(()),
        };
        if is_of_groups && result.is_ok() {
            self.groups_changed();
        }
        let waiting = Waiting {
            answer,
            result,
            is_copy,
        };
        match waiting.result {
            Ok(()) => self.open.waiting.push(waiting),
            Err(_) => waiting.tell(),
        }
    }

    fn change_buffer(&mut self, change: BufferChange) -> Result<(), Error> {
        match change {
            BufferChange::Add(buffer) => self.store.add(*buffer),
            BufferChange::Remove(buffer) => self.store.remove(buffer),
            BufferChange::Resize(resizing) => self.store.resize_open(&resizing)?,
        }
        Ok(())
    }

    /// They are in a checkpoint soon.
    pub(crate) fn groups_changed(&mut self) {
        let by = self.shared.now_ms() + GROUPS_WITHIN_MS;
        self.checkpoints.groups_by_ms.get_or_insert(by);
    }

    fn now(&self) -> UnixTime {
        self.shared.time.calendar()
    }

    /// Starts a record of the open commit.
    pub(crate) fn record(&mut self, kind: u8) -> &mut Vec<u8> {
        self.next = Sequence(self.next.0 + 1);
        self.open.frame.record(kind)
    }

    /// Whether records of so many octets in all still fit into the open frame.
    pub(crate) fn fits(&self, octets: usize) -> bool {
        let taken = self.open.frame.bytes().len();
        octets <= self.frame_octets_max.saturating_sub(taken)
    }

    fn withdraw(
        &mut self,
        articles: &[WithdrawnRecord],
        left: &[LeftRecord],
        awaited: &[PendingRecord],
    ) -> Result<(), Error> {
        let places = |groups: &Places| groups.len() * WithdrawnRecord::GROUP_OCTETS;
        let octets = |it: &WithdrawnRecord| WithdrawnRecord::OCTETS + places(&it.groups);
        let octets_left = |it: &LeftRecord| LeftRecord::OCTETS + places(&it.groups);
        let octets_awaited = |it: &PendingRecord| {
            Holder::OCTETS + PendingRecord::OCTETS + it.keys.len() * PRINT_OCTETS
        };
        let octets = articles
            .iter()
            .map(octets)
            .chain(left.iter().map(octets_left))
            .chain(awaited.iter().map(octets_awaited));
        if !self.fits(octets.map(|octets| octets + RECORD_OCTETS).sum()) {
            return Err(Error::FrameFull);
        }
        for article in left {
            article.encode(self.record(kind::LEFT));
        }
        for article in articles {
            article.encode(self.record(kind::WITHDRAWN));
            self.open.withdrawn.push(article.token);
        }
        for target in awaited {
            target.encode(self.record(kind::CANCEL_PENDING));
        }
        Ok(())
    }

    pub(crate) fn add_groups(&mut self, groups: &[GroupSpec]) -> Result<(), Error> {
        if !self.fits(octets_to_make(groups)) {
            return Err(Error::Group(
                "these are more groups than one log frame holds; add them in several steps, or enlarge \
                 log.segment_octets"
                    .to_owned(),
            ));
        }
        self.check_made(groups)?;
        self.make_checked(groups);
        Ok(())
    }

    /// Whether these groups can be made, all together.
    pub(crate) fn check_made(&self, groups: &[GroupSpec]) -> Result<(), Error> {
        let there = |name: &str| self.groups.find(name).map(|id| self.is_alias(id));
        let made = self.groups.next_id().0 as usize;
        check_specs(&self.shared, groups, made, there)
    }

    /// Makes groups that can be made and have room.
    pub(crate) fn make_checked(&mut self, groups: &[GroupSpec]) {
        let now = self.now();
        // Targets before their aliases.
        let (plain, aliases): (Vec<_>, Vec<_>) = groups
            .iter()
            .partition(|group| !group.status.starts_with('='));
        for group in plain.into_iter().chain(aliases) {
            let id = self.groups.next_id();
            // A group made again goes on above its old numbers.
            let taken = self.shared.views.groups().taken(&group.name);
            let taken = taken.max(self.groups.taken(&group.name));
            let high = taken.max(group.high);
            GroupRecord {
                id,
                time: group.created.map_or(now, |created| created.min(now)),
                high,
                name: &group.name,
                status: &group.status,
                description: &group.description,
                creator: &group.creator,
            }
            .encode(self.record(kind::GROUP_MADE));
            let filing = self.filing(&group.status);
            let slot = GroupSlot {
                next: high.0 + 1,
                name: group.name.as_str().into(),
                filing,
            };
            self.groups.set(id, slot);
            self.note_unsettled(id, &group.name, &group.status, &group.description);
        }
        self.take_back_aliases(groups);
    }

    /// Aliases whose target was removed lead to it again when it is made again, as they would after a start.
    fn take_back_aliases(&mut self, made: &[GroupSpec]) {
        let there = self.shared.views.groups();
        let again: HashSet<&str> = made
            .iter()
            .map(|group| group.name.as_str())
            .filter(|name| there.last_of(name).is_some())
            .collect();
        if again.is_empty() {
            return;
        }
        for id in there.sorted().iter() {
            let alias = there.by_id(*id);
            let target = alias.as_ref().and_then(|it| it.status().strip_prefix('='));
            let target = target.filter(|target| again.contains(target));
            let Some(target) = target.and_then(|target| self.groups.find(target)) else {
                continue;
            };
            if let Some(slot) = self.groups.get_mut(*id) {
                slot.filing = Filing::Alias(target);
            }
        }
    }

    fn is_alias(&self, id: GroupId) -> bool {
        let slot = self.groups.get(id);
        slot.is_some_and(|slot| matches!(slot.filing, Filing::Alias(_)))
    }

    /// How a status field files; checked before.
    fn filing(&self, status: &str) -> Filing {
        match status.strip_prefix('=') {
            Some(target) => self
                .groups
                .find(target)
                .map_or(Filing::Nowhere, Filing::Alias),
            None if matches!(status, "j" | "x") => Filing::Nowhere,
            None => Filing::Here,
        }
    }

    pub(crate) fn set_groups(&mut self, changes: &[(String, GroupChange)]) -> Result<(), Error> {
        let changed = self.check_set(changes)?;
        if !self.fits(octets_to_set(&changed)) {
            return Err(Error::FrameFull);
        }
        self.set_checked(&changed);
        Ok(())
    }

    /// Groups as changes make them, or why they cannot be made so.
    pub(crate) fn check_set(
        &self,
        changes: &[(String, GroupChange)],
    ) -> Result<Vec<(GroupId, GroupSpec)>, Error> {
        let changed: Result<Vec<(GroupId, GroupSpec)>, Error> = changes
            .iter()
            .map(|(name, change)| self.changed(name, change))
            .collect();
        let changed = changed?;
        let is_alias = |(_, spec): &&(_, GroupSpec)| spec.status.starts_with('=');
        let aliases: HashSet<&str> = changed
            .iter()
            .filter(is_alias)
            .map(|(_, spec)| spec.name.as_str())
            .collect();
        for (_, spec) in &changed {
            if let Some(target) = spec.status.strip_prefix('=')
                && aliases.contains(target)
            {
                return Err(alias_of_alias(&spec.name, target));
            }
        }
        Ok(changed)
    }

    /// Changes groups to what was checked and has room.
    pub(crate) fn set_checked(&mut self, changed: &[(GroupId, GroupSpec)]) {
        let time = self.now();
        for (id, spec) in changed {
            GroupRecord {
                id: *id,
                time,
                high: spec.high,
                name: "",
                status: &spec.status,
                description: &spec.description,
                creator: "",
            }
            .encode(self.record(kind::GROUP_CHANGED));
            let filing = self.filing(&spec.status);
            if let Some(slot) = self.groups.get_mut(*id) {
                slot.filing = filing;
                slot.next = slot.next.max(spec.high.0 + 1);
            }
            self.note_unsettled(*id, &spec.name, &spec.status, &spec.description);
        }
    }

    /// The last record made a group such, which the views do not have yet.
    fn note_unsettled(&mut self, id: GroupId, name: &str, status: &str, description: &str) {
        let sequence = Sequence(self.next.0 - 1);
        self.touched.note(sequence, name);
        let unsettled = Unsettled {
            sequence,
            status: status.to_owned(),
            description: description.to_owned(),
        };
        self.unsettled.insert(id, unsettled);
    }

    /// A group as a change makes it, or why it cannot be made so.
    fn changed(&self, name: &str, change: &GroupChange) -> Result<(GroupId, GroupSpec), Error> {
        let id = self.existing(name)?;
        let (status, description) = self.fields(id).ok_or_else(|| no_group(name))?;
        let spec = GroupSpec {
            status: change.status.clone().unwrap_or(status),
            description: change.description.clone().unwrap_or(description),
            high: change.high.unwrap_or_default(),
            ..GroupSpec::new(name)
        };
        check_spec(&spec)?;
        check_high(&self.shared, name, spec.high)?;
        // A target that has gone meanwhile is no reason against a new description.
        if let Some(target) = change
            .status
            .as_deref()
            .and_then(|new| new.strip_prefix('='))
        {
            let target_id = self.existing(target)?;
            if target_id == id {
                return Err(Error::Group(format!(
                    "a group cannot be an alias of itself: {name:?}"
                )));
            }
            if self.is_alias(target_id) {
                return Err(alias_of_alias(name, target));
            }
        }
        Ok((id, spec))
    }

    /// Status and description of a group, as the last change made them: the views may not have that yet.
    fn fields(&self, id: GroupId) -> Option<(String, String)> {
        if let Some(change) = self.unsettled.get(&id) {
            return Some((change.status.clone(), change.description.clone()));
        }
        let group = self.shared.views.groups().by_id(id)?;
        Some((group.status().to_owned(), group.description().to_owned()))
    }

    /// The same of a group by its name; none: it is not here.
    pub(crate) fn fields_of(&self, name: &str) -> Option<(String, String)> {
        self.fields(self.groups.find(name)?)
    }

    pub(crate) fn remove_group(&mut self, name: &str) -> Result<(), Error> {
        let id = self.existing(name)?;
        self.remove_existing(id, name);
        Ok(())
    }

    /// Removes a group that is here and has room.
    pub(crate) fn remove_existing(&mut self, id: GroupId, name: &str) {
        let time = self.now();
        GroupRemovedRecord { id, time }.encode(self.record(kind::GROUP_REMOVED));
        self.groups.remove(id);
        self.touched.note(Sequence(self.next.0 - 1), name);
    }

    pub(crate) fn existing(&self, name: &str) -> Result<GroupId, Error> {
        self.groups.find(name).ok_or_else(|| no_group(name))
    }
}

/// Octets in the log of groups that are made.
pub(crate) fn octets_to_make(groups: &[GroupSpec]) -> usize {
    let text = |group: &GroupSpec| {
        group.name.len() + group.status.len() + group.description.len() + group.creator.len()
    };
    groups.iter().map(|group| text(group) + GROUP_OCTETS).sum()
}

/// Octets in the log of groups that are changed to these.
pub(crate) fn octets_to_set(changed: &[(GroupId, GroupSpec)]) -> usize {
    let octets =
        |(_, spec): &(_, GroupSpec)| GROUP_OCTETS + spec.status.len() + spec.description.len();
    changed.iter().map(octets).sum()
}

fn no_group(name: &str) -> Error {
    Error::Group(format!("there is no group {name:?}"))
}

/// A group whose numbers begin above the last one it may give could never take an article.
fn check_high(
    shared: &Shared,
    name: &str,
    high: newsreel_wire::ArticleNumber,
) -> Result<(), Error> {
    if shared.config.sequencer.number_overflow == NumberOverflow::Larger || high.0 < NUMBER_MAX {
        return Ok(());
    }
    Err(Error::Group(format!(
        "group {name:?} cannot go on above {high}: {NUMBER_MAX} is the last number that RFC 3977 has, and \
         engine.number_overflow is \"stop\" (\"larger\" goes on)"
    )))
}

/// Why these groups cannot be made, all together: `made` were made before, and `there` knows those that exist, and
/// which of them are aliases.
pub(crate) fn check_specs(
    shared: &Shared,
    groups: &[GroupSpec],
    made: usize,
    there: impl Fn(&str) -> Option<bool>,
) -> Result<(), Error> {
    let most = shared.config.sequencer.groups_max as usize;
    if groups.len() > most.saturating_sub(made) {
        return Err(Error::Group(format!(
            "{made} groups were made in this spool, removed ones included, and engine.groups_max is {most}: raise it \
             to add {} more",
            groups.len()
        )));
    }
    let mut others = HashMap::new();
    for group in groups {
        check_spec(group)?;
        check_high(shared, &group.name, group.high)?;
        let other = others.insert(group.name.as_str(), group.status.as_str());
        if there(&group.name).is_some() || other.is_some() {
            return Err(Error::Group(format!(
                "group {:?} is there already",
                group.name
            )));
        }
    }
    for group in groups {
        let Some(target) = group.status.strip_prefix('=') else {
            continue;
        };
        // An alias may name a group of the same request.
        let is_alias =
            there(target).or_else(|| others.get(target).map(|status| status.starts_with('=')));
        let why = match is_alias {
            Some(false) => continue,
            Some(true) => "is an alias itself",
            None => "does not exist",
        };
        return Err(Error::Group(format!(
            "group {:?} is to be filed in {target:?}, which {why}",
            group.name
        )));
    }
    Ok(())
}

fn alias_of_alias(name: &str, target: &str) -> Error {
    Error::Group(format!(
        "{name:?} cannot be filed in {target:?}, which is an alias itself"
    ))
}

/// Names, status and texts must be such as LIST can show.
fn check_spec(group: &GroupSpec) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Group(why));
    if let Err(error) = GroupName::parse(group.name.as_bytes()) {
        return refuse(format!("{:?} is no group name: {error}", group.name));
    }
    let alias = group.status.strip_prefix('=');
    if !matches!(group.status.as_str(), "y" | "n" | "m" | "j" | "x") && alias.is_none() {
        return refuse(format!(
            "status {:?} of group {:?} is none of y, n, m, j, x, =other.group",
            group.status, group.name
        ));
    }
    if let Some(target) = alias
        && let Err(error) = GroupName::parse(target.as_bytes())
    {
        return refuse(format!("{target:?} is no group name: {error}"));
    }
    for (what, text) in [
        ("description", &group.description),
        ("creator", &group.creator),
    ] {
        if text.len() > GROUP_TEXT_OCTETS_MAX || text.chars().any(char::is_control) {
            return refuse(format!(
                "the {what} of group {:?} has control characters or over {GROUP_TEXT_OCTETS_MAX} octets",
                group.name
            ));
        }
    }
    if group.high.0 >= NUMBER_LARGER_MAX {
        return refuse(format!(
            "the high mark {} of group {:?} has more than 16 digits",
            group.high.0, group.name
        ));
    }
    if group.creator.contains(' ') {
        return refuse(format!("creator {:?} has a space in it", group.creator));
    }
    Ok(())
}
