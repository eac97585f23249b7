//! Control messages that must be signed: what a key signed that a rule names is done, and nothing by what is forged.

use std::sync::Arc;

use newsreel_engine::{ArticleRef, ControlReport, GroupSpec, Keyring};
use newsreel_host::MemoryDisk;
use newsreel_service::Outcome;

use crate::world::{World, article, config, open_on};

const ARTICLE: &str = include_str!("../../../../tests/fixtures/openpgp/newgroup.txt");
const NAMES: &str = "Subject,Control,Message-ID,Date,From,Sender";

/// Keys with the signatures that they made.
const SIGNED: [(&str, &str, &str); 6] = [
    sign(
        "rsa.a.example",
        RSA,
        include_str!("../../../../tests/fixtures/openpgp/rsa.sig"),
    ),
    sign(
        "dsa.a.example",
        DSA,
        include_str!("../../../../tests/fixtures/openpgp/dsa.sig"),
    ),
    sign(
        "ed25519.a.example",
        include_str!("../../../../tests/fixtures/openpgp/ed25519.asc"),
        include_str!("../../../../tests/fixtures/openpgp/ed25519.sig"),
    ),
    sign(
        "v3.a.example",
        include_str!("../../../../tests/fixtures/openpgp/v3.asc"),
        include_str!("../../../../tests/fixtures/openpgp/v3.sig"),
    ),
    sign(
        "subkey.a.example",
        include_str!("../../../../tests/fixtures/openpgp/subkey.asc"),
        include_str!("../../../../tests/fixtures/openpgp/subkey.sig"),
    ),
    sign(
        "revoked.a.example",
        include_str!("../../../../tests/fixtures/openpgp/revoked.asc"),
        include_str!("../../../../tests/fixtures/openpgp/revoked.sig"),
    ),
];
const RSA: &str = include_str!("../../../../tests/fixtures/openpgp/rsa.asc");
const DSA: &str = include_str!("../../../../tests/fixtures/openpgp/dsa.asc");

const fn sign(
    name: &'static str,
    key: &'static str,
    signature: &'static str,
) -> (&'static str, &'static str, &'static str) {
    (name, key, signature)
}

/// The message as it goes over the wire, with a signature.
fn signed(article: &str, names: &str, signature: &str) -> Vec<u8> {
    let (head, body) = article.split_once("\n\n").unwrap();
    let lines: Vec<&str> = signature.lines().collect();
    let field = match signature {
        "" => String::new(),
        _ => format!("X-PGP-Sig: GnuPG {names}\n\t{}\n", lines.join("\n\t")),
    };
    let body = body.replace("\n.", "\n..");
    format!("{head}\n{field}\n{body}.\n")
        .replace('\n', "\r\n")
        .into_bytes()
}

