//! The list `[[peer]]` of the configuration: the servers that articles are sent to, and which ones.
//!
//! [`problems`] lists everything that is wrong at once, by the path of its key.

use std::net::IpAddr;
use std::path::PathBuf;

use newsreel_net::access::{AccessRule, Rules};
use newsreel_service::Neighbour;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::hosts::{Hosts, is_host};

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct PeersConfig {
    /// Servers that articles are sent to.
    pub peer: Vec<PeerConfig>,
}

/// What holds for all feeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedsConfig {
    /// How long the place of a feed is kept that was taken out of the configuration: one that is put back in that time goes on where it
    /// stood. Until then the log is kept for it as for any feed. 0: its place is forgotten at once.
    pub removed_s: u64,
}

impl Default for FeedsConfig {
    fn default() -> Self {
        Self {
            removed_s: 7 * 86_400,
        }
    }
}

/// How connections to a peer are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum PeerTls {
    /// Not at all.
    #[default]
    None,
    /// By STARTTLS before anything else; a peer that cannot is not sent to.
    Starttls,
    /// From the first octet on, as on port 563.
    Implicit,
}

/// How articles leave by a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FeedKind {
    /// Over connections to `address` (NNTP).
    #[default]
    Nntp,
    /// In batches, files that `newsreel batch` writes; until then they wait in the log.
    Batch,
    /// To a program, each on its standard input.
    Program,
    /// Appended to a file.
    File,
}

/// How articles stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FileForm {
    /// As in a batch, each behind a line `#! rnews` and its length.
    #[default]
    Batch,
    /// As mails in a folder, each behind a line `From `; such lines of the article are quoted with `>` (mboxrd).
    Mbox,
}

/// What the bodies of articles may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FeedContent {
    /// Anything.
    #[default]
    Any,
    /// Something to read; and what came before a feed asked, of which it is not known.
    Text,
    /// A file, in yEnc, uuencode, base64 or another encoding of MIME.
    Binary,
}

/// How a batch is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Not at all.
    None,
    /// With gzip, which everybody can unpack.
    #[default]
    Gzip,
    /// With bzip2.
    Bzip2,
    /// With zstd, which INN cannot unpack.
    Zstd,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerConfig {
    /// Its name in Path: what has been there is not sent to it. Commands and the log call it so.
    pub name: String,
    /// Other names it has in Path.
    pub aliases: Vec<String>,
    /// Where it listens, `host:port`; the host is a name or an address. It may be left out where no feed has the kind `nntp`.
    pub address: String,
    /// The address of this machine that connections come from; empty: what the system chooses.
    pub bind: String,
    /// How connections are secured. The peer's certificate is always verified, for the host of `address`.
    pub tls: PeerTls,
    /// A file of the authorities that are believed, in PEM; empty: those of this machine. A relative path counts from the
    /// configuration file's directory; this file and the next three are read for each connection.
    pub authority: PathBuf,
    /// The file of the certificate that we show, and of those between it and its authority, in PEM; empty: none.
    pub certificate: PathBuf,
    /// The file of its key, in PEM.
    pub key: PathBuf,
    /// As whom we log in (AUTHINFO USER, or SASL PLAIN where only that is offered); empty: not at all.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
    /// Whether the password may go where anybody on the way can read it: without TLS.
    pub clear_text: bool,
    /// Whether connections are compressed, where the peer can (COMPRESS DEFLATE).
    pub compress: bool,
    /// Addresses and networks that it connects from, as in `[[access]]`, and names of hosts, whose addresses are looked up at a start, at
    /// a reload and every ten minutes. A connection that meets all that is given of this and the next
    /// two is the peer's: it may feed, whatever `[[access]]` says, and Path is held against the peer's names. Nothing given: none is.
    pub from_addresses: Vec<String>,
    /// Names in certificates that it shows (`tls.clients`), as in `[[access]]`.
    pub from_certificates: Vec<String>,
    /// Users as whom it logs in, as in `[[access]]`.
    pub from_users: Vec<String>,
    /// Whether it is known over TLS only.
    pub from_tls: bool,
    /// Groups that are taken from it, a wildmat: an article with one of them is, unless it has one that meets a poison pattern (`@`).
    pub from_groups: String,
    /// Distributions that are taken from it, a wildmat; an article without any is.  One that names only what is not (`!local`) is of all others.
    pub from_distributions: String,
    /// Path names through which what is taken from it must not have come.
    pub from_not_through: Vec<String>,
    /// Smaller articles are not taken from it, octets.
    pub from_octets_min: u64,
    /// Larger articles are not taken from it, octets; 0: any size that `articles.octets_max` lets through.
    pub from_octets_max: u64,
    /// Articles whose Newsgroups names more groups are not taken from it; 0: any number.
    pub from_groups_max: u32,
    /// What the bodies of articles that are taken from it may be, as in `[[rule]]`.
    pub from_content: FeedContent,
    /// Articles that came through more servers, it included, are not taken from it; 0: any number.
    pub from_hops_max: u32,
    /// Whether control messages are taken from it.
    pub from_control: bool,
    /// Which share of the articles is taken from it, as `hashfeed` of a feed; empty: all.
    pub from_hashfeed: String,
    /// Groups that it may read, a wildmat; empty: none.
    pub from_read: String,
    /// Connections that it may have at the same time; 0: any number.
    pub from_connections_max: u32,
    /// Octets that are taken from it and sent to it in a second, on all connections that it makes together: what comes faster waits, and is
    /// not read meanwhile. A change holds for connections that are made from then on. 0: any number.
    pub from_octets_per_s_max: u64,
    /// Articles that are taken from it in a second, on all its connections together, whatever becomes of them; offers (CHECK) do not count.
    /// What comes faster waits. 0: any number.
    pub from_articles_per_s_max: u32,
    /// What goes to it. Each has its own filter, its own connections and its own place in the log; an article goes out by each
    /// that lets it through.
    pub feed: Vec<FeedConfig>,
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            aliases: Vec::new(),
            address: String::new(),
            bind: String::new(),
            tls: PeerTls::None,
            authority: PathBuf::new(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            user: String::new(),
            password_file: PathBuf::new(),
            clear_text: false,
            compress: false,
            from_addresses: Vec::new(),
            from_certificates: Vec::new(),
            from_users: Vec::new(),
            from_tls: false,
            from_groups: "*".to_owned(),
            from_distributions: "*".to_owned(),
            from_not_through: Vec::new(),
            from_octets_min: 0,
            from_octets_max: 0,
            from_groups_max: 0,
            from_content: FeedContent::Any,
            from_hops_max: 0,
            from_control: true,
            from_hashfeed: String::new(),
            from_read: String::new(),
            from_connections_max: 0,
            from_octets_per_s_max: 0,
            from_articles_per_s_max: 0,
            feed: vec![FeedConfig::default()],
        }
    }
}

