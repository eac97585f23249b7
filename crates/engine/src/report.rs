//! What the engine tells administrators: plain values, ready to print or to turn into JSON.

use std::fmt;

use newsreel_index::Census;
use newsreel_service::FilterCounts;
use newsreel_store::{BufferFacts, SetConfig};
use newsreel_wire::{BufferId, UnixTime};
use serde::Serialize;

use crate::counters::CounterValues;
use crate::expire::ExpiryStatus;

/// A server or spool at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Version of the program.
    pub version: &'static str,
    /// The spool directory.
    pub spool: String,
    /// The spool's UUID, hexadecimal.
    pub spool_id: String,
    /// Seconds since the engine was opened.
    pub uptime_s: u64,
    /// `reader` or `transit`.
    pub mode: String,
    /// `group-commit`, `each` or `none`.
    pub durability: String,
    /// Why nothing is taken at present, if so.
    pub paused: Option<String>,
    /// Sets that took nothing when they were asked last; articles of others are taken.
    pub put_off: Vec<PutOff>,
    /// What is wrong with the clock, if it jumped and nobody confirmed it.
    pub clock: Option<String>,
    /// The last committed sequence of the log.
    pub sequence: u64,
    /// The sequence up to which the views are sealed on disk.
    pub checkpoint: u64,
    /// The log.
    pub log: LogStatus,
    /// The message-id history.
    pub history: HistoryStatus,
    /// The overview.
    pub overview: OverviewStatus,
    /// Sealed files of the views that are damaged and being rebuilt.
    pub damaged: Vec<String>,
    /// The scrub in the background.
    pub scrub: ScrubStatus,
    /// Expiry in the background.
    pub expiry: ExpiryStatus,
    /// Control messages about groups that are remembered as waiting for approval; some may be gone, or ask for nothing any more.
    pub control_waiting: u64,
    /// Number of groups.
    pub groups: u64,
    /// High marks of new groups are below this, so that there are numbers to go on with.
    pub high_end: u64,
    /// The buffers.
    pub buffers: Vec<BufferStatus>,
    /// Message-ids under way.
    pub offers: u64,
    /// Batches waiting for the sequencer.
    pub queue: u64,
    /// Counters since the engine was opened.
    pub counters: CounterValues,
    /// What each filter has said since it began.
    pub filters: Vec<FilterCounts>,
    /// Resident memory of the process, octets.
    pub memory_octets: u64,
}

/// A set that takes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PutOff {
    /// Its name.
    pub set: String,
    /// Why.
    pub why: &'static str,
    /// Articles that were put off, as often as they came.
    pub articles: u64,
    /// When the first of them came, seconds since 1970.
    pub since: u64,
}

/// The log in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LogStatus {
    /// Segment files.
    pub segments: u64,
    /// Octets of them.
    pub octets: u64,
    /// The oldest sequence still there.
    pub oldest: u64,
    /// Stretches of it that were found lost when it was opened: what they alone said (cancels, changes of groups) is not known.
    pub damage: u64,
}

/// The history in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HistoryStatus {
    /// Ids in memory, not sealed yet.
    pub recent: u64,
    /// Ids in sealed buckets.
    pub sealed: u64,
    /// Buckets.
    pub buckets: u64,
    /// Memory of the filters and the newest part, octets.
    pub memory_octets: u64,
    /// Disk, octets.
    pub disk_octets: u64,
}

/// The overview in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OverviewStatus {
    /// Rows in memory, not sealed yet.
    pub recent: u64,
    /// Rows in sealed packs, dead ones included.
    pub sealed: u64,
    /// Packs.
    pub packs: u64,
    /// Memory of tails and block lists, octets.
    pub memory_octets: u64,
    /// Disk, octets.
    pub disk_octets: u64,
}

