//! NoCeM notices: lists of articles that somebody whom this site trusts does not want seen, signed in the article's own text.
//!
//! A notice does something only where a rule names the key that signed it, and the type that it gives; then its articles are
//! withdrawn as by an administrator, whatever their locks say, those that come later on arrival.  That is done when the notice itself
//! is on disk, at the next start if need be ([`due`](super::due)); doing it twice changes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use newsreel_openpgp::{Signature, signature_block};
use newsreel_service::cancel_lock::LockPrints;
use newsreel_wire::article::{Headers, Known, RelayFacts};
use newsreel_wire::{IdHash, MessageId, UnixTime, Wildmat};

use super::cancel::{self, Effect, NOTICED};
use super::groups::text;
use super::keyring::Signer;
use super::shares::Holder;
use crate::counters::Counters;
use crate::error::Error;
use crate::record::PendingRecord;
use crate::shared::{Policy, Shared};
use crate::withdraw::{AT_ONCE, TRIES};

const SIGNED: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
const END: &str = "-----END PGP SIGNATURE-----";
const FIELDS: &str = "@@BEGIN NCM HEADERS";
const LIST: &str = "@@BEGIN NCM BODY";
const LIST_END: &str = "@@END NCM BODY";

/// Whose notices of which types are heeded: lines `KEY:types`, with `|` between types, which are shell patterns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Issuers(Vec<(Arc<str>, Wildmat)>);

impl Issuers {
    /// Reads the lines; the first that is wrong is told.
    pub(crate) fn parse(lines: &[String]) -> Result<Self, String> {
        let issuers = lines.iter().map(|line| {
            let wrong = |why: &str| format!("{line:?}: {why}, as in \"bleach@a.example:spam|mmf\"");
            let (key, types) = line
                .rsplit_once(':')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| wrong("a key and types are wanted, with a colon between them"))?;
            let types = super::rules::patterns(&types.to_ascii_lowercase());
            Ok((key.into(), types.map_err(|why| wrong(&why))?))
        });
        Ok(Self(issuers.collect::<Result<_, String>>()?))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody whom `is` means is heeded for this type.
    pub(crate) fn heed(&self, kind: &str, is: impl Fn(&str) -> bool) -> bool {
        let kind = kind.to_ascii_lowercase();
        let mut rules = self.0.iter();
        rules.any(|(key, types)| types.matches(&kind) && is(key))
    }
}

/// A notice that is not verified.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) id: String,
    pub(crate) signature: Signature,
    /// What is signed, with LF between lines.
    pub(crate) signed: String,
    pub(crate) kind: String,
    /// Message-ids, each once.
    pub(crate) listed: Vec<String>,
    /// How many stand behind those, which are not looked at.
    pub(crate) left_out: usize,
}

/// The notice that an article is, if it stands where notices are looked for.
pub(crate) fn asked(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
) -> Option<Notice> {
    if policy.issuers.is_empty() {
        return None;
    }
    found(
        shared,
        policy,
        headers,
        (relay.newsgroups, relay.message_id.as_str()),
    )
}

/// The same of one that is here.
pub(super) fn of_stored(shared: &Shared, policy: &Policy, headers: &Headers<'_>) -> Option<Notice> {
    let content = |known| headers.content(known).unwrap_or_default();
    let id = std::str::from_utf8(content(Known::MessageId)).ok()?;
    found(shared, policy, headers, (content(Known::Newsgroups), id))
}

fn found(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    (newsgroups, id): (&[u8], &str),
) -> Option<Notice> {
    let newsgroups = std::str::from_utf8(newsgroups).ok()?;
    let mut groups = newsgroups.split(',').map(str::trim);
    if !groups.any(|group| policy.notice_groups.matches(group)) {
        return None;
    }
    let body = text(headers);
    if !body.contains(FIELDS) {
        return None;
    }
    match read(&body, shared.waiting_limits().noticed_max()) {
        Ok(None) => None,
        Ok(Some(parts)) => Some(Notice {
            id: id.to_owned(),
            ..parts
        }),
        Err(why) => {
            if let Some(more) = shared.may_say(|lines| &lines.notice_malformed) {
                tracing::info!(%id, why, more, "a NoCeM notice is malformed and changes nothing");
            }
            None
        }
    }
}

