//! The manifest: which runs count, in their age order, and up to which sequence they hold everything.
//!
//! One small file, replaced as a whole by writing a new one, syncing it and renaming it: after a crash it is the old
//! one or the new one.  It holds two copies of itself, so that rot in one costs nothing.
//! Layout: `docs/formats/manifest.md`.

use std::collections::BTreeSet;

use newsreel_wire::{Sequence, UnixTime};

use super::{RunKind, RunMeta, SpoolId};
use crate::cursor::{Bad, Cursor};
use crate::past::PastFloors;

const MAGIC: &[u8; 8] = b"NRVIEWS\0";
const VERSION: u16 = 2;
/// Without floors of the past.
const FIRST_VERSION: u16 = 1;
/// Each copy begins at a multiple of this.
pub(crate) const COPY_ALIGN: usize = 4096;
/// The largest manifest that is read.
pub const OCTETS_MAX: usize = 16 << 20;
/// Octets of a run's entry.
const ENTRY_OCTETS: usize = 8 + 5 * 8;

/// What the sealed files hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest {
    /// Counts the manifests of this spool.
    pub(crate) generation: u64,
    /// Everything up to here is in the runs; 0 when nothing is.
    pub(crate) checkpoint: Sequence,
    /// The id the next run gets.
    pub(crate) next_run: u64,
    /// The latest time the views were given.
    pub(crate) time: UnixTime,
    /// All runs, each kind's from the oldest to the newest.
    pub(crate) runs: Vec<RunMeta>,
    /// Runs of group rows that are lost, and no number or id of theirs can be given again any more.
    pub(crate) made_up: BTreeSet<u64>,
    /// Since when what is gone has been so.
    pub(crate) past: PastFloors,
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is damaged.
    Damaged(Bad),
    /// It is whole, but of another spool.
    Foreign,
    /// It is of a version not known here.
    Newer,
}

impl From<Bad> for Unusable {
    fn from(bad: Bad) -> Self {
        Self::Damaged(bad)
    }
}

impl Manifest {
    /// The runs of a kind, from the oldest to the newest.
    pub(crate) fn of_kind(&self, kind: RunKind) -> impl Iterator<Item = &RunMeta> {
        self.runs.iter().filter(move |run| run.kind == kind)
    }

    /// Puts `new` in the place of the neighbours `old` (or at the end, when there are none).  `false`: they are not
    /// all there, next to each other.
    pub(crate) fn replace(&mut self, kind: RunKind, old: &[u64], new: &[RunMeta]) -> bool {
        let mut runs: Vec<RunMeta> = self.of_kind(kind).copied().collect();
        let at = match old.first() {
            None => runs.len(),
            Some(first) => match runs.iter().position(|run| run.id == *first) {
                Some(at) => at,
                None => return false,
            },
        };
        let there = runs.get(at..at + old.len());
        if there.is_none_or(|there| there.iter().zip(old).any(|(run, id)| run.id != *id)) {
            return false;
        }
        runs.splice(at..at + old.len(), new.iter().copied());
        self.runs.retain(|run| run.kind != kind);
        self.runs.extend(runs);
        let runs = &self.runs;
        self.made_up
            .retain(|id| runs.iter().any(|run| run.id == *id));
        true
    }

    /// The file's content.
    pub(crate) fn encode(&self, spool: &SpoolId) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        let count = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(spool);
        for number in [
            self.generation,
            self.checkpoint.0,
            self.next_run,
            self.time.0,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for run in &self.runs {
            let is_made_up = u8::from(self.made_up.contains(&run.id));
            out.extend_from_slice(&[run.kind.code(), is_made_up, 0, 0, 0, 0, 0, 0]);
            for number in [run.id, run.len, run.first.0, run.last.0, run.rows] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        self.past.encode(&mut out);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.resize(out.len().next_multiple_of(COPY_ALIGN), 0);
        out.extend_from_within(..);
        out
    }

    /// Reads a file's content: the first copy that is good, and what is wrong with the other one.
    pub(crate) fn decode(bytes: &[u8], spool: &SpoolId) -> Result<(Self, Option<Bad>), Unusable> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        match (decode_copy(first, spool), decode_copy(second, spool)) {
            (Ok(manifest), Ok(other)) if manifest == other => Ok((manifest, None)),
            (Ok(manifest), Ok(_)) => Ok((manifest, Some(Bad("its two copies differ")))),
            (Ok(manifest), Err(_)) => Ok((manifest, Some(Bad("its second copy is damaged")))),
            (Err(_), Ok(manifest)) => Ok((manifest, Some(Bad("its first copy is damaged")))),
            (Err(Unusable::Foreign), _) | (_, Err(Unusable::Foreign)) => Err(Unusable::Foreign),
            // One copy alone may have rotted there.
            (Err(Unusable::Newer), Err(damaged)) | (Err(damaged), Err(_)) => Err(damaged),
        }
    }
}