/// How the scrub in the background stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ScrubStatus {
    /// Octets it reads a second, at most; 0: it is off.
    pub octets_per_s: u64,
    /// When the pass under way began, seconds since 1970; none: it rests.
    pub began: Option<u64>,
    /// The buffer that is at.
    pub buffer: Option<String>,
    /// Octets it has read.
    pub octets: Option<u64>,
    /// When the last whole pass began.
    pub last_began: Option<u64>,
    /// When it ended.
    pub last_ended: Option<u64>,
    /// Articles it compared.
    pub last_articles: Option<u64>,
    /// Octets it read.
    pub last_octets: Option<u64>,
    /// Buffers it could not read to their ends.
    pub last_unreadable: Option<u64>,
    /// Damaged places known by now and not overwritten yet.
    pub damaged: u64,
    /// More of them, which reads met and no scrub has passed since.
    pub met_by_reads: u64,
}

/// A damaged article, or a stretch of a buffer in which none can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The buffer's name.
    pub buffer: String,
    /// The cycle, as far as it is one.
    pub cycle: Option<u32>,
    /// From this offset in the file.
    pub from: u64,
    /// To this offset.
    pub to: u64,
    /// Its sequence in the log; none: no record can be read.
    pub sequence: Option<u64>,
    /// The token of the article, or of the first one of a stretch.
    pub token: Option<String>,
    /// The file of its own that the article has.
    pub file: Option<String>,
    /// Its message-id, where log, views or what is left of it tell it.
    pub message_id: Option<String>,
    /// Its groups and numbers, where the overview leads to it.
    pub groups: Vec<(String, u64)>,
    /// Its file is there, and this program may not read it.
    pub is_denied: bool,
    /// What it means.
    pub means: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffer, from, to) = (&self.buffer, self.from, self.to);
        match (self.sequence, self.cycle) {
            (Some(sequence), _) => {
                let what = match self.is_denied {
                    true => "may not be read",
                    false => "is damaged",
                };
                write!(
                    f,
                    "buffer {buffer}: the article at {from:#x} (sequence {sequence}) {what}"
                )?;
            }
            (None, cycle) => {
                write!(
                    f,
                    "buffer {buffer}: no record can be read from {from:#x} to {to:#x}"
                )?;
                if let Some(cycle) = cycle {
                    write!(f, " of cycle {cycle}")?;
                }
            }
        }
        let places = self.groups.iter();
        let places = places.map(|(group, number)| format!("{group}:{number}"));
        let names = self.token.iter().chain(&self.file);
        let names = names.chain(&self.message_id).cloned();
        let names: Vec<String> = names.chain(places).collect();
        match names.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", names.join(", ")),
        }
    }
}

/// What a scrub found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ScrubReport {
    /// The buffers, one by one.
    pub buffers: Vec<ScrubbedBuffer>,
    /// Articles that were compared and are sound.
    pub articles: u64,
    /// Sound ones that nobody is led to any more: they were cancelled, expired or moved.
    pub withdrawn: u64,
    /// Sound ones that the log does not know, as it was put back older than they are: attached from a copy of the buffer they come back.
    pub unknown: u64,
    /// Octets that were read.
    pub octets: u64,
    /// Seconds it took.
    pub seconds: u64,
    /// The damage.
    pub damaged: Vec<Damage>,
    /// Damage beyond that.
    pub damaged_omitted: u64,
    /// Buffers that could not be read to their ends, and why.
    pub unreadable: Vec<String>,
    /// What was wrong with headers of buffers and of records, and what was done.
    pub headers: Vec<String>,
    /// It was ended early.
    pub is_cut: bool,
}

/// One buffer of a scrub.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ScrubbedBuffer {
    /// Its name.
    pub name: String,
    /// Articles that were compared and are sound.
    pub articles: u64,
    /// Sound ones that nobody is led to any more: they were cancelled, expired or moved.
    pub withdrawn: u64,
    /// Sound ones that the log does not know, as it was put back older than they are: attached from a copy of the buffer they come back.
    pub unknown: u64,
    /// Octets that were read.
    pub octets: u64,
    /// Damaged places.
    pub damaged: u64,
}

