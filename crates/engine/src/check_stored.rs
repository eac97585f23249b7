//! `check` from the side of the store: every article in the buffers is sound, and the views lead to it.
//!
//! The log is kept for a while only; what it no longer names is compared with history and overview by the article's own
//! message-id and Xref.  An article that no view knows at all may be one whose commit failed: where the log is still there
//! to say so, such articles are only counted; older ones are complained of, because the views may have lost them.

use std::sync::Arc;

use newsreel_index::Wait;
use newsreel_store::BufferReader;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{ArticleNumber, GroupId, IdHash, MessageId, Position, Sequence, Token};

use crate::check::Untold;
use crate::engine::Engine;
use crate::error::Error;
use crate::places::{Places, Retired, places};
use crate::report::{CheckReport, Uncompared};
use crate::walk::{Met, Walk};

/// No view names it, neither its id nor its numbers, and the log has no record of it.
const UNKNOWN: &str = "never committed";
/// The history leads to a later copy.
const SUPERSEDED: &str = "another copy took its place";
/// The id is known, the article is not offered.
const WITHDRAWN: &str = "withdrawn";
/// It came while the check was running.
const NEWER: &str = "newer than the check";
/// It is behind the end of the log, and nobody writes: left by a commit that was not finished, or the log lost its end.
const BEHIND: &str = "behind the end of the log: the next start takes them in";
/// More moved than are kept in mind.
pub(crate) const MOVED: &str = "moved: too many at once";
/// A view could not be read; that is a problem of its own.
const UNREADABLE: &str = "a view could not be read";

/// Octets of a buffer between two words of how far it is.
const TELL_EVERY: u64 = 16 << 20;

/// A record of the store that is to be compared.
struct Record<'a> {
    token: Token,
    sequence: Sequence,
    id_hash: IdHash,
    article: &'a [u8],
}

/// Groups that were there before, for one state of the groups.
struct Former {
    revision: u64,
    retired: Retired,
}

/// The overview rows of an article: whether each is right, and whether any leads to it.
#[derive(Default)]
struct Rows {
    rows: Vec<((GroupId, ArticleNumber), bool)>,
    lead_here: bool,
}

/// What history and overview together say of an article in the store.
enum Verdict {
    /// The history leads to it.
    Right,
    /// A view does and another does not.
    Wrong(&'static str),
    /// It need not be there.
    Left(&'static str),
    /// No view knows it.
    Unknown,
}

/// Articles that neither a view nor the log knows, and the id of the first.
#[derive(Default)]
struct Strangers {
    count: u64,
    first: String,
}

/// What a scan of the store keeps in mind.
struct Scan<'a> {
    untold: &'a Untold,
    last: Sequence,
    former: Former,
    strangers: Strangers,
}

impl Rows {
    /// `history`: nothing when it could not be read, then what it has for the id.
    fn verdict(&self, token: &Token, history: Option<Option<Option<Token>>>) -> Verdict {
        match history {
            None => Verdict::Left(UNREADABLE),
            Some(Some(Some(known))) if known.same_place(token) => Verdict::Right,
            Some(_) if self.lead_here => {
                Verdict::Wrong("the overview has it, but the history does not lead to it")
            }
            Some(Some(Some(_))) => Verdict::Left(SUPERSEDED),
            Some(Some(None)) => Verdict::Left(WITHDRAWN),
            Some(None) => Verdict::Unknown,
        }
    }
}

impl CheckReport {
    pub(crate) fn uncompared(&mut self, why: &'static str) {
        match self.uncompared.iter_mut().find(|known| known.why == why) {
            Some(known) => known.articles += 1,
            None => self.uncompared.push(Uncompared { why, articles: 1 }),
        }
    }
}

impl Engine {
    /// Every record in the buffers that is alive is sound, and the views lead to those up to `last` that the log does
    /// not tell of.
    pub(crate) fn check_store(
        &self,
        report: &mut CheckReport,
        untold: &Untold,
        last: Sequence,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        let mut seen = Scan {
            untold,
            last,
            former: self.former(),
            strangers: Strangers::default(),
        };
        let buffers = self.shared.store.buffers();
        let total = buffers.iter().map(|buffer| buffer.cycle_octets()).sum();
        let mut done = 0;
        for buffer in buffers {
            let mut walked = |octets: u64| progress(done + octets, total);
            self.check_buffer(buffer, &mut seen, report, &mut walked)?;
            done += buffer.cycle_octets();
            progress(done, total);
        }
        let Strangers { count, first } = seen.strangers;
        if count > 0 {
            report.problem(format!(
                "{count} articles of the store are in no view, {first} the first: the views lost them, or their commit failed"
            ));
        }
        Ok(())
    }

