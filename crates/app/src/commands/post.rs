//! `newsreel post`: articles from files, posted to the server that runs here or to another.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use newsreel_feed::{PeerConfig, PeerTls};
use serde_json::json;

use crate::{config, input, output, posting};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  newsreel post article.txt\n  newsreel post - < article.txt\n  \
                  newsreel post --server 192.0.2.1:119 one.txt two.txt\n  \
                  newsreel post approved.txt --server news.example.org --tls starttls --user ada --password-file password.txt\n\n\
                  A file has header fields, an empty line and the text, with LF or CRLF line ends. Message-ID, Date and\n\
                  Path are added where they are missing."
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
    /// How the connection is secured
    #[arg(long, value_enum, default_value_t = Tls::None)]
    tls: Tls,
    /// A file of the authorities that are believed, in PEM [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a connection is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tls {
    /// Not at all
    None,
    /// By STARTTLS before anything else
    Starttls,
    /// From the first octet on, as on port 563
    Implicit,
}

impl Args {
    /// The server, and as whom it is spoken to; none: as anybody, in clear.
    fn as_somebody(&self, found: SocketAddr) -> Option<PeerConfig> {
        if self.user.is_none() && self.tls == Tls::None {
            return None;
        }
        let name = self
            .server
            .clone()
            .filter(|name| name.parse::<SocketAddr>().is_err());
        let host = name
            .as_deref()
            .map(|name| name.split(':').next().unwrap_or(name));
        let address = match host.filter(|host| !host.is_empty()) {
            Some(host) if host.parse::<IpAddr>().is_err() => format!("{host}:{}", found.port()),
            _ => found.to_string(),
        };
        Some(PeerConfig {
            name: "server".to_owned(),
            address,
            tls: match self.tls {
                Tls::None => PeerTls::None,
                Tls::Starttls => PeerTls::Starttls,
                Tls::Implicit => PeerTls::Implicit,
            },
            authority: self.authority.clone().unwrap_or_default(),
            user: self.user.clone().unwrap_or_default(),
            password_file: self.password_file.clone().unwrap_or_default(),
            clear_text: found.ip().is_loopback(),
            ..PeerConfig::default()
        })
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let server = match &args.server {
        Some(name) => {
            let has_port = name.contains(':') && name.parse::<IpAddr>().is_err();
            let port = (args.tls == Tls::Implicit && !has_port).then_some(563);
            posting::find(name, port)?
        }
        None => posting::server_of(&spool(args.spool.as_deref(), args.config.as_deref())?)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let somebody = args.as_somebody(server);
    let mut posted = Vec::new();
    for file in &args.files {
        let about = || format!("cannot post {}", file.display());
        let octets = input::read(file, posting::ARTICLE_OCTETS_MAX)?.octets;
        let wire = posting::wire_of(&octets);
        let said = match &somebody {
            Some(peer) => runtime.block_on(posting::post_as(peer, &wire)),
            None => posting::post(server, &wire),
        };
        let said = said.with_context(about)?;
        if args.json {
            posted.push(json!({"file": file, "answer": output::foreign(&said)}));
        } else {
            output::text(&format!("{}: {}\n", file.display(), output::foreign(&said)))?;
        }
    }
    if args.json {
        output::json(&json!(posted))?;
    }
    Ok(())
}

/// The spool that is meant.
pub(super) fn spool(given: Option<&Path>, file: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(spool) => Ok(spool.to_owned()),
        None => Ok(config::load(file)?.server.spool),
    }
}
