//! A thin command line for the load generator, to be used until the application has its own.
//!
//! `drive feed ADDR --mode takethis --connections 4`, `drive read ADDR --mode over`, `drive null
//! ADDR`, `drive idle ADDR`, `drive corpus`: every option is `--name value`, flags take no value.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use newsreel_bench::beside::{self, BesideArgs};
use newsreel_bench::compare::{self, CompareArgs};
use newsreel_bench::corpus::{self, Corpus, CorpusArgs, Size};
use newsreel_bench::feed::{self, FeedArgs};
use newsreel_bench::idle::{self, IdleArgs};
use newsreel_bench::load::{LoadArgs, Machine};
use newsreel_bench::null::{NullArgs, NullServer};
use newsreel_bench::read::{self, By, Choice, Order, ReadArgs, Verify};
use newsreel_bench::rivals::{CommandRival, Rival, ScriptRival};
use newsreel_host::{RealClock, RealDisk};

type Failure = Box<dyn std::error::Error>;
const FLAGS: [&str; 5] = ["quick-ack", "overlap", "repeat", "json", "progress"];

struct Options(HashMap<String, String>);

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<(Vec<String>, Self), Failure> {
        let (mut plain, mut options) = (Vec::new(), HashMap::new());
        let mut words = words;
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                None => plain.push(word),
                Some(flag) if FLAGS.contains(&flag) => {
                    options.insert(flag.to_owned(), String::new());
                }
                Some(name) => {
                    let value = words.next().ok_or(format!("--{name} needs a value"))?;
                    options.insert(name.to_owned(), value);
                }
            }
        }
        Ok((plain, Self(options)))
    }

    fn flag(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn get<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let parsed = self.0.get(name).map(|value| value.parse::<T>());
        parsed
            .transpose()
            .map_err(|_| format!("--{name} has a value that does not fit").into())
    }

    fn choice<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let word = self
            .0
            .get(name)
            .map(|value| serde_json::from_value(value.clone().into()));
        Ok(word.transpose()?)
    }
}

fn corpus_args(options: &Options) -> Result<CorpusArgs, Failure> {
    let usual = CorpusArgs::default();
    Ok(CorpusArgs {
        from: options
            .0
            .get("from")
            .map(|paths| paths.split(',').map(Into::into).collect())
            .unwrap_or_default(),
        seed: options.get("seed")?.unwrap_or(usual.seed),
        groups: options.get("groups")?.unwrap_or(usual.groups),
        size: options.get("size")?.map_or(usual.size, Size::Fixed),
        first: options.get("first")?.unwrap_or(0),
        articles: options.get("articles")?,
        ..usual
    })
}

fn load_args(server: SocketAddr, options: &Options) -> Result<LoadArgs, Failure> {
    Ok(LoadArgs {
        connections: options.get("connections")?.unwrap_or(1),
        threads: options.get("threads")?.unwrap_or(1),
        rate: options.get("rate")?,
        duration_secs: options.get("duration")?,
        quick_ack: options.flag("quick-ack"),
        server_pid: options.get("pid")?,
        timeline_secs: options.get("timeline")?,
        progress: options.flag("progress"),
        ..LoadArgs::new(server)
    })
}

fn compare_args(options: &Options) -> Result<CompareArgs, Failure> {
    let directory = options.get::<String>("dir")?.ok_or("compare needs --dir")?;
    let usual = CompareArgs::new(directory.into());
    let steps = options
        .0
        .get("steps")
        .map(|names| names.split(',').map(Into::into).collect());
    Ok(CompareArgs {
        rounds: options.get("rounds")?.unwrap_or(usual.rounds),
        articles: options.get("articles")?.unwrap_or(usual.articles),
        seconds: options.get("seconds")?.unwrap_or(usual.seconds),
        steps: steps.unwrap_or_default(),
        corpus: CorpusArgs {
            articles: None,
            ..corpus_args(options)?
        },
        port: options.get("port")?.unwrap_or(usual.port),
        progress: options.flag("progress"),
        ..usual
    })
}

