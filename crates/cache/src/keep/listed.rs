//! What is kept, as an administrator sees it: groups and articles listed, and let go as asked.
//!
//! An article belongs to the first group that it names, as for policies.  Rows have what stands for that group; its name is known where
//! somebody asked for the group here, and else read from one of the articles.  What names no group has no name in lists, and goes with
//! what matches an empty one, as `*` does.  What is let go is fetched again when somebody asks; its room is free when its segment goes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use newsreel_store::{Blocking, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, MessageId, UnixTime};

use super::Keep;
use super::error::Result;
use super::row::Row;
use super::wanted::{group_and_date, group_key};

/// So many articles are listed at once at most.
pub const LISTED_ARTICLES_MAX: usize = 100_000;

/// So many articles are looked at for the name of their group.
const LOOKED_AT_MAX: usize = 3;

/// A group of which something is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedGroup {
    /// Its name; none: these articles name no group, or cannot be read.
    pub name: Option<Box<str>>,
    /// Articles.
    pub articles: u64,
    /// Their octets.
    pub octets: u64,
    /// Octets of overview.
    pub overview_octets: u64,
    /// When an article of it was asked for last; 0: nobody knows.
    pub used_at: UnixTime,
    /// When the server elsewhere told its marks.
    pub told: UnixTime,
}

/// An article that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedArticle {
    /// Its message-id.
    pub id: String,
    /// The group that it belongs to.
    pub group: Option<Box<str>>,
    /// Its octets.
    pub octets: u64,
    /// How often it was asked for.
    pub uses: u32,
    /// When last; 0: nobody knows.
    pub used_at: UnixTime,
}

/// What was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Groups.
    pub groups: u64,
    /// Articles.
    pub articles: u64,
    /// Their octets.
    pub octets: u64,
    /// Octets of overview.
    pub overview_octets: u64,
}

impl Keep {
    /// The names of the groups that match, by what stands for them in rows.
    pub(crate) fn names_of(&self, matches: &dyn Fn(&str) -> bool) -> HashMap<u64, Box<str>> {
        let groups = self.groups.lock();
        let names = groups.names().filter(|name| matches(name));
        names
            .map(|name| (group_key(name.as_bytes()), name.clone()))
            .collect()
    }

    /// The names of all groups that articles belong to, or of which something is known.
    fn names_of_all(&self) -> Result<HashMap<u64, Box<str>>> {
        let mut names = self.names_of(&|_| true);
        let mut unknown: HashMap<u64, Vec<(IdHash, Row)>> = HashMap::new();
        self.each_live(|id, row| {
            if !names.contains_key(&row.group) {
                let some = unknown.entry(row.group).or_default();
                if some.len() < LOOKED_AT_MAX {
                    some.push((*id, row));
                }
            }
        })?;
        for (key, articles) in unknown {
            let said = |(id, row): &(IdHash, Row)| {
                self.looked_at(id, row, |wire| {
                    let (group, _) = group_and_date(wire);
                    group.map(|group| Box::<str>::from(group.as_str()))
                })
            };
            let said = articles.iter().filter_map(said);
            names.extend(
                said.map(|name| (group_key(name.as_bytes()), name))
                    .filter(|it| it.0 == key),
            );
        }
        Ok(names)
    }

    /// Every article that is there.
    fn each_live(&self, mut visit: impl FnMut(&IdHash, Row)) -> Result<()> {
        self.table.each_article(|id, row| {
            if self.is_live(&row.token) {
                visit(id, row);
            }
        })
    }

    /// The groups that match, by name, and at the end what has no name where that is wanted.
    ///
    /// # Errors
    /// When the table cannot be used.
    pub fn listed_groups(
        &self,
        matches: &dyn Fn(&str) -> bool,
        with_nameless: bool,
    ) -> Result<Vec<ListedGroup>> {
        let all = self.names_of_all()?;
        let mut listed: BTreeMap<Option<Box<str>>, ListedGroup> = BTreeMap::new();
        for (name, group) in self.groups.lock().rows() {
            if matches(name) {
                let row = ListedGroup {
                    name: Some(name.clone()),
                    overview_octets: group.overview_octets,
                    told: group.told,
                    ..ListedGroup::default()
                };
                listed.insert(Some(name.clone()), row);
            }
        }
        self.each_live(|_, row| {
            let name = all.get(&row.group);
            if !name.map_or(with_nameless, |name| matches(name)) {
                return;
            }
            let name = name.cloned();
            let group = listed.entry(name.clone()).or_default();
            group.name = name;
            group.articles += 1;
            group.octets += u64::from(row.token.len());
            group.used_at = group.used_at.max(UnixTime(row.used_at));
        })?;
        let nameless = listed.remove(&None);
        Ok(listed.into_values().chain(nameless).collect())
    }

