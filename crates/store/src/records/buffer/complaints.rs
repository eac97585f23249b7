//! What people should know of a buffer: one thing beside the other, each once, as long as it is so.

use parking_lot::Mutex;

/// So many are told one by one.
const TOLD_MAX: usize = 8;

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// The first ones.
    first: Vec<String>,
    /// How many came behind those.
    more: u64,
}

impl From<Option<String>> for Complaints {
    fn from(first: Option<String>) -> Self {
        let first = first.into_iter().collect();
        Self(Mutex::new(Told { first, more: 0 }))
    }
}

impl Complaints {
    /// One more.
    pub(super) fn add(&self, why: String) {
        let mut told = self.0.lock();
        if told.first.contains(&why) {
            return;
        }
        match told.first.len() < TOLD_MAX {
            true => told.first.push(why),
            false => told.more += 1,
        }
    }

    /// What begins with this is so no more.
    pub(super) fn remove(&self, begins: &str) {
        self.0.lock().first.retain(|why| !why.starts_with(begins));
    }

    /// All of it in a line.
    pub(super) fn said(&self) -> Option<String> {
        let told = self.0.lock();
        let said = told.first.join("; ");
        match (said.is_empty(), told.more) {
            (true, 0) => None,
            (_, 0) => Some(said),
            (_, more) => Some(format!("{said} (and {more} more, see the log)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stands_beside_the_other_and_goes_alone() {
        let complaints = Complaints::from(Some("a is lost".to_owned()));
        for why in ["b is lost", "a is lost", "c: damaged"] {
            complaints.add(why.to_owned());
        }
        let said = complaints.said();
        assert_eq!(said.as_deref(), Some("a is lost; b is lost; c: damaged"));
        complaints.remove("b is");
        assert_eq!(complaints.said().as_deref(), Some("a is lost; c: damaged"));
        for n in 0..TOLD_MAX {
            complaints.add(format!("{n}"));
        }
        let said = complaints.said().unwrap();
        assert!(said.ends_with("; 5 (and 2 more, see the log)"), "{said}");
    }
}
