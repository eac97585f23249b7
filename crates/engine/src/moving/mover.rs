//! Who moves articles: pack by pack, some at a time, each time as decision 0022 says.
//!
//! Everything here runs on the caller's thread and may be ended between two articles: what was not said in a frame of the log has
//! not happened.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use newsreel_index::{Moves, Repacked, Rest};
use newsreel_wire::{BufferId, GroupId, Sequence, SetId, Token, Wildmat};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use super::room::{Target, TargetRoom};
use super::sequencing::{Copied, Moving};
use crate::engine::Engine;
use crate::error::Error;
use crate::mend::describe;
use crate::places::Retired;
use crate::requests::Request;
use crate::shared::Shared;

/// Octets that an article takes in the frame of a move, about, where it is withdrawn as well.
const MOVED_OCTETS: u64 = 160;
/// Octets of articles that move by one frame, about: so much lies in both sets.  Each frame has the pack written anew, which this is
/// some times as large as.
pub const MOVED_AT_ONCE_OCTETS: u64 = 4 << 30;
/// How long is slept between two looks whether compaction rests, or a checkpoint is written.
const PAUSE: Duration = Duration::from_millis(20);
/// How often that is done for what is under way still, when nobody wants it to go on: ten seconds, so that what was said to have
/// moved is cleared, too, unless a disk fails.
const PATIENCE: u32 = 500;
/// Whoever makes sure that nothing moves has ended by then.
const LOOKED_AT_MAX: Duration = Duration::from_secs(5);
/// How often a move is tried whose articles were looked up too early.
const TRIES: u32 = 10;

/// What all threads know of articles that move.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Counts moves that the views have.  Who withdraws takes it first and looks articles up then.
    pub(crate) known: AtomicU64,
    /// Held by who moves articles, and for a moment by who makes sure that nobody does.
    one: Mutex<()>,
}

impl Moved {
    /// Nothing moves as long as this is held; `None`: something does.
    pub(crate) fn rests(&self) -> Option<MutexGuard<'_, ()>> {
        self.one.try_lock()
    }
}

/// What is to be moved.
#[derive(Debug, Clone)]
pub struct Relocation {
    /// The name of the set in which they are.
    pub from: String,
    /// The name of the set to which they go.
    pub to: String,
    /// Only articles that one of these groups has; `None`: all, also those in no group.
    pub groups: Option<Wildmat>,
    /// Only tell what would be moved.
    pub dry_run: bool,
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Relocated {
    /// Articles that lie in the new set now, or would.
    pub articles: u64,
    /// Octets of them.
    pub octets: u64,
    /// What they take of the room of the new set, or would at most.
    pub taken_octets: u64,
    /// What that set has for them, where they were only counted.
    pub room: Option<TargetRoom>,
    /// Articles whose files somebody removed.
    pub gone: u64,
    /// Articles that cannot be moved, and stay.
    pub left: u64,
    /// Why the first of those cannot.
    pub first_left: Option<String>,
    /// It was ended before all was done.
    pub is_cut: bool,
    /// Why, unless somebody wanted that.
    pub stopped: Option<String>,
}

/// A run of it.
pub(super) struct Mover<'a> {
    pub(super) engine: &'a Engine,
    pub(super) shared: &'a Shared,
    pub(super) from: Vec<BufferId>,
    pub(super) to: SetId,
    pub(super) target: Target,
    /// What the largest article takes there.
    pub(super) largest: u64,
    groups: Option<BTreeSet<GroupId>>,
    pub(super) dry_run: bool,
    /// Before it moves: no file is looked for.
    pub(super) only_counts: bool,
    only_looks: bool,
    pub(super) retired: Retired,
    /// Articles behind this one came later, and stay.
    pub(super) until: Sequence,
    /// These cannot be moved.
    pub(super) left: HashSet<Token>,
    /// These were counted where no pack had them yet.
    unsealed: HashSet<Token>,
    /// No more are moved by one frame.
    pub(super) at_once: usize,
    /// Rows that were to be looked at.
    total: u64,
    /// Of how many rows the bar was told last.
    told: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
    /// Nobody wants it to go on.
    is_ended: bool,
    /// So often it still waits then.
    patience: u32,
    pub(super) report: Relocated,
}

