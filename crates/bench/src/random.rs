//! Numbers that look random and are a pure function of a seed.
//!
//! Invariant: the same seed gives the same numbers on every machine, so only integer arithmetic and
//! the exactly rounded floating operations (`+ - * /`) are used, never the platform's `exp` or `ln`.
//! Must not read a clock or the operating system's randomness.

/// The finaliser of SplitMix64: every input bit reaches every output bit.
pub(crate) const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of numbers that belongs to one (seed, purpose, item), independent of every other stream.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) const fn new(seed: u64, purpose: u64, item: u64) -> Self {
        Self {
            state: mix(mix(seed ^ mix(purpose)) ^ item),
        }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number in `0..limit`; 0 when `limit` is 0.
    pub(crate) const fn below(&mut self, limit: usize) -> usize {
        let wide = (self.next() as u128) * (limit as u128);
        (wide >> 64) as usize
    }

    /// True in `per_mille` of a thousand calls.
    pub(crate) const fn chance(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// About normally distributed (mean 0, deviation 1): twelve uniform 16-bit numbers added up.
    pub(crate) fn normal(&mut self) -> f64 {
        let mut sum = 0u32;
        for _ in 0..3 {
            let bits = self.next();
            for shift in [0, 16, 32, 48] {
                sum += ((bits >> shift) & 0xffff) as u32;
            }
        }
        f64::from(sum) / 65_536.0 - 6.0
    }

    /// One of `items`; `None` only when there is none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

/// e to the power of `x`, from exactly rounded operations only, good to about ten digits.
pub(crate) fn exp(x: f64) -> f64 {
    // Halve the argument until the series converges at once, then square back.
    let mut halvings = 0;
    let mut small = x;
    while small.abs() > 0.125 {
        small /= 2.0;
        halvings += 1;
    }
    let mut sum = 1.0;
    let mut term = 1.0;
    for n in 1..9u8 {
        term = term * small / f64::from(n);
        sum += term;
    }
    for _ in 0..halvings {
        sum *= sum;
    }
    sum
}

/// How often each of several things is drawn.
#[derive(Debug)]
pub(crate) enum Ranks {
    /// The busiest first, by Zipf's law.
    Zipf(Zipf),
    /// One as often as another, of so many.
    Even(usize),
}

impl Ranks {
    pub(crate) fn rank(&self, number: u64) -> usize {
        match self {
            Self::Zipf(zipf) => zipf.rank(number),
            // Always below their number.
            Self::Even(len) => ((u128::from(number) * *len as u128) >> 64) as usize,
        }
    }
}

/// Ranks `0..len` drawn with probability proportional to `1 / (rank + 1)`.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Upper bounds in 64-bit fractions, ascending; the last is the whole range.
    bounds: Box<[u64]>,
}

impl Zipf {
    pub(crate) fn new(len: usize) -> Self {
        let weight = |rank: usize| 1.0 / (rank as f64 + 1.0);
        let total: f64 = (0..len).map(weight).sum();
        let mut sum = 0.0;
        let mut bounds: Box<[u64]> = (0..len)
            .map(|rank| {
                sum += weight(rank);
                (sum / total * 18_446_744_073_709_551_616.0) as u64
            })
            .collect();
        if let Some(last) = bounds.last_mut() {
            *last = u64::MAX;
        }
        Self { bounds }
    }

    pub(crate) fn rank(&self, number: u64) -> usize {
        self.bounds.partition_point(|&bound| bound < number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_fixed_by_seed_purpose_and_item() {
        let first = Dice::new(1, 2, 3).next();
        assert_eq!(first, Dice::new(1, 2, 3).next());
        for other in [Dice::new(2, 2, 3), Dice::new(1, 3, 3), Dice::new(1, 2, 4)] {
            assert_ne!(first, other.clone().next());
        }
    }

    #[test]
    fn exp_agrees_with_the_platform() {
        for tenth in -60..60 {
            let x = f64::from(tenth) / 10.0;
            let error = (exp(x) - x.exp()).abs() / x.exp();
            assert!(error < 1e-9, "exp({x}) is off by {error}");
        }
    }

    #[test]
    fn normal_has_mean_0_and_deviation_1() {
        let mut dice = Dice::new(7, 0, 0);
        let values: Vec<f64> = (0..100_000).map(|_| dice.normal()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 1e5;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
    }

    #[test]
    fn zipf_halves_with_the_rank() {
        let zipf = Zipf::new(3000);
        let mut dice = Dice::new(1, 0, 0);
        let mut seen = vec![0u32; 3000];
        for _ in 0..200_000 {
            seen[zipf.rank(dice.next())] += 1;
        }
        let ratio = f64::from(seen[0]) / f64::from(seen[1]);
        assert!((1.9..2.1).contains(&ratio), "first to second group {ratio}");
        assert_eq!(zipf.rank(u64::MAX), 2999);
        assert_eq!(zipf.rank(0), 0);
    }

    #[test]
    fn even_ranks_are_as_frequent_as_each_other() {
        let even = Ranks::Even(10);
        let mut dice = Dice::new(1, 0, 0);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[even.rank(dice.next())] += 1;
        }
        assert!(
            seen.iter().all(|many| (850..1150).contains(many)),
            "{seen:?}"
        );
        assert_eq!((even.rank(0), even.rank(u64::MAX)), (0, 9));
    }
}
