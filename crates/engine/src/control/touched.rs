//! Which groups were changed last: what a list is held against once more when its turn comes.
//!
//! A list of groups is compared with all that are here before the sequencer has it, as that takes its time; of what was changed
//! between then and its turn the sequencer looks at these only.

use std::collections::VecDeque;

use newsreel_wire::Sequence;

/// Names that are kept.  Behind more changes than this, all groups are looked at again.
pub(super) const TOUCHED_MAX: usize = 10_000;

/// The groups that were changed last.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// In order.
    names: VecDeque<(Sequence, Box<str>)>,
    /// All that was changed behind this is in here.
    from: Sequence,
}

impl Touched {
    /// This group was changed there.
    pub(crate) fn note(&mut self, at: Sequence, name: &str) {
        self.names.push_back((at, name.into()));
        if self.names.len() > TOUCHED_MAX
            && let Some((forgotten, _)) = self.names.pop_front()
        {
            self.from = forgotten;
        }
    }

    /// The groups that were changed behind that; `None`: that is not known any more.
    pub(crate) fn since(&self, at: Sequence) -> Option<impl Iterator<Item = &str>> {
        let first = self.names.partition_point(|(changed, _)| *changed <= at);
        let names = self.names.range(first..).map(|(_, name)| &**name);
        (at >= self.from).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_since() {
        let mut touched = Touched::default();
        let since = |touched: &Touched, at| {
            let names = touched.since(Sequence(at))?;
            Some(names.map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(since(&touched, 0).unwrap(), [""; 0]);
        touched.note(Sequence(3), "a");
        touched.note(Sequence(5), "b");
        assert_eq!(since(&touched, 2).unwrap(), ["a", "b"]);
        assert_eq!(since(&touched, 3).unwrap(), ["b"]);
        assert_eq!(since(&touched, 5).unwrap(), [""; 0]);
        for n in 0..TOUCHED_MAX as u64 {
            touched.note(Sequence(10 + n), "c");
        }
        assert_eq!(since(&touched, 4), None, "b is not known any more");
        assert_eq!(since(&touched, 5).unwrap().len(), TOUCHED_MAX);
    }
}
