//! The steps of a comparison: every number that one server is to beat another by.
//!
//! To add one: a row. Invariant: feeding comes before reading, and each feeding step takes articles
//! of its own, so that no step finds the articles of another one already there.

use crate::read::{By, Choice};

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its name in tables and for choosing it.
    pub name: &'static str,
    pub(super) pass: Pass,
    pub(super) connections: usize,
    /// The window of a feed, the depth of a reader.
    pub(super) depth: usize,
    /// Whether it is skipped when articles are large: then only the copying would be measured.
    pub(super) small_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Brings new articles.
    Feed(&'static str),
    /// Offers the articles that all feeding steps brought.
    Offer(&'static str),
    /// Fetches every article once, in the order they came: from here on what a server keeps in memory is there.
    Once,
    Read {
        mode: &'static str,
        by: By,
        groups: Option<Choice>,
        quick_ack: bool,
    },
}

const fn feed(name: &'static str, mode: &'static str, connections: usize, window: usize) -> Step {
    Step {
        name,
        pass: Pass::Feed(mode),
        connections,
        depth: window,
        small_only: false,
    }
}

const fn offer(name: &'static str, mode: &'static str, connections: usize, window: usize) -> Step {
    Step {
        name,
        pass: Pass::Offer(mode),
        connections,
        depth: window,
        small_only: true,
    }
}

const fn read(name: &'static str, mode: &'static str, by: By, connections: usize) -> Step {
    let pass = Pass::Read {
        mode,
        by,
        groups: None,
        quick_ack: true,
    };
    Step {
        name,
        pass,
        connections,
        depth: 1,
        small_only: false,
    }
}

const fn once(name: &'static str, connections: usize, depth: usize) -> Step {
    Step {
        name,
        pass: Pass::Once,
        connections,
        depth,
        small_only: false,
    }
}

const fn deep(step: Step, depth: usize) -> Step {
    Step { depth, ..step }
}

/// Readers as most are: the kernel delays their acknowledgements.
const fn usual_acks(step: Step) -> Step {
    let pass = match step.pass {
        Pass::Read {
            mode, by, groups, ..
        } => Pass::Read {
            mode,
            by,
            groups,
            quick_ack: false,
        },
        other => other,
    };
    Step { pass, ..step }
}

const fn of(step: Step, choice: Choice) -> Step {
    let pass = match step.pass {
        Pass::Read {
            mode,
            by,
            quick_ack,
            ..
        } => Pass::Read {
            mode,
            by,
            groups: Some(choice),
            quick_ack,
        },
        other => other,
    };
    Step { pass, ..step }
}

/// All steps, in order.
pub static STEPS: &[Step] = &[
    feed("takethis-1", "takethis", 1, 100),
    feed("takethis-4", "takethis", 4, 100),
    feed("takethis-1-wide", "takethis", 1, 1000),
    feed("takethis-4-wide", "takethis", 4, 1000),
    feed("check-1", "check", 1, 100),
    feed("check-4", "check", 4, 100),
    offer("check-known-1", "check-known", 1, 100),
    offer("check-known-1-wide", "check-known", 1, 1000),
    offer("check-known-4-wide", "check-known", 4, 1000),
    once("article-once-4", 4, 8),
    read("article-id-4", "article", By::Id, 4),
    read("article-id-16", "article", By::Id, 16),
    read("article-number-16", "article", By::Number, 16),
    read("head-16", "head", By::Id, 16),
    read("body-16", "body", By::Id, 16),
    read("stat-16", "stat", By::Id, 16),
    read("group-16", "group", By::Id, 16),
    usual_acks(read("article-1-usual-acks", "article", By::Id, 1)),
    usual_acks(read("article-16-usual-acks", "article", By::Id, 16)),
    deep(read("article-4-deep", "article", By::Id, 4), 8),
    deep(read("head-4-deep", "head", By::Id, 4), 8),
    deep(read("body-4-deep", "body", By::Id, 4), 8),
    deep(read("stat-4-deep", "stat", By::Id, 4), 8),
    deep(read("group-4-deep", "group", By::Id, 4), 8),
    read("over-4", "over", By::Id, 4),
    deep(read("over-4-deep", "over", By::Id, 4), 8),
    of(read("over-busy-4", "over", By::Id, 4), Choice::Busy),
    read("list-4", "list", By::Id, 4),
    read("listgroup-4", "listgroup", By::Id, 4),
    read("session-16", "session", By::Number, 16),
];

/// The names of the steps that need no reader: they bring articles or offer them.
pub fn feeding_steps() -> Vec<String> {
    let feeding = |step: &&Step| matches!(step.pass, Pass::Feed(_) | Pass::Offer(_));
    let feeding = STEPS.iter().filter(feeding);
    feeding.map(|step| step.name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_distinct_and_their_passes_exist() {
        let mut names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
        for step in STEPS {
            let exists = match step.pass {
                Pass::Feed(mode) | Pass::Offer(mode) => crate::passes::feed(mode).is_some(),
                Pass::Once => true,
                Pass::Read { mode, .. } => crate::passes::read(mode).is_some(),
            };
            assert!(exists, "{}", step.name);
        }
    }
}
