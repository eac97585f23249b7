//! Places for what there is little of: so many in all, and for one who asks a quarter of what all others leave.
//!
//! So each who takes a whole share leaves the next a smaller one, and a few do not take all: of 10,000 it is thirty.
//! Who holds one gives it back when it is dropped.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// The places; `K` tells one from another who asks.
#[derive(Debug)]
pub struct Places<K: Eq + Hash> {
    max: usize,
    held: Mutex<Held<K>>,
}

#[derive(Debug)]
struct Held<K> {
    all: usize,
    of: HashMap<K, usize>,
}

/// One of them.
#[derive(Debug)]
pub struct Place<K: Eq + Hash> {
    places: Arc<Places<K>>,
    whose: Option<K>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// All are held.
    All,
    /// The share of who asks is held.
    Share,
}

impl<K: Eq + Hash + Clone> Places<K> {
    /// So many.
    #[must_use]
    pub fn new(max: usize) -> Arc<Self> {
        let held = Held {
            all: 0,
            of: HashMap::new(),
        };
        Arc::new(Self {
            max,
            held: Mutex::new(held),
        })
    }

    /// One for somebody; nobody's in particular is ours, and has what is left.
    ///
    /// # Errors
    /// When all are held, or the share of who asks is.
    pub fn take(self: &Arc<Self>, whose: Option<K>) -> Result<Place<K>, NoPlace> {
        let mut held = self.held.lock();
        if held.all >= self.max {
            return Err(NoPlace::All);
        }
        let of = whose.as_ref().and_then(|whose| held.of.get(whose));
        let left_by_others = |of: usize| self.max.saturating_sub(held.all - of);
        if of.is_some_and(|of| *of >= left_by_others(*of).div_ceil(4)) {
            return Err(NoPlace::Share);
        }
        Ok(self.hold(&mut held, whose))
    }

    /// One for what is there already, even if it is one too many.
    pub fn found(self: &Arc<Self>, whose: Option<K>) -> Place<K> {
        self.hold(&mut self.held.lock(), whose)
    }

    fn hold(self: &Arc<Self>, held: &mut Held<K>, whose: Option<K>) -> Place<K> {
        held.all += 1;
        if let Some(whose) = &whose {
            *held.of.entry(whose.clone()).or_default() += 1;
        }
        Place {
            places: Arc::clone(self),
            whose,
        }
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut held = self.places.held.lock();
        held.all -= 1;
        let Some(whose) = &self.whose else { return };
        if let Some(of) = held.of.get_mut(whose) {
            *of -= 1;
            if *of == 0 {
                held.of.remove(whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_asks_has_a_quarter() {
        let places = Places::new(8);
        let take = |whose: &'static str| places.take(Some(whose));
        let (first, second) = (take("ada").unwrap(), take("ada").unwrap());
        assert_eq!(take("ada").unwrap_err(), NoPlace::Share);
        let others = ["bob", "bob", "eve", "joe"].map(|it| take(it).unwrap());
        assert_eq!(take("eve").unwrap_err(), NoPlace::Share, "of the four left");
        drop(first);
        assert_eq!(take("ada").unwrap_err(), NoPlace::Share, "of four, too");
        let third = take("dan").unwrap();
        let own = [(); 2].map(|()| places.take(None).unwrap());
        assert_eq!(places.take(None).unwrap_err(), NoPlace::All);
        assert_eq!(take("sue").unwrap_err(), NoPlace::All);
        // What is there already is counted, and keeps others out until it has gone.
        let found = places.found(Some("dan"));
        drop(second);
        assert_eq!(take("sue").unwrap_err(), NoPlace::All);
        drop((found, third, others, own));
        assert!(places.held.lock().of.is_empty());
        assert_eq!(places.held.lock().all, 0);
    }

    /// Four who asked took all.
    #[test]
    fn a_few_who_ask_do_not_take_all() {
        let places = Places::new(10_000);
        let mut held = Vec::new();
        for whose in 1.. {
            let before = held.len();
            let why = loop {
                match places.take(Some(whose)) {
                    Ok(place) => held.push(place),
                    Err(why) => break why,
                }
            };
            let (taken, left) = (held.len() - before, 10_000 - before);
            if left == 0 {
                assert_eq!(why, NoPlace::All);
                assert_eq!(whose, 31, "thirty have taken all");
                return;
            }
            assert_eq!(taken, left.div_ceil(4), "{whose}");
        }
    }
}
