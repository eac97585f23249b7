//! One pass of expiry: group by group, oldest articles first, a bounded piece at a time.
//!
//! What is to go is decided without a lock and looked at again under one, so that of two passes one counts.  What goes
//! together goes in one commit, small enough for feeds not to notice; files go with it, on the thread of commits, in the order
//! of their directory.  A group is left where a whole piece of it is too young, but by a pass that walks through all: what was attached
//! or moved lies behind what came later.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use newsreel_index::{Error as IndexError, Wait};
use newsreel_wire::overview::OverviewFields;
use newsreel_wire::{ArticleNumber, BufferId, GroupId, MessageId, SetId, Token, UnixTime};
use smallvec::smallvec;

use super::beyond::Beyond;
use super::report::{ExpireReport, Going, LISTED_MAX, RuleCount};
use super::rules::{OfGroup, Rule, Subject, Surplus, Why};
use crate::counters::Counters;
use crate::error::Error;
use crate::places::{Retired, places};
use crate::record::{LeftRecord, Reason, WithdrawnRecord};
use crate::requests::Request;
use crate::sequencer::Event;
use crate::shared::{Policy, Shared};

/// Articles that go in one commit: as files they take some thirty milliseconds, for which new ones wait.
pub(super) const AT_ONCE: usize = 1000;

/// Rows of a group that are looked at in one piece.
pub(super) const PIECE_ROWS: usize = 512;

/// So many places are remembered by a dry run.
const GONE_MAX: usize = 1 << 22;

/// After so many commits it is looked whether anything may still expire.
const LOOK_EVERY: u64 = 100;

/// Groups that could not be read which are told by name.
const UNREADABLE_MAX: usize = 100;

/// How often a full commit is waited for, how long each time, and how long an answer.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(1);

/// Who has a pass made.
pub(super) trait Expirer {
    /// Told of rows that were looked at and of articles that went since it was told last; waits as long as it likes, and says
    /// whether to go on.
    fn worked(&mut self, rows: u64, articles: u64) -> bool;
}

/// A place that its group lets go.
#[derive(Debug)]
struct Doomed {
    group: GroupId,
    number: ArticleNumber,
    token: Token,
    arrival: UnixTime,
    id: Vec<u8>,
    /// The rule, by its place among all.
    rule: usize,
    why: Why,
}

