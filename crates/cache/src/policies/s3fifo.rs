//! S3-FIFO (Yang and others, *FIFO queues are all you need for cache eviction*, 2023), by octets.
//!
//! What comes goes into a small queue of a tenth of all, and from its end into the main queue if it was asked for at least twice
//! meanwhile; else it goes, and only its key is remembered for a time: what comes back by then goes into the main queue at once.
//! From the end of that what was asked for goes round once more for each time, up to three times.

use super::{Article, Policy, Worth};
use crate::policy::lists::{List, Lists};

/// Of all octets the small queue has so many parts of a hundred.
const SMALL_PART: u64 = 10;

/// More uses than this are not counted.
const USES_MAX: u8 = 3;

#[derive(Debug, Clone, Copy)]
struct Held {
    octets: u64,
    /// How often it was asked for since it came into its queue.
    uses: u8,
    is_main: bool,
}

#[derive(Debug, Default)]
struct S3Fifo {
    articles: Lists<Held>,
    small: List,
    main: List,
    small_octets: u64,
    main_octets: u64,
    ghosts: Lists<()>,
    ghosts_list: List,
}

pub(super) fn make() -> Box<dyn Policy> {
    Box::new(S3Fifo::default())
}

impl S3Fifo {
    fn push(&mut self, key: u64, octets: u64, is_main: bool) {
        let held = Held {
            octets,
            uses: 0,
            is_main,
        };
        let (list, sum) = if is_main {
            (&mut self.main, &mut self.main_octets)
        } else {
            (&mut self.small, &mut self.small_octets)
        };
        self.articles.push(list, key, held);
        *sum += octets;
    }

    fn take(&mut self, key: u64) -> Option<Held> {
        let held = self.articles.get(key)?;
        let (list, sum) = if held.is_main {
            (&mut self.main, &mut self.main_octets)
        } else {
            (&mut self.small, &mut self.small_octets)
        };
        self.articles.remove(list, key);
        *sum -= held.octets;
        Some(held)
    }

    /// Remembers a key, and no more keys than there are articles.
    fn remember(&mut self, key: u64) {
        self.ghosts.push(&mut self.ghosts_list, key, ());
        while self.ghosts.len() > self.articles.len().max(1)
            && let Some(oldest) = self.ghosts.first(&self.ghosts_list)
        {
            self.ghosts.remove(&mut self.ghosts_list, oldest);
        }
    }

    /// The end of the small queue goes or moves; gives what went.
    fn small_end(&mut self) -> Option<u64> {
        let key = self.articles.first(&self.small)?;
        let held = self.take(key)?;
        if held.uses > 1 {
            self.push(key, held.octets, true);
            return None;
        }
        self.remember(key);
        Some(key)
    }

    /// The end of the main queue goes, or goes round; gives what went.
    fn main_end(&mut self) -> Option<u64> {
        let key = self.articles.first(&self.main)?;
        let held = self.articles.get_mut(key)?;
        if held.uses > 0 {
            held.uses -= 1;
            self.articles.move_to_end(&mut self.main, key);
            return None;
        }
        self.take(key);
        Some(key)
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, article: Article) {
        let Article { key, octets, .. } = article;
        self.take(key);
        let is_back = self.ghosts.remove(&mut self.ghosts_list, key).is_some();
        self.push(key, octets, is_back);
    }

    fn touch(&mut self, key: u64) -> bool {
        let Some(held) = self.articles.get_mut(key) else {
            return false;
        };
        held.uses = (held.uses + 1).min(USES_MAX);
        true
    }

    fn remove(&mut self, key: u64) -> bool {
        self.take(key).is_some()
    }

    fn evict(&mut self, gone: &mut Vec<u64>) {
        // Each step moves one from the small queue, or takes a use from one of the main queue.
        while self.articles.len() > 0 {
            let is_small_full = self.small_octets * 100 > self.octets() * SMALL_PART;
            let went = if is_small_full || self.main.is_empty() {
                self.small_end()
            } else {
                self.main_end()
            };
            if let Some(key) = went {
                gone.push(key);
                break;
            }
        }
    }

    fn worth(&self, key: u64) -> Option<Worth> {
        let held = self.articles.get(key)?;
        Some((held.is_main.into(), held.uses.into()))
    }

    fn octets(&self) -> u64 {
        self.small_octets + self.main_octets
    }

    fn articles(&self) -> usize {
        self.articles.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::policies::PolicyKind;
    use crate::policy::model::{Naive, follow, steps};

    /// The published algorithm over plain queues.
    #[derive(Default)]
    struct Published {
        small: VecDeque<(u64, u64, u8)>,
        main: VecDeque<(u64, u64, u8)>,
        ghosts: VecDeque<u64>,
    }

    impl Published {
        fn octets(queue: &VecDeque<(u64, u64, u8)>) -> u64 {
            queue.iter().map(|(_, octets, _)| *octets).sum()
        }
    }

    impl Naive for Published {
        fn came(&mut self, article: &Article, _: u64) {
            let queue = if self.ghosts.contains(&article.key) {
                self.ghosts.retain(|key| *key != article.key);
                &mut self.main
            } else {
                &mut self.small
            };
            queue.push_back((article.key, article.octets, 0));
        }

        fn used(&mut self, key: u64, _: u64) {
            let all = self.small.iter_mut().chain(&mut self.main);
            for (_, _, uses) in all.filter(|(held, _, _)| *held == key) {
                *uses = (*uses + 1).min(3);
            }
        }

        fn went(&mut self, key: u64) {
            for queue in [&mut self.small, &mut self.main] {
                queue.retain(|(held, _, _)| *held != key);
            }
        }

        fn victims(&mut self) -> Vec<u64> {
            loop {
                let (small, main) = (Self::octets(&self.small), Self::octets(&self.main));
                if self.main.is_empty() || small * 10 > small + main {
                    let Some((key, octets, uses)) = self.small.pop_front() else {
                        return Vec::new();
                    };
                    if uses > 1 {
                        self.main.push_back((key, octets, 0));
                        continue;
                    }
                    self.ghosts.push_back(key);
                    let most = (self.small.len() + self.main.len()).max(1);
                    while self.ghosts.len() > most {
                        self.ghosts.pop_front();
                    }
                    return vec![key];
                }
                if let Some((key, octets, uses)) = self.main.pop_front() {
                    if uses == 0 {
                        return vec![key];
                    }
                    self.main.push_back((key, octets, uses - 1));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn prop_what_goes_is_what_the_published_algorithm_says(steps in steps()) {
            follow(PolicyKind::S3fifo, Published::default(), &steps)?;
        }
    }
}
