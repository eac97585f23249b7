//! What a configuration says that holds as it is written, and that nobody can have meant: warnings of `newsreel config check`.

use std::net::IpAddr;

use newsreel_cache::UpstreamTls;
use newsreel_engine::ExpireConfig;
use newsreel_feed::{Hosts, PeerTls, PullTls};
use newsreel_host::process::host_name;
use newsreel_net::access::{AccessRule, Rules, Who};

use super::{Config, doubtful_access, doubtful_store, schema};

/// A key, and what is doubtful about it.
pub(super) type Doubt = (String, String);

/// All of them.
pub(super) fn doubts(config: &Config) -> Vec<Doubt> {
    let mut doubts = sizes(config);
    doubts.extend(doubtful_store::doubts(config));
    doubts.extend(doubtful_access::doubts(config));
    doubts.extend(own_names(config));
    doubts.extend(passwords(config));
    doubts.extend(this_machine(config));
    if let Ok(rules) = Rules::parse(&config.access) {
        doubts.extend(rules.shadowed().into_iter().map(|(at, before)| {
            let (name, before) = (format!("access[{at}].name"), said(config, &format!("access[{before}].name")));
            let what = format!(
                "nobody ever has what this entry grants, as {before} in front of it is for all whom it is for; put it in front of \
                 that, or take it out"
            );
            (name, what)
        }));
    }
    let shadowed = ExpireConfig::shadowed(&config.expire).into_iter();
    doubts.extend(shadowed.map(|(at, before)| {
        let (groups, before) = (format!("expire[{at}].groups"), said(config, &format!("expire[{before}]")));
        let what = format!(
            "no article ever goes by this entry, as {before} in front of it is for all of its articles; put it in front of that, or \
             take it out"
        );
        (groups, what)
    }));
    doubts
}

/// A key, with its line where it has one.
fn said(config: &Config, key: &str) -> String {
    match config.places.of(key) {
        (0, _) => key.to_owned(),
        (line, _) => format!("{key} (line {line})"),
    }
}

/// Limits of feeds that lie beyond what any article here has.
fn sizes(config: &Config) -> Vec<Doubt> {
    let most = u64::from(config.articles.octets_max);
    let print = |value: u64| {
        let unit = schema::find("articles.octets_max").and_then(|key| key.unit);
        unit.map_or_else(|| value.to_string(), |unit| unit.print(value))
    };
    let bound = format!(
        "no article here has more than {}, as {} says",
        print(most),
        said(config, "articles.octets_max")
    );
    let mut doubts = Vec::new();
    for (at, peer) in config.peer.iter().enumerate() {
        for (place, feed) in peer.feed.iter().enumerate() {
            let key = |name: &str| format!("peer[{at}].feed[{place}].{name}");
            if feed.octets_min > most {
                let what =
                    format!("nothing goes out by this feed: {bound}; give less, or raise that");
                doubts.push((key("octets_min"), what));
            }
            if feed.groups_max > config.articles.groups_max {
                let what = format!(
                    "this limit keeps nothing back: no article here names more than {} groups, as {} says; give less, or 0 for any \
                     number",
                    config.articles.groups_max,
                    said(config, "articles.groups_max")
                );
                doubts.push((key("groups_max"), what));
            }
            if feed.octets_max > most {
                let what =
                    format!("this limit keeps nothing back: {bound}; give less, or 0 for any size");
                doubts.push((key("octets_max"), what));
            }
        }
    }
    doubts
}

/// Peers that are called in Path as this server is.
fn own_names(config: &Config) -> Vec<Doubt> {
    let own = match config.engine.path_identity.as_str() {
        "" => host_name().unwrap_or_default(),
        own => own.to_owned(),
    };
    let mut doubts = Vec::new();
    for (at, peer) in config.peer.iter().enumerate() {
        let aliases = peer.aliases.iter().enumerate();
        let aliases = aliases.map(|(nth, alias)| (format!("aliases[{nth}]"), alias));
        let names = std::iter::once(("name".to_owned(), &peer.name)).chain(aliases);
        for (key, name) in names {
            if name.eq_ignore_ascii_case(&own) {
                let what = format!(
                    "{name} is this server's own name in Path (engine.path_identity), which every article from here has, so nothing goes to \
                     this peer; give the name that it has in Path itself"
                );
                doubts.push((format!("peer[{at}].{key}"), what));
            }
        }
    }
    doubts
}

