//! The configuration: every crate's section put together, from defaults, a file and the command line.
//!
//! Two stages: a file is first read against the table of keys ([`read`]), which finds all that is wrong at once; what is
//! sound becomes a [`Config`], whose values are resolved (octets, seconds, absolute paths).  Only the app reads files.

mod access;
mod across;
mod doubtful_access;
mod doubtful_store;
mod doubts;
mod entries;
mod explain;
mod fixed;
mod limits;
mod live;
mod named;
mod own;
mod places;
mod problem;
mod read;
mod reference;
mod schema;
mod units;
mod usual;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use newsreel_cache::{CacheConfig, CensorRule, UpstreamConfig};
use newsreel_engine::{
    ArticlesConfig, ControlConfig, EngineConfig, ExpireConfig, ExpireRule, ExpiryConfig,
    ScrubConfig, SequencerConfig,
};
use newsreel_feed::{FeedsConfig, PeerConfig, PullConfig};
use newsreel_filter::{FilterConfig, FilterRule};
use newsreel_index::IndexConfig;
use newsreel_journal::JournalConfig;
use newsreel_net::access::{AccessRule, LoginConfig, Rules};
use newsreel_net::{ListenConfig, TlsConfig};
use newsreel_service::posting::{ModerationConfig, PostingConfig};
use newsreel_session::{ListsConfig, SessionConfig};
use newsreel_store::StoreConfig;
use newsreel_wire::Wildmat;
use serde::de::DeserializeOwned;

use self::across::Derived;
pub(crate) use self::across::resized;
pub(crate) use self::explain::{explain, shown};
pub(crate) use self::live::is_live;
pub(crate) use self::named::warnings;
pub(crate) use self::own::{Clients, LogFormat, LoggingConfig, METRICS, ServerConfig};
use self::places::Places;
pub(crate) use self::problem::{Problem, Problems};
pub(crate) use self::reference::reference;
pub(crate) use self::units::Unit;
pub(crate) use self::usual::{HELP, HELP_OFFLINE, HELP_WITH_DIRECTORY, HELP_WITH_SPOOL};
use crate::input::{self, Input};

/// Keys that a table in a list cannot do without.
const REQUIRED: &[&str] = &[
    "buffer.name",
    "buffer.octets",
    "set.name",
    "rule.set",
    "access.name",
    "filter.name",
    "peer.name",
    "pull.name",
    "pull.address",
    "upstream.address",
    "censor.matches",
];

/// The key by which a running server is found.
const SPOOL: &str = "server.spool";

/// The largest configuration file that is read.
const FILE_OCTETS_MAX: usize = 4 << 20;

/// A section of the configuration, whichever crate it belongs to.
trait Section {
    /// What is wrong with its values beyond the limits of single numbers: key and what would be right.
    fn complaints(&self) -> Vec<(String, String)>;
}

/// What a section complains of.
#[derive(Debug)]
struct Complaint {
    key: String,
    right: String,
    /// The key from which it follows too.
    follows: Option<&'static str>,
}

fn owned(problems: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    problems
        .into_iter()
        .map(|(key, right)| (key.to_owned(), right))
        .collect()
}

macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident: $type:ty, |$section:ident| $complaints:expr;)+) => {
        /// Everything that can be set.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub(crate) struct Config {
            /// The file it came from, if any.
            pub(crate) file: Option<PathBuf>,
            /// Which values follow from what somebody wrote.
            pub(crate) derived: Derived,
            /// Where what is written stands.
            pub(crate) places: Places,
            /// `[[buffer]]`, `[[set]]`, `[[rule]]`
            pub(crate) store: StoreConfig,
            $($(#[$doc])* pub(crate) $name: $type,)+
        }

        $(impl Section for $type {
            fn complaints(&self) -> Vec<(String, String)> {
                let $section = self;
                $complaints
            }
        })+

        impl Config {
            fn from_values(mut values: toml::Table, complaints: &mut Vec<Complaint>) -> Self {
                $(let $name: $type =
                    section(stringify!($name), values.remove(stringify!($name)), complaints);)+
                Self {
                    file: None,
                    derived: Derived::default(),
                    places: Places::default(),
                    store: store(values, complaints),
                    $($name,)+
                }
            }

            /// All values as they are in force.
            pub(crate) fn values(&self) -> Result<toml::Table> {
                let mut values = toml::Table::try_from(&self.store)?;
                $(values.insert(stringify!($name).to_owned(), toml::Value::try_from(&self.$name)?);)+
                Ok(values)
            }
        }
    };
}

