//! `group import`: names, active and newsgroups files; all or nothing when a line is bad.

use newsreel_host::{Disk as _, RealDisk, replace_file};
use serde_json::json;

use crate::client::NewsClient;
use crate::spool::Spool;

fn file(spool: &Spool, name: &str, text: &str) -> String {
    let path = spool.folder().join(name);
    replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
    path.display().to_string()
}

#[test]
fn an_active_file_with_descriptions_is_imported() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.there"]);
    let active = file(
        &spool,
        "active",
        "misc.test 0000000042 0000000007 y\nmisc.mod 3 4 m\nmisc.there 9 1 n\nalt.old 5 6 =misc.test\n",
    );
    let newsgroups = file(
        &spool,
        "newsgroups",
        "misc.test\tFor tests.\nmisc.none\tNot here.\n",
    );
    let done = spool.json(&["group", "import", &active, &newsgroups]);
    assert_eq!(
        done,
        json!({"added": 3, "dated": 0, "existing": 1, "described": 0, "bad": [], "strange": [], "descriptions_unused": 1,
            "high_differs": [{"name": "misc.there", "high": 0, "listed": 9}]})
    );
    let group = spool.json(&["group", "show", "misc.test"]);
    assert_eq!(
        (&group["high"], &group["description"]),
        (&json!(42), &json!("For tests."))
    );
    assert_eq!(
        spool.json(&["group", "show", "misc.there"])["status"],
        "y",
        "left as it was"
    );

    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test"),
        "239 <1@t.example>"
    );
    assert_eq!(
        client.ask("GROUP misc.test"),
        "211 1 43 43 misc.test",
        "above the high mark"
    );
    assert_eq!(
        client.takethis("<2@t.example>", "alt.old"),
        "239 <2@t.example>"
    );
    assert_eq!(
        client.ask("STAT 44").split(' ').next(),
        Some("223"),
        "filed by its alias"
    );
}

/// All groups of INN were made on the day of the import, and NEWGROUPS told newsreaders so.
#[test]
fn groups_of_inn_keep_the_times_at_which_they_were_made() {
    let spool = Spool::new();
    spool.text(&["store", "create"]);
    let text = "misc.old 0000000042 0000000043 y\nmisc.alias 0 1 =misc.old\nmisc.ahead 7 8 y\nmisc.none 3 4 m\n";
    let active = file(&spool, "active", text);
    let times = "misc.old 1 x\nmisc.old 1080000000 usenet@inn.example\nmisc.gone 1080000000 x\nmisc.ahead 99999999999 x\nmisc.alias 1090000000 y\n";
    let times = file(&spool, "active.times", times);
    let names = "misc.old\nmisc.alias\nmisc.ahead\n";
    let bare = spool.piped(&["group", "import", "-", "--times", &times], names);
    assert_eq!(
        bare.unwrap(),
        "3 groups added, 0 existed already, 3 groups with the times of active.times\n"
    );
    let words = ["group", "import", "--raise", &active];
    let done = spool.json(&words);
    assert_eq!(
        (&done["added"], &done["dated"], &done["raised"]),
        (&json!(1), &json!(0), &json!(3)),
        "{done}"
    );
    let _ = replace_file(
        &RealDisk,
        times.as_ref(),
        b"misc.more soon x\nmisc.none 5 x\n",
    );
    let more = file(&spool, "more", "misc.more\n");
    let bad = spool.json(&["group", "import", &more, "--times", &times]);
    assert_eq!(bad["bad"][0]["what"], "soon is no time in seconds", "{bad}");
    assert_eq!(
        spool.json(&["group", "show", "misc.alias"])["status"],
        "=misc.old"
    );
    // Another file, of which no line could be used, was taken without a word.
    let other = file(&spool, "newsgroups", "# Texts\n\nmisc.old Old ones\n");
    for (times, line) in [(&other, 3), (&file(&spool, "nothing", ""), 1)] {
        let told = spool.json(&["group", "import", &more, "--times", times, "--dry-run"]);
        let bad = &told["bad"];
        let bad = bad.as_array().unwrap().last().unwrap();
        assert_eq!((&bad["file"], &bad["line"]), (&json!(times), &json!(line)));
        let what = bad["what"].as_str().unwrap();
        assert!(what.contains("as in INN's active.times"), "{what}");
    }
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert!(
        client
            .ask("NEWGROUPS 20200101 000000 GMT")
            .starts_with("231")
    );
    let mut new = client.block();
    new.sort_unstable();
    assert_eq!(
        new,
        ["misc.ahead 7 8 y", "misc.more 0 1 y", "misc.none 3 4 m"]
    );
    assert!(client.ask("LIST ACTIVE.TIMES misc.old").starts_with("215"));
    assert_eq!(client.block(), ["misc.old 1080000000 usenet@inn.example"]);
    server.stop();
}

