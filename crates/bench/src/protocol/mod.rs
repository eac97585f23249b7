//! What is asked of the protocol in speed: posts, readers in TLS, compressed overviews, and a reader beside attackers.
//!
//! Invariant: what is compared is measured in turn on the same server, in rounds with fresh ones, and only figures of the same
//! round make a ratio.  Attackers have what the server and the reader leave of the processors, and the reader comes first:
//! elsewhere they have their own, and what one of them waits for this machine says nothing of the server.  What is left of that is
//! told by a control: the same attackers at another server.

mod measure;
mod page;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use newsreel_host::replace_file;
use serde::Serialize;

use self::measure::{Place, last};
use crate::attack::{ATTACKS, Attack, Target};
use crate::compare::Spread;
use crate::corpus::{self, Corpus, CorpusArgs, ListForm};
use crate::error::Error;
use crate::load::Machine;
use crate::report::Report;
use crate::rivals::{CommandRival, NO_FIGURES, Rival as _};

/// The other server is at the same ports of this address, from which no attacker comes.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// It takes no article, so little room will do.
const SMALL: &str = "[[buffer]]\nname = \"SMALL\"\noctets = \"64MiB\"\nsparse = true\n";

/// What to measure, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolArgs {
    /// This program, which is the server.
    pub program: PathBuf,
    /// An empty or new directory for the server's files.
    pub directory: PathBuf,
    /// Rounds, each with a fresh server.
    pub rounds: usize,
    /// Articles that are there to be read, and as many that are posted.
    pub articles: u64,
    /// How long each reading takes.
    pub seconds: f64,
    /// The rows by name; none for all.
    pub rows: Vec<String>,
    /// The articles: seed, groups, size.
    pub corpus: CorpusArgs,
    /// The server listens on this port of 127.0.0.1, and takes TLS on the next; another one, for attackers, on those of 127.0.1.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// So much or more.
    AtLeast(f64),
    /// Less than this.
    Below(f64),
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its name, for choosing it.
    pub name: &'static str,
    /// What is measured.
    pub what: String,
    /// What `found` is.
    pub unit: &'static str,
    /// What was asked.
    pub asked: Asked,
    /// What was found in each round.
    pub values: Vec<f64>,
    /// The same, together.
    pub found: Option<Spread>,
    /// Whether the median is what was asked for.
    pub is_met: bool,
    /// What a ratio of waiting times is of, in microseconds, in each round.
    pub waited_us: Vec<[f64; 2]>,
    /// The control, in each round: the same figure where the attackers are at another server, which like them has only what
    /// nobody else wants of the processors.  So much of it is this machine's.
    pub elsewhere: Vec<f64>,
    /// What it was computed from, round by round.
    pub rounds: Vec<Vec<Report>>,
}

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct ProtocolReport {
    /// One row a figure.
    pub rows: Vec<Row>,
}

/// What is measured for a row in one round.
#[derive(Debug, Default)]
struct Found {
    /// The figure.
    value: f64,
    /// What a ratio of waiting times is of, in microseconds.
    waited_us: Option<[f64; 2]>,
    /// The same figure with the attackers at another server.
    elsewhere: Option<f64>,
    /// What it was computed from.
    reports: Vec<Report>,
}

type Measured = Result<Found, Error>;

/// What is done for a row.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Posts,
    InTls,
    Compressed,
    Beside(&'static [Attack]),
    Coming(&'static [Attack]),
}

struct Kind {
    name: &'static str,
    what: String,
    unit: &'static str,
    asked: Asked,
    measure: Measure,
}

/// Every row, in order.
fn kinds() -> Vec<Kind> {
    let least = |name, what: &str, unit, asked, measure| Kind {
        name,
        what: what.to_owned(),
        unit,
        asked: Asked::AtLeast(asked),
        measure,
    };
    let beside = |name, who: &str, whom: &str, measure| Kind {
        name,
        what: format!("{who} beside {whom}"),
        unit: "times the 99th percentile alone",
        asked: Asked::Below(2.0),
        measure,
    };
    let reads = |name, whom, attacks| beside(name, "a reader", whom, Measure::Beside(attacks));
    let comes = |name, whom, attacks| beside(name, "who comes", whom, Measure::Coming(attacks));
    let mut kinds = vec![
        least(
            "post",
            "POST, durable, 16 connections",
            "articles/s",
            2_000.0,
            Measure::Posts,
        ),
        least(
            "tls",
            "ARTICLE in TLS, 16 connections",
            "of the rate of plain ones",
            0.5,
            Measure::InTls,
        ),
        least(
            "compress",
            "OVER of busy groups, compressed, 4 connections",
            "MB of plain text in a second of one processor",
            100.0,
            Measure::Compressed,
        ),
    ];
    let each = ATTACKS.iter();
    kinds.extend(each.map(|it| reads(it.name, it.help, std::slice::from_ref(it))));
    kinds.push(reads("all", "all of them at once", ATTACKS));
    kinds.push(comes("coming", "all of them at once", ATTACKS));
    kinds
}

/// The names of the rows.
pub fn row_names() -> Vec<&'static str> {
    kinds().iter().map(|kind| kind.name).collect()
}

