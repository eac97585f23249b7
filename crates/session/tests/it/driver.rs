//! Transcripts over the memory service: everything in one process, on a paused clock.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use newsreel_net::access::{
    AccessConfig, Counted, Credentials, Door, Gate, Grant, LoginConfig, Logins, Rules, ScramKeys,
    User, Who,
};
use newsreel_net::{Drain, Stream, Tls, TlsFiles};
use newsreel_service::memory::{MemoryConfig, MemoryService, Trouble};
use newsreel_service::posting::{ModerationConfig, PostingClients};
use newsreel_service::{Connection, ConnectionId, Defer, Features, NewsService, Outcome};
use newsreel_session::{Lists, ListsConfig, Metrics, SessionConfig, Shared, serve};
use newsreel_testkit::transcript::Action;
use newsreel_testkit::{CLOCK_START_S, Driver, Setup, Support, certificate, read_article};
use newsreel_wire::{ArticleNumber, UnixTime};
use ring::{digest, hmac, pbkdf2};
use tokio::io::{DuplexStream, duplex};

/// Octets between client and session that are under way.
const PIPE_BYTES: usize = 64 << 10;

/// How long a handshake of TLS may take, seconds.
pub(crate) const HANDSHAKE_S: u64 = 20;

/// Where all connections come from.
pub(crate) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Users, their passwords in clear, and their groups.
#[derive(Debug, Default)]
struct KnownUsers(Mutex<HashMap<String, (String, Vec<String>)>>);

impl Logins for KnownUsers {
    fn may_be_any(&self) -> bool {
        !self.0.lock().unwrap().is_empty()
    }

    fn ask_program(&self, _: &LoginConfig, _: &Credentials) -> Result<Option<User>, String> {
        Ok(None)
    }

    fn check(&self, said: &Credentials) -> Result<Option<User>, String> {
        let users = self.0.lock().unwrap();
        let found = users
            .get(&said.name)
            .filter(|(theirs, _)| *theirs == said.password);
        Ok(found.map(|(_, groups)| User {
            name: said.name.clone(),
            groups: groups.clone(),
        }))
    }

    fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String> {
        let users = self.0.lock().unwrap();
        let (password, groups) = users.get(name).cloned().unwrap_or_default();
        let (salt, rounds) = (b"salt".to_vec(), NonZeroU32::MIN);
        let mut salted = [0; 32];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, rounds, &salt, password.as_bytes(), &mut salted);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let key_of = |what: &[u8]| hmac::sign(&key, what);
        let stored = digest::digest(&digest::SHA256, key_of(b"Client Key").as_ref());
        let keys = ScramKeys {
            salt,
            iterations: rounds.get(),
            stored: stored.as_ref().try_into().unwrap(),
            server: key_of(b"Server Key").as_ref().try_into().unwrap(),
        };
        let user = users.contains_key(name).then(|| User {
            name: name.to_owned(),
            groups,
        });
        Ok((keys, user))
    }

    fn vouched(&self, name: &str) -> Result<Option<User>, String> {
        let users = self.0.lock().unwrap();
        let (_, groups) = users.get(name).cloned().unwrap_or_default();
        Ok(Some(User {
            name: name.to_owned(),
            groups,
        }))
    }
}

fn who() -> Who {
    Who {
        address: ADDRESS,
        listen: None,
        is_tls: false,
        certificate: Vec::new(),
        user: None,
    }
}

pub(crate) struct MemoryDriver {
    pub(crate) service: Arc<MemoryService>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) drain: Drain,
    shared: Arc<Shared>,
    connections: u64,
    /// What may be done without rules.
    pub(crate) grant: Grant,
    gate: Option<Arc<Gate>>,
    users: Arc<KnownUsers>,
}

impl MemoryDriver {
    pub(crate) fn new(session: SessionConfig, memory: MemoryConfig, lists: &ListsConfig) -> Self {
        assert_eq!(session.problems(), []);
        assert_eq!(lists.problems(), []);
        let lists = Lists::new(lists, &memory.moderators);
        let metrics = Arc::new(Metrics::default());
        let everything = Grant::everything("memory");
        Self {
            grant: match memory.posting.clients {
                PostingClients::Loopback => everything,
                PostingClients::Nobody => Grant {
                    post: None,
                    ..everything
                },
            },
            gate: None,
            users: Arc::default(),
            service: Arc::new(MemoryService::new(memory, UnixTime(CLOCK_START_S))),
            shared: Shared::new(session, lists, metrics.clone()),
            metrics,
            drain: Drain::new(),
            connections: 0,
        }
    }

