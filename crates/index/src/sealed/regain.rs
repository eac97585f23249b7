//! The manifest made again from what the runs' own headers and footers say, for when it is lost or damaged.
//!
//! The newest checkpoint may be half written, so it counts only where the log no longer reaches back behind it; what the
//! log still has is replayed instead.  A run that covers older ones was merged from them.  Sequences that no run covers
//! get the entry of a run that is not there: it is rebuilt from the store like any that is damaged.  Where the log does
//! not reach back to the newest run, nothing can be decided and nothing is changed.

use std::collections::BTreeSet;
use std::path::Path;

use newsreel_host::{ErrorKind, OpenMode};
use newsreel_wire::Sequence;

use super::ends;
use super::manifest::Manifest;
use super::writer::Place;
use super::{RunKind, RunMeta, parse_run_name, run_paths};
use crate::error::{Error, Result};

/// Behind the names of files that cannot be used and are left for a person to look at.
const ASIDE_SUFFIX: &str = ".bad";

/// A run as its own file tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    meta: RunMeta,
    /// Header and footer are good: it was written to its end.
    is_whole: bool,
}

/// What the files in the directory of the views are.
#[derive(Debug, Default)]
pub(crate) struct Finds {
    found: Vec<Found>,
    /// Runs of which no file is whole.
    broken: Vec<(RunKind, u64)>,
    /// The largest id that any file's name has.
    last_id: u64,
}

/// Looks at all runs in the directory.
pub(crate) fn look(place: &Place) -> Result<Finds> {
    let mut names = BTreeSet::new();
    for entry in place.disk.list(&place.dir)? {
        names.extend(parse_run_name(&entry.name));
    }
    let mut finds = Finds::default();
    for (kind, id) in names {
        finds.last_id = finds.last_id.max(id);
        let mut best: Option<Found> = None;
        for path in run_paths(&place.dir, kind, id) {
            let found = read(place, &path, (kind, id))?;
            best = best.filter(|best| best.is_whole).or(found).or(best);
        }
        if best.is_none_or(|best| !best.is_whole) {
            finds.broken.push((kind, id));
        }
        finds.found.extend(best);
    }
    Ok(finds)
}