/// One buffer in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferStatus {
    /// Its name, as in tokens.
    pub name: String,
    /// The set it belongs to.
    pub set: String,
    /// Its file.
    pub path: String,
    /// Room for articles, octets; none where each article is a file.
    pub octets: Option<u64>,
    /// How often it has wrapped.
    pub cycle: u32,
    /// Where the next article goes.
    pub free_offset: u64,
    /// Up to where it may be overwritten.
    pub reserved_offset: u64,
    /// `ok`, or what is the matter: `suspended`, `retired`, `drained`, `narrowing`, `read-only`, `defers`, `damaged`, or what is wrong.
    pub state: String,
}

/// Whether a buffer in this state ([`BufferStatus::state`]) is as it should be.
#[must_use]
pub fn is_well(state: &str) -> bool {
    state == "ok" || state == "read-only"
}

/// A buffer with what lies in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferReport {
    /// What `status` tells of it.
    #[serde(flatten)]
    pub status: BufferStatus,
    /// Its id in the spool.
    pub id: u16,
    /// Its storage method.
    pub method: &'static str,
    /// Where its articles begin in the file.
    pub data_offset: u64,
    /// Articles begin at multiples of this.
    pub block_octets: u64,
    /// How much of it is alive, octets, with what was withdrawn between and is not overwritten; none where each article is a file.
    pub live_octets: Option<u64>,
    /// Octets that are free where each article is a file.
    pub free_octets: Option<u64>,
    /// How many articles are in it, as the history knows them; none while a part of that cannot be read.
    pub articles: Option<u64>,
    /// Octets of them, as they are stored.
    pub articles_octets: Option<u64>,
    /// Of how many the whole set has.
    pub set_articles: Option<u64>,
    /// These three are estimated, within a percent or two, from a part of a large history.
    pub articles_are_estimated: bool,
    /// When the oldest article in it arrived that is not overwritten, seconds since 1970; none: nothing in it is alive.
    pub oldest: Option<u64>,
    /// How long ago that was, seconds.
    pub oldest_age_s: Option<u64>,
    /// When the newest did, as far as its header or this run knows.
    pub newest: Option<u64>,
    /// Octets that came a day between the two; not known before they are an hour apart.
    pub octets_a_day: Option<u64>,
    /// At that rate an article that comes now is overwritten, or goes by the limits of its set, after so many seconds.
    pub lasts_s: Option<u64>,
    /// Whether new articles come to it: it is neither retired nor read only.
    pub takes_articles: bool,
    /// The smaller size that it has once it has come around.
    pub becomes_octets: Option<u64>,
    /// How much comes until then, octets, about.
    pub becomes_after_octets: Option<u64>,
    /// At the rate above that is in so many seconds.
    pub becomes_in_s: Option<u64>,
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// What came in less than this says nothing of a day, seconds.
const RATE_S_MIN: u64 = 3600;

/// What a set lets its articles stay by, beside the rules of expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Staying {
    /// The oldest go where there are more octets than this.
    pub(crate) room: Option<u64>,
    /// ... or where they came so long ago, seconds.
    pub(crate) keep_s: Option<u64>,
}

impl Staying {
    pub(crate) fn of(facts: &BufferFacts, set: Option<&SetConfig>) -> Self {
        match set {
            Some(set) if set.has_buffers() => Self {
                room: facts.capacity_octets,
                keep_s: None,
            },
            set => Self {
                room: set.and_then(|set| set.keep_octets),
                keep_s: set.and_then(|set| set.keep_s),
            },
        }
    }

    /// How long, seconds, where so much comes a day.
    fn lasts_s(self, octets_a_day: Option<u64>) -> Option<u64> {
        let flowing = octets_a_day.filter(|octets| *octets > 0);
        let by_room = self.room.zip(flowing);
        let by_room = by_room.map(|(room, a_day)| scaled(room, DAY_S, a_day));
        by_room.into_iter().chain(self.keep_s).min()
    }
}

