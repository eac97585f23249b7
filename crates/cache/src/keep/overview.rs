//! Groups and their overview: what was told by the server, and what went.
//!
//! Changes are made one after the other, each from what is kept at that moment.  The groups themselves are in memory, too, and
//! who only asks for one waits for no change.  What is in memory is changed also where the table failed: it must not be older
//! than what was told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, IdHash, MessageId, UnixTime};

use super::block::{Block, place_of, places_in};
use super::error::Result;
use super::group::KeptGroup;
use super::table::{Change, Fault, Table};
use super::{BLOCK_NUMBERS, Keep, UNREAD_GONE_MAX};

/// The groups that are kept.
#[derive(Debug)]
pub(super) struct Groups {
    rows: HashMap<Box<str>, Arc<KeptGroup>>,
    /// The first high mark that was told of each while nobody knows what the table has; none: that is known.
    firsts: Option<HashMap<Box<str>, ArticleNumber>>,
    /// How often anything was posted.
    posts: u64,
    /// How often a group was new, or another one than before.
    generations: u64,
    overview_octets: u64,
    overview_octets_max: u64,
}

impl Groups {
    /// None until the table is read; so many octets of overview may be kept.
    pub(super) fn new(overview_octets_max: u64) -> Self {
        Self {
            rows: HashMap::new(),
            firsts: Some(HashMap::new()),
            posts: 0,
            generations: 0,
            overview_octets: 0,
            overview_octets_max,
        }
    }

    pub(super) fn read(table: &Table, overview_octets_max: u64) -> Result<Self> {
        let (mut rows, mut overview_octets) = (HashMap::new(), 0);
        table.groups(|name, group| {
            overview_octets += group.overview_octets;
            rows.insert(name.into(), Arc::new(group));
        })?;
        Ok(Self {
            rows,
            firsts: None,
            posts: 0,
            generations: 0,
            overview_octets,
            overview_octets_max,
        })
    }

    /// All groups with their names.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Box<str>, &Arc<KeptGroup>)> {
        self.rows.iter()
    }

    /// The names of all groups.
    pub(super) fn names(&self) -> impl Iterator<Item = &Box<str>> {
        self.rows.keys()
    }

    /// Octets of all overview that is kept, and how many groups.
    pub(super) fn figures(&self) -> (u64, usize) {
        (self.overview_octets, self.rows.len())
    }

    /// The group whose overview goes next: the one that was asked for longest ago, of those that are not pinned first.
    fn next_victim(&self, but: &str, is_pinned: impl Fn(&str) -> bool) -> Option<Box<str>> {
        let with_overview = self
            .rows
            .iter()
            .filter(|(name, group)| group.overview_octets > 0 && &***name != but);
        let oldest = with_overview.min_by_key(|(name, group)| (is_pinned(name), group.told));
        oldest.map(|(name, _)| name.clone())
    }

    /// Those of a table that was opened again are the ones that are kept.
    pub(super) fn become_those(&mut self, mut groups: Self) {
        (groups.posts, groups.generations) = (self.posts, self.generations);
        for (name, group) in &self.rows {
            if let Some(there) = groups.rows.get_mut(name) {
                let there = Arc::make_mut(there);
                there.posted = there.posted.max(group.posted);
                there.generation = group.generation;
            }
        }
        *self = groups;
    }

    /// A group as it is now, which may be another one than before.  Of one of which nothing was known nobody knows when something was
    /// posted to it.
    fn put(&mut self, name: &str, mut group: KeptGroup, is_another: bool) -> Arc<KeptGroup> {
        let old = self.rows.get(name);
        let posted = old.map_or(self.posts, |old| old.posted);
        group.posted = group.posted.max(posted);
        group.generation = match old.filter(|_| !is_another) {
            Some(old) => old.generation,
            None => {
                self.generations += 1;
                self.generations
            }
        };
        let (octets, group) = (group.overview_octets, Arc::new(group));
        if let Some(firsts) = &mut self.firsts {
            firsts.entry(name.into()).or_insert(group.high);
        }
        let old = self.rows.insert(name.into(), Arc::clone(&group));
        let had = old.map_or(0, |old| old.overview_octets);
        self.overview_octets = self.overview_octets - had + octets;
        group
    }

    /// Nothing is known of a group; whether something was.
    fn remove(&mut self, name: &str) -> bool {
        let old = self.rows.remove(name);
        let had = old.as_ref().map_or(0, |old| old.overview_octets);
        self.overview_octets -= had;
        old.is_some()
    }

    /// Octets of overview that a group has now; gives the group as it is to be kept.
    fn set_octets(&mut self, name: &str, octets: u64) -> Option<Arc<KeptGroup>> {
        let group = self.rows.get_mut(name)?;
        self.overview_octets = self.overview_octets - group.overview_octets + octets;
        Arc::make_mut(group).overview_octets = octets;
        Some(Arc::clone(group))
    }

    const fn is_too_much(&self) -> bool {
        self.overview_octets > self.overview_octets_max
    }
}