impl PeerConfig {
    /// Whether it is sent to as by another configuration: other feeds, and what comes from it, do not count.
    pub(crate) fn sends_as(&self, other: &Self) -> bool {
        let sending = |peer: &Self| Self {
            name: peer.name.clone(),
            aliases: peer.aliases.clone(),
            address: peer.address.clone(),
            bind: peer.bind.clone(),
            tls: peer.tls,
            authority: peer.authority.clone(),
            certificate: peer.certificate.clone(),
            key: peer.key.clone(),
            user: peer.user.clone(),
            password_file: peer.password_file.clone(),
            clear_text: peer.clear_text,
            compress: peer.compress,
            ..Self::default()
        };
        sending(self) == sending(other)
    }

    /// Host and port, if both are there.
    pub(crate) fn place(&self) -> Option<(&str, u16)> {
        let (host, port) = self.address.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then_some((host, port))
    }

    /// Whether anybody can be known for it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let given = [
            &self.from_addresses,
            &self.from_certificates,
            &self.from_users,
        ];
        given.iter().any(|it| !it.is_empty())
    }

    /// The entry of `[[access]]` that it stands for: who is known for it, and what they may do. There is none while it is known by
    /// names of hosts only that have no address.
    #[must_use]
    pub fn access(&self, hosts: &Hosts) -> Option<AccessRule> {
        self.entry(|name| hosts.of(name).map(|it| it.to_string()).collect())
    }

    fn entry(&self, addresses_of: impl Fn(&str) -> Vec<String>) -> Option<AccessRule> {
        let given = self.from_addresses.iter();
        let addresses: Vec<String> = given
            .flat_map(|text| match is_host(text) {
                true => addresses_of(text),
                false => vec![text.clone()],
            })
            .collect();
        // No addresses would be any.
        let is_somebody = !addresses.is_empty() || self.from_addresses.is_empty();
        (self.is_known() && is_somebody).then(|| AccessRule {
            peer: Some(self.name.clone()),
            name: format!("[[peer]] {}", self.name),
            addresses,
            tls: self.from_tls,
            certificates: self.from_certificates.clone(),
            users: self.from_users.clone(),
            read: self.from_read.clone(),
            feed: true,
            connections_max: self.from_connections_max,
            octets_per_s_of_all_max: self.from_octets_per_s_max,
            articles_per_s_of_all_max: self.from_articles_per_s_max,
            ..AccessRule::default()
        })
    }

    /// What is taken from it, as what goes out by a feed is said.
    fn terms(&self) -> FeedConfig {
        FeedConfig {
            groups: self.from_groups.clone(),
            distributions: self.from_distributions.clone(),
            not_through: self.from_not_through.clone(),
            octets_min: self.from_octets_min,
            octets_max: self.from_octets_max,
            groups_max: self.from_groups_max,
            content: self.from_content,
            hops_max: self.from_hops_max,
            control: self.from_control,
            hashfeed: self.from_hashfeed.clone(),
            ..FeedConfig::default()
        }
    }

    /// The server as sessions know it.
    ///
    /// # Errors
    /// The key of what is taken from it that cannot be used, and why.
    pub fn neighbour(&self) -> Result<Neighbour, (String, String)> {
        let terms = self.terms();
        let filter = Filter::of_what_comes(&terms);
        let filter = filter.map_err(|(key, why)| (format!("from_{key}"), why))?;
        Ok(Neighbour::new(&self.name, &self.aliases, filter))
    }

    /// What is wrong with how it is known.
    fn known_by(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        problems.extend(self.neighbour().err());
        // Any address will do for a name, one for each, so that the others keep their places.
        let entry = self.entry(|_| vec![IpAddr::from([0, 0, 0, 0]).to_string()]);
        if let Err(wrong) = Rules::parse(entry.as_slice()) {
            let own = |key: &str| format!("from_{}", key.trim_start_matches("[0]."));
            problems.extend(wrong.into_iter().map(|(key, why)| (own(&key), why)));
        }
        let says = self.from_tls
            || self.from_connections_max > 0
            || self.from_octets_per_s_max > 0
            || self.from_articles_per_s_max > 0
            || !self.from_read.is_empty()
            || self.terms() != Self::default().terms();
        if entry.is_none() && says {
            let right = "nobody is known for this peer: give `from_addresses`, `from_certificates` or `from_users`";
            problems.push(("name".to_owned(), right.to_owned()));
        }
        problems
    }

    /// Its files and directories: relative ones count from the configuration's directory.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let own = [
            &mut self.authority,
            &mut self.certificate,
            &mut self.key,
            &mut self.password_file,
        ];
        own.into_iter()
            .chain(self.feed.iter_mut().flat_map(FeedConfig::paths_mut))
    }

    /// The address that connections come from, if one is said.
    pub(crate) fn bind(&self) -> Result<Option<IpAddr>, String> {
        if self.bind.is_empty() {
            return Ok(None);
        }
        let parsed = self.bind.parse().map(Some);
        parsed.map_err(|_| format!("{:?} is no address: write one as in 192.0.2.7", self.bind))
    }

    /// What is wrong with how it is reached.
    pub(crate) fn reached_by(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut tell = |key, right: &str| problems.push((key, right.to_owned()));
        let needs_address = self.feed.iter().any(|feed| feed.kind == FeedKind::Nntp);
        if self.place().is_none() && (needs_address || !self.address.is_empty()) {
            tell(
                "address",
                match self.address.is_empty() {
                    true => {
                        "where it is reached is missing: write `address = \"news.example.org:119\"`, or `feed = []` if nothing goes to it"
                    }
                    false => "`host:port` is wanted, as in \"news.example.org:119\"",
                },
            );
        }
        if let Err(why) = self.bind() {
            tell("bind", &why);
        }
        let is_given = |path: &PathBuf| !path.as_os_str().is_empty();
        let files = [
            ("authority", &self.authority),
            ("certificate", &self.certificate),
            ("key", &self.key),
        ];
        if let Some((key, _)) = files.iter().find(|(_, path)| is_given(path))
            && self.tls == PeerTls::None
        {
            tell(
                key,
                "it is of no use without `tls`, \"starttls\" or \"implicit\"",
            );
        } else if is_given(&self.certificate) != is_given(&self.key) {
            tell(
                "certificate",
                "a certificate and its `key` go together: give both or none",
            );
        }
        if self.user.is_empty() == is_given(&self.password_file) {
            tell(
                "user",
                "a user and a `password_file` go together: give both or none",
            );
        }
        if self.user.contains(char::is_whitespace) {
            tell("user", "a name without spaces");
        }
        problems
    }
}

