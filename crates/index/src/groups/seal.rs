//! Groups on the disk: the attributes that changed, the high marks that rose, what was withdrawn.
//!
//! Names, marks and withdrawals are nowhere else once the log has passed them, so every run is two files.
//! Layout: `docs/formats/group-rows.md`.

use std::collections::BTreeMap;

use newsreel_wire::{ArticleNumber, GroupId, Sequence};

use super::row::Group;
use crate::cursor::{Bad, Cursor};
use crate::error::Result;
use crate::layers::Run;
use crate::liveness::Floors;
use crate::overview::withdrawn::Withdrawn;
use crate::sealed::reader::RunFile;
use crate::sealed::writer::{Place, RunWriter};
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

    /// Writes it; nothing when there is nothing to write.
    pub(crate) fn write(
        &self,
        place: &Place,
        id: u64,
        range: (Sequence, Sequence),
    ) -> Result<Option<RunMeta>> {
        if self.len() == 0 {
            return Ok(None);
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
        let mut run = RunWriter::create(place, RunKind::Groups, id, range)?;
        run.section(ROWS, &rows)?;
        run.section(MARKS, &marks)?;
        run.section(WITHDRAWN, &withdrawn)?;
        run.finish(self.len() as u64).map(Some)
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
        let mut withdrawn = BTreeMap::new();
        for run in runs {
            for row in run.rows {
                let old = rows.get(&row.id());
                if !old.is_some_and(|old| row.yields_to(old)) {
                    rows.insert(row.id(), row);
                }
            }
            for (group, number) in run.marks {
                let mark = marks.entry(group).or_insert(number);
                *mark = number.max(*mark);
            }
            // What was moved lies where the newest says.
            let by_number = |one: Withdrawn| ((one.group, one.number), one);
            withdrawn.extend(run.withdrawn.into_iter().map(by_number));
        }
        withdrawn.retain(|_, one| one.position >= floors.floor(one.buffer));
        Self {
            rows: rows.into_values().collect(),
            marks: marks.into_iter().collect(),
            withdrawn: withdrawn.into_values().collect(),
        }
    }
}

/// An open run of group rows.  They are taken up when the views are opened and not kept here.
#[derive(Debug)]
pub(crate) struct GroupFile(RunFile);

impl Run for GroupFile {
    const KIND: RunKind = RunKind::Groups;

    type Part = ();

    fn open(run: RunFile) -> Result<Self> {
        Ok(Self(run))
    }

    fn file(&self) -> &RunFile {
        &self.0
    }
}

impl GroupFile {
    /// What it says.
    pub(crate) fn read(&self) -> Result<GroupRun> {
        let Self(run) = self;
        let (rows, marks) = (run.section(ROWS)?, run.section(MARKS)?);
        let withdrawn = run.section(WITHDRAWN)?;
        GroupRun::decode(&rows, &marks, &withdrawn).map_err(|why| run.damage(0, why))
    }
}