/// `octets * times / over`.
fn scaled(octets: u64, times: u64, over: u64) -> u64 {
    let scaled = u128::from(octets) * u128::from(times) / u128::from(over.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl BufferReport {
    pub(crate) fn new(
        status: BufferStatus,
        facts: &BufferFacts,
        oldest: Option<UnixTime>,
        (staying, takes_articles): (Staying, bool),
        census: Option<&Census>,
        now: UnixTime,
    ) -> Self {
        let population = |census: &Census| {
            let found = census.buffers.get(&BufferId(facts.id));
            found.copied().unwrap_or_default()
        };
        let population = census.map(population);
        let is_exact = census.is_some_and(|census| census.is_exact);
        // What is still there of withdrawn articles counts as long as others are.
        let is_empty = is_exact && population.is_some_and(|it| it.articles == 0);
        let oldest = oldest.filter(|_| !is_empty).map(|arrival| arrival.0);
        let newest =
            Some(facts.newest_arrival).filter(|newest| oldest.is_some_and(|it| it <= *newest));
        let took_s = oldest.zip(newest).map(|(oldest, newest)| newest - oldest);
        let took_s = took_s.filter(|took_s| *took_s >= RATE_S_MIN);
        let articles_octets = population.map(|it| it.octets);
        let live_octets = match is_empty {
            true => 0,
            false => facts.live_octets,
        };
        let live_octets = facts.capacity_octets.map(|_| live_octets);
        let came = live_octets.or(articles_octets).zip(took_s);
        let octets_a_day = came.map(|(octets, took_s)| scaled(octets, DAY_S, took_s));
        let flowing = octets_a_day.filter(|octets| *octets > 0 && takes_articles);
        let becoming = facts.becomes_after_octets.zip(flowing);
        Self {
            becomes_octets: facts.becomes,
            becomes_after_octets: facts.becomes_after_octets,
            becomes_in_s: becoming.map(|(octets, a_day)| scaled(octets, DAY_S, a_day)),
            lasts_s: staying.lasts_s(octets_a_day).filter(|_| takes_articles),
            id: facts.id,
            method: facts.method,
            data_offset: facts.data_offset,
            block_octets: facts.block_octets,
            live_octets,
            free_octets: facts.free_octets,
            articles: population.map(|it| it.articles),
            articles_octets,
            // Known when all of its buffers are.
            set_articles: None,
            articles_are_estimated: census.is_some() && !is_exact,
            status,
            oldest,
            oldest_age_s: oldest.map(|oldest| now.0.saturating_sub(oldest)),
            newest,
            octets_a_day,
            takes_articles,
        }
    }
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Its id in the log.
    pub id: u32,
    /// Lowest number offered.
    pub low: u64,
    /// Highest number given.
    pub high: u64,
    /// Articles offered.
    pub count: u64,
    /// Status field.
    pub status: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// Who made it.
    pub creator: String,
    /// Its description.
    pub description: String,
    /// Why an alias leads nowhere, if so: articles for it are not filed.
    pub leads_nowhere: Option<String>,
}

/// What a token looks like, for whoever gave half of one.
pub(crate) const TOKEN_SHAPE: &str = "a token is NAME:OFFSET:CYCLE, as in C0:24da800:1e";

/// Which article is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArticleRef {
    /// `<id@host>`
    Id(String),
    /// `group:number`
    Number(String, u64),
    /// `NAME:offset:cycle`
    Token(String),
}

impl std::str::FromStr for ArticleRef {
    type Err = String;

    /// Tells the three forms apart.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('<') {
            return Ok(Self::Id(text.to_owned()));
        }
        match text.split(':').collect::<Vec<_>>()[..] {
            [_, _, _] => Ok(Self::Token(text.to_owned())),
            // Numbers begin with 1 (RFC 3977 section 6).
            [group, number] => match newsreel_wire::range::parse_number(number.as_bytes()) {
                Ok(number) if number.0 > 0 => Ok(Self::Number(group.to_owned(), number.0)),
                _ => Err(format!(
                    "{number:?} in {text:?} is no article number; {TOKEN_SHAPE}"
                )),
            },
            _ => Err(format!(
                "{text:?} names no article: give <message-id>, group:number, or a token; {TOKEN_SHAPE}"
            )),
        }
    }
}

