//! What an injecting agent adds (RFC 5537 section 3.5, steps 5 to 11), and a post as a mail (section 3.5.1).
//!
//! Fields stay in their order and as they are; new ones stand behind them.  Only Lines is taken out, which says what
//! nobody can trust.  The entry of the path with its `POSTED` is put in front where all articles get theirs.

use newsreel_wire::article::{Control, Known};
use newsreel_wire::date::print_rfc5322;
use newsreel_wire::nntp::framing::dot_unstuff;
use newsreel_wire::{MessageId, UnixTime};

use super::{PostingConfig, Proto, mail_id};
use crate::cancel_lock::{Locksmith, Owner};

/// A hash that stands for a poster.
pub type Account = [u8; 12];

/// What is true of this server and this poster.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Our name in Path.
    pub path_identity: &'a str,
    /// The settings.
    pub config: &'a PostingConfig,
    /// The keyed hash of the account or address; see [`account`].
    pub account: Option<Account>,
    /// The poster's address, where it may be told.
    pub address: Option<std::net::IpAddr>,
    /// The locks it gets; none if it is to have none.
    pub locks: Option<Locks<'a>>,
    /// The time.
    pub now: UnixTime,
}

/// By whom an article can be taken back.
#[derive(Debug, Clone, Copy)]
pub struct Locks<'a> {
    /// Who makes its locks, and keys for what it takes back.
    pub smith: &'a Locksmith,
    /// Whose it is, as far as anybody can tell.
    pub owner: Option<Owner<'a>>,
}

/// The hash that stands for a poster: the user if there is one, else the network.  Whoever has not the key can neither
/// find out whose it is nor make one.
#[must_use]
pub fn account(
    key: &[u8; 32],
    user: Option<&str>,
    network: Option<std::net::IpAddr>,
) -> Option<Account> {
    let mut hash = blake3::Hasher::new_derive_key("newsreel 2026-11 posting-account");
    hash.update(key);
    match (user, network) {
        (Some(user), _) => hash.update(b"user ").update(user.as_bytes()),
        (None, Some(network)) => hash
            .update(b"network ")
            .update(network.to_string().as_bytes()),
        (None, None) => return None,
    };
    hash.finalize().as_bytes().first_chunk().copied()
}

