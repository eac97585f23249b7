//! `newsreel access explain`: the rules of a configuration, as the server takes them.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::process::kill_group;
use newsreel_host::{Clock as _, Disk as _, RealClock, RealDisk, read_whole, replace_file};

use crate::client::NewsClient;
use crate::lifecycle::wait_for;
use crate::real_clients::Screen;
use crate::spool::{Spool, newsreel};

const RULES: &str = r#"
[[access]]
name = "peer"
addresses = ["192.0.2.7"]
feed = true

[[access]]
name = "here"
addresses = ["local"]
read = "*,!secret.*"

[[access]]
name = "virtual"
listen = ["198.51.100.1:0"]
read = "misc.*"
commands_per_s_max = 5
"#;

#[test]
fn what_is_explained_is_what_the_server_does() {
    let spool = Spool::with(&(Spool::changed(&[]) + RULES));
    let explain = |words: &[&str]| spool.text(&[&["access", "explain"][..], words].concat());
    let said = explain(&["192.0.2.7"]);
    assert!(
        said.starts_with("192.0.2.7 has what \"peer\" grants:\n"),
        "{said}"
    );
    let said = explain(&["203.0.113.9", "--listen", "198.51.100.1:563"]);
    assert!(
        said.starts_with(
            "not \"peer\": it is for other addresses\nnot \"here\": it is for other addresses\n\
             203.0.113.9 has what \"virtual\" grants:\n"
        ),
        "{said}"
    );
    let json = spool.json(&["access", "explain", "::1"]);
    assert_eq!(json["rule"], "here");
    assert_eq!(json["grants"]["read"], "*,!secret.*");
    assert_eq!(json["grants"]["feed"], false);
    assert_eq!(json["passed_over"][0]["rule"], "peer");
    let why = spool.error(&["access", "explain", "203.0.113.9"]);
    assert!(
        why.contains("no access rule is for 203.0.113.9: it is refused"),
        "{why}"
    );
    // The server does so, and its last values are explained without the file.
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("IHAVE <a@b.example>"), "502 Not permitted");
    server.stop();
    let at = spool.path().display().to_string();
    let last = newsreel()
        .args(["access", "explain", "127.0.0.1", "--spool", &at])
        .output();
    let said = crate::spool::said(last.unwrap()).unwrap();
    assert!(
        said.contains("127.0.0.1 has what \"here\" grants:"),
        "{said}"
    );
}

