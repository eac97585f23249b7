//! `newsreel control`: messages about groups, listed, shown and approved, live and offline.

use std::path::Path;

use newsreel_host::{Clock, RealClock, RealDisk, read_whole, replace_file};
use newsreel_wire::nntp::framing::wire_to_lf;
use serde_json::json;

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

/// A message that a DSA key signed, as it goes over the wire.
const FUZZED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fuzz/corpus/control_message/newgroup-signed"
);

fn feed(client: &mut NewsClient, name: &str, control: &str, body: &str) {
    feed_with(
        client,
        name,
        &format!("{control}\r\nApproved: admin@a.example"),
        body,
    );
}

fn feed_with(client: &mut NewsClient, name: &str, control: &str, body: &str) {
    let id = format!("<{name}@control.example>");
    let date = "Wed, 31 Dec 2025 12:00:00 +0000";
    client.send(
        format!(
            "TAKETHIS {id}\r\nPath: a!b\r\nFrom: Admin <admin@a.example>\r\nNewsgroups: alt.new\r\nSubject: s\r\n\
             Date: {date}\r\nMessage-ID: {id}\r\nControl: {control}\r\n\r\n{body}.\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.line(), format!("239 {id}"));
}

#[test]
fn what_messages_ask_for_is_listed_shown_and_approved() {
    let rules = "[control]\nrules = ['rmgroup:*:misc.*:log']\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "control"]);
    assert_eq!(
        spool.text(&["control", "list"]),
        "no message about groups asks for anything\n"
    );
    let mut client = NewsClient::connect(server.address);
    let body = "For your newsgroups file:\r\nalt.new\tWhat is new.\r\n";
    feed(&mut client, "1", "newgroup alt.new moderated", body);
    feed(&mut client, "2", "rmgroup misc.test", "");
    feed(&mut client, "3", "newgroup alt..bad", "");
    let listed = spool.text(&["control", "list"]);
    let lines: Vec<_> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    assert_eq!(lines.len(), 3, "{listed}");
    let first = lines[1].join(" ");
    assert!(
        first.starts_with("<1@control.example>")
            && first.ends_with("make alt.new moderated \"What is new.\""),
        "{listed}"
    );
    assert!(
        lines[2]
            .join(" ")
            .ends_with("admin@a.example remove misc.test"),
        "{listed}"
    );
    assert_eq!(spool.json(&["status"])["control_waiting"], 2);
    let status = spool.text(&["status"]);
    assert!(status.contains("0 mails, 2 control messages"), "{status}");
    let shown = spool.text(&["control", "show", "<1@control.example>"]);
    for part in [
        "newgroup alt.new moderated",
        "make alt.new moderated \"What is new.\" (by the rules: log)",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let shown = spool.text(&["control", "show", "control:3"]);
    assert!(
        shown.contains("it asks for nothing: a group's name in it is malformed"),
        "{shown}"
    );
    for verb in ["show", "approve"] {
        let error = spool.error(&["control", verb, "<none@control.example>"]);
        assert!(error.contains("it was never here"), "{error}");
    }
    let tried = spool.text(&["control", "approve", "--dry-run", "control:1"]);
    assert_eq!(tried, "would: make alt.new moderated \"What is new.\"\n");
    assert_eq!(
        spool.json(&["control", "list"]).as_array().unwrap().len(),
        2
    );
    let done = spool.json(&["control", "approve", "control:1"]);
    assert_eq!(done["asks"][0]["name"], "alt.new");
    assert_eq!(spool.json(&["status"])["control_waiting"], 1);
    let group = spool.json(&["group", "show", "alt.new"]);
    assert_eq!(
        (&group["status"], &group["description"]),
        (&json!("m"), &json!("What is new."))
    );
    let error = spool.error(&["control", "approve", "control:3"]);
    assert!(error.contains("malformed"), "{error}");
    assert_eq!(
        client.takethis("<4@t.example>", "misc.test"),
        "239 <4@t.example>"
    );
    let error = spool.error(&["control", "show", "<4@t.example>"]);
    assert!(error.contains("is no newgroup"), "{error}");
    server.stop();
    // Without a server, too.
    let again = spool.text(&["control", "approve", "control:1"]);
    assert_eq!(
        again,
        "nothing was to be done: all is here as it wants it\n"
    );
    let done = spool.text(&["control", "approve", "<2@control.example>"]);
    assert_eq!(done, "did: remove misc.test\n");
    assert_eq!(
        spool.text(&["control", "list"]),
        "no message about groups asks for anything\n"
    );
}

/// Whoever approved an older message was told nothing of a newer one that had asked for nothing when it came.
#[test]
fn who_approves_is_told_what_is_newer() {
    let rules = "[control]\nrules = ['rmgroup:*:alt.gone:doit']\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    feed(&mut client, "1", "newgroup alt.more", "");
    feed(&mut client, "a'$(id)", "rmgroup alt.more", "");
    let approve = |more: &[&str]| {
        spool.text(&[&["control", "approve", "<1@control.example>"], more].concat())
    };
    let told = "make alt.more unmoderated\na newer message wants it otherwise: \
                newsreel control show '<a'\\''$(id)@control.example>'\n";
    assert_eq!(approve(&["--dry-run"]), format!("would: {told}"));
    let shown = spool.text(&["control", "show", "<1@control.example>"]);
    assert!(
        shown.contains("a newer message wants it otherwise"),
        "{shown}"
    );
    assert_eq!(approve(&[]), format!("did: {told}"));
    let listed = spool.text(&["control", "list"]);
    assert!(listed.contains("remove alt.more"), "{listed}");
    assert_eq!(spool.json(&["status"])["control_waiting"], 1);
    // One that a rule let be done is told of, too.
    feed(&mut client, "3", "rmgroup alt.gone", "");
    let id = "<4@control.example>";
    client.send(
        format!(
            "TAKETHIS {id}\r\nPath: a!b\r\nFrom: Admin <admin@a.example>\r\nNewsgroups: alt.gone\r\nSubject: s\r\n\
             Date: Wed, 31 Dec 2025 11:00:00 +0000\r\nMessage-ID: {id}\r\nControl: newgroup alt.gone\r\n\
             Approved: admin@a.example\r\n\r\nx\r\n.\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.line(), format!("239 {id}"));
    let shown = spool.text(&["control", "show", id]);
    let late = "(by the rules: log; a newer message about it was heeded)";
    assert!(shown.contains(late), "{shown}");
    server.stop();
}

/// Each control message was a line of the log, so that strangers wrote 72,000 of them in a second.
#[test]
fn a_flood_of_control_messages_is_a_line_a_second() {
    let spool = Spool::new();
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    let clock = RealClock::new();
    let began = clock.monotonic();
    for n in 0..200 {
        feed(&mut client, &format!("m{n}"), "newgroup alt..bad", "");
        feed(
            &mut client,
            &format!("w{n}"),
            &format!("newgroup alt.n{n}"),
            "",
        );
    }
    server.stop();
    let seconds = (clock.monotonic() - began).as_secs();
    for line in ["is malformed", "waits for approval"] {
        let log = spool.log();
        let lines = log.lines().filter(|it| it.contains(line)).count() as u64;
        assert!((1..=seconds + 1).contains(&lines), "{lines} in {seconds} s");
    }
    assert_eq!(
        spool.json(&["control", "list"]).as_array().unwrap().len(),
        200,
        "there is no group of control messages"
    );
}

#[test]
fn what_was_heeded_can_be_forgotten() {
    let rules = "[control]\nrules = ['all:*:*:doit']\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    let id = "<list@control.example>";
    let list = format!(
        "TAKETHIS {id}\r\nPath: a!b\r\nFrom: Admin <admin@a.example>\r\nNewsgroups: alt.new\r\nSubject: s\r\n\
         Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\nControl: checkgroups local #20990101\r\n\
         Approved: admin@a.example\r\n\r\nlocal.a\tOf a.\r\n.\r\n"
    );
    let mut client = NewsClient::connect(server.address);
    client.send(list.as_bytes());
    assert_eq!(client.line(), format!("239 {id}"));
    let is_of = "a checkgroups of local by admin@a.example, number 20990101, Wed, 31 Dec 2025 12:00:00 +0000\n";
    let told = spool.text(&["control", "forget", "--dry-run", "local"]);
    assert_eq!(told, format!("would forget: {is_of}"));
    let told = spool.text(&["control", "forget", "local"]);
    assert_eq!(told, format!("forgot: {is_of}"));
    server.stop();
    // Without a server, too.
    let told = spool.text(&["control", "forget", "local"]);
    assert_eq!(told, "nothing is remembered of it\n");
    let told = spool.json(&["control", "forget", "--dry-run", "local"]);
    assert_eq!(told, json!({"groups": [], "lists": []}));
    let error = spool.error(&["control", "forget", "local..x"]);
    assert!(error.contains("is no name of a hierarchy"), "{error}");
}

/// A short list of a stranger of a hierarchy of 20,000 groups took 27 ms, as all was counted that nobody lets it do.
#[test]
fn what_waits_in_any_case_is_counted_no_further_than_need_be() {
    let spool = Spool::with(&Spool::changed(&[]));
    let server = spool.serve();
    let names: Vec<String> = (0..150).map(|n| format!("local.g{n}")).collect();
    let mut add = vec!["group", "add"];
    add.extend(names.iter().map(String::as_str));
    spool.text(&add);
    let id = "<short@control.example>";
    let list = format!(
        "TAKETHIS {id}\r\nPath: a!b\r\nFrom: Stranger <s@a.example>\r\nNewsgroups: alt.new\r\nSubject: s\r\n\
         Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\nControl: checkgroups local\r\n\
         Approved: s@a.example\r\n\r\nlocal.new\tNew.\r\n.\r\n"
    );
    let mut client = NewsClient::connect(server.address);
    client.send(list.as_bytes());
    assert_eq!(client.line(), format!("239 {id}"));
    let shown = spool.json(&["control", "show", id]);
    assert_eq!(shown["asks"].as_array().unwrap().len(), 151);
    server.stop();
    let log = spool.log();
    assert!(log.contains("waiting=101"), "{log}");
}

/// The log was told before a message had its turn: of one that is held back behind a newer one in the same write it said that it is heeded.
#[test]
fn the_log_says_what_came_of_a_message_in_its_turn() {
    let rules = "[control]\nrules = ['all:*:*:doit']\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let message = |name: &str, control: &str, minute: u32| {
        let id = format!("<{name}@control.example>");
        format!(
            "TAKETHIS {id}\r\nPath: a!b\r\nFrom: Admin <admin@a.example>\r\nNewsgroups: alt.new\r\nSubject: s\r\n\
             Date: Wed, 31 Dec 2025 12:{minute:02}:00 +0000\r\nMessage-ID: {id}\r\nControl: {control}\r\n\
             Approved: admin@a.example\r\n\r\n.\r\n"
        )
    };
    let newer = message("newer", "newgroup misc.test moderated", 30);
    let older = message("older", "rmgroup misc.test", 10);
    let mut client = NewsClient::connect(server.address);
    client.send((newer + &older).as_bytes());
    for name in ["newer", "older"] {
        assert_eq!(client.line(), format!("239 <{name}@control.example>"));
    }
    server.stop();
    let log = spool.log();
    let has = |name: &str, what: &str| {
        let mut lines = log.lines().filter(|line| line.contains(name));
        lines.any(|line| line.contains(what))
    };
    assert!(has("<newer@", "a control message is heeded"), "{log}");
    assert!(has("<older@", "a newer one was heeded"), "{log}");
    assert!(!has("<older@", "a control message is heeded"), "{log}");
}

/// What anybody posted here the administrator takes back, everywhere.
#[test]
fn the_sites_key_opens_what_was_posted_here() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "alt.new"]);
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("POST").starts_with("340"));
    let article = "From: a@b.example\r\nNewsgroups: alt.new\r\nSubject: s\r\nMessage-ID: <0@control.example>\r\n\r\nbody\r\n.\r\n";
    client.send(article.as_bytes());
    assert!(client.line().starts_with("240"));
    let key = |id: &str| spool.text(&["control", "key", id]);
    let made = spool.json(&["control", "key", "<0@control.example>"]);
    let right = key("<0@control.example>");
    assert_eq!(
        right,
        format!("Cancel-Key: {}\n", made["cancel_key"].as_str().unwrap())
    );
    let other = key("<1@control.example>");
    let mut cancel = |name: &str, key: &str| {
        let control = format!("cancel <0@control.example>\r\n{}", key.trim_end());
        feed_with(&mut client, name, &control, "");
        client.ask("STAT <0@control.example>")[..3].to_owned()
    };
    assert_eq!(cancel("2", &other), "223");
    assert_eq!(cancel("3", &right), "430");
    let error = spool.error(&["control", "key", "nonsense"]);
    assert!(error.contains("nonsense"), "{error}");
    server.stop();
    assert_eq!(key("<0@control.example>"), right, "offline too");
}