/// It had kept them without a word.
#[test]
fn an_import_says_whose_high_marks_are_not_the_listed_ones() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&[
        "group",
        "add",
        "misc.a",
        "misc.b",
        "misc.again",
        "--high",
        "40",
    ]);
    spool.text(&["group", "remove", "misc.again"]);
    let text = "misc.a 30 1 y\nmisc.b 40 1 y\nmisc.again 7 1 y\nmisc.new 5 1 y\n";
    let active = file(&spool, "active", text);
    let kept = json!([
        {"name": "misc.a", "high": 40, "listed": 30},
        {"name": "misc.again", "high": 40, "listed": 7},
    ]);
    for words in [&["--dry-run"][..], &[]] {
        let done = spool.json(&[&["group", "import", &active], words].concat());
        assert_eq!(done["high_differs"], kept, "{words:?}");
    }
    assert_eq!(spool.json(&["group", "show", "misc.again"])["high"], 40);
    let lines: String = (0..7).map(|n| format!("test.g{n} 9 1 y\n")).collect();
    spool.text(&["group", "import", &file(&spool, "more", &lines)]);
    let lines = lines.replace(" 9 ", " 8 ") + "misc.a 50 1 y\n";
    let said = spool.text(&["group", "import", &file(&spool, "more", &lines)]);
    for expected in [
        "0 groups added, 8 existed already; ",
        "of 7 groups the high mark is higher than the listed one, and stays so",
        ": test.g0 (9, listed 8), test.g1 (9, listed 8), ",
        "test.g4 (9, listed 8) and 2 more\n",
        "of 1 group the high mark is lower than the listed one, and stays so: `--raise` or `newsreel group set NAME --high",
        ": misc.a (40, listed 50)\n",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    server.stop();
}

/// A spool whose articles were taken in with their numbers had groups with high marks below those of their server, and all of them open.
#[test]
fn an_import_raises_what_is_there_where_that_is_wanted() {
    let spool = Spool::new();
    let server = spool.serve();
    let names = [
        "misc.low",
        "misc.high",
        "misc.mod",
        "misc.open",
        "misc.same",
    ];
    spool.text(&[&["group", "add"][..], &names, &["--high", "7"]].concat());
    spool.text(&["group", "set", "misc.open", "--status", "n"]);
    let text = "misc.low 20 1 y\nmisc.high 3 1 y\nmisc.mod 7 1 m\nmisc.open 7 1 y\nmisc.same 7 1 y\nmisc.new 5 1 y\n";
    let active = file(&spool, "active", text);
    let import = ["group", "import", &active, "--raise"];
    let shown = || {
        let of = |name: &&str| {
            let group = spool.json(&["group", "show", name]);
            (group["high"].as_u64().unwrap(), group["status"].to_string())
        };
        names.iter().map(of).collect::<Vec<_>>()
    };
    let before = shown();
    let dry = spool.json(&[&import[..], &["--dry-run"]].concat());
    assert_eq!((&dry["raised"], shown()), (&2.into(), before));
    let done = spool.json(&import);
    assert_eq!(done["raised"], 2);
    let high = json!([{"name": "misc.high", "high": 7, "listed": 3}]);
    assert_eq!(done["high_differs"], high);
    let status = |text: &str| format!("\"{text}\"");
    let expected = [(20, "y"), (7, "y"), (7, "m"), (7, "n"), (7, "y")];
    assert_eq!(shown(), expected.map(|(high, text)| (high, status(text))));
    assert_eq!(spool.json(&import)["raised"], 0);
    server.stop();
}

