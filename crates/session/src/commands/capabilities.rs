//! CAPABILITIES: what this server can do, true for this moment (RFC 3977 section 5.2).

use std::sync::Arc;

use newsreel_net::access::{Grant, LIST_KEYWORDS};
use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use super::list::may_list;
use super::{TABLE, authinfo, compress, starttls};
use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "CAPABILITIES",
    usage: "[keyword]",
    args: (0, 1),
    needs: Needs::Nothing,
    capability: None,
    pipelined: false,
    codes: &[101],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if command.arg(0).is_some_and(|keyword| !is_keyword(keyword)) {
        core.reply("501 Malformed keyword\r\n");
        return Ok(());
    }
    if core.grant.is_for_readers() {
        core.learn(|features| features.newnews && features.over_by_id)
            .await;
    }
    core.reply("101 Capability list follows\r\n");
    let (features, may_post) = (core.features, core.may_post());
    let (may_log_in, may_start_tls) = (core.may_log_in(), core.may_start_tls());
    let may_compress = compress::is_offered(core);
    let may_read_later = core.features.reader && core.not_yet(Grant::is_for_readers).is_some();
    let (takes_clear_text, takes_scram) = (core.door.takes_clear_text(), core.door.takes_scram());
    let takes_certificate = core.door.certified("").is_some();
    let takes_sasl = takes_clear_text || takes_scram || takes_certificate;
    let (shared, grant) = (Arc::clone(&core.shared), Arc::clone(&core.grant));
    let service = Arc::clone(&core.service);
    let out = core.out();
    out.extend_from_slice(b"VERSION 2\r\nIMPLEMENTATION newsreel ");
    out.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut seen: Option<&str> = None;
    for capability in CAPABILITIES {
        let offered = TABLE.iter().any(|spec| {
            let is_here = spec.needs.met(features) && spec.needs.granted(&grant);
            spec.capability == Some(capability) && is_here
        });
        let offered = match *capability {
            authinfo::CAPABILITY => may_log_in,
            authinfo::MECHANISMS => may_log_in && takes_sasl,
            starttls::CAPABILITY => may_start_tls,
            compress::CAPABILITY => may_compress,
            // Who has to log in or to begin TLS first is a reader all the same.
            "READER" => offered || may_read_later,
            _ => offered,
        };
        if !offered || seen == Some(capability) || *capability == "POST" && !may_post {
            continue;
        }
        seen = Some(capability);
        out.extend_from_slice(capability.as_bytes());
        if *capability == "OVER" && features.over_by_id {
            out.extend_from_slice(b" MSGID");
        }
        for (of, argument, offered) in [
            (authinfo::CAPABILITY, " USER", takes_clear_text),
            (authinfo::CAPABILITY, " SASL", takes_sasl),
            (authinfo::MECHANISMS, " PLAIN", takes_clear_text),
            (authinfo::MECHANISMS, " SCRAM-SHA-256", takes_scram),
            (authinfo::MECHANISMS, " EXTERNAL", takes_certificate),
        ] {
            if *capability == of && offered {
                out.extend_from_slice(argument.as_bytes());
            }
        }
        if *capability == super::list::CAPABILITY {
            let is_here = |word: &str| shared.lists.offers(word) || service.has_site_list(word);
            write_lists(&grant, is_here, out);
        }
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    Ok(())
}

/// Appends the keywords of LIST that are here and that who is there may ask for.
fn write_lists(grant: &Grant, is_here: impl Fn(&str) -> bool, out: &mut Vec<u8>) {
    let is_offered = |word: &&&str| is_here(word) && may_list(grant, word.as_bytes());
    for keyword in LIST_KEYWORDS.iter().filter(is_offered) {
        out.push(b' ');
        out.extend_from_slice(keyword.as_bytes());
    }
}

/// Lines in the order they are shown; those without a command in the table are not.
const CAPABILITIES: &[&str] = &[
    starttls::CAPABILITY,
    compress::CAPABILITY,
    authinfo::CAPABILITY,
    authinfo::MECHANISMS,
    "READER",
    "POST",
    "IHAVE",
    "STREAMING",
    "HDR",
    super::list::CAPABILITY,
    "NEWNEWS",
    "OVER",
];

/// RFC 3977 section 9.8: a letter, then at least two letters, digits, dots or dashes.
fn is_keyword(keyword: &[u8]) -> bool {
    let more = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'-');
    keyword.len() >= 3
        && keyword.first().is_some_and(u8::is_ascii_alphabetic)
        && keyword.iter().all(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_of_the_table_is_shown() {
        for spec in TABLE {
            assert!(
                spec.capability
                    .is_none_or(|name| CAPABILITIES.contains(&name)),
                "{}",
                spec.name
            );
        }
    }
}
