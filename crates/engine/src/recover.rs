//! Opening a spool: the views from their last checkpoint, the log replayed on top, its end checked
//! against the store.
//!
//! Only frames that no later one vouches for are checked.  A durable commit had its articles on disk before its frame
//! was written: what the store does not bear out is rot, it is reported, and everything else of the frame may have been
//! acknowledged and stays.  Without durability the first frame that fails is cut whole.  Everything before is taken as it
//! is.  Start-up reads the log behind the checkpoint and a few records of the store, whatever the spool's size; only where
//! something was lost it reads more: the whole log for group rows, regions of the buffers for a log that is too old.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Disk, random_bytes};
use newsreel_index::Views;
use newsreel_journal::{Frame, Journal, JournalWriter, Record, Recovered, Recovery, SpoolId};
use newsreel_store::methods::cnfs::CreateProgress;
use newsreel_store::{Access, BatchWrite, LastKnown, Missing, Store, StoreReader};
use newsreel_wire::{BufferId, IdHash, Position, Sequence, Token};

use crate::applier::Applier;
use crate::config::EngineConfig;
use crate::control::heeded;
use crate::error::Error;
use crate::finish::SYNC_EVERY_RECORDS as RESERVE;
use crate::lost_groups;
use crate::record::{ArticleRecord, CopyRecord, DueRecord, PendingRecord, WaitingRecord, kind};
use crate::replay::Replay;
use crate::roll_forward::{self, LeftArticle, LeftOver};
use crate::room::MEMORY_TIMES_MAX;
use crate::shared::StoreLiveness;
use crate::spool::Spool;

/// How often views are opened that a server changes meanwhile, and how long its first checkpoint is waited for between.
const LOOKS_MAX: u32 = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(200);

type Writes = Vec<Box<dyn BatchWrite>>;

/// What a start passes over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// So many sequences, and numbers of each group, may have been given that the log does not know.
    pub(crate) jump: u64,
    /// So many sequences a commit may have had that was not finished: what it left in the buffers is never taken for a part
    /// of a later one.
    pub(crate) unfinished: u64,
    /// Something happened behind the last checkpoint.
    pub(crate) has_news: bool,
}

/// Also behind a clean stop: the first commit of the run behind it may not have been finished.
fn passed(jump: u64, is_new: bool, replay: &Replay) -> Passed {
    Passed {
        jump,
        unfinished: if is_new { 0 } else { RESERVE },
        has_news: replay.has_news,
    }
}

/// A spool as it is after recovery, ready to go on.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) spool: Spool,
    pub(crate) views: Arc<Views>,
    pub(crate) applier: Applier,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    /// `None`: opened to look only.
    pub(crate) writer: Option<JournalWriter>,
    pub(crate) recovered: Recovered,
    pub(crate) hash_key: [u8; 32],
    /// The spool is new.
    pub(crate) is_new: bool,
    /// What the first commit writes besides.
    pub(crate) writes: Writes,
    /// What is not given again.
    pub(crate) passed: Passed,
    /// Cancels that came before their targets.
    pub(crate) pending: Vec<PendingRecord>,
    /// Messages about groups that were heeded, those that wait for approval, and what is due behind some.
    pub(crate) about_groups: (heeded::Table, Vec<WaitingRecord>, Vec<DueRecord>),
    /// Opened to look, while nobody writes: what is behind the end of the log was left there.
    pub(crate) is_at_rest: bool,
    /// What speaks against the end of the log.
    pub(crate) doubt: Option<String>,
}

