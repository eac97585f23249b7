//! `newsreel store list|create|scrub|attach`, beside a server and without one.

use std::path::Path;
use std::process::Output;

use newsreel_host::{Clock as _, Disk as _, OpenMode, RealClock, RealDisk, read_whole};
use serde_json::{Value, json};

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

const ARTICLES: usize = 30;

fn id(n: usize) -> String {
    format!("<{n}@tools.example>")
}

/// A server's spool with articles in it.
fn fed(spool: &Spool) -> crate::spool::Server {
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    for n in 0..ARTICLES {
        assert!(client.takethis(&id(n), "misc.test").starts_with("239"));
    }
    server
}

/// Changes an octet in the body of an article, as a disk does that rots.
fn rot(spool: &Spool, n: usize) -> Value {
    let which = id(n);
    let article = spool.json(&["article", "show", &which]);
    let token = article["token"].as_str().unwrap();
    let mut parts = token.split(':');
    let path = spool.path().join("buffers").join(parts.next().unwrap());
    let offset = u64::from_str_radix(parts.next().unwrap(), 16).unwrap();
    let at = offset + 64 + article["octets"].as_u64().unwrap() - 6;
    let octets = read_whole(&RealDisk, &path, 16 << 20).unwrap();
    let file = RealDisk.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_at(&[octets[at as usize] ^ 4], at).unwrap();
    file.sync_data().unwrap();
    article
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_scrub_tells_damage_live_and_offline_and_the_background_tells_it_too() {
    let often = "[scrub]\noctets_per_s = '64MiB'\n\n[server]";
    let spool = Spool::with(&Spool::changed(&[("[server]", often)]));
    let server = fed(&spool);
    let sound = spool.json(&["store", "scrub"]);
    assert_eq!(sound["articles"], ARTICLES);
    assert_eq!(
        (&sound["damaged"], &sound["is_cut"]),
        (&json!([]), &json!(false))
    );
    let text = spool.text(&["store", "scrub", "--rate", "1MiB"]);
    assert!(
        text.contains("A: ") && text.contains("in all 30 articles sound"),
        "{text}"
    );
    let article = rot(&spool, 7);
    let live = spool.run(&["store", "scrub", "--json"]);
    assert_eq!(live.status.code(), Some(1));
    let live = report(&live);
    assert_eq!(live["articles"], ARTICLES - 1);
    let damage = &live["damaged"][0];
    assert_eq!(damage["token"], article["token"]);
    assert_eq!(damage["message_id"], id(7));
    assert_eq!(damage["groups"], json!([["misc.test", 8]]));
    // The log says it once, status until it is overwritten.
    spool.run(&["store", "scrub"]);
    let said = format!(
        "{}, {}, misc.test:8",
        article["token"].as_str().unwrap(),
        id(7)
    );
    assert_eq!(spool.log().matches(&said).count(), 1, "{}", spool.log());
    let status = spool.json(&["status"]);
    assert_eq!(status["scrub"]["damaged"], 1);
    assert_eq!(status["counters"]["damaged_articles"], 1);
    let text = spool.text(&["status"]);
    assert!(text.contains("1 DAMAGED place"), "{text}");
    for more in [&["--read-only"][..], &[]] {
        let beside = spool.run(&[&["store", "scrub", "--json"], more].concat());
        assert_eq!(report(&beside)["damaged"], live["damaged"], "{more:?}");
    }
    server.stop();
    let offline = spool.run(&["store", "scrub", "--json", "--rate", "0"]);
    assert_eq!(offline.status.code(), Some(1));
    let offline = report(&offline);
    assert_eq!(offline["damaged"], live["damaged"]);
    let name = article["token"]
        .as_str()
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    let other = if name == "A" { "B" } else { "A" };
    let one = spool.json(&["store", "scrub", other]);
    assert_eq!(one["buffers"].as_array().unwrap().len(), 1);
    let output = spool.run(&["store", "scrub", name]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(&said) && text.contains("readers are told"),
        "{text}"
    );
    assert!(
        spool
            .error(&["store", "scrub", "C"])
            .contains("there are A, B")
    );
    assert!(
        spool
            .error(&["store", "scrub", "--rate", "fast"])
            .contains("write a number")
    );
    // What was told stays told behind a restart.
    let server = spool.serve();
    let status = spool.json(&["status"]);
    assert_eq!(status["scrub"]["damaged"], 1, "{status}");
    assert_eq!(status["counters"]["damaged_articles"], 0);
    server.stop();
}

/// It would take days; nobody is left who wants to know.
#[test]
fn a_scrub_ends_with_who_asked_for_it() {
    let spool = Spool::with(&Spool::changed(&[(
        "[server]",
        "[scrub]\noctets_per_s = 0\n\n[server]",
    )]));
    let server = fed(&spool);
    let mut command = newsreel();
    command
        .args(["store", "scrub", "--rate", "1", "--config"])
        .arg(spool.config());
    let mut asking = command.spawn().unwrap();
    let read = || {
        spool.json(&["status"])["counters"]["scrubbed_octets"]
            .as_u64()
            .unwrap()
    };
    while read() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    asking.kill().unwrap();
    asking.wait().unwrap();
    // At this rate the next piece comes in days.  Who is asked by somebody is cut at a stop after ten seconds.
    let clock = RealClock::new();
    server.stop();
    let took = clock.monotonic();
    assert!(took < std::time::Duration::from_secs(8), "{took:?}");
}

#[test]
fn buffers_are_made_before_the_first_start_and_never_over_anything() {
    let spool = Spool::new();
    let planned = spool.json(&["store", "create", "--dry-run"]);
    let what = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| {
            format!(
                "{} {}",
                row["name"].as_str().unwrap(),
                row["what"].as_str().unwrap()
            )
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(what(&planned), ["A would be made", "B would be made"]);
    assert_eq!(planned[0]["octets"], 8 << 20);
    assert!(
        planned[0]["path"]
            .as_str()
            .unwrap()
            .ends_with("spool/buffers/A")
    );
    assert!(!spool.path().exists(), "only said");
    assert_eq!(what(&spool.json(&["store", "create", "B"])), ["B made"]);
    let length = |name: &str| {
        spool
            .path()
            .join("buffers")
            .join(name)
            .metadata()
            .map(|it| it.len())
    };
    assert_eq!(
        (length("B").unwrap(), length("A").is_err()),
        (8 << 20, true)
    );
    let error = spool.error(&["store", "create", "B"]);
    assert!(error.contains("buffer B is there already"), "{error}");
    let error = spool.error(&["store", "create", "X"]);
    assert!(
        error.contains("no buffer \"X\"") && error.contains("A, B"),
        "{error}"
    );
    let text = spool.text(&["store", "create"]);
    assert!(text.contains("is there") && text.contains("made"), "{text}");
    // A server takes them as they are.
    let made = read_whole(&RealDisk, &spool.path().join("buffers/A"), 8192).err();
    assert!(made.is_some(), "it is as long as it should be");
    let server = fed(&spool);
    let error = spool.error(&["store", "create"]);
    assert!(error.contains("a server is running"), "{error}");
    server.stop();
    // Another one joins the spool; one that was there and is gone is not made again.
    let more = "name = \"B\"\noctets = \"8MiB\"\n\n[[buffer]]\nname = \"C\"\noctets = \"8MiB\"\n";
    let old = "name = \"B\"\noctets = \"8MiB\"\n";
    spool.configure(&Spool::changed(&[(old, more)]));
    assert_eq!(
        what(&spool.json(&["store", "create"])),
        ["A is there", "B is there", "C made"]
    );
    let server = spool.serve();
    let listed = spool.json(&["store", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_eq!(spool.json(&["check"])["articles"], ARTICLES);
    server.stop();
    RealDisk.remove(&spool.path().join("buffers/C")).unwrap();
    for words in [&["store", "create", "--dry-run"][..], &["store", "create"]] {
        let error = spool.error(words);
        assert!(error.contains("this spool ha"), "{error}");
    }
}

/// A dry run had promised room that is not on the disk.
#[test]
fn a_dry_run_of_making_and_resizing_refuses_as_doing_it_does() {
    let usual = "name = \"B\"\noctets = \"8MiB\"";
    let large = Spool::changed(&[(usual, "name = \"B\"\noctets = \"15TiB\"")]);
    let spool = Spool::with(&large);
    let refused = |verb: &str| {
        let errors =
            [&["store", verb, "--dry-run"][..], &["store", verb]].map(|it| spool.error(it));
        // How much is free may have changed from one to the other.
        let last = errors.each_ref().map(|error| {
            let words = error.lines().last().unwrap_or_default().split(' ');
            let said = words.filter(|word| word.parse::<f64>().is_err());
            said.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(last[0], last[1], "{errors:?}");
        assert!(errors[0].contains("it needs 1"), "{errors:?}");
        assert!(
            errors[0].contains(" free; make `octets` smaller"),
            "{errors:?}"
        );
    };
    refused("create");
    assert!(!spool.path().join("buffers/A").exists(), "all or none");
    let table = spool.run(&["store", "create", "--dry-run"]).stdout;
    let table = String::from_utf8(table).unwrap();
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("A ").contains("  would be made  "), "{table}");
    assert!(row("B ").contains("  cannot be  "), "{table}");

    spool.configure(&Spool::changed(&[]));
    let server = spool.serve();
    spool.configure(&large);
    refused("resize");
    server.stop();
    refused("resize");
    spool.configure(&Spool::changed(&[]));
    spool.serve().stop();
}

#[test]
fn the_list_is_a_table_of_all_buffers_live_and_offline() {
    let config = Spool::changed(&[])
        + "\n[[set]]\nname = \"ring\"\nbuffers = [\"A\", \"B\"]\n\n[[set]]\nname = \"pile\"\n\
        method = \"segment\"\nsegment_octets = \"1MiB\"\n\n[[rule]]\nset = \"ring\"\n";
    let spool = Spool::with(&config);
    let server = fed(&spool);
    let live = spool.json(&["store", "list"]);
    let names: Vec<_> = live
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["A", "B", "pile"]);
    let oldest = live
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["oldest_age_s"].as_u64());
    assert!(oldest.max().unwrap() < 3600, "{live}");
    spool.text(&["article", "cancel", &id(7), &id(9)]);
    let live = spool.json(&["store", "list"]);
    let articles = |row: usize| live[row]["articles"].as_u64().unwrap();
    assert_eq!(articles(0) + articles(1), ARTICLES as u64 - 2, "{live}");
    let of_sets = [0, 1, 2].map(|row| live[row]["set_articles"].as_u64().unwrap());
    assert_eq!(of_sets, [ARTICLES as u64 - 2, ARTICLES as u64 - 2, 0]);
    let octets = live[0]["articles_octets"].as_u64().unwrap();
    assert!(octets > 100 * articles(0), "{live}");
    let text = spool.text(&["store", "list"]);
    let lines: Vec<&str> = text.lines().collect();
    for title in [
        "BUFFER", "METHOD", "ROOM", "USED", "ARTICLES", "CYCLE", "OLDEST", "A DAY", "STAYS",
        "STATE",
    ] {
        assert!(lines[0].contains(title), "{text}");
    }
    assert_eq!(lines[4], "set ring: 28 articles in 2 buffers", "{text}");
    let inspected = spool.text(&["store", "inspect", "A"]);
    let told = format!("articles          {}, ", articles(0));
    assert!(inspected.contains(&told), "{inspected}");
    assert!(
        lines[1].contains("cnfs") && lines[1].contains(" %") && lines[1].contains("ok"),
        "{text}"
    );
    assert!(lines[3].contains("segment"), "{text}");
    server.stop();
    let offline = spool.json(&["store", "list"]);
    for (live, offline) in live
        .as_array()
        .unwrap()
        .iter()
        .zip(offline.as_array().unwrap())
    {
        for key in [
            "name",
            "method",
            "set",
            "path",
            "octets",
            "cycle",
            "oldest",
            "articles",
            "set_articles",
        ] {
            assert_eq!(live[key], offline[key], "{key}");
        }
    }
}

/// What was cancelled looked like all others to who reads a buffer alone, before a checkpoint had written its bitmap; and the
/// register beside the buffers was an error.
fn cancelled_articles_are_marked(buffers: &Path) {
    let of = |verb: &str, names: &[&str]| {
        let paths = names.iter().map(|name| buffers.join(name));
        let done = newsreel().args(["store", verb]).args(paths).output();
        done.unwrap()
    };
    let (mut marked, mut warned) = (Vec::new(), String::new());
    for name in ["A", "B"] {
        let dumped = said(of("dump", &[name])).unwrap();
        let lines = dumped.lines().filter(|line| line.ends_with("  WITHDRAWN"));
        marked.extend(lines.map(str::to_owned));
        let exported = of("export", &[name]);
        warned.push_str(&String::from_utf8_lossy(&exported.stderr));
    }
    assert_eq!(marked.len(), 1, "{marked:?}");
    assert!(marked[0].contains(&id(7)), "{marked:?}");
    assert!(warned.contains("left out, since withdrawn"), "{warned}");
    let all = ["A", "B", "register", "register.copy"];
    let verified = said(of("verify", &all)).unwrap();
    assert_eq!(verified.matches(" the register, which says").count(), 2);
}

/// A bitmap that is lost tells that all articles were withdrawn; the spool knows better.
fn a_lost_bitmap_withdraws_nothing(buffers: &Path) {
    let a = buffers.join("A");
    let file = RealDisk.open(&a, OpenMode::ReadWrite);
    file.unwrap().write_at(&[0; 4096], 8192).unwrap();
    let dumped = newsreel().args(["store", "dump"]).arg(&a).output().unwrap();
    let (text, warned) = (
        String::from_utf8_lossy(&dumped.stdout),
        String::from_utf8_lossy(&dumped.stderr),
    );
    let (lines, withdrawn) = (text.lines().count(), text.matches("WITHDRAWN").count());
    assert!(lines > 2 && withdrawn <= 1, "{text}");
    assert!(warned.contains("the bitmap is damaged"), "{warned}");
}

/// Buffers with blocks of so many octets.
fn with_blocks(octets: u32) -> Spool {
    let with = format!("octets = \"8MiB\"\nblock_octets = {octets}");
    Spool::with(&Spool::changed(&[("octets = \"8MiB\"", &with)]))
}

/// Another server takes in what one left behind, while it runs, whatever the blocks of either.
#[test]
fn what_another_server_left_is_attached() {
    for (old, new) in [(64, 4096), (4096, 64)] {
        is_attached(&with_blocks(old), &with_blocks(new));
    }
}

fn is_attached(old: &Spool, spool: &Spool) {
    fed(old).kill();
    let old_buffers = old.path().join("buffers");
    let paths = ["A", "B"].map(|name| old_buffers.join(name).display().to_string());
    let command = ["store", "attach", &paths[0], &paths[1]];
    let server = spool.serve();
    let refused = spool.run(&command);
    let (told, error) = (refused.stdout, refused.stderr);
    let error = String::from_utf8(error).unwrap();
    assert!(error.contains("some articles were not taken"), "{error}");
    let told = String::from_utf8(told).unwrap();
    let hint = "not taken: 30 (unknown_groups); --make-groups makes their groups\n";
    assert!(told.ends_with(hint), "{told}");
    let dry = spool.json(&[&command[..], &["--make-groups", "--dry-run"]].concat());
    assert_eq!(dry["dry_run"], true);
    assert_eq!((&dry["taken"], &dry["renumbered"]), (&json!(30), &json!(0)));
    assert_eq!(dry["groups_made"], json!(["misc.test"]));
    let text = spool.text(&[&command[..], &["--make-groups"]].concat());
    assert!(
        text.starts_with("30 articles taken in, 0 of them under other numbers; 0 more names"),
        "{text}"
    );
    assert!(text.contains("1 group made: misc.test\n"), "{text}");
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("GROUP misc.test").starts_with("211 30 1 30 "));
    assert!(client.ask(&format!("STAT {}", id(29))).starts_with("223"));
    spool.text(&["article", "cancel", &id(7)]);
    cancelled_articles_are_marked(&spool.path().join("buffers"));
    server.stop();
    cancelled_articles_are_marked(&spool.path().join("buffers"));
    a_lost_bitmap_withdraws_nothing(&spool.path().join("buffers"));
    let again = spool.json(&command);
    assert_eq!((&again["taken"], &again["known"]), (&json!(0), &json!(30)));
    let error = spool.error(&["store", "attach", "/nowhere"]);
    assert!(error.contains("/nowhere cannot be attached"), "{error}");
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
}

/// A server shows what lies in the buffers of another one, and writes nothing there: it had refused them, or copied each text.
#[test]
fn what_another_server_left_is_served_from_where_it_lies() {
    let old = Spool::new();
    fed(&old).kill();
    let paths = ["A", "B"].map(|name| old.path().join("buffers").join(name));
    let [a, b] = paths.each_ref().map(|path| path.display().to_string());
    let octets = || {
        paths
            .each_ref()
            .map(|path| read_whole(&RealDisk, path, 16 << 20).unwrap())
    };
    let before = octets();
    let sets = format!(
        "{}\n[[set]]\nname = 'main'\nbuffers = ['A', 'B']\n[[set]]\nname = 'old-a'\nmethod = 'attached'\nfile = '{a}'\n\
         [[set]]\nname = 'old-b'\nmethod = 'attached'\nfile = '{b}'\n[[rule]]\nset = 'main'\n",
        Spool::changed(&[])
    );
    let spool = Spool::with(&sets);
    let server = spool.serve();
    let command = ["store", "attach", "--in-place", "--make-groups", &a, &b];
    let dry = spool.json(&[&command[..], &["--dry-run"]].concat());
    assert_eq!((&dry["taken"], &dry["shortages"]), (&json!(30), &json!([])));
    let text = spool.text(&command);
    assert!(
        text.starts_with("30 articles taken in, 0 of them under other numbers; 0 more names"),
        "{text}"
    );
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("GROUP misc.test").starts_with("211 30 1 30 "));
    assert!(client.ask(&format!("STAT {}", id(29))).starts_with("223"));
    spool.text(&["article", "cancel", &id(7)]);
    let article = spool.json(&["article", "show", &id(29)]);
    assert!(
        article["token"].as_str().unwrap().starts_with("old-"),
        "{article}"
    );
    server.stop();
    let scrubbed = spool.json(&["store", "scrub"]);
    assert_eq!(
        (&scrubbed["articles"], &scrubbed["unreadable"]),
        (&json!(29), &json!([]))
    );
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
    let again = spool.json(&command);
    assert_eq!((&again["taken"], &again["known"]), (&json!(0), &json!(30)));
    // While it is away it is not gone, and the server goes on without it.
    let away = paths[0].with_extension("away");
    RealDisk.rename(&paths[0], &away).unwrap();
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("GROUP misc.test").starts_with("211 29 1 30 "));
    let asked: Vec<String> = (0..ARTICLES)
        .map(|n| client.ask(&format!("STAT {}", id(n))))
        .collect();
    let answered = |code: &str| {
        asked
            .iter()
            .filter(|answer| answer.starts_with(code))
            .count()
    };
    assert_eq!(
        (answered("223") + answered("403"), answered("430")),
        (29, 1),
        "{asked:?}"
    );
    assert!(answered("403") > 0, "{asked:?}");
    assert!(spool.text(&["store", "list"]).contains("old-a"));
    RealDisk.rename(&away, &paths[0]).unwrap();
    let back = (0..ARTICLES).filter(|n| client.ask(&format!("STAT {}", id(*n))).starts_with("223"));
    assert_eq!(back.count(), 29);
    server.stop();
    assert!(octets() == before);
    let elsewhere = old.path().join("buffers/register").display().to_string();
    let error = spool.error(&["store", "attach", "--in-place", &elsewhere]);
    assert!(error.contains("is the file of no set"), "{error}");
}