/// An article and where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArticleReport {
    /// Its message-id.
    pub message_id: String,
    /// Its token in text form.
    pub token: String,
    /// The set it lies in.
    pub set: String,
    /// The groups and numbers of its Xref.
    pub xref: Vec<(String, u64)>,
    /// When it arrived, seconds since 1970.
    pub arrival: u64,
    /// Its sequence in the log.
    pub sequence: u64,
    /// Octets in wire form.
    pub octets: u64,
    /// The article, dot-stuffing undone; octets that are no UTF-8 are replaced in this form only.
    pub text: String,
    /// The same octet for octet, as characters U+0000 to U+00FF, when it is no UTF-8.
    pub octets_as_latin1: Option<String>,
}

/// Articles that `check` found in the store and could not compare with the views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Uncompared {
    /// The reason.
    pub why: &'static str,
    /// How many.
    pub articles: u64,
}

/// What `check` found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CheckReport {
    /// Log records read.
    pub records: u64,
    /// Articles whose text, history entry and overview rows were compared: those the log still names, and the
    /// older ones, as the store has them.
    pub articles: u64,
    /// Those of them that have been overwritten since they were logged; nothing must point to them.
    pub overwritten: u64,
    /// Those that were withdrawn since; nothing points to them.
    pub withdrawn: u64,
    /// Articles in the store that could not be compared, and why not.
    pub uncompared: Vec<Uncompared>,
    /// Overview rows compared.
    pub rows: u64,
    /// Groups compared.
    pub groups: u64,
    /// Aliases that lead nowhere, and why: nothing that disagrees, but articles for them are not filed.
    pub aliases: Vec<String>,
    /// What does not agree; empty means that all is well.
    pub problems: Vec<String>,
    /// Problems beyond those listed.
    pub problems_omitted: u64,
}

impl CheckReport {
    /// True when store, log and views agree.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.problems_omitted == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_an_article() {
        assert_eq!("<a@b>".parse(), Ok(ArticleRef::Id("<a@b>".to_owned())));
        assert_eq!(
            "misc.test:12".parse(),
            Ok(ArticleRef::Number("misc.test".to_owned(), 12))
        );
        assert_eq!(
            "SD1:24da800:1e".parse(),
            Ok(ArticleRef::Token("SD1:24da800:1e".to_owned()))
        );
        for number in ["twelve", "+1", ""] {
            let refused = format!("misc.test:{number}").parse::<ArticleRef>();
            assert!(refused.unwrap_err().contains(number));
        }
        assert!(
            "misc.test"
                .parse::<ArticleRef>()
                .unwrap_err()
                .contains("token")
        );
    }

    #[test]
    fn how_long_an_article_stays_follows_from_the_nearer_limit() {
        let lasts = |room, keep_s, a_day| Staying { room, keep_s }.lasts_s(a_day);
        assert_eq!(lasts(Some(1000), None, Some(2000)), Some(DAY_S / 2));
        assert_eq!(lasts(Some(1000), Some(600), Some(2000)), Some(600));
        assert_eq!(lasts(Some(1000), Some(DAY_S), Some(2000)), Some(DAY_S / 2));
        // By age alone it is known before anything has come.
        assert_eq!(lasts(Some(1000), Some(600), None), Some(600));
        assert_eq!(lasts(Some(1000), None, None), None);
        assert_eq!(lasts(Some(1000), None, Some(0)), None);
        assert_eq!(lasts(None, None, Some(2000)), None);
    }
}
