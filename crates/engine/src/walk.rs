//! A walk over what is alive in one buffer, for `check` and the scrub: what is sound, what is damaged, and whose it was.
//!
//! It reads only and holds no lock.  What nobody is led to any more (withdrawn, never committed) is no loss, and not told.
//! What the history leads to and was not met is (see `expected`), each article by itself, when all of its piece is known.
//! Whose a damaged record was is told only as far as a view bears it out: damage may say anything of itself.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use newsreel_index::Wait;
use newsreel_store::{
    BufferReader, Error as StoreError, HeaderWrite, RecordScan, ScanRange, Scanned,
};
use newsreel_wire::{
    ArticleNumber, GroupId, IdHash, MessageId, Position, Sequence, Token, TokenText, xref,
};

use crate::expected::Expected;
use crate::lost::{Asking, LostArticle};
use crate::record::{ArticleRecord, kind};
use crate::report::Damage;
use crate::scrub_state::KNOWN_MAX;
use crate::shared::Shared;
use crate::vouching::{Vouching, record};

/// What one step met.
#[derive(Debug)]
pub(crate) enum Met {
    /// An article that passes its checksums.
    Sound {
        token: Token,
        sequence: Sequence,
        id_hash: IdHash,
        /// Nobody is led to it any more.
        is_withdrawn: bool,
    },
    /// An article that does not; where it begins.
    Damaged(Position, Box<Damage>),
    /// A stretch where no record can be read, and where it begins.  Which articles are lost there is told later; where nobody
    /// knows, the stretch is all that can be told.
    Torn(Position, Option<Box<Damage>>),
    /// An article that should be here, and is not.
    Lost(Position, Box<Damage>),
    /// So many more of them.
    MoreLost(u64),
    /// An article whose file somebody removed: whose it was, and what that means where it is not withdrawn.
    Removed(Token, IdHash, Box<Damage>),
    /// One that cannot be read as it was stored, and to which the history does not lead.
    Unwanted {
        token: Token,
        sequence: Sequence,
        id_hash: IdHash,
    },
    /// Nothing to tell of; a piece was read.
    Passed,
}

impl Met {
    /// Whether something is not as it should be.
    pub(crate) const fn is_loss(&self) -> bool {
        !matches!(
            self,
            Self::Sound { .. } | Self::Unwanted { .. } | Self::Passed
        )
    }
}

/// A walk over one buffer.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    scan: Box<dyn RecordScan>,
    from: Position,
    /// All before this was told, but for what is lost.
    at: Position,
    /// What was found last, kept until what should lie before it is known.
    held: Option<Option<Scanned>>,
    expected: Expected<'a>,
    /// What was missed, being asked about, and where the first of it lay.
    asking: Option<(Asking, Position)>,
    told: VecDeque<Met>,
    /// The message-ids that can still be read in torn stretches, by where those begin.
    ids: BTreeMap<Position, String>,
    /// What scans before this one, and questions, have read, octets.
    read_before: u64,
    /// Behind this sequence the log has what comes next; `None` where it is not asked.
    logged_behind: Option<Sequence>,
}

/// What it means that a file is not there, where nobody can be sure that it was removed.
const WITHOUT_FILE: &str = "its file is not there, and nothing tells whether somebody removed it or its disk is missing: readers are told that it is not there \
                            until it is back; `newsreel article cancel` takes it out";

/// What it means that a file may not be read.
const DENIED: &str = "nothing tells that it is lost: its owner, or that of a directory above it, lets this program not read it; give it to the user that newsreel runs \
                      as (`chown`, `chmod u+r`), and scrub again; until then readers are told that it cannot be read";

/// What it means that the card of an article is lost whose text lies in a file of another spool.
const WITHOUT_CARD: &str = "its card in the catalogue is lost, and its text may lie whole in the file that was attached: attach that once more (`newsreel store \
                            attach --in-place`), and it is there again under its numbers; until then readers are told that it is not there";

/// What it means, for who only looks, that no record of an article can be read.
const NO_RECORD: &str = "no record of it can be read there, and readers are told that it is not there; where its text, or its own file, is there still the \
                         scrub of a running server makes the record again: start the server, and scrub beside it";

/// So many missed articles are asked about at the latest.
const MISSED_AT_ONCE: usize = 1 << 20;

