//! Wrong configurations, foreign directories and taken addresses: what is there stays as it is.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use newsreel_host::{Disk, RealDisk, read_whole};

use crate::client::NewsClient;
use crate::spool::Spool;

/// Every file below a folder with its octets.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in RealDisk.list(folder).unwrap() {
        let path = folder.join(&entry.name);
        if RealDisk.list(&path).is_ok() {
            files(&path, found);
        } else if let Ok(octets) = read_whole(&RealDisk, &path, 64 << 20) {
            found.insert(path, octets);
        }
    }
}

fn snapshot(spool: &Spool) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(&spool.path(), &mut found);
    found
}

/// A spool with an article, stopped, and its usual configuration.
fn filled() -> Spool {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test"),
        "239 <1@t.example>"
    );
    server.stop();
    spool
}

/// What root writes in somebody else's spool its owner could not read: batches that rnews kept were left there for ever.
#[test]
#[expect(clippy::disallowed_methods, reason = "gives a directory away")]
fn root_writes_nothing_that_belongs_to_somebody_else() {
    if newsreel_host::process::own_uid() != 0 {
        println!("skipped: only root can give a spool away");
        return;
    }
    let spool = filled();
    let before = snapshot(&spool);
    std::os::unix::fs::chown(spool.path(), Some(65_534), None).unwrap();
    let batch = spool.config();
    for words in [
        &["group", "add", "other.test"][..],
        &["rnews", batch.to_str().unwrap()],
    ] {
        let said = spool.error(words);
        assert!(said.contains("belongs to user 65534"), "{words:?}: {said}");
    }
    assert!(snapshot(&spool) == before, "a file was made or changed");
    std::os::unix::fs::chown(spool.path(), Some(0), None).unwrap();
}

#[test]
fn who_looks_writes_nothing() {
    let spool = filled();
    let before = snapshot(&spool);
    for words in [
        &["status"][..],
        &["check"],
        &["group", "list"],
        &["article", "show", "<1@t.example>"],
        &["store", "inspect"],
    ] {
        spool.text(words);
        let after = snapshot(&spool);
        assert!(before.keys().eq(after.keys()), "{words:?} made a file");
        assert!(before == after, "{words:?} changed a file");
    }
}

#[test]
fn a_configuration_without_the_spools_buffers_is_refused_and_costs_nothing() {
    let spool = filled();
    let before = snapshot(&spool);
    let other = Spool::changed(&[("name = \"A\"", "name = \"Z\"")]);
    spool.configure(&other);
    for words in [&["serve"][..], &["status"], &["group", "add", "misc.b"]] {
        let error = spool.error(words);
        assert!(error.contains("does not name: A;"), "{words:?}: {error}");
        assert!(error.contains("--drop-buffer A"), "{words:?}: {error}");
    }
    let after = snapshot(&spool);
    let made: Vec<_> = after
        .keys()
        .filter(|path| !before.contains_key(*path))
        .collect();
    assert_eq!(made, Vec::<&PathBuf>::new());
    spool.configure(&Spool::changed(&[]));
    let check = spool.json(&["check"]);
    assert_eq!(
        (&check["articles"], &check["overwritten"]),
        (&1.into(), &0.into()),
        "{check}"
    );
    // Whoever means it says so, once.
    spool.configure(&other);
    spool.serve_with(&["--drop-buffer", "A"]).stop();
    spool.serve().stop();
    spool.configure(&Spool::changed(&[("name = \"B\"", "name = \"Z\"")]));
    let error = spool.error(&["serve"]);
    assert!(error.contains("does not name: B;"), "{error}");
}

/// Users that were added to a directory made for the spool kept the server from ever starting there.
#[test]
fn users_may_be_added_before_the_first_start() {
    let spool = Spool::new();
    RealDisk.create_dir_all(&spool.path()).unwrap();
    spool
        .piped(&["user", "add", "ada"], "correct-horse\n")
        .unwrap();
    let server = spool.serve();
    assert!(spool.text(&["user", "list"]).contains("ada"));
    server.stop();
}

#[test]
fn a_taken_address_and_a_foreign_directory_are_left_as_they_are() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let spool = Spool::new();
    let error = spool.error(&["serve", "--listen", &address]);
    assert!(error.contains(&address), "{error}");
    assert!(!RealDisk.exists(&spool.path()).unwrap(), "a spool was made");
    newsreel_host::replace_file(&RealDisk, &spool.folder().join("thesis"), b"mine").unwrap();
    let folder = spool.folder().display().to_string();
    let error = spool.error(&["serve", "--spool", &folder]);
    assert!(error.contains("give an empty directory"), "{error}");
    assert!(!RealDisk.exists(&spool.folder().join("lock")).unwrap());
}
