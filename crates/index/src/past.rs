//! Where the floors stood in the past: an article that was overwritten left no record of when, so the history tells from these
//! how long ago its text went.
//!
//! The manifest has them.  They are noted with its changes, at most [`NOTES`] times while an id is remembered: an id is
//! remembered that much longer than was asked for, never less.  What is not known here has not gone.
//! Layout: `docs/formats/manifest.md`.

use newsreel_wire::{BufferId, Position, UnixTime};

use crate::cursor::{Bad, Cursor};

/// So often the floors are noted while an id is remembered.
const NOTES: u64 = 16;

/// A buffer's floor at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PastFloor {
    time: u32,
    buffer: BufferId,
    floor: Position,
}

/// The floors of all buffers, from the oldest time to the newest; a floor that did not move is there once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PastFloors(Vec<PastFloor>);

/// Seconds since 1970 as the history has them.
pub(crate) fn seconds(time: UnixTime) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}

impl PastFloors {
    /// Notes where the floors stand now of the buffers that the history names (ascending), unless that was done a short while ago,
    /// and drops what tells nothing any more of what went `remember_s` ago.
    pub(crate) fn note(&mut self, now: UnixTime, remember_s: u64, floors: &[(BufferId, Position)]) {
        let (now_s, since) = (seconds(now), UnixTime(now.0.saturating_sub(remember_s)));
        for past in &mut self.0 {
            // The clock was set back: nobody knows when that was, but not later than now.
            past.time = past.time.min(now_s);
        }
        let at_since = self.before(since);
        let noted = self.0.last().map_or(0, |past| past.time);
        if u64::from(now_s - noted) >= remember_s / NOTES {
            let latest = self.before(UnixTime(now.0 + 1));
            let new = floors
                .iter()
                .filter(|floor| floor.1 > Position::ZERO && latest.binary_search(floor).is_err());
            self.0.extend(new.map(|(buffer, floor)| PastFloor {
                time: now_s,
                buffer: *buffer,
                floor: *floor,
            }));
        }
        self.0.retain(|past| {
            let named = floors.binary_search_by_key(&past.buffer, |(buffer, _)| *buffer);
            let is_asked = past.time >= seconds(since)
                || at_since.binary_search(&(past.buffer, past.floor)).is_ok();
            named.is_ok() && is_asked
        });
    }

    /// Where the floors stood before that time, by buffer; one that is not there was not known to have moved.
    pub(crate) fn before(&self, time: UnixTime) -> Vec<(BufferId, Position)> {
        let then = self.0.iter().filter(|past| past.time < seconds(time));
        let mut floors: Vec<_> = then.map(|past| (past.buffer, past.floor)).collect();
        // Floors never fall: the largest is the latest.
        floors.sort_unstable_by(|one, other| other.cmp(one));
        floors.dedup_by_key(|(buffer, _)| *buffer);
        floors.reverse();
        floors
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        for past in &self.0 {
            out.extend_from_slice(&past.time.to_le_bytes());
            out.extend_from_slice(&past.buffer.0.to_le_bytes());
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&past.floor.0.to_le_bytes());
        }
    }

    /// Reads the stored form.
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Bad> {
        let mut floors = Vec::new();
        for _ in 0..cursor.u64()? {
            let (time, buffer) = (cursor.u32()?, BufferId(cursor.u16()?));
            cursor.take(2)?;
            let floor = Position(cursor.u64()?);
            floors.push(PastFloor {
                time,
                buffer,
                floor,
            });
        }
        if !floors.is_sorted_by_key(|past| past.time) {
            return Err(Bad("floors of the past are not in order"));
        }
        Ok(Self(floors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BufferId = BufferId(3);
    const B: BufferId = BufferId(7);

    fn floors(of_a: u64, of_b: u64) -> Vec<(BufferId, Position)> {
        vec![(A, Position(of_a)), (B, Position(of_b))]
    }

    #[test]
    fn what_went_is_told_by_when_it_went() {
        let mut past = PastFloors::default();
        past.note(UnixTime(1000), 160, &floors(0, 5));
        assert_eq!(past.before(UnixTime(1000)), []);
        assert_eq!(
            past.before(UnixTime(1001)),
            [(B, Position(5))],
            "A never moved"
        );
        past.note(UnixTime(1009), 160, &floors(20, 9));
        assert_eq!(past.before(UnixTime(1010)), [(B, Position(5))], "too soon");
        past.note(UnixTime(1010), 160, &floors(30, 9));
        past.note(UnixTime(1050), 160, &floors(30, 10));
        assert_eq!(past.before(UnixTime(1050)), floors(30, 9));
        assert_eq!(past.before(UnixTime(5001)), floors(30, 10));
    }

    #[test]
    fn what_is_not_asked_for_again_goes() {
        let mut past = PastFloors::default();
        for time in 1..10_000 {
            past.note(UnixTime(time), 160, &floors(time, time / 1000));
            let since = past.before(UnixTime(time.saturating_sub(159)));
            let went = since.first().map_or(0, |(_, floor)| floor.0);
            assert!(went <= time.saturating_sub(160), "at {time}");
            assert!(went + 160 + 10 >= time, "at {time}: {went}");
            assert!(past.0.len() <= 2 * (NOTES as usize + 2), "at {time}");
        }
        past.note(UnixTime(10_100), 160, &[(B, Position(50))]);
        assert!(
            past.0.iter().all(|past| past.buffer == B),
            "A is not named any more"
        );
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nothing_older() {
        let mut past = PastFloors::default();
        past.note(UnixTime(9000), 100, &floors(50, 0));
        past.note(UnixTime(2000), 100, &floors(60, 0));
        assert_eq!(past.before(UnixTime(2000)), []);
        past.note(UnixTime(2050), 100, &floors(70, 0));
        assert_eq!(past.before(UnixTime(2001)), [(A, Position(50))]);
        assert_eq!(past.before(UnixTime(2051)), [(A, Position(70))]);
    }

    #[test]
    fn it_is_stored_and_read() {
        let mut past = PastFloors::default();
        (1..50).for_each(|time| past.note(UnixTime(time), 100, &floors(time * 7, time * 3)));
        let mut octets = Vec::new();
        past.encode(&mut octets);
        assert_eq!(PastFloors::decode(&mut Cursor::new(&octets)), Ok(past));
        for len in 0..octets.len() {
            assert!(PastFloors::decode(&mut Cursor::new(&octets[..len])).is_err());
        }
        octets[8] = 200;
        assert!(
            PastFloors::decode(&mut Cursor::new(&octets)).is_err(),
            "not in order"
        );
    }
}