/// Users are changed beside a running server, and the next login knows.
#[test]
fn users_log_in_as_they_are_at_that_moment() {
    let rules = "[[access]]\nname = \"staff\"\nusers = [\"@staff\"]\nread = \"*\"\n\
                 [[access]]\nname = \"any\"\nusers = [\"*\"]\nread = \"misc.*\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + "[login]\nfailures_max = 0\n" + rules));
    let add = |words: &[&str], password: &str| {
        spool.piped(&[&["user"][..], words].concat(), &format!("{password}\n"))
    };
    let none = add(&["add", "ada"], "correct-horse").unwrap_err();
    assert!(none.contains("there is no spool in"), "{none}");
    let server = spool.serve();
    let group = |name: &str, password: &str| {
        let mut client = NewsClient::connect(server.address);
        assert!(
            client
                .ask(&format!("AUTHINFO USER {name}"))
                .starts_with("381")
        );
        let said = client.ask(&format!("AUTHINFO PASS {password}"));
        let said = said[..3].to_owned() + " " + &client.ask("GROUP news.none")[..3];
        said + " " + &client.ask("LIST ACTIVE")[..3]
    };
    assert_eq!(group("ada", "correct-horse"), "481 480 480");
    assert_eq!(
        add(&["add", "ada", "--group", "staff"], "correct-horse").unwrap(),
        "ada: added\n"
    );
    assert_eq!(group("ada", "correct-horse"), "281 411 215");
    let again = add(&["add", "ada"], "correct-horse").unwrap_err();
    assert!(again.contains("there is a user ada already"), "{again}");
    let explained = |who: &str| spool.json(&["access", "explain", "192.0.2.1", who]);
    assert_eq!(explained("ada")["rule"], "staff");
    // To ask for her groups took them away.
    assert_eq!(spool.text(&["user", "groups", "ada"]), "ada: staff\n");
    assert_eq!(explained("ada")["rule"], "staff");
    let words = ["user", "groups", "ada", "--group", "b", "--group", "staff"];
    assert_eq!(spool.text(&words), "ada: has the groups b, staff\n");
    let shown = spool.json(&["user", "groups", "ada"]);
    assert_eq!(
        shown,
        serde_json::json!({"user": "ada", "groups": ["b", "staff"]})
    );
    let both = spool.error(&["user", "groups", "ada", "--none", "--group", "b"]);
    assert!(both.contains("cannot be used with"), "{both}");
    let none = spool.text(&["user", "groups", "ada", "--none"]);
    assert_eq!(none, "ada: has no groups\n");
    assert_eq!(spool.text(&["user", "groups", "ada"]), "ada: no groups\n");
    assert_eq!(explained("ada")["rule"], "any");
    let unknown = spool.error(&["access", "explain", "192.0.2.1", "eve"]);
    assert!(unknown.contains("there is no user eve"), "{unknown}");
    let nobody = spool.error(&["access", "explain", "192.0.2.1"]);
    assert!(
        nobody.contains("no access rule is for 192.0.2.1 before a login: it is let in to log in"),
        "{nobody}"
    );
    spool.text(&["user", "lock", "ada"]);
    assert_eq!(group("ada", "correct-horse"), "481 480 480");
    assert_eq!(
        spool.text(&["user", "list"]),
        "ada                        locked\n"
    );
    spool.text(&["user", "unlock", "ada"]);
    add(&["passwd", "ada"], "battery-staple").unwrap();
    assert_eq!(group("ada", "correct-horse"), "481 480 480");
    assert_eq!(group("ada", "battery-staple"), "281 411 215");
    let listed = spool.json(&["user", "list"]);
    assert_eq!(
        listed,
        serde_json::json!([{"name": "ada", "groups": [], "locked": false}])
    );
    spool.text(&["user", "remove", "ada"]);
    assert_eq!(group("ada", "battery-staple"), "481 480 480");
    let short = add(&["add", "ada"], "short").unwrap_err();
    assert!(short.contains("too short: give 8 to 256 octets"), "{short}");
    let log = spool.log();
    assert!(
        !log.contains("correct-horse") && !log.contains("battery-staple"),
        "{log}"
    );
    server.stop();
}

#[test]
fn where_tls_would_help_that_is_explained() {
    const RULE: &str = "[[access]]\nname = \"safe\"\ntls = true\nread = \"*\"\n";
    const TLS: &str = "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + TLS + RULE));
    let why = spool.error(&["access", "explain", "192.0.2.1"]);
    assert!(
        why.contains("no access rule is for 192.0.2.1 without TLS"),
        "{why}"
    );
    let json = spool.json(&["access", "explain", "192.0.2.1", "--tls"]);
    assert_eq!(json["rule"], "safe");
    // Nobody can speak TLS with a server that has no certificate.
    spool.configure(&(Spool::changed(&[]) + RULE));
    let why = spool.error(&["access", "explain", "192.0.2.1"]);
    assert!(
        why.contains("no access rule is for 192.0.2.1: it is refused"),
        "{why}"
    );
}

#[test]
fn without_rules_the_keys_are_explained() {
    let spool = Spool::new();
    let json = spool.json(&["access", "explain", "127.0.0.1"]);
    assert_eq!(json["rule"], "this machine");
    assert_eq!(json["grants"]["post"], "*");
    let why = spool.error(&["access", "explain", "192.0.2.1"]);
    assert!(why.contains("no access rule is for 192.0.2.1"), "{why}");
}

/// A program as INN asks its authenticators: it knows whom the spool does not have, and nothing of whom it has.
/// Whether a process does nothing any more, soon: one that nobody has waited for does not.
#[expect(clippy::disallowed_methods, reason = "looks at a process")]
fn ends(pid: &str) -> bool {
    let stat = Path::new("/proc").join(pid).join("stat");
    (0..200).any(|_| {
        let is_running = std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        if is_running {
            std::thread::sleep(Duration::from_millis(10));
        }
        !is_running
    })
}

