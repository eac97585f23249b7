//! Group rows that are lost in both files: what they told of is not given again, and the loss stays in sight.
//!
//! A lost run stays in the manifest until somebody puts its file back or says that it is to be forgotten.  The first
//! checkpoint behind the loss tells of all groups that are known and of all marks; from then on the run is made up for:
//! numbers and ids need not jump a second time.  Rows that rot while they are in memory are no loss: the next checkpoint
//! tells them again, and only that takes the rotten run out of the manifest.

use std::collections::BTreeSet;

use newsreel_wire::{ArticleNumber, GroupId, Sequence, UnixTime};

use crate::error::{Error, Result};
use crate::groups::seal::GroupRun;
use crate::groups::{GROUPS_MAX, GroupRow};
use crate::sealed::catalog::Change;
use crate::sealed::set::DamagedRun;
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// Damaged runs of group rows that a checkpoint makes good.
#[derive(Debug, Default)]
pub(crate) struct Retold {
    /// What was in them is in memory: these go.
    pub(crate) damaged: Vec<u64>,
    /// What was in them is lost, and made up for.
    pub(crate) made_up: Vec<u64>,
}

impl Retold {
    pub(crate) fn is_any(&self) -> bool {
        !self.damaged.is_empty() || !self.made_up.is_empty()
    }
}

/// How many sequences it covers.
fn sequences(first: Sequence, last: Sequence) -> u64 {
    last.0.saturating_sub(first.0).saturating_add(1)
}

/// As many groups can have been made in it, `next` being the next id that is known: each has a row and a mark.
fn ids_in(meta: &RunMeta, next: GroupId) -> u32 {
    let made = sequences(meta.first, meta.last);
    let made = match meta.rows {
        0 => made,
        rows => made.min(rows / 2 + 1),
    };
    // Some must be left to go on with.
    let room = (GROUPS_MAX as u64).saturating_sub(next.0.into()) / 2;
    u32::try_from(made.min(room)).unwrap_or(0)
}

impl Views {
    /// Takes the groups up from their runs.
    pub(crate) fn load_groups(&self) -> Result<()> {
        let mut lost = Vec::new();
        for slot in self.group_files.runs().slots.iter() {
            match slot.run.as_ref().map(|file| file.read()) {
                Some(Ok(run)) => self.take_up(&run),
                Some(Err(error)) => {
                    self.group_files.unless_damage(&slot.meta, error)?;
                    lost.push(slot.meta);
                }
                None => lost.push(slot.meta),
            }
        }
        if !lost.is_empty() {
            self.guard(&lost);
        }
        Ok(())
    }

    fn take_up(&self, run: &GroupRun) {
        self.groups.load(run);
        for withdrawn in &run.withdrawn {
            self.overview.withdrawn().add(*withdrawn);
        }
    }

    /// Names are lost, but numbers and ids must not be given twice.
    fn guard(&self, lost: &[RunMeta]) {
        let (groups, made_up) = (&self.groups, self.catalog.manifest().made_up);
        self.overview.last_numbers(|group, last| {
            groups.filed(group, last);
            groups.skip_ids(GroupId(group.0 + 1));
        });
        for meta in lost {
            self.damages.lose(meta.id);
            if !made_up.contains(&meta.id) {
                let next = groups.next_id();
                groups.skip_ids(GroupId(next.0 + ids_in(meta, next)));
            }
        }
        let last = lost.iter().map(|meta| meta.last.0).max();
        groups.set_lost_numbers(ArticleNumber(last.unwrap_or(0)));
    }

    /// Runs of group rows that are lost, each in the form of its damage.
    #[must_use]
    pub fn lost_groups(&self) -> Vec<DamagedRun> {
        let mut lost = self.damages.list();
        lost.retain(|run| run.is_lost);
        lost
    }

    /// How many sequences the lost files of group rows cover that are not made up for: no group gave more numbers that
    /// nobody knows of any more.
    #[must_use]
    pub fn numbers_lost(&self) -> u64 {
        let made_up = self.catalog.manifest().made_up;
        let lost = self.lost_groups().into_iter();
        lost.filter(|run| !made_up.contains(&run.run))
            .map(|run| sequences(run.first, run.last))
            .sum()
    }

    /// Groups that have overview rows and are not known otherwise.
    #[must_use]
    pub fn nameless(&self) -> Vec<GroupId> {
        let mut ids: BTreeSet<GroupId> = BTreeSet::new();
        self.overview.last_numbers(|group, _| {
            ids.insert(group);
        });
        for part in self.overview.layers.load().parts() {
            ids.extend(part.groups());
        }
        ids.retain(|id| !self.groups.is_named(*id));
        ids.into_iter().collect()
    }

    /// Takes up a group again whose row is lost.  `removed`: it had been removed then.
    ///
    /// # Errors
    /// When its id is too large.
    pub fn bring_back(&self, group: &GroupRow<'_>, removed: Option<UnixTime>) -> Result<()> {
        self.groups.make(group)?;
        if let Some(time) = removed {
            self.groups.remove(group.id, time);
        }
        Ok(())
    }

    /// Makes do without what is lost of the group rows: the files' names and what is left of them go.  How many runs.
    ///
    /// # Errors
    /// [`Error::Busy`] as long as no checkpoint has made up for them; otherwise when the disk fails.
    pub fn forget_lost_groups(&self) -> Result<usize> {
        let ids: Vec<u64> = self.lost_groups().iter().map(|run| run.run).collect();
        let made_up = self.catalog.manifest().made_up;
        if ids.iter().any(|id| !made_up.contains(id)) {
            return Err(Error::Busy);
        }
        let gone = ids.chunks(1).map(|id| (RunKind::Groups, id, &[][..]));
        self.catalog.commit(&Change {
            replace: gone.collect(),
            ..Change::default()
        })?;
        self.damages.forget(&ids);
        self.group_files.drop_runs(&ids);
        self.groups.set_lost_numbers(ArticleNumber(0));
        Ok(ids.len())
    }

    /// What a checkpoint that is begun now has to make good; it tells of all groups then.
    pub(crate) fn retell(&self) -> Retold {
        let made_up = self.catalog.manifest().made_up;
        let mut retold = Retold::default();
        for run in self.damages.list() {
            match run.kind {
                RunKind::Groups if !run.is_lost => retold.damaged.push(run.run),
                RunKind::Groups if !made_up.contains(&run.run) => retold.made_up.push(run.run),
                _ => {}
            }
        }
        if retold.is_any() {
            let nameless = self.nameless();
            if let Some(last) = nameless.last() {
                self.groups.skip_ids(GroupId(last.0 + 1));
            }
            self.groups.tell_again();
        }
        retold
    }
}
