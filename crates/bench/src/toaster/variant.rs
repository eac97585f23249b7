//! What is done otherwise in a run that is held against the plain one: the paper's other options, and its figure 6.
//!
//! To add one: a row in each of these tables, and what it does.

/// What is done otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Nothing.
    Plain,
    /// Log, history and everything else lie on the disk of the articles.
    SameDisk,
    /// Every read of a file is noted in its inode.
    Atime,
    /// The kernel reads nothing ahead.
    NoReadAhead,
    /// Articles are removed one by one in the order of the history, as C News did; INN alone can be had to.
    HistoryOrder,
}

impl Variant {
    /// All of them; what others are held against comes first.
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::SameDisk,
        Self::Atime,
        Self::NoReadAhead,
        Self::HistoryOrder,
    ];

    /// Its name, on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::SameDisk => "same-disk",
            Self::Atime => "atime",
            Self::NoReadAhead => "no-read-ahead",
            Self::HistoryOrder => "history-order",
        }
    }

    /// What is so in it, in tables.
    #[must_use]
    pub const fn is(self) -> &'static str {
        match self {
            Self::Plain => "history on another disk, no access times, read-ahead, removal sorted",
            Self::SameDisk => "history on the same disk",
            Self::Atime => "access times",
            Self::NoReadAhead => "no read-ahead",
            Self::HistoryOrder => "removal in the order of the history",
        }
    }
}
