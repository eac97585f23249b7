//! Opens a log: replays it from a checkpoint, finds its end, and goes on there.
//!
//! Frames that a later one vouches for were durable: a bad one among them is corruption, reported and passed over.
//! The others are checked: first here for being whole, then by the caller against the store; the first that fails is
//! cut whole, with all behind it, by [`Recovery::cut`].  Nothing is changed on disk before [`Recovery::finish`].

mod finish;
mod scan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, OpenMode};
use newsreel_wire::Sequence;

use crate::SpoolId;
use crate::config::JournalConfig;
use crate::error::{Damage, Error, Result};
use crate::format::{Frame, FrameHeader, seed};
use crate::source::{FrameSource, is_medium};
use crate::walk::{Place, Step, step};
use scan::{Files, Used, open_distrusted};

pub use scan::Strange;

/// So many damaged stretches are listed; more are only counted.
pub const DAMAGE_LISTED_MAX: usize = 1000;

/// Where the log was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The first sequence that is gone.
    pub first: Sequence,
    /// The one behind the last that is known to be.
    pub before: Sequence,
    /// The segment of the cut.
    pub segment: u64,
    /// Where in it, octets.
    pub offset: u64,
    /// What was wrong with the frame there.
    pub why: &'static str,
}

/// What was found in the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The sequence the log goes on with.
    pub next: Sequence,
    /// The sequence behind the last good frame; less than where the replay was to begin means that the log is older
    /// than its views.
    pub end: Sequence,
    /// The epoch of this opening: every frame is to be started with it.
    pub epoch: u64,
    /// Everything before this was durable, says the log.
    pub vouched_before: Sequence,
    /// The cut, if there was one.
    pub cut: Option<Cut>,
    /// Stretches that are lost although they were durable.
    pub damage: Vec<Damage>,
    /// How many there are, also those not listed.
    pub damage_count: u64,
    /// Frames replayed.
    pub frames: u64,
    /// What has a segment's name and is none; the writer gave it other names.
    pub strange: Vec<Strange>,
}

/// A frame that was handed out and not yet cut.
#[derive(Debug, Clone, Copy)]
struct Pending {
    offset: u64,
    header: FrameHeader,
}

/// A log being opened.
#[derive(Debug)]
pub struct Recovery {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    spool: SpoolId,
    config: JournalConfig,
    writable: bool,
    replay_from: Sequence,
    files: Files,
    /// Which of the used segments was read first.
    start_at: usize,
    /// Which of them is being read.
    at: usize,
    source: Option<FrameSource>,
    place: Place,
    pending: Option<Pending>,
    /// The last segment with a good frame, and where that ends.
    good: Option<(usize, u64)>,
    done: bool,
    /// What the frame that was cut follows: between that and the frame nothing was.
    cut_follows: Option<Sequence>,
    /// What was lost since a frame was handed out.
    lost: Option<(Sequence, Sequence)>,
    recovered: Recovered,
}

/// Refuses to go on where something may stand in the place of what is missing.
fn in_the_way(strange: Option<&Strange>) -> Result<()> {
    match strange.cloned() {
        None => Ok(()),
        Some(Strange { path, what, .. }) => Err(Error::InTheWay { path, what }),
    }
}

