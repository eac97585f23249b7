//! Files and programs that a configuration names, which may not be there: what `newsreel config check` says of them.
//!
//! A start is refused where TLS cannot be spoken; all else is tried again when it is needed, and is a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::Keyring;
use newsreel_feed::FeedKind;
use newsreel_host::process::is_program;
use newsreel_host::{Disk as _, RealDisk, read_whole};

use super::Config;
use super::doubts::doubts;
use super::entries::in_words;

/// As much of a file is read to see that it can be.
const FILE_OCTETS_MAX: usize = 1 << 20;

/// A key, and what is wrong with what it names.
type Missing = (String, String);

/// What is wrong with files and programs that are named, without which a server starts all the same.
fn missing(config: &Config) -> Vec<Missing> {
    let mut programs = vec![("login.program".to_owned(), config.login.program.as_str())];
    for (at, filter) in config.filter.iter().enumerate() {
        programs.push((format!("filter[{at}].program"), &filter.program));
    }
    for (at, peer) in config.peer.iter().enumerate() {
        for (place, feed) in peer.feed.iter().enumerate() {
            if feed.kind == FeedKind::Program {
                programs.push((format!("peer[{at}].feed[{place}].program"), &feed.program));
            }
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
    let programs = programs.into_iter();
    let mut missing: Vec<Missing> = programs
        .filter_map(|(key, command)| program(command).map(|what| (key, what)))
        .collect();
    missing.extend(files(config));
    missing.extend(attached(config));
    missing.extend(keys(config));
    missing.extend(authority(config));
    missing
}

/// A certificate that many clients, ours among them, do not believe as a server's own.
fn authority(config: &Config) -> Option<Missing> {
    let shown = read_whole(&RealDisk, &config.tls.certificate, FILE_OCTETS_MAX).ok()?;
    let said = "it is the certificate of an authority (CA:TRUE), and many clients do not believe such a one as a server's own: make one with \
                `openssl req -x509 -addext basicConstraints=critical,CA:FALSE` and your other options";
    newsreel_net::is_of_an_authority(&shown)
        .then(|| ("tls.certificate".to_owned(), said.to_owned()))
}

/// The same, and what else can hardly be meant, as lines for people; where much else is wrong with the file, only what it says itself.
pub(crate) fn warnings(config: &Config, file: &str, is_broken: bool) -> Vec<String> {
    let mut found = missing(config);
    // What follows from entries that could not be read is not meant.
    if !is_broken {
        found.extend(doubts(config));
    }
    found.retain(|(key, _)| !is_broken || config.places.has(key));
    let lines = found.into_iter().map(|(key, what)| {
        let said = in_words(&format!("{key}: {what}"), &config.store);
        match config.places.of(&key) {
            (0, _) => format!("{file}: {said}"),
            (line, column) => format!("{file}:{line}:{column}: {said}"),
        }
    });
    lines.collect()
}

/// The keys that rules name and the keyring does not have: what they would verify is never done.
fn keys(config: &Config) -> Vec<Missing> {
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
    let spool = config.server.spool.display();
    let (mut lacking, mut missing) = (BTreeMap::<&str, BTreeSet<&str>>::new(), Vec::new());
    for (setting, key) in verified.chain(issuers) {
        match keyring.has(key) {
            Ok(true) => {}
            Ok(false) => {
                lacking.entry(setting).or_default().insert(key);
            }
            // It is the same of all of them.
            Err(error) => return vec![(setting.to_owned(), error.to_string())],
        }
    }
    for (setting, keys) in lacking {
        let keys: Vec<&str> = keys.into_iter().collect();
        let what = match keys.as_slice() {
            [key] => format!("no key {key}, so nothing is done that only it may; take it in"),
            keys => format!(
                "none of {} keys, so nothing is done that only they may: {}; take in those that are wanted",
                keys.len(),
                keys.join(", ")
            ),
        };
        let what =
            format!("the keyring of {spool} has {what} by `newsreel control keys import FILE`");
        missing.push((setting.to_owned(), what));
    }
    missing
}

/// What is wrong with a program, by the words it is started with.
fn program(command: &str) -> Option<String> {
    let word = command.split_ascii_whitespace().next()?;
    let is_there = match word.contains('/') {
        true => is_program(Path::new(word)),
        false => std::env::var_os("PATH").is_some_and(|path| {
            let mut folders = std::env::split_paths(&path);
            folders.any(|folder| is_program(&folder.join(word)))
        }),
    };
    (!is_there).then(|| format!("there is no program {word} that can be run"))
}

/// Files of other spools that are not there now, as on a disk that is not mounted: what lies in them is not to be had until they are.
fn attached(config: &Config) -> Vec<Missing> {
    let files = config.store.sets.iter().enumerate();
    let files = files.filter_map(|(at, set)| Some((at, set.file.as_ref()?)));
    let away = files.filter_map(|(at, file)| {
        let wrong = match RealDisk.exists(file) {
            Ok(true) if RealDisk.list(file).is_ok() => {
                "it is a directory, and a buffer or segment is wanted".to_owned()
            }
            Ok(true) => return None,
            Ok(false) => "it is not there".to_owned(),
            Err(error) => error.to_string(),
        };
        let what = format!(
            "{}: {wrong}; its articles cannot be read until it is there",
            file.display()
        );
        Some((format!("set[{at}].file"), what))
    });
    away.collect()
}

/// What is wrong with files that are read when a server elsewhere is spoken to.
fn files(config: &Config) -> Vec<Missing> {
    let mut named: Vec<(String, PathBuf)> = Vec::new();
    for (at, peer) in config.peer.iter().enumerate() {
        for (key, path) in [
            ("authority", &peer.authority),
            ("certificate", &peer.certificate),
            ("key", &peer.key),
            ("password_file", &peer.password_file),
        ] {
            named.push((format!("peer[{at}].{key}"), path.clone()));
        }
    }
    for (at, upstream) in config.upstream.clone().iter_mut().enumerate() {
        let paths = upstream.paths_mut().map(|path| path.clone());
        named.extend(paths.map(|path| (format!("upstream[{at}]"), path)));
    }
    for (at, pull) in config.pull.clone().iter_mut().enumerate() {
        let paths = pull.paths_mut().map(|path| path.clone());
        named.extend(paths.map(|path| (format!("pull[{at}]"), path)));
    }
    named.retain(|(_, path)| !path.as_os_str().is_empty());
    let unread = named.into_iter().filter_map(|(key, path)| {
        let read = read_whole(&RealDisk, &path, FILE_OCTETS_MAX);
        read.err().map(|error| (key, error.to_string()))
    });
    unread.collect()
}
