//! One run: what is new in the groups of a server is offered here as any peer offers it, fetched, and handed over.
//!
//! A group's mark moves when everything before it is settled: here on disk, known, refused for good, or gone there.  What is put off holds
//! it, so that the next run looks again; whoever is killed looks again too, and what is here is known by its message-id.  A connection that
//! ends has brought what came by it, and is made again while each brings something; one that brought nothing ended at a group, which is
//! passed over.  Where too many are, the next run begins behind them, so that all are come to.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use newsreel_engine::{Engine, LocalService};
use newsreel_net::client::{ClientError, Remote};
use newsreel_service::{
    Connection, ConnectionId, NewsService as _, Offer, Outcome, Transfer, TransferKind,
};
use newsreel_wire::{GroupName, MessageId, UnixTime, Wildmat};
use serde::Serialize;
use tokio::time::Instant;

use super::fetch::{Fetched, Group, PIPELINED, Row, Rows, Upstream, Went, Which, is_about_this};
use super::marks::{Mark, Marks};

/// Numbers looked at by one OVER.
const LOOKED_AT: u64 = 500;
/// After so many OVERs in a row by which nothing was there it is asked where the next article is.
const EMPTY_IN_A_ROW: u64 = 20;
/// After so many the rest of the group is left to the next run.
const EMPTY_MAX: u64 = 1000;
/// Groups that a run passes over because connections ended at them.
const PASSED_MAX: usize = 16;
/// Octets of articles handed over at once.
const HANDED_OCTETS: usize = 4 << 20;
/// Reasons told apart, groups named; the others are one.
const NAMED_MAX: usize = 100;

/// What came of the articles of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pulled {
    /// Groups there that are wanted, and here.
    pub groups: u64,
    /// Articles that are here now.
    pub accepted: u64,
    /// Articles that were here, or that somebody else sends.
    pub known: u64,
    /// Articles that are never taken, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Articles put off: the next run looks again.
    pub deferred: u64,
    /// Articles that were gone there when they were asked for.
    pub gone: u64,
    /// Articles that would be fetched, where nothing is.
    pub wanted: u64,
    /// Octets fetched.
    pub octets: u64,
    /// Groups whose numbers were given anew there: all of what they have was looked at.
    pub renumbered: Vec<String>,
    /// Groups that the server did not let us read to the end, and what it said: the next run asks again.
    pub refused: BTreeMap<String, String>,
}

/// What a run works with.
pub(crate) struct Run<'r> {
    pub(crate) engine: &'r Engine,
    pub(crate) marks: &'r Arc<Marks>,
    pub(crate) name: &'r str,
    pub(crate) wildmat: &'r Wildmat,
    pub(crate) first_max: u64,
    /// What is new is asked by NEWNEWS where it can be.
    pub(crate) asks_newnews: bool,
    pub(crate) dry_run: bool,
    /// Told numbers looked at, of how many in this group; says whether to go on.
    pub(crate) told: &'r mut (dyn FnMut(&Pulled, u64, u64) -> bool + Send),
}

/// The end of a run.
pub(crate) enum Ended {
    /// All was looked at.
    Done,
    /// Somebody stopped it.
    Stopped,
}

/// Runs that have begun: each has a connection of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// An article that is asked for.
struct Asked {
    number: u64,
    id: String,
}

impl Asked {
    fn which(&self, by_id: bool) -> Which {
        match by_id {
            true => Which::Id(self.id.clone()),
            false => Which::Number(self.number),
        }
    }
}

/// What came of some articles that were offered and asked for.
#[derive(Debug, Default)]
struct Came {
    /// The first that is put off, or did not come.
    put_off: Option<u64>,
    /// Why the connection brings no more.
    over: Option<String>,
}

impl Came {
    /// This one is put off, too.
    fn hold(&mut self, number: Option<u64>) {
        self.put_off = [self.put_off, number].into_iter().flatten().min();
    }
}

