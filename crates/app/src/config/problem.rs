//! What is wrong with a configuration file: where, what, and what would be right.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// Line, from 1; 0 when no line of the file is to blame.
    pub(crate) line: usize,
    /// Column, from 1.
    pub(crate) column: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// What would be right.
    pub(crate) right: String,
}

/// All that is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Problems {
    /// The file, as it was named.
    pub(crate) file: String,
    /// In the order of the lines.
    pub(crate) list: Vec<Problem>,
    /// Whether the spool is the one that was meant, whatever else is wrong.
    pub(crate) is_spool_known: bool,
}

impl Problems {
    /// What was read, if nothing is wrong with it.
    pub(crate) fn none_or<T>(self, read: T) -> anyhow::Result<T> {
        match self.list.is_empty() {
            true => Ok(read),
            false => Err(self.into()),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.list {
            match (problem.line, problem.column) {
                (0, _) => write!(f, "{}: ", self.file)?,
                (line, column) => write!(f, "{}:{line}:{column}: ", self.file)?,
            }
            write!(f, "{}", problem.what)?;
            if !problem.right.is_empty() {
                write!(f, "; {}", problem.right)?;
            }
            writeln!(f)?;
        }
        let count = self.list.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(
            f,
            "{count} problem{plural} in {}; nothing was started or changed",
            self.file
        )
    }
}

impl std::error::Error for Problems {}

/// Line and column of an offset.
pub(crate) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |rest| rest.chars().count())
        + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("", 0), (1, 1));
        assert_eq!(place("ab\ncd", 4), (2, 2));
        assert_eq!(place("ab\n", 3), (2, 1));
        assert_eq!(place("ab", 99), (1, 3));
    }
}