/// A newsgroups file names groups that are not carried, and has lines that are no descriptions at all.
#[test]
fn descriptions_come_later_and_their_bad_lines_stop_nothing() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&[
        "group",
        "add",
        "misc.a",
        "misc.b",
        "misc.c",
        "--description",
        "Old.",
    ]);
    let names = file(&spool, "names", "misc.a\nmisc.new\n");
    let long = "x".repeat(600);
    let text = format!(
        "misc.a New.\nmisc..x Bad.\nmisc.b Two.\nmisc.c Old.\nmisc.new\tIt.\n\
                        alt.none Not here.\nmisc.c {long}\n"
    );
    let newsgroups = file(&spool, "newsgroups", &text);
    let import = ["group", "import", &names, &newsgroups];
    let dry = spool.json(&[&import[..], &["--dry-run"]].concat());
    assert_eq!(
        spool.json(&["group", "show", "misc.a"])["description"],
        "Old."
    );
    let done = spool.json(&import);
    for (done, what) in [(&dry, "dry"), (&done, "done")] {
        let counts = ["added", "existing", "described", "descriptions_unused"];
        let counts = counts.map(|key| done[key].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 2, 1], "{what}");
        assert_eq!(
            (&done["bad"][0]["line"], &done["bad"][1]["line"]),
            (&json!(2), &json!(7))
        );
    }
    for (name, text) in [
        ("misc.a", "New."),
        ("misc.b", "Two."),
        ("misc.c", "Old."),
        ("misc.new", "It."),
    ] {
        assert_eq!(spool.json(&["group", "show", name])["description"], text);
    }
    server.stop();
    let newsgroups = file(
        &spool,
        "newsgroups",
        "misc.a Third.\nmisc..x Bad.\nmisc.b\n",
    );
    let output = spool.run(&["group", "import", "/dev/null", &newsgroups]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        said,
        "0 groups added, 0 existed already, 1 bad line left out, 1 description set\n"
    );
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(
        warned.contains("newsgroups:2: misc..x: newsgroup name has an empty"),
        "{warned}"
    );
    let of = |name: &str| spool.json(&["group", "show", name])["description"].clone();
    assert_eq!(
        (of("misc.a"), of("misc.b")),
        (json!("Third."), json!("Two."))
    );
}