/// What lies in the place of a file that was attached answers for none of its articles, and the right one is served again as soon as it is
/// back: who had read nothing of it said so until a restart, and an older one that its articles were lost.
#[test]
fn what_lies_in_the_place_of_an_attached_file_answers_for_none() {
    let old = Spool::new();
    fed(&old).stop();
    let path = old.path().join("buffers/A");
    let older = read_whole(&RealDisk, &path, 16 << 20).unwrap();
    let server = old.serve();
    let mut client = NewsClient::connect(server.address);
    let all = 2 * ARTICLES;
    for n in ARTICLES..all {
        assert!(client.takethis(&id(n), "misc.test").starts_with("239"));
    }
    server.stop();
    let sets = format!(
        "{}\n[[set]]\nname = 'main'\nbuffers = ['A', 'B']\n[[set]]\nname = 'old'\nmethod = 'attached'\nfile = '{}'\n[[rule]]\nset = 'main'\n",
        Spool::changed(&[]),
        path.display()
    );
    let spool = Spool::with(&sets);
    let server = spool.serve();
    let file = path.display().to_string();
    let taken = spool.json(&["store", "attach", "--in-place", "--make-groups", &file]);
    let taken = taken["taken"].as_u64().unwrap() as usize;
    assert!((1..=all).contains(&taken), "{taken}");
    server.stop();
    let away = path.with_extension("away");
    // A copy that is not whole, too.
    let whole = read_whole(&RealDisk, &path, 16 << 20).unwrap();
    let last = whole.iter().rposition(|octet| *octet != 0).unwrap();
    let cut = whole[..last - 10_000].to_vec();
    for other in [vec![0; older.len()], older, cut] {
        RealDisk.rename(&path, &away).unwrap();
        let checked = spool.run(&["config", "check"]);
        let said = [checked.stdout, checked.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.contains("its articles cannot be read until it is there"),
            "{said}"
        );
        let file = RealDisk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&other, 0).unwrap();
        let server = spool.serve();
        let mut client = NewsClient::connect(server.address);
        let mut answered = |code: &str| {
            let answers = (0..all).map(|n| client.ask(&format!("STAT {}", id(n))));
            answers.filter(|answer| answer.starts_with(code)).count()
        };
        let (there, not_now) = (answered("223"), answered("403"));
        assert!(not_now > 0);
        assert_eq!((there + not_now, answered("430")), (taken, all - taken));
        RealDisk.rename(&away, &path).unwrap();
        assert_eq!(answered("223"), taken);
        server.stop();
    }
}

