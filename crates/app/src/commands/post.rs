//! `newsreel post`: articles from files, posted to the server that runs here or to another.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use serde_json::json;

use crate::posting::{NotLet, Tls, TlsArgs};
use crate::{config, input, output, posting};

/// A file with a password is no larger, octets.
const PASSWORD_FILE_OCTETS_MAX: usize = 4096;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  newsreel post article.txt\n  newsreel post - < article.txt\n  \
                  newsreel post --server 192.0.2.1:119 one.txt two.txt\n  \
                  newsreel post approved.txt --server news.example.org --tls starttls --user ada --password-file password.txt\n\n\
                  A file has header fields, an empty line and the text, with LF or CRLF line ends. Message-ID, Date and \
                  Path are added where they are missing. Of several files each is tried; the exit code is 1 if one was not posted."
)]
pub(crate) struct Args {
    /// Files with one article each; `-`: the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The server to post to [default: the one that runs on the spool]
    #[arg(long, value_name = "HOST[:PORT]")]
    server: Option<String>,
    /// Log in as this user; elsewhere than on this machine over TLS only
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsArgs,
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = config::HELP_WITH_SPOOL)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The password that a file has in its first line.
fn password_of(file: &Path) -> Result<String> {
    let shown = file.display();
    let text = String::from_utf8(input::read(file, PASSWORD_FILE_OCTETS_MAX)?.octets);
    let text = text.with_context(|| format!("the password in {shown} is not UTF-8"))?;
    match text.lines().next().unwrap_or_default() {
        "" => bail!("there is no password in the first line of {shown}"),
        password => Ok(password.to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let server = match &args.server {
        Some(name) => posting::find(name, None, args.tls.tls)?,
        None => posting::server_of(&spool(args.spool.as_deref(), args.config.as_deref())?)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let somebody = match (&args.user, &args.password_file) {
        (Some(user), Some(file)) => Some((user.clone(), password_of(file)?)),
        _ => None,
    };
    let is_plain = somebody.is_none() && args.tls.tls == Tls::None;
    let somebody = match is_plain {
        true => None,
        false => Some(server.spoken_to(&args.tls, somebody)?),
    };
    let (mut posted, mut failed) = (Vec::new(), Vec::new());
    for file in &args.files {
        let shown = file.display().to_string();
        let said = wire(file).and_then(|wire| match &somebody {
            Some(remote) => runtime.block_on(posting::post_as(remote, &wire)),
            None => posting::post(&server, &wire).map_err(as_whom),
        });
        match said {
            Ok(said) if args.json => {
                posted.push(json!({"file": file, "answer": output::foreign(&said)}));
            }
            Ok(said) => output::text(&format!("{shown}: {}\n", output::foreign(&said)))?,
            Err(error) => {
                let error = output::chain(&error.context(format!("cannot post {shown}")));
                match args.json {
                    true => posted.push(json!({"file": file, "error": error})),
                    // One alone is what the program ends with.
                    false if args.files.len() > 1 => output::error(&error),
                    false => {}
                }
                failed.push((shown, error));
            }
        }
    }
    if args.json {
        output::json(&json!(posted))?;
    }
    match failed.as_slice() {
        [] => Ok(()),
        [(_, error)] if args.files.len() == 1 => bail!("{error}"),
        several => {
            let names: Vec<&str> = several.iter().map(|(file, _)| file.as_str()).collect();
            let (many, all) = (names.len(), args.files.len());
            bail!("{many} of {all} were not posted: {}", names.join(", "))
        }
    }
}

/// Why nobody in particular may not post, with what helps.
fn as_whom(error: Error) -> Error {
    match error.is::<NotLet>() {
        true => anyhow!("{error}; if users may, say who you are by --user and --password-file"),
        false => error,
    }
}

/// The article of a file, as it goes over the wire.
fn wire(file: &Path) -> Result<Vec<u8>> {
    let octets = input::read(file, posting::ARTICLE_OCTETS_MAX)?.octets;
    Ok(posting::wire_of(&octets))
}

/// The spool that is meant.
pub(super) fn spool(given: Option<&Path>, file: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(spool) => Ok(spool.to_owned()),
        None => Ok(config::load(file, None)?.server.spool),
    }
}