#[test]
fn a_program_knows_more_users() {
    let spool = Spool::new();
    let script = spool.folder().join("check.sh");
    // What it was asked goes into a file; it knows eve and ada by the password `secret-word`, and one of blanks.
    let text = "#!/bin/sh\ncat > \"$1\"\nname=$(sed -n 's/^ClientAuthname: \\(.*\\)\\r$/\\1/p' \"$1\")\n\
                grep -q -e '^ClientPassword: secret-word.$' -e '^ClientPassword: pass  phrase of  four.$' \"$1\" || exit 1\n\
                case $name in leaves) sleep 600 & echo $! > \"$1.pid\"; printf 'User:leaves\\r\\n';; eve|ada) printf 'User:%s\\r\\ngroups:staff\\r\\n' $name;; kill) kill -9 $$;; \
                slow) sleep 600 & echo $! > \"$1.pid\"; sleep 600;; odd) echo hello;; much) seq 1 5000;; *) exit 1;; esac\n";
    replace_file(&RealDisk, &script, text.as_bytes()).unwrap();
    let asked = spool.folder().join("asked");
    let rules = "[[access]]\nname = \"staff\"\nusers = [\"@staff\"]\nread = \"*\"\n\
                 [[access]]\nname = \"any\"\nread = \"misc.*\"\n";
    let program = format!("/bin/sh {} {}", script.display(), asked.display());
    let login = format!("[login]\nfailures_max = 0\nprogram = \"{program}\"\nprogram_s_max = 1\n");
    spool.configure(&(Spool::changed(&[]) + &login + rules));
    let server = spool.serve();
    spool.text(&["group", "add", "news.test"]);
    spool
        .piped(&["user", "add", "ada"], "correct-horse\n")
        .unwrap();
    let log_in = |name: &str, password: &str| {
        let mut client = NewsClient::connect(server.address);
        client.ask(&format!("AUTHINFO USER {name}"));
        let said = client.ask(&format!("AUTHINFO PASS {password}"));
        said[..3].to_owned() + " " + &client.ask("GROUP news.test")[..3]
    };
    assert_eq!(log_in("eve", "secret-word"), "281 211");
    let lines = read_whole(&RealDisk, &asked, 4096).unwrap();
    assert_eq!(
        String::from_utf8(lines).unwrap(),
        "ClientIP: 127.0.0.1\r\nClientAuthname: eve\r\nClientPassword: secret-word\r\n.\r\n"
    );
    // It had to be one word, which those of other systems need not be.
    assert_eq!(log_in("eve", " pass  phrase of  four "), "281 211");
    assert_eq!(log_in("eve", "pass phrase of four"), "481 480");
    assert_eq!(log_in("ada", "correct-horse"), "281 411", "as here");
    assert_eq!(
        log_in("ada", "secret-word"),
        "481 480",
        "the program's word does not count"
    );
    for name in ["kill", "slow", "odd", "much"] {
        assert_eq!(log_in(name, "secret-word"), "403 480", "{name}");
        // Why is a line a second in the log.
        std::thread::sleep(Duration::from_millis(1100));
    }
    // What it started went on when it was late.
    let started = read_whole(&RealDisk, &asked.with_extension("pid"), 100).unwrap();
    let started = String::from_utf8(started).unwrap();
    assert!(ends(started.trim()), "{started} goes on");
    // So did what was started by one that had ended by itself.
    assert_eq!(log_in("leaves", "secret-word"), "281 411");
    let left = read_whole(&RealDisk, &asked.with_extension("pid"), 100).unwrap();
    let left = String::from_utf8(left).unwrap();
    assert_ne!(left, started);
    assert!(ends(left.trim()), "{left} goes on");
    // A client may have its answer before the line is in the log.
    for why in [
        "a signal ended it",
        "it had not ended after 1 s",
        "said no line user:NAME",
        "it says too much",
    ] {
        wait_for(&spool, why);
    }
    // A line end in a name is no line of ours: the program is not asked.
    RealDisk.remove(&asked).unwrap();
    let mut client = NewsClient::connect(server.address);
    let plain = "AGV2ZQpDbGllbnRQYXNzd29yZDogc2VjcmV0LXdvcmQAeA==";
    assert_eq!(
        &client.ask(&format!("AUTHINFO SASL PLAIN {plain}"))[..3],
        "481"
    );
    assert!(!RealDisk.exists(&asked).unwrap());
    server.stop();
}