/// Measures every row in every round.
pub fn run(args: &ProtocolArgs, machine: Machine<'_>) -> Result<ProtocolReport, Error> {
    let mut kinds = kinds();
    let is_chosen = |kind: &Kind| args.rows.iter().any(|name| name == kind.name);
    kinds.retain(|kind| args.rows.is_empty() || is_chosen(kind));
    let mut rows: Vec<Row> = kinds.iter().map(Row::of).collect();
    for round in 0..args.rounds {
        let place = args.directory.join(format!("round-{round}"));
        machine.disk.create_dir_all(&place)?;
        let done = run_round(args, machine, (&place, round), &kinds, &mut rows);
        // The server's files are of no use any more; what cannot be removed stays for a look.
        #[expect(
            clippy::disallowed_methods,
            reason = "the files of the server that is measured are no spool of ours"
        )]
        let _ = std::fs::remove_dir_all(&place);
        done?;
    }
    Ok(ProtocolReport { rows })
}

fn run_round(
    args: &ProtocolArgs,
    machine: Machine<'_>,
    (place, round): (&Path, usize),
    kinds: &[Kind],
    rows: &mut [Row],
) -> Result<(), Error> {
    let corpus_args = CorpusArgs {
        seed: args.corpus.seed + round as u64,
        articles: Some(args.articles * 2),
        base_time_secs: Some(machine.clock.now().secs),
        ..args.corpus.clone()
    };
    let corpus = Corpus::new(&corpus_args, machine.disk, machine.clock)?;
    let middle = corpus.first() + args.articles;
    let target = Target::at(Ipv4Addr::LOCALHOST, args.port);
    let groups = place.join("groups");
    let list = corpus::list(corpus.groups().iter().map(String::as_str), ListForm::Names);
    replace_file(machine.disk, &groups, list.as_bytes())?;
    let mut server = configured(args, place, &target, "", machine)?;
    let running = server.start(place, target.server, &groups)?;
    let (mut other_server, other) = start_other(args, &place.join("elsewhere"), machine)?;
    let place = Place {
        machine,
        target,
        other,
        pid: running.pid,
        seconds: args.seconds,
        progress: args.progress,
        swaps: round % 2 == 1,
        there: corpus.part(corpus.first(), middle),
        fresh: corpus.part(middle, middle + args.articles),
    };
    place.fill()?;
    for (kind, row) in kinds.iter().zip(rows) {
        row.add(place.measure(kind.measure)?);
    }
    other_server.stop()?;
    server.stop()
}

/// Starts the other server, which has no groups.
fn start_other(
    args: &ProtocolArgs,
    place: &Path,
    machine: Machine<'_>,
) -> Result<(CommandRival, Target), Error> {
    machine.disk.create_dir_all(place)?;
    let target = Target::at(OTHER, args.port);
    let mut other = configured(args, place, &target, SMALL, machine)?.unprepared();
    last(|| other.start(place, target.server, place))?;
    Ok((other, target))
}

/// A server that listens there, with more in its configuration.
fn configured(
    args: &ProtocolArgs,
    place: &Path,
    target: &Target,
    more: &str,
    machine: Machine<'_>,
) -> Result<CommandRival, Error> {
    let config = place.join("protocol.toml");
    configure(&config, target, more, machine)?;
    let server = CommandRival::newsreel(&args.program.display().to_string());
    let words = ["--config", &config.display().to_string()];
    Ok(server.listening_as_configured().with_words(&words))
}

/// A certificate of its own, and this machine's addresses are limited as those of others are by default.
fn configure(path: &Path, target: &Target, more: &str, machine: Machine<'_>) -> Result<(), Error> {
    let made = rcgen::generate_simple_self_signed([target.secure.ip().to_string()]);
    let made = made.map_err(|error| Error::Program {
        program: "making a certificate".to_owned(),
        why: error.to_string(),
    })?;
    let config = format!(
        "{NO_FIGURES}[listen]\naddresses = [\"{}\"]\ntls_addresses = [\"{}\"]\nloopback_unlimited = false\n\n\
         [tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n{more}",
        target.server, target.secure
    );
    let key = made.signing_key.serialize_pem();
    for (name, text) in [
        (path.to_path_buf(), config),
        (path.with_file_name("cert.pem"), made.cert.pem()),
        (path.with_file_name("key.pem"), key),
    ] {
        replace_file(machine.disk, &name, text.as_bytes())?;
    }
    Ok(())
}

impl Row {
    fn of(kind: &Kind) -> Self {
        Self {
            name: kind.name,
            what: kind.what.clone(),
            unit: kind.unit,
            asked: kind.asked,
            values: Vec::new(),
            found: None,
            is_met: false,
            waited_us: Vec::new(),
            elsewhere: Vec::new(),
            rounds: Vec::new(),
        }
    }

    /// One more round.
    fn add(&mut self, found: Found) {
        self.values.push(found.value);
        self.waited_us.extend(found.waited_us);
        self.elsewhere.extend(found.elsewhere);
        self.rounds.push(found.reports);
        self.found = Spread::of(self.values.clone());
        self.is_met = self.found.is_some_and(|found| match self.asked {
            Asked::AtLeast(least) => found.median >= least,
            Asked::Below(bound) => found.median < bound,
        });
    }
}
