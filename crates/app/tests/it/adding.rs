//! A buffer more in the configuration, and SIGHUP: a running server makes it and fills it.

use newsreel_host::{Disk as _, OpenMode, RealDisk, read_whole, replace_file};

use crate::client::{NewsClient, article};
use crate::lifecycle::wait_for;
use crate::spool::{Server, Spool, newsreel};

/// Feeds articles of some 60,000 octets.
fn feed(server: &Server, range: std::ops::Range<usize>) {
    let mut client = NewsClient::connect(server.address);
    let body = "a line of a body that is not short and not long\r\n".repeat(1200);
    for n in range {
        let id = format!("<{n}@adding.example>");
        let text = article(&id, "misc.test");
        let text = text.strip_suffix(".\r\n").unwrap();
        client.send(format!("TAKETHIS {id}\r\n{text}{body}.\r\n").as_bytes());
        assert_eq!(client.line(), format!("239 {id}"));
    }
}

/// How many of the first articles are here.
fn here(server: &Server, count: usize) -> usize {
    let mut client = NewsClient::connect(server.address);
    let mut is_here = |n: &usize| {
        let asked = client.ask(&format!("STAT <{n}@adding.example>"));
        asked.starts_with("223")
    };
    (0..count).filter(|n| is_here(n)).count()
}

fn live_octets(spool: &Spool, name: &str) -> Option<u64> {
    fact(spool, name, "live_octets")
}

fn fact(spool: &Spool, name: &str, key: &str) -> Option<u64> {
    let buffers = spool.json(&["store", "list"]);
    let mut buffers = buffers.as_array().unwrap().iter();
    let buffer = buffers.find(|buffer| buffer["name"] == name)?;
    buffer[key].as_u64()
}

fn octets(spool: &Spool, name: &str) -> u64 {
    fact(spool, name, "octets").unwrap()
}

fn file_octets(spool: &Spool, name: &str) -> u64 {
    let path = spool.path().join("buffers").join(name);
    RealDisk.open(&path, OpenMode::Read).unwrap().len().unwrap()
}

/// The usual configuration with these buffers in front of B.
fn with(spool: &Spool, buffers: &str) {
    let b = "[[buffer]]\nname = \"B\"";
    spool.configure(&Spool::changed(&[(b, &format!("{buffers}\n{b}"))]));
}

#[test]
fn a_buffer_is_added_to_a_running_server_and_outlives_its_kill() {
    const C: &str = "[[buffer]]\nname = \"C\"\noctets = \"8MiB\"\n";
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..30);
    with(&spool, C);
    server.signal("HUP");
    wait_for(&spool, "it takes articles");
    let told = wait_for(&spool, "configuration read again");
    // It had said that nothing changed.
    assert!(
        told.contains("needs_restart=[]") && told.contains("changed=[\"buffer\""),
        "{told}"
    );
    assert_eq!(live_octets(&spool, "C"), Some(0));
    feed(&server, 30..110);
    let live = live_octets(&spool, "C").unwrap();
    assert!(live > 1 << 20, "{live} octets");

    // One that cannot be made is told, and nothing else suffers; what is there stays added.
    let taken = spool.path().join("taken");
    replace_file(&RealDisk, &taken, &vec![b'x'; 8 << 20]).unwrap();
    let d = format!("[[buffer]]\nname = \"D\"\noctets = \"8MiB\"\npath = {taken:?}\n");
    with(&spool, &format!("{C}\n{d}"));
    server.signal("HUP");
    let told = wait_for(&spool, "a buffer cannot be added");
    assert!(told.contains("no newsreel buffer"), "{told}");
    wait_for(&spool, "after a restart only");
    assert_eq!(live_octets(&spool, "D"), None);
    assert_eq!(here(&server, 110), 110);
    server.kill();

    let last = read_whole(&RealDisk, &spool.path().join("last-config.toml"), 1 << 20).unwrap();
    let last = String::from_utf8(last).unwrap();
    assert!(last.contains("\"C\"") && !last.contains("\"D\""), "{last}");
    with(&spool, C);
    let server = spool.serve();
    assert_eq!(here(&server, 110), 110);
    // Up to a page more or less: where the next article goes.
    let again = live_octets(&spool, "C").unwrap();
    assert!(again.abs_diff(live) <= 4096, "{again} and {live} octets");
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    server.stop();
}

