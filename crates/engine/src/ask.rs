//! What the engine tells administrators about itself, its groups, its articles and its buffers.

use std::collections::BTreeMap;

use newsreel_index::{CENSUS_ROWS_MAX, Group, Wait};
use newsreel_service::cancel_lock::Owner;
use newsreel_store::{Blocking, BufferConfig, BufferFacts, ReadError, Stored, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::date::print_rfc5322;
use newsreel_wire::nntp::framing::dot_unstuff;
use newsreel_wire::{ArticleNumber, BufferId, IdHash, MessageId, SetId, Token, TokenText};

use crate::admin::check_specs;
use crate::config::{Durability, Mode};
use crate::engine::Engine;
use crate::error::Error;
use crate::filing::number_max;
use crate::holds::NO_ROOM;
use crate::mend::describe;
use crate::report::{
    ArticleRef, ArticleReport, BufferReport, BufferStatus, GroupReport, HistoryStatus, LogStatus,
    OverviewStatus, PutOff, Status, Staying, TOKEN_SHAPE, is_well,
};
use crate::requests::GroupSpec;
use crate::timekeeper;

impl Engine {
    fn log_status(&self) -> LogStatus {
        let segments = self.shared.journal.segments();
        LogStatus {
            segments: segments.len() as u64,
            octets: segments.iter().map(|segment| segment.octets).sum(),
            oldest: self.shared.journal.oldest().0,
            damage: self.shared.log_damage,
        }
    }

    /// The engine at this moment.
    pub fn status(&self) -> Status {
        let shared = &self.shared;
        let facts = shared.views.facts();
        let filter = shared.filter.read().clone();
        let config = &shared.config.sequencer;
        let paused = shared.holds.lock().why();
        let put_off = self.put_off();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            spool: shared.config.spool.display().to_string(),
            spool_id: self
                .spool
                .id
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect(),
            uptime_s: shared.now_ms().saturating_sub(self.opened_ms) / 1000,
            mode: match config.mode {
                Mode::Reader => "reader",
                Mode::Transit => "transit",
            }
            .to_owned(),
            durability: match config.durability {
                Durability::GroupCommit => "group-commit",
                Durability::Each => "each",
                Durability::None => "none",
            }
            .to_owned(),
            paused,
            put_off,
            clock: shared.time.jump_s().map(timekeeper::describe),
            sequence: shared.committed().0,
            checkpoint: facts.checkpoint.0,
            log: self.log_status(),
            history: HistoryStatus {
                recent: facts.history.memory_rows,
                sealed: facts.history.sealed_rows,
                buckets: facts.history.buckets as u64,
                memory_octets: facts.history.memory_bytes
                    + facts.history.filter_bytes
                    + facts.history.cache_bytes,
                disk_octets: facts.history.file_bytes,
            },
            overview: OverviewStatus {
                recent: facts.overview.memory_rows,
                sealed: facts.overview.sealed_rows,
                packs: facts.overview.packs as u64,
                memory_octets: facts.overview.memory_bytes
                    + facts.overview.block_list_bytes
                    + facts.overview.cache_bytes,
                disk_octets: facts.overview.file_bytes,
            },
            damaged: shared.views.damaged().iter().map(describe).collect(),
            scrub: shared.scrub_status(),
            expiry: shared.expiry_status(),
            control_waiting: shared.waiting.counts().1 as u64,
            groups: facts.groups as u64,
            high_end: number_max(config.number_overflow),
            buffers: self.buffers().map(|(status, _)| status).collect(),
            offers: shared.offers.len() as u64,
            queue: shared.inbox.waiting_batches() as u64,
            counters: shared.counters.values(),
            filters: filter.map_or_else(Vec::new, |filter| filter.counts()),
            memory_octets: newsreel_host::process::own_facts().map_or(0, |facts| facts.rss_bytes),
        }
    }

    fn put_off(&self) -> Vec<PutOff> {
        let holds = self.shared.holds.lock();
        let put_off = holds.sets.iter().map(|held| PutOff {
            set: self.set_name(held.set),
            why: held.why,
            articles: held.articles,
            since: held.since.0,
        });
        put_off.collect()
    }

    /// What `status` tells of each buffer, and what the store knows of it without I/O.
    pub fn buffers(&self) -> impl Iterator<Item = (BufferStatus, BufferFacts)> {
        let buffers = self.shared.store.facts().into_iter();
        buffers.map(|facts| (self.buffer_status(&facts), facts))
    }

    /// Whether a set had no room for the last article that was to come into it.
    fn has_no_room(&self, set: SetId) -> bool {
        let holds = self.shared.holds.lock();
        let mut sets = holds.sets.iter();
        sets.any(|held| held.set == set && held.why == NO_ROOM)
    }

    fn buffer_status(&self, facts: &BufferFacts) -> BufferStatus {
        let mut state = facts.state();
        if state == "ok" && self.is_never_written(facts) {
            "read-only".clone_into(&mut state);
        }
        if state == "ok" && self.has_no_room(SetId(facts.set)) {
            state = format!("defers: {NO_ROOM}, and articles are put off");
        }
        let (known, by_reads) = self.shared.damaged_places(Some(BufferId(facts.id)));
        if is_well(&state) && known + by_reads > 0 {
            state = format!(
                "damaged: places known to be damaged: {}; `newsreel store scrub {}` lists them, and looks for more",
                known + by_reads,
                facts.name
            );
        }
        BufferStatus {
            state,
            name: facts.name.clone(),
            set: self.set_name(SetId(facts.set)),
            path: facts.path.clone(),
            octets: facts.capacity_octets,
            cycle: facts.cycle,
            free_offset: facts.free_offset,
            reserved_offset: facts.reserved_offset,
        }
    }

    /// Whether the configuration says so; who only looks writes none.
    pub(crate) fn is_never_written(&self, facts: &BufferFacts) -> bool {
        let mut buffers = self.shared.config.store.buffers.iter();
        buffers.any(|one: &BufferConfig| one.read_only && one.name == facts.name)
    }

    /// The buffers, one by one, with their oldest articles and how many they have.
    pub fn inspect_store(&self) -> Result<Vec<BufferReport>, Error> {
        let store = &self.shared.store;
        // What is lost of the history is told by `status`.
        let census = self.shared.views.history().census(CENSUS_ROWS_MAX).ok();
        let sets = &self.shared.config.store.sets;
        let report = |facts: BufferFacts| {
            let oldest = store.oldest(BufferId(facts.id))?;
            let status = self.buffer_status(&facts);
            let takes_articles = !facts.is_retired && !self.is_never_written(&facts);
            let set = sets.get(usize::from(facts.set));
            Ok(BufferReport::new(
                status,
                &facts,
                oldest.map(|it| it.arrival),
                (Staying::of(&facts, set), takes_articles),
                census.as_ref(),
                self.shared.time.calendar(),
            ))
        };
        let reports = store.facts().into_iter().map(report);
        let mut reports = reports.collect::<Result<Vec<_>, Error>>()?;
        let mut of_sets: BTreeMap<String, u64> = BTreeMap::new();
        for report in &reports {
            let set = of_sets.entry(report.status.set.clone()).or_default();
            *set += report.articles.unwrap_or(0);
        }
        for report in reports.iter_mut().filter(|it| it.articles.is_some()) {
            report.set_articles = of_sets.get(&report.status.set).copied();
        }
        Ok(reports)
    }

    /// Why these groups could not be made, without making them; `before` others are thought to be made first.
    ///
    /// # Errors
    /// As [`Engine::add_groups`].
    pub fn try_groups(&self, groups: &[GroupSpec], before: usize) -> Result<(), Error> {
        let there = self.shared.views.groups();
        let made = there.next_id().0 as usize + before;
        check_specs(&self.shared, groups, made, |name| {
            let group = there.by_name(name)?;
            Some(group.status().starts_with('='))
        })
    }

    /// Where a group of this name, there or made now, goes on at the least.
    pub fn high_taken(&self, name: &str) -> ArticleNumber {
        self.shared.views.groups().taken(name)
    }

    /// One group; `None` when there is none of that name.
    pub fn group(&self, name: &str) -> Option<GroupReport> {
        let group = self.shared.views.groups().by_name(name)?;
        Some(self.group_report(&group))
    }

    /// All groups, by name.
    pub fn groups(&self) -> Vec<GroupReport> {
        let mut reports = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let before = reports.len();
            let list = self.shared.views.groups();
            let more = list.list(after.as_deref(), "", 1024, |group| {
                reports.push(self.group_report(group));
            });
            if !more || reports.len() == before {
                return reports;
            }
            after = reports.last().map(|report| report.name.clone());
        }
    }

    fn group_report(&self, group: &Group) -> GroupReport {
        let facts = self
            .shared
            .views
            .group_facts_or_estimate(group.id(), Wait::Yes)
            .map_or_else(
                |error| {
                    tracing::error!(%error, group = group.name(), "a group's marks cannot be read");
                    newsreel_index::GroupFacts::default()
                },
                |(facts, _)| facts,
            );
        GroupReport {
            name: group.name().to_owned(),
            id: group.id().0,
            low: facts.low.0,
            high: facts.high.0,
            count: facts.count,
            status: group.status().to_owned(),
            created: group.created().0,
            creator: group.creator().to_owned(),
            description: group.description().to_owned(),
            leads_nowhere: self.leads_nowhere(group.status()),
        }
    }

    /// Why a group of this status leads nowhere: an alias whose target was removed, or became one itself.
    pub(crate) fn leads_nowhere(&self, status: &str) -> Option<String> {
        let target = status.strip_prefix('=')?;
        let group = self.shared.views.groups().by_name(target);
        match group {
            None => Some(format!("{target} does not exist")),
            Some(group) if group.status().starts_with('=') => {
                Some(format!("{target} is an alias itself"))
            }
            Some(_) => None,
        }
    }

    /// The Cancel-Key by which the site takes back an article that was posted here.
    ///
    /// # Errors
    /// When this is no message-id.
    pub fn site_key(&self, id: &str) -> Result<String, Error> {
        let id = MessageId::parse(id.as_bytes())
            .map_err(|error| Error::Request(format!("{id:?}: {error}")))?;
        Ok(self.shared.posts.locksmith.key(Owner::Site, id))
    }

    /// An article and where it lies; `None` when it is not here.
    pub fn article(&self, which: &ArticleRef) -> Result<Option<ArticleReport>, Error> {
        let Some(token) = self.find(which)? else {
            return Ok(None);
        };
        let mut memory = Vec::new();
        match self
            .shared
            .store
            .read(&token, Want::Whole, Blocking::Yes, &mut memory)
        {
            Ok(stored) => Ok(Some(self.article_report(&token, &stored, &memory))),
            Err(ReadError::Gone | ReadError::Removed) => Ok(None),
            Err(error) => Err(Error::Read(error)),
        }
    }

    /// Why an article that is not here is not, as far as anything remembers it.
    pub fn absence(&self, which: &ArticleRef) -> Result<String, Error> {
        let hash = match which {
            ArticleRef::Id(id) => {
                let id = MessageId::parse(id.as_bytes())
                    .map_err(|error| Error::Request(format!("{id:?}: {error}")))?;
                Some(self.shared.id_hash(id))
            }
            ArticleRef::Token(text) => self.at(text)?.and_then(|token| self.whose(&token)),
            ArticleRef::Number(..) => None,
        };
        let Some(hash) = hash else {
            return Ok(self.absence_of_place(which));
        };
        let Some(entry) = self.shared.views.history().lookup(&hash)? else {
            return Ok("it was never here, or is no longer remembered".to_owned());
        };
        let mut since = Vec::new();
        print_rfc5322(entry.arrival, &mut since);
        let since = String::from_utf8_lossy(&since);
        Ok(match entry.token {
            // Whatever withdraws an article takes its token out of the history.
            None => {
                format!("it was withdrawn on {since}: cancelled, expired, or its file was removed")
            }
            Some(_) => format!("it came on {since} and had to make room for newer articles"),
        })
    }

    fn absence_of_place(&self, which: &ArticleRef) -> String {
        let group = match which {
            ArticleRef::Number(name, number) => self.group(name).map(|group| (group, *number)),
            _ => None,
        };
        match group {
            Some((group, number)) if number > group.high => {
                format!("{} has given numbers up to {} only", group.name, group.high)
            }
            _ => "it was never here, was cancelled, or had to make room for newer articles"
                .to_owned(),
        }
    }

    pub(crate) fn find(&self, which: &ArticleRef) -> Result<Option<Token>, Error> {
        let shared = &self.shared;
        match which {
            ArticleRef::Id(id) => {
                let id = MessageId::parse(id.as_bytes())
                    .map_err(|error| Error::Request(format!("{id:?}: {error}")))?;
                let entry = shared.views.history().lookup(&shared.id_hash(id))?;
                Ok(entry.and_then(|entry| entry.token))
            }
            ArticleRef::Number(name, number) => {
                let Some(group) = shared.views.groups().by_name(name) else {
                    let buffers = shared.store.facts();
                    let half = match buffers.iter().any(|buffer| buffer.name == *name) {
                        true => format!(", but a buffer; {TOKEN_SHAPE}"),
                        false => String::new(),
                    };
                    return Err(Error::Request(format!("there is no group {name:?}{half}")));
                };
                let (overview, mut id) = (shared.views.overview(), Vec::new());
                let number = ArticleNumber(*number);
                let column = overview.column(group.id(), number, Wait::Yes, &mut id)?;
                Ok(column.map(|column| column.token))
            }
            ArticleRef::Token(text) => {
                let Some(token) = self.at(text)? else {
                    return Ok(None);
                };
                // It may have left its place, and its record lies there still.
                match self.whose(&token) {
                    Some(hash) => {
                        let entry = shared.views.history().lookup(&hash)?;
                        Ok(entry.and_then(|entry| entry.token))
                    }
                    None => Ok(Some(token)),
                }
            }
        }
    }

    /// What a token in text form leads to; `None`: nothing lies there.
    fn at(&self, text: &str) -> Result<Option<Token>, Error> {
        let store = &self.shared.store;
        let token = TokenText::parse(text).map_err(|error| {
            Error::Request(format!("{text:?} is no token: {error}; {TOKEN_SHAPE}"))
        })?;
        let names: Vec<String> = store.facts().into_iter().map(|b| b.name).collect();
        if !names.iter().any(|name| name == token.name) {
            return Err(Error::Request(format!(
                "there is no buffer {:?}; there are {}",
                token.name,
                names.join(", ")
            )));
        }
        match store.token_at(&token) {
            Ok(token) => Ok(Some(token)),
            Err(error @ ReadError::Host(_)) => Err(Error::Read(error)),
            Err(_) => Ok(None),
        }
    }

    /// Whose record lies in this place, as far as that can be read.
    fn whose(&self, token: &Token) -> Option<IdHash> {
        let (store, mut memory) = (&self.shared.store, Vec::new());
        let stored = store.read(token, Want::Head, Blocking::Yes, &mut memory);
        stored.ok().map(|stored| stored.id_hash)
    }

    fn set_name(&self, set: SetId) -> String {
        let set = self.shared.config.store.sets.get(usize::from(set.0));
        set.map(|set| set.name.clone()).unwrap_or_default()
    }

    fn article_report(&self, token: &Token, stored: &Stored, memory: &[u8]) -> ArticleReport {
        let wire = &memory[stored.octets.clone()];
        let headers = Headers::scan_stored(wire).ok();
        let content = |known| {
            let content = headers.as_ref().and_then(|headers| headers.content(known));
            String::from_utf8_lossy(content.unwrap_or_default()).into_owned()
        };
        let mut text = Vec::with_capacity(wire.len());
        dot_unstuff(wire.strip_suffix(b".\r\n").unwrap_or(wire), &mut text);
        let octets_as_latin1 = std::str::from_utf8(&text)
            .is_err()
            .then(|| text.iter().map(|octet| char::from(*octet)).collect());
        // A token has the number its set had when the article came.
        let buffer = self.shared.store.buffer(token.buffer());
        ArticleReport {
            message_id: content(Known::MessageId),
            token: self.shared.store.token_text(token).unwrap_or_default(),
            set: self.set_name(buffer.map_or(token.set(), |buffer| buffer.set())),
            xref: newsreel_wire::xref::places(content(Known::Xref).as_bytes())
                .map(|(group, number)| (group.to_owned(), number.0))
                .collect(),
            arrival: stored.arrival.0,
            sequence: stored.sequence.0,
            octets: wire.len() as u64,
            text: String::from_utf8_lossy(&text).into_owned(),
            octets_as_latin1,
        }
    }
}
