//! INN with its traditional spool, a file an article, as distributions package it: made from nothing in a directory of its
//! own, with its articles wherever they are wanted.
//!
//! Needs root, who may act as INN's user, and a machine on which INN is installed.
//! Invariant: nothing outside its directory and that of its articles is touched; it listens on loopback alone.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a server that is compared are no spool of ours"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use newsreel_host::{RealDisk, read_whole};

use super::{CommandRival, Rival, Running};
use crate::error::Error;

/// Where Debian's package has its programs.
pub const INN_PROGRAMS: &str = "/usr/lib/news/bin";

/// INN's user and group, everywhere.
const USER: &str = "news";

/// More names of groups than this are no list of groups.
const GROUPS_BYTES_MAX: usize = 64 << 20;

/// Nor are so many octets one sending.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// Entries that its history is made for.
const HISTORY_ENTRIES: &str = "1000000";

const FOLDERS: [&str; 12] = [
    "etc/filter",
    "db",
    "log/OLD",
    "run",
    "tmp",
    "http",
    "spool/archive",
    "spool/incoming/bad",
    "spool/incoming/tmp",
    "spool/outgoing",
    "spool/overview",
    "spool/innfeed",
];

const INN_CONF: &str = r#"mta: "/bin/true %s"
mailcmd: /bin/true
organization: "bench"
domain: bench.test
pathhost: inn.bench.test
fromhost: bench.test
server: 127.0.0.1
pathnews: {programs}/..
patharchive: {dir}/spool/archive
patharticles: {articles}
pathbin: {programs}
pathcontrol: {programs}/control
pathdb: {dir}/db
pathetc: {dir}/etc
pathfilter: {dir}/etc/filter
pathhttp: {dir}/http
pathincoming: {dir}/spool/incoming
pathlog: {dir}/log
pathoutgoing: {dir}/spool/outgoing
pathoverview: {dir}/spool/overview
pathrun: {dir}/run
pathspool: {dir}/spool
pathtmp: {dir}/tmp
bindaddress: 127.0.0.1
bindaddress6: none
port: {port}
nnrpdpostport: {port}
hismethod: hisv6
enableoverview: true
ovmethod: tradindexed
groupbaseexpiry: true
maxconnections: 500
nnrpdloadlimit: 0
artcutoff: 0
doinnwatch: false
docnfsstat: false
pgpverify: false
"#;

/// The other files of its configuration; those that need only be there are empty.
const FILES: [(&str, &str); 21] = [
    (
        "storage.conf",
        "method tradspool {\n    newsgroups: *\n    class: 0\n}\n",
    ),
    (
        "incoming.conf",
        "streaming: true\nmax-connections: 0\npeer bench {\n    hostname: \"127.0.0.1\"\n    max-connections: 0\n}\n",
    ),
    ("newsfeeds", "ME:*/!local::\n"),
    (
        "readers.conf",
        "auth \"all\" {\n    hosts: \"127.0.0.1, localhost\"\n    default: \"<reader>\"\n}\naccess \"all\" {\n    \
         users: \"<reader>\"\n    newsgroups: \"*\"\n    access: \"RPAN\"\n}\n",
    ),
    ("expire.ctl", "/remember/:11\n*:A:1:90:never\n"),
    ("control.ctl", "all:*:*:drop\n"),
    ("cycbuff.conf", ""),
    ("buffindexed.conf", ""),
    ("ovsqlite.conf", ""),
    ("control.ctl.local", ""),
    ("distrib.pats", ""),
    ("distributions", ""),
    ("localgroups", ""),
    ("moderators", ""),
    ("nnrpd.track", ""),
    ("passwd.nntp", ""),
    ("subscriptions", ""),
    ("inn-secrets.conf", ""),
    ("nntpsend.ctl", ""),
    ("innfeed.conf", ""),
    ("filter/none", ""),
];

/// INN in a directory.
#[derive(Debug)]
pub struct Inn {
    programs: PathBuf,
    articles: PathBuf,
    directory: PathBuf,
    peer: Option<String>,
    settings: String,
    server: Option<CommandRival>,
}

impl Inn {
    /// One whose articles lie in the directory `articles`, which becomes INN's user's.
    pub fn new(programs: &Path, articles: &Path) -> Self {
        Self {
            programs: programs.to_path_buf(),
            articles: articles.to_path_buf(),
            directory: PathBuf::new(),
            peer: None,
            settings: String::new(),
            server: None,
        }
    }

    /// It notes for a peer what it takes, until that is sent.
    #[must_use]
    pub fn with_peer(mut self, name: &str) -> Self {
        self.peer = Some(name.to_owned());
        self
    }

    /// With these lines more in its `inn.conf`.
    #[must_use]
    pub fn with_settings(mut self, lines: &str) -> Self {
        self.settings = lines.to_owned();
        self
    }