/// A pass under way.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) shared: &'a Shared,
    pub(super) policy: Arc<Policy>,
    pub(super) retired: Retired,
    pub(super) now: UnixTime,
    /// Nothing is left because what comes first is too young.
    pub(super) walks_all: bool,
    doomed: Vec<Doomed>,
    /// Places that went in this commit, or in a dry run would have gone by now, of articles with others: so many of those that an
    /// article of more groups may count as one that stays, though it goes.
    gone: HashSet<(GroupId, ArticleNumber)>,
    /// What is beyond limits.
    beyond: Beyond,
    /// Commits that were made.
    commits: u64,
    /// The set of the buffer that was asked for last.
    set: Option<(BufferId, SetId)>,
    pub(super) report: ExpireReport,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        now: UnixTime,
        (walks_all, dry_run): (bool, bool),
    ) -> Self {
        Self {
            walks_all,
            policy: shared.policy.load_full(),
            retired: shared.views.groups().retired(),
            shared,
            now,
            doomed: Vec::new(),
            gone: HashSet::new(),
            beyond: Beyond::default(),
            commits: 0,
            set: None,
            report: ExpireReport {
                dry_run,
                ..ExpireReport::default()
            },
        }
    }

    /// Looks at one group.  Says whether to go on; what cannot be read is told in the report.
    pub(super) fn group(&mut self, id: GroupId, expirer: &mut dyn Expirer) -> Result<bool, Error> {
        let Some(group) = self.shared.views.groups().by_id(id) else {
            return Ok(true);
        };
        let policy = Arc::clone(&self.policy);
        let rules = policy.expire.of(group.name());
        if rules.rules.is_empty() {
            return Ok(true);
        }
        self.report.groups += 1;
        let gone_on = self
            .surplus(id, &rules, expirer)
            .and_then(|goes_on| Ok(goes_on && self.walk(id, &rules, expirer)?));
        match gone_on {
            Err(Error::Index(error)) => {
                // It is rebuilt, and its group looked at again.
                self.unreadable(group.name(), &error);
                Ok(true)
            }
            other => other,
        }
    }

    /// Lets go what is still to go.
    pub(super) fn finish(&mut self, expirer: &mut dyn Expirer) -> Result<bool, Error> {
        let articles = self.take()?;
        Ok(expirer.worked(0, articles))
    }

    fn unreadable(&mut self, group: &str, error: &IndexError) {
        if self.report.unreadable.len() < UNREADABLE_MAX {
            self.report.unreadable.push(format!("{group}: {error}"));
        } else {
            self.report.unreadable_omitted += 1;
        }
    }

    fn set_of(&mut self, token: &Token) -> Option<SetId> {
        let buffer = token.buffer();
        if let Some((_, set)) = self.set.filter(|(known, _)| *known == buffer) {
            return Some(set);
        }
        let set = self.shared.store.buffer(buffer)?.set();
        self.set = Some((buffer, set));
        Some(set)
    }

    /// The rule for an article of this group, by its place among those of the group.
    fn rule_for(&mut self, rules: &OfGroup<'_>, token: &Token) -> Option<usize> {
        let set = self.set_of(token)?;
        rules.rules.iter().position(|(_, rule)| rule.is_for(set))
    }

    /// Counts what a group has beyond the limits of each of its rules.  Says whether to go on.
    fn surplus(
        &mut self,
        group: GroupId,
        rules: &OfGroup<'_>,
        expirer: &mut dyn Expirer,
    ) -> Result<bool, Error> {
        let mut has = vec![Surplus::default(); rules.rules.len()];
        let has_limits = rules.rules.iter().any(|(_, rule)| rule.has_limits());
        let mut from = has_limits.then_some(ArticleNumber(0));
        let shared = self.shared;
        if has_limits {
            // First: what goes while rows are counted is heeded later, once more than need be.
            let high = shared.views.groups().high(group);
            let alive = shared.views.overview().live_facts(group, Wait::Yes)?.count;
            self.beyond.begin(group, alive, high);
        }
        while let Some(low) = from {
            let mut rows = 0;
            let mut tokens = Vec::new();
            from = shared
                .views
                .overview()
                .rows(group, low, Wait::Yes, |column, _| {
                    tokens.push(column.token);
                    rows += 1;
                    at_end(rows)
                })?;
            for token in tokens {
                if let Some(at) = self.rule_for(rules, &token) {
                    has[at].articles += 1;
                    has[at].octets += u64::from(token.len());
                }
            }
            self.report.rows += rows as u64;
            if !expirer.worked(rows as u64, 0) {
                return Ok(false);
            }
        }
        let beyond = |((at, rule), has): (&(usize, &Rule), Surplus)| (*at, rule.surplus(has));
        let surplus = rules.rules.iter().zip(has).map(beyond).collect();
        self.beyond.counted(group, surplus);
        Ok(true)
    }

    /// Heeds what of groups with limits went since they were counted, by another pass or because somebody cancelled it: so many fewer
    /// are beyond the limit, and the newest of those that were to go stay.
    fn heed_others(&mut self, some: &mut Vec<Doomed>) -> Result<(), Error> {
        let views = &self.shared.views;
        let limited = some.iter().filter(|doomed| doomed.why.is_limit());
        let groups: BTreeSet<GroupId> = limited.map(|doomed| doomed.group).collect();
        for group in groups {
            let high = views.groups().high(group);
            let alive = views.overview().live_facts(group, Wait::Yes)?.count;
            let fewer = self.beyond.went_otherwise(group, alive, high);
            if fewer == 0 {
                continue;
            }
            let of_group = |doomed: &&Doomed| doomed.group == group && doomed.why.is_limit();
            let doomed = some.iter().chain(&self.doomed).filter(of_group);
            let mut rules = self.beyond.rules(group);
            rules.extend(doomed.map(|it| it.rule));
            for rule in rules {
                let mut rest = self.beyond.take_off((group, rule), fewer);
                for doomed in [&mut self.doomed, some] {
                    spare(doomed, (group, rule), &mut rest);
                }
            }
        }
        Ok(())
    }

    /// Goes through a group as far as something may be due.
    fn walk(
        &mut self,
        group: GroupId,
        rules: &OfGroup<'_>,
        expirer: &mut dyn Expirer,
    ) -> Result<bool, Error> {
        let shared = self.shared;
        let due_before = self.now.0.checked_sub(rules.shortest_s);
        let mut from = Some(ArticleNumber(0));
        while let Some(low) = from {
            let (mut rows, mut is_young) = (0, true);
            let mut surplus = self.beyond.take();
            from = shared
                .views
                .overview()
                .rows(group, low, Wait::Yes, |column, id| {
                    rows += 1;
                    is_young &= due_before.is_none_or(|due| column.arrival.0 > due);
                    let Some(at) = self.rule_for(rules, &column.token) else {
                        return at_end(rows);
                    };
                    let (Some((rule, by)), Some((_, surplus))) =
                        (rules.rules.get(at), surplus.get_mut(at))
                    else {
                        return at_end(rows);
                    };
                    let subject = Subject {
                        arrival: column.arrival,
                        flags: column.flags,
                        octets: u64::from(column.token.len()),
                    };
                    if let Some(why) = by.judge(&subject, surplus, self.now) {
                        self.doomed.push(Doomed {
                            group,
                            number: column.number,
                            token: column.token,
                            arrival: column.arrival,
                            id: id.to_vec(),
                            rule: *rule,
                            why,
                        });
                    }
                    at_end(rows)
                })?;
            self.beyond.put_back(surplus);
            self.report.rows += rows as u64;
            let mut articles = 0;
            while self.doomed.len() >= AT_ONCE {
                articles += self.take()?;
            }
            if !expirer.worked(rows as u64, articles) {
                return Ok(false);
            }
            let walks_all = self.walks_all && due_before.is_some();
            if is_young && self.beyond.is_none() && !walks_all {
                break;
            }
        }
        Ok(true)
    }

    /// Lets the first of what is to go go, in one commit; how many articles did.
    fn take(&mut self) -> Result<u64, Error> {
        let rest = self.doomed.split_off(self.doomed.len().min(AT_ONCE));
        let mut some = std::mem::replace(&mut self.doomed, rest);
        let shared = self.shared;
        self.may_go_on()?;
        let _one = shared.expiry.one.lock();
        let (mut withdrawn, mut left) = (Vec::new(), Vec::new());
        if !self.report.dry_run {
            self.gone.clear();
            self.heed_others(&mut some)?;
        }
        let (mut octets, mut going) = (0, Vec::new());
        for doomed in &some {
            let (group, number) = (doomed.group, doomed.number);
            let Some(others) = self.others(doomed)? else {
                continue;
            };
            let stays = !others.is_empty();
            let id = MessageId::parse(&doomed.id).ok();
            if !stays && id.is_none() {
                continue;
            }
            self.told(doomed, stays);
            if stays {
                going.push(group);
                if self.gone.len() < GONE_MAX {
                    self.gone.insert((group, number));
                }
                left.push(LeftRecord {
                    token: doomed.token,
                    groups: smallvec![(group, number)],
                });
                continue;
            }
            let Some(id) = id else { continue };
            octets += u64::from(doomed.token.len());
            going.push(group);
            withdrawn.push(WithdrawnRecord {
                reason: Reason::Expired,
                token: doomed.token,
                id_hash: shared.id_hash(id),
                remembered_from: self.now,
                groups: smallvec![(group, number)],
            });
        }
        let articles = withdrawn.len() as u64;
        if !self.report.dry_run {
            let left_count = left.len() as u64;
            commit(shared, withdrawn, left)?;
            for group in going {
                self.beyond.one_went(group);
            }
            Counters::add(&shared.counters.expired, articles);
            Counters::add(&shared.counters.expired_octets, octets);
            Counters::add(&shared.counters.expired_places, left_count);
        }
        Ok(articles)
    }

    /// Before each commit; now and then it is looked whether anything may still expire.
    pub(super) fn may_go_on(&mut self) -> Result<(), Error> {
        self.commits += 1;
        if self.report.dry_run || !self.commits.is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        match self.shared.expiry_held() {
            Some(why) => Err(Error::Request(format!("nothing more expires: {why}"))),
            None => Ok(()),
        }
    }

    /// The other places where an article still is; `None`: it is not in this one any more.
    fn others(&self, doomed: &Doomed) -> Result<Option<Vec<(GroupId, ArticleNumber)>>, Error> {
        let overview = self.shared.views.overview();
        let (here, mut id) = ((doomed.group, doomed.number), Vec::new());
        let mut is_there = |(group, number): (GroupId, ArticleNumber)| {
            let column = overview.column(group, number, Wait::Yes, &mut id);
            column.map(|column| column.is_some_and(|column| column.token == doomed.token))
        };
        if !is_there(here)? {
            return Ok(None);
        }
        let mut line = Vec::new();
        overview.lines(here.0, (here.1, here.1), 1, Wait::Yes, &mut line)?;
        let line = line.strip_suffix(b"\r\n").unwrap_or(&line);
        let behind = line.iter().position(|octet| *octet == b'\t');
        let fields = behind.and_then(|at| OverviewFields::parse(line.get(at + 1..)?).ok());
        let xref = fields.and_then(|fields| fields.find("Xref"));
        let all = places(
            self.shared.views.groups(),
            &self.retired,
            xref.unwrap_or_default(),
        );
        let mut others = Vec::new();
        for place in all {
            if place != here && !self.gone.contains(&place) && is_there(place)? {
                others.push(place);
            }
        }
        Ok(Some(others))
    }

    /// Puts into the report what goes.
    fn told(&mut self, doomed: &Doomed, stays: bool) {
        let octets = u64::from(doomed.token.len());
        self.counted(doomed.rule, octets, stays);
        let group = self.shared.views.groups().by_id(doomed.group);
        self.listed((self.report.going.len() < LISTED_MAX).then(|| Going {
            group: group.map(|it| it.name().to_owned()).unwrap_or_default(),
            number: doomed.number.0,
            message_id: String::from_utf8_lossy(&doomed.id).into_owned(),
            arrival: doomed.arrival.0,
            octets,
            rule: doomed.rule + 1,
            why: doomed.why.name(),
            stays,
        }));
    }

    /// Counts a place, or an article with its last one, by its rule.
    pub(super) fn counted(&mut self, rule: usize, octets: u64, stays: bool) {
        let rule = rule + 1;
        let report = &mut self.report;
        let at = report.rules.partition_point(|count| count.rule < rule);
        if report.rules.get(at).is_none_or(|count| count.rule != rule) {
            let count = RuleCount {
                rule,
                ..RuleCount::default()
            };
            report.rules.insert(at, count);
        }
        let count = &mut report.rules[at];
        if stays {
            report.left += 1;
            count.left += 1;
        } else {
            report.articles += 1;
            report.octets += octets;
            count.articles += 1;
            count.octets += octets;
        }
    }

    /// Lists one, where there is room for it.
    pub(super) fn listed(&mut self, going: Option<Going>) {
        match going {
            Some(going) => self.report.going.push(going),
            None => self.report.going_omitted += 1,
        }
    }
}

