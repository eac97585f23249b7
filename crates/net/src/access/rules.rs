//! Which entry of `[[access]]` fits whom, and what it grants.
//!
//! A pure function of the entries and of who is there, so that `newsreel access explain` says what the server does.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use newsreel_wire::Wildmat;

use super::config::{AccessRule, LIST_KEYWORDS};
use super::login::User;
use super::network::Network;

/// Whom an entry is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Where the connection comes from.
    pub address: IpAddr,
    /// Which of our addresses it came to; none: it is not known.
    pub listen: Option<SocketAddr>,
    /// Whether it is over TLS.
    pub is_tls: bool,
    /// The names in the certificate it was shown by; none: it was shown none.
    pub certificate: Vec<String>,
    /// Who has logged in.
    pub user: Option<User>,
}

/// What somebody may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The entry it comes from.
    pub name: String,
    /// The configured peer that it is for.
    pub peer: Option<String>,
    /// Groups that may be read; none: no group.
    pub read: Option<Wildmat>,
    /// Groups that may be posted to; none: posting is not permitted.
    pub post: Option<Wildmat>,
    /// Whether posts may be approved.
    pub approve: bool,
    /// Whether articles of others may be sent.
    pub feed: bool,
    /// Whether NEWNEWS may be asked.
    pub newnews: bool,
    /// Whether groups may be listed.
    pub list: bool,
    /// Variants of LIST that may not be asked all the same.
    pub list_not: Vec<String>,
    /// Octets sent and taken in a second; 0: any number.
    pub octets_per_s_max: u64,
    /// Commands taken in a second; 0: any number.
    pub commands_per_s_max: u32,
    /// Octets sent to and taken from one address in a second; 0: any number.
    pub octets_per_s_per_address_max: u64,
    /// Commands taken in a second from one address; 0: any number.
    pub commands_per_s_per_address_max: u32,
    /// Octets sent to and taken from one user in a second; 0: any number.
    pub octets_per_s_per_user_max: u64,
    /// Commands taken in a second from one user; 0: any number.
    pub commands_per_s_per_user_max: u32,
    /// Octets sent to and taken from all whom it is for in a second, together; 0: any number.
    pub octets_per_s_of_all_max: u64,
    /// Articles of others taken from all whom it is for in a second, together; 0: any number.
    pub articles_per_s_of_all_max: u32,
    /// Connections of all whom it is for; 0: any number.
    pub connections_max: u32,
    /// Connections from one address; 0: any number.
    pub connections_per_address_max: u32,
    /// Connections of one user; 0: any number.
    pub connections_per_user_max: u32,
}

impl Grant {
    /// Nothing: for who has to log in first, or is for no entry then.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            read: None,
            post: None,
            approve: false,
            feed: false,
            newnews: false,
            list: false,
            ..Self::everything("nobody")
        }
    }

    /// Everything.
    #[must_use]
    pub fn everything(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            peer: None,
            read: Wildmat::parse("*").ok(),
            post: Wildmat::parse("*").ok(),
            approve: true,
            feed: true,
            newnews: true,
            list: true,
            list_not: Vec::new(),
            octets_per_s_max: 0,
            commands_per_s_max: 0,
            octets_per_s_per_address_max: 0,
            commands_per_s_per_address_max: 0,
            octets_per_s_per_user_max: 0,
            commands_per_s_per_user_max: 0,
            octets_per_s_of_all_max: 0,
            articles_per_s_of_all_max: 0,
            connections_max: 0,
            connections_per_address_max: 0,
            connections_per_user_max: 0,
        }
    }

    /// Whether a variant of LIST may not be asked.
    #[must_use]
    pub fn refuses_list(&self, keyword: &[u8]) -> bool {
        let mut refused = self.list_not.iter();
        refused.any(|word| word.as_bytes().eq_ignore_ascii_case(keyword))
    }

    /// Whether a group may be read.
    #[must_use]
    pub fn reads(&self, group: &str) -> bool {
        self.read.as_ref().is_some_and(|read| read.matches(group))
    }

    /// Whether every group may be read.
    #[must_use]
    pub fn reads_all(&self) -> bool {
        self.read.as_ref().is_some_and(Wildmat::matches_all)
    }

    /// Whether it has anything for readers or posters.
    #[must_use]
    pub const fn is_for_readers(&self) -> bool {
        self.read.is_some() || self.post.is_some()
    }
}