/// Made by OpenSSL and crypt(3); the password is `correct horse` but for `des` (`secret`).
const PASSWD_FILE: &str = "# users\n\
    apr:$apr1$saltsalt$EGVZDNN6gOqijy.tv9axG/\n\
    long:$apr1$abc$/oVgeH5N2bvLmPjagdEc10\n\
    md5:$1$saltsalt$NuzA7WTAelpl95xgBGWN60\n\
    sha512:$6$saltsalt$hRM5XZ86KXEw9UOmjigeVqFgULtFB2sgpC9lXQDfMib3Zgw7mEiUvBJI2EplzfAqxL5Vvwp2scFtv/uamSo5z0\n\
    sha:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\n\
    bcrypt:$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n\
    des:abNANd1rDfiNc:x:y\n\
    clear:correct horse\n\
    none:\n";

/// What `contrib/login/passwd-file` says of a name and a password.
fn asked_of_passwd_file(arguments: &[&Path], name: &str, password: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/login/passwd-file");
    let mut child = Command::new("/usr/bin/perl")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = format!("ClientAuthname: {name}\r\nClientPassword: {password}\r\n.\r\n");
    let mut input = child.stdin.take().unwrap();
    input.write_all(said.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let told = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.success(), !told.is_empty(), "{name}: {told}");
    told
}

/// `contrib/login/passwd-file` reads what htpasswd and INN's ckpasswd take.
#[test]
fn files_of_htpasswd_know_users() {
    if !RealDisk.exists(Path::new("/usr/bin/perl")).unwrap() {
        println!("skipped: there is no /usr/bin/perl");
        return;
    }
    let spool = Spool::new();
    let path = |name: &str| spool.folder().join(name);
    for (name, text) in [
        ("users", PASSWD_FILE),
        ("groups", "staff: apr md5\nother: x apr\n"),
    ] {
        replace_file(&RealDisk, &path(name), text.as_bytes()).unwrap();
    }
    let ask = |name: &str, password: &str| {
        asked_of_passwd_file(&[&path("users"), &path("groups")], name, password)
    };
    let right = "correct horse";
    assert_eq!(ask("apr", right), "user:apr\r\ngroups:staff,other\r\n");
    assert_eq!(ask("md5", right), "user:md5\r\ngroups:staff\r\n");
    for name in ["sha512", "sha", "bcrypt"] {
        assert_eq!(ask(name, right), format!("user:{name}\r\n"));
    }
    let long = ask("long", "a much longer password than sixteen octets");
    assert_eq!(
        (long.as_str(), ask("des", "secret").as_str()),
        ("user:long\r\n", "user:des\r\n")
    );
    for name in ["apr", "sha", "bcrypt"] {
        assert_eq!(ask(name, "correct-horse"), "", "{name}");
    }
    for name in ["clear", "none", "nobody", "# users", "a:b"] {
        assert_eq!(ask(name, right), "", "{name}");
    }
    assert_eq!(ask("none", ""), "");
    // Who has a `*` for a hash, in the first line of the file, and who is not there, cost nothing: names told themselves by the time.
    let slow = "ghost:*\nslow:$6$rounds=1000000$abcdefgh$x\nquick:$6$abcdefgh$x\n";
    replace_file(&RealDisk, &path("users"), slow.as_bytes()).unwrap();
    let clock = RealClock::new();
    let took = |name: &str| {
        let times = (0..3).map(|_| {
            let began = clock.monotonic();
            assert_eq!(ask(name, "wrong"), "");
            clock.monotonic().saturating_sub(began)
        });
        times.min().unwrap()
    };
    let somebody = took("slow");
    for name in ["ghost", "quick", "nobody"] {
        let took = took(name);
        assert!(took > somebody / 6, "{name}: {took:?}, slow: {somebody:?}");
    }
    replace_file(&RealDisk, &path("users"), PASSWD_FILE.as_bytes()).unwrap();
    // A file that is not there was a wrong password to everybody, and nothing in the log.
    RealDisk.remove(&path("groups")).unwrap();
    let told = ask("apr", right);
    assert!(told.starts_with("error:passwd-file: "), "{told}");
}

