//! The storage methods, one folder each, and the table of them.
//!
//! To add one: a folder with its format, placing, writing and reading, a row in [`METHODS`], a
//! format page `docs/formats/<page>.md`; the conformance suite then runs it.

pub mod cnfs;

/// One storage method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its name, as in the configuration and the folder.
    pub name: &'static str,
    /// The first octet of its tokens; never given to another method.
    pub number: u8,
    /// Its page in `docs/formats/`.
    pub format_page: &'static str,
}

/// All methods.
pub const METHODS: &[Method] = &[Method {
    name: "cnfs",
    number: cnfs::METHOD,
    format_page: "cyclic-buffer",
}];
