//! The manifest on the disk and the runs it names: every change goes through here, one at a time.
//!
//! A change is durable before it is believed: new runs and their names are synced, then the manifest is replaced, then
//! the files it no longer names are removed.  When replacing it fails before the switch the new runs are removed, so
//! that trying again and again fills no disk; when it fails at the switch nobody knows which of the two a restart would
//! find, so nothing is removed then, and what is superfluous goes at the next start.

use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::{ErrorKind, Op, OpenMode, read_what_is_left, replace_file, set_aside};
use newsreel_wire::{BufferId, Position, Sequence, UnixTime};
use parking_lot::Mutex;

use super::manifest::{Manifest, OCTETS_MAX, Unusable};
use super::regain;
use super::writer::Place;
use super::{RunKind, RunMeta, parse_run_name, run_paths};
use crate::cursor::Bad;
use crate::error::{Error, Result};
use crate::history::bucket::Remember;

const NAME: &str = "manifest";

/// A change of the manifest.
#[derive(Debug, Default)]
pub(crate) struct Change<'a> {
    /// For each kind, which neighbours are replaced (none: added as the newest) and by what.
    pub(crate) replace: Vec<(RunKind, &'a [u64], &'a [RunMeta])>,
    /// The new checkpoint.
    pub(crate) checkpoint: Option<Sequence>,
    /// Lost runs of group rows that are made up for by this.
    pub(crate) made_up: Vec<u64>,
    /// Where the floors stand now of all buffers that the history names.
    pub(crate) floors: Option<Vec<(BufferId, Position)>>,
}

/// The keeper of the manifest.
#[derive(Debug)]
pub(crate) struct Catalog {
    place: Place,
    manifest: Mutex<Manifest>,
    next_run: AtomicU64,
    time: AtomicU64,
    /// Seconds for which the history remembers what went.
    remember_s: u64,
    /// What was wrong with one of its copies when it was opened.
    found: Option<Bad>,
}

