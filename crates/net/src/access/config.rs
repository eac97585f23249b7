//! The list `[[access]]` of the configuration: who may do what.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The variants of LIST (RFC 3977 section 7.6, RFC 6048, docs/active-modtime.md), as CAPABILITIES shows them.
pub const LIST_KEYWORDS: &[&str] = &[
    "ACTIVE",
    "ACTIVE.MODTIME",
    "ACTIVE.TIMES",
    "COUNTS",
    "DISTRIB.PATS",
    "DISTRIBUTIONS",
    "HEADERS",
    "MODERATORS",
    "MOTD",
    "NEWSGROUPS",
    "OVERVIEW.FMT",
    "SUBSCRIPTIONS",
];

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct AccessConfig {
    /// Who may connect and what they may do: the first entry that fits a connection holds. Whom none fits is refused, with
    /// 480 where logging in could help. Without entries `server.clients` and `posting.clients` decide. What fits a
    /// connection is found when it begins and after each login; SIGHUP changes it for new connections.
    pub access: Vec<AccessRule>,
}

/// One entry: whom it is for, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessRule {
    /// The `[[peer]]` whose connections these are, for an entry that was made of one.
    #[serde(skip)]
    pub peer: Option<String>,
    /// What the log and `newsreel access explain` call it.
    pub name: String,
    /// Addresses and networks it is for, as in `192.0.2.0/24` and `2001:db8::1`; `local` is this machine. Empty: any.
    pub addresses: Vec<String>,
    /// Which of the server's own addresses it is for, where one server is several (virtual hosts); port 0 is any port.
    /// Empty: any.
    pub listen: Vec<SocketAddr>,
    /// Whether it is for connections over TLS only.
    pub tls: bool,
    /// Names in certificates of clients (`tls.clients`) that it is for: a subject's common name, mail addresses and host names,
    /// in any case, or `*` for every certificate. Empty: any client.
    pub certificates: Vec<String>,
    /// Users it is for, of those who have logged in: names, `@` and a group's name, or `*` for all of them. Empty: who has
    /// logged in and who has not.
    pub users: Vec<String>,
    /// Groups that may be read, a wildmat; empty: none. Articles in other groups are not shown by message-id either.
    pub read: String,
    /// Groups that may be posted to, a wildmat; empty: posting is not permitted.
    pub post: String,
    /// Whether posts with an Approved field are taken: the right of a moderator.
    pub approve: bool,
    /// Whether articles of others may be sent: IHAVE, CHECK and TAKETHIS.
    pub feed: bool,
    /// Whether NEWNEWS may be asked.
    pub newnews: bool,
    /// Whether groups may be listed: LIST, NEWGROUPS, XGTITLE.
    pub list: bool,
    /// Variants of LIST that may not be asked all the same, by their keywords, as in `["ACTIVE.TIMES", "MODERATORS"]`. What is
    /// another name of one goes with it: LIST without a keyword and NEWGROUPS with ACTIVE, XGTITLE with NEWSGROUPS.
    pub list_not: Vec<String>,
    /// Octets sent and taken on one connection in a second, together and on average over what went at once; 0: any number.
    pub octets_per_s_max: u64,
    /// Commands taken on one connection in a second; what comes faster waits. 0: any number.
    pub commands_per_s_max: u32,
    /// Octets sent and taken in a second on all connections from one address (IPv6: one /64 network) together; 0: any number.
    pub octets_per_s_per_address_max: u64,
    /// Commands taken in a second on all connections from one address together; 0: any number.
    pub commands_per_s_per_address_max: u32,
    /// Octets sent and taken in a second on all connections of one user who has logged in together; 0: any number.
    pub octets_per_s_per_user_max: u64,
    /// Commands taken in a second on all connections of one user together; 0: any number.
    pub commands_per_s_per_user_max: u32,
    /// Octets sent and taken in a second on all connections of an entry that was made of a `[[peer]]` together; 0: any number.
    #[serde(skip)]
    pub octets_per_s_of_all_max: u64,
    /// Articles of others taken in a second on all of these together; 0: any number.
    #[serde(skip)]
    pub articles_per_s_of_all_max: u32,
    /// Connections at the same time of all whom it is for; 0: any number.
    pub connections_max: u32,
    /// Connections at the same time from one address (IPv6: one /64 network; from a /56 four times, from a /48 sixteen times as
    /// many); 0: any number.
    pub connections_per_address_max: u32,
    /// Connections at the same time of one user who has logged in; 0: any number.
    pub connections_per_user_max: u32,
}

impl Default for AccessRule {
    fn default() -> Self {
        Self {
            peer: None,
            name: String::new(),
            addresses: Vec::new(),
            listen: Vec::new(),
            tls: false,
            certificates: Vec::new(),
            users: Vec::new(),
            read: String::new(),
            post: String::new(),
            approve: false,
            feed: false,
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
}
