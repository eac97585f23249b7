//! Fetching overview lines: in tasks of their own, window by window in one round trip, and some behind what is asked for now.
//!
//! A window is told when its lines are kept, while those behind it are still coming; who waits for it looks at what is kept then.
//! No more is fetched at once than the settings of this file say, so that of what nobody reads any more little comes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::{NewsService as _, OverviewRows, ServiceError};
use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, GroupId, MessageId, UnixTime};
use parking_lot::Mutex;

use super::Inner;
use super::flights::{Flight, Landed, Landing, Wanted};
use super::numbers::{Numbers, number_at, numbered, span};
use crate::keep::{BLOCK_NUMBERS, Keep, KeptGroup, each_of, place_of, places_in};
use crate::remote::TakeLines;

/// Blocks of a window: 256 numbers, so that the first lines go to the reader soon.
pub(super) const WINDOW_BLOCKS: u64 = 2;

/// Windows that are asked for in one round trip.
const WINDOWS_MAX: usize = 32;

/// Numbers whose overview lines are asked for in one round trip.
pub const LINES_AT_ONCE_MAX: u64 = WINDOWS_MAX as u64 * WINDOW_BLOCKS * BLOCK_NUMBERS;

/// Octets of a window that are taken from the server before they are kept.
const WINDOW_OCTETS: usize = 1 << 20;

/// Windows that were fetched ahead of who reads them are remembered so many at most.
const AHEAD_MAX: usize = 1 << 12;

/// Windows that nobody was told of yet: who is told first of one has not been saved its way.
#[derive(Debug, Default)]
pub(super) struct Ahead(Mutex<HashSet<(GroupId, u64)>>);

impl Ahead {
    fn note(&self, id: GroupId, window: u64) {
        let mut ahead = self.0.lock();
        if ahead.len() < AHEAD_MAX {
            ahead.insert((id, window));
        }
    }

    /// Whether this is the first who is told of the window that a number lies in.
    pub(super) fn is_first(&self, id: GroupId, number: ArticleNumber) -> bool {
        self.0.lock().remove(&(id, window_of(number)))
    }
}

/// Who had lines fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Whoever asks now.
    Here,
    /// Somebody else, perhaps before.
    Elsewhere,
}

/// The window in which a number lies.
const fn window_of(number: ArticleNumber) -> u64 {
    place_of(number).0 / WINDOW_BLOCKS
}

/// The part of a range that lies in a window.
fn within((low, high): Numbers, window: u64) -> Numbers {
    let numbers = WINDOW_BLOCKS * BLOCK_NUMBERS;
    let (first, last) = (window * numbers, (window + 1) * numbers - 1);
    (low.max(ArticleNumber(first)), high.min(ArticleNumber(last)))
}

/// Windows that are fetched, each with what is missing of it.
type Windows = Vec<(Numbers, Flight)>;

impl<C: Connect> Inner<C> {
    /// Waits until the lines of a range are kept that is missing: they are fetched, or are being fetched.  Of what is missing behind
    /// it some is fetched with it, as far as it is wanted.
    pub(super) async fn have_lines(
        self: &Arc<Self>,
        (id, name): (GroupId, &Arc<str>),
        group: &KeptGroup,
        (missing, up_to): (Numbers, ArticleNumber),
    ) -> Result<Asked, ServiceError> {
        let (mut windows, mut landings) = (Windows::new(), Vec::new());
        for window in window_of(missing.0)..=window_of(missing.1) {
            match self.flights.begin(Wanted::Lines(id, window)) {
                Ok(flight) if windows.len() < WINDOWS_MAX => {
                    landings.push(flight.landing());
                    windows.push((within(missing, window), flight));
                }
                Err(landing) if windows.is_empty() => {
                    came(&landing).await?;
                    return Ok(Asked::Elsewhere);
                }
                _ => break,
            }
        }
        let (inner, name, generation) = (Arc::clone(self), Arc::clone(name), group.generation);
        self.spawn(async move {
            inner
                .look_ahead((id, &name), (missing.1, up_to), &mut windows)
                .await;
            inner.fetch_lines((&name, generation), &windows).await;
        });
        for landing in &landings {
            came(landing).await?;
        }
        Ok(Asked::Here)
    }