    /// The records of one buffer; `walked` is told now and then how many octets lie behind.
    fn check_buffer(
        &self,
        buffer: &Arc<dyn BufferReader>,
        seen: &mut Scan<'_>,
        report: &mut CheckReport,
        walked: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut told = 0;
        let mut walk = Walk::new(&self.shared, buffer, Position::ZERO);
        while let Some(met) = walk.step().unwrap_or_else(|error| {
            report.problem(format!("buffer {}: {error}", buffer.name()));
            None
        }) {
            let octets = walk.octets_passed();
            if octets >= told + TELL_EVERY {
                told = octets;
                walked(octets);
            }
            match met {
                Met::Passed | Met::Torn(_, None) | Met::Unwanted { .. } => {}
                Met::Damaged(_, damage)
                | Met::Torn(_, Some(damage))
                | Met::Lost(_, damage)
                | Met::Removed(.., damage) => report.problem(damage.to_string()),
                Met::MoreLost(more) => report.problems_omitted += more,
                Met::Sound { sequence, .. } if sequence > seen.last => {
                    report.uncompared(if self.is_at_rest { BEHIND } else { NEWER });
                }
                Met::Sound {
                    token,
                    sequence,
                    id_hash,
                    ..
                } if seen.untold.contains(sequence) || seen.untold.tells_of_move(&token) => {
                    let record = Record {
                        token,
                        sequence,
                        id_hash,
                        article: walk.article(),
                    };
                    self.check_stored(&record, seen, report)?;
                }
                Met::Sound { .. } => {}
            }
        }
        Ok(())
    }

    fn former(&self) -> Former {
        let groups = self.shared.views.groups();
        Former {
            revision: groups.revision(),
            retired: groups.retired(),
        }
    }

    /// One article of the store against history and overview.
    fn check_stored(
        &self,
        record: &Record<'_>,
        scan: &mut Scan<'_>,
        report: &mut CheckReport,
    ) -> Result<(), Error> {
        let token = record.token;
        let Ok(headers) = Headers::scan_stored(record.article) else {
            let (buffer, at) = (token.buffer().0, token.position().offset());
            report.problem(format!(
                "buffer {buffer}: the article at {at:#x} cannot be parsed"
            ));
            return Ok(());
        };
        let id = headers.content(Known::MessageId).unwrap_or_default();
        let xref = headers.content(Known::Xref).unwrap_or_default();
        let history = self.shared.views.history().lookup(&record.id_hash);
        let history = report.unless_damaged(history)?;
        let mut rows = self.rows(&token, id, &self.places(xref, &mut scan.former), report)?;
        // Judged only now: what is alive at the end was alive all along.
        if !self.shared.store.is_live(&token) {
            return Ok(());
        }
        // So with groups that were removed, or made again, meanwhile.
        let still = self.places(xref, &mut scan.former);
        rows.rows.retain(|(place, _)| still.contains(place));
        let name = String::from_utf8_lossy(id).into_owned();
        match rows.verdict(&token, history.map(|entry| entry.map(|entry| entry.token))) {
            Verdict::Left(why) => {
                report.uncompared(why);
                return Ok(());
            }
            Verdict::Unknown if !scan.untold.is_retired(record.sequence) => {
                report.uncompared(UNKNOWN);
                return Ok(());
            }
            Verdict::Unknown => {
                scan.strangers.count += 1;
                if scan.strangers.count == 1 {
                    scan.strangers.first = name;
                }
                return Ok(());
            }
            Verdict::Wrong(why) => report.problem(format!("{name}: {why}")),
            Verdict::Right => {}
        }
        report.articles += 1;
        report.rows += rows.rows.len() as u64;
        let hash = MessageId::parse(id).map(|id| self.shared.id_hash(id));
        if hash != Ok(record.id_hash) {
            report.problem(format!("{name}: its record has the hash of another id"));
        }
        for ((group, number), is_right) in rows.rows {
            if !is_right && !self.shared.views.overview().is_withdrawn(group, number) {
                report.problem(format!(
                    "{name}: the overview of group {} does not have it as number {}",
                    group.0, number.0
                ));
            }
        }
        Ok(())
    }

    /// What the overview has in these places.  One that cannot be read is a problem told there, and left out here.
    fn rows(
        &self,
        token: &Token,
        id: &[u8],
        places: &Places,
        report: &mut CheckReport,
    ) -> Result<Rows, Error> {
        let mut rows = Rows::default();
        let mut found_id = Vec::new();
        for (group, number) in places {
            let overview = self.shared.views.overview();
            let column = overview.column(*group, *number, Wait::Yes, &mut found_id);
            let Some(column) = report.unless_damaged(column)? else {
                continue;
            };
            let is_it = column.is_some_and(|column| column.token.same_place(token));
            rows.lead_here |= is_it;
            rows.rows.push(((*group, *number), is_it && found_id == id));
        }
        Ok(rows)
    }

    /// Its places in groups that are there, and were not made again since it came.
    fn places(&self, xref: &[u8], former: &mut Former) -> Places {
        let groups = self.shared.views.groups();
        if groups.revision() != former.revision {
            *former = self.former();
        }
        places(groups, &former.retired, xref)
    }
}
