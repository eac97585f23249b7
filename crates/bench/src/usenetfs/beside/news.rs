//! The news server that works beside the builds: started on a directory of articles whose largest groups may be managed, fed,
//! made to expire and to send to a peer.
//!
//! Invariant: what is counted as sent the peer has answered for. Nothing is left running.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::{Folder, OpenMode};
use newsreel_layout::{Algorithm, Mark};
use serde_json::Value;

use super::super::directory::layout;
use super::super::volume::{View, Volume, call, told};
use super::{BesideArgs, Server};
use crate::corpus::{self, ListForm};
use crate::error::Error;
use crate::load::Machine;
use crate::rivals::{CommandRival, Inn, NO_FIGURES, Rival as _};

/// What the peer is called, in Path and in configurations.
const PEER: &str = "peer.bench.test";

/// Days that articles are from; INN lets those go that are older than the middle of the hours they are dated in.
const KEPT_DAYS: f64 = 5400.0 / 86_400.0;

/// A server at work.  What is mounted goes after the server.
pub(super) struct News<'a> {
    server: Running<'a>,
    pub(super) address: SocketAddr,
    /// What is the server's but its articles.
    pub(super) place: PathBuf,
    peer: SocketAddr,
    _view: Option<View<'a>>,
}

enum Running<'a> {
    Inn { inn: Inn, sent: u64 },
    Newsreel(CommandRival, Spool<'a>),
}

/// Where a server of ours can be asked.
struct Spool<'a> {
    program: &'a Path,
    at: PathBuf,
}

impl Spool<'_> {
    fn ask(&self, words: &[&str]) -> Result<Vec<u8>, Error> {
        let mut command = Command::new(self.program);
        told(command.args(words).arg("--spool").arg(&self.at), "")
    }
}

impl<'a> News<'a> {
    /// Starts a server whose articles lie on the volume.
    pub(super) fn start(
        args: &'a BesideArgs,
        machine: Machine<'_>,
        volume: &Volume,
        (server, is_managed): (Server, bool),
        groups: &[String],
        peer: SocketAddr,
    ) -> Result<Self, Error> {
        let place = args
            .directory
            .join(format!("{}-{is_managed}", server.name()));
        machine.disk.create_dir_all(&place)?;
        let articles = volume.at().join("articles");
        machine.disk.create_dir_all(&articles)?;
        let list = place.join("groups");
        let names = corpus::list(groups.iter().map(String::as_str), ListForm::Names);
        write(machine, &list, &names)?;
        let managed = groups.get(..args.managed.min(groups.len()));
        let managed = managed.filter(|_| is_managed).unwrap_or_default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let mut view = None;
        let server = match server {
            Server::Inn => {
                let mut at = articles.clone();
                if is_managed {
                    manage(machine, &articles, managed)?;
                    let seen = View::new(&args.program, &articles, &args.directory.join("seen"))?;
                    at = seen.at().to_path_buf();
                    view = Some(seen);
                }
                let mut inn = Inn::new(&args.inn, &at).with_peer(PEER);
                inn.start(&place, address, &list)?;
                Running::Inn { inn, sent: 0 }
            }
            Server::Newsreel => {
                let config = place.join("newsreel.toml");
                let text = config_of(args, &articles, managed, peer);
                write(machine, &config, &text)?;
                let program = args.program.display().to_string();
                let words = ["--config".to_owned(), config.display().to_string()];
                let words = words.each_ref().map(String::as_str);
                let mut rival = CommandRival::newsreel(&program).with_words(&words);
                rival.start(&place, address, &list)?;
                let spool = Spool {
                    program: &args.program,
                    at: place.join("spool"),
                };
                Running::Newsreel(rival, spool)
            }
        };
        Ok(Self {
            server,
            address,
            place,
            peer,
            _view: view,
        })
    }

    /// Lets articles go, beside everything else.
    pub(super) fn expire(&self, elapsed_seconds: f64) -> Result<(), Error> {
        match &self.server {
            Running::Inn { inn, .. } => inn.expire(elapsed_seconds / 86_400.0 + KEPT_DAYS),
            Running::Newsreel(_, spool) => spool.ask(&["expire"]).map(drop),
        }
    }

    /// Sends what waits for the peer; how many articles it has answered for until now.
    pub(super) fn send(&mut self) -> Result<u64, Error> {
        match &mut self.server {
            Running::Inn { inn, sent } => {
                *sent += inn.send(PEER, self.peer)?;
                Ok(*sent)
            }
            // It sends all the time.
            Running::Newsreel(_, spool) => {
                let shown = spool.ask(&["peer", "show", PEER, "--json"])?;
                let shown: Value = serde_json::from_slice(&shown).unwrap_or_default();
                let feeds = shown["feeds"].as_array().into_iter().flatten();
                let settled = feeds.flat_map(|feed| ["accepted", "refused"].map(|key| &feed[key]));
                Ok(settled.filter_map(Value::as_u64).sum())
            }
        }
    }

    pub(super) fn stop(&mut self) -> Result<(), Error> {
        match &mut self.server {
            Running::Inn { inn, .. } => inn.stop(),
            Running::Newsreel(rival, _) => rival.stop(),
        }
    }
}

impl Drop for News<'_> {
    fn drop(&mut self) {
        // Whatever went wrong has been reported; here only the server must not stay.
        let _ = self.stop();
    }
}

/// Makes directories of groups and marks them, as an administrator would before the first article.
fn manage(machine: Machine<'_>, articles: &Path, groups: &[String]) -> Result<(), Error> {
    for group in groups {
        let at = articles.join(group.replace('.', "/"));
        machine.disk.create_dir_all(&at)?;
        Mark::set(&Folder::open(&at)?, Algorithm::default()).map_err(layout)?;
    }
    call(
        "chown",
        ["-R".as_ref(), "news:news".as_ref(), articles.as_os_str()],
    )
}

fn config_of(args: &BesideArgs, articles: &Path, managed: &[String], peer: SocketAddr) -> String {
    let mut layouts: Vec<String> = managed
        .iter()
        .map(|group| format!("\"{group} {}\"", Algorithm::default()))
        .collect();
    layouts.push("\"* flat\"".to_owned());
    format!(
        "{NO_FIGURES}[[set]]\nname = \"all\"\nmethod = \"tradspool\"\ndirectory = \"{}\"\nlayouts = [{}]\n\n[[rule]]\nset = \"all\"\n\n\
         [[expire]]\narticles_max = {}\n\n[[peer]]\nname = \"{PEER}\"\naddress = \"{peer}\"\n",
        articles.display(),
        layouts.join(", "),
        args.kept,
    )
}

fn write(machine: Machine<'_>, at: &Path, text: &str) -> Result<(), Error> {
    let file = machine.disk.open(at, OpenMode::CreateNew)?;
    Ok(file.write_at(text.as_bytes(), 0)?)
}
