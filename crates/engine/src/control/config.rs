//! The section `[control]` of the configuration: which control messages are heeded.

use newsreel_service::cancel_lock::LockPrint;
use newsreel_wire::Wildmat;
use newsreel_wire::article::is_address;
use serde::{Deserialize, Serialize};

use super::nocem::Issuers;
use super::rules::Rules;

/// Whose cancels, and whose Supersedes, take an article out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Cancels {
    /// Those that open a Cancel-Lock of the article.
    #[default]
    RequireAuth,
    /// Those, and anybody's where the article has no Cancel-Lock.
    Auth,
    /// Anybody's.
    All,
    /// Nobody's.
    None,
}

/// `[control]`: which control messages are heeded. All are filed and fed, whatever comes of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlConfig {
    /// Whose cancels, and whose Supersedes, take an article out: of those with a Cancel-Key for one of its locks
    /// (RFC 8315, `require-auth`), also anybody's where it has no lock (`auth`), `all`, or `none`. Without keys anybody
    /// can write a cancel in the author's name.
    pub cancels: Cancels,
    /// Whose newgroup, rmgroup and checkgroups messages are heeded, as in INN's `control.ctl`:
    /// `message:from:newsgroups:action`, where the message is one of these or `all`, the sender and the groups are shell
    /// patterns with `|` between them, and the action is `doit`, `log` (it waits for `newsreel control approve`),
    /// `mail` (the same, and a mail to `control.mail_to` tells of it), `drop`, or `verify-KEY` (done if that key of `newsreel control keys` signed it); the last that matches holds, and
    /// without one it is `log`. Senders are not proved but by a signature: who knows an address can write in its name.
    pub rules: Vec<String>,
    /// The address that mails of rules with `mail` go to; they are sent as those to moderators are (`[moderation]`).
    pub mail_to: String,
    /// Whose NoCeM notices are heeded, each `KEY:types`: the articles that a notice lists go, if this key of `newsreel control keys`
    /// signed it and its type is one of these shell patterns, with `|` between them, as in `bleach@a.example:spam|mmf`.
    pub nocem: Vec<String>,
    /// The groups where NoCeM notices are looked for, a wildmat.
    pub nocem_groups: String,
    /// Octets in the log of all cancels that wait for their targets, some 100 for each with a key, and as many for what NoCeM
    /// notices list that is not here. Each peer, and each issuer of notices, has a share: where there is no room, the oldest of who has most is
    /// forgotten. More than an eighth of `log.segment_octets` is not used. A quarter as much has room for control messages about groups that
    /// wait for approval, and another for those of them that a key of `newsreel control keys` signed.
    pub waiting_octets_max: u64,
    /// A checkgroups message that would change more groups than this waits for approval, whatever the rules say.
    pub checkgroups_changes_max: u32,
}

impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            cancels: Cancels::default(),
            rules: Vec::new(),
            mail_to: String::new(),
            nocem: Vec::new(),
            nocem_groups: "news.lists.filters,alt.nocem.misc".to_owned(),
            waiting_octets_max: 1 << 20,
            checkgroups_changes_max: 10,
        }
    }
}

impl ControlConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let is_address = is_address(self.mail_to.as_bytes());
        if !self.mail_to.is_empty() && !is_address {
            problems.push((
                "mail_to",
                "an address such as usenet@example.org".to_owned(),
            ));
        }
        match Rules::parse(&self.rules) {
            Err(why) => problems.push(("rules", why)),
            Ok(rules) if rules.mail() && self.mail_to.is_empty() => {
                let right = "give control.mail_to, where the mails of `mail` go, or write `log`";
                problems.push(("rules", right.to_owned()));
            }
            Ok(_) => {}
        }
        if let Err(why) = Issuers::parse(&self.nocem) {
            problems.push(("nocem", why));
        }
        if let Err(why) = Wildmat::parse(&self.nocem_groups) {
            problems.push(("nocem_groups", why.to_string()));
        }
        problems
    }
}

impl Cancels {
    /// Whether an article with these locks may be taken out by who has these keys; `None`: it has no Cancel-Lock.
    pub(crate) fn allows(self, locks: Option<&[LockPrint]>, keys: &[LockPrint]) -> bool {
        let is_open = || locks.is_some_and(|locks| locks.iter().any(|lock| keys.contains(lock)));
        match self {
            Self::None => false,
            Self::RequireAuth => is_open(),
            Self::Auth => locks.is_none() || is_open(),
            Self::All => true,
        }
    }

    /// Whether there is an article that these keys could take out.
    pub(crate) const fn may_allow(self, keys: &[LockPrint]) -> bool {
        match self {
            Self::None => false,
            Self::RequireAuth => !keys.is_empty(),
            Self::Auth | Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_go_somewhere() {
        let wrong = |rule: &str, mail_to: &str| {
            let config = ControlConfig {
                rules: vec![rule.to_owned()],
                mail_to: mail_to.to_owned(),
                ..ControlConfig::default()
            };
            let problems = config.problems().into_iter();
            problems.map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(wrong("all:*:*:log", ""), [""; 0]);
        assert_eq!(wrong("all:*:*:mail", "usenet@a.example"), [""; 0]);
        assert_eq!(wrong("all:*:*:mail", ""), ["rules"]);
        assert_eq!(wrong("all:*:*:mail", "usenet"), ["mail_to"]);
        assert_eq!(wrong("all:*:*", "usenet"), ["mail_to", "rules"]);
    }

    #[test]
    fn who_may_take_an_article_out() {
        let (mine, other) = (LockPrint([1; 32]), LockPrint([2; 32]));
        let keys = [mine];
        // No lock, only ones that do not count, another's, mine among others.
        let locks: [Option<&[LockPrint]>; 4] =
            [None, Some(&[]), Some(&[other]), Some(&[other, mine])];
        for (cancels, with_key, without) in [
            (Cancels::None, [false; 4], [false; 4]),
            (
                Cancels::RequireAuth,
                [false, false, false, true],
                [false; 4],
            ),
            (
                Cancels::Auth,
                [true, false, false, true],
                [true, false, false, false],
            ),
            (Cancels::All, [true; 4], [true; 4]),
        ] {
            assert_eq!(
                locks.map(|it| cancels.allows(it, &keys)),
                with_key,
                "{cancels:?}"
            );
            assert_eq!(
                locks.map(|it| cancels.allows(it, &[])),
                without,
                "{cancels:?}"
            );
            assert_eq!(
                cancels.may_allow(&[]),
                without.contains(&true),
                "{cancels:?}"
            );
            assert_eq!(
                cancels.may_allow(&keys),
                with_key.contains(&true),
                "{cancels:?}"
            );
        }
    }
}
