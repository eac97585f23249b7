//! The storage methods, one folder each, and the table of them.
//!
//! To add one: a folder with its format (or, where articles are files, with their names), placing, writing and reading, a row in [`METHODS`], a format page
//! `docs/formats/<page>.md`; `tests/it` then runs the conformance suite over it.

pub mod cnfs;
pub mod md5spool;
pub mod segment;
pub mod timehash;
pub mod tradspool;

use std::path::Path;
use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_wire::{BufferId, Position, SetId, Token};

use crate::config::{SetConfig, StoreConfig};
use crate::error::Result;
use crate::files::{self, lent};
use crate::method::{BufferReader, StorageMethod};
use crate::records::buffer::Buffer;
use crate::records::reading::end_of as record_end;
use crate::register::Register;
use crate::store::Access;

/// One storage method.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Its name, as in the configuration and the folder.
    pub name: &'static str,
    /// What it is, for the reference page.
    pub doc: &'static str,
    /// The first octet of its tokens; never given to another method.
    pub number: u8,
    /// Its page in `docs/formats/`.
    pub format_page: &'static str,
    /// Each article is a file of its own.
    pub in_files: bool,
    /// Opens a set of it, making what is missing.
    pub(crate) open: fn(&mut Opening<'_>, SetId, &SetConfig) -> Result<OpenedSet>,
}

/// All methods.
pub const METHODS: &[Method] = &[
    Method {
        name: cnfs::NAME,
        doc: "Cyclic buffers: the newest articles overwrite the oldest.",
        number: cnfs::METHOD,
        format_page: "cyclic-buffer",
        in_files: false,
        open: cnfs::open,
    },
    Method {
        name: segment::NAME,
        doc: "Files one behind the other, dropped whole by age, size or room.",
        number: segment::METHOD,
        format_page: "segment",
        in_files: false,
        open: segment::open,
    },
    Method {
        name: md5spool::NAME,
        doc: "A file for each article, named by the MD5 of its message-id.",
        number: md5spool::METHOD,
        format_page: "md5spool",
        in_files: true,
        open: md5spool::open,
    },
    Method {
        name: timehash::NAME,
        doc: "A file for each article, named by its arrival.",
        number: timehash::METHOD,
        format_page: "timehash",
        in_files: true,
        open: timehash::open,
    },
    Method {
        name: tradspool::NAME,
        doc: "A file for each article in a directory for each group, named by its number.",
        number: tradspool::METHOD,
        format_page: "tradspool",
        in_files: true,
        open: tradspool::open,
    },
];

/// What is none of them, as it stores nothing: what another spool has is shown as ours.
const ATTACHED: &Method = &Method {
    name: lent::NAME,
    doc: "The articles of a buffer or segment of another spool, which is read where it lies and never written (`file`, `newsreel store attach --in-place`).",
    number: lent::METHOD,
    format_page: "catalogue",
    in_files: true,
    open: lent::open,
};

/// All methods, and `attached`.
pub fn all() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().chain([ATTACHED])
}

/// The method of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    all().find(|method| method.name == name)
}

/// The position behind what a token leads to, for recovery: there it need not be known which blocks a buffer has, because
/// what follows begins on a page.
#[must_use]
pub fn end_of(token: &Token) -> Position {
    let in_files = all().any(|method| method.number == token.method() && method.in_files);
    match in_files {
        true => record_end(&files::card_token(token)),
        false => record_end(token),
    }
}

/// What a method gets to open a set.
pub(crate) struct Opening<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) spool_dir: &'a Path,
    pub(crate) spool: [u8; 16],
    pub(crate) config: &'a StoreConfig,
    pub(crate) register: &'a mut Register,
    /// Ids that the log has, beside those of the register.
    pub(crate) known: &'a [BufferId],
    pub(crate) access: Access,
    /// Memory of the machine, octets.
    pub(crate) machine_octets: u64,
    pub(crate) progress: cnfs::CreateProgress<'a>,
}

impl Opening<'_> {
    /// Memory for the newest articles of a set, octets.
    pub(crate) fn recent_octets(&self, set: &SetConfig) -> usize {
        let octets = self.config.recent_octets(set, self.machine_octets);
        usize::try_from(octets).unwrap_or(usize::MAX)
    }
}

/// A set, ready to be used.
pub(crate) struct OpenedSet {
    pub(crate) placing: Box<dyn StorageMethod>,
    pub(crate) readers: Vec<Arc<dyn BufferReader>>,
    /// Its cyclic buffers.
    pub(crate) cyclic: Vec<Arc<Buffer>>,
}
