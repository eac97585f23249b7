//! What was typed that every message keeps to: `--json`, and where the spool and its configuration are; and addresses and sizes.
//!
//! Noted once, before the verb runs.  A hint that names a command repeats the options without which it would mean
//! another spool; an error of a command that answers in JSON is JSON too.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::OnceLock;

use clap::{ArgMatches, Command, CommandFactory as _};
use newsreel_host::process::shell_word;

use crate::commands::Cli;
use crate::config::Unit;

/// Options that say which spool is meant.
const PLACES: [&str; 2] = ["config", "spool"];

/// How commands begin in our texts.
const COMMAND: &str = "`newsreel ";

/// What every message keeps to.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    /// Whether the verb answers in JSON.
    json: bool,
    /// Options of [`PLACES`] as they were given, in a shell's quotes where needed.
    places: Vec<(&'static str, String)>,
}

static TYPED: OnceLock<Typed> = OnceLock::new();

impl Typed {
    /// Takes it from what the command line was found to say.
    fn of(mut matches: &ArgMatches) -> Self {
        let mut verbs = Vec::new();
        while let Some((verb, below)) = matches.subcommand() {
            verbs.push(verb);
            matches = below;
        }
        // Who reads the log of a server is somewhere else.
        let is_server = matches!(*verbs, ["serve" | "cache"]);
        let place = |name: &'static str| {
            let options = match (&*verbs, name) {
                (["config", "check"], "config") => &["file", name][..],
                _ => &[name],
            };
            let given = |option: &&str| matches.try_get_raw(option).ok().flatten()?.next_back();
            let given = options.iter().find_map(given)?;
            if given == "-" {
                return None;
            }
            let whole = is_server.then(|| std::path::absolute(given).ok()).flatten();
            let given = whole.map_or_else(|| given.to_owned(), std::path::PathBuf::into_os_string);
            Some((name, shell_word(&given.to_string_lossy())))
        };
        let json = matches.try_get_one::<bool>("json");
        Self {
            json: json.ok().flatten().is_some_and(|json| *json),
            places: PLACES.into_iter().filter_map(place).collect(),
        }
    }

    /// A text whose commands in backticks, as in `newsreel status`, have these options too, if they take them.
    fn hinted(&self, text: &str) -> String {
        self.hinted_as(text, str::to_owned)
    }

    /// The same, with the values written as the text wants it.
    fn hinted_as(&self, text: &str, written: impl Fn(&str) -> String) -> String {
        if self.places.is_empty() || !text.contains(COMMAND) {
            return text.to_owned();
        }
        let cli = Cli::command();
        let mut out = String::with_capacity(text.len());
        let mut parts = text.split('`');
        out.push_str(parts.next().unwrap_or_default());
        let mut parts = parts.peekable();
        let mut is_quoted = true;
        while let Some(part) = parts.next() {
            out.push('`');
            out.push_str(part);
            let verb = verb_of(&cli, part).filter(|_| is_quoted && parts.peek().is_some());
            for (name, value) in &self.places {
                let takes = |verb: &Command| takes(verb, name, part);
                if verb.is_some_and(takes) && !part.contains(&format!("--{name}")) {
                    out.push_str(&format!(" --{name} {}", written(value)));
                }
            }
            is_quoted = !is_quoted;
        }
        out
    }
}

impl Typed {
    fn logged(&self, line: &str, is_json: bool) -> String {
        let in_json = |value: &str| {
            let text = serde_json::Value::from(value).to_string();
            text.trim_matches('"').to_owned()
        };
        match is_json {
            true => self.hinted_as(line, in_json),
            false => self.hinted(line),
        }
    }
}

/// Whether a verb takes this option, as it is called in a text: not where that names what stands in the option's place.
fn takes(verb: &Command, name: &str, said: &str) -> bool {
    let mut behind = said.split(' ').skip_while(|word| *word != verb.get_name());
    let names_more = behind.nth(1).is_some();
    let mut options = verb.get_arguments().filter(|it| it.get_id() == name);
    options.any(|option| {
        let mut instead = verb.get_arg_conflicts_with(option).into_iter();
        !(names_more && instead.any(|it| it.is_positional()))
    })
}

/// The verb that a command such as `newsreel group list` runs.
fn verb_of<'c>(cli: &'c Command, said: &str) -> Option<&'c Command> {
    let mut words = said.strip_prefix("newsreel ")?.split(' ');
    let mut verb = cli.find_subcommand(words.next()?)?;
    while verb.has_subcommands() {
        verb = verb.find_subcommand(words.next()?)?;
    }
    Some(verb)
}