/// A feed: which articles go out by it, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedConfig {
    /// What tells it from the peer's other feeds; its place in the log is kept under this name and the peer's.
    pub name: String,
    /// How articles leave.
    pub kind: FeedKind,
    /// Groups that go out, a wildmat: an article with one of them goes, unless it has one that meets a poison pattern (`@`).
    pub groups: String,
    /// Distributions that go out, a wildmat; an article without any goes always.  One that names only what does not (`!local`) is of all others.
    pub distributions: String,
    /// Path names besides the peer's own through which an article must not have come.
    pub not_through: Vec<String>,
    /// Smaller articles do not go, octets.
    pub octets_min: u64,
    /// Larger articles do not go, octets; 0: any size goes.
    pub octets_max: u64,
    /// Articles whose Newsgroups names more groups do not go; 0: any number.
    pub groups_max: u32,
    /// What the bodies of articles that go may be, as in `[[rule]]`.
    pub content: FeedContent,
    /// Articles that came through more servers do not go; 0: any number.
    pub hops_max: u32,
    /// Whether control messages go.
    pub control: bool,
    /// Whether only what was posted here goes.
    pub posted_only: bool,
    /// Which share of the articles goes, by the MD5 hash of the message-id as in Diablo and INN: `1/4` is the first of four,
    /// `2-3/4` the second and third, `1/2:4` looks at other bits of the hash (0 to 12). Several with commas between them; empty:
    /// all.
    pub hashfeed: String,
    /// How long an article waits here before it goes out, from its arrival on, seconds: for peers that have it from elsewhere by
    /// then, or for cancels to come first.
    pub delay_s: u64,
    /// Octets that are sent in a second, on average; 0: any number. Not of batches.
    pub octets_per_s_max: u64,
    /// Octets that are sent in 24 hours, and one article more at most; what is more waits in the log. They begin with the first article
    /// after a start; a reload gives none of them again. 0: any number. Not of batches.
    pub octets_per_day_max: u64,
    /// Whether what comes now goes out before what waits: where the peer is slower than what comes, or comes back after long, the backlog
    /// is sent while there is nothing newer. Else all goes in the order in which it came.
    pub fresh_first: bool,
    /// Whether articles of a backlog, or of a batch, go out by group and number, `articles_max` of them at a time: for spools whose sets
    /// keep a file for each article, on disks that have to seek.
    pub by_group: bool,
    /// Connections at the same time.
    pub connections: u32,
    /// Articles that may be asked about or sent on one connection before the answer to the first of them is there.
    pub window: u32,
    /// Articles in memory that wait to be sent, or for their answer, or to be tried again; what is behind them stays in the log. With
    /// `by_group` those that wait for their answer are not among them.
    pub articles_max: u32,
    /// How long an article that the peer puts off (431, 436) waits for the next try, seconds; doubled each time up to an hour.
    pub retry_s: u64,
    /// Batches: the directory they are written to; empty: `batches/out/` and the peer's name, in the spool. A relative path counts from
    /// the configuration file's directory.
    pub folder: PathBuf,
    /// Batches: how they are packed.
    pub packing: Packing,
    /// Batches: the word behind `#! ` in a line in front of a packed one, by which old programs know how to unpack it; `auto`:
    /// gunbatch, bunbatch or zunbatch as it is packed; empty: no such line.
    pub unpacker: String,
    /// Batches: the octets of one before it is packed; an article that is larger is a batch of its own.
    pub batch_octets_max: u64,
    /// Batches and files: octets of finished batches in the directory, or of the file. Where as much waits to be taken away, nothing is added,
    /// and articles wait in the log.
    pub waiting_octets_max: u64,
    /// Programs: its path and its arguments, with spaces between; no shell reads them. The article is on its standard input, with line feeds
    /// as line ends. It ends with 0 when it has taken it, with 65 when it never will; with anything else it is tried again
    /// later. `connections` of them run at the same time.
    pub program: String,
    /// Programs: one that has not ended after this is killed, with what it has started, and has failed; seconds.
    pub program_s: u32,
    /// Files: which one articles are appended to. Who moves it away gets a new one made. A relative path counts from the configuration
    /// file's directory.
    pub file: PathBuf,
    /// Files: how articles stand in it.
    pub form: FileForm,
}