/// One entry, made ready.
#[derive(Debug)]
struct Rule {
    networks: Vec<Network>,
    listen: Vec<SocketAddr>,
    needs_tls: bool,
    certificates: Vec<String>,
    users: Vec<String>,
    grant: Arc<Grant>,
}

/// The entries, in their order.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Makes entries ready.
    ///
    /// # Errors
    /// Everything that is wrong with them, as `([entry].key, what would be right)`.
    pub fn parse(entries: &[AccessRule]) -> Result<Self, Vec<(String, String)>> {
        let mut problems = Vec::new();
        let mut rules = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let mut wrong =
                |key: &str, right: String| problems.push((format!("[{at}].{key}"), right));
            let mut before = entries.iter().take(at);
            if entry.name.is_empty() || before.any(|other| other.name == entry.name) {
                wrong("name", "give each entry a name of its own".to_owned());
            }
            let mut networks = Vec::with_capacity(entry.addresses.len());
            for (at, text) in entry.addresses.iter().enumerate() {
                match Network::parse(text) {
                    Some(network) => networks.push(network),
                    None => wrong(
                        &format!("addresses[{at}]"),
                        format!(
                            "{text:?} must be an address or network as in 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32, or local"
                        ),
                    ),
                }
            }
            are_names_right(entry, &mut wrong);
            let mut groups = |key: &str, text: &str| match Wildmat::parse(text) {
                _ if text.is_empty() => None,
                Ok(wildmat) => Some(wildmat),
                Err(why) => {
                    wrong(key, why.to_string());
                    None
                }
            };
            let (read, post) = (groups("read", &entry.read), groups("post", &entry.post));
            rules.push(Rule {
                networks,
                listen: entry.listen.clone(),
                needs_tls: entry.tls || !entry.certificates.is_empty(),
                certificates: entry.certificates.clone(),
                users: entry.users.clone(),
                grant: Arc::new(Grant {
                    name: entry.name.clone(),
                    peer: entry.peer.clone(),
                    read,
                    post,
                    approve: entry.approve,
                    feed: entry.feed,
                    newnews: entry.newnews,
                    list: entry.list,
                    list_not: entry.list_not.clone(),
                    octets_per_s_max: entry.octets_per_s_max,
                    commands_per_s_max: entry.commands_per_s_max,
                    octets_per_s_per_address_max: entry.octets_per_s_per_address_max,
                    commands_per_s_per_address_max: entry.commands_per_s_per_address_max,
                    octets_per_s_per_user_max: entry.octets_per_s_per_user_max,
                    commands_per_s_per_user_max: entry.commands_per_s_per_user_max,
                    octets_per_s_of_all_max: entry.octets_per_s_of_all_max,
                    articles_per_s_of_all_max: entry.articles_per_s_of_all_max,
                    connections_max: entry.connections_max,
                    connections_per_address_max: entry.connections_per_address_max,
                    connections_per_user_max: entry.connections_per_user_max,
                }),
            });
        }
        match problems.is_empty() {
            true => Ok(Self(rules)),
            false => Err(problems),
        }
    }

    /// What somebody may do; none: nothing, not even connect.
    #[must_use]
    pub fn find(&self, who: &Who) -> Option<&Arc<Grant>> {
        let rule = self.0.iter().find(|rule| rule.misfit(who).is_none())?;
        Some(&rule.grant)
    }

    /// Whether logging in could make an entry fit that grants what is wanted.
    #[must_use]
    pub fn login_helps(&self, who: &Who, wants: impl Fn(&Grant) -> bool) -> bool {
        let fit = |rule: &&Rule| rule.misplaced(who).is_none() && rule.uncertified(who).is_none();
        let is_last = |rule: &Rule| rule.users.is_empty() || rule.users.iter().any(|it| it == "*");
        let mut reached = up_to(self.0.iter().filter(fit), is_last);
        reached.any(|rule| !rule.users.is_empty() && wants(&rule.grant))
    }

    /// Whether an entry for users is here, reached or not.
    #[must_use]
    pub fn knows_users(&self, who: &Who) -> bool {
        let mut for_users = self.0.iter().filter(|rule| !rule.users.is_empty());
        for_users.any(|rule| rule.misplaced(who).is_none() && rule.uncertified(who).is_none())
    }

    /// Whether a certificate could make another entry fit.
    #[must_use]
    pub fn certificate_helps(&self, who: &Who) -> bool {
        let mut for_them = self.0.iter().filter(|rule| !rule.certificates.is_empty());
        for_them.any(|rule| rule.misplaced(who).is_none())
    }

    /// Whether TLS could make an entry fit that grants what is wanted, at once or after a login.
    #[must_use]
    pub fn tls_helps(&self, who: &Who, wants: impl Fn(&Grant) -> bool) -> bool {
        let secured = Who {
            is_tls: true,
            ..who.clone()
        };
        let fit = |rule: &&Rule| rule.misplaced(&secured).is_none();
        let is_last = |rule: &Rule| rule.users.is_empty() && rule.certificates.is_empty();
        let mut reached = up_to(self.0.iter().filter(fit), is_last);
        !who.is_tls && reached.any(|rule| rule.needs_tls && wants(&rule.grant))
    }

    /// The entries that are for nobody, as one in front of each is for all whom it is for: the places of both.
    #[must_use]
    pub fn shadowed(&self) -> Vec<(usize, usize)> {
        let rules = self.0.iter().enumerate();
        let first = |(at, rule): (usize, &Rule)| {
            let mut before = self.0.iter().take(at);
            Some((at, before.position(|earlier| earlier.takes_all_of(rule))?))
        };
        rules.filter_map(first).collect()
    }

    /// Every entry's name up to the one that fits, with why those before it do not.
    pub fn explain(&self, who: &Who) -> Vec<(&str, Option<&'static str>)> {
        let mut said = Vec::new();
        for rule in &self.0 {
            let misfit = rule.misfit(who);
            said.push((rule.grant.name.as_str(), misfit));
            if misfit.is_none() {
                break;
            }
        }
        said
    }
}