impl Catalog {
    /// Reads the manifest, or begins with none when there are no runs.  Nothing is written.
    pub(crate) fn open(place: Place, remember_s: u64) -> Result<Self> {
        let path = place.dir.join(NAME);
        let lost = |why| {
            Err(Error::ManifestLost {
                path: path.clone(),
                why,
            })
        };
        let (manifest, found) = match read_what_is_left(place.disk.as_ref(), &path, OCTETS_MAX) {
            Ok(bytes) => match Manifest::decode(&bytes, &place.spool) {
                Ok(read) => read,
                Err(Unusable::Damaged(Bad(why))) => return lost(why),
                Err(Unusable::Foreign) => {
                    let why = "it belongs to another spool";
                    return Err(Error::Manifest { path, why });
                }
                Err(Unusable::Newer) => {
                    let why = "it is of a version this newsreel does not know";
                    return Err(Error::Manifest { path, why });
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if has_runs(&place)? {
                    return lost("it is missing, and sealed files are there");
                }
                (Manifest::default(), None)
            }
            Err(error) if error.kind() == ErrorKind::NotAFile => {
                return lost("something else stands in its place");
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self::with(place, remember_s, (manifest, found)))
    }

    /// Begins with none, whatever runs are there.
    pub(crate) fn begin(place: Place, remember_s: u64) -> Self {
        Self::with(place, remember_s, (Manifest::default(), None))
    }

    fn with(place: Place, remember_s: u64, (manifest, found): (Manifest, Option<Bad>)) -> Self {
        Self {
            next_run: AtomicU64::new(manifest.next_run.max(1)),
            time: AtomicU64::new(manifest.time.0),
            remember_s,
            manifest: Mutex::new(manifest),
            place,
            found,
        }
    }

    /// Whether no manifest is there beside runs of which none counts: a log that begins at `log_from` has all that they have.
    pub(crate) fn is_still_to_come(place: &Place, log_from: Sequence) -> Result<bool> {
        if log_from > Sequence(1) || place.disk.exists(&place.dir.join(NAME))? {
            return Ok(false);
        }
        let manifest = regain::look(place)?.manifest(log_from);
        Ok(manifest.is_some_and(|manifest| manifest.runs.is_empty()))
    }

    /// Makes a lost manifest again from the runs, for a log that begins at `log_from`.
    pub(crate) fn regain(place: &Place, log_from: Sequence) -> Result<Manifest> {
        let path = place.dir.join(NAME);
        let finds = regain::look(place)?;
        let Some(manifest) = finds.manifest(log_from) else {
            return Err(Error::Manifest {
                path,
                why: "it is lost, and the sealed files beside it end before what is left of the log begins",
            });
        };
        finds.set_aside(place, &manifest)?;
        let there = place.disk.open(&path, OpenMode::Read);
        if there.is_err_and(|error| error.kind() == ErrorKind::NotAFile) {
            set_aside(place.disk.as_ref(), &path)?;
        }
        replace_file(place.disk.as_ref(), &path, &manifest.encode(&place.spool))?;
        Ok(manifest)
    }

    /// Whether the manifest on the disk is still the one that was opened.
    pub(crate) fn is_current(&self) -> Result<bool> {
        let Place { disk, dir, spool } = &self.place;
        let opened = self.manifest.lock();
        match read_what_is_left(disk.as_ref(), &dir.join(NAME), OCTETS_MAX) {
            Ok(bytes) => Ok(Manifest::decode(&bytes, spool)
                .is_ok_and(|(manifest, _)| manifest.generation == opened.generation)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(opened.generation == 0),
            Err(error) => Err(error.into()),
        }
    }

    /// What is wrong with the manifest as it is on the disk now; none: nothing, or there is none.
    pub(crate) fn damage(&self) -> Result<Option<String>> {
        let Place { disk, dir, spool } = &self.place;
        let path = dir.join(NAME);
        let why = match read_what_is_left(disk.as_ref(), &path, OCTETS_MAX) {
            Ok(bytes) => match Manifest::decode(&bytes, spool) {
                Ok((_, None)) => return Ok(None),
                Ok((_, Some(Bad(why)))) | Err(Unusable::Damaged(Bad(why))) => why,
                Err(Unusable::Foreign | Unusable::Newer) => "it is not the one that was opened",
            },
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(format!("{}: {why}", path.display())))
    }

    /// Makes the directory, writes a manifest again of which a copy was damaged when it was opened, and removes runs that the
    /// manifest does not name (sets directories aside).  Only who has the spool's lock may: beside a writer they are what the
    /// next manifest will name; `told` are those of which the log tells.
    pub(crate) fn sweep(&self, told: &[(RunKind, u64)]) -> Result<()> {
        let manifest = self.manifest.lock();
        self.place.disk.create_dir_all(&self.place.dir)?;
        if let Some(Bad(damage)) = self.found {
            let path = self.place.dir.join(NAME);
            tracing::warn!(target: "newsreel::index", path = %path.display(), damage, "the manifest is written again");
            let content = manifest.encode(&self.place.spool);
            replace_file(self.place.disk.as_ref(), &path, &content)?;
        }
        for entry in self.place.disk.list(&self.place.dir)? {
            let Some(of) = parse_run_name(&entry.name) else {
                continue;
            };
            let is_named = manifest.runs.iter().any(|run| (run.kind, run.id) == of);
            if !is_named && !told.contains(&of) {
                let (disk, path) = (&self.place.disk, self.place.dir.join(&entry.name));
                match entry.is_dir {
                    true => drop(set_aside(disk.as_ref(), &path)?),
                    false => disk.remove(&path)?,
                }
            }
        }
        Ok(())
    }

    /// Where runs are made.
    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// The manifest as it is now.
    pub(crate) fn manifest(&self) -> Manifest {
        self.manifest.lock().clone()
    }

    /// An id for a new run.
    pub(crate) fn new_run(&self) -> u64 {
        self.next_run.fetch_add(1, Ordering::Relaxed)
    }

    /// The log tells of a run with this id: it is not given again.
    pub(crate) fn skip_run(&self, id: u64) {
        self.next_run
            .fetch_max(id.saturating_add(1), Ordering::Relaxed);
    }

    /// The latest time the views were given.
    pub(crate) fn time(&self) -> UnixTime {
        UnixTime(self.time.load(Ordering::Relaxed))
    }

    /// Time goes on; it never steps back.
    pub(crate) fn set_time(&self, time: UnixTime) {
        if time > self.time() {
            self.time.fetch_max(time.0, Ordering::Relaxed);
        }
    }

    /// The time is this, whatever it was.
    pub(crate) fn reset_time(&self, time: UnixTime) {
        self.time.store(time.0, Ordering::Relaxed);
    }

    /// Since when the history remembers what went.
    pub(crate) fn remember(&self) -> Remember {
        let since = UnixTime(self.time().0.saturating_sub(self.remember_s));
        let floors = self.manifest.lock().past.before(since);
        Remember { since, floors }
    }

    /// Removes runs that no manifest names.
    pub(crate) fn discard<'a>(&self, runs: impl IntoIterator<Item = &'a RunMeta>) {
        for run in runs {
            self.remove(run.kind, run.id);
        }
    }

    /// Removes a run's files.  What stays behind is an orphan and goes at the next start.
    fn remove(&self, kind: RunKind, id: u64) {
        for path in run_paths(&self.place.dir, kind, id) {
            let _ = self.place.disk.remove(&path);
        }
    }

    /// Makes a change durable, then removes the files that no longer count: the old ones, or after a failure the new
    /// ones.
    pub(crate) fn commit(&self, change: &Change<'_>) -> Result<()> {
        let mut may_be_switched = false;
        let result = self.switch(change, &mut may_be_switched);
        if result.is_err() && !may_be_switched {
            self.discard(change.replace.iter().flat_map(|(_, _, new)| *new));
        }
        result
    }

    fn switch(&self, change: &Change<'_>, may_be_switched: &mut bool) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.generation += 1;
        next.next_run = self.next_run.load(Ordering::Relaxed);
        next.time = self.time();
        if let Some(checkpoint) = change.checkpoint {
            next.checkpoint = checkpoint;
        }
        for (kind, old, new) in &change.replace {
            if !next.replace(*kind, old, new) {
                return Err(Error::NotDamaged {
                    run: old.first().copied().unwrap_or(0),
                });
            }
        }
        let Place { disk, dir, spool } = &self.place;
        next.made_up.extend(&change.made_up);
        if let Some(floors) = &change.floors {
            next.past.note(next.time, self.remember_s, floors);
        }
        // The names of the new runs first: the manifest must never name what a crash could take away.
        disk.sync_dir(dir)?;
        let path = dir.join(NAME);
        let temporary = path.with_extension("new");
        replace_file(disk.as_ref(), &path, &next.encode(spool)).inspect_err(|error| {
            *may_be_switched = error.path() != temporary || error.op() == Op::Rename;
        })?;
        *manifest = next;
        for (kind, old, _) in &change.replace {
            for id in *old {
                self.remove(*kind, *id);
            }
        }
        Ok(())
    }
}

fn has_runs(place: &Place) -> Result<bool> {
    match place.disk.list(&place.dir) {
        Ok(files) => Ok(files
            .iter()
            .any(|file| parse_run_name(&file.name).is_some())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