/// The keyring is changed beside a running server; what its keys signed is done, and what they did not sign is told.
#[test]
fn keys_are_kept_and_what_they_signed_is_done() {
    let rules = "[control]\nrules = ['all:*:*:verify-dsa.a.example']\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    spool.text(&["group", "add", "control"]);
    let keys = ["control", "keys"];
    let say = |words: &[&str]| spool.text(&[&keys, words].concat());
    assert_eq!(say(&["list"]), "there are no keys\n");
    let file = |name: &str| {
        format!(
            "{}/../../tests/fixtures/openpgp/{name}",
            env!("CARGO_MANIFEST_DIR")
        )
    };
    let found = say(&["import", "--dry-run", &file("dsa.asc")]);
    assert!(
        found.contains("264F18F95E8964302A62A09DC006314CDDE406A3  DSA 1024  -"),
        "{found}"
    );
    assert_eq!(say(&["list"]), "there are no keys\n");
    assert_eq!(say(&["import", &file("dsa.asc")]), found);
    say(&["import", &file("revoked.asc")]);
    let listed = spool.json(&["control", "keys", "list"]);
    assert_eq!(
        (&listed[0]["names"][0], &listed[1]["revoked"]),
        (&json!("dsa.a.example"), &json!(true))
    );
    let error = spool.error(&["control", "keys", "import", &file("newgroup.txt")]);
    assert!(
        error.contains("there is no block of public keys in it"),
        "{error}"
    );
    let article = read_whole(&RealDisk, Path::new(FUZZED), 1 << 20).unwrap();
    let mut client = NewsClient::connect(server.address);
    client.send(b"TAKETHIS <signed@control.example>\r\n");
    client.send(&article);
    assert_eq!(client.line(), "239 <signed@control.example>");
    assert_eq!(spool.json(&["group", "show", "alt.new"])["status"], "m");
    feed(&mut client, "2", "rmgroup alt.new", "");
    assert!(client.ask("GROUP alt.new").starts_with("211"));
    let shown = spool.text(&["control", "show", "<signed@control.example>"]);
    assert!(
        shown.contains("signature   good, by dsa.a.example\n"),
        "{shown}"
    );
    let shown = spool.text(&["control", "show", "<2@control.example>"]);
    assert!(
        shown.contains("remove alt.new (by the rules: verify-dsa.a.example, so drop)"),
        "{shown}"
    );
    assert!(spool.log().contains("is not signed as the rules want it"));
    assert_eq!(
        say(&["remove", "dsa.a.example"]),
        "dsa.a.example: removed\n"
    );
    let shown = spool.text(&["control", "show", "<signed@control.example>"]);
    assert!(
        shown.contains("bad: no key in the keyring made it"),
        "{shown}"
    );
    let error = spool.error(&["control", "keys", "remove", "dsa.a.example"]);
    assert!(error.contains("there is no key dsa.a.example"), "{error}");
    server.stop();
}