/// The real `passwd.nntp` of INN, with a host in front, was read as names with hashes: nobody was known by it.
#[test]
fn files_of_passwd_nntp_know_users() {
    if !RealDisk.exists(Path::new("/usr/bin/perl")).unwrap() {
        println!("skipped: there is no /usr/bin/perl");
        return;
    }
    let spool = Spool::new();
    let [users, groups] = ["users", "groups"].map(|name| spool.folder().join(name));
    let text = "# INN's\nnews.example.org:ada:open-sesame\nNews.Example.org:bob:a b$c:authinfo\n\
                other.example.org:ada:elsewhere\nnews.example.org:eve:x:kerberos\nnews.example.org::nameless\n\
                news.example.org:none:\nnews.example.org:hash:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\n";
    replace_file(&RealDisk, &users, text.as_bytes()).unwrap();
    replace_file(&RealDisk, &groups, b"staff: bob\n").unwrap();
    let ask = |name: &str, password: &str| {
        let host = ["--nntp", "news.example.org"].map(Path::new);
        let arguments = [host[0], host[1], &users, &groups];
        asked_of_passwd_file(&arguments, name, password)
    };
    assert_eq!(ask("ada", "open-sesame"), "user:ada\r\n");
    assert_eq!(ask("bob", "a b$c"), "user:bob\r\ngroups:staff\r\n");
    for (name, password) in [
        ("ada", "elsewhere"),
        ("ada", ""),
        ("eve", "x"),
        ("none", ""),
        ("nobody", ""),
        ("nobody", "open-sesame"),
        ("hash", "correct horse"),
    ] {
        assert_eq!(ask(name, password), "", "{name}");
    }
    // A file that has both forms in it is read as one of them.
    let plain = asked_of_passwd_file(&[&users], "ada", "open-sesame");
    assert_eq!(plain, "");
}

/// Who was refused since somebody behind the same address had guessed could only wait, or start the server anew.
#[test]
fn bans_are_listed_and_lifted_beside_the_server() {
    let rules = "[login]\nfailures_max = 1\n\
                 [[access]]\nname = \"any\"\nusers = [\"*\"]\nread = \"*\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let server = spool.serve();
    spool
        .piped(&["user", "add", "ada"], "correct-horse\n")
        .unwrap();
    assert_eq!(spool.text(&["access", "bans"]), "nobody is refused\n");
    let explained = |address| spool.text(&["access", "explain", address, "ada"]);
    assert!(!explained("127.0.0.1").contains("refused"));
    let lift = |whom| spool.error(&["access", "bans", "--lift", whom]);
    let nothing = lift("192.0.2.1");
    assert!(
        nothing.contains("no login of 192.0.2.1 has failed"),
        "{nothing}"
    );
    let nobody = lift("a.example");
    assert!(nobody.contains("no address and no network"), "{nobody}");
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("AUTHINFO USER ada").starts_with("381"));
    assert!(client.ask("AUTHINFO PASS wrong").starts_with("481"));
    let listed = spool.json(&["access", "bans"]);
    assert_eq!(listed["bans"][0]["network"], "127.0.0.1/32", "{listed}");
    assert_eq!(listed["bans"][0]["failures"], 1);
    let said = spool.text(&["access", "bans"]);
    assert!(
        said.starts_with("NETWORK") && said.contains("127.0.0.1/32"),
        "{said}"
    );
    // That an address is shut out `explain` did not say.
    let shut_out = explained("::ffff:127.0.0.1");
    assert!(
        shut_out.contains("is refused at present: 1 login of 127.0.0.1/32 failed, ")
            && shut_out.contains("`newsreel access bans --lift 127.0.0.1"),
        "{shut_out}"
    );
    assert!(!explained("127.0.0.2").contains("refused"));
    let json = spool.json(&["access", "explain", "127.0.0.1", "ada"]);
    assert_eq!(json["ban"]["network"], "127.0.0.1/32", "{json}");
    let refused = || {
        let stream = std::net::TcpStream::connect(server.address).unwrap();
        let mut line = String::new();
        std::io::BufReader::new(stream)
            .read_line(&mut line)
            .unwrap();
        line
    };
    assert!(refused().starts_with("400 Too many failed logins"));
    // As an address of IPv4 stands where IPv6 is spoken.
    let lifted = spool.text(&["access", "bans", "--lift", "::ffff:127.0.0.1"]);
    assert!(lifted.contains("failed logins are forgotten"), "{lifted}");
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("AUTHINFO USER ada").starts_with("381"));
    assert!(client.ask("AUTHINFO PASS correct-horse").starts_with("281"));
    server.stop();
    let none = spool.error(&["access", "bans"]);
    assert!(
        none.contains("no server is running on this spool"),
        "{none}"
    );
}

