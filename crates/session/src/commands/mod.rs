//! The table of NNTP commands.
//!
//! **To add one:** a file `commands/<verb>.rs` with a [`Spec`] named `SPEC` and a handler `run`; its `mod` line, its row
//! in [`TABLE`], in [`Verb`] and in `dispatch` below; and a transcript `tests/transcripts/**/<verb>.nntp` that shows
//! every code the row names.  HELP, CAPABILITIES, argument errors and metrics follow from the row.  A test fails when
//! a file is not in the table or a transcript is missing.

mod article;
mod body;
mod capabilities;
mod check;
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
mod stat;
mod takethis;
mod xhdr;
mod xover;

use newsreel_service::{Features, NewsService};
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answers;
use crate::core::{Core, Incoming};
use crate::end::End;
use crate::slots::Answer;

/// What a command needs of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: always there.
    Nothing,
    /// Groups, numbers and overview.
    Reader,
    /// Lists by arrival.
    Newnews,
    /// Taking articles from peers.
    Transit,
}

impl Needs {
    fn met(self, features: Features) -> bool {
        match self {
            Self::Nothing => true,
            Self::Reader => features.reader,
            Self::Newnews => features.newnews,
            Self::Transit => features.transit,
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Spec {
    /// The verb, upper case.
    pub name: &'static str,
    /// Its arguments, as HELP shows them.
    pub usage: &'static str,
    /// The least and the most arguments.
    pub args: (usize, usize),
    /// Without it the command is unknown (500).
    pub needs: Needs,
    /// The line CAPABILITIES has for it, but for arguments that depend on the service.
    pub capability: Option<&'static str>,
    /// Whether it is answered through reply slots (RFC 4644); others wait for the answers before them.
    pub pipelined: bool,
    /// Every code it can answer, but for 400, 403, 500 and 501, which any command can.
    pub codes: &'static [u16],
}

macro_rules! table {
    ($($verb:ident $module:ident),* $(,)?) => {
        /// Every verb; `verb as usize` is its place in [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Verb { $($verb),* }

        const VERBS: &[Verb] = &[$(Verb::$verb),*];

        /// Every command, in the order of HELP.
        pub static TABLE: &[Spec] = &[$($module::SPEC),*];

        const KEYS: &[u128] = &[$(key($module::SPEC.name.as_bytes())),*];

        #[cfg(test)]
        const FILES: &[&str] = &[$(concat!(stringify!($module), ".rs")),*];

        async fn dispatch<S, Io>(core: &mut Core<S, Io>, verb: Verb, command: &Command<'_>) -> Result<(), End>
        where
            S: NewsService,
            Io: AsyncRead + AsyncWrite + Unpin + Send,
        {
            match verb { $(Verb::$verb => $module::run(core, command).await,)* }
        }
    };
}

table! {
    Article article,
    Body body,
    Capabilities capabilities,
    Check check,
    Date date,
    Group group,
    Hdr hdr,
    Head head,
    Help help,
    Ihave ihave,
    Last last,
    List list,
    ListGroup listgroup,
    Mode mode,
    Newgroups newgroups,
    Newnews newnews,
    Next next,
    Over over,
    Post post,
    Quit quit,
    Stat stat,
    TakeThis takethis,
    Xhdr xhdr,
    Xover xover,
}

/// The longest verb that fits in a key.
const VERB_OCTETS_MAX: usize = 15;

/// A verb as one number, its letters raised, behind a 1 so that its length counts too.
const fn key(verb: &[u8]) -> u128 {
    let mut key = 1;
    let mut at = 0;
    while at < verb.len() && at < VERB_OCTETS_MAX {
        key = key << 8 | verb[at].to_ascii_uppercase() as u128;
        at += 1;
    }
    key
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

/// The first line of a session.
pub(crate) fn greet<S, Io>(core: &mut Core<S, Io>)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let shared = core.shared.clone();
    core.reply_parts(&[b"201 ", shared.config.greeting.as_bytes(), b" (no posting)"]);
}

/// Carries a command out, or says why not: 500 for what is no command here, 501 for the wrong number of arguments.
pub(crate) async fn run<S, Io>(
    core: &mut Core<S, Io>,
    verb: Option<Verb>,
    command: &Command<'_>,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.shared.metrics.command(verb.map(|verb| verb as usize));
    let Some(verb) = verb else {
        core.reply("500 Unknown command\r\n");
        return Ok(());
    };
    let spec = verb.spec();
    if !spec.needs.met(core.features) {
        refuse(core, verb, "500 Command not offered by this server\r\n");
        return Ok(());
    }
    if !(spec.args.0..=spec.args.1).contains(&command.args.len()) {
        refuse(core, verb, "501 Wrong number of arguments\r\n");
        return Ok(());
    }
    dispatch(core, verb, command).await
}

/// Refuses a command in its turn; after a TAKETHIS its article is read first.
fn refuse<S, Io>(core: &mut Core<S, Io>, verb: Verb, line: &'static str)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if verb == Verb::TakeThis {
        core.incoming = Some(Incoming::Refused(line));
    } else {
        answers::push(core, Answer::Fixed(line), b"");
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