/// `--ours PROGRAM`, `--null PROGRAM` (this one), `--inn SCRIPT`, in that order.
fn rivals(options: &Options) -> Result<Vec<Box<dyn Rival>>, Failure> {
    let mut rivals: Vec<Box<dyn Rival>> = Vec::new();
    if let Some(program) = options.get::<String>("ours")? {
        rivals.push(Box::new(CommandRival::newsreel(&program)));
    }
    if let Some(program) = options.get::<String>("null")? {
        let serve = [program.as_str(), "null", "{address}"];
        rivals.push(Box::new(CommandRival::new("null", &serve, None)));
    }
    if let Some(script) = options.get::<String>("inn")? {
        let history = options.get("history")?.unwrap_or(1_000_000);
        rivals.push(Box::new(ScriptRival::inn(script.into(), history, 2048)));
    }
    Ok(rivals)
}

fn main() -> Result<(), Failure> {
    let (plain, options) = Options::parse(std::env::args().skip(1))?;
    let verb = plain.first().map(String::as_str).unwrap_or_default();
    let server: SocketAddr = match plain.get(1) {
        Some(address) => address.parse()?,
        None => "127.0.0.1:1119".parse()?,
    };
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    let articles = || Ok::<_, Failure>(Corpus::new(&corpus_args(&options)?, machine.disk, &clock)?);
    let load = load_args(server, &options)?;
    let mut out = std::io::stdout();
    let report = match verb {
        "feed" => feed::run(
            &FeedArgs {
                mode: options
                    .get("mode")?
                    .unwrap_or_else(|| "takethis".to_owned()),
                window: options.get("window")?.unwrap_or(100),
                overlap: options.flag("overlap"),
                repeat: options.flag("repeat"),
                ..FeedArgs::new(load)
            },
            &articles()?,
            machine,
        )?,
        "read" => {
            let usual = ReadArgs::new(load);
            let args = ReadArgs {
                mode: options.get("mode")?.unwrap_or_else(|| "article".to_owned()),
                by: options.choice::<By>("by")?.unwrap_or_default(),
                order: options.choice::<Order>("order")?.unwrap_or_default(),
                groups: options.choice::<Choice>("choose")?,
                depth: options.get("depth")?.unwrap_or(1),
                verify: options.choice::<Verify>("verify")?.unwrap_or_default(),
                operations: options.get("operations")?,
                ..usual
            };
            read::run(&args, &articles()?, machine)?
        }
        "idle" => {
            let report = idle::run(
                &IdleArgs {
                    server,
                    connections: load.connections,
                    duration_secs: load.duration_secs.unwrap_or(1.0),
                    server_pid: load.server_pid,
                    progress: load.progress,
                },
                machine,
            )?;
            return Ok(out.write_all(report.human().as_bytes())?);
        }
        "beside" => {
            let read = LoadArgs {
                connections: options.get("readers")?.unwrap_or(500),
                rate: Some(options.get("read-rate")?.unwrap_or(500.0)),
                duration_secs: Some(3600.0),
                ..load.clone()
            };
            let args = BesideArgs {
                feed: FeedArgs::new(load),
                read: ReadArgs::new(read),
            };
            let report = beside::run(&args, &articles()?, machine)?;
            return Ok(out.write_all(report.human().as_bytes())?);
        }
        "null" => {
            let args = NullArgs {
                threads: load.threads,
                ..NullArgs::new(server)
            };
            NullServer::bind(&args)?.serve(&AtomicBool::new(false))?;
            return Ok(());
        }
        "groups" => {
            let corpus = articles()?;
            let names = corpus.groups().iter().map(String::as_str);
            let form = options.choice("form")?.unwrap_or_default();
            return Ok(out.write_all(corpus::list(names, form).as_bytes())?);
        }
        "corpus" => {
            let facts = corpus::batch::facts(&articles()?);
            return Ok(out.write_all(facts.human().as_bytes())?);
        }
        "compare" => {
            let comparison =
                compare::run(&compare_args(&options)?, &mut rivals(&options)?, machine)?;
            let text = if options.flag("json") {
                serde_json::to_string_pretty(&comparison)? + "\n"
            } else {
                comparison.human()
            };
            return Ok(out.write_all(text.as_bytes())?);
        }
        _ => return Err("one of feed, read, idle, null, groups, corpus, compare, beside".into()),
    };
    let text = if options.flag("json") {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        report.human()
    };
    Ok(out.write_all(text.as_bytes())?)
}