/// Behind `store create` a set of files is made with the first start: to say what would come into it had been refused. And INN's timecaf was
/// passed over without a word.
#[test]
fn what_would_be_attached_is_told_of_a_spool_that_no_server_had() {
    let sets = "\n[[set]]\nname = \"text\"\nmethod = \"tradspool\"\n[[set]]\nname = \"main\"\nbuffers = [\"A\", \"B\"]\n\
                [[rule]]\nset = \"text\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + sets));
    spool.text(&["store", "create"]);
    let tree = spool.folder().join("articles");
    let write = |name: &str, text: &str| {
        let path = spool.folder().join("articles").join(name);
        RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
        newsreel_host::replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
    };
    let article = "Path: a!b\nFrom: a@b.example\nNewsgroups: misc.test\nSubject: x\nMessage-ID: <1@b.example>\n\
                   Date: Fri, 27 Nov 2026 09:00:00 +0000\n\nbody\n";
    write("misc/test/7", article);
    write("misc/READ.ME", "x");
    let tree = tree.display().to_string();
    let words = ["store", "attach", &tree, "--make-groups"];
    let would = spool.text(&[&words[..], &["--dry-run"]].concat());
    assert!(
        would.contains("1 article would be taken in, 0 of them under"),
        "{would}"
    );
    let passed = format!(
        "{tree}: files in it that have no names of articles were passed over: 1, {tree}/misc/READ.ME the first"
    );
    assert!(would.contains(&passed), "{would}");
    write("timecaf-00/01/2.CF", "x");
    let output = spool.run(&words);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && told.contains("1 article taken in"),
        "{told}"
    );
    assert!(
        told.contains("files of INN's timecaf cannot be read: 1, ")
            && told.contains("2.CF the first"),
        "{told}"
    );
    assert_eq!(spool.json(&["group", "show", "misc.test"])["high"], 7);
}
