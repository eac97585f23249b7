//! `newsreel config check|show|explain`: the configuration, without starting anything.

use std::path::PathBuf;

use anyhow::Result;
use newsreel_host::RealDisk;
use serde_json::json;

use crate::config::{self, Problems};
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
        /// The configuration file, or a pipe; - is the standard input
        file: PathBuf,
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
        /// The configuration file
        #[arg(long, value_name = "FILE")]
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
        /// The configuration file
        #[arg(long, value_name = "FILE")]
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
        Verb::Check { file, json } => {
            let checked = config::load(Some(file)).and_then(|config| {
                // Without it no server starts.
                certificate(&RealDisk, &config)?;
                Ok(config)
            });
            let missing = checked
                .as_ref()
                .map_or_else(|_| Vec::new(), config::missing);
            if *json {
                output::json(&found(file, &checked, &missing))?;
            }
            checked?;
            if *json {
                return Ok(());
            }
            missing.iter().for_each(|line| output::warning(line));
            output::text(&format!("{}: good\n", file.display()))
        }
        Verb::Show { config, json } => {
            let config = config::load(config.as_deref())?;
            if *json {
                output::json(&serde_json::to_value(config.values()?)?)
            } else {
                output::text(&config::shown(&config)?)
            }
        }
        Verb::Explain { key, config, json } => {
            let (text, value) = config::explain(key, &config::load(config.as_deref())?)?;
            if *json {
                output::json(&value)
            } else {
                output::text(&text)
            }
        }
        Verb::Reference => output::text(&config::reference()?),
    }
}

/// What a check found, for programs.
fn found(
    file: &std::path::Path,
    checked: &Result<config::Config>,
    missing: &[String],
) -> serde_json::Value {
    let problems: Vec<_> = match checked {
        Ok(_) => Vec::new(),
        Err(error) => match error.downcast_ref::<Problems>() {
            Some(problems) => problems
                .list
                .iter()
                .map(|p| json!({"line": p.line, "column": p.column, "what": p.what, "right": p.right}))
                .collect(),
            None => vec![json!({"line": 0, "column": 0, "what": output::chain(error), "right": ""})],
        },
    };
    json!({"file": file, "problems": problems, "warnings": missing})
}
