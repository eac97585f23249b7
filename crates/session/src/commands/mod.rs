//! The table of NNTP commands.
//!
//! **To add one:** a file `commands/<verb>.rs` with a [`Spec`] named `SPEC` and a handler `run`; its `mod` line, its row
//! in [`TABLE`], in `Verb` and in `dispatch` below; and a transcript `tests/transcripts/**/<verb>.nntp` that shows
//! every code the row names.  HELP, CAPABILITIES, argument errors and metrics follow from the row.  A test fails when
//! a file is not in the table or a transcript is missing.

mod article;
pub(crate) mod authinfo;
mod body;
mod capabilities;
mod check;
mod compress;
mod date;
mod group;
mod hdr;
mod head;
mod help;
mod ihave;
mod last;
mod list;
mod listgroup;
mod mode;
mod newgroups;
mod newnews;
mod next;
mod over;
mod post;
mod quit;
mod starttls;
mod stat;
mod takethis;
mod xgtitle;
mod xhdr;
mod xover;
mod xpat;

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
pub use crate::spec::{Needs, Spec};
use crate::spec::{VERB_OCTETS_MAX, key};

macro_rules! table {
    ($($verb:ident => $module:ident::SPEC),* $(,)?) => {
        /// Every verb; `verb as usize` is its place in [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Verb { $($verb),* }

        const VERBS: &[Verb] = &[$(Verb::$verb),*];

        /// Every command, in the order of HELP.
        pub static TABLE: &[Spec] = &[$($module::SPEC),*];

        const KEYS: &[u128] = &[$(key($module::SPEC.name.as_bytes())),*];

        #[cfg(test)]
        const FILES: &[&str] = &[$(concat!(stringify!($module), ".rs")),*];

        pub(crate) async fn dispatch<S, Io>(core: &mut Core<S, Io>, verb: Verb, command: &Command<'_>) -> Result<(), End>
        where
            S: NewsService,
            Io: AsyncRead + AsyncWrite + Unpin + Send,
        {
            match verb { $(Verb::$verb => $module::run(core, command).await,)* }
        }
    };
}

table! {
    Article => article::SPEC,
    Authinfo => authinfo::SPEC,
    Body => body::SPEC,
    Capabilities => capabilities::SPEC,
    Check => check::SPEC,
    Compress => compress::SPEC,
    Date => date::SPEC,
    Group => group::SPEC,
    Hdr => hdr::SPEC,
    Head => head::SPEC,
    Help => help::SPEC,
    Ihave => ihave::SPEC,
    Last => last::SPEC,
    List => list::SPEC,
    ListGroup => listgroup::SPEC,
    Mode => mode::SPEC,
    Newgroups => newgroups::SPEC,
    Newnews => newnews::SPEC,
    Next => next::SPEC,
    Over => over::SPEC,
    Post => post::SPEC,
    Quit => quit::SPEC,
    StartTls => starttls::SPEC,
    Stat => stat::SPEC,
    TakeThis => takethis::SPEC,
    Xgtitle => xgtitle::SPEC,
    Xhdr => xhdr::SPEC,
    Xover => xover::SPEC,
    Xpat => xpat::SPEC,
}

impl Verb {
    /// The verb of a command line.
    pub(crate) fn find(verb: &[u8]) -> Option<Self> {
        if verb.len() > VERB_OCTETS_MAX {
            return None;
        }
        let key = key(verb);
        VERBS.get(KEYS.iter().position(|one| *one == key)?).copied()
    }

    pub(crate) fn spec(self) -> &'static Spec {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_found_in_any_case() {
        for (verb, spec) in VERBS.iter().zip(TABLE) {
            assert_eq!(Verb::find(spec.name.as_bytes()), Some(*verb));
            assert_eq!(
                Verb::find(spec.name.to_ascii_lowercase().as_bytes()),
                Some(*verb)
            );
            assert!(
                spec.name.len() <= VERB_OCTETS_MAX && spec.name == spec.name.to_ascii_uppercase()
            );
            assert!(
                spec.args.0 <= spec.args.1 && spec.args.1 <= 6,
                "{}",
                spec.name
            );
            assert!(
                !spec.codes.is_empty() && spec.codes.is_sorted(),
                "{}",
                spec.name
            );
        }
        for none in ["", "GROUPS", "GROU", "\0GROUP", "ARTICLEARTICLEARTICLE"] {
            assert_eq!(Verb::find(none.as_bytes()), None);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "looks at the source tree")]
    fn every_file_is_in_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mod.rs")
            .collect();
        files.sort();
        assert_eq!(files, FILES, "files in commands/ and rows of the table");
        for (file, spec) in FILES.iter().zip(TABLE) {
            assert_eq!(file.trim_end_matches(".rs").to_ascii_uppercase(), spec.name);
        }
    }
}