/// Notes what was typed; only the first time counts.
pub(crate) fn note(matches: &ArgMatches) {
    let _ = TYPED.set(Typed::of(matches));
}

/// The same of a command line that was not understood.
pub(crate) fn note_words(mut words: impl Iterator<Item = OsString>) {
    let _ = TYPED.set(Typed {
        json: words.any(|word| word == "--json"),
        places: Vec::new(),
    });
}

/// Whether errors and warnings are JSON.
pub(crate) fn is_json() -> bool {
    TYPED.get().is_some_and(|typed| typed.json)
}

/// Repeats in the hints of a text where the spool is.
pub(crate) fn hinted(text: &str) -> String {
    match TYPED.get() {
        Some(typed) => typed.hinted(text),
        None => text.to_owned(),
    }
}

/// The same in a line of the log, which may be JSON.
pub(crate) fn hinted_line(line: &[u8], is_json: bool) -> Cow<'_, [u8]> {
    let typed = TYPED.get().filter(|typed| !typed.places.is_empty());
    let text = std::str::from_utf8(line).ok();
    match (typed, text.filter(|text| text.contains(COMMAND))) {
        (Some(typed), Some(text)) => Cow::Owned(typed.logged(text, is_json).into_bytes()),
        _ => Cow::Borrowed(line),
    }
}

/// Octets as they are typed: a number, or one with a unit.
pub(crate) fn octets(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => Unit::Octets.parse(text),
    }
}

/// An address of the command line; a name would have to be looked up, and may be several.
pub(crate) fn address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, such as 127.0.0.1:1119 or [::1]:1119".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], text: &str) -> String {
        let matches = Cli::command().try_get_matches_from(words).unwrap();
        Typed::of(&matches).hinted(text)
    }

    #[test]
    fn hints_repeat_the_options_that_their_commands_take() {
        let text = "see `newsreel check`, `newsreel clock confirm` and `newsreel serve --spool X`; `y` or \
                    `newsreel config check FILE`, and `newsreel st";
        assert_eq!(check(&["newsreel", "status"], text), text);
        assert_eq!(
            check(
                &[
                    "newsreel", "status", "--config", "a b.toml", "--spool", "/s"
                ],
                text
            ),
            "see `newsreel check --config 'a b.toml' --spool /s`, \
             `newsreel clock confirm --config 'a b.toml' --spool /s` and \
             `newsreel serve --spool X --config 'a b.toml'`; `y` or \
             `newsreel config check FILE`, and `newsreel st"
        );
        // What is checked is what is meant.
        let checked = check(
            &["newsreel", "config", "check", "c.toml"],
            "`newsreel status`",
        );
        assert_eq!(checked, "`newsreel status --config c.toml`");
        let named = ["newsreel", "config", "check", "--config", "c.toml"];
        assert_eq!(check(&named, "`newsreel status`"), checked);
        assert_eq!(
            check(&["newsreel", "config", "check", "-"], "`newsreel status`"),
            "`newsreel status`"
        );
        // What stands between two commands is none.
        let text = "`newsreel man`newsreel status`newsreel man`";
        assert_eq!(check(&["newsreel", "check", "--spool", "s"], text), text);
    }

    /// Lines of the log named commands that found another spool.
    #[test]
    fn lines_of_the_log_repeat_the_options_of_the_server() {
        let words = ["newsreel", "serve", "--config", "/a \"b\".toml"];
        let matches = Cli::command().try_get_matches_from(words).unwrap();
        let typed = Typed::of(&matches);
        assert_eq!(
            typed.logged("WARN say `newsreel clock confirm`\n", false),
            "WARN say `newsreel clock confirm --config '/a \"b\".toml'`\n"
        );
        assert_eq!(
            typed.logged("{\"message\":\"say `newsreel clock confirm`\"}\n", true),
            "{\"message\":\"say `newsreel clock confirm --config '/a \\\"b\\\".toml'`\"}\n"
        );
        let matches = Cli::command().try_get_matches_from(["newsreel", "serve", "--spool", "s"]);
        let here = std::path::absolute("s").unwrap();
        assert_eq!(
            Typed::of(&matches.unwrap()).logged("`newsreel check`", false),
            format!("`newsreel check --spool {}`", here.display())
        );
    }
}
