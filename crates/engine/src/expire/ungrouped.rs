//! Articles in no group, where each is a file of its own: nothing else would ever let them go.
//!
//! On a server in transit mode that is all of them, elsewhere those whose groups were removed.  The catalogue of a set is
//! walked in the order in which they came, as far as something may be due, or all of it; no article is read for it.  What their groups have
//! to let go is not touched.

use std::sync::Arc;

use newsreel_store::{Blocking, RecordScan, Scanned, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, Token};
use smallvec::SmallVec;

use super::pass::{AT_ONCE, Expirer, PIECE_ROWS, Pass, commit};
use super::report::{Going, LISTED_MAX};
use super::rules::{Rule, Subject, Surplus, Why};
use crate::counters::Counters;
use crate::error::Error;
use crate::places::places;
use crate::record::{Reason, WithdrawnRecord};

/// An article that no group has and its rule lets go.
struct Doomed {
    token: Token,
    id_hash: IdHash,
    arrival: u64,
    why: Why,
}

impl Pass<'_> {
    /// Whether anything of that kind can be here.
    pub(super) fn has_cards(&self) -> bool {
        let buffers = self.shared.store.buffers();
        let mut readers = buffers.into_iter().cloned();
        readers.any(|buffer| buffer.cards().is_some())
    }

    /// Looks at the sets of files.  Says whether to go on.
    pub(super) fn ungrouped(&mut self, expirer: &mut dyn Expirer) -> Result<bool, Error> {
        let policy = Arc::clone(&self.policy);
        let rules = policy.expire.of_any_group();
        for buffer in self.shared.store.buffers() {
            let rule = rules.iter().find(|(_, rule)| rule.is_for(buffer.set()));
            let Some((rule, cards)) = rule.zip(Arc::clone(buffer).cards()) else {
                continue;
            };
            if !self.set_of_files(*rule, cards, expirer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes through a catalogue until a whole piece of it is too young, or all of it.
    fn set_of_files(
        &mut self,
        (at, rule): (usize, &Rule),
        mut cards: Box<dyn RecordScan>,
        expirer: &mut dyn Expirer,
    ) -> Result<bool, Error> {
        let (mut doomed, mut rows, mut young) = (Vec::new(), 0, 0);
        loop {
            let is_left = young >= PIECE_ROWS && !self.walks_all;
            let scanned = cards.step()?.filter(|_| !is_left);
            let is_over = scanned.is_none();
            // Where nothing is left for long it must be ended, too.
            let is_piece = is_over || scanned == Some(Scanned::Passed);
            if let Some(Scanned::Record {
                token,
                arrival,
                id_hash,
                sound: true,
                live: true,
                ..
            }) = scanned
            {
                rows += 1;
                young += 1;
                let subject = Subject {
                    arrival,
                    flags: 0,
                    octets: u64::from(token.len()),
                };
                if let Some(why) = rule.judge(&subject, &mut Surplus::default(), self.now) {
                    young = 0;
                    if self.is_in_no_group(cards.as_ref()) {
                        doomed.push(Doomed {
                            token,
                            id_hash,
                            arrival: arrival.0,
                            why,
                        });
                    }
                }
            }
            if is_piece || rows == PIECE_ROWS || doomed.len() == AT_ONCE {
                let articles = self.let_go(at, std::mem::take(&mut doomed))?;
                self.report.rows += rows as u64;
                if !expirer.worked(rows as u64, articles) {
                    return Ok(false);
                }
                rows = 0;
            }
            if is_over {
                return Ok(true);
            }
        }
    }

    /// By the Xref on the card that the walk has come to.
    fn is_in_no_group(&self, cards: &dyn RecordScan) -> bool {
        let groups = self.shared.views.groups();
        places(groups, &self.retired, cards.article()).is_empty()
    }

    /// Lets these go, in one commit; how many went that were here.
    fn let_go(&mut self, rule: usize, doomed: Vec<Doomed>) -> Result<u64, Error> {
        if doomed.is_empty() {
            return Ok(0);
        }
        self.may_go_on()?;
        let shared = self.shared;
        let _one = shared.expiry.one.lock();
        let (mut withdrawn, mut octets) = (Vec::new(), 0);
        for one in doomed {
            if !shared.leads_to(&one.id_hash, &one.token)? {
                continue;
            }
            let len = u64::from(one.token.len());
            octets += len;
            self.counted(rule, len, false);
            let going = self.going(&one, rule);
            self.listed(going);
            withdrawn.push(WithdrawnRecord {
                reason: Reason::Expired,
                token: one.token,
                id_hash: one.id_hash,
                remembered_from: self.now,
                groups: SmallVec::new(),
            });
        }
        let articles = withdrawn.len() as u64;
        if !self.report.dry_run {
            commit(shared, withdrawn, Vec::new())?;
            Counters::add(&shared.counters.expired, articles);
            Counters::add(&shared.counters.expired_octets, octets);
        }
        Ok(articles)
    }

    /// How it is listed: what its header block says is read for that alone.
    fn going(&self, one: &Doomed, rule: usize) -> Option<Going> {
        if self.report.going.len() >= LISTED_MAX {
            return None;
        }
        let mut memory = Vec::new();
        let read = self
            .shared
            .store
            .read(&one.token, Want::Head, Blocking::Yes, &mut memory);
        let head = read.map(|stored| memory[stored.octets].to_vec());
        let mut head = head.unwrap_or_default();
        head.extend_from_slice(b"\r\n");
        let headers = Headers::scan_stored(&head).ok();
        let id = headers
            .as_ref()
            .and_then(|headers| headers.content(Known::MessageId));
        Some(Going {
            group: String::new(),
            number: 0,
            message_id: String::from_utf8_lossy(id.unwrap_or_default()).into_owned(),
            arrival: one.arrival,
            octets: u64::from(one.token.len()),
            rule: rule + 1,
            why: one.why.name(),
            stays: false,
        })
    }
}