/// What is printed is a part of a configuration, and its rules are those in force then.
#[test]
fn rules_are_imported_and_tried_on_a_file() {
    let spool = Spool::new();
    let write = |name: &str, text: &str| {
        let path = spool.folder().join(name);
        replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
        path.display().to_string()
    };
    let ctl = write(
        "control.ctl",
        "## ALT\nnewgroup:*:alt.*:doit=mail\nsendsys:*:*:drop\nrmgroup:*:alt.*:mail=cautious\n",
    );
    let policy = "hierarchy: ALT.NEW\ngroups: alt.new|alt.new.*\ntype: public\ndescription: \"A \\ \u{7} test\"\n\
                  sender: [ admin@a.example ]\npgp: yes\nkey-id: dsa.a.example\nkey-url: \"http://a.example/\"\n";
    let policy = write("alt.new", policy);
    let words = ["control", "import", &ctl];
    let made = newsreel().args(words).output().unwrap();
    let warned = String::from_utf8(made.stderr).unwrap();
    assert!(warned.contains("nobody said where to"), "{warned}");
    // Of all commands it alone had no --config.
    let with_address = Spool::with(&(Spool::changed(&[]) + "[control]\nmail_to = 'a@b.example'\n"));
    let made = with_address.run(&words);
    let warned = String::from_utf8(made.stderr).unwrap();
    assert!(
        made.status.success() && !warned.contains("nobody said where to"),
        "{warned}"
    );
    let wrong = [&words[..], &["--mail-to", "nowhere"]].concat();
    let refused = newsreel().args(wrong).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no address"));
    let mail_to = ["--mail-to", "usenet@a.example"];
    let words = [&["control", "import", &ctl, &policy], &mail_to[..]].concat();
    let made = newsreel().args(words).output().unwrap();
    let warned = String::from_utf8(made.stderr).unwrap();
    assert_eq!(warned.lines().count(), 1, "{warned}");
    assert!(
        warned.contains("control.ctl:3: left out: only newgroup, rmgroup and checkgroups"),
        "{warned}"
    );
    let printed = String::from_utf8(made.stdout).unwrap();
    assert!(
        printed.starts_with("# Keys to import")
            && printed.contains("#   dsa.a.example  http://a.example/\n"),
        "{printed}"
    );
    assert!(
        printed.contains("# ALT\n  \"newgroup:*:alt.*:doit\",\n  \"rmgroup:*:alt.*:mail\",\n"),
        "{printed}"
    );
    spool.configure(&(Spool::changed(&[]) + &printed));
    let try_it = |file: &str| spool.text(&["control", "dry-run", file]);
    let fixture = |name: &str| {
        format!(
            "{}/../../tests/fixtures/openpgp/{name}",
            env!("CARGO_MANIFEST_DIR")
        )
    };
    let server = spool.serve();
    let said = try_it(&fixture("newgroup.txt"));
    assert!(said.contains("make alt.new moderated \"What is new. (Moderated)\" (by the rules: verify-dsa.a.example, so drop)"), "{said}");
    spool.text(&["control", "keys", "import", &fixture("dsa.asc")]);
    let mut signed = Vec::new();
    wire_to_lf(
        &read_whole(&RealDisk, Path::new(FUZZED), 1 << 20).unwrap(),
        &mut signed,
    );
    let signed = write("signed", std::str::from_utf8(&signed).unwrap());
    assert!(
        try_it(&signed).contains("verify-dsa.a.example, so doit"),
        "{}",
        try_it(&signed)
    );
    let other = write(
        "other",
        "From: x@b.example\nApproved: x\nControl: newgroup alt.other\n\nbody\n",
    );
    assert!(try_it(&other).contains("make alt.other unmoderated (by the rules: doit)"));
    server.stop();
    assert!(
        try_it(&other).contains("make alt.other unmoderated (by the rules: doit)"),
        "offline too"
    );
    for (text, why) in [
        ("Subject: x\n\nbody\n", "it is no newgroup"),
        ("no header\n", "header"),
    ] {
        let error = spool.error(&["control", "dry-run", &write("bad", text)]);
        assert!(error.contains(why), "{error}");
    }
    assert!(
        spool
            .error(&["group", "show", "alt.new"])
            .contains("alt.new")
    );
    let nothing = newsreel()
        .args(["control", "import", &write("none", "# nothing\n")])
        .output()
        .unwrap();
    assert!(!nothing.status.success());
}