/// What came of a message where this is in the keyring and that is the rule.
async fn sent(keys: &[&str], rule: &str, article: Vec<u8>) -> (World, bool, ControlReport) {
    let mut config = config(4 << 20);
    config.control.rules = vec!["all:*:*:drop".to_owned(), rule.to_owned()];
    let disk = Arc::new(MemoryDisk::new());
    let keyring = Keyring::of_spool(disk.clone(), &config.spool);
    let world = World::on(disk, config);
    world
        .engine
        .add_groups(vec![GroupSpec::new("control")])
        .unwrap();
    for key in keys {
        keyring.import(key.as_bytes(), false).unwrap();
    }
    let text = String::from_utf8(article.clone()).unwrap();
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("Message-ID: "));
    let id = id.unwrap().to_owned();
    assert_eq!(
        world.send(&[(id.clone(), article)]).await,
        [Outcome::Accepted]
    );
    let is_made = world.engine.group("alt.new").is_some();
    let report = world.engine.control_message(&ArticleRef::Id(id)).unwrap();
    (world, is_made, report.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_key_signed_that_a_rule_names_is_done() {
    for (name, key, signature) in &SIGNED[..5] {
        let rule = format!("newgroup:admin@a.example:alt.*:verify-{name}");
        let article = signed(ARTICLE, NAMES, signature);
        let (world, is_made, report) = sent(&[DSA, RSA, key], &rule, article).await;
        assert!(is_made, "{report:?}");
        assert_eq!(report.signature, Some(format!("good, by {name}")));
        let group = world.engine.group("alt.new").unwrap();
        assert_eq!(
            (group.status.as_str(), group.description.as_str()),
            ("m", "What is new. (Moderated)")
        );
    }
    // By the key's fingerprint, too.
    let rule = "newgroup:*:*:verify-45a2ab9f1c756f8a98907dd2015ec1609d2d0ceb";
    let article = signed(ARTICLE, NAMES, SIGNED[0].2);
    assert!(sent(&[RSA], rule, article).await.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forged_changes_nothing() {
    let rule = "newgroup:admin@a.example:alt.*:verify-rsa.a.example";
    let (good, other) = (SIGNED[0].2, SIGNED[1].2);
    let all = [RSA, DSA];
    let changed = |from: &str, to: &str| {
        assert!(ARTICLE.contains(from));
        signed(&ARTICLE.replace(from, to), NAMES, good)
    };
    let wrong = "bad: the signature does not fit the text";
    for (keys, article, said) in [
        (&all[..], signed(ARTICLE, NAMES, ""), None),
        (
            &all,
            signed(ARTICLE, NAMES, other),
            Some("good, by dsa.a.example"),
        ),
        (
            &all[1..],
            signed(ARTICLE, NAMES, good),
            Some("bad: no key in the keyring made it"),
        ),
        (
            &[],
            signed(ARTICLE, NAMES, good),
            Some("bad: no key in the keyring made it"),
        ),
        (&all, changed("What is new", "What is old"), Some(wrong)),
        (&all, changed("<signed@", "<other@"), Some(wrong)),
        (
            &all,
            changed("new moderated\nDate", "new\nDate"),
            Some(wrong),
        ),
        (
            &all,
            changed("Approved", "Sender: root@a.example\nApproved"),
            Some(wrong),
        ),
        (&all, changed("22:00:00", "22:00:01"), Some(wrong)),
        (
            &all,
            signed(ARTICLE, "Subject,Message-ID,Date,From,Sender", good),
            Some("bad: its Control is not signed"),
        ),
        (
            &all,
            signed(ARTICLE, NAMES, "AAAA"),
            Some("bad: its X-PGP-Sig: malformed: no packet of OpenPGP begins so"),
        ),
        (
            &all,
            signed(ARTICLE, NAMES, "****"),
            Some("bad: its X-PGP-Sig: malformed: it is not base64"),
        ),
        (&all, signed(ARTICLE, "", ""), None),
    ] {
        let (world, is_made, report) = sent(keys, rule, article).await;
        assert!(!is_made, "{report:?}");
        assert_eq!(report.signature.as_deref(), said);
        assert_eq!(report.asks[0].becomes, "drop");
        assert_eq!(world.engine.control_waiting().unwrap(), []);
        // Somebody who knows better can do it all the same.
        let which = ArticleRef::Id(report.message_id);
        world.engine.control_approve(&which).unwrap();
        assert!(world.engine.group("alt.new").is_some());
    }
    let (name, key, signature) = SIGNED[5];
    let rule = format!("all:*:*:verify-{name}");
    let (_, is_made, report) = sent(&[key], &rule, signed(ARTICLE, NAMES, signature)).await;
    assert_eq!(
        report.signature.as_deref(),
        Some("bad: the key has been revoked")
    );
    assert!(!is_made);
}

/// All that anybody signed whose key is in the keyring had one share of what waits: who holds any key pushed out what others signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_key_signs_pushes_out_nothing_that_another_signed() {
    const MOLE: &str = include_str!("../../../../tests/fixtures/openpgp/mole.asc");
    let by_mole = [
        include_str!("../../../../tests/fixtures/openpgp/mole-1.sig"),
        include_str!("../../../../tests/fixtures/openpgp/mole-2.sig"),
    ];
    let mut config = config(4 << 20);
    // There is room for two that are signed.
    config.control.waiting_octets_max = 400;
    let disk = Arc::new(MemoryDisk::new());
    let keyring = Keyring::of_spool(disk.clone(), &config.spool);
    let world = World::on(disk, config);
    for key in [RSA, MOLE] {
        keyring.import(key.as_bytes(), false).unwrap();
    }
    let genuine = signed(ARTICLE, NAMES, SIGNED[0].2);
    let mut sent = vec![("<signed@control.example>".to_owned(), genuine)];
    for (n, signature) in (1..).zip(by_mole) {
        let article = ARTICLE.replace("<signed@", &format!("<mole{n}@"));
        let article = article.replace("alt.new", &format!("alt.mole{n}"));
        let article = article.replace("Newsgroups: alt.mole", "Newsgroups: alt.new");
        sent.push((
            format!("<mole{n}@control.example>"),
            signed(&article, NAMES, signature),
        ));
    }
    for article in &sent {
        let outcome = world.send(std::slice::from_ref(article)).await;
        assert_eq!(outcome, [Outcome::Accepted]);
    }
    let waiting = world.engine.control_waiting().unwrap();
    let waiting: Vec<_> = waiting
        .iter()
        .map(|it| (it.message_id.as_str(), it.signature.as_deref().unwrap()))
        .collect();
    assert_eq!(
        waiting,
        [
            ("<signed@control.example>", "good, by rsa.a.example"),
            ("<mole2@control.example>", "good, by mole.a.example"),
        ]
    );
}

/// Injection-Date is signed by nobody, so a new one makes no message new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_message_that_comes_again_is_not_heeded() {
    for (date, is_heeded) in [
        ("Tue, 14 Nov 2023 22:10:00 +0000", true),
        ("Tue, 05 Dec 2023 22:10:00 +0000", false),
    ] {
        let mut config = config(4 << 20);
        config.control.rules = vec!["all:*:*:verify-rsa.a.example".to_owned()];
        config.articles.age_s_max = 10 * 86_400;
        let disk = Arc::new(MemoryDisk::new());
        let keyring = Keyring::of_spool(disk.clone(), &config.spool);
        let world = World::on(disk, config);
        keyring.import(RSA.as_bytes(), false).unwrap();
        if !is_heeded {
            world
                .clock
                .advance(std::time::Duration::from_secs(21 * 86_400));
        }
        let article = ARTICLE.replace("Approved", &format!("Injection-Date: {date}\nApproved"));
        let article = signed(&article, NAMES, SIGNED[0].2);
        let id = "<signed@control.example>".to_owned();
        assert_eq!(world.send(&[(id, article)]).await, [Outcome::Accepted]);
        assert_eq!(world.engine.group("alt.new").is_some(), is_heeded, "{date}");
    }
}

#[test]
fn keys_are_taken_in_replaced_and_taken_out() {
    let disk = Arc::new(MemoryDisk::new());
    let spool = std::path::Path::new("/spool");
    newsreel_host::Disk::create_dir_all(disk.as_ref(), spool).unwrap();
    let keyring = Keyring::of_spool(disk.clone(), spool);
    let names = || {
        let keys = keyring.all().unwrap();
        let names = keys.iter().flat_map(|key| key.standing().names);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0]);
    let both = format!("Two keys:\n{RSA}and\n{DSA}");
    assert_eq!(
        keyring.import(both.as_bytes(), true).unwrap().taken.len(),
        2
    );
    assert_eq!(names(), [""; 0], "that was a dry run");
    for _ in 0..2 {
        keyring.import(both.as_bytes(), false).unwrap();
        assert_eq!(names(), ["dsa.a.example", "rsa.a.example"]);
    }
    assert!(keyring.import(b"no key", false).is_err());
    assert!(keyring.remove("nobody").is_err());
    assert_eq!(keyring.remove("dsa.a.example").unwrap(), 1);
    assert_eq!(
        keyring
            .remove("45A2AB9F1C756F8A98907DD2015EC1609D2D0CEB")
            .unwrap(),
        1
    );
    assert_eq!(names(), [""; 0]);
    keyring.import(both.as_bytes(), false).unwrap();
    // What is damaged verifies nothing, and is not written over.
    let path = spool.join(newsreel_engine::KEYRING_FILE);
    let mut octets = newsreel_host::read_whole(disk.as_ref(), &path, 1 << 20).unwrap();
    assert!(octets.starts_with(b"newsreel control keys 1 "));
    *octets.last_mut().unwrap() ^= 1;
    newsreel_host::replace_file(disk.as_ref(), &path, &octets).unwrap();
    let error = keyring.all().unwrap_err().to_string();
    assert!(
        error.contains("control-keys, line 1: the checksum is wrong"),
        "{error}"
    );
    assert!(keyring.import(RSA.as_bytes(), false).is_err());
    assert_eq!(
        newsreel_host::read_whole(disk.as_ref(), &path, 1 << 20).unwrap(),
        octets
    );
}