/// Users of a program were unknown, so that nobody could see what they may do.
#[test]
fn users_of_a_program_are_explained_as_they_are_said() {
    let rules = "[login]\nprogram = \"/bin/false\"\n\
                 [[access]]\nname = \"staff\"\nusers = [\"@staff\"]\nread = \"*\"\n\
                 [[access]]\nname = \"any\"\nusers = [\"*\"]\nread = \"misc.*\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    let rule = |words: &[&str]| {
        let said = spool.json(&[&["access", "explain", "192.0.2.1", "eve"], words].concat());
        said["rule"].as_str().unwrap().to_owned()
    };
    assert_eq!(rule(&[]), "any");
    assert_eq!(rule(&["--group", "staff"]), "staff");
    spool.configure(&(Spool::changed(&[]) + &rules.replace("/bin/false", "")));
    let words = ["access", "explain", "192.0.2.1", "eve", "--group", "staff"];
    let why = spool.error(&words);
    assert!(
        why.contains("--group is for users of login.program"),
        "{why}"
    );
}

/// Runs a line of the shell at a terminal, and answers what it asks; whether it ended well, and what was shown.
fn on_terminal(line: &str, asked: &[&str], answer: impl Fn(usize) -> String) -> (bool, String) {
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", line, "/dev/null"]);
    command.env("NEWSREEL_CONFIG", "").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let screen = Screen::watch(child.stdout.take().unwrap());
    let mut shown = String::new();
    for (at, asked) in asked.iter().enumerate() {
        while !shown.ends_with(asked) {
            let Some(part) = screen.more() else {
                kill_group(child.id());
                panic!("{shown}");
            };
            shown += &part;
        }
        // The terminal hides what is typed before it is asked for.
        input.write_all(answer(at).as_bytes()).unwrap();
    }
    while let Some(part) = screen.more() {
        shown += &part;
    }
    (child.wait().unwrap().success(), shown)
}

/// A ^C or a ^Z at the prompt left a terminal behind that showed nothing of what was typed from then on.
#[test]
fn a_prompt_that_is_interrupted_leaves_the_terminal_as_it_was() {
    let spool = Spool::new();
    spool.serve().stop();
    let program = newsreel().get_program().to_str().unwrap().to_owned();
    let line = format!(
        "trap : INT; {program} user add ada --config {}; echo status $?; stty -a",
        spool.config().display()
    );
    for key in ["\x03", "\x1a"] {
        let (_, shown) = on_terminal(&line, &["Password for ada: "], |_| key.to_owned());
        assert!(
            shown.contains(" echo ") && !shown.contains("-echo "),
            "{key:?}: {shown}"
        );
        assert!(
            shown.contains("interrupted; nothing was changed"),
            "{key:?}: {shown}"
        );
        assert!(shown.contains("status 1"), "{key:?}: {shown}");
    }
    assert_eq!(spool.text(&["user", "list"]), "");
}

/// At a terminal a password had to be put into a file first; now it is asked for, and not shown.
#[test]
fn at_a_terminal_the_password_is_asked_for() {
    let spool = Spool::new();
    spool.serve().stop();
    let at_terminal = |verb: &str, typed: [&str; 2]| {
        let program = newsreel().get_program().to_str().unwrap().to_owned();
        let line = format!(
            "{program} user {verb} ada --config {}",
            spool.config().display()
        );
        on_terminal(&line, &["Password for ada: ", "The same again: "], |at| {
            format!("{}\n", typed[at])
        })
    };
    let (done, shown) = at_terminal("add", ["correct-horse", "correct-house"]);
    assert!(
        !done && shown.contains("these are two passwords"),
        "{shown}"
    );
    assert_eq!(spool.text(&["user", "list"]), "");
    for (verb, password) in [("add", "correct-horse"), ("passwd", "battery-staple")] {
        let (done, shown) = at_terminal(verb, [password, password]);
        assert!(done, "{shown}");
        assert!(!shown.contains(password), "{shown}");
        let users =
            newsreel_users::Users::new(Arc::new(RealDisk), spool.path().join(newsreel_users::FILE));
        assert!(users.check("ada", password).unwrap().is_some(), "{shown}");
    }
}

#[test]
fn a_user_without_a_password_is_told_what_is_missing() {
    let spool = Spool::new();
    spool.serve().stop();
    let why = spool.piped(&["user", "add", "ada"], "").unwrap_err();
    assert!(
        why.contains("there is no password: it is the first line"),
        "{why}"
    );
}
