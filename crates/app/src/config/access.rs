//! Who may do what, from `[[access]]`, or from `server.clients` and `posting.clients` where there is no entry.

use newsreel_feed::Hosts;
use newsreel_net::access::{AccessRule, Rules};
use newsreel_service::posting::PostingClients;

use super::{Clients, Config};

impl Config {
    /// The rules in force: peers are known before anybody else is, by the addresses that their hosts have.
    pub(crate) fn access_rules(&self, hosts: &Hosts) -> Rules {
        let peers = self.peer.iter().filter_map(|peer| peer.access(hosts));
        let others = match self.access.is_empty() {
            true => self.usual_access(),
            false => self.access.clone(),
        };
        let rules: Vec<AccessRule> = peers.chain(others).collect();
        // What was checked when it was read; if it were not, nobody could do anything.
        Rules::parse(&rules).unwrap_or_default()
    }

    /// The rules that the two keys stand for.
    fn usual_access(&self) -> Vec<AccessRule> {
        let all = || "*".to_owned();
        let local = AccessRule {
            name: "this machine".to_owned(),
            addresses: vec!["local".to_owned()],
            read: all(),
            post: match self.posting.clients {
                PostingClients::Loopback => all(),
                PostingClients::Nobody => String::new(),
            },
            approve: true,
            feed: true,
            ..AccessRule::default()
        };
        let others = AccessRule {
            name: "everybody".to_owned(),
            read: all(),
            feed: true,
            ..AccessRule::default()
        };
        match self.server.clients {
            Clients::Loopback => vec![local],
            Clients::All => vec![local, others],
        }
    }
}

#[cfg(test)]
mod tests {
    use newsreel_feed::Hosts;
    use newsreel_net::access::Who;

    /// What somebody may do: read, post, feed.
    fn may(text: &str, address: &str) -> Option<(bool, bool, bool)> {
        may_from(&Hosts::default(), text, address)
    }

    fn may_from(hosts: &Hosts, text: &str, address: &str) -> Option<(bool, bool, bool)> {
        let config = super::super::parse(text, "test").unwrap();
        let rules = config.access_rules(hosts);
        let grant = rules.find(&Who {
            address: address.parse().unwrap(),
            listen: None,
            is_tls: false,
            certificate: Vec::new(),
            user: None,
        })?;
        Some((grant.reads_all(), grant.post.is_some(), grant.feed))
    }

    #[test]
    fn without_entries_the_keys_decide() {
        let usual = Some((true, true, true));
        for local in ["127.0.0.9", "::ffff:127.0.0.1", "::1"] {
            assert_eq!(may("", local), usual, "{local}");
        }
        assert_eq!(may("", "192.0.2.1"), None);
        assert_eq!(
            may("[posting]\nclients = 'nobody'", "127.0.0.1"),
            Some((true, false, true))
        );
        let open = "[server]\nclients = 'all'";
        assert_eq!(may(open, "192.0.2.1"), Some((true, false, true)));
        assert_eq!(may(open, "127.0.0.1"), usual);
    }

    #[test]
    fn peers_are_known_before_anybody_else_is() {
        let peer = "[[peer]]\nname = 'b.example'\nfeed = []\nfrom_addresses = ['192.0.2.7']\n";
        assert_eq!(may(peer, "192.0.2.7"), Some((false, false, true)));
        assert_eq!(may(peer, "127.0.0.1"), Some((true, true, true)));
        let rules = format!("{peer}[[access]]\nname = 'a'\nread = '*'\n");
        assert_eq!(may(&rules, "192.0.2.7"), Some((false, false, true)));
        assert_eq!(may(&rules, "192.0.2.8"), Some((true, false, false)));
    }

    /// A name without an address must not be a peer that everybody is.
    #[test]
    fn a_host_is_known_by_the_addresses_that_were_found() {
        let rules = "[[peer]]\nname = 'b'\nfeed = []\nfrom_addresses = ['b.example']\n\
                     [[access]]\nname = 'a'\nread = '*'\n";
        let stranger = Some((true, false, false));
        assert_eq!(may(rules, "192.0.2.7"), stranger);
        let mut hosts = Hosts::default();
        hosts.found("b.example", ["192.0.2.7".parse().unwrap()].into_iter());
        assert_eq!(
            may_from(&hosts, rules, "192.0.2.7"),
            Some((false, false, true))
        );
        assert_eq!(may_from(&hosts, rules, "192.0.2.8"), stranger);
    }

    #[test]
    fn with_entries_only_they_do() {
        let rules =
            "[[access]]\nname = 'a'\naddresses = ['192.0.2.0/24']\nread = '*'\npost = '*'\n";
        assert_eq!(may(rules, "192.0.2.1"), Some((true, true, false)));
        assert_eq!(may(rules, "127.0.0.1"), None);
    }
}