sections! {
    /// `[server]`
    server: ServerConfig, |server| owned(server.problems());
    /// `[logging]`
    logging: LoggingConfig, |logging| owned(logging.problems());
    /// `[listen]`
    listen: ListenConfig, |listen| listen.problems();
    /// `[tls]`
    tls: TlsConfig, |_tls| Vec::new();
    /// `[session]`
    session: SessionConfig, |session| owned(session.problems());
    /// `[lists]`
    lists: ListsConfig, |lists| lists.problems();
    /// `[login]`
    login: LoginConfig, |_login| Vec::new();
    /// `[[access]]`
    access: Vec<AccessRule>, |access| Rules::parse(access).err().unwrap_or_default();
    /// `[[peer]]`
    peer: Vec<PeerConfig>, |peer| newsreel_feed::problems(peer);
    /// `[feeds]`
    feeds: FeedsConfig, |_feeds| Vec::new();
    /// `[[pull]]`
    pull: Vec<PullConfig>, |pull| newsreel_feed::pull_problems(pull);
    /// `[cache]`
    cache: CacheConfig, |cache| cache_complaints(cache);
    /// `[[upstream]]`
    upstream: Vec<UpstreamConfig>, |upstream| newsreel_cache::problems(upstream);
    /// `[[censor]]`
    censor: Vec<CensorRule>, |censor| newsreel_cache::censor_problems(censor);
    /// `[articles]`
    articles: ArticlesConfig, |articles| article_complaints(articles);
    /// `[[filter]]`
    filter: Vec<FilterRule>, |filter| FilterConfig::problems(filter);
    /// `[posting]`
    posting: PostingConfig, |posting| owned(posting.problems());
    /// `[moderation]`
    moderation: ModerationConfig, |moderation| owned(moderation.problems());
    /// `[control]`
    control: ControlConfig, |control| owned(control.problems());
    /// `[engine]`
    engine: SequencerConfig, |engine| engine_complaints(engine);
    /// `[scrub]`
    scrub: ScrubConfig, |_scrub| Vec::new();
    /// `[[expire]]`
    expire: Vec<ExpireRule>, |expire| ExpireConfig::problems(expire);
    /// `[expiry]`
    expiry: ExpiryConfig, |_expiry| Vec::new();
    /// `[log]`
    log: JournalConfig, |log| owned(log.problems());
    /// `[index]`
    index: IndexConfig, |index| index.problems().iter().map(|text| split(text)).collect();
}

/// `key: what would be right`, in two.
fn split(text: &str) -> (String, String) {
    let (key, right) = text.split_once(": ").unwrap_or(("", text));
    (key.to_owned(), right.to_owned())
}

fn cache_complaints(cache: &CacheConfig) -> Vec<(String, String)> {
    let mut all = owned(cache.problems());
    for forwarded in cache.forwarded() {
        let mut own = newsreel_session::commands::TABLE.iter();
        if own.any(|spec| *spec.name == *forwarded.verb) {
            let verb = &forwarded.verb;
            let right = format!(
                "{verb} is answered by this server itself, and never passed on: take it out"
            );
            all.push(("forward".to_owned(), right));
        }
    }
    all
}

fn article_complaints(articles: &ArticlesConfig) -> Vec<(String, String)> {
    match Wildmat::parse(&articles.accept) {
        Ok(_) => Vec::new(),
        Err(error) => vec![("accept".to_owned(), error.to_string())],
    }
}