impl Engine {
    /// Moves articles from one set to another; durable when it returns.  Articles that come meanwhile stay where they are.
    /// `progress` is told rows of the overview that are done, of how many, and says whether to go on.
    ///
    /// # Errors
    /// When there are no such sets, another move is under way, or the new set takes no articles; what moved until then has.
    pub fn relocate(
        &self,
        what: &Relocation,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Relocated, Error> {
        if !what.dry_run && self.only_looks() {
            return Err(Error::Stopping);
        }
        let shared = &*self.shared;
        let (from, to) = (self.set_named(&what.from)?, self.set_named(&what.to)?);
        if from == to {
            return Err(Error::Request(
                "articles are moved from one set to another: --from and --to are the same"
                    .to_owned(),
            ));
        }
        let target = shared.config.store.sets.get(usize::from(to.0));
        if target.is_some_and(|set| set.is_attached()) {
            return Err(Error::Request(format!(
                "set {:?} has the articles of its `file` and takes no others",
                what.to
            )));
        }
        let Some(_one) = shared.moving.one.try_lock_for(LOOKED_AT_MAX) else {
            return Err(Error::Request(
                "articles are being moved already; there is one move at a time".to_owned(),
            ));
        };
        self.are_views_whole()?;
        let until = shared.committed();
        let buffers = shared.store.buffers();
        let of_set = buffers.iter().filter(|buffer| buffer.set() == from);
        let mut mover = Mover {
            engine: self,
            shared,
            from: of_set.map(|buffer| buffer.id()).collect(),
            to,
            target: Target::of(self, to),
            largest: 0,
            groups: what.groups.as_ref().map(|wildmat| self.groups_of(wildmat)),
            dry_run: what.dry_run,
            only_counts: false,
            only_looks: self.only_looks(),
            retired: shared.views.groups().retired(),
            until,
            left: HashSet::new(),
            unsealed: HashSet::new(),
            at_once: self.moved_at_once(),
            total: 0,
            told: 0,
            progress,
            is_ended: false,
            patience: PATIENCE,
            report: Relocated::default(),
        };
        mover.report.is_cut = match mover.all() {
            Err(Error::Stopping) => true,
            result => !result?,
        };
        if what.dry_run {
            mover.report.room = Some(mover.told_room());
        }
        Ok(mover.report)
    }

    /// Refuses to go on where it is not known which articles there are.
    fn are_views_whole(&self) -> Result<(), Error> {
        let damaged = self.shared.views.damaged();
        match damaged.iter().find(|run| !run.is_readable) {
            None => Ok(()),
            Some(run) => Err(Error::Request(format!(
                "what a damaged file of the views had is not known: {}; the same again when `newsreel status` tells of none",
                describe(run)
            ))),
        }
    }

    fn set_named(&self, name: &str) -> Result<SetId, Error> {
        let sets = &self.shared.config.store.sets;
        let at = sets.iter().position(|set| set.name == name);
        let id = at.and_then(|at| u8::try_from(at).ok()).map(SetId);
        id.ok_or_else(|| {
            let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
            Error::Request(format!(
                "there is no set {name:?}; the configuration has {}",
                names.join(", ")
            ))
        })
    }

    fn groups_of(&self, wildmat: &Wildmat) -> BTreeSet<GroupId> {
        let groups = self.shared.views.groups();
        let all = groups.sorted();
        let is_meant = |id: &GroupId| {
            let group = groups.by_id(*id);
            group.is_some_and(|group| wildmat.matches(group.name()))
        };
        all.iter().copied().filter(is_meant).collect()
    }

    /// As many as one frame holds, and the views take without a checkpoint between.
    fn moved_at_once(&self) -> usize {
        let config = &self.shared.config;
        let frame = config.journal.segment_octets / 4 / MOVED_OCTETS;
        let rows = frame.min(2 * config.index.history_rows_max).max(1);
        usize::try_from(rows).unwrap_or(usize::MAX)
    }
}

impl Mover<'_> {
    fn all(&mut self) -> Result<bool, Error> {
        if self.dry_run {
            self.total = self.remaining();
            self.count_unsealed();
        } else {
            self.settle()?;
            self.total = self.remaining();
            self.fits()?;
        }
        Ok(self.left_over()? && self.packs()? && self.ungrouped()?)
    }