/// Opens a spool to serve and write it (`Access::Write`) or to look at it.
pub(crate) fn open(
    config: &EngineConfig,
    disk: &Arc<dyn Disk>,
    access: Access,
    progress: CreateProgress<'_>,
) -> Result<Opened, Error> {
    let mut spool = match access {
        Access::Write => Spool::open(disk, &config.spool)?,
        Access::ReadOnly => Spool::open_read_only(disk, &config.spool)?,
    };
    let liveness = Arc::new(StoreLiveness::default());
    let (views, checkpoint, mut recovery) = views_and_log(config, disk, &spool, access, &liveness)?;
    let mut applier = Applier::new(Arc::clone(&views));
    let from = behind(checkpoint);
    let (log, id) = (spool.log(), SpoolId(spool.id));
    let mut stores = Stores::new((config, disk, &spool), access, liveness, progress);
    let mut replay = replay(&mut recovery, &mut applier, &mut stores, from)?;
    if replay.hash_key.is_none() && checkpoint.is_some() {
        // No state behind the checkpoint: the log is older than its views, or that record rots.
        replay.look_back(disk, &log, id)?;
    }
    let is_new = replay.frames == 0 && checkpoint.is_none();
    // Without a key nothing can be told; a copy can still be put back.
    let hash_key = hash_key(&replay, &spool, is_new, &log)?;
    if checkpoint.is_some() && replay.frames == 0 && replay.marks.is_empty() {
        replay.without_log(&views, from);
    }
    let mut store = stores.take(&replay)?;
    not_over_articles(&store, &spool, is_new)?;
    if access == Access::Write {
        // What refuses a start comes before anything is written.
        views.sweep()?;
    }
    let told = lost_groups::told(&views, disk, (&spool.log(), id), access)?;
    let (mut writer, journal, mut recovered) = finish(recovery, access)?;
    tell(&recovered);
    let is_at_rest = access == Access::ReadOnly && !Spool::is_held(disk, &config.spool);
    let look = (&*views, from);
    let mut left = match writer.is_some() || is_at_rest {
        true => left_over(config, &mut store, &mut replay, &recovered, look)?,
        false => LeftOver::default(),
    };
    let (writes, doubt) = resume(&mut store, &mut replay, (&recovered, left.last), look)?;
    if let Some(writer) = &mut writer {
        spool.keep_key(disk, hash_key);
        keep_durable(&mut left, &store);
        roll_forward::commit(&left, writer, &mut applier, &mut recovered)?;
    }
    let lost = views.numbers_lost().saturating_add(left.lost);
    let jump = jump(config, &recovered, &replay, from, &store).saturating_add(lost);
    lost_groups::bring_back(&views, &told, &store.reader())?;
    Ok(Opened {
        hash_key,
        passed: passed(jump, is_new, &replay),
        pending: replay.pending,
        about_groups: (replay.heeded, replay.waiting, replay.due),
        is_at_rest,
        doubt,
        spool,
        views,
        applier,
        store,
        journal,
        writer,
        recovered,
        is_new,
        writes,
    })
}

/// The log as it goes on from here, for who looks without a writer.
fn finish(
    recovery: Recovery,
    access: Access,
) -> Result<(Option<JournalWriter>, Journal, Recovered), Error> {
    Ok(match access {
        Access::Write => {
            let (writer, journal, recovered) = recovery.finish()?;
            (Some(writer), journal, recovered)
        }
        Access::ReadOnly => {
            let (journal, recovered) = recovery.finish_read_only()?;
            (None, journal, recovered)
        }
    })
}

/// Says what is wrong with the log.
fn tell(recovered: &Recovered) {
    for strange in &recovered.strange {
        tracing::error!(
            path = %strange.path.display(),
            segment = strange.id,
            "a file with the name of a log segment {}; nothing of this spool is in it, and the log goes on without it",
            strange.what
        );
    }
    for damage in &recovered.damage {
        tracing::error!(%damage, "the log is damaged");
    }
    if let Some(cut) = &recovered.cut {
        tracing::warn!(
            first = cut.first.0,
            last = cut.before.0.saturating_sub(1),
            why = cut.why,
            "the end of the log is cut off: a commit was not finished, or is damaged; its numbers stay unused"
        );
    }
}

/// The first sequence that a checkpoint does not have.
fn behind(checkpoint: Option<Sequence>) -> Sequence {
    checkpoint.map_or(Sequence(1), |checkpoint| Sequence(checkpoint.0 + 1))
}