/// The numbers of blocks in which a range lies.
fn blocks_of(low: ArticleNumber, high: ArticleNumber) -> std::ops::RangeInclusive<u64> {
    place_of(low).0..=place_of(high).0
}

/// Below which block the overview of a group goes with what was told of it now; none: all stays.
fn gone_below(old: &KeptGroup, new: &KeptGroup) -> Option<u64> {
    if new.high < old.high {
        return Some(u64::MAX);
    }
    (old.low < new.low).then_some(new.low.0 / BLOCK_NUMBERS)
}

/// What of a group's overview goes.
struct Going {
    /// The blocks below this one; none: none of them.
    below: Option<u64>,
    /// ... and lines of that one: it without them, and their articles.
    cut: Option<(Block, Vec<IdHash>)>,
}

impl Going {
    /// All of it.
    const fn all() -> Self {
        Self {
            below: Some(u64::MAX),
            cut: None,
        }
    }
}

impl Keep {
    /// What is kept of a group; never waits for the disk.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<Arc<KeptGroup>> {
        self.groups.lock().rows.get(name).cloned()
    }

    /// Of the groups that are such the one that was told of last; never waits for the disk.
    #[must_use]
    pub fn last_told(&self, is_such: impl Fn(&str) -> bool) -> Option<Box<str>> {
        let groups = self.groups.lock();
        let such = groups.rows().filter(|(name, _)| is_such(name));
        let last = such.max_by_key(|(_, group)| group.told);
        last.map(|(name, _)| name.clone())
    }

    /// The server told of a group.  What lies below its low mark goes; where the high mark fell the group is another one, and
    /// nothing of the old one stays.  Gives the group as it is kept.
    pub fn put_group(&self, name: &Arc<str>, mut group: KeptGroup) -> Arc<KeptGroup> {
        let _changing = self.changing.lock();
        let old = self.group(name);
        let going = self.going(name, old.as_deref(), &mut group);
        let put = self.put_row(name, &mut group, &going);
        let gone = self.told(put).unwrap_or_default();
        let is_another = going.below == Some(u64::MAX);
        if is_another {
            self.renewed.lock().insert((**name).into());
        }
        if let (Some(below), Some((block, _))) = (going.below, going.cut) {
            let key = (Arc::clone(name), below);
            self.blocks_in_memory.insert(key, Arc::new(block));
        }
        let group = self.groups.lock().put(name, group, is_another);
        self.forget_in_memory(&gone, going.below.map(|below| (&**name, below)));
        group
    }

    /// What goes as a group is as it was told now, which has the octets of overview that it had.
    fn going(&self, name: &Arc<str>, old: Option<&KeptGroup>, group: &mut KeptGroup) -> Going {
        group.overview_octets = old.map_or(0, |old| old.overview_octets);
        let below = old.and_then(|old| gone_below(old, group));
        let is_cut = below.is_some_and(|below| below < u64::MAX);
        let cut = is_cut.then(|| self.cut_below(name, group.low)).flatten();
        Going { below, cut }
    }

    /// Puts a group into the table without what goes of it; gives the articles that went.  That it is another group is durable: behind
    /// a crash what was told of the old one would be told under the numbers of the new one.
    fn put_row(&self, name: &str, group: &mut KeptGroup, going: &Going) -> Result<Vec<IdHash>> {
        let had = group.overview_octets;
        let is_another = going.below == Some(u64::MAX);
        self.table.change(is_another, |change| {
            let mut gone = Vec::new();
            if let Some(below) = going.below {
                let octets = self.let_go(change, (name, below), &mut gone)?;
                group.overview_octets = had.saturating_sub(octets);
                if let Some((block, ids)) = &going.cut {
                    let (new, old) = change.put_block(name, below, block)?;
                    group.overview_octets = (group.overview_octets + new).saturating_sub(old);
                    change.forget(ids)?;
                    gone.extend(ids);
                }
            }
            change.put_group(name, group)?;
            Ok(gone)
        })
    }

    /// The blocks of a group below a number go, and the articles of their lines, which are appended; gives the blocks' octets.
    fn let_go(
        &self,
        change: &Change<'_>,
        (name, below): (&str, u64),
        gone: &mut Vec<IdHash>,
    ) -> std::result::Result<u64, Fault> {
        let mut ids = Vec::new();
        let octets = change.remove_blocks(name, 0..below, |block| self.ids(block, &mut ids))?;
        change.forget(&ids)?;
        gone.append(&mut ids);
        Ok(octets)
    }

    /// Of a table that was opened again these groups go that went, or are others, since it was durable.
    pub(super) fn remove_renewed(&self, groups: &mut Groups) -> Result<()> {
        let names = self.renewed.lock().clone();
        if names.is_empty() {
            return Ok(());
        }
        let gone = self.table.change(false, |change| {
            let mut gone = Vec::new();
            for name in &names {
                self.let_go(change, (name, u64::MAX), &mut gone)?;
                change.remove_group(name)?;
            }
            Ok(gone)
        })?;
        for name in &names {
            groups.remove(name);
        }
        self.forget_in_memory(&gone, None);
        Ok(())
    }

    /// A table that was opened again takes what was told of groups since it was durable: what is in memory is newer always.  No
    /// block may be in memory.
    pub(super) fn take_newer(&self, groups: &mut Groups) -> Result<()> {
        let (known, firsts) = {
            let known = self.groups.lock();
            (known.rows.clone(), known.firsts.clone().unwrap_or_default())
        };
        for (name, group) in known {
            let (name, mut group): (Arc<str>, _) = (name.into(), KeptGroup::clone(&group));
            let old = groups.rows.get(&*name).map(Arc::clone);
            let mut going = self.going(&name, old.as_deref(), &mut group);
            let first = firsts.get(&*name);
            if old
                .as_ref()
                .zip(first)
                .is_some_and(|(old, first)| *first < old.high)
            {
                going = Going::all();
            }
            if going.below.is_some() || old.is_none_or(|old| old.encode() != group.encode()) {
                let gone = self.put_row(&name, &mut group, &going)?;
                groups.put(&name, group, false);
                self.forget_in_memory(&gone, None);
            }
        }
        Ok(())
    }

    /// The block in which a low mark lies without what is below that, and the articles of the lines that went; none: none did.
    fn cut_below(&self, name: &Arc<str>, low: ArticleNumber) -> Option<(Block, Vec<IdHash>)> {
        let (number, place) = place_of(low);
        let block = self.block_in_memory(name, number);
        let block = block.unwrap_or_else(|| Arc::new(self.block_on_disk(name, number)));
        let below = (1 << place) - 1;
        let lines = block.lines_of(below);
        let gone: Vec<IdHash> = lines.filter_map(|(_, line)| self.id_of(line)).collect();
        let is_cut = block.there() & below != 0;
        is_cut.then(|| (block.filled(below, std::iter::empty()), gone))
    }

    /// How often anything was posted by now; never waits for the disk.
    #[must_use]
    pub fn posts(&self) -> u64 {
        self.groups.lock().posts
    }

    /// Something was posted to a group: what is told of it by a server that was asked before may have changed, and is not told again
    /// until the server was asked since.  Never waits for the disk.
    pub fn outdate_group(&self, name: &str) {
        let mut groups = self.groups.lock();
        groups.posts += 1;
        let posts = groups.posts;
        if let Some(group) = groups.rows.get_mut(name) {
            Arc::make_mut(group).posted = posts;
        }
    }

    /// The server says that there is no such group, or another one: that is durable if anything was kept of it.
    pub fn remove_group(&self, name: &str) {
        self.renew_group(name, true);
    }

    /// Nothing that is kept of a group is right any more.
    pub(super) fn renew_group(&self, name: &str, is_durable: bool) {
        let _changing = self.changing.lock();
        let (was_known, is_unread) = {
            let mut groups = self.groups.lock();
            (groups.remove(name), groups.firsts.is_some())
        };
        let is_noted = was_known || is_unread && self.renewed.lock().len() < UNREAD_GONE_MAX;
        if !is_noted {
            return;
        }
        let changed = self.table.change(is_durable, |change| {
            let mut gone = Vec::new();
            self.let_go(change, (name, u64::MAX), &mut gone)?;
            change.remove_group(name)?;
            Ok(gone)
        });
        let gone = self.told(changed).unwrap_or_default();
        self.renewed.lock().insert(name.into());
        self.forget_in_memory(&gone, Some((name, u64::MAX)));
    }

    /// These groups go, with their overview, and these articles, and no others of which the overview has lines, as they are those of other
    /// groups: all of it, or nothing, and for good when this returns.
    pub(super) fn let_all_go(&self, names: HashSet<Box<str>>, ids: Vec<IdHash>) -> Result<()> {
        let _changing = self.changing.lock();
        let gone = self.table.change(true, |change| {
            change.forget(&ids)?;
            for name in &names {
                change.remove_blocks(name, 0..u64::MAX, |_| ())?;
                change.remove_group(name)?;
            }
            Ok(ids)
        })?;
        {
            let mut groups = self.groups.lock();
            for name in &names {
                groups.remove(name);
            }
        }
        self.forget_in_memory(&gone, None);
        self.blocks_in_memory
            .retain(|(name, _), _| !names.contains(&**name));
        self.renewed.lock().extend(names);
        Ok(())
    }

    /// What is known of a block, if that is in memory; never waits.
    #[must_use]
    pub fn block_in_memory(&self, group: &Arc<str>, number: u64) -> Option<Arc<Block>> {
        self.blocks_in_memory.get(&(Arc::clone(group), number))
    }

    /// What is known of a block.
    #[must_use]
    pub fn block(&self, group: &Arc<str>, number: u64) -> Arc<Block> {
        if let Some(block) = self.block_in_memory(group, number) {
            return block;
        }
        // Nobody changes it between reading it and taking it into memory.
        let _changing = self.changing.lock();
        let block = Arc::new(self.block_on_disk(group, number));
        let key = (Arc::clone(group), number);
        self.blocks_in_memory.insert(key, Arc::clone(&block));
        block
    }

    /// The same as if no article were there but those that are kept.
    #[must_use]
    pub fn block_of_kept(&self, group: &Arc<str>, number: u64) -> Arc<Block> {
        let block = self.block(group, number);
        let mut ids = Vec::new();
        self.ids(&block, &mut ids);
        let kept = self.kept_of(&ids);
        let is_kept = |line: &[u8]| self.id_of(line).is_some_and(|id| kept.contains(&id));
        let kept = block.lines().filter(|(_, line)| is_kept(line));
        Arc::new(block.filled(u128::MAX, kept))
    }

    /// Those of a range of a group's numbers of which the articles are kept.
    #[must_use]
    pub fn numbers_kept(
        &self,
        group: &str,
        (low, high): (ArticleNumber, ArticleNumber),
    ) -> Vec<ArticleNumber> {
        let mut articles = Vec::new();
        let looked = self.table.each_block(group, |block, known| {
            let lines = known.lines_of(places_in(block, low, high));
            let number = |place| ArticleNumber(block * BLOCK_NUMBERS + u64::from(place));
            articles
                .extend(lines.filter_map(|(place, line)| Some((number(place), self.id_of(line)?))));
        });
        self.told(looked);
        let ids: Vec<IdHash> = articles.iter().map(|(_, id)| *id).collect();
        let kept = self.kept_of(&ids);
        articles.retain(|(_, id)| kept.contains(id));
        articles.into_iter().map(|(number, _)| number).collect()
    }

    /// Whether all is known of a number: that nothing is there, or the article, which is kept.
    #[must_use]
    pub fn is_settled(&self, group: &Arc<str>, number: ArticleNumber) -> bool {
        let (block, place) = place_of(number);
        let block = self.block(group, block);
        match block.line(place) {
            Some(line) => self.id_of(line).is_some_and(|id| self.has_article(&id)),
            None => block.asked() >> place & 1 == 1,
        }
    }

    fn block_on_disk(&self, group: &str, number: u64) -> Block {
        let kept = self.told(self.table.block(group, number)).flatten();
        kept.unwrap_or_default()
    }

    /// The server was asked for the overview of these ranges of a generation of a group, one behind the other, and told these lines, in
    /// order: where the group is another one by now none of it is kept.
    pub fn tell<'l>(
        &self,
        (group, generation): (&Arc<str>, u64),
        ranges: &[(ArticleNumber, ArticleNumber)],
        lines: impl Iterator<Item = (ArticleNumber, &'l [u8])>,
        now: UnixTime,
    ) {
        let (Some((low, _)), Some((_, high))) = (ranges.first(), ranges.last()) else {
            return;
        };
        let mut by_block: BTreeMap<u64, Vec<(u8, &[u8])>> = BTreeMap::new();
        for (number, line) in lines {
            let (block, place) = place_of(number);
            by_block.entry(block).or_default().push((place, line));
        }
        self.change_blocks((group, generation), (*low, *high), |number, old| {
            let places = ranges
                .iter()
                .map(|(low, high)| places_in(number, *low, *high));
            let places = places.fold(0, |all, some| all | some);
            let lines = by_block.get(&number).into_iter().flatten();
            (old.told(places, lines.copied(), now), Vec::new())
        });
    }

    /// The lines of these numbers of a generation of a group are not known any more.
    pub fn forget_lines(&self, (group, generation): (&Arc<str>, u64), gone: &[ArticleNumber]) {
        let (Some(low), Some(high)) = (gone.iter().min(), gone.iter().max()) else {
            return;
        };
        self.change_blocks((group, generation), (*low, *high), |number, old| {
            let places = gone.iter().map(|number| place_of(*number));
            let places = places.filter(|(block, _)| *block == number);
            let places = places.fold(0, |all, (_, place)| all | 1 << place);
            (old.forgotten(places), Vec::new())
        });
    }

    /// The server listed the numbers of a range of a generation of a group, as for [`Keep::tell`].
    pub fn compare(
        &self,
        (group, generation): (&Arc<str>, u64),
        (low, high): (ArticleNumber, ArticleNumber),
        listed: &[ArticleNumber],
        now: UnixTime,
    ) {
        let mut by_block: BTreeMap<u64, u128> = BTreeMap::new();
        for number in listed {
            let (block, place) = place_of(*number);
            *by_block.entry(block).or_default() |= 1 << place;
        }
        self.change_blocks((group, generation), (low, high), |number, old| {
            let listed = by_block.get(&number).copied().unwrap_or_default();
            old.compared(places_in(number, low, high), listed, now)
        });
    }

    /// Changes the blocks of a range, and forgets the articles of lines that went; nothing where the group is of another generation.
    fn change_blocks(
        &self,
        (group, generation): (&Arc<str>, u64),
        (low, high): (ArticleNumber, ArticleNumber),
        mut change_one: impl FnMut(u64, &Block) -> (Block, Vec<Vec<u8>>),
    ) {
        let _changing = self.changing.lock();
        let row = self.group(group);
        let Some(row) = row.filter(|row| row.generation == generation) else {
            return;
        };
        let had = row.overview_octets;
        let mut changed = Vec::new();
        let mut gone = Vec::new();
        for number in blocks_of(low, high) {
            let old = self.block_in_memory(group, number);
            let old = old.unwrap_or_else(|| Arc::new(self.block_on_disk(group, number)));
            let (block, lines) = change_one(number, &old);
            gone.extend(lines.iter().filter_map(|line| self.id_of(line)));
            changed.push((number, Arc::new(block)));
        }
        let mut without = Vec::new();
        let done = self.table.change(false, |change| {
            let mut octets = had;
            for (number, block) in &changed {
                let (new, old) = change.put_block(group, *number, block)?;
                octets = (octets + new).saturating_sub(old);
            }
            change.forget(&gone)?;
            self.set_octets(change, group, octets)?;
            let these = (place_of(low).0, place_of(high).0);
            self.make_room(change, (group, these), &mut without)
        });
        let is_done = self.told(done).is_some();
        for group in &without {
            self.forget_in_memory(&[], Some((group, u64::MAX)));
        }
        // Where there was no room for them these went, too.  Without a table what is in memory is all there is.
        let has_room = self.group(group).is_some_and(|row| row.overview_octets > 0);
        for (number, block) in changed.into_iter().filter(|_| has_room || !is_done) {
            self.blocks_in_memory
                .insert((Arc::clone(group), number), block);
        }
        self.forget_in_memory(&gone, None);
    }

    /// Notes how many octets of overview a group has.
    fn set_octets(
        &self,
        change: &Change<'_>,
        name: &str,
        octets: u64,
    ) -> std::result::Result<(), Fault> {
        let group = self.groups.lock().set_octets(name, octets);
        group.map_or(Ok(()), |group| change.put_group(name, &group))
    }

    /// Lets overview go until there is no more than there may be: that of other groups first, then what of this group is not
    /// just told, then all of it.
    fn make_room(
        &self,
        change: &Change<'_>,
        (group, (first, last)): (&str, (u64, u64)),
        without: &mut Vec<Box<str>>,
    ) -> std::result::Result<(), Fault> {
        let victim = || {
            let groups = self.groups.lock();
            groups
                .is_too_much()
                .then(|| groups.next_victim(group, |name| self.pins.has(name)))
                .flatten()
        };
        while let Some(victim) = victim() {
            change.remove_blocks(&victim, 0..u64::MAX, |_| {})?;
            self.set_octets(change, &victim, 0)?;
            without.push(victim);
        }
        for range in [0..first, last + 1..u64::MAX, first..last + 1] {
            if !self.groups.lock().is_too_much() {
                break;
            }
            let octets = change.remove_blocks(group, range, |_| {})?;
            let had = self.group(group).map_or(0, |row| row.overview_octets);
            self.set_octets(change, group, had.saturating_sub(octets))?;
            without.push(group.into());
        }
        Ok(())
    }

    fn id_of(&self, line: &[u8]) -> Option<IdHash> {
        let id = MessageId::parse(message_id(line)?).ok()?;
        Some(self.id_hash(id))
    }

    /// Appends the hashes of a block's message-ids.
    fn ids(&self, block: &Block, out: &mut Vec<IdHash>) {
        out.extend(block.lines().filter_map(|(_, line)| self.id_of(line)));
    }

    /// These articles are not in memory any more, nor this group's blocks below that.
    pub(super) fn forget_in_memory(&self, ids: &[IdHash], blocks: Option<(&str, u64)>) {
        for id in ids {
            self.in_memory.remove(id);
        }
        self.wanted.went(ids);
        if let Some((group, below)) = blocks {
            self.blocks_in_memory
                .retain(|(name, number), _| **name != *group || *number >= below);
        }
    }
}