impl<'a> Walk<'a> {
    /// Over what is alive from a position on.
    pub(crate) fn new(
        shared: &'a Shared,
        buffer: &'a Arc<dyn BufferReader>,
        from: Position,
    ) -> Self {
        let scan = Arc::clone(buffer).scan(ScanRange::LiveFrom(from));
        let from = scan.at();
        Self {
            shared,
            buffer,
            scan,
            from,
            at: from,
            held: None,
            expected: Expected::new(shared, buffer, from),
            asking: None,
            told: VecDeque::new(),
            ids: BTreeMap::new(),
            read_before: 0,
            logged_behind: Some(shared.journal.oldest()),
        }
    }

    /// The same, where only what lies there is asked for.
    pub(crate) fn of_what_lies_there(
        shared: &'a Shared,
        buffer: &'a Arc<dyn BufferReader>,
        from: Position,
    ) -> Self {
        let mut walk = Self::new(shared, buffer, from);
        walk.expected.ask_nothing();
        walk.logged_behind = None;
        walk
    }

    /// A bounded piece further; `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Met>, StoreError> {
        self.step_unless(false)
    }

    /// Tells what is left to tell of what it has passed, and no more.
    pub(crate) fn end(&mut self) -> Result<Option<Met>, StoreError> {
        self.step_unless(true)
    }

    fn step_unless(&mut self, is_over: bool) -> Result<Option<Met>, StoreError> {
        if let Some(met) = self.told.pop_front() {
            return Ok(Some(met));
        }
        if let Some((asking, from)) = self.asking.take() {
            self.ask(asking, from);
            return Ok(Some(Met::Passed));
        }
        let scanned = match self.held.take() {
            _ if is_over => None,
            Some(scanned) => scanned,
            None => self.scan.step()?,
        };
        let (from, to) = match &scanned {
            _ if is_over => (self.at, self.at),
            Some(Scanned::Record { token, .. }) => (token.position(), token.position()),
            Some(Scanned::Damaged { cycle, from, to }) => {
                let at = |offset| Position::checked(cycle.unwrap_or_default(), offset);
                (at(*from).unwrap_or_default(), at(*to).unwrap_or_default())
            }
            Some(Scanned::Passed) | None => (self.scan.at(), self.scan.at()),
        };
        if !self.expected.is_known(to) {
            self.held = Some(scanned);
            return Ok(Some(Met::Passed));
        }
        self.expected.passed(from);
        // Whoever is told now that something was missed is told of all before this: it is no stretch without misses later.
        self.at = self.at.max(from);
        let is_end = scanned.is_none();
        if (is_end && self.expected.missed_len() > 0)
            || self.expected.missed_len() >= MISSED_AT_ONCE
        {
            self.begin_to_ask();
            self.held = Some(scanned);
            return Ok(Some(Met::Passed));
        }
        let met = match scanned {
            None => None,
            Some(Scanned::Passed) => Some(Met::Passed),
            Some(Scanned::Record {
                token,
                sequence,
                id_hash,
                sound,
                ..
            }) => Some(self.record_met((token, sequence, id_hash), sound)),
            Some(Scanned::Damaged { cycle, .. }) => Some(self.torn(cycle, from, to)),
        };
        if !is_over {
            self.at = self.scan.at();
        }
        Ok(met)
    }

    /// What lies there is not on its way, whatever its sequence.
    fn is_behind_old_log(&self, token: &Token) -> bool {
        let scrubs = self.shared.scrubs.lock();
        scrubs.is_distrusted(token.buffer(), token.position())
    }

    fn record_met(
        &mut self,
        (token, sequence, id_hash): (Token, Sequence, IdHash),
        sound: bool,
    ) -> Met {
        let is_expected = self.expected.met(token.position());
        let is_wanted = || self.shared.is_wanted(&token, &id_hash);
        if sound {
            self.logged_behind = Some(sequence);
            // What came since the history was asked, or is on its way, is expected by nobody.
            let may_be_withdrawn = !is_expected && !self.expected.is_blind();
            let is_withdrawn = may_be_withdrawn
                && (sequence <= self.shared.committed() || self.is_behind_old_log(&token))
                && !is_wanted();
            return Met::Sound {
                token,
                sequence,
                id_hash,
                is_withdrawn,
            };
        }
        if !is_wanted() {
            return Met::Unwanted {
                token,
                sequence,
                id_hash,
            };
        }
        let mut damage = self.damaged_article(&token, sequence, id_hash);
        if self.scan.is_denied() {
            (damage.is_denied, damage.means) = (true, DENIED);
            return Met::Damaged(token.position(), damage);
        }
        match self.shared.store.removed(&token) {
            Some(_) => {
                damage.means = WITHOUT_FILE;
                Met::Removed(token, id_hash, damage)
            }
            // A reader has just withdrawn it.
            None if !is_wanted() => Met::Unwanted {
                token,
                sequence,
                id_hash,
            },
            None => Met::Damaged(token.position(), damage),
        }
    }

    /// Whatever was missed is asked about.
    fn begin_to_ask(&mut self) {
        let missed = self.expected.take_missed();
        let (first, last) = match (missed.first(), missed.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => return,
        };
        match Asking::new(self.shared, self.buffer, missed) {
            Ok(asking) => self.asking = Some((asking, first)),
            Err(error) => self.cannot_ask(&error, first, last),
        }
    }

    fn ask(&mut self, mut asking: Asking, from: Position) {
        match asking.step(self.shared, self.buffer) {
            Ok(true) => self.asking = Some((asking, from)),
            Ok(false) => {
                self.read_before += asking.octets_read();
                let (lost, more) = asking.end(self.shared, self.buffer);
                for lost in lost {
                    let met = self.lost(lost);
                    self.told.push_back(met);
                }
                if more > 0 {
                    self.told.push_back(Met::MoreLost(more));
                }
                self.ids.clear();
            }
            Err(error) => {
                let last = asking.last();
                self.cannot_ask(&error, from, last);
            }
        }
    }

    /// Which articles are lost cannot be told, but that some are.
    fn cannot_ask(&mut self, error: &newsreel_index::Error, first: Position, last: Position) {
        let buffer = self.buffer.name();
        tracing::warn!(%error, buffer, "which articles of a buffer are lost cannot be told");
        let damage = self.stretch(Some(first.cycle()), (first.offset(), last.offset()), None);
        self.told.push_back(Met::Lost(first, damage));
    }

    /// Goes on from here, where something was mended.
    pub(crate) fn again_from(&mut self, at: Position) {
        self.expected.again_from(at);
        (self.at, self.held) = (at, None);
        if !self.scan.again_from(at) {
            self.read_before += self.scan.octets_read();
            self.scan = Arc::clone(self.buffer).scan(ScanRange::LiveFrom(at));
        }
    }

    /// What writes the record again that the last step could not read: of an article whose message-id can still be read there, and
    /// to which the history leads.
    pub(crate) fn mending(&self, at: Position) -> Option<(String, HeaderWrite)> {
        let id = field(self.article(), b"message-id").and_then(|id| MessageId::parse(id).ok())?;
        let hash = self.shared.id_hash(id);
        let entry = self.shared.views.history().lookup(&hash).ok()??;
        let token = entry.token.filter(|token| self.is_at(token, at))?;
        let is_live = self.shared.store.is_live(&token);
        let vouching = Vouching {
            shared: self.shared,
            token,
            id_hash: hash,
            logged_behind: self.logged_behind,
        };
        let buffer = Arc::clone(self.buffer);
        let write = buffer.mending(&token, entry.arrival, &hash, &vouching);
        Some((id.as_str().to_owned(), write.filter(|_| is_live)?))
    }

    /// The article that the last step met.
    pub(crate) fn article(&self) -> &[u8] {
        self.scan.article()
    }

    /// Takes the whole pages between articles in which nothing is that were passed since this was called last.
    pub(crate) fn take_gaps(&mut self, out: &mut Vec<Range<Position>>) {
        self.scan.take_gaps(out);
    }

    /// All before this was told, but for what is lost.
    pub(crate) const fn at(&self) -> Position {
        self.at
    }

    /// All before this was told.
    pub(crate) fn settled_at(&self) -> Position {
        let asked = self.asking.as_ref().map(|(_, from)| *from);
        let told = self.told.iter().find_map(|met| match met {
            Met::Lost(at, _) => Some(*at),
            _ => None,
        });
        let missed = self.expected.first_missed();
        let first = asked.into_iter().chain(told).chain(missed).min();
        first.map_or(self.at, |first| first.min(self.at))
    }

    /// Whether something was missed since this was asked last.
    pub(crate) const fn has_missed(&mut self) -> bool {
        self.expected.has_missed()
    }

    /// Nothing is known of what should be here.
    pub(crate) const fn is_blind(&self) -> bool {
        self.expected.is_blind()
    }

    /// Octets that were read from the disk.
    pub(crate) fn octets_read(&self) -> u64 {
        let asking = self.asking.as_ref();
        self.read_before
            + self.scan.octets_read()
            + self.expected.octets_read()
            + asking.map_or(0, |(asking, _)| asking.octets_read())
    }

    /// Octets of the buffer that lie behind.
    pub(crate) fn octets_passed(&self) -> u64 {
        let (from, at) = (self.from, self.at());
        let cycles = u64::from(at.cycle().saturating_sub(from.cycle()));
        (cycles * self.buffer.cycle_octets() + at.offset()).saturating_sub(from.offset())
    }

    fn token_text(&self, position: Position) -> String {
        let name = self.buffer.name();
        TokenText { name, position }.to_string()
    }

    fn damaged_article(&self, token: &Token, sequence: Sequence, id_hash: IdHash) -> Box<Damage> {
        let position = token.position();
        let (file, means) = self.whereabouts(
            token,
            "its text is lost, and readers are told that it is not there",
        );
        let told = |article: &ArticleRecord<'_>| Whose {
            id: Some(String::from_utf8_lossy(article.id).into_owned()),
            places: self.confirmed(position, article.groups.iter().copied()),
        };
        let whose = self.logged(token, sequence, told).unwrap_or_else(|| {
            let is_it = |hash: &IdHash| *hash == id_hash;
            self.written(position, &is_it)
        });
        Box::new(Damage {
            buffer: self.buffer.name().to_owned(),
            cycle: Some(position.cycle()),
            from: position.offset(),
            to: position.offset() + u64::from(token.len()),
            sequence: Some(sequence.0),
            token: Some(self.token_text(position)),
            file,
            message_id: whose.id,
            groups: whose.places,
            is_denied: false,
            means,
        })
    }

    /// The file in which an article should lie, as far as it is told, and what it means that it cannot be read.
    fn whereabouts(&self, token: &Token, means: &'static str) -> (Option<String>, &'static str) {
        if self.buffer.lacks_card(token) {
            return (Some(self.buffer.facts().path), WITHOUT_CARD);
        }
        let file = self.buffer.file_of(token);
        (file.map(|file| file.display().to_string()), means)
    }

    /// No record can be read here: what that means is known where it is known what should lie here.
    fn torn(&mut self, cycle: Option<u32>, from: Position, to: Position) -> Met {
        let is_blind = self.expected.is_blind() || cycle.is_none();
        if !is_blind && !self.expected.is_any(from, to) {
            // What lay there was withdrawn, or nothing ever did.
            return Met::Passed;
        }
        // Here the header is lost, which has the hash: but the history may lead here.
        let history = self.shared.views.history();
        let is_it = |hash: &IdHash| {
            let entry = history.lookup(hash).ok().flatten();
            let token = entry.and_then(|entry| entry.token);
            token.is_some_and(|token| self.is_at(&token, from))
        };
        let whose = self.written(from, &is_it);
        if is_blind {
            let octets = (from.offset(), to.offset());
            return Met::Torn(from, Some(self.stretch(cycle, octets, Some(whose))));
        }
        if let Some(id) = whose.id.filter(|_| self.ids.len() < KNOWN_MAX) {
            self.ids.insert(from, id);
        }
        Met::Torn(from, None)
    }

    /// Articles lay somewhere between these octets.
    fn stretch(
        &self,
        cycle: Option<u32>,
        (from, to): (u64, u64),
        whose: Option<Whose>,
    ) -> Box<Damage> {
        let position = Position::checked(cycle.unwrap_or_default(), from).unwrap_or_default();
        let (message_id, groups) = match whose {
            Some(whose) => (whose.id, whose.places),
            None => (None, Vec::new()),
        };
        Box::new(Damage {
            buffer: self.buffer.name().to_owned(),
            cycle,
            from,
            to,
            sequence: None,
            token: cycle.map(|_| self.token_text(position)),
            file: None,
            message_id,
            groups,
            is_denied: false,
            means: "the articles that lay there are lost, and readers are told that they are not there",
        })
    }

    /// An article to which the history leads and that is not here.
    fn lost(&mut self, lost: LostArticle) -> Met {
        let position = lost.token.position();
        let (name, len) = (self.buffer.name().to_owned(), u64::from(lost.token.len()));
        // Who only looks has nothing written again, nor looks what is left of it.
        let means = match self.shared.is_closing() {
            true => NO_RECORD,
            false => {
                "nothing is left of it there: its text is lost, and readers are told that it is not there"
            }
        };
        let (file, means) = self.whereabouts(&lost.token, means);
        let groups = self.shared.views.groups();
        let places = lost.places.iter().filter_map(|(group, number)| {
            Some((groups.by_id(*group)?.name().to_owned(), number.0))
        });
        let damage = Box::new(Damage {
            buffer: name,
            cycle: Some(position.cycle()),
            from: position.offset(),
            to: position.offset() + self.buffer.octets_for(len),
            sequence: lost.sequence.map(|sequence| sequence.0),
            token: Some(self.token_text(position)),
            file,
            message_id: lost.id.or_else(|| self.ids.remove(&position)),
            groups: places.collect(),
            is_denied: false,
            means,
        });
        match self.buffer.lacks(position) {
            true => Met::Removed(lost.token, lost.hash, damage),
            false => Met::Lost(position, damage),
        }
    }

    fn is_at(&self, token: &Token, position: Position) -> bool {
        token.buffer() == self.buffer.id() && token.position() == position
    }

    /// What is to be told of the article's record in the log, while that is kept.
    fn logged<T>(
        &self,
        token: &Token,
        sequence: Sequence,
        told: impl FnOnce(&ArticleRecord<'_>) -> T,
    ) -> Option<T> {
        record(self.shared, sequence, |record| {
            if record.kind != kind::ARTICLE {
                return None;
            }
            let article = ArticleRecord::decode(sequence, record.payload).ok()?;
            article.token.same_place(token).then(|| told(&article))
        })
    }

    /// Whose it was by what can still be read of its text.
    fn written(&self, position: Position, is_it: &dyn Fn(&IdHash) -> bool) -> Whose {
        let text = self.article();
        let id = field(text, b"message-id").and_then(|id| MessageId::parse(id).ok());
        let id = id.filter(|id| is_it(&self.shared.id_hash(*id)));
        let groups = self.shared.views.groups();
        let places = xref::places(field(text, b"xref").unwrap_or_default());
        let places = places.filter_map(|(name, number)| Some((groups.by_name(name)?.id(), number)));
        Whose {
            id: id.map(|id| id.as_str().to_owned()),
            places: self.confirmed(position, places),
        }
    }

    /// Those of these places where the overview has this article.
    fn confirmed(
        &self,
        position: Position,
        places: impl Iterator<Item = (GroupId, ArticleNumber)>,
    ) -> Vec<(String, u64)> {
        let (views, mut id) = (&self.shared.views, Vec::new());
        let named = |(group, number): (GroupId, ArticleNumber)| {
            let overview = views.overview();
            let column = overview.column(group, number, Wait::Yes, &mut id).ok()??;
            let name = views.groups().by_id(group)?.name().to_owned();
            self.is_at(&column.token, position)
                .then_some((name, number.0))
        };
        places.filter_map(named).collect()
    }
}