/// The views and the log behind them.  Who looks beside a server may find files gone that the server has just replaced:
/// that one looks again.
fn views_and_log(
    config: &EngineConfig,
    disk: &Arc<dyn Disk>,
    spool: &Spool,
    access: Access,
    liveness: &Arc<StoreLiveness>,
) -> Result<(Arc<Views>, Option<Sequence>, Recovery), Error> {
    let mut looks = match access {
        Access::Write => 0,
        Access::ReadOnly => LOOKS_MAX,
    };
    loop {
        let opened = open_views(config, disk, spool, access, liveness);
        looks = looks.saturating_sub(1);
        if let Err(Error::Index(newsreel_index::Error::ManifestLost { .. })) = opened
            && looks > 0
        {
            // The files of a first checkpoint are there before the manifest that names them.
            std::thread::sleep(LOOK_PAUSE);
            continue;
        }
        let (views, checkpoint) = opened?;
        let recovery = recovery(config, disk, spool, access, behind(checkpoint));
        let is_whole = recovery.is_ok() && views.damaged().is_empty();
        if is_whole || looks == 0 || views.is_current()? {
            return Ok((views, checkpoint, recovery?));
        }
    }
}

/// The views from their last checkpoint.  A manifest that is lost is made again; where there was none yet, nothing is written.
fn open_views(
    config: &EngineConfig,
    disk: &Arc<dyn Disk>,
    spool: &Spool,
    access: Access,
    liveness: &Arc<StoreLiveness>,
) -> Result<(Arc<Views>, Option<Sequence>), Error> {
    let dir = spool.index();
    let open = || {
        Views::open(
            Arc::clone(disk),
            &dir,
            config.index.clone(),
            spool.id,
            Arc::clone(liveness) as Arc<dyn newsreel_index::Liveness>,
        )
    };
    let lost = match open() {
        Err(lost @ newsreel_index::Error::ManifestLost { .. }) => lost,
        opened => return Ok(opened?),
    };
    let log_from = match log_begins(disk, spool) {
        Err(_) if access == Access::ReadOnly => return Err(lost.into()),
        log_from => log_from?,
    };
    if Views::is_manifest_to_come(Arc::clone(disk), &dir, spool.id, log_from)? {
        tracing::info!(
            "the views have no manifest, as behind a kill in their first checkpoint: the log is whole, and all is taken from there"
        );
        let (disk, config) = (Arc::clone(disk), config.index.clone());
        let views = Views::open_anew(disk, &dir, config, spool.id, Arc::clone(liveness) as _)?;
        return Ok((views, None));
    }
    if access == Access::ReadOnly {
        return Err(lost.into());
    }
    let (checkpoint, missing) = Views::regain(Arc::clone(disk), &dir, spool.id, log_from)?;
    tracing::error!(
        %lost,
        checkpoint = checkpoint.0,
        missing,
        "it was made again from the sealed files; what is missing of them is rebuilt from the store"
    );
    Ok(open()?)
}

/// The log from its oldest segment on, and the sequence at which that one begins; 1: it may be the first.
pub(crate) fn whole_log(
    disk: &Arc<dyn Disk>,
    log: &Path,
    id: SpoolId,
) -> Result<(Sequence, Recovery), Error> {
    let open = |from| Recovery::open_read_only(Arc::clone(disk), log, id, from);
    Ok(match open(Sequence(1)) {
        Err(newsreel_journal::Error::Gone { oldest, .. }) => (oldest, open(oldest)?),
        other => (Sequence(1), other?),
    })
}

/// The oldest sequence that the log has.
fn log_begins(disk: &Arc<dyn Disk>, spool: &Spool) -> Result<Sequence, Error> {
    let log = spool.log();
    let (from, mut recovery) = whole_log(disk, &log, SpoolId(spool.id))?;
    if from > Sequence(1) {
        return Ok(from);
    }
    match recovery.next_frame()? {
        Some(frame) => Ok(frame.first()),
        None => Err(Error::LogLost { path: log }),
    }
}

/// The log from the checkpoint on; says what it means when it does not reach back so far.
fn recovery(
    config: &EngineConfig,
    disk: &Arc<dyn Disk>,
    spool: &Spool,
    access: Access,
    from: Sequence,
) -> Result<Recovery, Error> {
    let (disk, log, id) = (Arc::clone(disk), spool.log(), SpoolId(spool.id));
    match access {
        Access::Write => Recovery::open(disk, &log, config.journal.clone(), id, from),
        Access::ReadOnly => Recovery::open_read_only(disk, &log, id, from),
    }
    .map_err(|error| match error {
        newsreel_journal::Error::Gone { wanted, oldest } => Error::ViewsTooOld {
            path: spool.index(),
            wanted,
            oldest,
        },
        other => other.into(),
    })
}