impl Proto<'_> {
    /// The article as it goes on, in wire form; `id` is its own or the one made for it.
    #[must_use]
    pub fn inject(&self, id: MessageId<'_>, site: &Site<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.headers.wire().len() + 512);
        if !self.has(Known::Path) {
            field("Path", b"not-for-mail", &mut out);
        }
        self.completed(id, site, &self.locks(id, site), &mut out);
        // Another injecting agent may have it too, and one that is older than the field (RFC 5537 section 3.5).
        let may_be_elsewhere = self.has(Known::Date) && self.has(Known::MessageId);
        if !self.has(Known::InjectionDate) && !may_be_elsewhere {
            date(Known::InjectionDate, site.now, &mut out);
        }
        injection_info(site, &mut out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.headers.body());
        out
    }

    /// The article as a mail to a moderator, with CRLF and without dot-stuffing: before what only an injected article has
    /// (RFC 5537 section 3.5.1), as the mail itself or as an attachment.
    #[must_use]
    pub fn mail(&self, id: MessageId<'_>, site: &Site<'_>, to: &str, encapsulate: bool) -> Vec<u8> {
        let mut article = Vec::with_capacity(self.headers.wire().len() + 512);
        self.completed(id, site, &[], &mut article);
        if !encapsulate {
            article = without_mail_fields(&article);
        }
        article.extend_from_slice(b"\r\n");
        article.extend_from_slice(self.headers.body());
        let mut out = Vec::with_capacity(article.len() + 512);
        if encapsulate {
            let subject = self.headers.content(Known::Subject).unwrap_or_default();
            field("To", to.as_bytes(), &mut out);
            match self.headers.content(Known::From) {
                Some(from) => field("From", from, &mut out),
                None => field("From", site.config.from.as_bytes(), &mut out),
            }
            field("Subject", subject, &mut out);
            date(Known::Date, site.now, &mut out);
            let own = mail_id(id.as_bytes(), to, site.path_identity);
            field("Message-ID", own.as_bytes(), &mut out);
            out.extend_from_slice(
                b"MIME-Version: 1.0\r\n\
                  Content-Type: application/news-transmission; usage=moderate\r\n\
                  Content-Transfer-Encoding: 8bit\r\n\r\n",
            );
        } else {
            field("To", to.as_bytes(), &mut out);
        }
        dot_unstuff(&article, &mut out);
        out
    }

    fn has(&self, field: Known) -> bool {
        self.headers.present().contains(field)
    }

    /// What goes in front of the author's own locks and keys (RFC 8315 sections 3.1 and 3.3): locks by which the site and the
    /// poster can take the article back, and the poster's key for what this one takes back.
    fn locks(&self, id: MessageId<'_>, site: &Site<'_>) -> Vec<(Known, String)> {
        let Some(Locks { smith, owner }) = site.locks else {
            return Vec::new();
        };
        let owners = owner.into_iter().chain([Owner::Site]);
        let locks = owners.map(|owner| (Known::CancelLock, smith.lock(owner, id)));
        let key = owner.zip(self.taken_back());
        let key = key.map(|(owner, target)| (Known::CancelKey, smith.key(owner, target)));
        locks.chain(key).collect()
    }

    /// The article that this one cancels or supersedes.
    fn taken_back(&self) -> Option<MessageId<'_>> {
        let control = self.headers.content(Known::Control).map(Control::parse);
        match (control, self.headers.content(Known::Supersedes)) {
            (Some(control), _) => control?.cancelled(),
            (None, Some(id)) => MessageId::parse(id).ok(),
            (None, None) => None,
        }
    }

    /// The header block with all that an author could have written, without its empty line; what is `added` to a field
    /// stands in front of what it has: who checks locks looks at so many of them and no more.
    fn completed(
        &self,
        id: MessageId<'_>,
        site: &Site<'_>,
        added: &[(Known, String)],
        out: &mut Vec<u8>,
    ) {
        for one in self.headers.fields() {
            let known = one.known();
            if known == Some(Known::Lines) {
                continue;
            }
            let octets = self.headers.wire().get(one.start..one.end);
            let octets = octets.unwrap_or_default();
            match begin_field(known, added, out) {
                true => {
                    let content = octets.get(one.name.len() + ":".len()..);
                    out.push(b'\t');
                    out.extend_from_slice(content.unwrap_or_default().trim_ascii_start());
                }
                false => out.extend_from_slice(octets),
            }
        }
        let config = site.config;
        if !self.has(Known::From) {
            field("From", config.from.as_bytes(), out);
        }
        if !self.has(Known::Date) {
            date(Known::Date, site.now, out);
        }
        if !self.has(Known::MessageId) {
            field("Message-ID", id.as_bytes(), out);
        }
        if !self.has(Known::Organization) && !config.organization.is_empty() {
            field("Organization", config.organization.as_bytes(), out);
        }
        for known in [Known::CancelLock, Known::CancelKey] {
            if !self.has(known) {
                begin_field(Some(known), added, out);
            }
        }
    }
}

/// Begins a field with what is added to it, each on a line of its own; `false`: nothing is.
fn begin_field(known: Option<Known>, added: &[(Known, String)], out: &mut Vec<u8>) -> bool {
    let mut ours = added.iter().filter(|(of, _)| Some(*of) == known);
    let Some((of, first)) = ours.next() else {
        return false;
    };
    field(of.name(), first.as_bytes(), out);
    for (_, text) in ours {
        out.extend_from_slice(b"\t");
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    true
}

fn field(name: &str, content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}

/// Fields that say where a mail goes and how it came: an article's own would send it elsewhere, or stand there twice.
const MAIL_FIELDS: [&str; 7] = [
    "to",
    "cc",
    "bcc",
    "received",
    "return-path",
    "delivered-to",
    "dkim-signature",
];

/// A header block without such fields.
fn without_mail_fields(head: &[u8]) -> Vec<u8> {
    let mut is_left_out = false;
    let lines = head.split_inclusive(|octet| *octet == b'\n');
    let kept = lines.filter(|line| {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.split(|octet| *octet == b':').next();
            let name = name.unwrap_or_default().to_ascii_lowercase();
            is_left_out = name.starts_with(b"resent-")
                || MAIL_FIELDS.iter().any(|field| field.as_bytes() == name);
        }
        !is_left_out
    });
    kept.flatten().copied().collect()
}