fn engine_complaints(engine: &SequencerConfig) -> Vec<(String, String)> {
    let name = &engine.path_identity;
    if name.is_empty() || newsreel_wire::path::identity_is_valid(name) {
        return Vec::new();
    }
    let right = "a host name such as news.example.org, or nothing for the machine's own name";
    vec![("path_identity".to_owned(), right.to_owned())]
}

impl Config {
    /// What the engine needs to open the spool.
    pub(crate) fn engine_config(&self) -> EngineConfig {
        EngineConfig {
            store: self.store.clone(),
            articles: self.articles.clone(),
            sequencer: self.engine.clone(),
            scrub: self.scrub.clone(),
            expire: self.expire.clone(),
            expiry: self.expiry.clone(),
            index: self.index.clone(),
            journal: self.log.clone(),
            posting: self.posting.clone(),
            moderation: self.moderation.clone(),
            control: self.control.clone(),
            ..EngineConfig::new(self.server.spool.clone())
        }
    }
}

/// One section from its values, with its complaints; what serde refuses is told with the section's name.
fn section<T: Section + DeserializeOwned + Default>(
    name: &str,
    value: Option<toml::Value>,
    complaints: &mut Vec<Complaint>,
) -> T {
    let Some(value) = value else {
        return T::default();
    };
    let complaint = |key, right| Complaint {
        key,
        right,
        follows: None,
    };
    match value.try_into::<T>() {
        Ok(section) => {
            let own = section.complaints().into_iter();
            // A key of an entry of a list begins with its place.
            let dot = |key: &str| if key.starts_with('[') { "" } else { "." };
            complaints.extend(
                own.map(|(key, right)| complaint(format!("{name}{}{key}", dot(&key)), right)),
            );
            section
        }
        Err(error) => {
            complaints.push(complaint(name.to_owned(), error.message().to_owned()));
            T::default()
        }
    }
}

/// The store's lists.  Buffers without a set are one set, and a single set without a rule takes everything.
fn store(values: toml::Table, complaints: &mut Vec<Complaint>) -> StoreConfig {
    if values.is_empty() {
        return StoreConfig::default();
    }
    let mut store: StoreConfig = match values.try_into() {
        Ok(store) => store,
        Err(error) => {
            complaints.push(Complaint {
                key: String::new(),
                right: error.message().to_owned(),
                follows: None,
            });
            return StoreConfig::default();
        }
    };
    let usual = StoreConfig::default();
    if store.buffers.is_empty() && store.sets.is_empty() {
        store.buffers = usual.buffers;
    }
    if store.sets.is_empty() {
        store.sets = usual.sets;
        for set in &mut store.sets {
            set.buffers.clear();
            for buffer in &store.buffers {
                // A name that is there twice is told at the buffer, not at a set that nobody wrote.
                if !set.buffers.contains(&buffer.name) {
                    set.buffers.push(buffer.name.clone());
                }
            }
        }
    }
    if let ([set], []) = (store.sets.as_slice(), store.rules.as_slice()) {
        store.rules = usual.rules;
        for rule in &mut store.rules {
            rule.set.clone_from(&set.name);
        }
    }
    let problems = store.problems().into_iter();
    complaints.extend(problems.map(|problem| Complaint {
        key: problem.key,
        right: problem.right,
        follows: problem.follows,
    }));
    store
}

/// Reads the file that is meant, or a pipe, or takes the defaults without one; `spool` is what `--spool` said.
pub(crate) fn load(file: Option<&Path>, spool: Option<&Path>) -> Result<Config> {
    let (config, problems) = look_for(file, spool)?;
    problems.none_or(config)
}

/// The same, and says what is wrong with it.
pub(crate) fn look_for(file: Option<&Path>, spool: Option<&Path>) -> Result<(Config, Problems)> {
    match meant(file, spool) {
        Some(file) => look(&file),
        None => Ok((Config::default(), Problems::default())),
    }
}

