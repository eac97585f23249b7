//! The command line without a server: help, configuration, completions, manual pages.

use std::io::Write as _;
use std::process::Stdio;

use newsreel_host::{Disk as _, RealDisk, replace_file};

use crate::spool::{Spool, newsreel, said};

fn run(words: &[&str]) -> Result<String, String> {
    said(newsreel().args(words).output().unwrap())
}

#[test]
fn every_verb_has_help() {
    let help = run(&["--help"]).unwrap();
    for verb in [
        "serve", "group", "status", "article", "store", "check", "config", "bench",
    ] {
        assert!(help.contains(&format!("  {verb} ")), "{verb} in {help}");
        assert!(
            run(&[verb, "--help"]).unwrap().contains("Usage: newsreel"),
            "{verb}"
        );
    }
    assert!(help.contains("Make, list, draw, check, move"), "{help}");
    for nested in ["group import", "bench feed", "bench read", "config explain"] {
        let words: Vec<&str> = nested.split(' ').chain(["--help"]).collect();
        assert!(run(&words).unwrap().contains("--json"), "{nested}");
    }
    let error = run(&["serv"]).unwrap_err();
    assert!(error.contains("serve"), "{error}");
}

#[test]
fn configuration_errors_come_all_at_once_and_nothing_starts() {
    let spool = Spool::with("[listen]\nbacklogg = 3\nbacklog = 0\n[log]\nsegment_octets = \"1\"\n");
    for words in [&["serve"][..], &["status"], &["config", "show"]] {
        let error = spool.error(words);
        for expected in [
            "newsreel.toml:2:1: unknown key `listen.backlogg`; did you mean `backlog`?",
            "newsreel.toml:3:11: listen.backlog = 0 is out of its limits; give 1 to 65535",
            "newsreel.toml:5:18: log.segment_octets = \"1\" cannot be read",
            "3 problems in ",
        ] {
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
    assert!(!spool.path().exists(), "nothing was made");

    let file = spool.config().display().to_string();
    let error = run(&["config", "check", &file]).unwrap_err();
    assert!(error.contains("3 problems"), "{error}");
    let output = newsreel()
        .args(["config", "check", &file, "--json"])
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["problems"].as_array().unwrap().len(), 3);
    assert_eq!(found["problems"][1]["line"], 3);
    assert!(!output.status.success());
}

/// What can do nothing is told at the argument, before anybody is connected to or anything is started.
#[test]
fn counts_of_a_benchmark_that_make_no_sense_are_refused_at_the_argument() {
    for (words, right) in [
        ("read --articles 0", "give a number from 1 to 1099511627776"),
        ("feed --articles 0", "give a number from 1 to 1099511627776"),
        (
            "corpus --articles 0",
            "give a number from 1 to 1099511627776",
        ),
        ("read --groups 0", "give a number from 1 to 1000000"),
        ("feed --crossposted 101", "give a number from 0 to 100"),
        ("idle --connections 0", "give a number from 1 to 60000"),
        ("feed --threads 0", "give a number from 1 to 256"),
        ("null --threads 0", "give a number from 1 to 256"),
        ("read --depth 0", "give a number from 1 to 1048576"),
        ("read --operations 0", "give a number from 1 to"),
        ("read --rate 0", "give a number above zero"),
        ("idle --duration 0", "give a number above zero"),
        ("feed --timeline 0", "give a number above zero"),
        ("beside --readers 0", "give a number from 1 to 60000"),
        ("beside --read-rate 0", "give a number above zero"),
        (
            "compare --rounds 0 --null --directory x",
            "give a number from 1 to 1000",
        ),
        (
            "compare --seconds 0 --null --directory x",
            "give a number above zero",
        ),
    ] {
        let all: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        let error = run(&all).unwrap_err();
        assert!(
            error.contains(right) && error.contains(all[2]),
            "{words}: {error}"
        );
    }
}

/// A server of the year 54840 had started: milliseconds were taken for seconds.
#[test]
fn a_clock_that_no_server_can_have_is_refused_before_anything_is_made() {
    let spool = Spool::new();
    for clock in [
        "0",
        "1",
        "-5",
        "1767225600000",
        "18446744073709551615",
        "tomorrow",
        "1e9",
    ] {
        // Where no spool can be made, a server that takes the clock ends too.
        let file = spool.config().display().to_string();
        let error = spool.error(&["serve", "--spool", &file, "--clock", clock]);
        assert!(
            error.contains("give whole seconds since 1970, from 315532800 (the year 1980) to")
                && error.contains(&format!("'{clock}'")),
            "{clock}: {error}"
        );
    }
}

/// Half a token is what a selection with the mouse leaves of it.
#[test]
fn what_is_no_whole_token_is_told_what_one_looks_like() {
    let spool = Spool::new();
    spool.serve().stop();
    let like = "a token is NAME:OFFSET:CYCLE, as in C0:24da800:1e";
    for (half, why) in [
        (
            "A:24da800",
            "\"24da800\" in \"A:24da800\" is no article number",
        ),
        (
            "24da800:1e",
            "\"1e\" in \"24da800:1e\" is no article number",
        ),
        ("test.a:0", "\"0\" in \"test.a:0\" is no article number"),
        ("A:24", "there is no group \"A\", but a buffer"),
        (
            "A:24da800:",
            "\"A:24da800:\" is no token: cycle in token must be",
        ),
        (
            "A:24da8:1e",
            "\"A:24da8:1e\" is no token: offset in token must be",
        ),
        ("::", "\"::\" is no token: buffer name in token must be"),
        (
            "A",
            "\"A\" names no article: give <message-id>, group:number, or a token",
        ),
    ] {
        let error = spool.error(&["article", "show", half]);
        assert!(
            error.contains(why) && error.contains(like),
            "{half}: {error}"
        );
    }
    let error = spool.error(&["article", "show", "misc.test:24"]);
    assert!(!error.contains(like), "{error}");
}

/// As a shell gives it to `config check <(...)`.
#[test]
fn a_configuration_is_read_from_a_pipe_within_its_limit() {
    let spool = Spool::new();
    let checked = |text: &str| {
        let mut command = newsreel();
        command.args(["config", "check", "/dev/stdin"]);
        command.current_dir(spool.folder()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // What is too long is not read to its end.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        said(child.wait_with_output().unwrap())
    };
    assert_eq!(
        checked("[listen]\nbacklog = 5\n").unwrap(),
        "/dev/stdin: good\n"
    );
    let error = checked("[listen]\nbacklogg = 5\n").unwrap_err();
    let expected = "/dev/stdin:2:1: unknown key `listen.backlogg`; did you mean `backlog`?";
    assert!(error.contains(expected), "{error}");
    let error = checked(&"#".repeat((4 << 20) + 1)).unwrap_err();
    let expected = "the configuration file /dev/stdin: cannot read /dev/stdin: it is longer than 4194304 octets";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_address_that_is_typed_twice_is_told_before_anything_is_made() {
    let spool = Spool::new();
    let twice = ["--listen", "127.0.0.1:1119", "--listen", "127.0.0.1:1119"];
    let error = spool.error(&[&["serve"], &twice[..]].concat());
    let expected = "--listen: 127.0.0.1:1119 is there already: give each address once";
    assert!(error.contains(expected), "{error}");
    assert!(!spool.path().exists());
}

#[test]
fn a_good_configuration_is_shown_and_explained() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    assert!(run(&["config", "check", &file]).unwrap().contains("good"));
    let shown = spool.json(&["config", "show"]);
    assert_eq!(shown["log"]["segment_octets"], 1 << 20);
    assert_eq!(shown["buffer"][1]["name"], "B");
    let said = run(&["config", "explain", "listen.drain_s"]).unwrap();
    assert!(
        said.contains("default") && said.contains("limits"),
        "{said}"
    );
    let said = run(&["config", "explain", "listen.addresses"]).unwrap();
    assert!(said.contains("[\"0.0.0.0:119\", \"[::]:119\"]"), "{said}");
    let explained = spool.json(&["config", "explain", "log.segment_octets"]);
    assert_eq!(
        (&explained["default"], &explained["now"]),
        (&(64 << 20).into(), &(1 << 20).into())
    );
    let flag = spool.json(&["config", "explain", "listen.loopback_unlimited"]);
    assert!(flag["default"].is_boolean(), "{flag}");
    let error = spool.error(&["config", "explain", "listen.foo"]);
    assert!(
        error.contains("[listen] has ") && error.contains("connections_max"),
        "{error}"
    );
    let error = spool.error(&["config", "explain", "listen.bakclog"]);
    assert!(
        error.contains("did you mean listen.backlog? [listen] has backlog, "),
        "{error}"
    );
}

/// A certificate that is not there was good, until the server did not start.
#[test]
fn files_and_programs_that_are_not_there_are_told() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    let tls = "\n[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";
    let programs = "\n[login]\nprogram = \"/no/such/login x\"\n[moderation]\nmoderators = [\"*:a@b.example\"]\n\
                    sendmail = \"/etc/passwd\"\n[[filter]]\nname = \"f\"\nprogram = \"/bin/cat\"\n";
    spool.configure(&(Spool::changed(&[]) + tls));
    let error = run(&["config", "check", &file]).unwrap_err();
    assert!(error.contains("cert.pem"), "{error}");
    spool.certify("a.example");
    assert!(run(&["config", "check", &file]).unwrap().contains("good"));
    spool.configure(&(Spool::changed(&[]) + tls + programs));
    let output = newsreel()
        .args(["config", "check", &file])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    for expected in [
        "login.program: there is no program /no/such/login that can be run",
        "moderation.sendmail: there is no program /etc/passwd that can be run",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    assert!(!told.contains("/bin/cat"), "{told}");
    let found = newsreel()
        .args(["config", "check", &file, "--json"])
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["problems"].as_array().unwrap().len(), 0);
    assert_eq!(found["warnings"].as_array().unwrap().len(), 2, "{found}");
}

/// A rule that holds for nobody, or a password in clear, passed without a word; and this command alone took no `--config`.
#[test]
fn what_can_hardly_be_meant_is_told_with_its_line() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    let doubtful = "[[access]]\nname = \"all\"\nread = \"*\"\n[[access]]\nname = \"inside\"\naddresses = [\"local\"]\n\
                    [[pull]]\nname = \"up\"\naddress = \"up.example:119\"\nuser = \"ada\"\npassword_file = \"/dev/null\"\n\
                    clear_text = true\n";
    spool.configure(&format!("{doubtful}{}", Spool::changed(&[])));
    let output = newsreel()
        .args(["config", "check", "--config", &file])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    for expected in [
        "newsreel.toml:5:8: name of the second [[access]]: nobody ever has what this entry grants, as name of the first [[access]] (line 2) ",
        "newsreel.toml:12:14: clear_text of the first [[pull]]: the password for ada goes to up.example:119 where anybody",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

/// Which file is meant is said once for all commands; only `--config` said it.
#[test]
fn the_environment_names_the_configuration() {
    let spool = Spool::new();
    let server = spool.serve();
    let with = |words: &[&str]| {
        let mut command = newsreel();
        command.env("NEWSREEL_CONFIG", spool.config()).args(words);
        said(command.output().unwrap())
    };
    assert!(with(&["status"]).unwrap().contains("pid "));
    assert!(
        with(&["config", "check"])
            .unwrap()
            .contains("newsreel.toml: good")
    );
    assert!(with(&["config", "show"]).unwrap().contains("8MiB"));
    with(&["group", "add", "misc.test"]).unwrap();
    // What is typed goes before it.
    let elsewhere = spool.folder().join("other.toml");
    let elsewhere = elsewhere.to_str().unwrap();
    let error = with(&["status", "--config", elsewhere]).unwrap_err();
    assert!(error.contains("other.toml"), "{error}");
    let other = spool.folder().join("none");
    let error = with(&["status", "--spool", other.to_str().unwrap()]).unwrap_err();
    assert!(error.contains("there is no spool in"), "{error}");
    let nameless = run(&["config", "check"]).unwrap_err();
    assert!(nameless.contains("name one"), "{nameless}");
    for verb in ["serve", "status", "post", "inews", "rnews", "cache"] {
        let help = run(&[verb, "--help"]).unwrap();
        assert!(help.contains("$NEWSREEL_CONFIG"), "{verb}: {help}");
    }
    server.stop();
}

/// Whoever made a mistake in the file could not ask the server any more how it is.
#[test]
fn a_mistake_in_the_file_keeps_nobody_from_asking_the_server() {
    let spool = Spool::new();
    let server = spool.serve();
    let sound = Spool::changed(&[]);
    for mistake in ["[scrub]\nnope = 1\n", "[scrub\n", "[[filter]]\n"] {
        spool.configure(&format!("{sound}\n{mistake}"));
        let output = spool.run(&["status", "--json"]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{mistake}: {told}");
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(status["server"]["pid"].is_number(), "{status}");
        assert!(told.contains("is asked all the same"), "{told}");
        assert!(told.contains("newsreel.toml:"), "{told}");
    }
    // Where the file does not say which spool it is, nobody guesses.
    for torn in [
        sound.replace("spool = \"spool\"", "spol = \"spool\""),
        sound.replace("spool = \"spool\"", "spool = [\n"),
    ] {
        assert!(torn != sound);
        spool.configure(&torn);
        let error = spool.error(&["status"]);
        assert!(error.contains("nothing was started or changed"), "{error}");
    }
    spool.configure(&format!("{sound}\n[scrub]\nnope = 1\n"));
    server.stop();
    let error = spool.error(&["status"]);
    assert!(error.contains("scrub.nope"), "{error}");
}

/// What was wrong with a certificate, and what was missing in a table, was told when all else was mended, and without a line.
#[test]
fn all_that_is_wrong_is_told_at_once_and_where() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    spool.configure(
        "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n[listen]\nbacklog = 0\n[[peer]]\nname = \"a.example\"\n\
         [[peer]]\nname = \"b.example\"\naddress = \"b.example\"\n[[peer.feed]]\nkind = \"program\"\n\
         [[filter]]\nname = \"f\"\nprogram = \"/no/such/program\"\n",
    );
    let output = newsreel()
        .args(["config", "check", &file])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for expected in [
        "newsreel.toml:2:15: ",
        "newsreel.toml:5:11: listen.backlog = 0 is out of its limits",
        "newsreel.toml:6:1: address of the first [[peer]] is not as it must be",
        "newsreel.toml:10:11: address of the second [[peer]] is not as it must be",
        "newsreel.toml:11:1: program of the first [[peer.feed]] of the second [[peer]] is not as it must be",
        "newsreel.toml:15:11: program of the first [[filter]]: there is no program /no/such/program",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    // A value that could not be read spoils what is said of its own table only.
    spool.configure(
        "[[peer]]\nname = \"a.example\"\n[[peer.feed]]\nkind = \"progam\"\n[[peer]]\nname = \"b.example\"\n",
    );
    let told = run(&["config", "check", &file]).unwrap_err();
    assert!(
        told.contains("newsreel.toml:5:1: address of the second") && told.contains("2 problems"),
        "{told}"
    );
    // One that is its own authority is taken, and warned of.
    spool.configure("[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n");
    let mut params = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    for (name, text) in [("cert.pem", certificate), ("key.pem", key.serialize_pem())] {
        let path = spool.folder().join(name);
        replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
    }
    let output = newsreel()
        .args(["config", "check", &file])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("newsreel.toml:2:15: tls.certificate: it is the certificate of an authority"),
        "{told}"
    );
}

/// Rules whose mails nobody sends, and whose keys nobody has, were good.
#[test]
fn rules_that_can_never_do_what_they_say_are_told() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    let warned = |control: &str| {
        spool.configure(&format!("{}\n[control]\n{control}\n", Spool::changed(&[])));
        let output = newsreel().args(["config", "check", &file]).output();
        let output = output.unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(warned("rules = ['all:*:*:log']"), "");
    let told = warned(
        "mail_to = 'a@b.example'\nrules = ['all:*:a.*:mail']\n[moderation]\nsendmail = '/no/such/sendmail %s'",
    );
    let expected = "moderation.sendmail: there is no program /no/such/sendmail that can be run";
    assert!(told.contains(expected), "{told}");
    let keys = "rules = ['all:*:a.*:verify-a.example', 'all:*:b.*:verify-a.example']\n\
                nocem = ['b.example:spam']";
    let told = warned(keys);
    for (key, setting) in [
        ("a.example", "control.rules"),
        ("b.example", "control.nocem"),
    ] {
        let place = spool.path();
        let expected = format!(
            "{setting}: the keyring of {} has no key {key}",
            place.display()
        );
        assert_eq!(told.matches(&expected).count(), 1, "{expected}: {told}");
    }
    // Rules of control.ctl name some eighty: each had a line of its own.
    let many = "rules = ['all:*:a.*:verify-a.example', 'all:*:b.*:verify-b.example', 'all:*:b.*:verify-a.example']";
    let told = warned(many);
    assert!(
        told.contains("has none of 2 keys")
            && told.contains("only they may: a.example, b.example;"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    let rules = "rules = ['all:*:a.*:verify-dsa.a.example']";
    assert!(warned(rules).contains("has no key dsa.a.example"));
    spool.serve().stop();
    let key = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/openpgp/dsa.asc"
    );
    spool.text(&["control", "keys", "import", key]);
    assert_eq!(warned(rules), "");
}

#[test]
fn a_key_of_another_section_is_meant_only_where_no_other_has_it() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    for (text, expected) in [
        (
            "[moderation]\nprogram = \"/x\"\n",
            "did you mean `sendmail`?",
        ),
        ("[listen]\nban_s = 5\n", "it belongs into [login]"),
        ("[server]\nprogram = \"/x\"\n", "known here: "),
        (
            "[server]\nlisten = [\"127.0.0.1:119\"]\n",
            "[listen] is a section of its own",
        ),
        ("[server]\npeer = 1\n", "[[peer]] is a section of its own"),
        ("[[peer]]\nname = \"a.example\"\n", "or `feed = []`"),
    ] {
        spool.configure(text);
        let error = run(&["config", "check", &file]).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn no_group_is_called_example() {
    let spool = Spool::new();
    let why = spool.error(&["group", "add", "misc.test", "example.x"]);
    assert!(why.contains("no group can be called example.x"), "{why}");
    assert!(!spool.path().exists(), "nothing was made");
}

#[test]
fn an_import_names_the_groups_with_reserved_names() {
    let spool = Spool::new();
    let list = spool.folder().join("active");
    let text = b"misc.test 0 1 y\nto.a 0 1 y\nto.b 0 1 y\n";
    replace_file(&RealDisk, &list, text).unwrap();
    spool.text(&["store", "create"]);
    let done = spool.run(&["group", "import", &list.display().to_string()]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(
        told.contains("to.a, to.b begin with a name that RFC 5536 reserves"),
        "{told}"
    );
}

#[test]
fn a_key_that_stands_twice_and_a_list_of_wrong_entries_are_told_once() {
    let spool = Spool::new();
    let file = spool.config().display().to_string();
    spool.configure("[listen]\nbacklog = 5\n[[buffer]]\nname = \"A\"\n[[buffer]]\nname = \"B\"\noctets = 1\nname = \"C\"\n[listen]\n");
    let error = run(&["config", "check", &file]).unwrap_err();
    for expected in [
        ":8:1: duplicate key `name`; it stands in line 6 already; keep one of them",
        ":9:2: duplicate key `listen`; it stands in line 1 already; keep one of them",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    spool.configure("[listen]\naddresses = [\"x\", \"y\"]\n");
    let error = run(&["config", "check", &file]).unwrap_err();
    assert!(
        error.contains("the second of listen.addresses = \"y\"")
            && !error.contains("give at least one"),
        "{error}"
    );
}

#[test]
fn completions_and_manual_pages_are_made() {
    for (shell, word) in [
        ("bash", "complete"),
        ("zsh", "#compdef"),
        ("fish", "complete -c"),
    ] {
        assert!(
            run(&["completions", shell]).unwrap().contains(word),
            "{shell}"
        );
    }
    let page = run(&["man"]).unwrap();
    assert!(
        page.contains(".TH newsreel") && page.contains("newsreel \\- A complete Usenet"),
        "{page}"
    );
    assert!(
        page.contains(".SH EXAMPLES\n") && !page.contains("EXTRA"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    run(&["man", "--directory", &folder.path().display().to_string()]).unwrap();
    for page in ["newsreel.1", "newsreel-serve.1", "newsreel-group-import.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}

#[test]
fn a_command_without_a_spool_makes_none() {
    let spool = Spool::new();
    let error = spool.error(&["status"]);
    let hint = format!(
        "`newsreel serve --config {}` makes one",
        spool.config().display()
    );
    assert!(
        error.contains("there is no spool in") && error.contains(&hint),
        "{error}"
    );
    // Where it was looked for had been told as it was given, and not what else makes one.
    let relative = newsreel()
        .args(["status", "--spool", "nowhere"])
        .current_dir(spool.folder())
        .output();
    let error = said(relative.unwrap()).unwrap_err();
    let looked_in = format!(
        "{}/nowhere",
        spool.folder().canonicalize().unwrap().display()
    );
    assert!(
        error.contains(&looked_in) && error.contains("or `newsreel store create"),
        "{error}"
    );
    assert!(!spool.path().exists());
}

/// The directory of a cache was no spool of this version, with the advice to make one there.
#[test]
fn the_directory_of_a_cache_is_told_apart_from_a_spool() {
    let spool = Spool::new();
    let cache = spool.folder().join("cache");
    RealDisk.create_dir_all(&cache).unwrap();
    replace_file(&RealDisk, &cache.join("table.redb"), b"x").unwrap();
    let looked = newsreel().args(["status", "--spool"]).arg(&cache).output();
    let error = said(looked.unwrap()).unwrap_err();
    assert!(
        error.contains("is the directory of a cache") && error.contains("`newsreel cache stats"),
        "{error}"
    );
}

/// A start was refused for them, and `config check` had called the file good.
#[test]
fn buffers_of_the_spool_that_a_file_does_not_name_are_told_with_the_lines_to_add() {
    let spool = Spool::new();
    spool.text(&["store", "create"]);
    let file = spool.config().display().to_string();
    let warned = || {
        let output = newsreel()
            .args(["config", "check", &file])
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(warned(), "");
    let second = "\n[[buffer]]\nname = \"B\"\noctets = \"8MiB\"\n";
    spool.configure(&Spool::changed(&[(second, "")]));
    let told = warned();
    assert!(
        told.contains("has B, which this file does not name") && told.contains("--drop-buffer B"),
        "{told}"
    );
    spool.configure(&Spool::changed(&[]));
    spool.serve().stop();
    spool.configure(&Spool::changed(&[(second, "")]));
    let told = warned();
    assert!(
        told.contains("add a [[buffer]] with name = \"B\" and octets = \"8MiB\""),
        "{told}"
    );
}

/// Errors had been plain text on the standard error whatever was asked for.
#[test]
fn who_asks_for_json_gets_errors_and_warnings_in_json() {
    let spool = Spool::new();
    spool.serve().stop();
    let file = spool.config().display().to_string();
    let config = ["--config", &file];
    for (words, status, kind, expected) in [
        (
            &["group", "show", "misc.none"][..],
            1,
            "error",
            "no group \"misc.none\"",
        ),
        (
            &["group", "import", "/no/list"],
            1,
            "error",
            "cannot read /no/list: ",
        ),
        (
            &["group", "show"],
            2,
            "error",
            "required arguments were not provided",
        ),
        (
            &["group", "shwo", "x"],
            2,
            "error",
            "unrecognized subcommand 'shwo'",
        ),
        (
            &["group", "add", "junk"],
            0,
            "warning",
            "junk begins with a name that RFC 5536",
        ),
    ] {
        let mut command = newsreel();
        command.args(words).args(config).arg("--json");
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let what = said[kind].as_str().unwrap_or_default();
        assert!(what.contains(expected), "{words:?}: {said}");
    }
    let help = newsreel()
        .args(["status", "--json", "--help"])
        .output()
        .unwrap();
    assert!(help.status.success() && help.stdout.starts_with(b"Tell how"));
}

#[test]
fn a_name_where_an_address_belongs_is_told_what_to_write() {
    for words in [
        ["serve", "--listen", "localhost:1119", "--clock=1"].as_slice(),
        &["bench", "read", "--server", "localhost:1119"],
        &["bench", "null", "--listen", "localhost:1119"],
    ] {
        let output = newsreel().args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains("[::1]:1119"),
            "{said}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = newsreel()
        .args(["config", "reference"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}