fn decode_copy(bytes: &[u8], spool: &SpoolId) -> Result<Manifest, Unusable> {
    let mut cursor = Cursor::new(bytes);
    if cursor.array::<8>()? != *MAGIC {
        return Err(Bad("it does not begin as one").into());
    }
    let version = cursor.u16()?;
    if ![FIRST_VERSION, VERSION].contains(&version) {
        return Err(Unusable::Newer);
    }
    cursor.take(2)?;
    let count = cursor.u32()? as usize;
    let of_spool: SpoolId = cursor.array()?;
    let mut manifest = Manifest {
        generation: cursor.u64()?,
        checkpoint: Sequence(cursor.u64()?),
        next_run: cursor.u64()?,
        time: UnixTime(cursor.u64()?),
        runs: Vec::new(),
        made_up: BTreeSet::new(),
        past: PastFloors::default(),
    };
    let entries = cursor.take(count.saturating_mul(ENTRY_OCTETS))?;
    if version > FIRST_VERSION {
        manifest.past = PastFloors::decode(&mut cursor)?;
    }
    let len = bytes.len() - cursor.rest().len();
    if cursor.u32()? != crc32c::crc32c(&bytes[..len]) {
        return Err(Bad("its checksum is wrong").into());
    }
    if of_spool != *spool {
        return Err(Unusable::Foreign);
    }
    let mut entries = Cursor::new(entries);
    for _ in 0..count {
        let kind = RunKind::from_code(entries.u8()?).ok_or(Bad("a run's kind is unknown"))?;
        let is_made_up = entries.u8()? == 1;
        entries.take(6)?;
        let id = entries.u64()?;
        if is_made_up {
            manifest.made_up.insert(id);
        }
        manifest.runs.push(RunMeta {
            kind,
            id,
            len: entries.u64()?,
            first: Sequence(entries.u64()?),
            last: Sequence(entries.u64()?),
            rows: entries.u64()?,
        });
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use newsreel_wire::{BufferId, Position};

    use super::*;

    fn run(kind: RunKind, id: u64) -> RunMeta {
        RunMeta {
            kind,
            id,
            len: 5000 + id,
            first: Sequence(id * 10),
            last: Sequence(id * 10 + 9),
            rows: 3,
        }
    }

    fn past() -> PastFloors {
        let mut past = PastFloors::default();
        past.note(UnixTime(1_000_000_000), 9, &[(BufferId(4), Position(77))]);
        past
    }

    fn manifest() -> Manifest {
        Manifest {
            generation: 4,
            checkpoint: Sequence(39),
            next_run: 9,
            time: UnixTime(1_700_000_000),
            runs: (1..4).map(|id| run(RunKind::History, id)).collect(),
            made_up: BTreeSet::from([2]),
            past: past(),
        }
    }

    #[test]
    fn it_survives_damage_in_one_copy() {
        let good = manifest();
        let bytes = good.encode(&[1; 16]);
        assert_eq!(Manifest::decode(&bytes, &[1; 16]), Ok((good.clone(), None)));
        assert_eq!(Manifest::decode(&bytes, &[2; 16]), Err(Unusable::Foreign));
        let mut newer = bytes.clone();
        newer[8] = 9;
        newer[bytes.len() / 2 + 8] = 9;
        assert_eq!(Manifest::decode(&newer, &[1; 16]), Err(Unusable::Newer));
        for at in 0..264 {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            let (manifest, worn) = Manifest::decode(&bad, &[1; 16]).unwrap();
            assert_eq!(manifest, good, "octet {at}");
            bad[bytes.len() / 2 + at] ^= 0x04;
            if at < 16 + 16 + 32 + 3 * ENTRY_OCTETS + 8 + 16 + 4 {
                assert_eq!(worn, Some(Bad("its first copy is damaged")), "octet {at}");
                assert!(Manifest::decode(&bad, &[1; 16]).is_err(), "octet {at}");
            }
        }
        for len in 0..bytes.len() {
            let _ = Manifest::decode(&bytes[..len], &[1; 16]);
        }
    }

    /// As it was written before there were floors of the past.
    #[test]
    fn the_first_version_is_read() {
        let good = manifest();
        let end = 16 + 16 + 32 + 3 * ENTRY_OCTETS;
        let mut copy = good.encode(&[1; 16])[..end].to_vec();
        copy[8] = 1;
        copy.extend(crc32c::crc32c(&copy).to_le_bytes());
        copy.resize(copy.len().next_multiple_of(COPY_ALIGN), 0);
        let past = PastFloors::default();
        let expect = Manifest { past, ..good };
        let read = Manifest::decode(&copy.repeat(2), &[1; 16]);
        assert_eq!(read, Ok((expect, None)));
    }

    #[test]
    fn neighbours_are_replaced_in_place() {
        let mut manifest = manifest();
        manifest.runs.push(run(RunKind::Groups, 8));
        let ids = |manifest: &Manifest| -> Vec<u64> {
            manifest
                .of_kind(RunKind::History)
                .map(|run| run.id)
                .collect()
        };
        assert!(manifest.replace(RunKind::History, &[2, 3], &[run(RunKind::History, 10)]));
        assert_eq!(ids(&manifest), [1, 10]);
        assert!(manifest.made_up.is_empty(), "run 2 is gone");
        assert!(
            !manifest.replace(RunKind::History, &[10, 1], &[]),
            "wrong order"
        );
        assert!(manifest.replace(RunKind::History, &[1], &[]));
        assert!(manifest.replace(RunKind::History, &[], &[run(RunKind::History, 11)]));
        assert_eq!(ids(&manifest), [10, 11]);
        assert_eq!(manifest.of_kind(RunKind::Groups).count(), 1);
    }
}
