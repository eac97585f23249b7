//! `newsreel config check|show|explain`: the configuration, without starting anything.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use newsreel_host::RealDisk;
use serde_json::{Value, json};

use crate::config::{self, Config, Problem};
use crate::output;
use crate::server::certificate;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Say everything that is wrong with a file
    #[command(
        after_help = "Ends with 0 when the file is good, with 1 when it is not; nothing is started or changed. Certificates of [tls] \
                      are read, as no server starts without them; programs and other files that are not there are warnings.\n\n\
                      Example:\n  newsreel config check /etc/newsreel.toml"
    )]
    Check {
        /// The configuration file, or a pipe; - is the standard input [default: as of --config]
        file: Option<PathBuf>,
        #[arg(long, value_name = "FILE", conflicts_with = "file", help = config::HELP)]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the values of a configuration file, and the defaults of what it leaves out
    #[command(
        after_help = "Nothing is asked of a running server: it may have been started with another file, or with \
                      options. The spool's last-config.toml has what a server last ran with.\n\nExamples:\n  newsreel config show\n  newsreel config show --config /etc/newsreel.toml --json"
    )]
    Show {
        #[arg(long, value_name = "FILE", help = config::HELP)]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a key or section is, its default, unit and limits
    #[command(after_help = "Example:\n  newsreel config explain listen.connections_max")]
    Explain {
        /// Section and key, or a section
        key: String,
        #[arg(long, value_name = "FILE", help = config::HELP)]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the reference page of all keys, in Markdown
    #[command(after_help = "Example:\n  newsreel config reference > config.md")]
    Reference,
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Check { file, config, json } => {
            let named = file.as_deref().or(config.as_deref());
            let Some(file) = config::meant(named, None) else {
                bail!(
                    "there is no configuration file to check: name one, as in `newsreel config check newsreel.toml`"
                );
            };
            check(&file, *json)
        }
        Verb::Show { config, json } => {
            let config = config::load(config.as_deref(), None)?;
            if *json {
                output::json(&serde_json::to_value(config.values()?)?)
            } else {
                output::text(&config::shown(&config)?)
            }
        }
        Verb::Explain { key, config, json } => {
            let (text, value) = config::explain(key, &config::load(config.as_deref(), None)?)?;
            if *json {
                output::json(&value)
            } else {
                output::text(&text)
            }
        }
        Verb::Reference => output::text(&config::reference()?),
    }
}

/// Says all that is wrong with a file, and with the files and programs that it names.
fn check(file: &Path, json: bool) -> Result<()> {
    let looked = config::look(file);
    let (config, mut problems) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            if json {
                let what =
                    json!({"line": 0, "column": 0, "what": output::chain(&error), "right": ""});
                output::json(&json!({"file": file, "problems": [what], "warnings": []}))?;
            }
            return Err(error);
        }
    };
    let is_broken = !problems.list.is_empty();
    problems.list.extend(tls(&config));
    problems.list.sort();
    let warnings = config::warnings(&config, &problems.file, is_broken);
    if json {
        let list = problems.list.iter();
        let list = list
            .map(|p| json!({"line": p.line, "column": p.column, "what": p.what, "right": p.right}));
        let list: Vec<Value> = list.collect();
        output::json(&json!({"file": file, "problems": list, "warnings": warnings}))?;
    } else {
        warnings.iter().for_each(|line| output::warning(line));
    }
    problems.none_or(())?;
    match json {
        true => Ok(()),
        false => output::text(&format!("{}: good\n", file.display())),
    }
}

/// Why TLS cannot be spoken: no server starts then.  Where a key of it is missing that is told already.
fn tls(config: &Config) -> Option<Problem> {
    let tls = &config.tls;
    if tls.key.as_os_str().is_empty() {
        return None;
    }
    let error = certificate(&RealDisk, config).err()?;
    let what = output::chain(&error);
    let more = tls.more.iter().enumerate();
    let more = more.map(|(at, path)| (format!("tls.more[{at}]"), path));
    let mut named = [
        ("tls.certificate".to_owned(), &tls.certificate),
        ("tls.key".to_owned(), &tls.key),
        ("tls.clients".to_owned(), &tls.clients),
    ]
    .into_iter()
    .chain(more);
    // The first that it names is to blame.
    let key = named
        .find(|(_, path)| !path.as_os_str().is_empty() && what.contains(&*path.to_string_lossy()));
    let key = key.map_or_else(|| "tls".to_owned(), |(key, _)| key);
    let (line, column) = config.places.of(&key);
    Some(Problem {
        line,
        column,
        what,
        right: String::new(),
    })
}