/// The file that is meant, if one is.
pub(crate) fn meant(file: Option<&Path>, spool: Option<&Path>) -> Option<PathBuf> {
    usual::meant(file, usual::OF_SERVERS, spool.is_some())
}

/// The same for caches, whose place `--directory` says.
pub(crate) fn load_of_cache(file: Option<&Path>, directory: Option<&Path>) -> Result<Config> {
    match usual::meant(file, usual::OF_CACHES, directory.is_some()) {
        Some(file) => {
            let (config, problems) = look(&file)?;
            problems.none_or(config)
        }
        None => Ok(Config::default()),
    }
}

/// Reads what a server noted that it ran with: every value is in it, and those that a buffer of another size leaves less room give way.
pub(crate) fn load_noted(file: &Path) -> Result<Config> {
    let (config, problems) = look_as(file, Origin::Noted)?;
    problems.none_or(config)
}

/// Reads a file or a pipe, and says what is wrong with it; what could not be read is as it would be without it.
pub(crate) fn look(file: &Path) -> Result<(Config, Problems)> {
    look_as(file, Origin::Written)
}

fn look_as(file: &Path, origin: Origin) -> Result<(Config, Problems)> {
    let about = || format!("the configuration file {}", file.display());
    let Input { octets, is_stream } = input::read(file, FILE_OCTETS_MAX).with_context(about)?;
    let (mut config, mut problems) = from_octets(octets, file, origin)?;
    if is_stream {
        // It lies nowhere and is gone now: paths count from here, and nothing is read again.
        let here = std::path::absolute(".")?;
        at_home(&mut config, &here);
    } else {
        config = settled(config, file)?;
    }
    if origin == Origin::Written {
        find_shared_places(&config, &mut problems);
    }
    Ok((config, problems))
}

/// Reads a file again while the server runs, where it is a file: no pipe that somebody has still to write to.  The disk is asked, also where
/// feeds write to: on a thread that may wait.
pub(crate) fn load_again(file: &Path) -> Result<Config> {
    let octets = newsreel_host::read_whole(&newsreel_host::RealDisk, file, FILE_OCTETS_MAX)
        .with_context(|| format!("the configuration file {}", file.display()))?;
    if says_nothing(&octets) {
        anyhow::bail!(
            "the configuration file {} is empty, as while it is being written: say SIGHUP again when it is whole (a comment is \
             enough where only defaults are wanted)",
            file.display()
        );
    }
    let (config, mut problems) = from_octets(octets, file, Origin::Written)?;
    let config = settled(config, file)?;
    find_shared_places(&config, &mut problems);
    problems.none_or(config)
}

/// Finds feeds that write to one place under two names of it; those under one are told already.
fn find_shared_places(config: &Config, problems: &mut Problems) {
    let disk = &newsreel_host::RealDisk;
    let shared = newsreel_feed::shared_places(&config.peer, disk, &config.server.spool);
    let problem = |(key, right): (String, String)| {
        let key = format!("peer{key}");
        let (line, column) = config.places.of(&key);
        let what = format!("{key} is not as it must be");
        Problem {
            line,
            column,
            what: entries::in_words(&what, &config.store),
            right,
        }
    };
    problems.list.extend(shared.into_iter().map(problem));
    problems.list.sort();
    problems.list.dedup();
}

/// Whether a file has nothing but white space, behind a mark of its encoding perhaps.
fn says_nothing(octets: &[u8]) -> bool {
    let text = octets.strip_prefix("\u{feff}".as_bytes());
    text.unwrap_or(octets).trim_ascii().is_empty()
}

/// Who made a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Somebody who meant every value.
    Written,
    /// A server, which had made sure that it fits.
    Noted,
}

fn from_octets(octets: Vec<u8>, file: &Path, origin: Origin) -> Result<(Config, Problems)> {
    let text = String::from_utf8(octets)
        .with_context(|| format!("the configuration file {} is not UTF-8", file.display()))?;
    Ok(parsed(&text, &file.display().to_string(), origin))
}

