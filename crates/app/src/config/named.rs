//! Files and programs that a configuration names, which may not be there: what `newsreel config check` says of them.
//!
//! A start is refused where TLS cannot be spoken; all else is tried again when it is needed, and is a warning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::Keyring;
use newsreel_feed::FeedKind;
use newsreel_host::process::is_program;
use newsreel_host::{RealDisk, read_whole};

use super::Config;

/// As much of a file is read to see that it can be.
const FILE_OCTETS_MAX: usize = 1 << 20;

/// What is wrong with files and programs that are named, without which a server starts all the same.
pub(crate) fn missing(config: &Config) -> Vec<String> {
    let mut programs = vec![("login.program".to_owned(), config.login.program.as_str())];
    for (at, filter) in config.filter.iter().enumerate() {
        programs.push((format!("filter[{at}].program"), &filter.program));
    }
    for (at, peer) in config.peer.iter().enumerate() {
        let of_kind = |kind| peer.feed.iter().filter(move |feed| feed.kind == kind);
        for feed in of_kind(FeedKind::Program) {
            programs.push((format!("peer[{at}].feed.program"), &feed.program));
        }
    }
    // Without moderators, and without rules that want a mail, nobody gets one.
    let rules = &config.control.rules;
    let tells = rules.iter().any(|rule| rule.ends_with(":mail"));
    let mails = tells || !config.moderation.moderators.is_empty();
    if mails && config.moderation.smtp.is_empty() {
        let program = config.moderation.sendmail.as_str();
        programs.push(("moderation.sendmail".to_owned(), program));
    }
    let mut missing: Vec<String> = programs
        .iter()
        .filter_map(|(key, command)| program(key, command))
        .collect();
    missing.extend(files(config));
    missing.extend(keys(config));
    missing
}

/// The keys that rules name and the keyring does not have: what they would verify is never done.
fn keys(config: &Config) -> Vec<String> {
    let control = &config.control;
    let verified = control.rules.iter().filter_map(|rule| {
        let (_, action) = rule.rsplit_once(':')?;
        Some(("control.rules", action.strip_prefix("verify-")?))
    });
    let issuers = control.nocem.iter().filter_map(|issuer| {
        let (key, _) = issuer.rsplit_once(':')?;
        Some(("control.nocem", key))
    });
    let keyring = Keyring::of_spool(Arc::new(RealDisk), &config.server.spool);
    let mut missing = Vec::new();
    for (setting, key) in verified.chain(issuers) {
        let said = match keyring.has(key) {
            Ok(true) => continue,
            Ok(false) => format!(
                "{setting}: the keyring of {} has no key {key}, so nothing is done that only it may; take it in by `newsreel control \
                 keys import FILE`",
                config.server.spool.display()
            ),
            Err(error) => error.to_string(),
        };
        if !missing.contains(&said) {
            missing.push(said);
        }
    }
    missing
}

/// What is wrong with a program, by the words it is started with.
fn program(key: &str, command: &str) -> Option<String> {
    let word = command.split_ascii_whitespace().next()?;
    let is_there = match word.contains('/') {
        true => is_program(Path::new(word)),
        false => std::env::var_os("PATH").is_some_and(|path| {
            let mut folders = std::env::split_paths(&path);
            folders.any(|folder| is_program(&folder.join(word)))
        }),
    };
    (!is_there).then(|| format!("{key}: there is no program {word} that can be run"))
}

/// What is wrong with files that are read when a server elsewhere is spoken to.
fn files(config: &Config) -> Vec<String> {
    let mut upstreams = config.upstream.clone();
    let own: Vec<PathBuf> = config
        .peer
        .iter()
        .flat_map(|peer| {
            let remote = [
                &peer.authority,
                &peer.certificate,
                &peer.key,
                &peer.password_file,
            ];
            remote.map(Clone::clone)
        })
        .chain(
            upstreams
                .iter_mut()
                .flat_map(|upstream| upstream.paths_mut().map(|path| path.clone())),
        )
        .collect();
    let named = own.iter().filter(|path| !path.as_os_str().is_empty());
    let unread = named.filter_map(|path| {
        let read = read_whole(&RealDisk, path, FILE_OCTETS_MAX);
        read.err().map(|error| error.to_string())
    });
    unread.collect()
}