fn date(name: Known, time: UnixTime, out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(32);
    print_rfc5322(time, &mut text);
    field(name.name(), &text, out);
}

/// RFC 5536 section 3.2.8.
fn injection_info(site: &Site<'_>, out: &mut Vec<u8>) {
    let mut text = site.path_identity.to_owned();
    if let Some(address) = site.address {
        text.push_str(&format!(";\r\n\tposting-host=\"{address}\""));
    }
    if let Some(account) = site.account {
        text.push_str(";\r\n\tposting-account=\"");
        for octet in account {
            text.push_str(&format!("{octet:02x}"));
        }
        text.push('"');
    }
    if !site.config.complaints_to.is_empty() {
        let address = &site.config.complaints_to;
        text.push_str(&format!(";\r\n\tmail-complaints-to=\"{address}\""));
    }
    field("Injection-Info", text.as_bytes(), out);
}

#[cfg(test)]
mod tests {
    use newsreel_wire::article::HeaderLimits;
    use proptest::prelude::*;

    use super::super::check;
    use super::*;

    const NOW: UnixTime = UnixTime(1_767_225_600);

    fn config() -> PostingConfig {
        PostingConfig {
            from: "A reader <reader@a.example>".to_owned(),
            organization: "A site".to_owned(),
            complaints_to: "abuse@a.example".to_owned(),
            ..PostingConfig::default()
        }
    }

