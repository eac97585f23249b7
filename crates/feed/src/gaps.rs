//! Sequences of the log that were never given: a server that was killed begins far behind what it had given, and nothing lies between.
//!
//! Whoever says how much waits leaves them out.  They stand in the file of the places as long as a feed's place lies before one.

use newsreel_wire::Sequence;

use crate::place::Place;

/// Their name in the file; no feed is called so.
pub(crate) const NAME: &str = "!gaps";
/// Gaps that are remembered; the oldest of more count as sequences that wait.
const GAPS_MAX: usize = 1000;

/// Gaps, from one sequence to before another, ascending.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Vec<(Sequence, Sequence)>);

impl Gaps {
    /// Those of the file, as far as they lie behind the first place, and the one that this start made.
    pub(crate) fn new(
        file: Option<Place>,
        made: Option<(Sequence, Sequence)>,
        first: Option<Sequence>,
    ) -> Self {
        let known = file.map_or_else(Vec::new, |line| line.behind);
        let is_needed = |(_, to): &(Sequence, Sequence)| first.is_some_and(|first| *to > first);
        let mut all: Vec<_> = known.into_iter().chain(made).filter(is_needed).collect();
        all.sort_unstable();
        all.dedup();
        all.drain(..all.len().saturating_sub(GAPS_MAX));
        Self(all)
    }

    /// How many of these sequences were given.
    pub(crate) fn given(&self, from: Sequence, to: Sequence) -> u64 {
        let within = |(first, before): &(Sequence, Sequence)| {
            to.min(*before).0.saturating_sub(from.max(*first).0)
        };
        let never: u64 = self.0.iter().map(within).sum();
        to.0.saturating_sub(from.0).saturating_sub(never)
    }

    /// Their line of the file, if there are any.
    pub(crate) fn line(&self) -> Option<(String, Place)> {
        let mut line = Place::at(Sequence::ZERO);
        line.behind.clone_from(&self.0);
        (!self.0.is_empty()).then(|| (NAME.to_owned(), line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_given_does_not_wait() {
        let at = |from, to| (Sequence(from), Sequence(to));
        let gaps = Gaps::new(None, Some(at(100, 200)), Some(Sequence(5)));
        let again = Gaps::new(
            gaps.line().map(|(_, line)| line),
            Some(at(300, 900)),
            Some(Sequence(150)),
        );
        for (from, to, given) in [
            (1, 100, 99),
            (150, 250, 50),
            (99, 1000, 201),
            (400, 800, 0),
            (800, 700, 0),
        ] {
            assert_eq!(again.given(Sequence(from), Sequence(to)), given, "{from}");
        }
        // Every feed is behind it.
        let file = again.line().map(|(_, line)| line);
        assert!(Gaps::new(file, None, Some(Sequence(900))).line().is_none());
    }
}
