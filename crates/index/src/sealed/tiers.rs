//! Which runs to merge: a pure choice over their sizes and how much of them is dead.
//!
//! Worn runs are rewritten first.  Nothing is merged before there are more runs than wished (full ones not counted, which
//! no merge makes fewer); then it is the window of neighbours that costs least for each run it saves, which makes tiers by itself.  No window exceeds the cap, so no rewrite
//! is ever proportional to the whole.  When too much of the whole is dead, the sparsest run is rewritten.

use std::ops::Range;

/// What the choice needs to know about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSize {
    /// Octets, or anything in proportion.
    pub(crate) size: u64,
    /// How much of that is dead, about.
    pub(crate) dead: u64,
    /// It is damaged: it stays as it is, and nothing is merged across it.
    pub(crate) is_damaged: bool,
    /// One of its two files is bad: it is rewritten from the other.
    pub(crate) is_worn: bool,
}

/// The limits of the choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Runs that are not full and may be there without anything being merged.
    pub(crate) runs_max: usize,
    /// Runs merged at once.
    pub(crate) merge_max: usize,
    /// The largest run a merge may make.
    pub(crate) size_max: u64,
    /// Percentage of the whole that may be dead.
    pub(crate) dead_percent_max: u32,
}

/// The runs that are best made one now (one alone is rewritten without what is dead), if any.
pub(crate) fn choose(runs: &[RunSize], limits: &Limits) -> Option<Range<usize>> {
    if let Some(at) = runs.iter().position(|run| run.is_worn && !run.is_damaged) {
        return Some(at..at + 1);
    }
    if mergeable(runs, limits) > limits.runs_max
        && let Some(window) = cheapest_window(runs, limits)
    {
        return Some(window);
    }
    sparsest(runs, limits)
}

/// How many runs can still be merged: sound ones of at most half the cap.
pub(crate) fn mergeable(runs: &[RunSize], limits: &Limits) -> usize {
    let can = |run: &&RunSize| !run.is_damaged && kept(run) <= limits.size_max / 2;
    runs.iter().filter(can).count()
}

/// What a run is worth after a merge.
fn kept(run: &RunSize) -> u64 {
    run.size.saturating_sub(run.dead)
}

/// The window that costs least for each run it saves.  Windows in which one run outweighs the others are the last
/// resort: merging those again and again would write the large run as often as small ones come.
fn cheapest_window(runs: &[RunSize], limits: &Limits) -> Option<Range<usize>> {
    [3, 2, 1]
        .into_iter()
        .find_map(|evenness| cheapest_even_window(runs, limits, evenness))
}

/// The same among windows whose largest run is at most one `evenness`th of the sum.
fn cheapest_even_window(runs: &[RunSize], limits: &Limits, evenness: u64) -> Option<Range<usize>> {
    let mut best: Option<(u64, u64, Range<usize>)> = None;
    for start in 0..runs.len() {
        let (mut cost, mut largest) = (0_u64, 0);
        for (nth, run) in runs.iter().enumerate().skip(start).take(limits.merge_max) {
            cost += kept(run);
            largest = kept(run).max(largest);
            if run.is_damaged || cost > limits.size_max {
                break;
            }
            let saved = (nth - start) as u64;
            if saved == 0 || largest.saturating_mul(evenness) > cost {
                continue;
            }
            let is_cheaper = |(best_cost, best_saved, _): &(u64, u64, Range<usize>)| {
                u128::from(cost) * u128::from(*best_saved)
                    < u128::from(*best_cost) * u128::from(saved)
            };
            if best.as_ref().is_none_or(is_cheaper) {
                best = Some((cost, saved, start..nth + 1));
            }
        }
    }
    best.map(|(_, _, window)| window)
}

