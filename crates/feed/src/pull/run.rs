//! One run: what is new in the groups of a server is offered here as any peer offers it, fetched, and handed over.
//!
//! A group's mark moves when everything before it is settled: here on disk, known, refused for good, or gone there.  What is put off holds
//! it, so that the next run looks again; whoever is killed looks again too, and what is here is known by its message-id.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_engine::{Engine, LocalService};
use newsreel_net::client::Remote;
use newsreel_service::{
    Connection, ConnectionId, NewsService as _, Offer, Outcome, Transfer, TransferKind,
};
use newsreel_wire::{GroupName, MessageId, Wildmat};
use serde::Serialize;

use super::fetch::{Fetched, Group, PIPELINED, Row, Upstream};
use super::marks::{Mark, Marks};

/// Numbers looked at by one OVER.
const LOOKED_AT: u64 = 500;
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
}

/// What a run works with.
pub(crate) struct Run<'r> {
    pub(crate) engine: &'r Engine,
    pub(crate) marks: &'r Marks,
    pub(crate) name: &'r str,
    pub(crate) wildmat: &'r Wildmat,
    pub(crate) first_max: u64,
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

/// A run that is under way.
struct At<'r> {
    run: Run<'r>,
    service: Arc<LocalService>,
    from: Arc<Connection>,
    pulled: Pulled,
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
        };
        let ended = at.all(remote).await;
        at.service.release(&at.from);
        (at.pulled, ended)
    }
}

impl At<'_> {
    async fn all(&mut self, remote: &Remote) -> Result<Ended, String> {
        let said = |error: newsreel_net::client::ClientError| error.to_string();
        let mut upstream = Upstream::connect(remote).await.map_err(said)?;
        let listed = upstream.groups(self.run.wildmat).await.map_err(said)?;
        let mut groups = Vec::new();
        for group in listed {
            let Ok(name) = GroupName::parse(group.name.as_bytes()) else {
                continue;
            };
            let here = self.service.group(name).await;
            if here.map_err(|error| error.to_string())?.is_some() {
                groups.push(group);
            }
        }
        self.pulled.groups = groups.len() as u64;
        for group in groups {
            let mark = self.run.marks.of(self.run.name, &group.name);
            if mark.as_ref().is_some_and(|it| it.next == group.high + 1) {
                continue;
            }
            // What the list says of it may be old.
            let Some(group) = upstream.group(&group.name).await.map_err(said)? else {
                continue;
            };
            if !self.group(&mut upstream, &group, mark).await? {
                upstream.quit().await;
                return Ok(Ended::Stopped);
            }
        }
        upstream.quit().await;
        Ok(Ended::Done)
    }

    /// Fetches what is new in a group; `false`: somebody stopped it.
    async fn group(
        &mut self,
        upstream: &mut Upstream,
        group: &Group,
        mark: Option<Mark>,
    ) -> Result<bool, String> {
        let begin = match mark {
            Some(mark) => begin(upstream, group, mark).await?,
            None => Begin::At(Mark {
                next: match self.run.first_max {
                    0 => group.low,
                    max => group.low.max((group.high + 1).saturating_sub(max)),
                },
                last: None,
            }),
        };
        let mut mark = match begin {
            Begin::At(mark) => mark,
            Begin::Anew => {
                let (server, name) = (self.run.name, &group.name);
                tracing::warn!(server, group = name, "its numbers were given anew");
                if self.pulled.renumbered.len() < NAMED_MAX {
                    self.pulled.renumbered.push(name.clone());
                }
                Mark {
                    next: group.low,
                    last: None,
                }
            }
        };
        mark.next = mark.next.max(group.low);
        let (first, mut at, mut settled) = (mark.next, mark.next, Settled::default());
        while at <= group.high {
            let to = group.high.min(at.saturating_add(LOOKED_AT - 1));
            let rows = upstream.over(at, to).await;
            let rows = rows.map_err(|error| error.to_string())?;
            let mut goes_on = true;
            for some in rows.chunks(PIPELINED) {
                let put_off = self.some(upstream, some).await?;
                let behind = some.last().map_or(at, |last| last.number + 1);
                if let Some(next) = settled.up_to(put_off, behind) {
                    mark = self.moved(&group.name, mark, next, some)?;
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
            if (!rows.is_empty() || at > group.high)
                && let Some(next) = settled.up_to(None, at)
            {
                mark = self.moved(&group.name, mark, next, &rows)?;
            }
        }
        Ok(true)
    }

    /// Moves a group's mark to a number, on disk.
    fn moved(&self, group: &str, mark: Mark, next: u64, rows: &[Row]) -> Result<Mark, String> {
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
        let set = self.run.marks.set(self.run.name, group, mark.clone());
        set.map_err(|error| format!("how far it is cannot be noted: {error}"))?;
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

    /// Offers some articles here, fetches those that are wanted, and waits until they are settled; the first that is put off.
    async fn some(&mut self, upstream: &mut Upstream, rows: &[Row]) -> Result<Option<u64>, String> {
        let (mut asked, mut put_off) = (Vec::new(), None);
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
                    put_off = put_off.or(Some(row.number));
                }
            }
        }
        let numbers: Vec<u64> = asked.iter().map(|it| it.number).collect();
        let sent = upstream.ask(&numbers).await;
        sent.map_err(|error| error.to_string())?;
        let (mut batch, mut octets) = (Vec::new(), 0);
        for (at, Asked { id, .. }) in asked.iter().enumerate() {
            let fetched = upstream.article().await;
            let id = MessageId::parse(id.as_bytes()).map_err(|why| why.to_string())?;
            match fetched.map_err(|error| error.to_string())? {
                Fetched::Article(wire) => {
                    octets += wire.len();
                    batch.push(Transfer {
                        ticket: at as u64,
                        kind: TransferKind::Ihave,
                        offered: id.into(),
                        article: wire.into(),
                    });
                }
                Fetched::Gone => {
                    self.service.decline(id, &self.from);
                    self.pulled.gone += 1;
                }
                Fetched::Later => {
                    self.service.decline(id, &self.from);
                    self.pulled.deferred += 1;
                    let number = asked.get(at).map(|it| it.number);
                    put_off = [put_off, number].into_iter().flatten().min();
                }
                Fetched::TooLarge => {
                    self.service.decline(id, &self.from);
                    self.reject("larger than any that is taken".to_owned());
                }
            }
            if octets >= HANDED_OCTETS || at + 1 == asked.len() {
                self.pulled.octets += octets as u64;
                octets = 0;
                let late = self.hand_over(&mut batch, &asked).await?;
                put_off = [put_off, late].into_iter().flatten().min();
            }
        }
        Ok(put_off)
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
                Outcome::Filtered(why) => self.reject(why.to_owned()),
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

/// Where a group is gone on with.
enum Begin {
    /// Here.
    At(Mark),
    /// The server has given its numbers anew.
    Anew,
}

/// Where to go on.
async fn begin(upstream: &mut Upstream, group: &Group, mark: Mark) -> Result<Begin, String> {
    if group.high + 1 < mark.next {
        return Ok(Begin::Anew);
    }
    let before = mark.next - u64::from(mark.next > 0);
    if let Some(id) = &mark.last
        && before >= group.low
    {
        let rows = upstream.over(before, before).await;
        let rows = rows.map_err(|error| error.to_string())?;
        if rows.first().is_some_and(|row| row.id != *id) {
            return Ok(Begin::Anew);
        }
    }
    Ok(Begin::At(mark))
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
