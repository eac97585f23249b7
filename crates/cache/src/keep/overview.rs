//! Groups and their overview: what was told by the server, and what went.
//!
//! All changes of a group's blocks are made under one lock, each from what is kept at that moment.  The groups themselves are
//! in memory, too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, IdHash, MessageId, UnixTime};

use super::block::{Block, place_of, places_in};
use super::error::Result;
use super::group::KeptGroup;
use super::table::{Change, Fault, Table};
use super::{BLOCK_NUMBERS, Keep};

/// The groups that are kept.
#[derive(Debug)]
pub(super) struct Groups {
    rows: HashMap<Box<str>, Arc<KeptGroup>>,
    overview_octets: u64,
    overview_octets_max: u64,
}

impl Groups {
    pub(super) fn read(table: &Table, overview_octets_max: u64) -> Result<Self> {
        let (mut rows, mut overview_octets) = (HashMap::new(), 0);
        table.groups(|name, group| {
            overview_octets += group.overview_octets;
            rows.insert(name.into(), Arc::new(group));
        })?;
        Ok(Self {
            rows,
            overview_octets,
            overview_octets_max,
        })
    }

    /// Octets of all overview that is kept.
    pub(super) const fn overview_octets(&self) -> u64 {
        self.overview_octets
    }

    /// The group whose overview goes next: the one that was asked for longest ago.
    fn next_victim(&self, but: &str) -> Option<Box<str>> {
        let with_overview = self
            .rows
            .iter()
            .filter(|(name, group)| group.overview_octets > 0 && &***name != but);
        let oldest = with_overview.min_by_key(|(_, group)| group.told);
        oldest.map(|(name, _)| name.clone())
    }

    fn set_octets(
        &mut self,
        change: &Change<'_>,
        name: &str,
        octets: u64,
    ) -> std::result::Result<(), Fault> {
        if let Some(group) = self.rows.get_mut(name) {
            self.overview_octets = self.overview_octets - group.overview_octets + octets;
            let group = Arc::make_mut(group);
            group.overview_octets = octets;
            change.put_group(name, group)?;
        }
        Ok(())
    }

    /// Lets the overview of other groups go until there is room.
    fn make_room(
        &mut self,
        change: &Change<'_>,
        but: &str,
        gone: &mut Vec<Box<str>>,
    ) -> std::result::Result<(), Fault> {
        while self.overview_octets > self.overview_octets_max {
            let Some(victim) = self.next_victim(but) else {
                break;
            };
            change.remove_blocks(&victim, 0..u64::MAX, |_| {})?;
            self.set_octets(change, &victim, 0)?;
            gone.push(victim);
        }
        Ok(())
    }
}

/// The numbers of blocks in which a range lies.
fn blocks_of(low: ArticleNumber, high: ArticleNumber) -> std::ops::RangeInclusive<u64> {
    place_of(low).0..=place_of(high).0
}

