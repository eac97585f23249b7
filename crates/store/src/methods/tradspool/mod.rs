//! The traditional spool: a file `group/sub/group/NUMBER` for each article, with a link for each further group.
//!
//! Groups and numbers are those of the article's Xref.  Large groups may be kept as many small directories, in the layouts of
//! `newsreel_layout`, without any mount.  What it has beside files is in `crate::files`; names are told in
//! `docs/formats/tradspool.md`.

mod layouts;
mod naming;

use std::sync::Arc;

use newsreel_wire::SetId;

pub(crate) use layouts::Layouts;

use crate::config::SetConfig;
use crate::error::{Error, Result};
use crate::files::set;
use crate::methods::{OpenedSet, Opening};
use crate::records::home::Kind;

/// The first octet of its tokens.
pub const METHOD: u8 = 5;
/// Its name in the configuration.
pub const NAME: &str = "tradspool";

/// Opens a set.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let kind = Kind {
        number: METHOD,
        name: NAME,
        is_of_articles: false,
    };
    let layouts = Layouts::parse(&config.layouts).map_err(Error::Config)?;
    let naming = Arc::new(naming::ByNumber { layouts });
    set::open((kind, naming), opening, set, config)
}