/// Reads a notice of which so many articles are looked at; `None`: it asks for nothing to be hidden.
pub(crate) fn read(body: &str, listed_max: usize) -> Result<Option<Notice>, String> {
    let (signed, signature) = clear_text(body)?;
    let mut lines = signed.lines();
    lines
        .find(|line| *line == FIELDS)
        .ok_or("its list is not in what is signed")?;
    let (mut kind, mut action) = (None, None);
    for line in lines.by_ref().take_while(|line| *line != LIST) {
        let Some((name, content)) = line.split_once(':') else {
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "type" => kind = kind.or_else(|| Some(content.trim().to_owned())),
            "action" => action = action.or_else(|| Some(content.trim().to_ascii_lowercase())),
            _ => {}
        }
    }
    let kind = kind.ok_or("it has no type")?;
    if action.as_deref() != Some("hide") {
        return Ok(None);
    }
    let (mut listed, mut left_out, mut seen) = (Vec::new(), 0, HashSet::new());
    let mut has_end = false;
    for line in lines {
        has_end = line == LIST_END;
        if has_end {
            break;
        }
        // Lines that go on with groups begin with a blank; what begins with # is for people.
        let word = line.split([' ', '\t']).next().unwrap_or_default();
        if MessageId::parse(word.as_bytes()).is_err() || !seen.insert(word) {
            continue;
        }
        if listed.len() < listed_max {
            listed.push(word.to_owned());
        } else {
            left_out += 1;
        }
    }
    if !has_end {
        return Err("its list has no end".to_owned());
    }
    Ok((!listed.is_empty()).then(|| Notice {
        id: String::new(),
        signature,
        kind,
        listed,
        left_out,
        signed: signed.clone(),
    }))
}

/// What is signed, and the signature (RFC 9580 section 7).
fn clear_text(body: &str) -> Result<(String, Signature), String> {
    let mut lines = body.lines().map(|line| line.trim_end_matches([' ', '\t']));
    lines
        .find(|line| *line == SIGNED)
        .ok_or("it is not signed")?;
    // The fields of the frame, of which none is needed, and an empty line.
    lines
        .find(|line| line.is_empty())
        .ok_or("its signed text does not begin")?;
    let mut signed = Vec::new();
    let mut has_end = false;
    for line in lines.by_ref() {
        has_end = line == SIGNATURE;
        if has_end {
            break;
        }
        signed.push(line.strip_prefix("- ").unwrap_or(line));
    }
    if !has_end {
        return Err("its signature is missing".to_owned());
    }
    let armor: Vec<&str> = lines
        .skip_while(|line| !line.is_empty())
        .take_while(|line| *line != END)
        .collect();
    let said = |why: newsreel_openpgp::Error| format!("its signature: {why}");
    let block = signature_block(armor.concat().as_bytes()).map_err(said)?;
    let signature = Signature::read(&block).map_err(said)?;
    Ok((signed.join("\n"), signature))
}

/// Who signed a notice, if the rules name them; the log says who else did.
///
/// # Errors
/// When the keyring cannot be read; that stands in the log, too.
pub(super) fn trusted(shared: &Shared, notice: &Notice) -> Result<Option<Signer>, Error> {
    let id = &notice.id;
    let policy = shared.policy.load();
    let keyring = shared.keyring();
    let signer = match keyring.signer(&notice.signature, notice.signed.as_bytes()) {
        Ok(Ok(signer)) => signer,
        Ok(Err(why)) => {
            if let Some(more) = shared.may_say(|lines| &lines.notice_not_signed) {
                tracing::info!(%id, why, more, "nobody signed a NoCeM notice whom this site knows");
            }
            return Ok(None);
        }
        Err(error) => {
            if let Some(more) = shared.may_say(|lines| &lines.not_verified) {
                tracing::error!(%id, %error, more, "a NoCeM notice cannot be verified and changes nothing");
            }
            return Err(error);
        }
    };
    if !policy.issuers.heed(&notice.kind, |key| signer.is(key)) {
        let (signer, kind) = (signer.names.join(", "), &notice.kind);
        if let Some(more) = shared.may_say(|lines| &lines.notice_not_heeded) {
            tracing::info!(%id, signer, kind, more, "a NoCeM notice is for no rule");
        }
        return Ok(None);
    }
    Ok(Some(signer))
}