impl FeedConfig {
    fn paths_mut(&mut self) -> [&mut PathBuf; 2] {
        [&mut self.folder, &mut self.file]
    }

    /// Where it would write over what another feed writes.
    pub(crate) fn shares_with(&self, other: &Self) -> Option<(&'static str, &'static str)> {
        let is_same =
            |path: &PathBuf, others: &PathBuf| !path.as_os_str().is_empty() && path == others;
        match (self.kind, other.kind) {
            (FeedKind::Batch, FeedKind::Batch)
                if self.name == other.name && is_same(&self.folder, &other.folder) =>
            {
                Some((
                    "folder",
                    "another feed of this name writes batches there: give each its own directory",
                ))
            }
            (FeedKind::File, FeedKind::File) if is_same(&self.file, &other.file) => {
                Some(("file", "another feed writes to it: give each its own file"))
            }
            _ => None,
        }
    }

    /// What its kind needs and is not there.
    fn missing(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            FeedKind::Program if self.program.trim().is_empty() => Some((
                "program",
                "`kind = \"program\"` needs the path of one, as in \"/usr/local/bin/archive --news\"",
            )),
            FeedKind::File if self.file.as_os_str().is_empty() => {
                Some(("file", "`kind = \"file\"` needs the path of one"))
            }
            _ => None,
        }
    }
}