    /// The article of this text, its id, and a site without locks.
    fn with<R>(text: &str, then: impl FnOnce(&Proto<'_>, MessageId<'_>, &Site<'_>) -> R) -> R {
        let (wire, config) = (text.replace('\n', "\r\n"), config());
        let proto = check(wire.as_bytes(), HeaderLimits::USUAL, &config, NOW).unwrap();
        let site = Site {
            path_identity: "news.a.example",
            config: &config,
            account: Some([0xab; 12]),
            address: Some([192, 0, 2, 7].into()),
            locks: None,
            now: NOW,
        };
        let id = proto
            .message_id
            .unwrap_or(MessageId::parse(b"<made@a.example>").unwrap());
        then(&proto, id, &site)
    }

    fn injected(text: &str) -> String {
        let octets = with(text, |proto, id, site| proto.inject(id, site));
        String::from_utf8(octets).unwrap().replace("\r\n", "\n")
    }

    const INFO: &str = "Injection-Info: news.a.example;\n\tposting-host=\"192.0.2.7\";\n\t\
        posting-account=\"abababababababababababab\";\n\tmail-complaints-to=\"abuse@a.example\"\n";

    #[test]
    fn a_bare_article_gets_all_it_needs() {
        let text = "Newsgroups: misc.test\nLines: 99\nSubject: s\n\n..x\n.\n";
        assert_eq!(
            injected(text),
            format!(
                "Path: not-for-mail\nNewsgroups: misc.test\nSubject: s\n\
                 From: A reader <reader@a.example>\nDate: Thu, 01 Jan 2026 00:00:00 +0000\n\
                 Message-ID: <made@a.example>\nOrganization: A site\n\
                 Injection-Date: Thu, 01 Jan 2026 00:00:00 +0000\n{INFO}\n..x\n.\n"
            )
        );
    }

    #[test]
    fn what_it_brings_stays_as_it_is() {
        let own = "From: Ada <ada@b.example>\nNewsgroups: misc.test\nSubject:  a\n b\nOrganization: Mine\n";
        let both = format!(
            "{own}Date: Wed, 31 Dec 2025 10:00:00 +0100\nMessage-ID: <1@b.example>\nPath: b!me\n"
        );
        assert_eq!(
            injected(&format!("{both}\nx\n.\n")),
            format!("{both}{INFO}\nx\n.\n"),
            "no Injection-Date: it may have been injected elsewhere too"
        );
        let dated = injected(&format!(
            "{own}Injection-Date: Wed, 31 Dec 2025 10:00:00 +0000\n\nx\n.\n"
        ));
        assert_eq!(dated.matches("Injection-Date:").count(), 1);
        assert!(dated.contains("Injection-Date: Wed, 31 Dec 2025"));
    }

    /// RFC 8315 sections 3.1 and 3.3.
    #[test]
    fn locks_and_keys_stand_in_front_of_the_authors_own() {
        let smith = Locksmith::new(&[7; 32]);
        let fields = |text: &str, owner| {
            let octets = with(text, |proto, id, site| {
                let locks = Some(Locks {
                    smith: &smith,
                    owner,
                });
                proto.inject(id, &Site { locks, ..*site })
            });
            let text = String::from_utf8(octets).unwrap().replace("\r\n", "\n");
            let from = text.find("Cancel-").unwrap();
            let (mut kept, mut is_kept) = (String::new(), false);
            for line in text[from..].split("\n\n").next().unwrap().lines() {
                is_kept = line.starts_with("Cancel-") || is_kept && line.starts_with('\t');
                kept.push_str(if is_kept { line } else { "" });
                kept.push_str(if is_kept { "\n" } else { "" });
            }
            kept
        };
        let (own, target) = ("<1@b.example>", "<0@b.example>");
        let id = |text: &'static str| MessageId::parse(text.as_bytes()).unwrap();
        let (ada, site) = (Owner::User("ada"), Owner::Site);
        let lock = |owner| smith.lock(owner, id(own));
        let key = |owner| smith.key(owner, id(target));
        let text = format!("From: a@b.example\nNewsgroups: a.b\nSubject: s\nMessage-ID: {own}\n");
        let body = "\nx\n.\n";
        assert_eq!(
            fields(&format!("{text}{body}"), None),
            format!("Cancel-Lock: {}\n", lock(site))
        );
        assert_eq!(
            fields(&format!("{text}{body}"), Some(ada)),
            format!("Cancel-Lock: {}\n\t{}\n", lock(ada), lock(site))
        );
        for taking in [
            format!("Control: cancel {target}"),
            format!("Supersedes: {target}"),
        ] {
            assert_eq!(
                fields(&format!("{text}{taking}\n{body}"), Some(ada)),
                format!(
                    "Cancel-Lock: {}\n\t{}\nCancel-Key: {}\n",
                    lock(ada),
                    lock(site),
                    key(ada)
                )
            );
            let unnamed = fields(&format!("{text}{taking}\n{body}"), None);
            assert!(
                !unnamed.contains("Cancel-Key"),
                "nobody in particular has no key"
            );
        }
        let mine = "Cancel-Key: sha256:a\n\tsha256:b\nCancel-Lock: sha256:ypLQZKsY0xI9b9AEVXMM5tJCPXIyWkYvQWLQqd3gWfs=\n";
        assert_eq!(
            fields(
                &format!("{text}{mine}Control: cancel {target}\n{body}"),
                Some(ada)
            ),
            format!(
                "Cancel-Key: {}\n\tsha256:a\n\tsha256:b\nCancel-Lock: {}\n\t{}\n\tsha256:ypLQZKsY0xI9b9AEVXMM5tJCPXIyWkYvQWLQqd3gWfs=\n",
                key(ada),
                lock(ada),
                lock(site)
            )
        );
    }

    #[test]
    fn a_mail_to_a_moderator() {
        // What is a mail's own would send it elsewhere; two To fields no mail may have (RFC 5322 section 3.6).
        let text = "From: Ada <ada@b.example>\nNewsgroups: mod.test\nTO: x@y.example,\n z@y.example\nSubject: s\nbcc: x@y.example\n\
             Received: from a\n\tby b\nResent-To: x@y.example\n\n..x\n.\n";
        let mail = |encapsulate| {
            let octets = with(text, |proto, id, site| {
                proto.mail(id, site, "mod@m.example", encapsulate)
            });
            String::from_utf8(octets).unwrap().replace("\r\n", "\n")
        };
        let article = "From: Ada <ada@b.example>\nNewsgroups: mod.test\nSubject: s\n\
            Date: Thu, 01 Jan 2026 00:00:00 +0000\nMessage-ID: <made@a.example>\nOrganization: A site\n\n.x\n";
        assert_eq!(mail(false), format!("To: mod@m.example\n{article}"));
        let whole = mail(true);
        let (head, inside) = whole.split_once("\n\n").unwrap();
        let own = article.replace(
            "Subject: s\n",
            "TO: x@y.example,\n z@y.example\nSubject: s\nbcc: x@y.example\nReceived: from a\n\tby b\nResent-To: x@y.example\n",
        );
        assert_eq!(inside, own);
        assert!(head.contains("Content-Type: application/news-transmission; usage=moderate"));
        assert!(
            head.starts_with("To: mod@m.example\nFrom: Ada <ada@b.example>\nSubject: s\nDate: ")
        );
        // It is no article, so it is called otherwise; and it is the same mail whenever it is made.
        let ids = head
            .lines()
            .filter(|line| line.starts_with("Message-ID: <mail."));
        assert_eq!(ids.count(), 1, "{head}");
        assert!(head.contains("@news.a.example>\nMIME-Version"), "{head}");
        assert_eq!(mail(true), whole);
    }

    #[test]
    fn accounts_tell_posters_apart_and_nothing_else() {
        let key = [7; 32];
        let address = Some(std::net::IpAddr::from([192, 0, 2, 1]));
        let ada = account(&key, Some("ada"), address).unwrap();
        assert_eq!(Some(ada), account(&key, Some("ada"), None));
        let all = [
            Some(ada),
            account(&key, Some("bob"), None),
            account(&key, None, address),
            account(&key, Some("192.0.2.1"), None),
            account(&[8; 32], Some("ada"), None),
        ];
        let distinct: std::collections::BTreeSet<_> = all.into_iter().map(Option::unwrap).collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(account(&key, None, None), None);
    }

    proptest! {
        /// Whatever the body, it goes on octet for octet, and what was injected is an article that may be relayed.
        #[test]
        fn prop_bodies_are_not_touched(lines in proptest::collection::vec("[^\0\r\n]{0,90}", 1..30), id in any::<bool>()) {
            let mut wire = "From: a@b.example\r\nNewsgroups: misc.test\r\nSubject: s\r\n".to_owned();
            if id {
                wire.push_str("Message-ID: <own@b.example>\r\n");
            }
            wire.push_str("\r\nfirst\r\n");
            let mut body = Vec::new();
            for line in &lines {
                body.extend_from_slice(line.as_bytes());
                body.extend_from_slice(b"\r\n");
            }
            let mut wire = wire.into_bytes();
            newsreel_wire::nntp::framing::dot_stuff(&body, &mut wire);
            if !wire.ends_with(b"\r\n.\r\n") {
                wire.extend_from_slice(b".\r\n");
            }
            let config = config();
            let proto = check(&wire, HeaderLimits::USUAL, &config, NOW).unwrap();
            let site = Site {
                path_identity: "news.a.example",
                config: &config,
                account: None,
                address: None,
                locks: None,
                now: NOW,
            };
            let made = MessageId::parse(b"<made@a.example>").unwrap();
            let out = proto.inject(proto.message_id.unwrap_or(made), &site);
            let headers = newsreel_wire::article::Headers::scan(&out).unwrap();
            prop_assert_eq!(headers.body(), proto.headers.body());
            let facts = newsreel_wire::article::ArticleFacts::of(&headers).unwrap();
            let relay = newsreel_wire::article::check_relay(&headers, &facts);
            prop_assert!(relay.is_ok(), "{:?}", relay);
        }
    }
}
