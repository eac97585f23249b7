//! The three views together: opened from one manifest, brought forward by one applier, checkpointed as one.
//!
//! Everything that changes rows goes through [`Applier`](crate::Applier), of which there is one; everything here may be used from any
//! thread.  The views read no clock: time is what the engine gives them from the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use newsreel_host::Disk;
use newsreel_wire::{ArticleNumber, BufferId, GroupId, Position, Sequence, UnixTime};
use parking_lot::Mutex;

use crate::compact::Compaction;
use crate::config::IndexConfig;
use crate::error::{Error, Result};
use crate::groups::Groups;
use crate::groups::seal::GroupFile;
use crate::history::bucket::Remember;
use crate::history::{History, HistoryFacts};
use crate::layers::Layers;
use crate::liveness::Liveness;
use crate::overview::withdrawn::Withdrawn;
use crate::overview::{Overview, OverviewFacts};
use crate::repack::Repacks;
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::Wait;
use crate::sealed::set::{DamagedRun, Damages};
use crate::sealed::writer::Place;

/// A group's marks and count, as GROUP answers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupFacts {
    /// The lowest number alive; one more than `high` when none is (RFC 3977 section 6.1.1).
    pub low: ArticleNumber,
    /// The largest number ever given.
    pub high: ArticleNumber,
    /// How many articles are alive.
    pub count: u64,
}

/// What the views hold and take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewsFacts {
    /// The history.
    pub history: HistoryFacts,
    /// The overview.
    pub overview: OverviewFacts,
    /// Groups that are there.
    pub groups: usize,
    /// Octets of memory for groups.
    pub groups_bytes: u64,
    /// Runs of group rows, each of two files.
    pub group_runs: usize,
    /// The last checkpoint.
    pub checkpoint: Sequence,
}

/// History, overview and groups.
#[derive(Debug)]
pub struct Views {
    pub(crate) history: History,
    pub(crate) overview: Overview,
    pub(crate) groups: Groups,
    pub(crate) group_files: Layers<GroupFile>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) config: IndexConfig,
    pub(crate) damages: Arc<Damages>,
    /// Withdrawn since the last freeze.
    pub(crate) withdrawn: Mutex<Vec<Withdrawn>>,
    /// How often something was withdrawn.
    pub(crate) withdrawals: AtomicU64,
    /// A checkpoint is frozen and not installed.
    pub(crate) is_frozen: AtomicBool,
    pub(crate) compaction: Mutex<Compaction>,
    pub(crate) repacks: Repacks,
}

