//! Groups on the disk: the attributes that changed, the high marks that rose, what was withdrawn.
//!
//! Names, marks and withdrawals are nowhere else once the log has passed them, so every run is written twice, as two files
//! next to each other in the manifest.  Taking up both does no harm.  Layout: `docs/formats/group-rows.md`.

use std::collections::BTreeMap;

use newsreel_wire::{ArticleNumber, GroupId, Sequence};

use super::row::Group;
use crate::cursor::{Bad, Cursor};
use crate::error::{Error, Result};
use crate::liveness::Floors;
use crate::overview::withdrawn::Withdrawn;
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::RunFile;
use crate::sealed::writer::RunWriter;
use crate::sealed::{RunKind, RunMeta};

const ROWS: u32 = 1;
const MARKS: u32 = 2;
const WITHDRAWN: u32 = 3;

/// What a run of group rows holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct GroupRun {
    pub(crate) rows: Vec<Group>,
    pub(crate) marks: Vec<(GroupId, ArticleNumber)>,
    pub(crate) withdrawn: Vec<Withdrawn>,
}

impl GroupRun {
    fn len(&self) -> usize {
        self.rows.len() + self.marks.len() + self.withdrawn.len()
    }

    /// Writes it twice; nothing when there is nothing to write.
    pub(crate) fn write(
        &self,
        catalog: &Catalog,
        range: (Sequence, Sequence),
    ) -> Result<Vec<RunMeta>> {
        if self.len() == 0 {
            return Ok(Vec::new());
        }
        let (mut rows, mut marks, mut withdrawn) = (Vec::new(), Vec::new(), Vec::new());
        for row in &self.rows {
            let len = u32::try_from(row.octets().len()).unwrap_or(u32::MAX);
            rows.extend_from_slice(&len.to_le_bytes());
            rows.extend_from_slice(row.octets());
        }
        for (group, number) in &self.marks {
            marks.extend_from_slice(&group.0.to_le_bytes());
            marks.extend_from_slice(&number.0.to_le_bytes());
        }
        self.withdrawn
            .iter()
            .for_each(|one| one.encode(&mut withdrawn));
        let write_one = || {
            let (place, id) = (catalog.place(), catalog.new_run());
            let mut run = RunWriter::create(place, RunKind::Groups, id, range)?;
            run.section(ROWS, &rows)?;
            run.section(MARKS, &marks)?;
            run.section(WITHDRAWN, &withdrawn)?;
            run.finish(self.len() as u64)
        };
        let first = write_one()?;
        match write_one() {
            Ok(second) => Ok(vec![first, second]),
            Err(error) => {
                catalog.discard([&first]);
                Err(error)
            }
        }
    }

    /// Reads one.
    pub(crate) fn read(catalog: &Catalog, meta: &RunMeta) -> Result<Self> {
        let place = catalog.place();
        let run = RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta)?;
        Self::of(&run)
    }

    /// Reads an open run.
    pub(crate) fn of(run: &RunFile) -> Result<Self> {
        let (rows, marks) = (run.section(ROWS)?, run.section(MARKS)?);
        let withdrawn = run.section(WITHDRAWN)?;
        Self::decode(&rows, &marks, &withdrawn).map_err(|why| run.damage(0, why))
    }

    /// Reads whichever of two copies is good; damaged ones are handed to `note`.
    pub(crate) fn read_any(
        catalog: &Catalog,
        pair: &[RunMeta],
        note: impl Fn(&RunMeta, &Error),
    ) -> Result<Self> {
        let mut result = Err(Error::NotDamaged { run: 0 });
        for meta in pair {
            result = Self::read(catalog, meta);
            match &result {
                Err(error) if error.is_damage() => note(meta, error),
                _ => return result,
            }
        }
        result
    }

    pub(crate) fn decode(rows: &[u8], marks: &[u8], withdrawn: &[u8]) -> Result<Self, Bad> {
        let mut out = Self::default();
        let mut cursor = Cursor::new(rows);
        while !cursor.rest().is_empty() {
            let len = cursor.u32()? as usize;
            out.rows.push(Group::decode(cursor.take(len)?)?);
        }
        let mut cursor = Cursor::new(marks);
        while !cursor.rest().is_empty() {
            let mark = (GroupId(cursor.u32()?), ArticleNumber(cursor.u64()?));
            out.marks.push(mark);
        }
        let mut cursor = Cursor::new(withdrawn);
        while !cursor.rest().is_empty() {
            out.withdrawn.push(Withdrawn::decode(&mut cursor)?);
        }
        Ok(out)
    }

    /// What several runs, from the oldest to the newest, say together.  Withdrawals whose articles are dead go.
    pub(crate) fn merged(runs: Vec<Self>, floors: &mut Floors<'_>) -> Self {
        let mut rows = BTreeMap::new();
        let mut marks = BTreeMap::new();
        let mut withdrawn = Vec::new();
        for run in runs {
            rows.extend(run.rows.into_iter().map(|row| (row.id(), row)));
            for (group, number) in run.marks {
                let mark = marks.entry(group).or_insert(number);
                *mark = number.max(*mark);
            }
            withdrawn.extend(run.withdrawn);
        }
        withdrawn.retain(|one| one.position >= floors.floor(one.buffer));
        withdrawn.sort_unstable();
        withdrawn.dedup();
        Self {
            rows: rows.into_values().collect(),
            marks: marks.into_iter().collect(),
            withdrawn,
        }
    }
}

/// The two copies of each run, together.
pub(crate) fn pairs(metas: &[RunMeta]) -> Vec<&[RunMeta]> {
    let mut pairs = Vec::new();
    let mut rest = metas;
    while let Some(first) = rest.first() {
        let is_copy = |other: &&RunMeta| {
            (first.first, first.last, first.rows) == (other.first, other.last, other.rows)
        };
        let copies = 1 + usize::from(rest.get(1).filter(is_copy).is_some());
        let (pair, after) = rest.split_at(copies);
        pairs.push(pair);
        rest = after;
    }
    pairs
}