/// The policies of `tests/fixtures/control-config`, as rules.
const POLICIES: &str = r#"# Keys to import, when you have compared their fingerprints:
#   mirabel.announce  http://mirabel.example/key.asc  0123 4567 89AB CDEF 0123  4567 89AB CDEF 0123 4567
#   wide.keeper
#   news@ivy.example
[control]
mail_to = "a@b.example"
rules = [
  # HARBOUR (private): Harbour master's office, nowhere
  "checkgroups:*:harbour.*:drop",
  "newgroup:*:harbour.*:drop",
  "rmgroup:*:harbour.*:drop",
  # LAMP (historic): Lamplighters
  "checkgroups:*:lamp.*:drop",
  "newgroup:*:lamp.*:drop",
  "rmgroup:*:lamp.*:log",
  # MIRABEL, PLUM (public): Growers of plums
  "checkgroups:control@mirabel.example|control@*.plum.example:mirabel.*|plum.*:verify-mirabel.announce",
  "newgroup:control@mirabel.example|control@*.plum.example:mirabel.*|plum.*:verify-mirabel.announce",
  "rmgroup:keeper@mirabel.example:mirabel.*|plum.*:verify-mirabel.announce",
  # OLDMILL (defunct): The old mill, closed in 1999
  "checkgroups:*:oldmill.*:drop",
  "newgroup:*:oldmill.*:drop",
  "rmgroup:*:oldmill.*:log",
  # QUINCE (public): Quinces
  "checkgroups:quince@trees.example:quince.*:doit",
  "newgroup:quince@trees.example:quince.*:doit",
  "rmgroup:quince@trees.example:quince.*:doit",
  # WIDE (public): Open to everybody
  "newgroup:*:wide.*:doit",
  "rmgroup:keeper@wide.example:wide.*:verify-wide.keeper",
  # IVY (a university that is nowhere)
  "newgroup:news@ivy.example:ivy.*:doit",
  "newgroup:news@ivy.example:ivy*class.*:mail",
  "rmgroup:news@ivy.example|keeper@*.ivy.example:ivy.*:verify-news@ivy.example",
  "checkgroups:*:ivy.*:drop",
]
"#;