/// What it was when the server was killed is put in order first.
#[test]
fn a_buffer_is_made_larger_with_what_is_in_it() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    // Both come around.
    feed(&server, 0..330);
    let kept = here(&server, 330);
    assert!(kept < 330, "{kept}");
    let sized = |octets: &str| {
        let b = format!("name = \"B\"\noctets = \"{octets}\"");
        spool.configure(&Spool::changed(&[("name = \"B\"\noctets = \"8MiB\"", &b)]));
    };
    sized("20MiB");
    server.kill();
    let error = spool.error(&["serve"]);
    assert!(error.contains("newsreel store resize B"), "{error}");

    let what = |words: &[&str]| spool.json(words)[0]["what"].clone();
    assert_eq!(
        what(&["store", "resize", "--dry-run"]),
        "would be made larger"
    );
    assert_eq!(what(&["store", "resize"]), "made larger");
    assert_eq!(what(&["store", "resize", "B"]), "has it");
    let said = spool.text(&["store", "resize"]);
    assert!(said.contains("every buffer has the size"), "{said}");

    let mut server = spool.serve();
    assert_eq!(here(&server, 330), kept);
    feed(&server, 330..500);
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    let live = live_octets(&spool, "B").unwrap();
    assert!(live > 9 << 20, "{live} octets");
    // And smaller, by a server that has not run yet.
    server.stop();
    sized("8MiB");
    let error = spool.error(&["serve"]);
    assert!(error.contains("newsreel store resize B"), "{error}");
    let said = what(&["store", "resize"]);
    let said = said.as_str().unwrap();
    assert!(
        said.starts_with("becomes smaller when it has come around; up to 1"),
        "{said}"
    );
    server = spool.serve();
    // Up to a page more or less: where the next article goes.
    let again = live_octets(&spool, "B").unwrap();
    assert!(
        again.abs_diff(live) <= 4096,
        "nothing is lost at once: {again} and {live} octets"
    );
    let mut fed = 500;
    while octets(&spool, "B") > 8 << 20 {
        assert!(fed < 2000, "it does not become smaller");
        feed(&server, fed..fed + 50);
        fed += 50;
        // A stop makes a checkpoint.
        server.stop();
        server = spool.serve();
    }
    assert_eq!(file_octets(&spool, "B"), 8 << 20);
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    let live = live_octets(&spool, "B").unwrap();
    assert!((4 << 20..8 << 20).contains(&live), "{live} octets");
    server.stop();
}

/// What the server last ran with had sizes of articles that the smaller buffers do not take, so every command without `--config` was refused.
#[test]
fn offline_commands_know_a_spool_whose_buffers_became_smaller() {
    let spool = Spool::new();
    let sized = |octets: &str, article: &str| {
        let articles = format!("[articles]\noctets_max = \"{article}\"");
        let changes = [("8MiB", octets), ("[articles]", &*articles)];
        spool.configure(&Spool::changed(&changes));
    };
    sized("16MiB", "3MiB");
    spool.serve().stop();
    sized("8MiB", "1MiB");
    spool.text(&["store", "resize"]);
    let mut command = newsreel();
    command.args(["group", "list", "--spool"]).arg(spool.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// It had to be stopped for that.
#[test]
fn a_buffer_is_made_larger_beside_the_server() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..330);
    let kept = here(&server, 330);
    let sized = |octets: &str| {
        let b = format!("name = \"B\"\noctets = \"{octets}\"");
        spool.configure(&Spool::changed(&[("name = \"B\"\noctets = \"8MiB\"", &b)]));
    };
    let resize = |words: &[&str]| {
        let words = [&["store", "resize"], words].concat();
        spool.json(&words)[0]["what"].clone()
    };
    sized("7MiB");
    let said = resize(&["--dry-run"]);
    assert_eq!(
        said,
        "would become smaller when it has come around; up to 1024 KiB of articles lie beyond"
    );
    let said = resize(&[]);
    assert!(
        said.as_str().unwrap().starts_with("becomes smaller when"),
        "{said}"
    );
    let state = spool.text(&["store", "list"]);
    assert!(
        state.contains("it becomes smaller when it has come around"),
        "{state}"
    );
    assert_eq!(here(&server, 330), kept, "nothing is lost at once");
    // Somebody thinks better of it, and wants more.
    sized("20MiB");
    assert_eq!(resize(&["--dry-run"]), "would be made larger");
    assert_eq!(resize(&[]), "made larger");
    assert_eq!(resize(&["B"]), "has it");
    // A larger buffer is reserved in larger pieces, of which two lie ahead: what was next to go may go with that.
    let (left, two_pieces) = (here(&server, 330), 2 * (20 << 20) / 16);
    assert!(
        left <= kept && (kept - left) * 60_000 <= two_pieces,
        "{left} of {kept}"
    );
    // Nothing is left to be done by a restart, and what is added takes articles.
    server.signal("HUP");
    let told = wait_for(&spool, "configuration read again");
    assert!(told.contains("needs_restart=[]"), "{told}");
    assert!(!told.contains("next start will be refused"), "{told}");
    feed(&server, 330..600);
    let live = live_octets(&spool, "B").unwrap();
    assert!(live > 9 << 20, "{live} octets");
    let kept = here(&server, 600);
    server.kill();
    let server = spool.serve();
    assert_eq!(here(&server, 600), kept);
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    server.stop();
}