/// Does what a notice asks for, where somebody signed it whom the rules name.
///
/// # Errors
/// When it cannot be told who signed it, or not all of it was done.
pub(super) fn heed(shared: &Shared, notice: &Notice) -> Result<(), Error> {
    let id = &notice.id;
    let Some(signer) = trusted(shared, notice)? else {
        return Ok(());
    };
    let holder = Holder::of_issuer(signer.fingerprint());
    let issuer = signer.names.join(", ");
    shared
        .pending
        .call(holder, || format!("the issuer {issuer}"));
    let done = withdraw(shared, notice, holder);
    if let Ok((articles, waiting)) = &done {
        tracing::info!(%id, articles, waiting, "a NoCeM notice is heeded");
    }
    if notice.left_out > 0 {
        Counters::add(&shared.counters.unnoticed, notice.left_out as u64);
        tracing::warn!(
            %id, issuer, left_out = notice.left_out,
            "a NoCeM notice lists more articles than are looked at; `control.waiting_octets_max` gives room for more"
        );
    }
    shared.say_what_is_forgotten(UnixTime(shared.clock.now().secs));
    done.map(drop)
}

/// Withdraws what is here, and has the rest waited for; how many were here, and how many were not.
fn withdraw(shared: &Shared, notice: &Notice, holder: Holder) -> Result<(usize, usize), Error> {
    let keys: LockPrints = [NOTICED].into_iter().collect();
    let listed = notice.listed.iter().filter(|listed| **listed != notice.id);
    let targets = listed.filter_map(|listed| MessageId::parse(listed.as_bytes()).ok());
    let targets: Vec<IdHash> = targets.map(|target| shared.id_hash(target)).collect();
    let (mut rest, mut withdrawn, mut waiting) = (targets.as_slice(), 0, 0);
    let mut tries = TRIES;
    while !rest.is_empty() {
        let (some, behind) = rest.split_at(rest.len().min(AT_ONCE));
        let (moves, retired) = (shared.moves(), shared.views.groups().retired());
        let since = UnixTime(shared.clock.now().secs);
        let (mut here, mut awaited, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for target in some {
            let cancel = PendingRecord {
                target: *target,
                since,
                keys: keys.clone(),
                holder,
            };
            let mut wait = || shared.await_target(&cancel);
            match cancel::effect(shared, &cancel, &retired, &mut memory, &mut wait)? {
                Some(Effect::Withdraw(record, _)) => here.push(record),
                Some(Effect::Wait) => awaited.push(cancel),
                Some(Effect::None) | None => {}
            }
        }
        match shared.put_down(&here, &awaited, moves) {
            // They may lie elsewhere by now.
            Err(Error::Moved) if tries > 0 => tries -= 1,
            result => {
                result?;
                withdrawn += here.len();
                waiting += awaited.len();
                rest = behind;
            }
        }
    }
    Counters::add(&shared.counters.cancelled, withdrawn as u64);
    Ok((withdrawn, waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTICE: &str = include_str!("../../../../tests/fixtures/openpgp/nocem.txt");

    #[test]
    fn a_notice_is_read() {
        let notice = read(NOTICE, 10).unwrap().unwrap();
        assert_eq!(notice.left_out, 0);
        let short = read(NOTICE, 1).unwrap().unwrap();
        assert_eq!((short.listed.len(), short.left_out), (1, 2));
        assert_eq!(notice.kind, "spam");
        let listed = ["<1@t.example>", "<2@t.example>", "<later@t.example>"];
        assert_eq!(notice.listed, listed);
        assert!(notice.signed.contains("\n-- \n") || notice.signed.contains("\n--\n"));
        // What stands beside what is signed is no part of it.
        let beside = NOTICE.replace(
            SIGNED,
            &format!("{FIELDS}\nType: mmf\n{LIST}\n<x@y>\n{LIST_END}\n{SIGNED}"),
        );
        assert_eq!(read(&beside, 10).unwrap().unwrap().listed, listed);
        assert!(
            read(&NOTICE.replace("Action: hide", "Action: show"), 10)
                .unwrap()
                .is_none()
        );
        for (old, new) in [
            (SIGNED, "x"),
            (SIGNATURE, "x"),
            (LIST_END, "x"),
            ("Type:", "Kind:"),
            (FIELDS, "x"),
        ] {
            assert!(read(&NOTICE.replace(old, new), 10).is_err(), "{old}");
        }
    }

    #[test]
    fn who_is_heeded() {
        let issuers = Issuers::parse(&["a b:spam|mm?".to_owned(), "ABCD:*".to_owned()]).unwrap();
        let heeds = |kind: &str, key: &str| issuers.heed(kind, |named| named == key);
        assert!(heeds("spam", "a b") && heeds("MMF", "a b") && heeds("any", "ABCD"));
        assert!(!heeds("binary", "a b") && !heeds("spam", "other"));
        for bad in ["", "key", "key:", ":spam", "key:a,b", "key:!spam"] {
            assert!(Issuers::parse(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
