//! What is asked of Usenetfs, beside what was measured.
//!
//! Invariant: a goal compares figures of one run; where a run has not got all of them, nothing is said of it.
//! Through a mount everything is compared with a flat directory natively, which is what a user has without us.

use serde::Serialize;

use super::figures::{FLAT, Row};

/// The largest directory of the paper.
pub(super) const PAPER_FILES: u64 = 1 << 19;
/// A group for which managing must not cost anything.
const SMALL_FILES: u64 = 1024;
const RANGE: &str = "range1024";

/// A bound, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// What is bounded.
    pub what: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// The bound.
    pub asked: f64,
    /// Whether it is the least that is asked; else the most.
    pub is_least: bool,
    /// What was measured.
    pub measured: f64,
}

/// The head of the table.
pub const GOAL_TITLES: &str = "| what | asked | measured | |\n|---|---|---|---|\n";

impl Goal {
    pub(crate) const fn at_most(
        what: String,
        asked: f64,
        measured: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            what,
            unit,
            asked,
            is_least: false,
            measured,
        }
    }

    pub(crate) const fn at_least(
        what: String,
        asked: f64,
        measured: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            what,
            unit,
            asked,
            is_least: true,
            measured,
        }
    }

    /// Whether it is reached.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.is_least {
            true => self.measured >= self.asked,
            false => self.measured <= self.asked,
        }
    }

    /// As a line of a table in Markdown, below [`GOAL_TITLES`].
    #[must_use]
    pub fn markdown(&self) -> String {
        self.with_verdict(if self.is_met() { "met" } else { "missed" })
    }

    /// The same, with another word for how it came out.
    pub(crate) fn with_verdict(&self, verdict: &str) -> String {
        let bound = if self.is_least { "at least" } else { "at most" };
        format!(
            "| {} | {bound} {}{} | {:.2}{} | {verdict} |\n",
            self.what, self.asked, self.unit, self.measured, self.unit
        )
    }
}

/// What the rows say of the goals.
#[must_use]
pub fn goals(rows: &[Row]) -> Vec<Goal> {
    let rows = Rows(rows);
    let mut goals = rows.mounted();
    goals.extend(rows.searched());
    goals.extend(rows.hashed());
    goals
}

struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    fn find(
        &self,
        file_system: &str,
        layout: &str,
        mounted: bool,
        cold: bool,
        files: u64,
    ) -> Option<&Row> {
        self.0.iter().find(|row| {
            row.file_system == file_system
                && row.layout == layout
                && (row.mounted, row.cold, row.files) == (mounted, cold, files)
        })
    }

    /// What the mount costs on ext4, with the largest directory there is.
    fn mounted(&self) -> Vec<Goal> {
        let on_ext4 = self.0.iter().filter(|row| row.file_system == "ext4");
        let files = on_ext4.map(|row| row.files).max().unwrap_or_default();
        let Some(native) = self.find("ext4", FLAT, false, false, files) else {
            return Vec::new();
        };
        let of = |layout: &str| {
            let row = self.find("ext4", layout, true, false, files)?;
            let what = |what: &str| format!("{what}, {layout} mounted, ext4, {files} files");
            let times = |what_is: &str, asked, mounted: f64, native: f64| {
                Goal::at_most(what(what_is), asked, mounted / native, " x")
            };
            Some([
                times(
                    "a lookup of a known name",
                    1.3,
                    row.known_us,
                    native.known_us,
                ),
                Goal::at_most(
                    what("requests for it"),
                    0.0,
                    row.known_requests.unwrap_or_default() as f64,
                    "",
                ),
                Goal::at_most(
                    what("more for a lookup of an unknown name"),
                    6.0,
                    row.random_us - native.random_us,
                    " us",
                ),
                times("an addition", 2.5, row.add_us, native.add_us),
                times("a removal", 2.0, row.remove_us, native.remove_us),
            ])
        };
        [FLAT, RANGE].into_iter().filter_map(of).flatten().collect()
    }

    /// What managing gains where directories are searched, through the mount.
    fn searched(&self) -> Vec<Goal> {
        let of = |cold, random, add| {
            let flat = self.find("ext2", FLAT, false, cold, PAPER_FILES)?;
            let row = self.find("ext2", RANGE, true, cold, PAPER_FILES)?;
            let state = if cold {
                "nothing in memory"
            } else {
                "blocks in memory"
            };
            let less = |what: &str, asked, flat: f64, managed: f64| {
                let what =
                    format!("{what}, {RANGE} mounted, linear ext2, {PAPER_FILES} files, {state}");
                Goal::at_least(what, asked, flat / managed, " x faster")
            };
            Some([
                less("a random lookup", random, flat.random_us, row.random_us),
                less("an addition", add, flat.add_us, row.add_us),
            ])
        };
        let states = [of(false, 50.0, 100.0), of(true, 8.0, 50.0)];
        states.into_iter().flatten().flatten().collect()
    }

    /// What managing gains natively where names are found by a hash, with nothing in memory.
    fn hashed(&self) -> Vec<Goal> {
        let cold = |layout, files| self.find("ext4", layout, false, true, files);
        let mut goals = Vec::new();
        if let (Some(flat), Some(row)) = (cold(FLAT, PAPER_FILES), cold(RANGE, PAPER_FILES)) {
            let of = |what: &str| {
                format!("{what}, {RANGE}, ext4, {PAPER_FILES} files, nothing in memory")
            };
            for (what, flat, managed) in [
                ("an addition", flat.add_us, row.add_us),
                ("a sequential lookup", flat.sequential_us, row.sequential_us),
                ("a removal of the oldest", flat.remove_us, row.remove_us),
            ] {
                goals.push(Goal::at_least(of(what), 5.0, flat / managed, " x faster"));
            }
            let emptied = row.emptied_list_us;
            goals.extend(emptied.map(|us| {
                Goal::at_most(of("the listing when all are removed"), 5.0, us / 1e3, " ms")
            }));
        }
        if let (Some(flat), Some(row)) = (cold(FLAT, SMALL_FILES), cold(RANGE, SMALL_FILES)) {
            let what =
                format!("the listing, {RANGE}, ext4, {SMALL_FILES} files, nothing in memory");
            goals.push(Goal::at_most(
                what,
                1.5,
                row.list_us / flat.list_us,
                " x flat",
            ));
        }
        goals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(file_system: &str, layout: &str, mounted: bool, cold: bool, files: u64, us: f64) -> Row {
        Row {
            file_system: file_system.to_owned(),
            layout: layout.to_owned(),
            mounted,
            cold,
            files,
            random_us: us,
            known_us: us,
            known_requests: mounted.then_some(0),
            sequential_us: us,
            add_us: us,
            remove_us: us,
            list_us: us,
            emptied_list_us: (files == PAPER_FILES).then_some(us),
        }
    }

    fn said(rows: &[Row]) -> Vec<String> {
        goals(rows).iter().map(Goal::markdown).collect()
    }

    #[test]
    fn a_mount_is_compared_with_a_flat_directory_natively() {
        let flat = row("ext4", "flat", false, false, 8, 2.0);
        let managed = row("ext4", "range1024", true, false, 8, 5.0);
        assert_eq!(
            said(&[flat.clone(), managed.clone()]),
            [
                "| a lookup of a known name, range1024 mounted, ext4, 8 files | at most 1.3 x | 2.50 x | missed |\n",
                "| requests for it, range1024 mounted, ext4, 8 files | at most 0 | 0.00 | met |\n",
                "| more for a lookup of an unknown name, range1024 mounted, ext4, 8 files | at most 6 us | 3.00 us | met |\n",
                "| an addition, range1024 mounted, ext4, 8 files | at most 2.5 x | 2.50 x | met |\n",
                "| a removal, range1024 mounted, ext4, 8 files | at most 2 x | 2.50 x | missed |\n",
            ]
        );
        // Figures of another size are of no use.
        let larger = row("ext4", "yyy", true, false, 16, 5.0);
        assert!(said(&[flat, managed, larger]).is_empty());
    }

    #[test]
    fn large_directories_where_names_are_searched_and_hashed() {
        let flat = |fs, cold| row(fs, "flat", false, cold, PAPER_FILES, 900.0);
        let rows = [
            flat("ext2", false),
            row("ext2", "range1024", true, false, PAPER_FILES, 10.0),
            flat("ext2", true),
            row("ext2", "range1024", true, true, PAPER_FILES, 100.0),
            flat("ext4", true),
            row("ext4", "range1024", false, true, PAPER_FILES, 225.0),
            row("ext4", "flat", false, true, 1024, 2.0),
            row("ext4", "range1024", false, true, 1024, 3.0),
        ];
        let verdicts: Vec<(f64, bool)> = goals(&rows)
            .iter()
            .map(|goal| (goal.measured, goal.is_met()))
            .collect();
        let expected = [
            // Lookups and additions on ext2, with blocks and without.
            (90.0, true),
            (90.0, false),
            (9.0, true),
            (9.0, false),
            // Additions, lookups and removals on ext4, and what is left.
            (4.0, false),
            (4.0, false),
            (4.0, false),
            (0.225, true),
            (1.5, true),
        ];
        assert_eq!(verdicts, expected);
        assert!(said(&rows[1..2]).is_empty());
    }
}