/// The run with the largest dead part, when too much of the whole is dead and that run is worth rewriting.
fn sparsest(runs: &[RunSize], limits: &Limits) -> Option<Range<usize>> {
    let total: u64 = runs.iter().map(|run| run.size).sum();
    let dead: u64 = runs.iter().map(|run| run.dead).sum();
    let percent = |part: u64, whole: u64| part.saturating_mul(100) / whole.max(1);
    if percent(dead, total) <= u64::from(limits.dead_percent_max) {
        return None;
    }
    let worth = |run: &RunSize| percent(run.dead, run.size) > u64::from(limits.dead_percent_max);
    let (at, _) = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| !run.is_damaged && worth(run))
        .max_by_key(|(_, run)| percent(run.dead, run.size))?;
    Some(at..at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        runs_max: 6,
        merge_max: 4,
        size_max: 1000,
        dead_percent_max: 20,
    };

    fn runs(sizes: &[u64]) -> Vec<RunSize> {
        let run = |size: &u64| RunSize {
            size: *size,
            dead: 0,
            is_damaged: false,
            is_worn: false,
        };
        sizes.iter().map(run).collect()
    }

    #[test]
    fn nothing_is_merged_before_it_must() {
        assert_eq!(choose(&runs(&[1; 6]), &LIMITS), None);
        assert_eq!(choose(&runs(&[1; 7]), &LIMITS), Some(0..4));
        let uneven = runs(&[400, 90, 100, 10, 10, 10, 10]);
        assert_eq!(choose(&uneven, &LIMITS), Some(3..7));
        let capped = runs(&[900, 900, 900, 900, 900, 900, 900]);
        assert_eq!(choose(&capped, &LIMITS), None, "the cap holds");
    }

    /// Runs that are full once made every new one be merged at once, with whatever was there.
    #[test]
    fn what_is_full_does_not_count() {
        let full = [900, 501, 1000, 600, 900, 900, 700, 800];
        let with = |small: usize| runs(&[&full[..], &vec![1; small]].concat());
        assert_eq!(choose(&with(6), &LIMITS), None);
        assert_eq!(choose(&with(7), &LIMITS), Some(8..12));
        let mut damaged = with(7);
        damaged[8].is_damaged = true;
        assert_eq!(choose(&damaged, &LIMITS), None);
        let mut dead = with(6);
        dead[2].dead = 500;
        assert!(choose(&dead, &LIMITS).is_some(), "half of it counts");
    }

    #[test]
    fn damage_is_a_wall_and_worn_runs_go_first() {
        let mut some = runs(&[1; 8]);
        some[2].is_damaged = true;
        assert_eq!(choose(&some, &LIMITS), Some(3..7));
        some[1].is_worn = true;
        some[2].is_worn = true;
        assert_eq!(choose(&some, &LIMITS), Some(1..2));
    }

    #[test]
    fn the_sparsest_is_rewritten_when_too_much_is_dead() {
        let mut some = runs(&[100, 100, 100]);
        some[1].dead = 50;
        assert_eq!(choose(&some, &LIMITS), None, "a sixth of the whole");
        some[0].dead = 30;
        assert_eq!(choose(&some, &LIMITS), Some(1..2));
    }

    /// A simulation: equal runs arrive for a long time; how often is each octet written?
    #[test]
    fn prop_writing_grows_with_the_logarithm() {
        written_less_than_7_times(1 << 40);
    }

    /// The same when most of what is there is in full runs.
    #[test]
    fn prop_writing_does_not_grow_with_full_runs() {
        written_less_than_7_times(128);
    }

    fn written_less_than_7_times(size_max: u64) {
        let limits = Limits {
            runs_max: 12,
            merge_max: 8,
            size_max,
            dead_percent_max: 20,
        };
        let (mut all, mut written, arrived) = (Vec::new(), 0, 4096);
        for _ in 0..arrived {
            all.extend(runs(&[1]));
            written += 1;
            while let Some(window) = choose(&all, &limits) {
                let size = all[window.clone()].iter().map(|run| run.size).sum();
                written += size;
                all.splice(window, runs(&[size]));
            }
            assert!(mergeable(&all, &limits) <= 12);
        }
        let times = written as f64 / f64::from(arrived);
        assert!(times < 7.0, "each octet was written {times} times");
    }
}
