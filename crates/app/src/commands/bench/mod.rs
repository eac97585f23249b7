//! `newsreel bench`: the load generator; makes a corpus, feeds it to a server, reads it back, and measures.
//!
//! Only arguments are read and reports printed here; what is done is in the bench crate.

mod cache;
mod compare;
mod expiry;
mod options;
mod protocol;
mod removal;
mod sending;
mod storage;
mod toaster;
mod usenetfs;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::corpus::{self, Corpus, ListForm, batch};
use newsreel_bench::feed::{self, FeedArgs};
use newsreel_bench::idle::{self, IdleArgs};
use newsreel_bench::load::Machine;
use newsreel_bench::null::{NullArgs, NullServer};
use newsreel_bench::passes;
use newsreel_bench::read::{self, By, Choice, Order, ReadArgs, Verify};
use newsreel_bench::report::Report;
use newsreel_host::{RealClock, RealDisk};
use serde::Serialize;

use self::options::{ArticleArgs, ServerArgs, count, word};
use crate::output;

/// Commands under way on a connection.
const DEPTH_MAX: usize = 1 << 20;

/// Reasons of refusals that a failure names; the report has more.
const REASONS_SHOWN_MAX: usize = 5;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Describe the articles, or write them to a file
    #[command(
        after_help = "Example:\n  newsreel bench corpus --articles 20000 --write feed.rnews.zst"
    )]
    Corpus {
        #[command(flatten)]
        articles: ArticleArgs,
        /// Write an rnews batch; packed if its name ends in .zst
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// Print the groups instead: names or active
        #[arg(long, value_name = "FORM", value_parser = word::<ListForm>)]
        list_groups: Option<ListForm>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Feed the articles to a server
    #[command(after_help = feed_help())]
    Feed(FeedOptions),
    /// Read from a server that has the articles
    #[command(after_help = read_help())]
    Read(ReadOptions),
    /// Hold idle connections and see what they cost
    #[command(
        after_help = "Example:\n  newsreel bench idle --connections 5000 --duration 10 --pid \"$(pidof newsreel)\""
    )]
    Idle {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Run a server that does nothing, to know what the client and the machine can do
    #[command(after_help = "Example:\n  newsreel bench null --listen 127.0.0.1:1120 --threads 2")]
    Null {
        /// Where it listens
        #[arg(long, default_value = "127.0.0.1:1120", value_name = "ADDRESS", value_parser = crate::typed::address)]
        listen: SocketAddr,
        /// Threads
        #[arg(long, default_value_t = 1, value_parser = count(1, options::THREADS_MAX))]
        threads: usize,
        /// The size of every article that it gives out
        #[arg(long, default_value_t = 2650, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(256..=1 << 20))]
        article_octets: u32,
        /// Groups that it lists
        #[arg(long, default_value_t = 3000, value_parser = count(1, options::GROUPS_MAX))]
        groups: usize,
        /// Articles of each
        #[arg(long, default_value_t = 20)]
        articles: u64,
    },
    /// Feed alone, beside paced readers, and alone again
    #[command(
        after_help = "Example:\n  newsreel bench beside --articles 100000 --connections 4 --readers 500"
    )]
    Beside(compare::BesideOptions),
    /// Compare servers in rounds: this program first, against the others
    #[command(
        after_help = "Example:\n  newsreel bench compare --directory /tmp/compare --null --inn ./inn2.sh"
    )]
    Compare(compare::CompareOptions),
    /// Measure what is asked of the protocol: posts, TLS, compression, and a reader beside attackers
    #[command(
        after_help = "Attackers and reader share this machine with the server: attackers get what the others leave of its processors, and the reader \
                      comes first (chrt, as root).\n\n\
                      Example:\n  newsreel bench protocol --directory /tmp/protocol --report protocol.md"
    )]
    Protocol(protocol::Options),
    /// Measure what a reader waits for at a caching server: tables 1 and 2 of the paper on NewsCache
    #[command(after_help = cache::HELP)]
    Cache(cache::Options),
    /// Measure what each storage method makes of the same articles: figures 8 and 9 of the paper on cyclic buffers
    #[command(
        after_help = "Makes file systems in image files below the directory and mounts them, one for each server and method: root is \
                      needed, and mke2fs. Where `perf` is installed it counts path look-ups and inodes. What is interrupted leaves its mount \
                      below the directory: take it off (umount DIR/*), and start in another.\n\n\
                      With --goals the rest follows, on ext4: buffers that have been around, large articles, a million that expire, removal, \
                      cancels, the calls for reads (counted by `strace`) and 20 buffers of a terabyte. That takes some 12 GB of the disk, and \
                      half an hour in all.\n\n\
                      Examples:\n  newsreel bench storage --directory /tmp/storage --inn ./inn2.sh --report /tmp/report\n  \
                      newsreel bench storage --directory /tmp/storage --goals --inn ./inn2.sh --fastrm /usr/lib/news/bin/fastrm --report /tmp/report"
    )]
    Storage(storage::Options),
    /// Measure how long the oldest articles of large groups take to go, where articles are files
    #[command(
        after_help = "Makes file systems in image files below the directory and mounts them: root is needed, and mke2fs. Nothing is in memory \
                      when the removal begins: the caches of the whole machine are emptied.\n\n\
                      Example:\n  newsreel bench removal --directory /tmp/removal --fastrm /usr/lib/news/bin/fastrm"
    )]
    Removal(removal::Options),
    /// Measure what it costs that very many articles expire by a rule, where many are in a file
    #[command(
        after_help = "Makes two file systems in image files below the directory and mounts them: root is needed, and mke2fs. One has the \
                      articles, the other log and views, so that their devices tell what is touched. An article needs some 9 KB of the disk.\n\n\
                      Examples:\n  newsreel bench expiry --directory /tmp/expiry --report expiry.md\n  \
                      newsreel bench expiry --directory /tmp/expiry --articles 10000 --json"
    )]
    Expiry(expiry::Options),
    /// Measure what it costs to send articles on: to few neighbours and to many, to a server like ours and to INN, out of memory and from disk
    #[command(after_help = sending::HELP)]
    Sending(sending::Options),
    /// Measure the three phases of the paper on the toaster: batches taken, batches sent, articles expired, pass after pass
    #[command(after_help = toaster::HELP)]
    Toaster(toaster::Options),
    /// Measure large directories, flat and managed
    #[command(subcommand)]
    Usenetfs(usenetfs::Verb),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeedOptions {
    /// What the connections say
    #[arg(long, default_value = "takethis", value_parser = feed_modes())]
    mode: String,
    /// Articles or offers under way on a connection; 0: no limit
    #[arg(long, default_value_t = 100)]
    window: usize,
    /// Every connection offers every article, as several peers do
    #[arg(long)]
    overlap: bool,
    /// Begin again after the last article, until --duration is over
    #[arg(long)]
    repeat: bool,
    /// Fail unless every article was taken
    #[arg(long, conflicts_with_all = ["repeat", "duration"])]
    expect_all: bool,
    #[command(flatten)]
    articles: ArticleArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReadOptions {
    /// What the connections say
    #[arg(long, default_value = "article", value_parser = read_modes())]
    mode: String,
    /// How articles are named: id, number or unknown-id
    #[arg(long, default_value = "id", value_parser = word::<By>)]
    by: By,
    /// In which order: random or sequential
    #[arg(long, default_value = "random", value_parser = word::<Order>)]
    order: Order,
    /// Which groups: even or busy [default: the mode's own]
    #[arg(long, value_parser = word::<Choice>)]
    choose: Option<Choice>,
    /// Commands under way on a connection
    #[arg(long, default_value_t = 1, value_parser = count(1, DEPTH_MAX))]
    depth: usize,
    /// What is compared: replies, or contents octet for octet (Date only with --base-time, the feed's)
    #[arg(long, default_value = "replies", value_parser = word::<Verify>)]
    verify: Verify,
    /// Stop after so many operations
    #[arg(long, value_parser = count(1, u64::MAX))]
    operations: Option<u64>,
    /// Fail if any article is not there
    #[arg(long)]
    expect_all: bool,
    #[command(flatten)]
    articles: ArticleArgs,
    #[command(flatten)]
    server: ServerArgs,
}

fn feed_modes() -> PossibleValuesParser {
    PossibleValuesParser::new(passes::FEED.iter().map(|pass| pass.name))
}

fn read_modes() -> PossibleValuesParser {
    PossibleValuesParser::new(passes::READ.iter().map(|pass| pass.name))
}

fn feed_help() -> String {
    let modes = modes_help(passes::FEED.iter().map(|pass| (pass.name, pass.help)));
    format!(
        "{modes}\n\nThe server must have the groups:\n  newsreel bench corpus --list-groups names >groups\n  \
         newsreel group import groups\n\nExamples:\n  newsreel bench feed --articles 100000 --connections 4 --pid \"$(pidof newsreel)\"\n  \
         newsreel bench feed --from feed.rnews.zst --mode check --json"
    )
}

fn read_help() -> String {
    let modes = modes_help(passes::READ.iter().map(|pass| (pass.name, pass.help)));
    format!(
        "{modes}\n\nExamples:\n  newsreel bench read --mode article --articles 20000 --connections 4 --duration 5\n  \
         newsreel bench read --mode over --depth 8 --duration 5 --json"
    )
}

fn modes_help(modes: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let lines: Vec<String> = modes
        .map(|(name, help)| format!("  {name:12} {help}"))
        .collect();
    format!("Modes:\n{}", lines.join("\n"))
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    match verb {
        Verb::Corpus {
            articles,
            write,
            list_groups,
            json,
        } => {
            let corpus = articles.corpus(machine)?;
            describe(&corpus, write.as_ref(), *list_groups, *json)
        }
        Verb::Feed(options) => run_feed(options, machine),
        Verb::Read(options) => run_read(options, machine),
        Verb::Idle { server } => hold(server, machine),
        Verb::Null {
            listen,
            threads,
            article_octets,
            groups,
            articles,
        } => {
            let args = NullArgs {
                listen: *listen,
                threads: *threads,
                article_octets: *article_octets,
                groups: *groups,
                articles: *articles,
            };
            Ok(NullServer::bind(&args)?.serve(&AtomicBool::new(false))?)
        }
        Verb::Beside(options) => compare::beside(options, machine),
        Verb::Compare(options) => compare::run(options, machine),
        Verb::Protocol(options) => protocol::run(options, machine),
        Verb::Cache(options) => cache::run(options, machine),
        Verb::Storage(options) => storage::run(options, machine),
        Verb::Removal(options) => removal::run(options, machine),
        Verb::Sending(options) => sending::run(options, machine),
        Verb::Expiry(options) => expiry::run(options, machine),
        Verb::Toaster(options) => toaster::run(options, machine),
        Verb::Usenetfs(verb) => usenetfs::run(verb, machine),
    }
}

fn run_feed(options: &FeedOptions, machine: Machine<'_>) -> Result<()> {
    let args = FeedArgs {
        mode: options.mode.clone(),
        window: options.window,
        overlap: options.overlap,
        repeat: options.repeat,
        ..FeedArgs::new(options.server.load())
    };
    let corpus = options.articles.corpus(machine)?;
    let report = feed::run(&args, &corpus, machine)?;
    print(&report, options.server.json)?;
    let sends = passes::feed(&options.mode).is_some_and(|pass| pass.sends);
    let (taken, offered) = (report.accepted, corpus.len());
    if sends && taken == 0 && !report.reasons.is_empty() {
        bail!("none of the articles was taken{}", why(&report));
    }
    if options.expect_all && taken != offered {
        bail!("{taken} of {offered} articles were taken{}", why(&report));
    }
    Ok(())
}

/// Why articles were not taken, as the server says it, and what helps against what it says most.
fn why(report: &Report) -> String {
    let mut said: Vec<String> = report.reasons.iter().map(ToString::to_string).collect();
    if said.is_empty() {
        return String::new();
    }
    said.truncate(REASONS_SHOWN_MAX);
    let mut text = format!("; the server said: {}", said.join("; "));
    let most = report.reasons.first();
    if most.is_some_and(|reason| reason.text.to_lowercase().contains("group")) {
        text.push_str(
            "\nthe groups of the articles are made by `newsreel bench corpus --list-groups names >groups` with the \
             same options and `newsreel group import groups`",
        );
    }
    text
}

fn run_read(options: &ReadOptions, machine: Machine<'_>) -> Result<()> {
    let args = ReadArgs {
        mode: options.mode.clone(),
        by: options.by,
        order: options.order,
        groups: options.choose,
        depth: options.depth,
        verify: options.verify,
        operations: options.operations,
        ..ReadArgs::new(options.server.load())
    };
    let report = read::run(&args, &options.articles.corpus(machine)?, machine)?;
    print(&report, options.server.json)?;
    if options.expect_all && (report.missing > 0 || report.operations == 0) {
        let (missing, asked) = (report.missing, report.operations);
        bail!("{missing} of {asked} articles that were asked for are not there");
    }
    Ok(())
}

/// Prints a report, as JSON or for people.
fn show(report: &impl Serialize, human: &str, json: bool) -> Result<()> {
    if json {
        output::json(&serde_json::to_value(report)?)
    } else {
        output::text(human)
    }
}

/// Prints what a pass found; a wrong answer is a failure.
fn print(report: &Report, json: bool) -> Result<()> {
    show(report, &report.human(), json)?;
    if !report.is_sound() {
        bail!(
            "{} replies damaged, {} connections lost{}",
            report.damaged,
            report.lost_connections,
            why(report)
        );
    }
    Ok(())
}

fn hold(server: &ServerArgs, machine: Machine<'_>) -> Result<()> {
    let args = IdleArgs {
        server: server.server,
        connections: server.connections,
        duration_secs: server.duration.unwrap_or(10.0),
        server_pid: server.pid,
        progress: true,
    };
    let report = idle::run(&args, machine)?;
    show(&report, &report.human(), server.json)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a batch is written where the user says, not into a spool"
)]
fn describe(
    corpus: &Corpus,
    write: Option<&PathBuf>,
    list_groups: Option<ListForm>,
    json: bool,
) -> Result<()> {
    if let Some(form) = list_groups {
        let names = corpus.groups().iter().map(String::as_str);
        return output::text(&corpus::list(names, form));
    }
    if let Some(path) = write {
        let file = std::fs::File::create(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut to = std::io::BufWriter::new(file);
        if path.extension().is_some_and(|ending| ending == "zst") {
            batch::write_packed_batch(corpus, &mut to)?;
        } else {
            batch::write_batch(corpus, &mut to)?;
        }
        to.flush()
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let facts = batch::facts(corpus);
    show(&facts, &facts.human(), json)
}
