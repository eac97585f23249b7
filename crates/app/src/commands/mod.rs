//! The verbs of the command line, one file each.
//!
//! To add one: a file here with `Args` and `run`, and a row in `Verb` and in `run`.  A verb prints through
//! [`crate::output`] and asks a spool through [`crate::access`]; it holds no logic of the server.

mod access;
mod article;
mod batch;
mod bench;
pub(crate) mod cache;
mod check;
mod clock;
mod completions;
mod config;
mod control;
mod expire;
pub(crate) mod group;
mod import;
mod inews;
mod man;
#[cfg(feature = "pam")]
mod pam;
mod peer;
mod post;
mod pull;
mod rnews;
mod serve;
mod status;
mod store;
pub(crate) mod usenetfs;
mod user;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// A complete Usenet news system in one binary.
#[derive(Debug, Parser)]
#[command(
    name = "newsreel",
    version,
    after_help = "Examples:\n  newsreel serve                       a server on 127.0.0.1:1119, spool in ./newsreel-spool\n  \
                  newsreel group add misc.test         make a group, with or without a running server\n  \
                  newsreel article show misc.test:1    look at an article\n  \
                  newsreel config explain listen.addresses"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the server
    Serve(serve::Args),
    /// Run a caching server in front of another news server
    Cache(cache::Args),
    /// List, show, add, change, remove and import groups
    #[command(subcommand)]
    Group(group::Verb),
    /// Tell how a server or spool is
    Status(status::Args),
    /// Show articles, and take them out
    #[command(subcommand)]
    Article(article::Verb),
    /// Post articles from files
    Post(post::Args),
    /// Post an article, with the options of INN's inews
    Inews(Box<inews::Args>),
    /// Take batches of articles, or single ones, as INN's rnews does
    Rnews(rnews::Args),
    /// Write batches of what waits for a peer
    Batch(batch::Args),
    /// Take articles from mail folders and directory trees
    #[command(subcommand)]
    Import(import::Verb),
    /// Fetch articles from a server that feeds nobody, as a newsreader does
    Pull(pull::Args),
    /// Make, list, draw, check, move, drain and export what articles are kept in
    #[command(subcommand)]
    Store(store::Verb),
    /// Let articles go that the rules of expiry let go, or say which
    Expire(expire::Args),
    /// Prove that store, log and views agree
    Check(check::Args),
    /// Confirm that the clock is right although it jumped
    #[command(subcommand)]
    Clock(clock::Verb),
    /// Add, change, list and remove who can log in
    #[command(subcommand)]
    User(user::Verb),
    /// Say whether PAM knows a name and its password, asked as login.program is
    #[cfg(feature = "pam")]
    Pam(pam::Args),
    /// Say what somebody may do, and by which rule
    #[command(subcommand)]
    Access(access::Verb),
    /// List the servers that articles are sent to, say what goes to them, pause and resume them
    #[command(subcommand)]
    Peer(peer::Verb),
    /// List, show and approve messages that ask for groups to be made, changed or removed
    #[command(subcommand)]
    Control(control::Verb),
    /// Check, show and explain the configuration
    #[command(subcommand)]
    Config(config::Verb),
    /// Measure a server: make a corpus, feed it, read it
    #[command(subcommand)]
    Bench(bench::Verb),
    /// Mount, convert, check and weigh large article directories kept as many small ones
    #[command(subcommand)]
    Usenetfs(usenetfs::Verb),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Print or write the manual pages
    Man(man::Args),
}

/// Runs what was typed.
pub(crate) fn run(cli: Cli) -> Result<()> {
    match cli.verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Cache(args) => cache::run(&args),
        Verb::Group(verb) => group::run(&verb),
        Verb::Status(args) => status::run(&args),
        Verb::Article(verb) => article::run(&verb),
        Verb::Post(args) => post::run(&args),
        Verb::Inews(args) => inews::run(&args),
        Verb::Rnews(args) => rnews::run(&args),
        Verb::Batch(args) => batch::run(&args),
        Verb::Import(verb) => import::run(&verb),
        Verb::Pull(args) => pull::run(&args),
        Verb::Store(verb) => store::run(&verb),
        Verb::Expire(args) => expire::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Clock(verb) => clock::run(&verb),
        Verb::User(verb) => user::run(&verb),
        #[cfg(feature = "pam")]
        Verb::Pam(args) => pam::run(&args),
        Verb::Access(verb) => access::run(&verb),
        Verb::Peer(verb) => peer::run(&verb),
        Verb::Control(verb) => control::run(&verb),
        Verb::Config(verb) => config::run(&verb),
        Verb::Bench(verb) => bench::run(&verb),
        Verb::Usenetfs(verb) => usenetfs::run(&verb),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Commands below this one whose help shows no line with themselves.
    fn without_example(command: &clap::Command, path: &str) -> Vec<String> {
        let path = format!("{path}{}", command.get_name());
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_some() {
            let below = |verb| without_example(verb, &format!("{path} "));
            return verbs.flat_map(below).collect();
        }
        let help = command.get_after_help().map(ToString::to_string);
        let (_, examples) = help
            .as_deref()
            .and_then(|help| help.split_once("Example"))
            .unwrap_or_default();
        let shown = |line: &str| line.trim_start().starts_with(&path);
        match examples.lines().any(shown) {
            true => Vec::new(),
            false => vec![path],
        }
    }

    /// Commands below this one that take no `--json`.
    fn without_json(command: &clap::Command, path: &str) -> Vec<String> {
        let path = format!("{path}{}", command.get_name());
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_some() {
            let below = |verb| without_json(verb, &format!("{path} "));
            return verbs.flat_map(below).collect();
        }
        let mut options = command.get_arguments();
        match options.any(|option| option.get_long() == Some("json")) {
            true => Vec::new(),
            false => vec![path],
        }
    }

    /// The README promises it: who reports something does so as JSON too.  These serve, print a file of another form, or
    /// say nothing where all goes well.
    #[test]
    fn every_command_that_reports_has_json() {
        let expected = [
            "newsreel serve",
            "newsreel inews",
            "newsreel store export",
            "newsreel config reference",
            "newsreel bench null",
            "newsreel usenetfs mount",
            "newsreel usenetfs umount",
            "newsreel completions",
            "newsreel man",
        ];
        assert_eq!(without_json(&Cli::command(), ""), expected);
    }

    #[test]
    fn the_help_of_every_command_has_an_example_of_it() {
        assert_eq!(without_example(&Cli::command(), ""), Vec::<String>::new());
    }
}