    /// Adds what is missing between two numbers, as far as there is room for it.
    async fn look_ahead(
        &self,
        (id, name): (GroupId, &Arc<str>),
        (from, up_to): Numbers,
        windows: &mut Windows,
    ) {
        let first = window_of(from) + 1;
        let last = first + WINDOWS_MAX.saturating_sub(windows.len()) as u64;
        let low = ArticleNumber(first * WINDOW_BLOCKS * BLOCK_NUMBERS);
        let high = up_to.min(ArticleNumber(last * WINDOW_BLOCKS * BLOCK_NUMBERS - 1));
        if low > high {
            return;
        }
        let Ok(blocks) = self.blocks(name, (low, high)).await else {
            return;
        };
        for window in first..=window_of(high) {
            let range = within((low, high), window);
            let missing = span(&blocks, range, |block, places| places & !block.asked());
            let Some(missing) = missing else {
                continue;
            };
            // What somebody fetches already is behind us: the rest will be theirs.
            let Ok(flight) = self.flights.begin(Wanted::Lines(id, window)) else {
                return;
            };
            self.ahead.note(id, window);
            windows.push((missing, flight));
        }
    }

    /// What the overview of a group shows is there: nobody is told any more that it is not, as it was not when it was asked for.
    fn are_there(&self, group: &str, rows: &OverviewRows) {
        if !self.there.has_missing(group) {
            return;
        }
        let lines = rows.text().split(|octet| *octet == b'\n');
        let lines = lines.filter_map(numbered);
        let ids = lines.filter_map(|(_, line)| MessageId::parse(message_id(line)?).ok());
        for id in ids {
            self.there.may_have(group, id);
            self.said_missing.remove(&self.keep.id_hash(id));
        }
    }

    /// Fetches the lines of windows of a generation of a group in one round trip, and keeps them.
    async fn fetch_lines(&self, (name, generation): (&Arc<str>, u64), windows: &Windows) {
        let ranges: Vec<Numbers> = windows.iter().map(|(range, _)| *range).collect();
        let mut telling = Telling {
            inner: self,
            name,
            generation,
            now: self.there.now(),
            windows: windows.iter(),
        };
        let asking = self
            .there
            .lines_in(name, &ranges, WINDOW_OCTETS, &mut telling);
        if let Err(error) = asking.await
            && let Some((_, flight)) = telling.windows.next()
        {
            flight.land(Landed::Failed(error));
        }
    }
}

/// Waits for the end of a flight.
async fn came(landing: &Landing) -> Result<(), ServiceError> {
    match landing.wait().await {
        Landed::Failed(error) => Err(error.clone()),
        _ => Ok(()),
    }
}

/// The numbers of a range that the server listed not too long ago and that have no line yet: they are there also if none comes, and an
/// empty one stands for it.
fn listed<'l>(
    keep: &Keep,
    name: &Arc<str>,
    (low, high): Numbers,
    (now, refresh_s): (UnixTime, u64),
) -> BTreeMap<ArticleNumber, &'l [u8]> {
    let mut all = BTreeMap::new();
    for number in place_of(low).0..=place_of(high).0 {
        let block = keep.block(name, number);
        let listed = block.covered(now, refresh_s) & !block.asked();
        let listed = each_of(listed & places_in(number, low, high));
        all.extend(listed.map(|place| (number_at(number, place), &[][..])));
    }
    all
}

/// Keeps lines as they come.
struct Telling<'w, C: Connect> {
    inner: &'w Inner<C>,
    name: &'w Arc<str>,
    /// The group's when they were asked for.
    generation: u64,
    now: UnixTime,
    /// Those that have not come.
    windows: std::slice::Iter<'w, (Numbers, Flight)>,
}

impl<C: Connect> TakeLines for Telling<'_, C> {
    async fn window(&mut self, range: Numbers, rows: OverviewRows) {
        let (name, generation, now) = (Arc::clone(self.name), self.generation, self.now);
        let refresh_s = self.inner.settings.refresh_s;
        self.inner.are_there(&name, &rows);
        let telling = self.inner.on_disk(move |keep| {
            let lines = rows.text().split(|octet| *octet == b'\n');
            let lines: BTreeMap<_, _> = lines.filter_map(numbered).collect();
            let mut all = listed(keep, &name, range, (now, refresh_s));
            all.extend(lines);
            keep.tell((&name, generation), &[range], all.into_iter(), now);
        });
        let told = telling.await;
        if let Some((_, flight)) = self.windows.next() {
            flight.land(told.map_or_else(Landed::Failed, |()| Landed::Told));
            // What had no room is another question.
            flight.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_ends_of_windows() {
        let (low, high) = (ArticleNumber(250), ArticleNumber(513));
        let windows = window_of(low)..=window_of(high);
        let parts: Vec<(u64, u64)> = windows
            .map(|window| within((low, high), window))
            .map(|(low, high)| (low.0, high.0))
            .collect();
        assert_eq!(parts, [(250, 255), (256, 511), (512, 513)]);
    }
}