/// Why a group was not looked at to its end.
enum Trouble {
    /// The server does not let us, or says what cannot be understood, and goes on: the next group may be another matter.
    Refused(String),
    /// The connection ended.
    Over(String),
    /// There is no going on: how far it is cannot be noted.
    Failed(String),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match is_about_this(&error) {
            true => Self::Refused(error.to_string()),
            false => Self::Over(error.to_string()),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// How often the marks are written while a run goes on.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// What NEWNEWS is asked for begins so long before the last time: servers' clocks and their lists are not of one moment.
const OVERLAP_S: u64 = 300;

/// A run that is under way.
struct At<'r> {
    run: Run<'r>,
    service: Arc<LocalService>,
    from: Arc<Connection>,
    pulled: Pulled,
    saved_at: Instant,
    /// The group that is looked at.
    at_hand: Option<String>,
    /// Groups at which a connection ended that had brought nothing.
    passed: BTreeSet<String>,
    /// The one of them at which there were too many.
    given_up_at: Option<String>,
    /// A group was looked at to its end.
    is_any_done: bool,
}

impl Drop for At<'_> {
    /// Whatever ends a run, what it asked for and did not get may come from others at once.
    fn drop(&mut self) {
        self.service.release(&self.from);
    }
}

impl Run<'_> {
    /// Fetches what is new; what came of it until an error is told as well.
    pub(crate) async fn run(self, remote: &Remote) -> (Pulled, Result<Ended, String>) {
        let nth = RUNS.fetch_add(1, Ordering::Relaxed);
        // Sessions count upwards, and an import has the last one.
        let id = ConnectionId(u64::MAX - 1 - nth);
        let mut at = At {
            service: self.engine.service(),
            from: Arc::new(Connection::new(id, None, None)),
            run: self,
            pulled: Pulled::default(),
            saved_at: Instant::now(),
            at_hand: None,
            passed: BTreeSet::new(),
            given_up_at: None,
            is_any_done: false,
        };
        let mut passed_why = None;
        let ended = loop {
            let before = at.pulled.accepted;
            match at.all(remote).await {
                Err(why) if at.pulled.accepted > before || at.pass_over(&why) => {
                    let server = at.run.name;
                    tracing::info!(server, "connected again: {why}");
                    passed_why = Some(why);
                }
                ended => break ended.map_err(|why| at.given_up(why)),
            }
        };
        let is_in_vain = !at.passed.is_empty() && !at.is_any_done;
        let ended = match (ended, passed_why) {
            (Ok(Ended::Done), Some(why)) if is_in_vain => Err(why),
            (ended, _) => ended,
        };
        let saved = at.run.marks.save().await;
        let ended = ended.and_then(|ended| saved.map(|()| ended));
        (std::mem::take(&mut at.pulled), ended)
    }
}

