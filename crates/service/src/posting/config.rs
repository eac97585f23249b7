//! The sections `[posting]` and `[moderation]` of the configuration: who may post, what a post must be, what it gets,
//! and where articles for moderators go.

use newsreel_wire::article::is_address;
use serde::{Deserialize, Serialize};

use super::moderators::Moderators;

/// Whose articles are taken by POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum PostingClients {
    /// Those of this machine.
    #[default]
    Loopback,
    /// Nobody's.
    Nobody,
}

/// `[posting]`: who may post, what a posted article must be, and what is added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PostingConfig {
    /// Who may post, where there is no `[[access]]`.
    pub clients: PostingClients,
    /// Posts to more groups than this are refused; `articles.groups_max` holds besides.
    pub groups_max: u32,
    /// Posts whose Followup-To names more groups than this are refused. Answers to a post without one go to all of its Newsgroups,
    /// which `posting.groups_max` bounds.
    pub followups_max: u32,
    /// Posts with an older Date or Injection-Date are refused, seconds; 0 takes any age that `articles.age_s_max` does.
    pub age_s_max: u64,
    /// Posts dated further ahead than this are refused, seconds.
    pub future_s_max: u64,
    /// Posts of 40 lines or more with a larger part of quoted lines than this, percent, are refused; 100 takes any.
    pub quoted_percent_max: u32,
    /// The From field of posts without one, as in `A reader <reader@example.org>`; empty: they are refused.
    pub from: String,
    /// The Organization field of posts without one; empty: they get none.
    pub organization: String,
    /// What stands behind the `@` of message-ids made here; empty: the path identity.
    pub message_id_host: String,
    /// The address in Injection-Info for complaints about a post; empty: none.
    pub complaints_to: String,
    /// Whether Path and Injection-Info tell the address a post came from. The keyed hash in `posting-account` tells
    /// posts of one address or user apart without it, and only who has the spool can find out whose they are.
    pub tell_address: bool,
    /// Posts in a minute from one address (IPv4), network (IPv6 /64; from a /56 four times, from a /48 sixteen times as many) or user,
    /// beyond which they are refused; 0: any number.
    pub articles_per_minute_max: u32,
    /// Who has posted too often waits at least a second, and twice as long each time that is not heeded, up to this, seconds.
    pub backoff_s_max: u64,
    /// Posts in 24 hours from one address, network (as above) or user; 0: any number. Counted in memory: a start begins anew.
    pub articles_per_day_max: u32,
}

impl Default for PostingConfig {
    fn default() -> Self {
        Self {
            clients: PostingClients::Loopback,
            groups_max: 10,
            followups_max: 5,
            age_s_max: 3 * 86_400,
            future_s_max: 86_400,
            quoted_percent_max: 100,
            from: String::new(),
            organization: String::new(),
            message_id_host: String::new(),
            complaints_to: String::new(),
            tell_address: false,
            articles_per_minute_max: 0,
            backoff_s_max: 3600,
            articles_per_day_max: 0,
        }
    }
}

/// The longest text a field gets from the configuration, octets.
const TEXT_OCTETS_MAX: usize = 400;

impl PostingConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let plain = |text: &str| {
            text.len() <= TEXT_OCTETS_MAX
                && !text.chars().any(char::is_control)
                && text == text.trim()
        };
        if !plain(&self.organization) {
            let right = format!("one line of at most {TEXT_OCTETS_MAX} octets");
            problems.push(("organization", right));
        }
        let from = self.from.as_bytes();
        if !plain(&self.from)
            || !from.is_empty() && newsreel_wire::article::first_mailbox(from).is_err()
        {
            problems.push((
                "from",
                "a mailbox such as A reader <reader@example.org>".into(),
            ));
        }
        let host = &self.message_id_host;
        if !host.is_empty() && !newsreel_wire::path::identity_is_valid(host) {
            problems.push((
                "message_id_host",
                "a host name such as news.example.org".into(),
            ));
        }
        if !self.complaints_to.is_empty() && !is_address(self.complaints_to.as_bytes()) {
            problems.push((
                "complaints_to",
                "an address such as usenet@example.org".into(),
            ));
        }
        problems
    }
}