impl Keep {
    /// What is kept of a group; never waits for the disk.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<Arc<KeptGroup>> {
        self.groups.lock().rows.get(name).cloned()
    }

    /// The server told of a group.  What lies below its low mark goes; where the high mark fell the group is another one, and
    /// nothing of the old one stays.
    pub fn put_group(&self, name: &Arc<str>, mut group: KeptGroup) {
        let mut groups = self.groups.lock();
        let old = groups.rows.get(&**name);
        let is_another = old.is_some_and(|old| group.high < old.high);
        let had = old.map_or(0, |old| old.overview_octets);
        group.overview_octets = had;
        let below = if is_another {
            u64::MAX
        } else {
            group.low.0 / BLOCK_NUMBERS
        };
        let has_moved = old.is_some_and(|old| old.low.0 / BLOCK_NUMBERS < below);
        let mut gone = Vec::new();
        let changed = self.table.change(false, |change| {
            let mut ids = Vec::new();
            if has_moved {
                let octets =
                    change.remove_blocks(name, 0..below, |block| self.ids(block, &mut ids))?;
                group.overview_octets = had.saturating_sub(octets);
                change.forget(&ids)?;
            }
            gone = ids;
            change.put_group(name, &group)
        });
        if self.told(changed).is_some() {
            groups.overview_octets = groups.overview_octets - had + group.overview_octets;
            groups.rows.insert((**name).into(), Arc::new(group));
        }
        drop(groups);
        self.forget_in_memory(&gone, has_moved.then_some((&**name, below)));
    }

    /// What was told of a group may have changed since: it counts as told long ago.  Never waits for the disk.
    pub fn outdate_group(&self, name: &str) {
        if let Some(group) = self.groups.lock().rows.get_mut(name) {
            Arc::make_mut(group).told = UnixTime(0);
        }
    }

    /// The server says that there is no such group.
    pub fn remove_group(&self, name: &str) {
        let mut groups = self.groups.lock();
        let Some(old) = groups.rows.remove(name) else {
            return;
        };
        groups.overview_octets -= old.overview_octets;
        let mut gone = Vec::new();
        let changed = self.table.change(false, |change| {
            let mut ids = Vec::new();
            change.remove_blocks(name, 0..u64::MAX, |block| self.ids(block, &mut ids))?;
            change.forget(&ids)?;
            gone = ids;
            change.remove_group(name)
        });
        drop(groups);
        self.told(changed);
        self.forget_in_memory(&gone, Some((name, u64::MAX)));
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
        let _groups = self.groups.lock();
        let block = Arc::new(self.block_on_disk(group, number));
        let key = (Arc::clone(group), number);
        self.blocks_in_memory.insert(key, Arc::clone(&block));
        block
    }

    fn block_on_disk(&self, group: &str, number: u64) -> Block {
        let kept = self.told(self.table.block(group, number)).flatten();
        kept.unwrap_or_default()
    }

    /// The server was asked for the overview of these ranges, one behind the other, and told these lines, in order.
    pub fn tell<'l>(
        &self,
        group: &Arc<str>,
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
        self.change_blocks(group, (*low, *high), |number, old| {
            let places = ranges
                .iter()
                .map(|(low, high)| places_in(number, *low, *high));
            let places = places.fold(0, |all, some| all | some);
            let lines = by_block.get(&number).into_iter().flatten();
            (old.told(places, lines.copied(), now), Vec::new())
        });
    }

    /// The server listed the numbers of a range.
    pub fn compare(
        &self,
        group: &Arc<str>,
        (low, high): (ArticleNumber, ArticleNumber),
        listed: &[ArticleNumber],
        now: UnixTime,
    ) {
        let mut by_block: BTreeMap<u64, u128> = BTreeMap::new();
        for number in listed {
            let (block, place) = place_of(*number);
            *by_block.entry(block).or_default() |= 1 << place;
        }
        self.change_blocks(group, (low, high), |number, old| {
            let listed = by_block.get(&number).copied().unwrap_or_default();
            old.compared(places_in(number, low, high), listed, now)
        });
    }

    /// Changes the blocks of a range, and forgets the articles of lines that went.
    fn change_blocks(
        &self,
        group: &Arc<str>,
        (low, high): (ArticleNumber, ArticleNumber),
        mut change_one: impl FnMut(u64, &Block) -> (Block, Vec<Vec<u8>>),
    ) {
        let mut groups = self.groups.lock();
        let Some(mut octets) = groups.rows.get(&**group).map(|row| row.overview_octets) else {
            return;
        };
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
            for (number, block) in &changed {
                let (new, old) = change.put_block(group, *number, block)?;
                octets = (octets + new).saturating_sub(old);
            }
            change.forget(&gone)?;
            groups.set_octets(change, group, octets)?;
            groups.make_room(change, group, &mut without)?;
            if groups.overview_octets <= groups.overview_octets_max {
                return Ok(());
            }
            // Alone it is too much: what is not of this change goes.
            let (first, last) = (place_of(low).0, place_of(high).0);
            let before = change.remove_blocks(group, 0..first, |_| {})?;
            let behind = change.remove_blocks(group, last + 1..u64::MAX, |_| {})?;
            without.push((**group).into());
            groups.set_octets(change, group, octets.saturating_sub(before + behind))
        });
        self.told(done);
        for group in &without {
            self.forget_in_memory(&[], Some((group, u64::MAX)));
        }
        for (number, block) in changed {
            self.blocks_in_memory
                .insert((Arc::clone(group), number), block);
        }
        drop(groups);
        self.forget_in_memory(&gone, None);
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
    fn forget_in_memory(&self, ids: &[IdHash], blocks: Option<(&str, u64)>) {
        for id in ids {
            self.in_memory.remove(id);
        }
        if let Some((group, below)) = blocks {
            self.blocks_in_memory
                .retain(|(name, number), _| **name != *group || *number >= below);
        }
    }
}