pub(crate) const NOTICES: &str = include_str!("../../../../tests/fixtures/openpgp/nocem.asc");

pub(crate) const NOTICE: &str = include_str!("../../../../tests/fixtures/openpgp/nocem.txt");

/// The fixture's notice as an article in this group.
pub(crate) fn notice(name: &str, group: &str, text: &str) -> (String, Vec<u8>) {
    let (id, article) = article(0, group);
    let other = format!("<{name}@t.example>");
    let article = String::from_utf8(article).unwrap().replace(&id, &other);
    let (head, _) = article.split_once("\r\n\r\n").unwrap();
    let body = text.replace('\n', "\r\n");
    (other, format!("{head}\r\n\r\n{body}.\r\n").into_bytes())
}

/// What somebody whom a rule names lists as spam goes, whatever its locks, and what comes later does not stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_trusted_notice_lists_goes() {
    let mut config = config(4 << 20);
    config.control.nocem = vec!["notices@a.example:spam".to_owned()];
    let disk = Arc::new(MemoryDisk::new());
    let keyring = Keyring::of_spool(disk.clone(), &config.spool);
    let world = World::on(disk.clone(), config);
    let filed = ["alt.nocem.misc", "news.lists.filters"];
    world
        .engine
        .add_groups(filed.map(GroupSpec::new).to_vec())
        .unwrap();
    let locked = |n: usize| {
        let (id, text) = article(n, "misc.test");
        let text = String::from_utf8(text).unwrap();
        let lock = "Cancel-Lock: sha256:RBJ8gsknqu6SrfaQPH8hNXbVmRHCFhWdlzz8nzwUiOk=\r\nSubject: ";
        (id, text.replacen("Subject: ", lock, 1).into_bytes())
    };
    world
        .send(&[locked(1), article(2, "misc.test"), article(3, "misc.test")])
        .await;
    let left = |world: &World| world.engine.group("misc.test").unwrap().count;
    // Before its key is here, changed, of another type, or where nobody looks for one it is an article like others.
    let sent = [notice("a", filed[0], NOTICE)];
    assert_eq!(world.send(&sent).await, [Outcome::Accepted]);
    keyring.import(NOTICES.as_bytes(), false).unwrap();
    let changed = NOTICE.replace("<2@t.example>", "<3@t.example>");
    let sent = [
        notice("b", filed[0], &changed),
        notice("c", "misc.other", NOTICE),
    ];
    world.send(&sent).await;
    assert_eq!(left(&world), 3);
    world.send(&[notice("d", filed[1], NOTICE)]).await;
    assert_eq!(left(&world), 1);
    // One that it lists comes later: after the power was cut, too.
    let after = Arc::new(disk.crash_losing_all());
    let world = open_on(after, &world.config, &world.clock);
    let (later, text) = notice("later", "misc.test", "x\n");
    world.send(&[(later, text)]).await;
    assert_eq!(left(&world), 1);
    // Again it changes nothing.
    world
        .send(&[notice("e", filed[1], NOTICE), article(4, "misc.test")])
        .await;
    assert_eq!(left(&world), 2);
    assert_eq!(world.problems(), [""; 0]);
}