/// Spares so many of the newest that were to go because a group has more than a rule's limit of articles, and all that were to go because
/// it has more octets.
fn spare(doomed: &mut Vec<Doomed>, (group, rule): (GroupId, usize), articles: &mut u64) {
    for at in (0..doomed.len()).rev() {
        let Some(one) = doomed
            .get(at)
            .filter(|it| (it.group, it.rule) == (group, rule))
        else {
            continue;
        };
        match one.why {
            Why::Articles if *articles > 0 => *articles -= 1,
            Why::Octets => {}
            _ => continue,
        }
        doomed.remove(at);
    }
}

fn at_end(rows: usize) -> ControlFlow<()> {
    match rows < PIECE_ROWS {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// Tells the log, and waits until that is durable and the views have it.
pub(super) fn commit(
    shared: &Shared,
    withdrawn: Vec<WithdrawnRecord>,
    left: Vec<LeftRecord>,
) -> Result<(), Error> {
    if withdrawn.is_empty() && left.is_empty() {
        return Ok(());
    }
    for _ in 0..TRIES {
        let (answer, answered) = sync_channel(1);
        let request = Request::Expire {
            withdrawn: withdrawn.clone(),
            left: left.clone(),
            // Nothing moves while somebody lets articles go.
            moves: shared.moves(),
        };
        shared.inbox.push_event(Event::Request(request, answer));
        let result = loop {
            match answered.recv_timeout(PATIENCE) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Timeout) if !shared.is_closing() => {}
                Err(_) => break Err(Error::Stopping),
            }
        };
        match result {
            Err(Error::FrameFull) => std::thread::sleep(PAUSE),
            result => return result,
        }
    }
    Err(Error::FrameFull)
}