    /// So many articles of the groups that match, those asked for last first, and how many there are.
    ///
    /// # Errors
    /// When the table cannot be used.
    pub fn listed_articles(
        &self,
        matches: &dyn Fn(&str) -> bool,
        most: usize,
    ) -> Result<(Vec<ListedArticle>, u64)> {
        let names = self.names_of_all()?;
        let name_of = |row: &Row| names.get(&row.group).map_or("", |name| name);
        let most = most.min(LISTED_ARTICLES_MAX);
        // The last of those that are listed by now on top.
        let (mut latest, mut count) = (BinaryHeap::new(), 0);
        self.each_live(|id, row| {
            if matches(name_of(&row)) {
                count += 1;
                latest.push((Reverse(row.used), id.0));
                if latest.len() > most {
                    latest.pop();
                }
            }
        })?;
        let mut listed = Vec::with_capacity(latest.len());
        for (_, id) in latest.into_sorted_vec() {
            let id = IdHash(id);
            let row = self.table.article(&id)?;
            listed.extend(row.and_then(|row| {
                Some(ListedArticle {
                    id: self.message_id_of(&id, &row)?,
                    group: names.get(&row.group).cloned(),
                    octets: row.token.len().into(),
                    uses: row.uses,
                    used_at: UnixTime(row.used_at),
                })
            }));
        }
        Ok((listed, count))
    }

    /// The message-id of an article that is kept, from its text.
    fn message_id_of(&self, id: &IdHash, row: &Row) -> Option<String> {
        self.looked_at(id, row, |wire| {
            let headers = Headers::scan_stored(wire).ok()?;
            let text = headers.content(Known::MessageId)?;
            Some(String::from_utf8_lossy(text).into_owned())
        })
    }

    /// What is seen in the text of an article that is kept; none also where that cannot be read.
    fn looked_at<T>(
        &self,
        id: &IdHash,
        row: &Row,
        see: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let mut memory = Vec::new();
        let reader = self.reader.get()?;
        let read = reader.read(&row.token, Want::Whole, Blocking::Yes, &mut memory);
        let stored = read.ok().filter(|stored| stored.id_hash == *id)?;
        see(memory.get(stored.octets)?)
    }

    /// Lets the groups that match go, with their overview and the articles that belong to them, and articles by their message-ids; or only
    /// says what would go.  Articles that belong to other groups stay in those.
    ///
    /// # Errors
    /// When the table cannot be used: nothing goes then.
    pub fn drop_kept(
        &self,
        matches: &dyn Fn(&str) -> bool,
        ids: &[MessageId<'_>],
        dry_run: bool,
    ) -> Result<Dropped> {
        // What is being placed is there by then, or is not placed.
        let _placing = (!dry_run).then(|| self.articles.lock());
        let mut names = self.names_of_all()?;
        let goes_nameless = matches("");
        let stay: HashSet<u64> = names
            .iter()
            .filter_map(|(key, name)| (!matches(name)).then_some(*key))
            .collect();
        names.retain(|key, _| !stay.contains(key));
        let mut going: HashSet<IdHash> = ids.iter().map(|id| self.id_hash(*id)).collect();
        let mut dropped = Dropped {
            groups: names.len() as u64,
            ..Dropped::default()
        };
        let mut count = |row: &Row| {
            dropped.articles += 1;
            dropped.octets += u64::from(row.token.len());
        };
        for id in &going {
            let row = self.table.article(id)?;
            let live = row.filter(|row| self.is_live(&row.token));
            live.iter().for_each(&mut count);
        }
        if !names.is_empty() || goes_nameless {
            self.each_live(|id, row| {
                let is_nameless = || !stay.contains(&row.group);
                let goes = names.contains_key(&row.group) || goes_nameless && is_nameless();
                if goes && going.insert(*id) {
                    count(&row);
                }
            })?;
        }
        for name in names.values() {
            let octets = self.group(name).map_or(0, |group| group.overview_octets);
            dropped.overview_octets += octets;
        }
        if !dry_run {
            self.let_all_go(names.into_values().collect(), going.into_iter().collect())?;
        }
        Ok(dropped)
    }
}
