//! The lowest of many, as many as fit: what a walk over the whole history finds of a buffer, in order, with a bounded memory.

/// Collects in any order.
#[derive(Debug)]
pub(crate) struct Lowest<T> {
    max: usize,
    kept: Vec<T>,
    /// From this one on something was left out.
    bound: Option<T>,
}

impl<T: Ord + Copy> Lowest<T> {
    /// At most so many; while they are collected there is a quarter more.
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            kept: Vec::new(),
            bound: None,
        }
    }

    pub(crate) fn push(&mut self, one: T) {
        if self.bound.is_some_and(|bound| one >= bound) {
            return;
        }
        self.kept.push(one);
        if self.kept.len() > self.max + self.max / 4 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.max {
            let (_, bound, _) = self.kept.select_nth_unstable(self.max);
            self.bound = Some(*bound);
            self.kept.truncate(self.max);
        }
    }

    /// In order, each once; and the first that did not fit, if any.
    pub(crate) fn sorted(mut self) -> (Vec<T>, Option<T>) {
        self.cut();
        self.kept.sort_unstable();
        self.kept.dedup();
        (self.kept, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_are_kept_and_where_the_others_begin_is_known() {
        for (all, max) in [(0, 4), (4, 4), (5, 4), (1000, 16), (1000, 999)] {
            let mut lowest = Lowest::new(max);
            (0..all)
                .map(|n| n * 7919 % all.max(1))
                .for_each(|n| lowest.push(n));
            assert!(
                lowest.kept.capacity() <= 2 * max.next_power_of_two(),
                "{all}"
            );
            let (kept, bound) = lowest.sorted();
            assert_eq!(kept, (0..all.min(max)).collect::<Vec<_>>());
            assert_eq!(bound, (all > max).then_some(max));
        }
        let mut twice = Lowest::new(4);
        [1, 1, 2].into_iter().for_each(|n| twice.push(n));
        assert_eq!(twice.sorted(), (vec![1, 2], None));
    }
}