/// It had told what a header said, which is written now and then.
#[test]
fn a_resize_tells_by_the_server_or_the_log_where_a_buffer_stands() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..230);
    let smaller = "name = \"B\"\noctets = \"6MiB\"";
    spool.configure(&Spool::changed(&[(
        "name = \"B\"\noctets = \"8MiB\"",
        smaller,
    )]));
    let stands = fact(&spool, "B", "free_offset").unwrap();
    assert_eq!(fact(&spool, "B", "cycle"), Some(1));
    let beyond = |words: &[&str]| {
        let rows = spool.json(&[&["store", "resize"], words].concat());
        assert_eq!(rows[0]["name"], "B");
        rows[0]["beyond_octets"].as_u64().unwrap()
    };
    let expected = stands - (6 << 20);
    assert!(expected > 60_000, "{expected}");
    // Between both looks a page may have come to its end.
    let told = beyond(&["--dry-run"]);
    let expected = fact(&spool, "B", "free_offset").unwrap() - (6 << 20);
    assert!(
        (stands - (6 << 20)..=expected).contains(&told),
        "{told} of {expected}"
    );
    server.kill();
    // Behind its last record; the next batch begins on a page.
    let left = beyond(&["--dry-run"]);
    assert!(
        left <= expected && expected - left < 4096,
        "{left} of {expected}"
    );
    assert_eq!(beyond(&[]), left);
}

/// With the size that the file still has SIGHUP had said that the next start would be refused, which has the buffer stay as large as it is.
#[test]
fn a_buffer_that_becomes_smaller_stays_as_it_is_by_sighup_as_by_a_start() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..330);
    let sized = |octets: &str| {
        let b = format!("name = \"B\"\noctets = \"{octets}\"");
        spool.configure(&Spool::changed(&[("name = \"B\"\noctets = \"8MiB\"", &b)]));
    };
    let state = || {
        let buffers = spool.json(&["store", "list"]);
        (
            buffers[1]["state"].as_str().unwrap().to_owned(),
            buffers[1]["becomes_octets"].as_u64(),
        )
    };
    sized("6MiB");
    spool.text(&["store", "resize"]);
    let (said, becomes) = state();
    assert!(
        said.starts_with(
            "narrowing: it becomes smaller when it has come around: 6144 KiB, after some "
        ),
        "{said}"
    );
    assert_eq!(becomes, Some(6 << 20));
    let table = spool.text(&["store", "list"]);
    assert!(
        table.contains("  narrowing  ") && table.contains("B: narrowing: it"),
        "{table}"
    );
    server.signal("HUP");
    let told = wait_for(&spool, "configuration read again");
    assert!(told.contains("needs_restart=[]"), "{told}");
    // Somebody thinks better of it.
    sized("8MiB");
    server.signal("HUP");
    wait_for(&spool, "buffer=\"B\" octets=8388608");
    assert_eq!(state(), ("ok".to_owned(), None));
    let log = loop {
        let log = spool.log();
        if log.matches("configuration read again").count() == 2 {
            break log;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(
        !log.contains("ERROR") && !log.contains("after a restart only"),
        "{log}"
    );
    server.kill();
    let server = spool.serve();
    assert_eq!(state(), ("ok".to_owned(), None));
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    server.stop();
}