    /// A connection to a session of its own.
    pub(crate) fn open(&mut self) -> DuplexStream {
        let (ours, theirs) = duplex(PIPE_BYTES);
        self.connections += 1;
        let connection = Connection::new(ConnectionId(self.connections), Some(ADDRESS), None);
        let (service, shared) = (self.service.clone(), self.shared.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(serve(
            Stream::Plain(theirs),
            service,
            shared,
            connection,
            self.door(),
            self.drain.watch(),
        ));
        ours
    }

    fn door(&self) -> Door {
        match &self.gate {
            Some(gate) => gate.enter(who()).unwrap(),
            None => Door::open(self.grant.clone(), ADDRESS),
        }
    }

    fn inject(
        &self,
        id: &str,
        groups: &[(String, Option<u64>)],
        wire: &[u8],
    ) -> anyhow::Result<()> {
        for (group, number) in groups {
            if let Some(number) = number {
                self.service.raise(group, *number);
            }
        }
        match self.service.inject(id.as_bytes(), wire) {
            Outcome::Accepted => Ok(()),
            other => anyhow::bail!("{id} got {other:?}"),
        }
    }
}

fn trouble(words: &[String]) -> Option<Trouble> {
    let full = Outcome::Deferred(Defer::Full);
    Some(match words.first()?.as_str() {
        "none" => Trouble::default(),
        "full" => Trouble {
            transfers: Some(full),
            ..Trouble::default()
        },
        "failed" => Trouble {
            transfers: Some(Outcome::Failed),
            ..Trouble::default()
        },
        "lists" => Trouble {
            lists_fail_from: Some(ArticleNumber(0)),
            ..Trouble::default()
        },
        "read" => Trouble {
            reads_fail: true,
            ..Trouble::default()
        },
        _ => return None,
    })
}

impl Driver for MemoryDriver {
    type Io = DuplexStream;

    async fn start(&mut self, setup: &Setup) -> anyhow::Result<Support> {
        let mut session = SessionConfig::default();
        let mut memory = MemoryConfig::default();
        let mut rules = None;
        let mut sections = [const { String::new() }; 5];
        let mut tls = None;
        for (key, value) in &setup.config {
            if key == "access" {
                let access: AccessConfig = toml::from_str(&format!("{key} = {value}"))?;
                rules =
                    Some(Rules::parse(&access.access).map_err(|why| anyhow::anyhow!("{why:?}"))?);
                continue;
            }
            if key.starts_with("tls.") {
                let [(_, certificate), (_, key), (_, clients)] = certificate()?.files();
                let mut keys = setup.config.iter().map(|(key, _)| key);
                let files = TlsFiles {
                    certificate: certificate.as_bytes(),
                    key: key.as_bytes(),
                    more: &[],
                    clients: keys
                        .any(|key| key == "tls.clients")
                        .then_some(clients.as_bytes()),
                };
                let made = Tls::from_files(&files, HANDSHAKE_S);
                tls = Some(Arc::new(made.map_err(|(_, why)| anyhow::Error::msg(why))?));
                continue;
            }
            let known = ["session.", "posting.", "moderation.", "lists.", "login."];
            let found = known.iter().zip(&mut sections);
            let mut found = found.filter_map(|(name, text)| Some((key.strip_prefix(name)?, text)));
            let Some((key, text)) = found.next() else {
                return Ok(Support::Cannot(format!(
                    "the memory service has no setting {key}"
                )));
            };
            text.push_str(&format!("{key} = {value}\n"));
        }
        if !sections[0].is_empty() {
            session = toml::from_str(&sections[0])?;
        }
        memory.posting = toml::from_str(&sections[1])?;
        let moderation: ModerationConfig = toml::from_str(&sections[2])?;
        memory.moderators = moderation.moderators;
        let lists: ListsConfig = toml::from_str(&sections[3])?;
        match setup
            .mode
            .as_deref()
            .map(|mode| mode.split(' ').next().unwrap_or_default())
        {
            None => {}
            Some("transit") => {
                memory.features = Features {
                    reader: false,
                    transit: true,
                    newnews: false,
                    over_by_id: false,
                    posting: false,
                };
            }
            Some(mode) => return Ok(Support::Cannot(format!("no mode {mode} in memory"))),
        }
        *self = Self::new(session, memory, &lists);
        if let Some(rules) = rules {
            let counted = Counted::new(Some(self.users.clone()));
            let gate = Gate::new(rules, toml::from_str(&sections[4])?, counted, tls);
            if gate.enter(who()).is_err()
                || setup
                    .config
                    .iter()
                    .any(|(key, value)| value.contains("connections_") || key == "login.ban_s")
            {
                return Ok(Support::Cannot(
                    "who may connect is not held in memory".to_owned(),
                ));
            }
            self.gate = Some(gate);
        }
        Ok(Support::Done)
    }

    async fn connect(&mut self, _name: &str) -> anyhow::Result<DuplexStream> {
        Ok(self.open())
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        match action {
            Action::Group {
                name,
                status,
                description,
            } => {
                self.service.add_group(name, status, description);
            }
            Action::Article { id, groups, file } => {
                self.inject(id, groups, &read_article(file)?)?;
            }
            Action::User {
                name,
                password,
                groups,
            } => {
                let user = (password.clone(), groups.clone());
                self.users.0.lock().unwrap().insert(name.clone(), user);
            }
            Action::Stop => self.drain.start(),
            Action::Clock(now) => self.service.set_now(UnixTime(*now)),
            Action::Advance(by) => {
                let now = self.service.now().0 + by.as_secs();
                self.service.set_now(UnixTime(now));
            }
            Action::Fault(words) => match trouble(words) {
                Some(trouble) => self.service.set_trouble(trouble),
                None => return Ok(Support::Cannot(format!("no fault {words:?} in memory"))),
            },
            other => return Ok(Support::Cannot(format!("no {other:?} in memory"))),
        }
        // What a client did before is done before what it does next, also on another connection.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Support::Done)
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