impl At<'_> {
    async fn all(&mut self, remote: &Remote) -> Result<Ended, String> {
        let said = |error: ClientError| error.to_string();
        self.at_hand = None;
        let mut upstream = Upstream::connect(remote).await.map_err(said)?;
        let since = match self.run.asks_newnews {
            true => upstream.date().await.map_err(said)?,
            false => None,
        };
        let ended = match self.by_newnews(&mut upstream, since).await? {
            Some(ended) => ended,
            None => self.by_groups(&mut upstream, since).await?,
        };
        upstream.quit().await;
        Ok(ended)
    }

    /// What the mark of NEWNEWS is kept under: no group is called so.
    fn newnews_key(&self) -> String {
        self.key("newnews")
    }

    /// Under what something is kept that is of these groups together: one word.
    fn key(&self, of: &str) -> String {
        let wildmat = self.run.wildmat.as_str();
        format!("!{of}!{}", wildmat.replace(char::is_whitespace, ""))
    }

    /// Fetches what came to all groups since the last time; none: it has to be looked for group by group.
    async fn by_newnews(
        &mut self,
        upstream: &mut Upstream,
        now: Option<UnixTime>,
    ) -> Result<Option<Ended>, String> {
        let key = self.newnews_key();
        let (Some(now), Some(mark)) = (now, self.run.marks.of(self.run.name, &key)) else {
            return Ok(None);
        };
        let since = UnixTime(mark.next.saturating_sub(OVERLAP_S));
        let groups = self.run.wildmat.as_str();
        let ids = upstream.newnews(groups, since).await;
        let Some(ids) = ids.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let rows: Vec<Row> = (1..)
            .zip(ids)
            .map(|(number, id)| Row { number, id })
            .collect();
        let (total, mut is_held) = (rows.len() as u64, false);
        for some in rows.chunks(PIPELINED) {
            let came = self.some(upstream, some, true).await?;
            if let Some(why) = came.over {
                return Err(why);
            }
            is_held |= came.put_off.is_some();
            let done = some.last().map_or(0, |row| row.number);
            if !(self.run.told)(&self.pulled, done, total) {
                return Ok(Some(Ended::Stopped));
            }
        }
        if !is_held {
            self.note_newnews(&key, now);
        }
        Ok(Some(Ended::Done))
    }

    fn note_newnews(&self, key: &str, at: UnixTime) {
        let mark = Mark {
            next: at.0,
            last: None,
        };
        if !self.run.dry_run {
            self.run.marks.set(self.run.name, key, mark);
        }
    }

    /// Fetches what is new in each group; `since`: from when on NEWNEWS can tell of it.
    async fn by_groups(
        &mut self,
        upstream: &mut Upstream,
        since: Option<UnixTime>,
    ) -> Result<Ended, String> {
        let listed = upstream.groups(self.run.wildmat).await;
        let mut groups = Vec::new();
        for group in listed.map_err(|error| error.to_string())? {
            let Ok(name) = GroupName::parse(group.name.as_bytes()) else {
                continue;
            };
            let here = self.service.group(name).await;
            if here.map_err(|error| error.to_string())?.is_some() {
                groups.push(group);
            }
        }
        self.pulled.groups = groups.len() as u64;
        let behind = self.run.marks.of(self.run.name, &self.begins_key());
        let behind = behind.and_then(|mark| mark.last);
        let at = groups
            .iter()
            .position(|group| Some(&group.name) == behind.as_ref());
        groups.rotate_left(at.map_or(0, |at| at + 1));
        groups.retain(|group| !self.passed.contains(&group.name));
        for group in groups {
            let mark = self.run.marks.of(self.run.name, &group.name);
            if mark.as_ref().is_some_and(|it| it.next == group.high + 1) {
                self.is_any_done = true;
                continue;
            }
            self.at_hand = Some(group.name.clone());
            let looked = self.one(upstream, &group.name, mark).await;
            if let Err(Trouble::Over(why)) = looked {
                return Err(why);
            }
            self.at_hand = None;
            match looked {
                Ok(true) => self.is_any_done = true,
                Ok(false) => return Ok(Ended::Stopped),
                Err(Trouble::Refused(why)) => self.refuse(group.name, why),
                Err(Trouble::Over(why) | Trouble::Failed(why)) => return Err(why),
            }
        }
        if let Some(since) = since
            && self.pulled.refused.is_empty()
            && self.pulled.deferred == 0
        {
            self.note_newnews(&self.newnews_key(), since);
        }
        if !self.run.dry_run {
            self.run.marks.forget(self.run.name, &self.begins_key());
        }
        Ok(Ended::Done)
    }

    /// Fetches what is new in a group of this name; `false`: somebody stopped it.
    async fn one(
        &mut self,
        upstream: &mut Upstream,
        name: &str,
        mark: Option<Mark>,
    ) -> Result<bool, Trouble> {
        // What the list says of it may be old.
        match upstream.group(name).await? {
            Went::There(group) => self.group(upstream, &group, mark).await,
            Went::Nowhere => Ok(true),
            Went::Unclear => Err(Trouble::Refused(
                "what it says to GROUP cannot be understood".to_owned(),
            )),
        }
    }

    /// A connection ended that had brought nothing: the next one goes on behind the group at which it did, if it was at one, and where that
    /// were too many the next run.  Where nothing is fetched, all would be counted again.
    fn pass_over(&mut self, why: &str) -> bool {
        let Some(group) = self.at_hand.take().filter(|_| !self.run.dry_run) else {
            return false;
        };
        self.refuse(group.clone(), why.to_owned());
        if self.passed.len() < PASSED_MAX {
            self.passed.insert(group);
            return true;
        }
        let mark = Mark {
            next: 0,
            last: Some(group.clone()),
        };
        self.run.marks.set(self.run.name, &self.begins_key(), mark);
        self.given_up_at = Some(group);
        false
    }

    /// What a run that gives up says.
    fn given_up(&self, why: String) -> String {
        let Some(group) = &self.given_up_at else {
            return why;
        };
        let many = self.passed.len() + 1;
        format!(
            "connections ended at {many} groups that brought nothing; the next run begins behind the last of them, {group}: {why}"
        )
    }

    /// Under what the group is kept behind which the next run begins: no group is called so.
    fn begins_key(&self) -> String {
        self.key("behind")
    }

    fn refuse(&mut self, group: String, why: String) {
        let server = self.run.name;
        tracing::warn!(server, group, "it cannot be read to the end: {why}");
        if self.pulled.refused.len() < NAMED_MAX {
            self.pulled.refused.insert(group, why);
        }
    }

    /// Fetches what is new in a group; `false`: somebody stopped it.
    async fn group(
        &mut self,
        upstream: &mut Upstream,
        group: &Group,
        mark: Option<Mark>,
    ) -> Result<bool, Trouble> {
        let mut mark = self.begin(upstream, group, mark).await?;
        let (first, mut at, mut settled) = (mark.next, mark.next, Settled::default());
        let mut empty = 0;
        while at <= group.high {
            let to = group.high.min(at.saturating_add(LOOKED_AT - 1));
            let rows = self.understood(upstream.over(at, to).await?)?;
            let mut goes_on = true;
            for some in rows.chunks(PIPELINED) {
                let came = self.some(upstream, some, false).await?;
                let behind = some.last().map_or(at, |last| last.number + 1);
                if let Some(next) = settled.up_to(came.put_off, behind) {
                    mark = self.moved(&group.name, mark, next, some).await?;
                }
                if let Some(why) = came.over {
                    return Err(Trouble::Over(why));
                }
                let done = behind.saturating_sub(first);
                goes_on = (self.run.told)(&self.pulled, done, group.high + 1 - first);
                if !goes_on {
                    break;
                }
            }
            // Where nothing is there may be many numbers: whoever wants to stop it is heard, and no mark is written for each.
            if rows.is_empty() {
                goes_on = (self.run.told)(&self.pulled, to - first, group.high + 1 - first);
            }
            if !goes_on {
                return Ok(false);
            }
            at = to + 1;
            empty = if rows.is_empty() { empty + 1 } else { 0 };
            // Of a group with a few articles the numbers may be any.
            let is_gap = empty > 0 && empty % EMPTY_IN_A_ROW == 0 && at <= group.high;
            let found = match is_gap {
                true => upstream.first_from(&group.name, at, group.high).await?,
                false => None,
            };
            at = found.unwrap_or(at);
            if (!rows.is_empty() || is_gap || at > group.high)
                && let Some(next) = settled.up_to(None, at)
            {
                mark = self.moved(&group.name, mark, next, &rows).await?;
            }
            if empty >= EMPTY_MAX && is_gap && found.is_none() {
                let many = empty * LOOKED_AT;
                let why = format!(
                    "nothing is there under the {many} numbers before {at}, and LISTGROUP does not say what is; the next run goes on there"
                );
                return Err(Trouble::Refused(why));
            }
        }
        Ok(true)
    }

    /// Where a group is gone on with.
    async fn begin(
        &mut self,
        upstream: &mut Upstream,
        group: &Group,
        mark: Option<Mark>,
    ) -> Result<Mark, Trouble> {
        let Some(mark) = mark else {
            let next = match self.run.first_max {
                0 => group.low,
                max => group.low.max((group.high + 1).saturating_sub(max)),
            };
            return Ok(Mark { next, last: None });
        };
        if !is_anew(upstream, group, &mark).await? {
            let next = mark.next.max(group.low);
            return Ok(Mark { next, ..mark });
        }
        let (server, name) = (self.run.name, &group.name);
        tracing::warn!(server, group = name, "its numbers were given anew");
        let renumbered = &self.pulled.renumbered;
        if renumbered.len() < NAMED_MAX && !renumbered.contains(name) {
            self.pulled.renumbered.push(name.clone());
        }
        Ok(Mark {
            next: group.low,
            last: None,
        })
    }

    /// What an overview says; where it says nothing that can be understood, nothing in it is passed over.
    fn understood(&mut self, said: Rows) -> Result<Vec<Row>, Trouble> {
        let Rows { rows, unclear } = said;
        if rows.is_empty() && unclear > 0 {
            let why = format!("none of the {unclear} lines of its overview can be understood");
            return Err(Trouble::Refused(why));
        }
        for _ in 0..unclear {
            self.reject("a line of the overview that cannot be understood".to_owned());
        }
        Ok(rows)
    }

    /// Moves a group's mark to a number.
    async fn moved(
        &mut self,
        group: &str,
        mark: Mark,
        next: u64,
        rows: &[Row],
    ) -> Result<Mark, String> {
        if next <= mark.next || self.run.dry_run {
            return Ok(mark);
        }
        let before = rows.iter().rfind(|row| row.number + 1 == next);
        let mark = Mark {
            next,
            last: before
                .map(|row| row.id.clone())
                .filter(|id| MessageId::parse(id.as_bytes()).is_ok()),
        };
        self.run.marks.set(self.run.name, group, mark.clone());
        if self.saved_at.elapsed() >= SAVE_EVERY {
            self.run.marks.save().await?;
            self.saved_at = Instant::now();
        }
        Ok(mark)
    }

    fn reject(&mut self, why: String) {
        let rejected = &mut self.pulled.rejected;
        let why = match rejected.len() >= NAMED_MAX && !rejected.contains_key(&why) {
            true => "other reasons".to_owned(),
            false => why,
        };
        *rejected.entry(why).or_default() += 1;
    }

    /// Offers some articles here, fetches those that are wanted, and waits until they are settled.
    async fn some(
        &mut self,
        upstream: &mut Upstream,
        rows: &[Row],
        by_id: bool,
    ) -> Result<Came, String> {
        let (asked, mut came) = self.offered(rows).await;
        let articles: Vec<Which> = asked.iter().map(|it| it.which(by_id)).collect();
        let sent = upstream.ask(&articles).await;
        came.over = sent.err().map(|error| error.to_string());
        let (mut batch, mut octets) = (Vec::new(), 0);
        for (at, Asked { id, number }) in asked.iter().enumerate() {
            let id = MessageId::parse(id.as_bytes()).map_err(|why| why.to_string())?;
            let fetched = match came.over {
                None => upstream.article().await,
                Some(_) => Ok(Fetched::Unasked),
            };
            let fetched = fetched.unwrap_or_else(|error| {
                came.over = Some(error.to_string());
                Fetched::Unasked
            });
            match fetched {
                Fetched::Article(wire) => {
                    octets += wire.len();
                    batch.push(Transfer {
                        ticket: at as u64,
                        kind: TransferKind::Ihave,
                        offered: id.into(),
                        article: wire.into(),
                    });
                }
                fetched => {
                    self.service.decline(id, &self.from);
                    came.hold(self.without(fetched).then_some(*number));
                }
            }
            if octets >= HANDED_OCTETS || at + 1 == asked.len() {
                self.pulled.octets += std::mem::take(&mut octets) as u64;
                came.hold(self.hand_over(&mut batch, &asked).await?);
            }
        }
        Ok(came)
    }

    /// Counts an article that did not come; whether it may come later.
    fn without(&mut self, fetched: Fetched) -> bool {
        match fetched {
            Fetched::Gone => self.pulled.gone += 1,
            Fetched::TooLarge => self.reject("larger than any that is taken".to_owned()),
            Fetched::Later => {
                self.pulled.deferred += 1;
                return true;
            }
            Fetched::Article(_) | Fetched::Unasked => return true,
        }
        false
    }

    /// Offers some articles here; those that are wanted, and what came of the others.
    async fn offered(&mut self, rows: &[Row]) -> (Vec<Asked>, Came) {
        let (mut asked, mut came) = (Vec::new(), Came::default());
        for row in rows {
            let Ok(id) = MessageId::parse(row.id.as_bytes()) else {
                self.reject("a malformed message-id".to_owned());
                continue;
            };
            match self.service.offer(id, &self.from).await {
                Offer::Want if self.run.dry_run => {
                    self.service.decline(id, &self.from);
                    self.pulled.wanted += 1;
                }
                Offer::Want => asked.push(Asked {
                    number: row.number,
                    id: row.id.clone(),
                }),
                Offer::Known => self.pulled.known += 1,
                Offer::Later(_) => {
                    self.pulled.deferred += 1;
                    came.hold(Some(row.number));
                }
            }
        }
        (asked, came)
    }

    /// Hands articles over and counts what becomes of them; the first that is put off.
    async fn hand_over(
        &mut self,
        batch: &mut Vec<Transfer>,
        asked: &[Asked],
    ) -> Result<Option<u64>, String> {
        let many = batch.len();
        let (mut done, mut outcomes, mut put_off) = (Vec::new(), Vec::new(), None::<u64>);
        self.service.transfer(batch, &self.from).await;
        while outcomes.len() < many {
            poll_fn(|cx| self.from.poll_completions(cx, &mut done)).await;
            outcomes.append(&mut done);
        }
        for outcome in outcomes {
            match outcome.outcome {
                Outcome::Accepted => self.pulled.accepted += 1,
                Outcome::Duplicate => self.pulled.known += 1,
                Outcome::Rejected(why) | Outcome::RejectedField(why, _) => {
                    self.reject(why.text().to_owned());
                }
                Outcome::RejectedWith(_, why) => self.reject(why.to_owned()),
                Outcome::Deferred(_) | Outcome::Failed => {
                    self.pulled.deferred += 1;
                    let at = usize::try_from(outcome.ticket).unwrap_or(usize::MAX);
                    let number = asked.get(at).map_or(0, |it| it.number);
                    put_off = Some(put_off.map_or(number, |first| first.min(number)));
                }
            }
        }
        Ok(put_off)
    }
}