/// A configuration that came from a file, and goes on to be there.
fn settled(mut config: Config, file: &Path) -> Result<Config> {
    let file = std::path::absolute(file)?;
    if let Some(folder) = file.parent() {
        at_home(&mut config, folder);
    }
    config.file = Some(file);
    Ok(config)
}

/// Makes paths count from a directory.
fn at_home(config: &mut Config, folder: &Path) {
    config.server.spool = folder.join(&config.server.spool);
    config.cache.directory = folder.join(&config.cache.directory);
    let tls = &mut config.tls;
    let own = [&mut tls.certificate, &mut tls.key, &mut tls.clients];
    let peers = config.peer.iter_mut().flat_map(PeerConfig::paths_mut);
    let upstreams = config
        .upstream
        .iter_mut()
        .flat_map(UpstreamConfig::paths_mut);
    let pulls = config.pull.iter_mut().flat_map(PullConfig::paths_mut);
    let elsewhere = peers.chain(pulls).chain(upstreams);
    for path in own.into_iter().chain(&mut tls.more).chain(elsewhere) {
        if !path.as_os_str().is_empty() {
            *path = folder.join(&path);
        }
    }
    let buffers = config.store.buffers.iter_mut();
    let paths = buffers.filter_map(|buffer| buffer.path.as_mut());
    let sets = config.store.sets.iter_mut();
    let of_sets = sets.flat_map(|set| set.directory.iter_mut().chain(&mut set.file));
    for path in paths.chain(of_sets) {
        *path = folder.join(&path);
    }
}

/// Reads a text; `name` is the file's name in messages.
pub(crate) fn parse(text: &str, name: &str) -> Result<Config, Problems> {
    let (config, problems) = parsed(text, name, Origin::Written);
    match problems.list.is_empty() {
        true => Ok(config),
        false => Err(problems),
    }
}

/// The same, with what is sound of it in any case.
fn parsed(text: &str, name: &str, origin: Origin) -> (Config, Problems) {
    let mut found = read::read(text);
    let is_spool_told = !found.is_unsound(SPOOL);
    let is_spool_known = is_spool_told && (!found.is_torn || found.places.contains_key(SPOOL));
    let mut complaints = Vec::new();
    let mut config = Config::from_values(std::mem::take(&mut found.values), &mut complaints);
    let mut list = std::mem::take(&mut found.problems);
    // A value that could not be read is missing now; what follows from that is not told.
    let broken = !list.is_empty();
    complaints.retain(|Complaint { key, follows, .. }| {
        // A list whose entries are wrong is not also too short.
        let is_read = !found.unsound.contains(key);
        let is_sound = !follows.is_some_and(|from| found.is_torn || found.is_unsound(from));
        is_read
            && is_sound
            && (!broken || found.places.contains_key(key) || found.is_entry_sound(key))
    });
    if !found.is_torn {
        let mut unsound = std::mem::take(&mut found.unsound);
        unsound.extend(complaints.iter().map(|complaint| complaint.key.clone()));
        match origin {
            Origin::Written => {
                list.extend(across::settle(&mut config, &found.places, &unsound));
            }
            // As defaults do.
            Origin::Noted => drop(across::settle(&mut config, &BTreeMap::new(), &unsound)),
        }
    }
    for Complaint { key, right, .. } in complaints {
        let (line, column) = places::nearest(&found.places, &key);
        list.push(Problem {
            line,
            column,
            what: format!("{key} is not as it must be"),
            right,
        });
    }
    for problem in &mut list {
        problem.what = entries::in_words(&problem.what, &config.store);
        problem.right = entries::in_words(&problem.right, &config.store);
    }
    list.sort();
    config.places = Places::new(found.places);
    let file = name.to_owned();
    let problems = Problems {
        file,
        list,
        is_spool_known,
    };
    (config, problems)
}

#[cfg(test)]
mod tests;