impl Default for FeedConfig {
    fn default() -> Self {
        Self {
            name: "all".to_owned(),
            groups: "*".to_owned(),
            distributions: "*".to_owned(),
            not_through: Vec::new(),
            octets_min: 0,
            octets_max: 0,
            groups_max: 0,
            content: FeedContent::Any,
            hops_max: 0,
            control: true,
            posted_only: false,
            hashfeed: String::new(),
            delay_s: 0,
            octets_per_s_max: 0,
            octets_per_day_max: 0,
            fresh_first: false,
            by_group: false,
            connections: 2,
            window: 128,
            articles_max: 2000,
            retry_s: 10,
            kind: FeedKind::Nntp,
            folder: PathBuf::new(),
            packing: Packing::Gzip,
            unpacker: "auto".to_owned(),
            batch_octets_max: 1_000_000,
            waiting_octets_max: 1_000_000_000,
            program: String::new(),
            program_s: 60,
            file: PathBuf::new(),
            form: FileForm::Batch,
        }
    }
}

/// Names of peers and feeds are words: they stand in a file and in commands.
pub(crate) fn is_word(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    // They name directories, too.
    (1..=NAME_OCTETS_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && !matches!(name, "." | "..")
}

/// The longest name of a peer or a feed.
pub(crate) const NAME_OCTETS_MAX: usize = 100;

/// What is wrong with the peers: key and what would be right.
#[must_use]
pub fn problems(peers: &[PeerConfig]) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut tell = |key: String, right: &str| problems.push((key, right.to_owned()));
    let word = "a name of letters, digits, dots and hyphens, at most 100";
    for (at, peer) in peers.iter().enumerate() {
        let before = peers.get(..at).unwrap_or_default();
        let peers_before = before;
        if !is_word(&peer.name) {
            tell(format!("[{at}].name"), word);
        } else if before.iter().any(|other| other.name == peer.name) {
            tell(
                format!("[{at}].name"),
                "another peer has this name: give each its own",
            );
        }
        for (key, why) in peer.reached_by() {
            tell(format!("[{at}].{key}"), &why);
        }
        for (key, why) in peer.known_by() {
            tell(format!("[{at}].{key}"), &why);
        }
        for (place, feed) in peer.feed.iter().enumerate() {
            let before = peer.feed.get(..place).unwrap_or_default();
            if !is_word(&feed.name) {
                tell(format!("[{at}].feed[{place}].name"), word);
            } else if before.iter().any(|other| other.name == feed.name) {
                tell(
                    format!("[{at}].feed[{place}].name"),
                    "another feed of this peer has this name: give each its own",
                );
            }
            if let Some((key, why)) = feed.missing() {
                tell(format!("[{at}].feed[{place}].{key}"), why);
            }
            if !feed.unpacker.is_empty() && !is_word(&feed.unpacker) {
                tell(format!("[{at}].feed[{place}].unpacker"), word);
            }
            if let Err((key, why)) = Filter::new(peer, feed) {
                tell(format!("[{at}].feed[{place}].{key}"), &why);
            }
            let others = before
                .iter()
                .chain(peers_before.iter().flat_map(|it| &it.feed));
            if let Some((key, why)) = others.clone().find_map(|other| feed.shares_with(other)) {
                tell(format!("[{at}].feed[{place}].{key}"), why);
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let peers: PeersConfig = toml::from_str(text).unwrap();
        let said = |(key, right): (String, String)| format!("{key}: {right}");
        problems(&peers.peer).into_iter().map(said).collect()
    }

    #[test]
    fn a_peer_needs_a_name_and_an_address_and_has_one_feed_of_everything() {
        let text = "[[peer]]\nname = 'b.example'\naddress = '[2001:db8::1]:119'";
        assert_eq!(check(text), [] as [&str; 0]);
        let peers: PeersConfig = toml::from_str(text).unwrap();
        assert_eq!(peers.peer[0].feed, [FeedConfig::default()]);
        let all = check("[[peer]]\nname = 'a b'\naddress = 'host'\n");
        assert_eq!(all.len(), 2, "{all:?}");
    }

    /// Two feeds with one directory had removed each other's batches, and two with one file written over each other's articles.
    #[test]
    fn no_two_feeds_write_to_one_place() {
        let peer = |name: &str, feed: &str| {
            format!("[[peer]]\nname = '{name}'\naddress = '192.0.2.1:119'\n[[peer.feed]]\n{feed}\n")
        };
        let batch = "kind = 'batch'\nfolder = '/b'";
        let file = "kind = 'file'\nfile = '/f'";
        for feed in [batch, file] {
            let found = check(&(peer("a", feed) + &peer("b", feed)));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("[1].feed[0].f"), "{found:?}");
            let other = feed.replace("/b", "/c").replace("/f", "/g");
            assert_eq!(
                check(&(peer("a", feed) + &peer("b", &other))),
                [] as [&str; 0]
            );
        }
        // Names of batches tell feeds apart.
        let other = format!("name = 'more'\n{batch}");
        assert_eq!(
            check(&(peer("a", batch) + &peer("b", &other))),
            [] as [&str; 0]
        );
    }

    #[test]
    fn the_pace_of_what_comes_is_that_of_all_its_connections() {
        let text = "[[peer]]\nname = 'a'\nfeed = []\nfrom_octets_per_s_max = 9\nfrom_articles_per_s_max = 7\n";
        let nobody = check(text);
        assert!(
            nobody.len() == 1 && nobody[0].contains("from_addresses"),
            "{nobody:?}"
        );
        let known = format!("{text}from_addresses = ['192.0.2.7']");
        assert_eq!(check(&known), [] as [&str; 0]);
        let peers: PeersConfig = toml::from_str(&known).unwrap();
        let rule = peers.peer[0].access(&Hosts::default()).unwrap();
        assert_eq!(
            (rule.octets_per_s_of_all_max, rule.articles_per_s_of_all_max),
            (9, 7)
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        let text = "[[peer]]\nname = 'b'\naddress = 'h:119'\n[[peer.feed]]\nname = 'x'\ngroups = ''\n\
                    [[peer.feed]]\nname = 'x'\ndistributions = '['\n[[peer.feed]]\nname = 'y'\nhashfeed = '3/2'\n\
                    [[peer]]\nname = 'b'\naddress = ':119'";
        let all = check(text);
        let keys: Vec<&str> = all.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(
            keys,
            [
                "[0].feed[0].groups",
                "[0].feed[1].name",
                "[0].feed[1].distributions",
                "[0].feed[2].hashfeed",
                "[1].name",
                "[1].address"
            ],
            "{all:?}"
        );
    }

    #[test]
    fn what_is_of_no_use_without_another_key_is_told() {
        let keys = |more: &str| {
            let all = check(&format!("[[peer]]\nname = 'b'\naddress = 'h:119'\n{more}"));
            let keys = all.iter().filter_map(|it| it.split(':').next());
            keys.map(|key| key.trim_start_matches("[0].").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            keys("tls = 'starttls'\nauthority = 'ca.pem'\ncompress = true"),
            [""; 0]
        );
        assert_eq!(
            keys("tls = 'implicit'\ncertificate = 'a'\nkey = 'b'\nuser = 'u'\npassword_file = 'f'"),
            [""; 0]
        );
        assert_eq!(keys("authority = 'ca.pem'"), ["authority"]);
        assert_eq!(keys("tls = 'implicit'\nkey = 'b'"), ["certificate"]);
        assert_eq!(
            keys("user = 'a b'\nbind = 'here'"),
            ["bind", "user", "user"]
        );
        assert_eq!(keys("password_file = 'f'"), ["user"]);
    }
}