/// What the last commits left that the log does not have; the buffers go on behind it.  Also behind a clean stop: the frames
/// of a later run may be lost.  Without durability or group rows nothing of it can be relied on.
fn left_over(
    config: &EngineConfig,
    store: &mut Store,
    replay: &mut Replay,
    recovered: &Recovered,
    (views, from): (&Views, Sequence),
) -> Result<LeftOver, Error> {
    if !replay.is_durable() || views.numbers_lost() > 0 {
        return Ok(LeftOver::default());
    }
    let is_behind = recovered.end < from || is_behind(views, replay, store);
    if is_behind {
        replay.raise_to(views);
    }
    let missing = Missing {
        last: Sequence(recovered.end.0.saturating_sub(1)),
        before: None,
        article_octets_max: u64::from(config.articles.octets_max),
        commit_octets_max: u64::from(config.sequencer.commit_octets_max),
        is_hurt: recovered.cut.is_some() || recovered.damage_count > 0 || is_behind,
    };
    let left = store.left_over(&replay.marks(), missing)?;
    for left in &left {
        replay.left(left);
    }
    let mut over = roll_forward::read(views, &store.reader(), &left, recovered.end.max(from))?;
    if left.iter().any(|left| left.has_remains) {
        // Of what is behind the last whole article nothing is known but that it was no more than a commit.
        over.lost += u64::from(config.sequencer.commit_articles_max);
    }
    for article in over.articles.values() {
        replay.placed(&article.token);
    }
    Ok(over)
}

/// The log tells of nothing that may not be durable: which buffers could not be synced is known when they go on.
fn keep_durable(left: &mut LeftOver, store: &Store) {
    let facts = store.reader().facts();
    let failed = facts.iter().filter(|facts| facts.suspended.is_some());
    let failed: Vec<u16> = failed.map(|facts| facts.id).collect();
    let is_durable = |left: &LeftArticle| !failed.contains(&left.token.buffer().0);
    left.articles.retain(|_, left| is_durable(left));
}

/// Every buffer goes on where the log says; where the log is known to be too old, behind all that was written.  Returns
/// what the first commit writes besides (a crash may have come between a withdrawal and the erasing of its article), and
/// what speaks against the log.
fn resume(
    store: &mut Store,
    replay: &mut Replay,
    (recovered, left): (&Recovered, Sequence),
    (views, from): (&Views, Sequence),
) -> Result<(Writes, Option<String>), Error> {
    let mut writes = Writes::new();
    let known = last_known(views, replay);
    for token in replay.placed.drain(..) {
        store.replayed(&token);
    }
    store.withdrawn(&replay.withdrawn, &mut writes);
    let last = Sequence(recovered.end.0.saturating_sub(1));
    let is_old = recovered.end < from || is_behind(views, replay, store);
    let doubt = is_old.then(|| {
        format!(
            "the log ends at {}, and is older than its views ({}), or lost what it said of the buffers: it was lost, an old \
             one was put back, or a disk lost what it had acknowledged",
            last.0,
            from.0.saturating_sub(1)
        )
    });
    // What headers say is durable in the log before: they prove that it has lost something, also where all articles can be taken from the buffers.
    let headers = store.reader().facts().into_iter();
    if headers.map(|facts| facts.header_sequence).max() > Some(last.0.max(from.0)) {
        store.trust_bits();
    }
    if let Some(doubt) = &doubt {
        tracing::error!("{doubt}; every buffer goes on behind its last record");
        replay.raise_to(views);
        store.distrust();
    }
    store.resume(&replay.marks(), last.max(left))?;
    if doubt.is_none() {
        store.find_lacking(&known)?;
    }
    Ok((writes, doubt))
}