#[test]
fn wildmats_name_the_groups_to_change_and_to_remove() {
    let spool = Spool::new();
    let server = spool.serve();
    let names: Vec<String> = (0..60).map(|n| format!("alt.g{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    spool.text(
        &[
            &["group", "add", "misc.a", "misc.b", "alt.keep"],
            &names[..],
        ]
        .concat(),
    );
    let status = |wildmat: &str, status: &str| {
        let groups = spool.json(&["group", "list", wildmat]);
        let groups = groups.as_array().unwrap();
        groups
            .iter()
            .filter(|group| group["status"] == status)
            .count()
    };
    let set = |words: &[&'static str]| [&["group", "set"], words].concat();
    let said = spool.text(&set(&["alt.*,!alt.keep", "--status", "n"]));
    assert_eq!(said, "changed 60 groups\n");
    assert_eq!((status("alt.*", "n"), status("*", "y")), (60, 3));
    // High marks cannot be taken back, and which groups would get one could not be seen before.
    let dry = ["misc.?", "--high", "9", "--status", "n", "--dry-run"];
    let seen = spool.json(&set(&dry));
    let names: Vec<&str> = seen["changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names, &seen["dry_run"]),
        (vec!["misc.a", "misc.b"], &json!(true))
    );
    let said = spool.text(&set(&dry));
    assert!(
        said.ends_with("dry run: 2 groups would be changed\n"),
        "{said}"
    );
    assert_eq!(status("misc.?", "n"), 0);
    let changed = spool.json(&set(&["misc.?", "--high", "7"]));
    assert_eq!(
        (&changed[0]["high"], &changed[1]["name"]),
        (&json!(7), &json!("misc.b"))
    );
    for (words, why) in [
        (["none.*", "--status", "y"], "no group matches \"none.*\""),
        (
            ["misc.*", "--high", "6"],
            "the high mark of misc.a is 7 and cannot go down to 6; nothing was changed",
        ),
        (
            ["misc.*", "--status", "=misc.b"],
            "cannot be an alias of itself: \"misc.b\"; nothing was changed",
        ),
        (["misc.[", "--status", "y"], "wildmat is not closed"),
    ] {
        let error = spool.error(&set(&words));
        assert!(error.contains(why), "{words:?}: {error}");
    }
    server.stop();
    let remove = |words: &[&'static str]| [&["group", "remove"], words].concat();
    let all = ["misc.a", "alt.*,!alt.keep", "alt.g1*"];
    let said = spool.text(&remove(&[&all[..], &["--dry-run"]].concat()));
    assert!(
        said.ends_with("dry run: 61 groups would be removed\n"),
        "{said}"
    );
    let error = spool.error(&remove(&["misc.a", "none.*"]));
    assert!(
        error.contains("no group matches \"none.*\"; nothing was removed"),
        "{error}"
    );
    assert_eq!(spool.json(&["status"])["groups"], 63);
    assert_eq!(spool.text(&remove(&all)), "removed 61 groups\n");
    assert_eq!(
        spool.text(&remove(&["alt.*"])),
        "removed 1 group: alt.keep\n"
    );
    assert_eq!(spool.json(&["status"])["groups"], 1);
}

/// An alias whose target was removed filed nothing, and nobody said so.  Made again while the server ran, the target was
/// not found before the next start.
#[test]
fn an_alias_that_leads_nowhere_is_told_and_leads_to_its_target_when_that_is_back() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.a", "misc.b"]);
    spool.text(&["group", "add", "misc.alias", "--status", "=misc.b"]);
    let mut client = NewsClient::connect(server.address);
    let said = spool.text(&["group", "remove", "misc.b"]);
    assert!(
        said.starts_with("misc.alias is an alias, but what it leads to is removed: articles for it are filed nowhere; ")
            && said.ends_with("removed 1 group: misc.b\n"),
        "{said}"
    );
    assert!(
        client
            .takethis("<1@t.example>", "misc.alias")
            .starts_with("439")
    );
    let why = "misc.b does not exist";
    assert_eq!(
        spool.json(&["group", "show", "misc.alias"])["leads_nowhere"],
        why
    );
    let shown = spool.text(&["group", "show", "misc.alias"]);
    assert!(
        shown.contains("=misc.b (leads nowhere: misc.b does not exist)\n"),
        "{shown}"
    );
    let listed = spool.run(&["group", "list"]);
    let warned = String::from_utf8(listed.stderr).unwrap();
    assert!(
        warned.starts_with("warning: misc.alias is an alias, but misc.b does not exist: "),
        "{warned}"
    );
    let check = spool.text(&["check"]);
    assert!(
        check.starts_with("misc.alias is an alias, but misc.b does not exist: "),
        "{check}"
    );
    spool.text(&[
        "group",
        "set",
        "misc.alias",
        "--description",
        "Still described.",
    ]);
    spool.text(&["group", "add", "misc.b"]);
    assert_eq!(
        client.takethis("<2@t.example>", "misc.alias"),
        "239 <2@t.example>"
    );
    assert_eq!(client.ask("GROUP misc.b"), "211 1 1 1 misc.b");
    spool.text(&["group", "set", "misc.b", "--status", "=misc.a"]);
    let check = spool.json(&["check"]);
    assert_eq!(
        check["aliases"],
        json!(["misc.alias: misc.b is an alias itself"])
    );
    server.stop();
}

#[test]
fn a_bad_line_stops_an_import_unless_it_is_skipped() {
    let spool = Spool::new();
    let server = spool.serve();
    let names = file(
        &spool,
        "names",
        "misc.test\nmisc..bad\nmisc.b x y\nmisc.good\n",
    );
    let error = spool.error(&["group", "import", &names]);
    for expected in [
        "names:2: ",
        "names:3: 3 words",
        "2 bad lines, nothing was imported",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(spool.json(&["group", "list"]), json!([]));
    let done = spool.json(&["group", "import", &names, "--skip-bad"]);
    assert_eq!(
        (&done["added"], done["bad"].as_array().unwrap().len()),
        (&json!(2), 2)
    );
    server.stop();
}

/// Such a mark had been found one at a time behind all other bad lines, and no option left it out.  Low marks that make no
/// sense had been taken without a word.
#[test]
fn a_high_mark_without_numbers_above_it_is_a_bad_line_and_a_low_one_far_above_it_a_strange_one() {
    let spool = Spool::new();
    let server = spool.serve();
    let text = "alt.huge 99999999999 1 y\nmisc..bad\nalt.over31 2147483648 1 y\nalt.last 2147483647 1 y\n\
                alt.fine 2147483646 1 y\nalt.empty 5 6 y\nalt.lowhigh 5 900 y\nalt.gone 5 900 =alt.huge\n";
    let active = file(&spool, "active", text);
    let why = "cannot go on above 99999999999: 2147483647 is the last number while engine.number_overflow is \"stop\"";
    let told = [
        &format!("active:1: alt.huge {why}"),
        "active:2: misc..bad: ",
        "active:3: alt.over31 cannot",
        "active:4: alt.last cannot",
        "active:8: alt.gone is to be filed in alt.huge, which does not exist",
        "5 bad lines, nothing was imported",
    ];
    let import = ["group", "import", &active];
    for words in [&[][..], &["--dry-run"]] {
        let error = spool.error(&[&import[..], words].concat());
        for expected in told {
            assert!(error.contains(expected), "{expected} in {error}");
        }
    }
    let done = spool.run(&[&import[..], &["--skip-bad"]].concat());
    let (said, warned) = (done.stdout, String::from_utf8(done.stderr).unwrap());
    let said = String::from_utf8(said).unwrap();
    assert_eq!(
        said,
        "3 groups added, 0 existed already, 5 bad lines left out, 1 strange line taken\n"
    );
    let strange = "active:7: the low mark 900 is above the high mark 5, which alone counts\n";
    assert!(warned.ends_with(strange), "{warned}");
    assert_eq!(spool.json(&["group", "show", "alt.lowhigh"])["high"], 5);
    server.stop();
    // Where the numbers go on they are good.
    let larger = "[engine]\nnumber_overflow = \"larger\"\n\n[log]";
    spool.configure(&Spool::changed(&[("[log]", larger)]));
    let done = spool.json(&[&import[..], &["--skip-bad"]].concat());
    assert_eq!((&done["added"], &done["existing"]), (&json!(4), &json!(3)));
    assert_eq!(done["bad"].as_array().map(Vec::len), Some(1));
    assert_eq!(done["strange"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_import_of_many_groups_goes_in_batches() {
    let spool = Spool::new();
    let server = spool.serve();
    let lines: String = (0..2500).map(|n| format!("test.g{n}\n")).collect();
    let names = file(&spool, "names", &lines);
    let done = spool.json(&["group", "import", &names]);
    assert_eq!(done["added"], 2500);
    assert_eq!(spool.json(&["group", "import", &names])["existing"], 2500);
    assert_eq!(
        spool
            .json(&["group", "list", "test.*"])
            .as_array()
            .unwrap()
            .len(),
        2500
    );
    server.stop();
    assert_eq!(spool.json(&["status"])["groups"], 2500);
}

fn active_lines() -> String {
    // Aliases first, and in another batch than their targets.
    let alias = |n: usize| format!("test.a{n} 0 1 =test.g{n}\n");
    let group = |n: usize| format!("test.g{n} 5 1 y\n");
    (0..600).map(alias).chain((0..600).map(group)).collect()
}

#[test]
fn a_dry_run_of_an_import_says_what_would_be_made_and_makes_nothing() {
    let spool = Spool::new();
    let server = spool.serve();
    let active = file(&spool, "active", &active_lines());
    spool.text(&["group", "add", "test.g7"]);
    let dry = |words: &[&str]| {
        let done = spool.json(&[&["group", "import", &active, "--dry-run"], words].concat());
        assert_eq!(
            done,
            json!({"added": 1199, "dated": 0, "existing": 1, "described": 0, "bad": [], "strange": [], "descriptions_unused": 0,
                "high_differs": [{"name": "test.g7", "high": 0, "listed": 5}], "dry_run": true})
        );
    };
    dry(&[]);
    dry(&["--read-only"]);
    let said = spool.text(&["group", "import", &active, "--dry-run"]);
    assert!(
        said.starts_with("dry run: 1199 groups would be added, 1 exists already"),
        "{said}"
    );
    server.stop();
    dry(&[]);
    assert_eq!(spool.json(&["status"])["groups"], 1);

    let lost = file(&spool, "lost", "misc.ok 1 1 y\nmisc.lost 1 1 =misc.none\n");
    let error = spool.error(&["group", "import", &lost, "--dry-run"]);
    assert!(
        error.contains("nothing was imported") && error.contains("lost:2: misc.lost"),
        "{error}"
    );

    let done = spool.json(&["group", "import", &active]);
    assert_eq!(
        (&done["added"], &done["existing"]),
        (&json!(1199), &json!(1))
    );
    assert_eq!(
        spool.json(&["group", "show", "test.a599"])["status"],
        "=test.g599"
    );
}

#[test]
fn a_dry_run_counts_the_groups_of_earlier_batches() {
    let spool = Spool::with(&Spool::changed(&[(
        "[log]",
        "[engine]\ngroups_max = 1100\n\n[log]",
    )]));
    let server = spool.serve();
    let active = file(&spool, "active", &active_lines());
    let error = spool.error(&["group", "import", &active, "--dry-run"]);
    assert!(
        error.contains("an import would fail after 1000 groups"),
        "{error}"
    );
    assert!(error.contains("engine.groups_max is 1100"), "{error}");
    assert_eq!(spool.json(&["status"])["groups"], 0);
    let error = spool.error(&["group", "import", &active]);
    assert!(error.contains("nothing was imported"), "{error}");
    assert_eq!(spool.json(&["status"])["groups"], 0);
    server.stop();
}

/// The first batches of such a file had been added when its last lines were refused.
#[test]
fn what_only_the_spool_can_refuse_is_found_before_the_first_group_is_made() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.there", "misc.b"]);
    spool.text(&["group", "add", "misc.alias", "--status", "=misc.there"]);
    let mut lines: String = (0..1200).map(|n| format!("test.g{n}\n")).collect();
    lines.push_str("yy.q 1 1 =no.where\nyy.r 1 1 =misc.there\nyy.s 1 1 =misc.alias\n");
    lines.push_str("yy.t 1 1 =yy.r\nmisc.b 1 1 =no.where\nyy.u 9999999999999999 1 y\n");
    let active = file(&spool, "active", &lines);
    let text = format!("test.g0 short\ntest.g1 {}\n", "x".repeat(600));
    let newsgroups = file(&spool, "newsgroups", &text);
    let error = spool.error(&["group", "import", &active, &newsgroups]);
    let expected = [
        "active:1201: yy.q is to be filed in no.where, which does not exist\n",
        "active:1203: yy.s is to be filed in misc.alias, which is an alias itself\n",
        "active:1204: yy.t is to be filed in yy.r, which is an alias itself\n",
        "active:1206: the high mark 9999999999999999 leaves no numbers to go on with\n",
        "newsgroups:2: the description of test.g1 has over 512 octets\n",
        "5 bad lines, nothing was imported",
    ];
    for expected in expected {
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(spool.json(&["status"])["groups"], 3);

    let refused = spool.run(&["group", "import", &active, &newsgroups, "--json"]);
    assert!(!refused.status.success());
    let found: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(
        (&found["added"], &found["bad"][0]["line"]),
        (&json!(0), &json!(1201))
    );

    let done = spool.json(&["group", "import", &active, &newsgroups, "--skip-bad"]);
    assert_eq!(
        (
            &done["added"],
            &done["existing"],
            done["bad"].as_array().map(Vec::len)
        ),
        (&json!(1201), &json!(1), Some(5))
    );
    let error = spool.error(&["group", "set", "misc.b", "--status", "=misc.alias"]);
    assert!(error.contains("is an alias itself"), "{error}");
    // What is there already is looked at as well where it is to be raised.
    for more in [&[][..], &["--dry-run"]] {
        let raise = ["group", "import", "--raise", &active];
        let error = spool.error(&[&raise[..], more].concat());
        let expected = "active:1205: misc.b is to be filed in no.where, which does not exist";
        assert!(error.contains(expected), "{error}");
    }
    server.stop();
}

#[test]
fn all_that_is_wrong_with_what_was_asked_for_is_said_at_once() {
    let spool = Spool::new();
    spool.serve().stop();
    spool.text(&["group", "add", "misc.test"]);
    let error = spool.error(&["group", "add", "misc.test", "misc.b", "bad name", "..x"]);
    for expected in [
        "group misc.test exists already; \"bad name\" is no group name: ",
        "; \"..x\" is no group name: ",
        "; nothing was added",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let error = spool.error(&["group", "add", "poster", "misc.all", "junk"]);
    assert!(
        error.contains("poster cannot be a group: ")
            && error.contains("; misc.all cannot be a group: "),
        "{error}"
    );
    let reserved = spool.run(&["group", "add", "junk", "misc.fine", "control.cancel"]);
    let said = String::from_utf8(reserved.stderr).unwrap();
    assert!(
        reserved.status.success()
            && said.starts_with("warning: junk ")
            && !said.contains("fine")
            && !said.contains("cancel"),
        "{said}"
    );
    spool.text(&["group", "set", "misc.test", "--high", "100"]);
    let error = spool.error(&["group", "set", "misc.test", "--high", "99", "--status", "n"]);
    let expected =
        "the high mark of misc.test is 100 and cannot go down to 99; nothing was changed";
    assert!(error.contains(expected), "{error}");
    assert_eq!(spool.json(&["group", "show", "misc.test"])["status"], "y");
    let error = spool.error(&["article", "show", "NEWS0:24da800:1e"]);
    assert!(
        error.contains("there is no buffer \"NEWS0\"; there are A, B"),
        "{error}"
    );
    let error = spool.error(&["serve", "--spool", "/etc/passwd"]);
    assert!(
        error.contains("/etc/passwd: it is a file, not a directory"),
        "{error}"
    );
}

/// `group import <(...)`, `... | group import -`, and what is no file at all.
#[test]
fn lists_come_from_pipes_as_well() {
    let spool = Spool::new();
    spool.serve().stop();
    let import = |words: &[&str], text: &str| {
        let words = [&["group", "import", "--json"], words].concat();
        let said = spool.piped(&words, text).unwrap();
        serde_json::from_str::<serde_json::Value>(&said).unwrap()
    };
    assert_eq!(import(&["-"], "misc.a\nmisc.b\n")["added"], 2);
    assert_eq!(import(&["/dev/stdin"], "misc.b\nmisc.c\n")["added"], 1);
    assert_eq!(import(&["/dev/null"], "")["added"], 0);
    let names = file(&spool, "names", "misc.d\n");
    assert_eq!(import(&[&names, "-"], "misc.d Four.\n")["added"], 1);
    assert_eq!(
        spool.json(&["group", "show", "misc.d"])["description"],
        "Four."
    );
    let error = spool.error(&["group", "import", "-", "-"]);
    assert!(error.contains("only one of the two"), "{error}");
    let error = spool.error(&["group", "import", "/no/such/list"]);
    assert!(
        error.contains("cannot read /no/such/list: it does not exist"),
        "{error}"
    );
}

#[test]
fn groups_are_removed_all_or_none_and_a_dry_run_removes_none() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.a", "misc.b", "misc.c"]);
    spool.text(&["group", "add", "misc.alias", "--status", "=misc.b"]);
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.b"),
        "239 <1@t.example>"
    );
    let dry = || {
        let done = spool.json(&["group", "remove", "misc.a", "misc.b", "--dry-run"]);
        assert_eq!(done["dry_run"], true);
        assert_eq!(done["aliases_left"], json!(["misc.alias"]));
        assert_eq!(
            (&done["removed"][1]["name"], &done["removed"][1]["count"]),
            (&json!("misc.b"), &json!(1))
        );
        let said = spool.text(&["group", "remove", "misc.a", "--dry-run", "--read-only"]);
        assert!(
            said.ends_with("dry run: 1 group would be removed\n"),
            "{said}"
        );
        assert_eq!(spool.json(&["status"])["groups"], 4);
    };
    dry();
    let error = spool.error(&["group", "remove", "misc.a", "misc.none"]);
    assert!(
        error.contains("no group \"misc.none\"; nothing was removed"),
        "{error}"
    );
    let error = spool.error(&["group", "remove", "misc.a", "misc.a"]);
    assert!(error.contains("given twice"), "{error}");
    server.stop();
    dry();
    let done = spool.json(&["group", "remove", "misc.a", "misc.b"]);
    assert_eq!(done["removed"].as_array().unwrap().len(), 2);
    assert_eq!(spool.json(&["status"])["groups"], 2);
}

/// A real article of 1999 names a mail address among its groups; others name a group twice.
#[test]
fn odd_names_among_the_groups_of_an_article_do_no_harm() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.b"]);
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test,me@host.example"),
        "239 <1@t.example>"
    );
    assert_eq!(
        client.takethis("<2@t.example>", "misc.b,misc.test,misc.b"),
        "239 <2@t.example>"
    );
    assert!(
        client
            .takethis("<3@t.example>", "me@host.example")
            .starts_with("439 <3@t.example>")
    );
    assert_eq!(client.ask("GROUP misc.b"), "211 1 1 1 misc.b");
    assert_eq!(client.ask("GROUP misc.test"), "211 2 1 2 misc.test");
    server.stop();
}

/// Group rows that are lost in both files stay in sight until somebody makes do without them, beside a server or offline.
#[test]
fn lost_groups_are_told_until_they_are_forgotten() {
    for is_live in [true, false] {
        let spool = Spool::new();
        let server = spool.serve();
        spool.text(&["group", "add", "misc.test", "misc.empty"]);
        let mut client = NewsClient::connect(server.address);
        assert!(
            client
                .takethis("<1@lost.example>", "misc.test")
                .starts_with("239")
        );
        let none = spool.json(&["group", "forget-lost"]);
        assert_eq!(none, json!({"files": 0}));
        server.stop();
        let index = spool.path().join("index");
        let files = RealDisk.list(&index).unwrap();
        let lost: Vec<_> = files
            .iter()
            .filter(|file| file.name.starts_with("groups-"))
            .collect();
        assert_eq!(lost.len(), 2);
        for file in lost {
            RealDisk.remove(&index.join(&file.name)).unwrap();
        }
        let server = spool.serve();
        let told = |words: &[&str], key: &str| spool.json(words)[key].to_string();
        let check = spool.run(&["check", "--json"]);
        assert!(!check.status.success());
        assert!(String::from_utf8_lossy(&check.stdout).contains("forget-lost"));
        assert!(told(&["status"], "damaged").contains("forget-lost"));
        let group = spool.json(&["group", "show", "misc.test"]);
        assert_eq!((&group["high"], &group["count"]), (&json!(1), &json!(1)));
        let server = if is_live {
            Some(server)
        } else {
            server.stop();
            None
        };
        assert_eq!(
            spool.json(&["group", "forget-lost"]),
            json!({"files": 1}),
            "live: {is_live}"
        );
        let again = spool.text(&["group", "forget-lost"]);
        assert_eq!(again.trim_end(), "no file of groups is lost");
        assert_eq!(told(&["check"], "problems"), "[]");
        assert_eq!(told(&["status"], "damaged"), "[]");
        if let Some(server) = server {
            server.stop();
        }
    }
}