/// That policies of hierarchies become rules was shown by those of the net alone, which are not everywhere.
#[test]
fn policies_become_rules_that_a_server_obeys() {
    let spool = Spool::new();
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/control-config"
    );
    let import = |words: &[&str]| {
        let mut command = newsreel();
        command.args(["control", "import", "--mail-to", "a@b.example"]);
        command
            .args(words)
            .args(["mirabel", "quince", "special"].map(|it| format!("{folder}/{it}")));
        said(command.output().unwrap()).unwrap()
    };
    let careful = import(&[]);
    assert!(
        careful.contains("\"newgroup:quince@trees.example:quince.*:log\""),
        "{careful}"
    );
    let files = "harbour lamp mirabel oldmill quince silent wide special";
    let files = files.split(' ').map(|it| format!("{folder}/{it}"));
    let mut command = newsreel();
    command.args([
        "control",
        "import",
        "--mail-to",
        "a@b.example",
        "--trust-senders",
    ]);
    let output = command.args(files).output().unwrap();
    let warned = String::from_utf8(output.stderr.clone()).unwrap();
    for left in [
        "silent:1: left out: nobody is said to send its control messages",
        "special/ivy:11: left out: only newgroup, rmgroup and checkgroups are heeded here",
        "special/ivy:12: left out: only newgroup, rmgroup and checkgroups are heeded here",
    ] {
        assert!(warned.contains(left), "{warned}");
    }
    assert_eq!(warned.matches("left out").count(), 3, "{warned}");
    let printed = said(output).unwrap();
    assert_eq!(printed, POLICIES);
    spool.configure(&(Spool::changed(&[]) + &printed));
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    for (name, from, group) in [
        ("1", "quince@trees.example", "quince.pie"),
        ("2", "other@trees.example", "quince.jam"),
        ("3", "anybody@a.example", "wide.open"),
        ("4", "news@harbour.example", "harbour.quay"),
        ("5", "control@mirabel.example", "mirabel.announce"),
        ("6", "news@ivy.example", "ivy.lectures"),
        ("7", "news@ivy.example", "ivy.class.greek"),
    ] {
        let id = format!("<{name}@control.example>");
        let text = format!(
            "TAKETHIS {id}\r\nPath: a!b\r\nFrom: {from}\r\nNewsgroups: {group}\r\nSubject: s\r\n\
             Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\nControl: newgroup {group}\r\n\
             Approved: {from}\r\n\r\nx\r\n.\r\n"
        );
        client.send(text.as_bytes());
        assert_eq!(client.line(), format!("239 {id}"));
    }
    let groups = spool.json(&["group", "list"]);
    let names = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap());
    let made: Vec<&str> = names
        .filter(|it| !it.starts_with("control") && *it != "junk")
        .collect();
    assert_eq!(made, ["ivy.lectures", "quince.pie", "wide.open"]);
    let waiting = spool.json(&["control", "list"]);
    let waiting = waiting
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["message_id"].as_str().unwrap());
    let expected = ["<2@control.example>", "<7@control.example>"];
    assert_eq!(waiting.collect::<Vec<_>>(), expected);
    server.stop();
}