    /// Kills its server (SIGKILL); [`Inn::start_again`] goes on with what is on its disk.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.server
            .take()
            .map_or(Ok(()), |mut server| server.kill())
    }

    /// The tokens of all articles that its history has, one a line, as `innxmit` takes them.
    pub fn tokens(&self) -> Result<String, Error> {
        let path = self.path("db/history");
        let history = fs::read(&path).map_err(|error| failed(&path, &error.to_string()))?;
        let history = String::from_utf8_lossy(&history);
        let tokens = history.lines().filter_map(|line| {
            let token = line.rsplit('\t').next()?;
            token.starts_with('@').then(|| format!("{token}\n"))
        });
        Ok(tokens.collect())
    }

    /// Sends the peer what waits for it, as `nntpsend` would; how many articles these were.
    pub fn send(&self, peer: &str, address: SocketAddr) -> Result<u64, Error> {
        let waiting = self.path("spool/outgoing").join(peer);
        let batch = waiting.with_extension("sending");
        if fs::rename(&waiting, &batch).is_err() {
            // Nothing came since the last time.
            return Ok(0);
        }
        // From here on it notes what comes in a new file.
        self.run("ctlinnd", &["-s", "-t", "30", "flush", peer])?;
        let text = read_whole(&RealDisk, &batch, BATCH_BYTES_MAX)?;
        let articles = text.iter().filter(|octet| **octet == b'\n').count() as u64;
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let batch = batch.display().to_string();
        self.run("innxmit", &["-P", &port, &host, &batch])?;
        Ok(articles)
    }

    /// Whether its programs are there.
    #[must_use]
    pub fn is_installed(programs: &Path) -> bool {
        programs.join("innd").exists() && programs.join("expireover").exists()
    }

    /// Removes the articles that were posted, by their own dates, more than so many days ago.
    pub fn expire(&self, days: f64) -> Result<(), Error> {
        let rules = format!("/remember/:11\n*:A:0:{days}:never\n");
        self.write("expire.ctl", &rules)?;
        self.run("expireover", &["-p"])
    }

    /// From now on what comes is also named in a file, as for a neighbour that batches are written for.
    pub fn name_outgoing(&self) -> Result<(), Error> {
        self.write("newsfeeds", "ME:*/!local::\nsink:*:Tf,Wnb:\n")?;
        self.run("ctlinnd", &["-s", "reload", "newsfeeds", "bench"])
    }

    /// Puts the file of what came until now aside, under this name; what comes is named in a new one.
    pub fn put_outgoing_aside(&self, name: &str) -> Result<(), Error> {
        let outgoing = self.path("spool/outgoing");
        // INN goes on in the old file until it is told.
        self.run("ctlinnd", &["-s", "flush", "sink"])?;
        let (from, to) = (outgoing.join("sink"), outgoing.join(name));
        fs::rename(&from, &to).map_err(|error| failed(&from, &error.to_string()))?;
        self.run("ctlinnd", &["-s", "flush", "sink"])
    }

    /// Writes what a file put aside names as batches that nobody gets; how many articles it names.
    pub fn batch(&self, name: &str) -> Result<u64, Error> {
        let path = self.path("spool/outgoing").join(name);
        let named = fs::read(&path).map_err(|error| failed(&path, &error.to_string()))?;
        self.run("batcher", &["-r", "sink", name])?;
        Ok(named.iter().filter(|&&octet| octet == b'\n').count() as u64)
    }

    /// Where `rnews` looks for batches.
    #[must_use]
    pub fn incoming(&self) -> PathBuf {
        self.path("spool/incoming")
    }

    /// Has `rnews` take all batches that lie there, as cron does.
    pub fn rnews(&self) -> Result<(), Error> {
        self.run("rnews", &["-U"])
    }

    /// Articles that its history has and had.
    pub fn articles(&self) -> Result<u64, Error> {
        let path = self.path("db/history");
        let history = fs::read(&path).map_err(|error| failed(&path, &error.to_string()))?;
        // What was refused and is remembered has no token.
        Ok(memchr::memmem::find_iter(&history, b"\t@").count() as u64)
    }

    /// Where something of it lies.
    #[must_use]
    pub fn path(&self, at: &str) -> PathBuf {
        self.directory.join(at)
    }

    /// Writes a file of its configuration.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path("etc").join(name);
        fs::write(&path, text).map_err(|error| failed(&path, &error.to_string()))
    }

    /// The words that run one of its programs as its user, on this configuration.
    fn words(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let own = [
            "setpriv".to_owned(),
            format!("--reuid={USER}"),
            format!("--regid={USER}"),
            "--clear-groups".to_owned(),
            "env".to_owned(),
            format!("INNCONF={}", self.path("etc/inn.conf").display()),
            self.programs.join(program).display().to_string(),
        ];
        let given = arguments.iter().map(|&word| word.to_owned());
        own.into_iter().chain(given).collect()
    }

    /// Runs one of its programs as its user, in its directory, to the end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<(), Error> {
        run(&self.words(program, arguments), &self.directory)
    }

    /// Starts it once more in a directory where it ran before, with all it has.
    pub fn start_again(&mut self, directory: &Path, address: SocketAddr) -> Result<Running, Error> {
        self.directory = directory.to_path_buf();
        // One that was killed has left it behind.
        let _ = fs::remove_file(self.path("run/innd.pid"));
        self.serve(address)
    }

    fn serve(&mut self, address: SocketAddr) -> Result<Running, Error> {
        let words = self.words("innd", &["-f", "-P", &address.port().to_string()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut server = CommandRival::new(self.name(), &words, None);
        let running = server.start(&self.directory, address, Path::new(""))?;
        self.server = Some(server);
        Ok(running)
    }

    fn make(&self, port: u16, groups: &Path) -> Result<(), Error> {
        for folder in FOLDERS {
            let path = self.path(folder);
            fs::create_dir_all(&path).map_err(|error| failed(&path, &error.to_string()))?;
        }
        for (name, text) in FILES {
            self.write(name, text)?;
        }
        if let Some(peer) = &self.peer {
            self.write("newsfeeds", &format!("ME:*/!local::\n{peer}:*:Tf,Wnm:\n"))?;
        }
        let text = INN_CONF
            .replace("{dir}", &self.directory.display().to_string())
            .replace("{articles}", &self.articles.display().to_string())
            .replace("{programs}", &self.programs.display().to_string())
            .replace("{port}", &port.to_string());
        self.write("inn.conf", &format!("{text}{}", self.settings))?;
        let names = read_whole(&RealDisk, groups, GROUPS_BYTES_MAX)?;
        let names = String::from_utf8_lossy(&names);
        let own = ["control", "control.cancel", "junk"];
        let own = own.map(|name| format!("{name} 0000000000 0000000001 n\n"));
        let given = names
            .lines()
            .map(|name| format!("{name} 0000000000 0000000001 y\n"));
        let active: String = own.into_iter().chain(given).collect();
        for (name, text) in [
            ("active", active.as_str()),
            ("active.times", ""),
            ("newsgroups", ""),
            ("history", ""),
        ] {
            let path = self.path("db").join(name);
            fs::write(&path, text).map_err(|error| failed(&path, &error.to_string()))?;
        }
        let owner = format!("{USER}:{USER}");
        let directory = self.directory.display().to_string();
        let articles = self.articles.display().to_string();
        let words = ["chown", "-R", &owner, &directory].map(str::to_owned);
        run(&words, &self.directory)?;
        let words = ["chown", &owner, &articles].map(str::to_owned);
        run(&words, &self.directory)?;
        let history = self.path("db/history").display().to_string();
        self.run(
            "makedbz",
            &["-i", "-o", "-s", HISTORY_ENTRIES, "-f", &history],
        )
    }
}

impl Rival for Inn {
    fn name(&self) -> &'static str {
        "inn, a file an article"
    }

    fn start(
        &mut self,
        directory: &Path,
        address: SocketAddr,
        groups: &Path,
    ) -> Result<Running, Error> {
        self.directory = directory.to_path_buf();
        self.make(address.port(), groups)?;
        self.serve(address)
    }

    fn stop(&mut self) -> Result<(), Error> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        // A signal alone is noticed only with the next article or command.
        let told = self.run("ctlinnd", &["-s", "-t", "30", "shutdown", "bench"]);
        server.stop().and(told)
    }
}

impl Drop for Inn {
    fn drop(&mut self) {
        // Whatever went wrong has been reported; here only the server must not stay.
        let _ = self.stop();
    }
}

fn run(words: &[String], directory: &Path) -> Result<(), Error> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    // Nobody reads what they print, and a pipe would be work of ours: `batcher` prints batches.
    let said = command.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let said = said.map_err(|error| failed(Path::new(program), &error.to_string()))?;
    if said.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&said.stderr);
    let why = format!("it ended with {}: {}", said.status, why.trim());
    Err(failed(Path::new(&words.join(" ")), &why))
}

fn failed(program: &Path, why: &str) -> Error {
    Error::Program {
        program: program.display().to_string(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `batcher` printed was collected, which is not what the paper timed.
    #[test]
    fn what_a_program_prints_goes_nowhere() {
        let words = ["sh", "-c", "test -c /proc/self/fd/1"].map(str::to_owned);
        run(&words, Path::new("/")).unwrap();
        let words = ["sh", "-c", "echo why >&2; exit 3"].map(str::to_owned);
        let said = run(&words, Path::new("/")).unwrap_err().to_string();
        assert!(said.contains("why"), "{said}");
    }
}