/// How far all articles of a group are settled: never beyond the first that was put off.
#[derive(Debug, Default)]
struct Settled {
    is_held: bool,
}

impl Settled {
    /// Where the mark is to stand when what lies in front of `behind` was looked at, and this is the first that was put off.
    const fn up_to(&mut self, put_off: Option<u64>, behind: u64) -> Option<u64> {
        if self.is_held {
            return None;
        }
        self.is_held = put_off.is_some();
        Some(match put_off {
            Some(number) => number,
            None => behind,
        })
    }
}

/// Whether the server has given the numbers of a group anew.
async fn is_anew(upstream: &mut Upstream, group: &Group, mark: &Mark) -> Result<bool, ClientError> {
    if group.high + 1 < mark.next {
        return Ok(true);
    }
    let before = mark.next - u64::from(mark.next > 0);
    let Some(id) = mark.last.as_ref().filter(|_| before >= group.low) else {
        return Ok(false);
    };
    let rows = upstream.over(before, before).await?.rows;
    Ok(rows.first().is_some_and(|row| row.id != *id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mark had gone on to the second article that was put off, and the first was never fetched.
    #[test]
    fn the_first_that_is_put_off_holds_the_mark() {
        let mut settled = Settled::default();
        assert_eq!(settled.up_to(None, 33), Some(33));
        assert_eq!(settled.up_to(Some(40), 65), Some(40));
        assert_eq!(settled.up_to(Some(70), 97), None);
        assert_eq!(settled.up_to(None, 129), None);
    }
}
