//! Replacement policies: what goes when there is no room for more.  The paper's (section 4.1), and two of today.
//!
//! To add one: a file here, a variant of [`PolicyKind`] in `config.rs` and its row in [`POLICIES`]; the file ends with a test that
//! compares it with a model which looks at everything anew.

mod baf;
mod gdsf;
mod hybrid;
mod letf;
mod lfua;
mod lfug;
mod lrua;
mod lrug;
mod s3fifo;

pub use crate::config::PolicyKind;
pub use crate::policy::{Article, Policy, Room, Worth};

/// Of what may be kept the cache's policy wants so many parts of a hundred to stay (decision 0026).
pub const WANTED_PART: u64 = 50;

/// A policy's row.
#[derive(Debug)]
pub struct PolicyRow {
    /// Which it is.
    pub kind: PolicyKind,
    /// Its name, in the configuration and in tables.
    pub name: &'static str,
    /// It is one of the six whose curves the paper shows.
    pub is_in_figures: bool,
    make: fn() -> Box<dyn Policy>,
}

impl PolicyRow {
    const fn new(
        kind: PolicyKind,
        name: &'static str,
        is_in_figures: bool,
        make: fn() -> Box<dyn Policy>,
    ) -> Self {
        Self {
            kind,
            name,
            is_in_figures,
            make,
        }
    }
}

/// The one table of policies, in the order of [`PolicyKind`].
pub const POLICIES: &[PolicyRow] = &[
    PolicyRow::new(PolicyKind::Lrug, "lrug", true, lrug::make),
    PolicyRow::new(PolicyKind::Lrua, "lrua", true, lrua::make),
    PolicyRow::new(PolicyKind::Lfug, "lfug", true, lfug::make),
    PolicyRow::new(PolicyKind::Lfua, "lfua", true, lfua::make),
    PolicyRow::new(PolicyKind::Baf, "baf", true, baf::make),
    PolicyRow::new(PolicyKind::Letf, "letf", true, letf::make),
    PolicyRow::new(PolicyKind::Hybrid, "hybrid", false, hybrid::make),
    PolicyRow::new(PolicyKind::S3fifo, "s3fifo", false, s3fifo::make),
    PolicyRow::new(PolicyKind::Gdsf, "gdsf", false, gdsf::make),
];

impl PolicyKind {
    fn row(self) -> Option<&'static PolicyRow> {
        POLICIES.iter().find(|row| row.kind == self)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// The policy of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let row = POLICIES.iter().find(|row| row.name == name)?;
        Some(row.kind)
    }

    /// A policy that holds nothing yet.
    #[must_use]
    pub fn make(self) -> Box<dyn Policy> {
        self.row().map_or_else(lrug::make, |row| (row.make)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that is missing or stands twice would make another policy than the one that was asked for.
    #[test]
    fn each_kind_has_a_row_of_its_own_name() {
        for row in POLICIES {
            let named = PolicyKind::of_name(row.name);
            assert_eq!(named, Some(row.kind));
            assert_eq!(row.kind.name(), row.name);
            let in_the_configuration = format!("{:?}", row.kind).to_lowercase();
            assert_eq!(in_the_configuration, row.name);
        }
        let last = PolicyKind::Gdsf as usize;
        assert_eq!(POLICIES.len(), last + 1);
        assert_eq!(PolicyKind::of_name("lru"), None);
    }
}
