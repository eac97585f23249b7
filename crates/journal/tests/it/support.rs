//! A driver that writes known records, and a model of what must be there.
//!
//! Every record says which life of the log wrote it and with which sequence, so that a stale frame of an earlier life
//! never passes for a new one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk};
use newsreel_journal::{
    Error, FrameBuilder, Journal, JournalConfig, JournalWriter, Recovered, Recovery, Result,
    SpoolId,
};
use newsreel_wire::Sequence;

pub(crate) const SPOOL: SpoolId = SpoolId(*b"spool-for-tests!");
/// The smallest segment there is: fifteen pages of frames.
pub(crate) const SEGMENT: u64 = 64 * 1024;

pub(crate) fn dir() -> &'static Path {
    Path::new("/spool/log")
}

pub(crate) fn config() -> JournalConfig {
    JournalConfig {
        segment_octets: SEGMENT,
    }
}

/// A small generator (SplitMix64), so that a failure can be repeated from its seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// What record `sequence` of `life` says: its length and octets follow from the two.
pub(crate) fn payload(life: u64, sequence: u64) -> Vec<u8> {
    let mut dice = Dice(life << 32 | sequence);
    let len = match dice.roll(20) {
        0 => 0,
        1 => 3000 + dice.roll(6000),
        _ => dice.roll(900),
    };
    let mut octets = format!("life {life} record {sequence} ").into_bytes();
    octets.extend((0..len / 8).flat_map(|_| dice.roll(u64::MAX).to_le_bytes()));
    octets
}

pub(crate) fn kind(sequence: u64) -> u8 {
    (sequence % 251) as u8
}

/// The records there must be: sequence to (life, kind, payload).
pub(crate) type Model = BTreeMap<u64, Vec<u8>>;

/// A log being written.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) writer: JournalWriter,
    pub(crate) journal: Journal,
    pub(crate) recovered: Recovered,
    pub(crate) life: u64,
    frame: FrameBuilder,
}

impl Log {
    /// Opens the log from its beginning, taking every frame, and says what was in it.
    pub(crate) fn open(disk: &Arc<dyn Disk>, life: u64) -> Result<(Self, Model)> {
        Self::open_from(disk, life, 1, |_| true)
    }

    /// Opens the log from `from`; `check` judges the frames nobody vouched for by their first sequence.
    pub(crate) fn open_from(
        disk: &Arc<dyn Disk>,
        life: u64,
        from: u64,
        mut check: impl FnMut(u64) -> bool,
    ) -> Result<(Self, Model)> {
        let from = Sequence(from);
        let mut recovery = Recovery::open(Arc::clone(disk), dir(), config(), SPOOL, from)?;
        let mut model = Model::new();
        while let Some(frame) = recovery.next_frame()? {
            assert!(
                frame.last() >= from,
                "nothing before the replay's beginning is handed out"
            );
            if !frame.is_vouched() && !check(frame.first().0) {
                recovery.cut("refused by the test");
                break;
            }
            enter(&mut model, frame.records().since(from));
        }
        let (writer, journal, recovered) = recovery.finish()?;
        Ok((
            Self {
                writer,
                journal,
                recovered,
                life,
                frame: FrameBuilder::new(),
            },
            model,
        ))
    }

    /// Writes one frame of `count` records and says what it held; the caller syncs.
    pub(crate) fn write(&mut self, count: u64, vouched_before: u64) -> (Model, Result<()>) {
        let first = self.writer.next();
        self.frame.start(first, self.recovered.epoch);
        self.frame.vouch(Sequence(vouched_before));
        let mut model = Model::new();
        for sequence in first.0..first.0 + count {
            let octets = payload(self.life, sequence);
            let at = self
                .frame
                .push(kind(sequence), &[&octets[..3], &octets[3..]]);
            assert_eq!(at, Sequence(sequence));
            model.insert(sequence, octets);
        }
        assert_eq!(self.frame.last().0, first.0 + count - 1);
        (model, self.writer.write(&self.frame))
    }

    /// One commit: write, sync, publish.
    pub(crate) fn commit(&mut self, count: u64) -> (Model, Result<()>) {
        let vouched = self.writer.next().0;
        let (model, written) = self.write(count, vouched);
        let done = written.and_then(|()| self.writer.sync());
        if done.is_ok() {
            self.journal.publish_before(self.writer.next());
        }
        (model, done)
    }

    /// Commits that must work.
    pub(crate) fn commit_all(&mut self, counts: impl IntoIterator<Item = u64>) -> Model {
        let mut all = Model::new();
        for count in counts {
            let (model, done) = self.commit(count);
            done.unwrap();
            all.extend(model);
        }
        all
    }
}

/// Adds records to a model, checking their kinds.
pub(crate) fn enter(model: &mut Model, records: newsreel_journal::Records<'_>) {
    for record in records {
        assert_eq!(record.kind, kind(record.sequence.0));
        let old = model.insert(record.sequence.0, record.payload.to_vec());
        assert!(old.is_none(), "{} twice", record.sequence);
    }
}

/// What a reader sees from `from` on; damage is listed beside it as (first, before).
pub(crate) fn read_from(journal: &Journal, from: u64) -> (Model, Vec<(u64, u64)>) {
    let mut cursor = journal.read_from(Sequence(from));
    let (mut model, mut damage) = (Model::new(), Vec::new());
    loop {
        let wanted = cursor.position();
        match cursor.next_frame() {
            Ok(Some(frame)) => enter(&mut model, frame.records().since(wanted)),
            Ok(None) => return (model, damage),
            Err(Error::Damaged(lost)) => damage.push((lost.first.0, lost.before.0)),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn as_disk(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// Opens what is on the disk, only to see what is in it.
pub(crate) fn contents(disk: &MemoryDisk) -> (Model, Recovered) {
    contents_from(disk, 1)
}

/// The same from a sequence on.
pub(crate) fn contents_from(disk: &MemoryDisk, from: u64) -> (Model, Recovered) {
    let from = Sequence(from);
    let mut recovery = Recovery::open_read_only(as_disk(disk), dir(), SPOOL, from).unwrap();
    let mut model = Model::new();
    while let Some(frame) = recovery.next_frame().unwrap() {
        enter(&mut model, frame.records().since(from));
    }
    let (_, recovered) = recovery.finish_read_only().unwrap();
    (model, recovered)
}

/// Names the first difference instead of printing two logs.
#[track_caller]
pub(crate) fn assert_same(found: &Model, wanted: &Model, context: &str) {
    for (sequence, octets) in wanted {
        let seen = found.get(sequence);
        assert!(
            seen == Some(octets),
            "{context}: record {sequence} is {}",
            describe(seen)
        );
    }
    let extra = found.keys().find(|sequence| !wanted.contains_key(sequence));
    assert!(extra.is_none(), "{context}: record {extra:?} is there");
}

fn describe(octets: Option<&Vec<u8>>) -> String {
    octets.map_or("missing".to_owned(), |octets| {
        String::from_utf8_lossy(&octets[..octets.len().min(30)]).into_owned()
    })
}