/// Where the last article of each buffer begins, by the checkpoint and by what is behind it.
fn last_known(views: &Views, replay: &Replay) -> Vec<LastKnown> {
    let mut known = BTreeMap::new();
    for (buffer, sealed) in views.last_positions() {
        let last = sealed;
        known.insert(
            buffer,
            LastKnown {
                buffer,
                sealed,
                last,
            },
        );
    }
    for token in &replay.placed {
        let buffer = token.buffer();
        let known = known.entry(buffer).or_insert(LastKnown {
            buffer,
            sealed: Position::ZERO,
            last: Position::ZERO,
        });
        known.last = known.last.max(token.position());
    }
    known.into_values().collect()
}

/// Whether the views know of an article in a buffer that stands in front of it by the log: it must not be overwritten.
fn is_behind(views: &Views, replay: &Replay, store: &Store) -> bool {
    let reader = store.reader();
    let known = views.last_positions().into_iter();
    let mut here = known.filter(|(buffer, _)| reader.buffer(*buffer).is_some());
    here.any(|(buffer, last)| {
        let marks = replay.marks.get(&buffer);
        marks.is_none_or(|(end, _)| *end <= last)
    })
}

/// So many sequences and numbers may have been given, and seen, that the log does not know of.
fn jump(
    config: &EngineConfig,
    recovered: &Recovered,
    replay: &Replay,
    from: Sequence,
    store: &Store,
) -> u64 {
    let mut jump = 0u64;
    if replay.is_lost {
        // Nothing is taken when the views have so much without a checkpoint; but what is under way then.
        let rows_max = config.index.history_rows_max;
        jump = rows_max
            .saturating_mul(MEMORY_TIMES_MAX)
            .saturating_add(RESERVE);
    }
    if replay.is_volatile && !replay.stopped {
        jump = jump.saturating_add(RESERVE);
    }
    if recovered.end < from && !replay.is_lost {
        jump = jump.saturating_add(RESERVE);
    }
    let facts = store.reader().facts();
    let headers = facts.iter().map(|facts| facts.header_sequence).max();
    // The views know all numbers before their checkpoint.
    let known = recovered.end.max(from);
    let ahead = (headers.unwrap_or(0) + 1).saturating_sub(known.0);
    if ahead > 0 {
        jump = jump.saturating_add(ahead).saturating_add(RESERVE);
    }
    // A torn frame was never acknowledged, a damaged one may have been; which it is cannot be told.
    if let Some(cut) = &recovered.cut {
        jump = jump.saturating_add(cut.before.0.saturating_sub(cut.first.0));
    }
    // What rots in the log gave at most so many numbers.
    let is_listed = recovered.damage.len() as u64 == recovered.damage_count;
    jump.saturating_add(if is_listed {
        let lost = recovered.damage.iter();
        lost.map(|damage| damage.before.0 - damage.first.0).sum()
    } else {
        recovered.next.0.saturating_sub(from.0)
    })
}

/// A spool that was used is not begun anew over its articles.
fn not_over_articles(store: &Store, spool: &Spool, is_new: bool) -> Result<(), Error> {
    let missing = Missing {
        last: Sequence::ZERO,
        before: None,
        article_octets_max: 0,
        commit_octets_max: 0,
        is_hurt: false,
    };
    if is_new && spool.key.is_some() && store.may_have_left(&[], missing)? {
        return Err(Error::NothingButArticles {
            path: spool.log(),
            views: spool.index(),
        });
    }
    Ok(())
}

/// The key of the spool's message-id hash: from the log, else from the identity, or a new one for a new spool.
fn hash_key(replay: &Replay, spool: &Spool, is_new: bool, log: &Path) -> Result<[u8; 32], Error> {
    match replay.hash_key.or(spool.key) {
        Some(key) => Ok(key),
        None if is_new => Ok(random_bytes()?),
        None => Err(Error::LogLost {
            path: log.to_path_buf(),
        }),
    }
}

/// The buffers, opened when the replay needs them: the log says which ids were ever given.
struct Stores<'a> {
    config: &'a EngineConfig,
    disk: &'a Arc<dyn Disk>,
    spool: &'a Spool,
    access: Access,
    liveness: Arc<StoreLiveness>,
    progress: CreateProgress<'a>,
    open: Option<Store>,
}