impl Rule {
    /// Whether it is for all whom another one is for.
    fn takes_all_of(&self, other: &Self) -> bool {
        let spans = |rule: &Self| match rule.networks.as_slice() {
            [] => Network::everywhere(),
            networks => networks.iter().flat_map(|it| it.spans()).collect(),
        };
        let own = spans(self);
        let comes_here = spans(other)
            .iter()
            .all(|net| own.iter().any(|it| it.contains(net)));
        let is_here = |came_to: &SocketAddr| {
            self.listen.iter().any(|listen| {
                came_to.ip().to_canonical() == listen.ip().to_canonical()
                    && (listen.port() == 0 || listen.port() == came_to.port())
            })
        };
        let names = |own: &[String], others: &[String]| {
            let has = |name: &String| {
                own.iter()
                    .any(|it| it == "*" || it.eq_ignore_ascii_case(name))
            };
            own.is_empty() || !others.is_empty() && others.iter().all(has)
        };
        let is_user = |user: &String| self.users.iter().any(|it| it == "*" || it == user);
        comes_here
            && (self.listen.is_empty()
                || !other.listen.is_empty() && other.listen.iter().all(is_here))
            && (!self.needs_tls || other.needs_tls)
            && names(&self.certificates, &other.certificates)
            && (self.users.is_empty() || !other.users.is_empty() && other.users.iter().all(is_user))
    }

    /// Why this entry is not for somebody; none: it is.
    fn misfit(&self, who: &Who) -> Option<&'static str> {
        if let Some(why) = self.misplaced(who).or_else(|| self.uncertified(who)) {
            return Some(why);
        }
        let is_one = |pattern: &String, user: &User| match pattern.strip_prefix('@') {
            Some(group) => user.groups.iter().any(|one| one == group),
            None => pattern == "*" || *pattern == user.name,
        };
        match &who.user {
            _ if self.users.is_empty() => None,
            None => Some("is for users who have logged in"),
            Some(user) if self.users.iter().any(|one| is_one(one, user)) => None,
            Some(_) => Some("is for other users"),
        }
    }

    /// Why this entry is not for the certificate that somebody has.
    fn uncertified(&self, who: &Who) -> Option<&'static str> {
        let is_one = |name: &String| {
            let mut wanted = self.certificates.iter();
            wanted.any(|one| one == "*" || one.eq_ignore_ascii_case(name))
        };
        match who.certificate.as_slice() {
            _ if self.certificates.is_empty() => None,
            [] => Some("is for clients with a certificate"),
            names if names.iter().any(is_one) => None,
            _ => Some("is for clients with other certificates"),
        }
    }

    /// Why this entry is not for where somebody is.
    fn misplaced(&self, who: &Who) -> Option<&'static str> {
        if self.needs_tls && !who.is_tls {
            return Some("is for connections over TLS");
        }
        let address = who.address.to_canonical();
        if !self.networks.is_empty() && !self.networks.iter().any(|net| net.has(address)) {
            return Some("is for other addresses");
        }
        let is_here = |listen: &SocketAddr| {
            who.listen.is_some_and(|came_to| {
                came_to.ip().to_canonical() == listen.ip().to_canonical()
                    && (listen.port() == 0 || listen.port() == came_to.port())
            })
        };
        if !self.listen.is_empty() && !self.listen.iter().any(is_here) {
            return Some("is for connections to other addresses of the server");
        }
        None
    }
}