/// Passwords for servers elsewhere that anybody on the way can read, or that never go.
fn passwords(config: &Config) -> Vec<Doubt> {
    let peers = config.peer.iter().enumerate().map(|(at, it)| {
        let is_plain = it.tls == PeerTls::None;
        (
            format!("peer[{at}]"),
            &it.address,
            &it.user,
            is_plain,
            it.clear_text,
        )
    });
    let upstreams = config.upstream.iter().enumerate().map(|(at, it)| {
        let is_plain = it.tls == UpstreamTls::None;
        (
            format!("upstream[{at}]"),
            &it.address,
            &it.user,
            is_plain,
            it.clear_text,
        )
    });
    let pulls = config.pull.iter().enumerate().map(|(at, it)| {
        let is_plain = it.tls == PullTls::None;
        (
            format!("pull[{at}]"),
            &it.address,
            &it.user,
            is_plain,
            it.clear_text,
        )
    });
    let all = peers.chain(upstreams).chain(pulls);
    let doubtful = all.filter_map(|(entry, address, user, is_plain, in_clear)| {
        if user.is_empty() || !is_plain {
            return None;
        }
        let tls = "give `tls = \"implicit\"` or \"starttls\"";
        if !in_clear {
            let what = format!(
                "the password for {user} is never sent, as the connection is not secured and `clear_text` is not said: {tls}, or \
                 `clear_text = true` where nobody is on the way"
            );
            return Some((format!("{entry}.user"), what));
        }
        let what = format!("the password for {user} goes to {address} where anybody on the way can read it; {tls}");
        (!is_here(address)).then(|| (format!("{entry}.clear_text"), what))
    });
    doubtful.collect()
}

/// Entries that take posting from this machine, which has it without them.
fn this_machine(config: &Config) -> Vec<Doubt> {
    let who = Who {
        address: IpAddr::from([127, 0, 0, 1]),
        listen: None,
        is_tls: false,
        certificate: Vec::new(),
        user: None,
    };
    let is_for_it = |rules: &[AccessRule]| {
        let rules = Rules::parse(rules);
        rules.is_ok_and(|rules| rules.find(&who).is_some())
    };
    let refused = "newsreel post, inews and news readers on this machine are refused";
    let hosts = Hosts::default();
    let mut doubts = Vec::new();
    for (at, peer) in config.peer.iter().enumerate() {
        if peer.access(&hosts).is_some_and(|rule| is_for_it(&[rule])) {
            let what = format!(
                "whoever connects from this machine is this peer, which may feed and no more: {refused}; give the peer another address, \
                 as 127.0.0.2"
            );
            doubts.push((format!("peer[{at}].from_addresses"), what));
        }
    }
    // Whoever has to log in, show a certificate or connect otherwise can.
    let at_all = |rule: &AccessRule| AccessRule {
        name: rule.name.clone(),
        addresses: rule.addresses.clone(),
        ..AccessRule::default()
    };
    let posting = config.access.iter().filter(|rule| !rule.post.is_empty());
    let posting: Vec<AccessRule> = posting.map(at_all).collect();
    if !posting.is_empty() && !is_for_it(&posting) {
        let what = format!(
            "entries let others post, and none is for this machine, which could without any: {refused}; add one with \
             addresses = [\"local\"], read and post"
        );
        doubts.push(("access[0].name".to_owned(), what));
    }
    doubts
}