/// Whose a damaged record was.
struct Whose {
    id: Option<String>,
    places: Vec<(String, u64)>,
}

/// The content of a header field in a text of which some may be damaged.
fn field<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let lines = text.split(|octet| *octet == b'\n');
    let head = lines
        .map(<[u8]>::trim_ascii_end)
        .take_while(|line| !line.is_empty());
    let mut contents = head.filter_map(|line| {
        let (start, rest) = line.split_at_checked(name.len())?;
        let content = rest.strip_prefix(b":")?;
        start
            .eq_ignore_ascii_case(name)
            .then_some(content.trim_ascii())
    });
    contents.next()
}

impl Shared {
    /// Whether the history leads to this record, as far as it can tell.
    pub(crate) fn is_wanted(&self, token: &Token, id_hash: &IdHash) -> bool {
        let known = self.views.history().lookup(id_hash);
        let is_elsewhere =
            known.is_ok_and(|entry| entry.is_none_or(|entry| !entry.leads_to(token)));
        self.store.is_live(token) && !is_elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_what_is_left_of_a_text() {
        let text =
            b"From: a\r\nsub\0\xffject\r\nMESSAGE-ID:  <1@a> \r\nXref: x a:1\r\n\r\nXref: b\r\n";
        assert_eq!(field(text, b"message-id"), Some(&b"<1@a>"[..]));
        assert_eq!(field(text, b"xref"), Some(&b"x a:1"[..]));
        assert_eq!(field(&text[..40], b"xref"), None);
        assert_eq!(field(b"", b"xref"), None);
        assert_eq!(field(b"\r\nXref: b\r\n", b"xref"), None);
    }
}