/// What a file says of itself; `None`: it is not there, or its header cannot be used.
fn read(place: &Place, path: &Path, of: (RunKind, u64)) -> Result<Option<Found>> {
    let opened = place.disk.open(path, OpenMode::Read).map_err(Error::from);
    let ends = match opened.and_then(|file| ends::read(file.as_ref(), path, &place.spool)) {
        Ok(ends) => ends,
        Err(error) if error.is_damage() => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_whole = match ends.sections {
        Ok(_) => true,
        Err(error) if error.is_damage() => false,
        Err(error) => return Err(error),
    };
    let meta = ends.meta;
    Ok(((meta.kind, meta.id) == of).then_some(Found { meta, is_whole }))
}

fn covers(outer: &RunMeta, inner: &RunMeta) -> bool {
    outer.first <= inner.first && inner.last <= outer.last
}

impl Finds {
    /// Gives another name to the files that neither `manifest` nor anybody could use: what cannot be read today may be
    /// read by somebody else tomorrow, so nothing of it is removed.
    pub(crate) fn set_aside(&self, place: &Place, manifest: &Manifest) -> Result<()> {
        let is_named = |of: &(RunKind, u64)| {
            let mut runs = manifest.runs.iter();
            runs.any(|run| (run.kind, run.id) == *of)
        };
        for (kind, id) in self.broken.iter().filter(|of| !is_named(of)) {
            for path in run_paths(&place.dir, *kind, *id) {
                let mut aside = path.clone().into_os_string();
                aside.push(ASIDE_SUFFIX);
                match place.disk.rename(&path, Path::new(&aside)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The manifest, for a log that begins at `log_from`; `None`: it does not reach back to the newest runs.
    pub(crate) fn manifest(&self, log_from: Sequence) -> Option<Manifest> {
        let whole: Vec<RunMeta> = self
            .found
            .iter()
            .filter(|found| found.is_whole && !self.is_superseded(&found.meta))
            .map(|found| found.meta)
            .collect();
        let checkpoint = checkpoint(&whole, Sequence(log_from.0.saturating_sub(1)))?;
        let mut manifest = Manifest {
            generation: 1,
            checkpoint,
            next_run: self.last_id + 1,
            ..Manifest::default()
        };
        for kind in RunKind::ALL {
            let kept = whole.iter().filter(|run| run.kind == kind);
            let mut runs: Vec<RunMeta> =
                kept.filter(|run| run.last <= checkpoint).copied().collect();
            runs.sort_by_key(|run| (run.first, run.last, run.id));
            if kind == RunKind::Overview {
                drop_overlapping(&mut runs);
            }
            let mut gaps = gaps(&runs, checkpoint);
            if kind == RunKind::Groups {
                // Not every checkpoint has group rows, but every one with overview rows has; of a lost one nobody knows.
                let meets = |gap: &(Sequence, Sequence)| {
                    let mut overview = manifest.of_kind(RunKind::Overview);
                    overview.any(|run| run.first <= gap.1 && gap.0 <= run.last)
                };
                gaps.retain(meets);
            }
            for gap in gaps {
                let stand_in = self.stand_in(kind, gap, &mut manifest.next_run);
                runs.push(stand_in);
            }
            runs.sort_by_key(|run| (run.first, run.last, run.id));
            manifest.runs.extend(runs);
        }
        Some(manifest)
    }

    /// Whether a newer run was merged from it and others.
    fn is_superseded(&self, run: &RunMeta) -> bool {
        self.found.iter().any(|other| {
            let is_larger = (other.meta.first, other.meta.last) != (run.first, run.last);
            let is_newer = other.meta.kind == run.kind && other.meta.id > run.id;
            other.is_whole && is_newer && is_larger && covers(&other.meta, run)
        })
    }

    /// What is named for sequences that no good run covers: a file that is left of them, or none.
    fn stand_in(&self, kind: RunKind, range: (Sequence, Sequence), next_run: &mut u64) -> RunMeta {
        let of_gap = |found: &&Found| {
            let meta = &found.meta;
            !found.is_whole && meta.kind == kind && range.0 <= meta.first && meta.last <= range.1
        };
        let left = self
            .found
            .iter()
            .filter(of_gap)
            .max_by_key(|found| found.meta.len);
        let id = left.map_or_else(
            || {
                *next_run += 1;
                *next_run - 1
            },
            |left| left.meta.id,
        );
        RunMeta::unwritten(kind, id, range)
    }
}

/// Up to where the runs count, when everything up to `retired` is in no log any more.
fn checkpoint(whole: &[RunMeta], retired: Sequence) -> Option<Sequence> {
    let ends: BTreeSet<Sequence> = whole.iter().map(|run| run.last).collect();
    let mut newest = ends.iter().rev().copied().chain([Sequence::ZERO]);
    let last = newest.next().unwrap_or_default();
    let mut checkpoint = newest
        .next()
        .filter(|before| *before >= retired)
        .or(Some(last).filter(|last| *last >= retired))?;
    // What was merged across it had been committed.
    while let Some(across) = whole
        .iter()
        .find(|run| run.first <= checkpoint && checkpoint < run.last)
    {
        checkpoint = across.last;
    }
    Some(checkpoint)
}

/// Takes out what has sequences in common: nobody knows which of them counts.
fn drop_overlapping(runs: &mut Vec<RunMeta>) {
    let all = runs.clone();
    runs.retain(|run| {
        let meets = |other: &RunMeta| {
            other.id != run.id && other.first <= run.last && run.first <= other.last
        };
        !all.iter().any(meets)
    });
}

/// The sequences up to `checkpoint` that none of the runs covers; they are sorted.
fn gaps(runs: &[RunMeta], checkpoint: Sequence) -> Vec<(Sequence, Sequence)> {
    let mut gaps = Vec::new();
    let mut next = Sequence(1);
    for run in runs {
        if run.first > next {
            gaps.push((next, Sequence(run.first.0 - 1)));
        }
        next = next.max(run.last.next());
    }
    if next <= checkpoint {
        gaps.push((next, checkpoint));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs as (kind, id, first, last).
    fn finds(runs: &[(RunKind, u64, u64, u64)]) -> Finds {
        let found = |&(kind, id, first, last)| Found {
            meta: RunMeta {
                kind,
                id,
                len: 9000,
                first: Sequence(first),
                last: Sequence(last),
                rows: 3,
            },
            is_whole: true,
        };
        Finds {
            found: runs.iter().map(found).collect(),
            broken: Vec::new(),
            last_id: runs.iter().map(|run| run.1).max().unwrap_or(0),
        }
    }

    /// The checkpoint, and the runs as `kind id first-last`; those that must be rebuilt with a question mark.
    fn check(runs: &[(RunKind, u64, u64, u64)], log_from: u64, expect: &str) {
        let manifest = finds(runs).manifest(Sequence(log_from));
        let text = manifest.map_or("refused".to_owned(), |manifest| {
            let run = |run: &RunMeta| {
                let mark = if run.len == 0 { "?" } else { "" };
                format!(
                    " {}{mark}:{}:{}-{}",
                    run.kind, run.id, run.first.0, run.last.0
                )
            };
            let runs: String = manifest.runs.iter().map(run).collect();
            format!("{}{runs}", manifest.checkpoint.0)
        });
        assert_eq!(text, expect);
    }

    const H: RunKind = RunKind::History;
    const O: RunKind = RunKind::Overview;
    const G: RunKind = RunKind::Groups;

    #[test]
    fn the_newest_checkpoint_counts_only_where_the_log_does_not_have_it() {
        let two = [(H, 1, 1, 10), (O, 2, 1, 10), (G, 3, 1, 10), (H, 4, 11, 20)];
        check(&two, 1, "10 history:1:1-10 overview:2:1-10 groups:3:1-10");
        check(&two, 11, "10 history:1:1-10 overview:2:1-10 groups:3:1-10");
        // Log of the second one is gone, so it was whole; what is missing is rebuilt.
        check(
            &two,
            15,
            "20 history:1:1-10 history:4:11-20 overview:2:1-10 overview?:5:11-20 groups:3:1-10 groups?:6:11-20",
        );
        check(&two, 22, "refused");
        check(&two[..3], 1, "0");
        check(&[], 1, "0");
        check(&[], 2, "refused");
    }

    #[test]
    fn what_was_merged_counts_and_what_it_was_merged_from_does_not() {
        let merged = [
            (H, 1, 1, 10),
            (H, 2, 11, 20),
            (H, 3, 21, 30),
            (H, 7, 1, 20),
            (O, 4, 1, 30),
            (G, 5, 1, 30),
            (G, 6, 1, 30),
        ];
        let expect =
            "30 history:7:1-20 history:3:21-30 overview:4:1-30 groups:5:1-30 groups:6:1-30";
        check(&merged, 21, expect);
        check(&merged, 1, expect);
    }

    #[test]
    fn overview_that_cannot_be_decided_is_rebuilt() {
        let twice = [
            (H, 1, 1, 10),
            (O, 2, 1, 5),
            (O, 3, 6, 10),
            (O, 4, 6, 10),
            (G, 5, 1, 10),
        ];
        let expect = "10 history:1:1-10 overview:2:1-5 overview?:6:6-10 groups:5:1-10";
        check(&twice, 11, expect);
        let lost = [(H, 1, 1, 10), (O, 2, 1, 10), (O, 3, 21, 30), (G, 4, 1, 10)];
        check(
            &lost,
            31,
            "30 history:1:1-10 history?:5:11-30 overview:2:1-10 overview?:6:11-20 overview:3:21-30 groups:4:1-10 \
             groups?:7:11-30",
        );
    }
}