impl Recovery {
    /// Begins to open the log in `dir`, to replay it from `replay_from` and then write on.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: JournalConfig,
        spool: SpoolId,
        replay_from: Sequence,
    ) -> Result<Self> {
        disk.create_dir_all(dir)?;
        Self::begin(disk, dir, config, spool, replay_from, true)
    }

    /// Begins to open the log for reading: nothing on disk is changed, by this or later.
    pub fn open_read_only(
        disk: Arc<dyn Disk>,
        dir: &Path,
        spool: SpoolId,
        replay_from: Sequence,
    ) -> Result<Self> {
        Self::begin(
            disk,
            dir,
            JournalConfig::default(),
            spool,
            replay_from,
            false,
        )
    }

    fn begin(
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: JournalConfig,
        spool: SpoolId,
        replay_from: Sequence,
        writable: bool,
    ) -> Result<Self> {
        let replay_from = replay_from.max(Sequence(1));
        let files = Files::scan(&*disk, dir, spool, writable)?;
        in_the_way(files.in_the_way_of_the_end())?;
        let tail = files.tail(&*disk, seed(spool))?;
        let live = |used: &&Used| used.segment.first < used.segment.limit;
        if let Some(oldest) = files.used.iter().find(live) {
            let begins = oldest.segment.follows;
            // What was never vouched for was not retired but lost: then the log ends there.
            if oldest.header_is_whole && begins > replay_from && begins <= tail.vouched_before {
                if replay_from > Sequence(1) {
                    in_the_way(files.in_the_way_before(0))?;
                }
                return Err(Error::Gone {
                    wanted: replay_from,
                    oldest: begins,
                });
            }
        }
        let holds = |used: &Used| live(&used) && used.segment.follows <= replay_from;
        let at = files.used.iter().rposition(holds).unwrap_or(0);
        let start = files.used.get(at).map(|used| &used.segment);
        let place = match start {
            Some(segment) => Place::start(segment.follows.min(replay_from), segment.epoch),
            None => Place::start(Sequence(1), 0),
        };
        let recovered = Recovered {
            epoch: tail.epoch.saturating_add(1),
            vouched_before: tail.vouched_before,
            ..Recovered::default()
        };
        let mut recovery = Self {
            disk,
            dir: dir.to_path_buf(),
            spool,
            config,
            writable,
            replay_from,
            files,
            start_at: at,
            at,
            source: None,
            place,
            pending: None,
            good: None,
            done: false,
            cut_follows: None,
            lost: None,
            recovered,
        };
        recovery.enter_segment()?;
        Ok(recovery)
    }

    /// Everything before this was durable, says the log: frames behind it are to be checked against the store.
    #[must_use]
    pub const fn vouched_before(&self) -> Sequence {
        self.recovered.vouched_before
    }

    /// The next frame that has something at or behind where the replay begins, in order.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        self.accept();
        let Some(Pending { offset, header }) = self.advance()? else {
            return Ok(None);
        };
        self.pending = Some(Pending { offset, header });
        self.recovered.frames += 1;
        let vouched = self.is_vouched(&header);
        let lost = self.lost.take();
        let Some(source) = &mut self.source else {
            return Ok(None);
        };
        let payload = source.payload(offset, &header)?;
        Ok(header.records_of(payload).map(|records| Frame {
            header,
            offset,
            vouched,
            lost,
            records,
        }))
    }

    /// What was durable behind the last frame that was handed out and is lost; told once.
    pub const fn take_lost(&mut self) -> Option<(Sequence, Sequence)> {
        self.lost.take()
    }

    /// Cuts the frame that was handed out last, with everything behind it.
    pub fn cut(&mut self, why: &'static str) {
        if let Some(Pending { offset, header }) = self.pending.take() {
            self.recovered.frames -= 1;
            self.cut_follows = Some(header.follows);
            self.cut_at(header.first, header.end(), offset, why);
        }
    }

    fn is_vouched(&self, header: &FrameHeader) -> bool {
        header.first < self.recovered.vouched_before
    }

    /// The frame handed out last was not cut: it is good.
    fn accept(&mut self) {
        if let Some(Pending { offset, header }) = self.pending.take() {
            self.pass(offset, &header);
        }
    }

    fn pass(&mut self, offset: u64, header: &FrameHeader) {
        self.place.pass(offset, header);
        self.good = Some((self.at, self.place.offset));
        if let Some(used) = self.files.used.get_mut(self.at) {
            used.segment.note(header.first, offset);
        }
    }

    fn cut_at(&mut self, first: Sequence, before: Sequence, offset: u64, why: &'static str) {
        let segment = self
            .files
            .used
            .get(self.at)
            .map_or(0, |used| used.segment.id);
        self.recovered.cut = Some(Cut {
            first,
            before,
            segment,
            offset,
            why,
        });
        self.done = true;
    }

    fn damaged(&mut self, offset: u64, first: Sequence, before: Sequence, why: &'static str) {
        let first = first.max(self.replay_from);
        if first >= before {
            return;
        }
        let from = self.lost.map_or(first, |(from, _)| from);
        self.lost = Some((from, before));
        self.recovered.damage_count += 1;
        if self.recovered.damage.len() < DAMAGE_LISTED_MAX {
            let segment = self
                .files
                .used
                .get(self.at)
                .map_or(0, |used| used.segment.id);
            self.recovered.damage.push(Damage {
                segment,
                offset,
                first,
                before,
                why,
            });
        }
    }

    /// Goes to the next whole frame behind the replay's beginning.
    fn advance(&mut self) -> Result<Option<Pending>> {
        while !self.done {
            let limit = self
                .files
                .used
                .get(self.at)
                .map_or(Sequence::ZERO, |u| u.segment.limit);
            let Some(source) = &mut self.source else {
                self.reach_end();
                return Ok(None);
            };
            match step(source, &self.place, limit)? {
                Step::End => {
                    self.at += 1;
                    self.place.offset = Place::start(Sequence::ZERO, 0).offset;
                    self.enter_segment()?;
                }
                Step::Frame {
                    offset,
                    header,
                    missing,
                } => {
                    if missing && !self.pass_gap(header.follows)? {
                        return Ok(None);
                    }
                    if header.end() <= self.replay_from {
                        self.pass(offset, &header);
                    } else if self.is_whole(offset, &header)? {
                        return Ok(Some(Pending { offset, header }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Sequences up to `follows` are missing: damage as far as they were vouched for, else the end.
    fn pass_gap(&mut self, follows: Sequence) -> Result<bool> {
        if self.good.is_none_or(|(at, _)| at < self.at) {
            in_the_way(self.files.in_the_way_before(self.at))?;
        }
        let Place {
            offset, expected, ..
        } = self.place;
        let vouched = self.recovered.vouched_before.max(self.replay_from);
        self.damaged(offset, expected, follows.min(vouched), "a frame is missing");
        if follows <= vouched {
            return Ok(true);
        }
        let first = expected.max(vouched);
        self.cut_at(first, follows.max(first), offset, "a frame is missing");
        Ok(false)
    }

    /// Whether the frame can be handed out; else it is damage, or the end.
    fn is_whole(&mut self, offset: u64, header: &FrameHeader) -> Result<bool> {
        let vouched = self.is_vouched(header);
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        let seed = source.seed();
        let checked = match source.payload(offset, header) {
            Ok(payload) => header.check(payload, seed),
            Err(e) if is_medium(&e) && vouched => Err("a frame cannot be read"),
            Err(e) => return Err(e),
        };
        let Err(why) = checked else { return Ok(true) };
        if vouched {
            self.damaged(offset, header.first, header.end(), why);
            self.pass(offset, header);
        } else {
            self.cut_follows = Some(header.follows);
            self.cut_at(header.first, header.end(), offset, why);
        }
        Ok(false)
    }

    fn enter_segment(&mut self) -> Result<()> {
        let Some(used) = self.files.used.get(self.at) else {
            self.source = None;
            return Ok(());
        };
        let segment = &used.segment;
        // What nobody vouches for is made durable, and believed only when the medium has it: the first new frame will
        // vouch for it.
        let next = self
            .files
            .used
            .get(self.at + 1)
            .map(|next| next.segment.follows);
        let trusted = next.is_some_and(|next| next <= self.recovered.vouched_before);
        let file = if trusted {
            self.disk.open(&segment.path, OpenMode::Read)?
        } else {
            open_distrusted(&*self.disk, &segment.path, self.writable)?
        };
        match &mut self.source {
            Some(source) => source.switch(file, segment.id, segment.end),
            None => {
                let source = FrameSource::new(file, segment.id, seed(self.spool), segment.end);
                self.source = Some(source);
            }
        }
        Ok(())
    }

    /// All segments are read: what is vouched for and was not seen is lost.
    fn reach_end(&mut self) {
        let Place {
            offset, expected, ..
        } = self.place;
        let vouched = self.recovered.vouched_before;
        self.at = self.files.used.len().saturating_sub(1);
        self.damaged(offset, expected, vouched, "the log ends too early");
        self.done = true;
    }
}