/// Whether a host, with a port perhaps, is this machine.
fn is_here(address: &str) -> bool {
    let without_port = address
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let host = without_port.map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The keys that are doubtful, with their lines.
    fn doubtful(text: &str) -> Vec<(String, usize, String)> {
        let config = super::super::parse(text, "news.toml").unwrap();
        let doubts = doubts(&config).into_iter();
        doubts
            .map(|(key, what)| (key.clone(), config.places.of(&key).0, what))
            .collect()
    }

    pub(in crate::config) fn check(text: &str, expected: &[(&str, usize)]) -> String {
        let found = doubtful(text);
        let places: Vec<(&str, usize)> = found
            .iter()
            .map(|(key, line, _)| (key.as_str(), *line))
            .collect();
        assert_eq!(places, expected, "{text}");
        found.into_iter().map(|(_, _, what)| what + "\n").collect()
    }

    #[test]
    fn entries_behind_one_for_everybody() {
        let said = check(
            "[[access]]\nname = 'all'\nread = '*'\n[[access]]\nname = 'inside'\naddresses = ['192.0.2.0/24', 'local']\npost = '*'\n",
            &[("access[1].name", 5)],
        );
        assert!(said.contains("access[0].name (line 2)"), "{said}");
        check(
            "[[access]]\nname = 'inside'\naddresses = ['192.0.2.0/24']\n[[access]]\nname = 'all'\nread = '*'\n",
            &[],
        );
    }

    #[test]
    fn rules_of_expiry_behind_one_for_all() {
        let said = check(
            "[[expire]]\nkeep_s = '10d'\n[[expire]]\ngroups = 'alt.*'\nkeep_s = '2d'\n",
            &[("expire[1].groups", 4)],
        );
        assert!(said.contains("expire[0] (line 1)"), "{said}");
        check(
            "[[expire]]\ngroups = 'alt.*'\nkeep_s = '2d'\n[[expire]]\nkeep_s = '10d'\n",
            &[],
        );
    }

    #[test]
    fn feeds_beyond_what_articles_have() {
        let feed = |limits: &str| {
            format!(
                "[articles]\noctets_max = '1MiB'\n[[peer]]\nname = 'p.example'\naddress = 'p.example:119'\n[[peer.feed]]\n{limits}\n"
            )
        };
        let said = check(
            &feed("octets_min = '2MiB'"),
            &[("peer[0].feed[0].octets_min", 7)],
        );
        assert!(
            said.contains("more than 1MiB, as articles.octets_max (line 2)"),
            "{said}"
        );
        check(
            &feed("octets_max = '2MiB'"),
            &[("peer[0].feed[0].octets_max", 7)],
        );
        check(
            &feed("groups_max = 9999"),
            &[("peer[0].feed[0].groups_max", 7)],
        );
        check(
            &feed("octets_max = '1MiB'\ngroups_max = 1\noctets_min = '100KiB'"),
            &[],
        );
    }

    #[test]
    fn peers_with_our_own_name() {
        let peer = |names: &str| {
            format!(
                "[engine]\npath_identity = 'News.example'\n[[peer]]\n{names}\naddress = 'p.example:119'\n"
            )
        };
        check(&peer("name = 'news.example'"), &[("peer[0].name", 4)]);
        check(
            &peer("name = 'p.example'\naliases = ['x', 'news.EXAMPLE']"),
            &[("peer[0].aliases[1]", 5)],
        );
        check(&peer("name = 'p.example'"), &[]);
    }

    #[test]
    fn passwords_that_anybody_can_read_or_that_never_go() {
        for (list, address) in [
            ("peer", "p.example:119"),
            ("pull", "p.example:119"),
            ("upstream", "p.example"),
        ] {
            let entry = |address: &str, more: &str| {
                let name = if list == "upstream" {
                    ""
                } else {
                    "name = 'p'\n"
                };
                format!(
                    "[[{list}]]\naddress = '{address}'\nuser = 'ada'\npassword_file = '/dev/null'\n{more}\n{name}"
                )
            };
            let (clear, user) = (format!("{list}[0].clear_text"), format!("{list}[0].user"));
            check(&entry(address, "clear_text = true"), &[(&clear, 5)]);
            check(&entry(address, ""), &[(&user, 3)]);
            check(&entry(address, "tls = 'implicit'"), &[]);
            for here in ["127.0.0.1:119", "[::1]:119", "localhost:119"] {
                check(&entry(here, "clear_text = true"), &[]);
            }
        }
    }

    #[test]
    fn this_machine() {
        for here in [
            "localhost",
            "127.0.0.1",
            "127.9.9.9:119",
            "::1",
            "[::1]",
            "[::1]:563",
            "LOCALHOST:1",
        ] {
            assert!(is_here(here), "{here}");
        }
        for there in [
            "192.0.2.1:119",
            "localhost.example:119",
            "2001:db8::1",
            "[2001:db8::1]:119",
            "",
        ] {
            assert!(!is_here(there), "{there}");
        }
    }

    #[test]
    fn entries_that_take_posting_from_this_machine() {
        let peer =
            |from: &str| format!("[[peer]]\nname = 'b'\nfeed = []\nfrom_addresses = ['{from}']\n");
        let said = check(&peer("127.0.0.1"), &[("peer[0].from_addresses", 4)]);
        assert!(
            said.contains("is this peer, which may feed and no more"),
            "{said}"
        );
        check(&peer("127.0.0.2"), &[]);
        let entry = |rest: &str| format!("[[access]]\nname = 'a'\nread = '*'\n{rest}\n");
        let lan = entry("post = '*'\naddresses = ['192.0.2.0/24']");
        let said = check(&lan, &[("access[0].name", 2)]);
        assert!(said.contains("none is for this machine"), "{said}");
        for fine in [
            entry("addresses = ['192.0.2.0/24']"),
            entry("post = '*'\nusers = ['*']"),
            format!(
                "{lan}{}",
                entry("addresses = ['local']\npost = 'misc.*'").replace("'a'", "'b'")
            ),
        ] {
            check(&fine, &[]);
        }
    }
}