    /// Tells how far it is, when so many more than at the end of the last piece were copied, and asks whether to go on.
    pub(super) fn goes_on(&mut self, copied: u64) -> bool {
        let done = (self.told + copied).min(self.total);
        self.is_ended = self.is_ended || !(self.progress)(done, self.total);
        !self.is_ended && !self.stops()
    }

    /// Whether the server stops; who only looks at a spool has nobody who could.
    fn stops(&self) -> bool {
        !self.only_looks && self.shared.is_closing()
    }

    /// Lets a moment pass, unless the server stops, or all was to end some time ago.
    fn wait(&mut self) -> Result<(), Error> {
        self.patience -= u32::from(!self.goes_on(0));
        if self.stops() || self.patience == 0 {
            return Err(Error::Stopping);
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Waits until everything that is committed now is in sealed files.
    fn settle(&mut self) -> Result<(), Error> {
        let (shared, until) = (self.shared, self.shared.committed());
        loop {
            let last = shared.views.checkpoint();
            if last >= Some(until) {
                while shared.views.is_checkpointing() {
                    self.wait()?;
                }
                return Ok(());
            }
            self.engine.checkpoint()?;
            // One that was under way may not reach so far.
            while shared.views.checkpoint() == last {
                self.wait()?;
            }
        }
    }

    /// Whether rows of this group, and of the articles in it, are to move.
    fn is_meant(&self, group: GroupId) -> bool {
        let groups = self.groups.as_ref();
        groups.is_none_or(|groups| groups.contains(&group))
    }

    /// Whether articles of all groups move, and those of none.
    pub(super) const fn is_all(&self) -> bool {
        self.groups.is_none()
    }

    /// The packs that may have articles to move, and rows of those, about.
    fn to_do(&self) -> Vec<(u64, u64)> {
        let overview = self.shared.views.overview();
        let packs = overview.packs().into_iter();
        let packs = packs.filter(|pack| pack.first <= self.until);
        let is_in = |buffer| self.from.contains(&buffer);
        let is_meant = |group| self.is_meant(group);
        let rows = packs.map(|pack| (pack.id, overview.rows_in(pack.id, &is_in, &is_meant)));
        rows.filter(|(_, rows)| *rows > 0).collect()
    }

    /// About how many rows are to be looked at still.
    fn remaining(&self) -> u64 {
        self.to_do().iter().map(|(_, rows)| rows).sum()
    }

    /// Counts what would be in a pack by a checkpoint, which who only counts does not make.
    fn count_unsealed(&mut self) {
        let mut unsealed = HashSet::new();
        self.shared.views.overview().rows_in_memory(|group, row| {
            if self.from.contains(&row.token.buffer()) && self.is_meant(group) {
                unsealed.insert(row.token);
            }
        });
        unsealed.iter().for_each(|token| self.would_move(token));
        self.unsealed = unsealed;
    }

    /// Goes through the packs, also those that others become meanwhile.  Says whether to go on.
    pub(super) fn packs(&mut self) -> Result<bool, Error> {
        let mut done = BTreeSet::new();
        // Or what was looked at is met again in others.
        let _rest = self.dry_run.then(|| self.rest()).transpose()?;
        loop {
            let mut packs = self.to_do().into_iter();
            let Some((pack, _)) = packs.find(|(pack, _)| !done.contains(pack)) else {
                return Ok(true);
            };
            let (last, goes_on) = self.pack(pack)?;
            if !goes_on {
                return Ok(false);
            }
            done.extend([pack, last]);
        }
    }

    /// Moves what is meant of a pack; the pack that it became, and whether to go on.
    fn pack(&mut self, mut id: u64) -> Result<(u64, bool), Error> {
        let (mut block, mut seen) = (Some(0), HashSet::new());
        while let Some(at) = block {
            // What it becomes is found by its id, so it is not merged with others meanwhile.
            let rest = self.rest()?;
            let (tokens, next) = self.tokens(id, at)?;
            block = next;
            let mut goes_on = true;
            if self.dry_run {
                // An article has all its rows in one pack.
                for token in tokens {
                    if seen.insert(token) && !self.unsealed.contains(&token) {
                        self.would_move(&token);
                    }
                }
            } else {
                let (became, is_more) = self.some(&rest, id, tokens)?;
                if became != Some(id) {
                    // Its blocks are others.  What moved is not met again.
                    block = block.map(|_| 0);
                }
                goes_on = is_more;
                let Some(became) = became else {
                    return Ok((id, goes_on));
                };
                id = became;
            }
            drop(rest);
            self.told = self.told.max(self.total.saturating_sub(self.remaining()));
            if !goes_on || !self.goes_on(0) {
                return Ok((id, false));
            }
        }
        Ok((id, true))
    }

    /// Has compaction rest.
    fn rest(&mut self) -> Result<Rest, Error> {
        let rest = self.shared.views.rest();
        while !rest.has_begun() {
            self.wait()?;
        }
        Ok(rest)
    }

    /// The articles that are meant in a pack from a block on, as many as move at once, and where to go on.
    fn tokens(&self, pack: u64, from: usize) -> Result<(BTreeSet<Token>, Option<usize>), Error> {
        let (mut tokens, mut octets) = (BTreeSet::new(), 0);
        let next = self.shared.views.overview().pack_rows(
            (pack, from),
            &|buffer| self.from.contains(&buffer),
            &|group| self.is_meant(group),
            |column| {
                if !self.left.contains(&column.token) && tokens.insert(column.token) {
                    octets += u64::from(column.token.len());
                }
                match tokens.len() < self.at_once && octets < MOVED_AT_ONCE_OCTETS {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            },
        )?;
        Ok((tokens, next))
    }

    /// Moves these articles of a pack; the pack that has their rows then, and whether to go on.
    fn some(
        &mut self,
        rest: &Rest,
        pack: u64,
        tokens: BTreeSet<Token>,
    ) -> Result<(Option<u64>, bool), Error> {
        let mut order: Vec<Token> = tokens.into_iter().collect();
        order.sort_unstable_by_key(|token| (token.buffer(), token.position()));
        order.dedup_by(|token, before| token.same_place(before));
        let mut copied = Vec::new();
        let goes_on = self.copy(&order, &mut copied)?;
        if copied.is_empty() {
            return Ok((Some(pack), goes_on));
        }
        let mut moves = Moves::default();
        for article in &copied {
            moves.insert(article.old, article.new);
        }
        let Some(mut repack) = rest.repack(pack, &Arc::new(moves))? else {
            // It was found damaged meanwhile: nothing has moved.
            self.engine.are_views_whole()?;
            return Ok((None, goes_on));
        };
        while !repack.step()? {
            if self.stops() {
                return Err(Error::Stopping);
            }
        }
        let repacked = repack.finish()?;
        let new = repacked.new_pack();
        self.tell(copied, Some(repacked))?;
        Ok((new, goes_on))
    }

    /// Says in the log that these have moved, and clears their old places behind the next checkpoint.
    pub(super) fn tell(
        &mut self,
        mut copied: Vec<Copied>,
        repacked: Option<Repacked>,
    ) -> Result<(), Error> {
        let olds: Vec<Token> = copied.iter().map(|it| it.old).collect();
        let octets = copied.iter().map(|it| u64::from(it.new.len())).sum::<u64>();
        let count = copied.len() as u64;
        let repacked = Arc::new(Mutex::new(repacked));
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let generation = self.shared.views.history().generation();
            for article in &mut copied {
                let entry = self.shared.views.history().lookup(&article.id_hash)?;
                let is_there = entry.is_some_and(|entry| entry.leads_to(&article.old));
                article.is_there = is_there;
                article.arrival = entry.map_or(article.arrival, |entry| entry.arrival);
            }
            let _expiry = self.shared.expiry.one.lock();
            let moving = Moving {
                articles: copied.clone(),
                generation,
                repacked: Arc::clone(&repacked),
            };
            match self.engine.ask(Request::Move(Box::new(moving))) {
                Err(Error::Moved | Error::FrameFull) if tries > 0 => {}
                result => break result?,
            }
        }
        self.report.articles += count;
        self.report.octets += octets;
        self.settle()?;
        self.clear(olds)
    }

    /// Clears places to which nothing leads any more.
    pub(super) fn clear(&self, places: Vec<Token>) -> Result<(), Error> {
        match places.is_empty() {
            true => Ok(()),
            false => self.engine.ask(Request::Clear(places)),
        }
    }
}