/// The entries up to the first that takes all who come to it: those behind it are reached by nobody.
fn up_to<'r>(
    rules: impl Iterator<Item = &'r Rule>,
    takes_all: impl Fn(&Rule) -> bool,
) -> impl Iterator<Item = &'r Rule> {
    let mut is_over = false;
    rules.take_while(move |rule| !std::mem::replace(&mut is_over, takes_all(rule)))
}

/// Whom an entry names must be somebody.
fn are_names_right(entry: &AccessRule, wrong: &mut impl FnMut(&str, String)) {
    for (at, name) in entry.certificates.iter().enumerate() {
        if name.is_empty() || name.contains(char::is_control) {
            let right = format!("{name:?} must be a name in a certificate, or *");
            wrong(&format!("certificates[{at}]"), right);
        }
    }
    for (at, word) in entry.list_not.iter().enumerate() {
        if !LIST_KEYWORDS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
        {
            let right = format!("{word:?} must be one of {}", LIST_KEYWORDS.join(", "));
            wrong(&format!("list_not[{at}]"), right);
        }
    }
    for (at, user) in entry.users.iter().enumerate() {
        let name = user.strip_prefix('@').unwrap_or(user);
        if name.is_empty() || name.starts_with('@') || name.contains([' ', ',']) {
            let right = format!("{user:?} must be a name, @ and the name of a group, or *");
            wrong(&format!("users[{at}]"), right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(address: &str, listen: &str) -> Who {
        Who {
            address: address.parse().unwrap(),
            listen: listen.parse().ok(),
            is_tls: false,
            certificate: Vec::new(),
            user: None,
        }
    }

    fn rules(text: &str) -> Rules {
        let config: super::super::AccessConfig = toml::from_str(text).unwrap();
        Rules::parse(&config.access).unwrap()
    }

    #[test]
    fn the_first_that_fits_holds() {
        let rules = rules(
            "[[access]]\nname = 'peer'\naddresses = ['192.0.2.7']\nfeed = true\n\
             [[access]]\nname = 'inside'\naddresses = ['local', '192.0.2.0/24']\nread = '*'\n\
             [[access]]\nname = 'host'\nlisten = ['198.51.100.1:0', '198.51.100.2:563']\nread = 'misc.*'\n",
        );
        let found = |address, listen| rules.find(&who(address, listen)).map(|it| it.name.clone());
        assert_eq!(found("192.0.2.7", ""), Some("peer".into()));
        assert_eq!(found("::ffff:192.0.2.7", ""), Some("peer".into()));
        assert_eq!(
            found("192.0.2.8", "198.51.100.1:119"),
            Some("inside".into())
        );
        assert_eq!(found("::1", ""), Some("inside".into()));
        assert_eq!(
            found("203.0.113.1", "198.51.100.1:119"),
            Some("host".into())
        );
        assert_eq!(
            found("203.0.113.1", "198.51.100.2:563"),
            Some("host".into())
        );
        assert_eq!(found("203.0.113.1", "198.51.100.2:119"), None);
        assert_eq!(found("203.0.113.1", ""), None);
        let said = rules.explain(&who("192.0.2.8", ""));
        assert_eq!(
            said,
            [("peer", Some("is for other addresses")), ("inside", None)]
        );
        assert_eq!(rules.explain(&who("203.0.113.1", "")).len(), 3);
        assert!(Rules::default().find(&who("127.0.0.1", "")).is_none());
    }

    #[test]
    fn what_is_for_tls_is_for_nothing_else() {
        let rules = rules("[[access]]\nname = 'safe'\ntls = true\n[[access]]\nname = 'any'\n");
        let found = |is_tls| {
            let who = Who {
                is_tls,
                ..who("192.0.2.1", "")
            };
            rules.find(&who).map(|it| it.name.clone())
        };
        assert_eq!(found(true), Some("safe".into()));
        assert_eq!(found(false), Some("any".into()));
        let here = who("192.0.2.1", "");
        assert!(rules.tls_helps(&here, |_| true));
        let secured = Who {
            is_tls: true,
            ..here.clone()
        };
        assert!(!rules.tls_helps(&secured, |_| true));
        assert!(!self::rules("[[access]]\nname = 'a'\n").tls_helps(&here, |_| true));
    }

    #[test]
    fn certificates_have_entries_of_their_own() {
        let rules = rules(
            "[[access]]\nname = 'peer'\ncertificates = ['news.peer.example', 'ada@a.example']\n\
             [[access]]\nname = 'users'\ncertificates = ['ada']\nusers = ['*']\n\
             [[access]]\nname = 'known'\ncertificates = ['*']\n",
        );
        let shown = |names: &[&str]| Who {
            is_tls: true,
            certificate: names.iter().map(|&name| name.to_owned()).collect(),
            ..who("192.0.2.1", "")
        };
        let found = |names: &[&str]| rules.find(&shown(names)).map(|it| it.name.clone());
        assert_eq!(found(&["x", "News.Peer.example"]), Some("peer".into()));
        assert_eq!(found(&["peer.example"]), Some("known".into()));
        assert_eq!(found(&[]), None);
        let why = rules.explain(&shown(&[]));
        assert_eq!(why[0], ("peer", Some("is for clients with a certificate")));
        let why = rules.explain(&shown(&["x"]));
        assert_eq!(why[0].1, Some("is for clients with other certificates"));
        // A login helps only whom the certificate lets so far; TLS helps whoever may have one.
        let helps = |names: &[&str]| rules.login_helps(&shown(names), |_| true);
        assert!(helps(&["ADA"]) && !helps(&["bob"]));
        let plain = who("192.0.2.1", "");
        assert!(rules.tls_helps(&plain, |_| true) && !rules.certificate_helps(&plain));
        assert!(rules.certificate_helps(&shown(&[])) && rules.find(&plain).is_none());
    }

    #[test]
    fn users_have_entries_of_their_own() {
        let rules = rules(
            "[[access]]\nname = 'a'\nusers = ['ada', '@staff']\n[[access]]\nname = 'b'\nusers = ['*']\n\
             addresses = ['192.0.2.1']\n[[access]]\nname = 'c'\naddresses = ['local']\n",
        );
        let found = |address: &str, user: Option<(&str, &str)>| {
            let user = user.map(|(name, group)| User {
                name: name.to_owned(),
                groups: vec![group.to_owned()],
            });
            let who = Who {
                user,
                ..who(address, "")
            };
            rules.find(&who).map(|it| it.name.clone())
        };
        assert_eq!(found("192.0.2.9", Some(("ada", "x"))), Some("a".into()));
        assert_eq!(found("192.0.2.9", Some(("bob", "staff"))), Some("a".into()));
        assert_eq!(found("192.0.2.9", Some(("staff", "x"))), None);
        assert_eq!(found("192.0.2.1", Some(("bob", "x"))), Some("b".into()));
        assert_eq!(found("127.0.0.1", Some(("bob", "x"))), Some("c".into()));
        assert_eq!(found("127.0.0.1", None), Some("c".into()));
        assert_eq!(found("192.0.2.1", None), None);
        assert!(rules.login_helps(&who("203.0.113.1", ""), |_| true));
        let said = rules.explain(&who("203.0.113.1", ""));
        assert_eq!(said[0], ("a", Some("is for users who have logged in")));
    }

    /// Any entry for users made a login worth asking for, also one that does not grant what was asked for or is reached by nobody.
    #[test]
    fn a_login_or_tls_helps_only_to_what_it_gives() {
        let check = |text: &str, login: [bool; 2], tls: [bool; 2]| {
            let (rules, who) = (rules(text), who("192.0.2.1", ""));
            for (at, wants) in [|it: &Grant| it.feed, |it: &Grant| it.reads("misc.test")]
                .into_iter()
                .enumerate()
            {
                assert_eq!(rules.login_helps(&who, wants), login[at], "{text}: {at}");
                assert_eq!(rules.tls_helps(&who, wants), tls[at], "{text}: {at}");
            }
        };
        let (users, any) = ("users = ['ada']", "[[access]]\nname = 'any'\n");
        let entry = |more: &str| format!("[[access]]\nname = 'a'\n{more}\n");
        for (first, login, tls) in [
            (format!("{users}\nread = '*'"), [false, true], [false; 2]),
            (format!("{users}\nread = 'alt.*'"), [false; 2], [false; 2]),
            (format!("{users}\nfeed = true"), [true, false], [false; 2]),
            (
                format!("{users}\ntls = true\nread = '*'"),
                [false; 2],
                [false, true],
            ),
            (
                "tls = true\nfeed = true".to_owned(),
                [false; 2],
                [true, false],
            ),
            (
                "certificates = ['x']\nread = '*'".to_owned(),
                [false; 2],
                [false, true],
            ),
        ] {
            check(&format!("{}{any}", entry(&first)), login, tls);
            // Behind an entry for all it is for nobody.
            check(&format!("{any}{}", entry(&first)), [false; 2], [false; 2]);
            let users = "[[access]]\nname = 'users'\nusers = ['*']\n";
            check(&format!("{users}{}", entry(&first)), [false; 2], tls);
        }
    }

    /// An entry behind one that takes everybody was for nobody, and nothing said so.
    #[test]
    fn what_is_for_nobody_any_more_is_found() {
        let check = |first: &str, second: &str, is_shadowed: bool| {
            let text =
                format!("[[access]]\nname = 'a'\n{first}\n[[access]]\nname = 'b'\n{second}\n");
            let expected: &[(usize, usize)] = if is_shadowed { &[(1, 0)] } else { &[] };
            assert_eq!(rules(&text).shadowed(), expected, "{text}");
        };
        let local = "addresses = ['local']";
        let inside = "addresses = ['192.0.2.0/24', '2001:db8::/32']";
        for (first, second, is_shadowed) in [
            ("", "", true),
            ("", local, true),
            (local, "", false),
            (local, "addresses = ['127.0.0.1', '::1']", true),
            ("addresses = ['127.0.0.0/8']", local, false),
            (inside, "addresses = ['192.0.2.7']", true),
            (inside, "addresses = ['192.0.2.7', '192.0.3.7']", false),
            ("addresses = ['0.0.0.0/0', '::/0']", "", true),
            ("addresses = ['0.0.0.0/0']", "", false),
            ("tls = true", "", false),
            ("tls = true", "tls = true", true),
            ("tls = true", "certificates = ['x']", true),
            ("certificates = ['*']", "tls = true", false),
            ("certificates = ['*']", "certificates = ['x']", true),
            ("certificates = ['X', 'y']", "certificates = ['x']", true),
            ("users = ['*']", "", false),
            ("users = ['*']", "users = ['@staff']", true),
            ("users = ['ada']", "users = ['@staff', 'ada']", false),
            (
                "listen = ['192.0.2.1:0']",
                "listen = ['192.0.2.1:119']",
                true,
            ),
            (
                "listen = ['192.0.2.1:119']",
                "listen = ['192.0.2.1:0']",
                false,
            ),
            ("listen = ['192.0.2.1:119']", "", false),
        ] {
            check(first, second, is_shadowed);
        }
    }

    #[test]
    fn what_is_granted() {
        let rules = rules("[[access]]\nname = 'a'\nread = '*,!secret.*'\npost = 'misc.*'\n");
        let grant = rules.find(&who("192.0.2.1", "")).unwrap();
        assert!(grant.reads("misc.test") && !grant.reads("secret.x") && !grant.reads_all());
        assert!(grant.is_for_readers() && !grant.feed && !grant.approve);
        assert!(Grant::everything("x").reads_all());
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        let entry = |name: &str| AccessRule {
            name: name.into(),
            ..AccessRule::default()
        };
        let bad = [
            entry(""),
            entry("a"),
            AccessRule {
                addresses: vec!["local".into(), "192.0.2.1/24".into()],
                certificates: vec!["*".into(), "a b".into(), String::new()],
                read: "a,,b".into(),
                users: vec![
                    "ada".into(),
                    "@staff".into(),
                    "*".into(),
                    "@".into(),
                    "a b".into(),
                    "ada@b.example".into(),
                    "@@staff".into(),
                ],
                post: "[".into(),
                list_not: vec!["motd".into(), "GROUPS".into()],
                ..entry("a")
            },
        ];
        let problems = Rules::parse(&bad).unwrap_err();
        let keys: Vec<&str> = problems.iter().map(|(key, _)| key.as_str()).collect();
        let expect = [
            "[0].name",
            "[2].name",
            "[2].addresses[1]",
            "[2].certificates[2]",
            "[2].list_not[1]",
            "[2].users[3]",
            "[2].users[4]",
            "[2].users[6]",
            "[2].read",
            "[2].post",
        ];
        assert_eq!(keys, expect);
    }
}