/// `[moderation]`: how articles for moderated groups reach the moderators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModerationConfig {
    /// Whose group is whose, as in INN's file `moderators`: `pattern:address`, the first that matches holds; `%s` in an
    /// address is the group's name with dashes for dots. Empty: posts to moderated groups are refused.
    pub moderators: Vec<String>,
    /// The program that mails go to, with its arguments; `%s` among them is the address, `%f` the envelope sender, as in
    /// `"/usr/sbin/sendmail -oi -f %f %s"` where the mail system lets this user say it. It gets the mail on its standard input. No
    /// shell is involved.
    pub sendmail: String,
    /// The address and port of a mail server to use instead of the program; spoken to in clear, so it belongs on this
    /// machine or network. Empty: the program is used.
    pub smtp: String,
    /// The envelope sender of mails, where bounces go, as `smtp` is told it, and a program by `%f`; empty: `usenet@` and the path
    /// identity.
    pub sender: String,
    /// Whether an article is sent as an attachment of type application/news-transmission (RFC 5537 section 3.5.1)
    /// instead of as the mail itself.
    pub encapsulate: bool,
    /// Mails waiting to be sent to moderators; posts to moderated groups are put off beyond it. One user, or without a login one network
    /// (an IPv4 address, an IPv6 /48), may have a quarter of what others leave waiting. As many may be put aside
    /// that were refused for good (docs/posting.md), and as many about control messages (`control.mail_to`) may wait
    /// beside them, which never keep one another waiting.
    pub queue_mails_max: u32,
    /// The first pause after a mail could not be sent, seconds; each is twice the one before.
    pub retry_s_min: u64,
    /// The longest pause, seconds; what is refused for good is put aside behind one (docs/posting.md).
    pub retry_s_max: u64,
    /// How long one attempt may take, seconds.
    pub attempt_s_max: u64,
}

impl Default for ModerationConfig {
    fn default() -> Self {
        Self {
            moderators: Vec::new(),
            sendmail: "/usr/sbin/sendmail -oi -oem %s".to_owned(),
            smtp: String::new(),
            sender: String::new(),
            encapsulate: false,
            queue_mails_max: 10_000,
            retry_s_min: 30,
            retry_s_max: 3600,
            attempt_s_max: 120,
        }
    }
}

impl ModerationConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if let Err(why) = Moderators::parse(&self.moderators) {
            problems.push(("moderators", why));
        }
        if self.smtp.is_empty() && !self.sendmail.starts_with('/') {
            let right = "the whole path of a program, as in \"/usr/sbin/sendmail -oi -oem %s\"";
            problems.push(("sendmail", right.into()));
        }
        if !self.smtp.is_empty() && self.smtp.parse::<std::net::SocketAddr>().is_err() {
            problems.push((
                "smtp",
                "an address with its port, as in \"127.0.0.1:25\"".into(),
            ));
        }
        if !self.sender.is_empty() && !is_address(self.sender.as_bytes()) {
            problems.push(("sender", "an address such as usenet@example.org".into()));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_sound_and_wrong_values_are_told_together() {
        assert_eq!(PostingConfig::default().problems(), []);
        assert_eq!(ModerationConfig::default().problems(), []);
        let posting = PostingConfig {
            from: "nobody".into(),
            organization: "two\nlines".into(),
            message_id_host: "a b".into(),
            complaints_to: "me".into(),
            ..PostingConfig::default()
        };
        assert_eq!(posting.problems().len(), 4);
        let moderation = ModerationConfig {
            moderators: vec!["no address".into()],
            sendmail: "sendmail".into(),
            sender: "me".into(),
            ..ModerationConfig::default()
        };
        assert_eq!(moderation.problems().len(), 3);
        let smtp = ModerationConfig {
            smtp: "mail".into(),
            ..ModerationConfig::default()
        };
        assert_eq!(smtp.problems().len(), 1);
    }
}