impl Views {
    /// Opens the views in `dir`, or begins them; the checkpoint says up to which sequence they are complete, the log has
    /// the rest.  Sealed files that cannot be used are listed by [`Views::damaged`].  Nothing is written: who will write
    /// here calls [`Views::sweep`] first.
    ///
    /// # Errors
    /// When the disk fails or the manifest cannot be used.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: IndexConfig,
        spool: [u8; 16],
        liveness: Arc<dyn Liveness>,
    ) -> Result<(Arc<Self>, Option<Sequence>)> {
        let place = Place {
            disk,
            dir: dir.to_path_buf(),
            spool,
        };
        Self::of(Catalog::open(place, config.remember_s)?, config, &liveness)
    }

    /// Begins them anew in `dir` where the manifest [is still to come](Self::is_manifest_to_come), whatever runs are there.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open_anew(
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: IndexConfig,
        spool: [u8; 16],
        liveness: Arc<dyn Liveness>,
    ) -> Result<Arc<Self>> {
        let place = Place {
            disk,
            dir: dir.to_path_buf(),
            spool,
        };
        let catalog = Catalog::begin(place, config.remember_s);
        Ok(Self::of(catalog, config, &liveness)?.0)
    }

    fn of(
        catalog: Catalog,
        config: IndexConfig,
        liveness: &Arc<dyn Liveness>,
    ) -> Result<(Arc<Self>, Option<Sequence>)> {
        let catalog = Arc::new(catalog);
        let damages = Arc::new(Damages::default());
        let groups = Groups::default();
        let views = Self {
            history: History::open(&catalog, liveness, &damages, config.history_cache_bytes_max)?,
            overview: Overview::open(&catalog, &config, liveness, &damages, groups.marks())?,
            groups,
            group_files: Layers::open(&catalog, &damages)?,
            damages,
            config,
            withdrawn: Mutex::default(),
            withdrawals: AtomicU64::new(0),
            is_frozen: AtomicBool::new(false),
            compaction: Mutex::default(),
            repacks: Repacks::default(),
            catalog,
        };
        views.load_groups()?;
        let checkpoint = views.catalog.manifest().checkpoint;
        Ok((
            Arc::new(views),
            Some(checkpoint).filter(|sequence| *sequence > Sequence::ZERO),
        ))
    }

    /// Makes the directory and removes what a crash left there.  Behind the replay of the log, which may tell of files that the
    /// next checkpoint will need, and only by who has the spool's lock: beside a writer there are more of them.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sweep(&self) -> Result<()> {
        self.catalog.sweep(&self.repacks.files())
    }

    /// Whether these are still the views on the disk.  Beside a writer, files that are missing may have been replaced.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn is_current(&self) -> Result<bool> {
        self.catalog.is_current()
    }

    /// Whether there is no manifest beside sealed files, and nothing is lost for that: the log, which begins at `log_from`, has all that
    /// they have.  So it is behind a kill in the first checkpoint.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn is_manifest_to_come(
        disk: Arc<dyn Disk>,
        dir: &Path,
        spool: [u8; 16],
        log_from: Sequence,
    ) -> Result<bool> {
        let dir = dir.to_path_buf();
        Catalog::is_still_to_come(&Place { disk, dir, spool }, log_from)
    }

    /// Makes a lost manifest again from what the sealed files say of themselves; then the views can be opened.  The log
    /// begins at `log_from`: what it still has need not be trusted to the files.  The checkpoint, and how many files have
    /// to be rebuilt.
    ///
    /// # Errors
    /// [`Error::Manifest`] when the files and the log do not reach each other; nothing is
    /// changed then.
    pub fn regain(
        disk: Arc<dyn Disk>,
        dir: &Path,
        spool: [u8; 16],
        log_from: Sequence,
    ) -> Result<(Sequence, usize)> {
        let dir = dir.to_path_buf();
        let manifest = Catalog::regain(&Place { disk, dir, spool }, log_from)?;
        let lost = manifest.runs.iter().filter(|run| run.len == 0);
        Ok((manifest.checkpoint, lost.count()))
    }

    /// Message-ids and where their articles are.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Groups, numbers and overview lines.
    #[must_use]
    pub const fn overview(&self) -> &Overview {
        &self.overview
    }

    /// The groups themselves.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Counts what is withdrawn.  Who finds an article, copies it and then finds this as it was before has one that was
    /// not withdrawn meanwhile.
    #[must_use]
    pub fn withdrawals(&self) -> u64 {
        self.withdrawals.load(Ordering::Acquire)
    }

    /// Differs from what it was before whenever something was withdrawn of these groups.
    #[must_use]
    pub fn withdrawal_mark(&self, groups: &[GroupId]) -> u64 {
        self.overview.withdrawn().mark_of(groups)
    }

    /// A group's marks and count, exact at this moment.
    ///
    /// # Errors
    /// When the disk fails, or [`Error::WouldBlock`].
    pub fn group_facts(&self, group: GroupId, wait: Wait) -> Result<GroupFacts> {
        // First the count, then the mark, which rises before the row is there: so it is never below what was counted.
        let live = self.overview.live_facts(group, wait)?;
        let high = self.groups.high(group);
        Ok(GroupFacts {
            low: live.low.unwrap_or_else(|| high.next()),
            high,
            count: live.count,
        })
    }

    /// The same where rows of the group cannot be read: the high mark is exact, no number below the low one is alive, and the
    /// count is as large as it can be.  `false`: it is such an estimate.
    ///
    /// # Errors
    /// When the disk fails otherwise than by damage, or [`Error::WouldBlock`].
    pub fn group_facts_or_estimate(
        &self,
        group: GroupId,
        wait: Wait,
    ) -> Result<(GroupFacts, bool)> {
        match self.group_facts(group, wait) {
            Ok(facts) => Ok((facts, true)),
            Err(error) if error.is_damage() || matches!(error, Error::Incomplete { .. }) => {
                let low = self.overview.low_estimate(group);
                let high = self.groups.high(group);
                let low = low.unwrap_or_else(|| high.next());
                let count = high.next().0.saturating_sub(low.0);
                Ok((GroupFacts { low, high, count }, false))
            }
            Err(error) => Err(error),
        }
    }

    /// Up to which sequence the sealed files are complete; the log before it is not needed here any more.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Sequence> {
        let checkpoint = self.catalog.manifest().checkpoint;
        Some(checkpoint).filter(|sequence| *sequence > Sequence::ZERO)
    }

    /// Whether a checkpoint is under way, which the manifest may name already: its rows are still read from memory.
    #[must_use]
    pub fn is_checkpointing(&self) -> bool {
        self.is_frozen.load(Ordering::Acquire)
    }

    /// Whether enough is in memory for a checkpoint, and none is under way.
    #[must_use]
    pub fn checkpoint_due(&self) -> bool {
        !self.is_frozen.load(Ordering::Acquire)
            && (self.overview.active_octets() >= self.config.tail_bytes_max
                || self.history.active_rows() >= self.config.history_rows_max)
    }

    /// Tells the time of the log; the history forgets by it.  It never steps back.
    pub fn set_time(&self, time: UnixTime) {
        self.catalog.set_time(time);
    }

    /// Sets the time of the log, also back: somebody said that it is right.
    pub fn reset_time(&self, time: UnixTime) {
        self.catalog.reset_time(time);
    }

    /// The time of the log; `None` when it never told one.
    #[must_use]
    pub fn time(&self) -> Option<UnixTime> {
        Some(self.catalog.time()).filter(|time| *time > UnixTime(0))
    }

    pub(crate) fn remember(&self) -> Remember {
        self.catalog.remember()
    }

    /// The largest position in each buffer that a sealed file names.
    #[must_use]
    pub fn last_positions(&self) -> Vec<(BufferId, Position)> {
        let mut last = BTreeMap::new();
        let mut note = |buffer: BufferId, position: Position| {
            let known = last.entry(buffer).or_insert(position);
            *known = position.max(*known);
        };
        for bucket in self.history.layers.runs().open() {
            let buffers = bucket.facts.buffers.iter();
            buffers.for_each(|facts| note(facts.buffer, facts.last));
        }
        for pack in self.overview.layers.runs().open() {
            pack.buffers()
                .for_each(|facts| note(facts.buffer, facts.last));
        }
        last.into_iter().collect()
    }

    /// Sealed files that have to be made anew, each with the log sequences it covers.
    #[must_use]
    pub fn damaged(&self) -> Vec<DamagedRun> {
        let lost = self.damages.list();
        let mut worn = self.history.layers.bad_files();
        worn.extend(self.group_files.bad_files());
        worn.retain(|file| lost.iter().all(|run| run.run != file.run));
        [lost, worn].concat()
    }

    /// Looks at all that is kept twice, in both places; [`Views::damaged`] tells afterwards what is bad.  Returns what is wrong
    /// with the manifest, which the next checkpoint writes anew.
    ///
    /// # Errors
    /// When the disk fails otherwise than by damage.
    pub fn check_files(&self) -> Result<Option<String>> {
        self.history.layers.check_files()?;
        self.group_files.check_files()?;
        self.catalog.damage()
    }

    /// Numbers for reports.
    #[must_use]
    pub fn facts(&self) -> ViewsFacts {
        ViewsFacts {
            history: self.history.facts(),
            overview: self.overview.facts(),
            groups: self.groups.len(),
            groups_bytes: self.groups.memory_bytes(),
            group_runs: self.group_files.runs().slots.len(),
            checkpoint: self.catalog.manifest().checkpoint,
        }
    }
}