impl<'a> Stores<'a> {
    fn new(
        (config, disk, spool): (&'a EngineConfig, &'a Arc<dyn Disk>, &'a Spool),
        access: Access,
        liveness: Arc<StoreLiveness>,
        progress: CreateProgress<'a>,
    ) -> Self {
        Self {
            config,
            disk,
            spool,
            access,
            liveness,
            progress,
            open: None,
        }
    }

    fn get(&mut self, replay: &Replay) -> Result<&mut Store, Error> {
        if self.open.is_none() {
            let known: Vec<BufferId> = replay.marks.keys().copied().collect();
            let store = Store::open(
                self.disk,
                &self.config.spool,
                self.spool.id,
                &self.config.store,
                &known,
                self.access,
                self.progress,
            )?;
            // Set once: the store is opened once.
            let _ = self.liveness.0.set(store.reader());
            self.open = Some(store);
        }
        self.open.as_mut().ok_or(Error::Stopping)
    }

    fn take(mut self, replay: &Replay) -> Result<Store, Error> {
        self.get(replay)?;
        self.open.take().ok_or(Error::Stopping)
    }
}

/// Applies the log behind the checkpoint to the views, up to its end or the first frame that the
/// store does not bear out.
fn replay(
    recovery: &mut Recovery,
    applier: &mut Applier,
    stores: &mut Stores<'_>,
    from: Sequence,
) -> Result<Replay, Error> {
    let mut replay = Replay::default();
    while let Some(frame) = recovery.next_frame()? {
        if let Some(lost) = frame.lost() {
            restore(&mut replay, applier, stores, lost)?;
        }
        if !frame.is_vouched() {
            let damaged = damaged(&frame, &stores.get(&replay)?.reader());
            if damaged > 0 && replay.is_durable() {
                tracing::error!(
                    sequence = frame.first().0,
                    damaged,
                    "articles of the last commit are damaged in the store; they are lost, the others are kept"
                );
            } else if damaged > 0 {
                recovery.cut("an article of it is not in the store");
                break;
            }
        }
        replay.frames += 1;
        for record in frame.records().since(from) {
            replay.note(&record)?;
        }
        applier.records(frame.records().since(from))?;
    }
    if let Some(lost) = recovery.take_lost() {
        restore(&mut replay, applier, stores, lost)?;
    }
    Ok(replay)
}

/// Takes from the buffers what the log has lost in front of what is replayed next.
fn restore(
    replay: &mut Replay,
    applier: &mut Applier,
    stores: &mut Stores<'_>,
    (first, before): (Sequence, Sequence),
) -> Result<(), Error> {
    let views = applier.views();
    replay.raise_to(&views);
    let missing = Missing {
        last: Sequence(first.0.saturating_sub(1)),
        before: Some(before),
        article_octets_max: u64::from(stores.config.articles.octets_max),
        commit_octets_max: u64::from(stores.config.sequencer.commit_octets_max),
        is_hurt: true,
    };
    let store = stores.get(replay)?;
    roll_forward::restore(replay, store, applier, &views, missing)
}

/// Where the article or the copy lies of which a record tells, and the hash of its id.
fn stored(record: &Record<'_>) -> Result<(Token, IdHash), Error> {
    let (sequence, payload) = (record.sequence, record.payload);
    if record.kind == kind::COPY {
        return CopyRecord::decode(sequence, payload).map(|it| (it.token, it.id_hash));
    }
    ArticleRecord::decode(sequence, payload).map(|it| (it.token, it.id_hash))
}

/// How many articles of a frame the store does not have as the log tells them.
fn damaged(frame: &Frame<'_>, store: &StoreReader) -> usize {
    let mut memory = Vec::new();
    let articles = frame
        .records()
        .filter(|record| matches!(record.kind, kind::ARTICLE | kind::COPY));
    let mut is_damaged = |record: &Record<'_>| {
        let sequence = record.sequence;
        let Ok((token, id_hash)) = stored(record) else {
            return true;
        };
        let found = store.verify(&token, sequence, &id_hash, &mut memory);
        if let Err(error) = &found {
            tracing::warn!(%error, sequence = sequence.0, "an article of the log's end is not in the store");
        }
        found.is_err()
    };
    articles.filter(|record| is_damaged(record)).count()
}
