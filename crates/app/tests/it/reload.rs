//! SIGHUP on a running server: every key that is taken over has its effect, every other one is named and keeps its value,
//! and a file that cannot be used changes nothing.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use newsreel_host::{Disk as _, OpenMode, RealDisk, read_whole};
use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel, said};

/// How long a limit of one second may take to show; who is not ended within it is not ended by that.
const PATIENCE: Duration = Duration::from_millis(2500);

/// The servers' clocks begin here, 2026-01-01.
const CLOCK: &str = "1767225600";

/// Servers at work at the same time.
const AT_ONCE: usize = 6;

/// A server with its spool.
struct World {
    spool: Spool,
    server: Server,
}

/// A key that is taken over: what else the file says, its values, and what is seen with each.
struct Row {
    key: &'static str,
    besides: &'static [(&'static str, &'static str)],
    values: [&'static str; 2],
    probe: fn(&World) -> String,
    seen: [&'static str; 2],
}

const fn row(
    key: &'static str,
    values: [&'static str; 2],
    probe: fn(&World) -> String,
    seen: [&'static str; 2],
) -> Row {
    Row {
        key,
        besides: &[],
        values,
        probe,
        seen,
    }
}

const fn beside(besides: &'static [(&'static str, &'static str)], row: Row) -> Row {
    Row { besides, ..row }
}

/// All but `server.clients`, which needs a stranger, and `session.reply_chunk_bytes`, of which nothing is seen outside.
const ROWS: &[Row] = &[
    row(
        "logging.level",
        ["'info'", "'debug'"],
        connection_is_logged,
        ["no", "yes"],
    ),
    row(
        "logging.articles",
        ["false", "true"],
        article_is_logged,
        ["no", "yes"],
    ),
    row(
        "listen.connections_max",
        ["10000", "1"],
        second_connection,
        ["200", "400"],
    ),
    beside(
        &[("listen.loopback_unlimited", "false")],
        row(
            "listen.connections_per_address_max",
            ["256", "1"],
            second_connection,
            ["200", "400"],
        ),
    ),
    beside(
        &[("listen.loopback_unlimited", "false")],
        row(
            "listen.connections_per_s_per_address_max",
            ["0", "1"],
            twentieth_connection,
            ["200", "400"],
        ),
    ),
    beside(
        &[("listen.connections_per_address_max", "1")],
        row(
            "listen.loopback_unlimited",
            ["true", "false"],
            second_connection,
            ["200", "400"],
        ),
    ),
    row(
        "session.greeting",
        ["'old'", "'new'"],
        greeting,
        ["200 old (posting permitted)", "200 new (posting permitted)"],
    ),
    row(
        "posting.clients",
        ["'loopback'", "'nobody'"],
        greeting,
        [
            "200 newsreel ready (posting permitted)",
            "201 newsreel ready (no posting)",
        ],
    ),
    row(
        "posting.groups_max",
        ["2", "1"],
        |world| world.post("Newsgroups: misc.test,x.y", "", 1).0,
        ["240", "441"],
    ),
    row(
        "posting.followups_max",
        ["2", "1"],
        |world| world.post(TO_TEST, "Followup-To: misc.test,x.y\r\n", 1).0,
        ["240", "441"],
    ),
    row(
        "posting.age_s_max",
        ["'1d'", "'1h'"],
        |world| world.post(TO_TEST, &format!("Date: {YESTERDAY}\r\n"), 1).0,
        ["240", "441"],
    ),
    row(
        "posting.future_s_max",
        ["'1d'", "'1h'"],
        |world| {
            world
                .post(TO_TEST, "Date: 1 Jan 2026 12:00:00 +0000\r\n", 1)
                .0
        },
        ["240", "441"],
    ),
    row(
        "posting.quoted_percent_max",
        ["100", "90"],
        |world| world.post(TO_TEST, "", 50).0,
        ["240", "441"],
    ),
    row(
        "posting.from",
        ["''", "'a@b.example'"],
        |world| world.post_from("", TO_TEST, "", 1).0,
        ["441", "240"],
    ),
    row(
        "posting.organization",
        ["''", "'A site'"],
        |world| world.posted_has("\nOrganization: A site"),
        ["no", "yes"],
    ),
    row(
        "posting.message_id_host",
        ["''", "'ids.example'"],
        |world| world.posted_has("@ids.example>"),
        ["no", "yes"],
    ),
    row(
        "posting.complaints_to",
        ["''", "'abuse@b.example'"],
        |world| world.posted_has("mail-complaints-to=\"abuse@b.example\""),
        ["no", "yes"],
    ),
    row(
        "posting.tell_address",
        ["false", "true"],
        |world| world.posted_has("!.POSTED.127.0.0.1!not-for-mail"),
        ["no", "yes"],
    ),
    row(
        "posting.articles_per_minute_max",
        ["0", "1"],
        |world| (0..2).map(|_| world.post(TO_TEST, "", 1).0).collect(),
        ["240240", "240441"],
    ),
    beside(
        &[("posting.articles_per_minute_max", "60")],
        row(
            "posting.backoff_s_max",
            ["3600", "0"],
            soon_again,
            ["no", "yes"],
        ),
    ),
    row(
        "posting.articles_per_day_max",
        ["0", "1"],
        |world| (0..2).map(|_| world.post(TO_TEST, "", 1).0).collect(),
        ["240240", "240441"],
    ),
    row(
        "lists.motd",
        ["''", "'hello'"],
        |world| listed(world, "MOTD"),
        ["503", "215"],
    ),
    row(
        "lists.distributions",
        ["[]", "['local This site']"],
        |world| listed(world, "DISTRIBUTIONS"),
        ["503", "215"],
    ),
    row(
        "lists.distrib_pats",
        ["[]", "['10:local.*:local']"],
        |world| listed(world, "DISTRIB.PATS"),
        ["503", "215"],
    ),
    row(
        "lists.subscriptions",
        ["[]", "['misc.test']"],
        |world| listed(world, "SUBSCRIPTIONS"),
        ["503", "215"],
    ),
    row(
        "filter",
        [
            "[]",
            "[{ name = 'none', program = '/nonexistent', when_down = 'reject' }]",
        ],
        |world| world.post(TO_TEST, "", 1).0,
        ["240", "441"],
    ),
    row(
        "expire",
        ["[]", "[{ articles_max = 1000 }]"],
        |world| match world.spool.run(&["expire", "--dry-run"]).status.success() {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        },
        ["no", "yes"],
    ),
    row(
        "rule",
        ["[{ set = 'main' }]", "[{ set = 'main', groups = 'alt.*' }]"],
        |world| world.feed("misc.test", YESTERDAY, "", 0),
        ["239", "439"],
    ),
    row(
        "access",
        [
            "[{ name = 'all', read = '*', feed = true }]",
            "[{ name = 'some', read = 'misc.*' }]",
        ],
        |world| {
            let mut client = NewsClient::connect(world.server.address);
            let group = client.ask("GROUP alt.test");
            let check = client.ask("CHECK <a@b.example>");
            format!("{} {}", &group[..3], &check[..3])
        },
        ["211 238", "411 502"],
    ),
    row(
        "peer",
        ["[]", "[{ name = 'b.example', address = '127.0.0.1:9' }]"],
        |world| {
            // The task that sends takes it up.
            let listed = || world.spool.json(&["peer", "list"]);
            while listed()["changing"] == true {
                std::thread::sleep(Duration::from_millis(10));
            }
            let listed = listed();
            let feeds = listed["feeds"].as_array().unwrap().iter();
            feeds
                .filter(|feed| feed["kept_s"].is_null())
                .count()
                .to_string()
        },
        ["0", "1"],
    ),
    row(
        "feeds.removed_s",
        ["'1d'", "0"],
        |world| world.spool.json(&["peer", "list"])["removed_s"].to_string(),
        ["86400", "0"],
    ),
    row(
        "pull",
        [
            "[]",
            "[{ name = 'up', address = '127.0.0.1:9', interval_s = 0 }]",
        ],
        |world| {
            // The task that fetches takes it up.
            let listed = || world.spool.json(&["pull", "--list"]);
            while listed()["changing"] == true {
                std::thread::sleep(Duration::from_millis(10));
            }
            listed()["pulls"].as_array().unwrap().len().to_string()
        },
        ["0", "1"],
    ),
    beside(
        LOGINS,
        row(
            "login.clear_text",
            ["'loopback'", "'nowhere'"],
            |world| {
                NewsClient::connect(world.server.address).ask("AUTHINFO USER ada")[..3].to_owned()
            },
            ["381", "483"],
        ),
    ),
    beside(
        LOGINS,
        row(
            "login.failures_max",
            ["0", "1"],
            after_a_failed_login,
            ["201", "400"],
        ),
    ),
    beside(
        ONE_FAILURE,
        row(
            "login.ban_s",
            ["1", "600"],
            after_a_failed_login,
            ["201", "400"],
        ),
    ),
    beside(
        &[USERS],
        row(
            "login.scram",
            ["false", "true"],
            |world| code_of(world, "AUTHINFO SASL SCRAM-SHA-256"),
            ["503", "383"],
        ),
    ),
    beside(
        &[USERS],
        row(
            "login.program",
            ["''", "'/bin/echo user:ada'"],
            log_in,
            ["481", "281"],
        ),
    ),
    beside(
        &[
            USERS,
            ("login.program", "'/usr/bin/timeout 1.2 /bin/sleep 3'"),
        ],
        row("login.program_s_max", ["1", "10"], log_in, ["403", "481"]),
    ),
    row("session.idle_s", ["600", "1"], silence, ["nothing", "400"]),
    row(
        "session.bad_commands_max",
        ["100", "1"],
        unknown_command,
        ["500", "400"],
    ),
    row(
        "session.compressed_connections_max",
        ["500", "0"],
        |world| code_of(world, "COMPRESS DEFLATE"),
        ["206", "403"],
    ),
    row(
        "session.command_s",
        ["60", "1"],
        half_a_command,
        ["nothing", "400"],
    ),
    row(
        "session.article_stall_s",
        ["120", "1"],
        half_an_article,
        ["nothing", "400"],
    ),
    row(
        "session.article_s",
        ["1800", "1"],
        an_article_bit_by_bit,
        ["nothing", "400"],
    ),
    row(
        "session.write_stall_s",
        ["120", "1"],
        replies_not_taken,
        ["all", "cut"],
    ),
    row(
        "session.article_bytes_max",
        ["'4MiB'", "2000"],
        long,
        ["239", "439"],
    ),
    row(
        "session.pipeline_replies_max",
        ["4096", "1"],
        many_at_once,
        ["together", "one by one"],
    ),
    row(
        "session.pipeline_bytes_max",
        ["'16MiB'", "'64KiB'"],
        long_at_once,
        ["together", "one by one"],
    ),
    beside(
        &[
            ("session.article_bytes_max", "'256KiB'"),
            ("session.input_chunk_bytes", "'4KiB'"),
        ],
        row(
            "session.large_articles_bytes_max",
            ["'256MiB'", "'1MiB'"],
            eight_large,
            ["all", "some"],
        ),
    ),
    beside(
        &[
            ("session.article_bytes_max", "'256KiB'"),
            ("session.large_articles_bytes_max", "'1MiB'"),
        ],
        row(
            "session.input_chunk_bytes",
            ["'1MiB'", "'4KiB'"],
            eight_large,
            ["all", "some"],
        ),
    ),
    row(
        "articles.octets_max",
        ["'1MiB'", "2000"],
        long,
        ["239", "439"],
    ),
    row(
        "articles.header_octets_max",
        ["'64KiB'", "1024"],
        long_header,
        ["239", "439"],
    ),
    row(
        "articles.header_fields_max",
        ["1000", "16"],
        many_fields,
        ["239", "439"],
    ),
    row(
        "articles.age_s_max",
        ["0", "'1d'"],
        two_days_old,
        ["239", "439"],
    ),
    row(
        "articles.future_s_max",
        ["'1d'", "60"],
        an_hour_ahead,
        ["239", "439"],
    ),
    row(
        "articles.groups_max",
        ["100", "1"],
        two_groups,
        ["239", "439"],
    ),
    row(
        "articles.accept",
        ["'*'", "'misc.*'"],
        elsewhere,
        ["239", "439"],
    ),
    row(
        "articles.unknown_groups",
        ["'refuse'", "'junk'"],
        |world| world.feed("no.such", YESTERDAY, "", 0),
        ["439", "239"],
    ),
    row(
        "control.cancels",
        ["'require-auth'", "'all'"],
        cancelled_without_key,
        ["223", "430"],
    ),
    row(
        "control.rules",
        ["[]", "['newgroup:*:made.*:doit']"],
        group_is_made,
        ["no", "yes"],
    ),
    beside(
        &[
            ("control.rules", "['newgroup:*:made.*:mail']"),
            ("moderation.sendmail", "'/bin/false %s'"),
        ],
        row(
            "control.mail_to",
            ["'one@a.example'", "'other@a.example'"],
            somebody_is_told,
            ["one", "other"],
        ),
    ),
    beside(
        &[("control.nocem_groups", "'misc.test'")],
        row(
            "control.nocem",
            ["[]", "['notices@a.example:spam']"],
            notice_is_heeded,
            ["no", "yes"],
        ),
    ),
    beside(
        &[("control.nocem", "['notices@a.example:spam']")],
        row(
            "control.nocem_groups",
            ["'misc.none'", "'misc.test'"],
            notice_is_heeded,
            ["no", "yes"],
        ),
    ),
    beside(
        &[("control.cancels", "'all'")],
        row(
            "control.waiting_octets_max",
            ["1048576", "4096"],
            cancels_are_forgotten,
            ["no", "yes"],
        ),
    ),
    beside(
        &[("control.rules", "['checkgroups:*:made.*:doit']")],
        row(
            "control.checkgroups_changes_max",
            ["10", "1"],
            two_groups_are_made,
            ["yes", "no"],
        ),
    ),
];

/// Somebody can log in, and do nothing before.
const LOGINS: &[(&str, &str)] = &[USERS];

/// And they are refused after one failure.
const ONE_FAILURE: &[(&str, &str)] = &[USERS, ("login.failures_max", "1")];

const USERS: (&str, &str) = ("access", "[{ name = 'users', users = ['*'], read = '*' }]");

impl World {
    fn start(values: &[(&str, &str)]) -> Self {
        let spool = Spool::with(&configuration(values));
        let server = spool.serve_with(&["--clock", CLOCK]);
        spool.text(&[
            "group",
            "add",
            "misc.test",
            "misc.other",
            "alt.test",
            "junk",
        ]);
        Self { spool, server }
    }

    /// Has another file read; the line that says what became of it.
    fn reload(&self, config: &str) -> String {
        let told = |log: &str| -> Vec<String> {
            let ends = [
                "configuration read again",
                "the configuration cannot be used",
            ];
            let lines = log.lines();
            let told = lines.filter(|line| ends.iter().any(|end| line.contains(end)));
            told.map(str::to_owned).collect()
        };
        let before = told(&self.spool.log()).len();
        self.spool.configure(config);
        self.server.signal("HUP");
        for _ in 0..1500 {
            if let Some(line) = told(&self.spool.log()).get(before) {
                return line.clone();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("nothing became of it: {}", self.spool.log());
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        BufReader::new(stream)
    }

    /// A connection that has taken its greeting.
    fn greeted(&self) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        assert_eq!(hear(&mut stream), "200");
        stream
    }

    /// What becomes of an article.
    fn feed(&self, groups: &str, date: &str, more: &str, body: usize) -> String {
        let (id, article) = article(groups, date, more, body);
        let mut client = NewsClient::connect(self.server.address);
        client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
        code(&client.line())
    }

    /// What becomes of a post, and its id if it was taken.
    fn post(&self, groups: &str, more: &str, quoted: usize) -> (String, String) {
        self.post_from("From: a@b.example\r\n", groups, more, quoted)
    }

    fn post_from(&self, from: &str, groups: &str, more: &str, quoted: usize) -> (String, String) {
        let mut client = NewsClient::connect(self.server.address);
        assert!(client.ask("POST").starts_with("340"));
        let quoted = "> old\r\n".repeat(quoted);
        let article = format!("{from}{groups}\r\nSubject: s\r\n{more}\r\n{quoted}new\r\n.\r\n");
        client.send(article.as_bytes());
        let reply = client.line();
        let id = reply.split(' ').next_back().unwrap().to_owned();
        (code(&reply), id)
    }

    /// Whether the header block of a post has this.
    fn posted_has(&self, text: &str) -> String {
        let (_, id) = self.post(TO_TEST, "", 1);
        let mut client = NewsClient::connect(self.server.address);
        assert!(client.ask(&format!("HEAD {id}")).starts_with("221"));
        let head = client.block().join("\n");
        if head.contains(text) { "yes" } else { "no" }.to_owned()
    }

    /// Whether each of these gets a commit of its own.  On a busy machine each may come when the one before is done; where only one may
    /// be under way they never go together.
    fn commits_of(&self, articles: usize, body: usize) -> String {
        let is_over = AtomicBool::new(false);
        let is_any = std::thread::scope(|scope| {
            scope.spawn(|| self.keep_disk_busy(&is_over));
            let is_any = (0..20).any(|_| self.go_together(articles, body));
            is_over.store(true, Ordering::Relaxed);
            is_any
        });
        if is_any { "together" } else { "one by one" }.to_owned()
    }

    /// A disk with nothing else to do ends a commit before the next large article is read.
    fn keep_disk_busy(&self, is_over: &AtomicBool) {
        let path = self.spool.path().with_file_name("busy");
        let file = RealDisk.open(&path, OpenMode::CreateOrOpen).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            file.write_at(&vec![0; 4 << 20], 0).unwrap();
            file.sync_all().unwrap();
        }
        RealDisk.remove(&path).unwrap();
    }

    fn go_together(&self, articles: usize, body: usize) -> bool {
        let commits = || {
            let status = self.spool.json(&["status"]);
            status["counters"]["commits"].as_u64().unwrap()
        };
        let before = commits();
        let mut client = NewsClient::connect(self.server.address);
        let mut all = String::new();
        for _ in 0..articles {
            let (id, article) = article("misc.test", YESTERDAY, "", body);
            all.push_str(&format!("TAKETHIS {id}\r\n{article}"));
        }
        client.send(all.as_bytes());
        for _ in 0..articles {
            assert_eq!(code(&client.line()), "239");
        }
        let made = commits() - before;
        made < articles as u64
    }
}

/// Whether somebody who has posted until that was too often, and goes on trying, soon gets an article in.
fn soon_again(world: &World) -> String {
    let mut posts = (0..200).map(|_| world.post(TO_TEST, "", 1).0);
    assert!(posts.any(|code| code == "441"));
    let again = (0..25).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        world.post(TO_TEST, "", 1).0 == "240"
    });
    if again { "yes" } else { "no" }.to_owned()
}

const TO_TEST: &str = "Newsgroups: misc.test";

const YESTERDAY: &str = "Wed, 31 Dec 2025 12:00:00 +0000";

/// An article of its own, with its id.
fn article(groups: &str, date: &str, more: &str, body: usize) -> (String, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = format!("<{}@t.example>", NEXT.fetch_add(1, Ordering::Relaxed));
    let lines =
        "a line of sixty-two octets, which makes sixty-four of them all\r\n".repeat(body / 64);
    let article = format!(
        "Path: a!b\r\nFrom: a@b.example\r\nNewsgroups: {groups}\r\nSubject: s\r\nDate: {date}\r\n\
         Message-ID: {id}\r\n{more}\r\n{lines}body\r\n.\r\n"
    );
    (id, article)
}

fn code(line: &str) -> String {
    line.chars().take(3).collect()
}

/// The code of what comes within the patience, if anything does.
fn hear(stream: &mut BufReader<TcpStream>) -> String {
    hear_for(stream, PATIENCE)
}

fn hear_for(stream: &mut BufReader<TcpStream>, wait: Duration) -> String {
    stream.get_ref().set_read_timeout(Some(wait)).unwrap();
    let mut line = Vec::new();
    match stream.read_until(b'\n', &mut line) {
        Ok(0) => "the end".to_owned(),
        Ok(_) => code(&String::from_utf8_lossy(&line)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => "nothing".to_owned(),
        Err(_) => "the end".to_owned(),
    }
}

/// The usual configuration with these values, keys by their paths.
fn configuration(values: &[(&str, &str)]) -> String {
    let mut config: toml::Table = Spool::changed(&[]).parse().unwrap();
    for (key, value) in values {
        let line: toml::Table = format!("value = {value}").parse().unwrap();
        let Some((section, name)) = key.split_once('.') else {
            config.insert((*key).to_owned(), line["value"].clone());
            continue;
        };
        let section = config
            .entry(section)
            .or_insert_with(|| toml::Table::new().into());
        let section = section.as_table_mut().unwrap();
        section.insert(name.to_owned(), line["value"].clone());
    }
    config.to_string()
}

fn connection_is_logged(world: &World) -> String {
    is_logged(world, "connected connection=", || {
        world.greeted();
    })
}

fn article_is_logged(world: &World) -> String {
    is_logged(world, "newsreel::article", || {
        assert_eq!(world.feed("misc.test", YESTERDAY, "", 0), "239");
    })
}

/// Whether something is logged, a moment later.
fn is_logged(world: &World, what: &str, act: impl Fn()) -> String {
    let count = || world.spool.log().matches(what).count();
    let before = count();
    act();
    for _ in 0..20 {
        if count() > before {
            return "yes".to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    "no".to_owned()
}

fn second_connection(world: &World) -> String {
    // The one of the probe before may not have quite gone.
    let first = loop {
        let mut first = world.connect();
        if hear(&mut first) == "200" {
            break first;
        }
    };
    let second = hear(&mut world.connect());
    drop(first);
    second
}

/// Each gone before the next comes.
fn twentieth_connection(world: &World) -> String {
    (0..20).fold(String::new(), |_, _| hear(&mut world.connect()))
}

fn greeting(world: &World) -> String {
    let mut line = String::new();
    world.connect().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn listed(world: &World, keyword: &str) -> String {
    code_of(world, &format!("LIST {keyword}"))
}

/// What a new connection gets for its first command.
fn code_of(world: &World, command: &str) -> String {
    let said = NewsClient::connect(world.server.address).ask(command);
    said.get(..3).unwrap_or_default().to_owned()
}

/// What a login gets.
fn log_in(world: &World) -> String {
    let mut client = NewsClient::connect(world.server.address);
    assert_eq!(&client.ask("AUTHINFO USER ada")[..3], "381");
    client.ask("AUTHINFO PASS wrong")[..3].to_owned()
}

/// The greeting a moment after a login has failed.
fn after_a_failed_login(world: &World) -> String {
    let greeted = || greeting(world)[..3].to_owned();
    std::thread::sleep(Duration::from_millis(1200));
    if greeted() == "400" {
        return "400".to_owned();
    }
    let mut client = NewsClient::connect(world.server.address);
    assert_eq!(&client.ask("AUTHINFO USER ada")[..3], "381");
    assert_eq!(&client.ask("AUTHINFO PASS wrong")[..3], "481");
    std::thread::sleep(Duration::from_millis(1200));
    greeted()
}

fn silence(world: &World) -> String {
    hear(&mut world.greeted())
}

fn unknown_command(world: &World) -> String {
    let mut stream = world.greeted();
    stream.get_mut().write_all(b"FOO\r\n").unwrap();
    hear(&mut stream)
}

fn half_a_command(world: &World) -> String {
    let mut stream = world.greeted();
    stream.get_mut().write_all(b"DA").unwrap();
    hear(&mut stream)
}

/// A connection that has begun an article.
fn begun(world: &World, octets: usize) -> BufReader<TcpStream> {
    let mut stream = world.greeted();
    let (id, article) = article("misc.test", YESTERDAY, "", octets);
    let offer = format!("IHAVE {id}\r\n");
    stream.get_mut().write_all(offer.as_bytes()).unwrap();
    assert_eq!(hear(&mut stream), "335");
    let half = article.strip_suffix("body\r\n.\r\n").unwrap();
    // Whom the server ends meanwhile sees it when he listens.
    let _ = stream.get_mut().write_all(half.as_bytes());
    stream
}

fn half_an_article(world: &World) -> String {
    hear(&mut begun(world, 0))
}

fn an_article_bit_by_bit(world: &World) -> String {
    const BIT: Duration = Duration::from_millis(100);
    let mut stream = begun(world, 0);
    for _ in 0..PATIENCE.as_millis() / BIT.as_millis() {
        let heard = hear_for(&mut stream, BIT);
        if heard != "nothing" {
            return heard;
        }
        // Who is ended meanwhile hears it next.
        let _ = stream.get_mut().write_all(b"a line\r\n");
    }
    "nothing".to_owned()
}

fn replies_not_taken(world: &World) -> String {
    const TIMES: usize = 60;
    let (id, article) = article("misc.test", YESTERDAY, "", 900 << 10);
    let mut client = NewsClient::connect(world.server.address);
    client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
    assert_eq!(code(&client.line()), "239");
    let mut stream = world.greeted();
    let asked = format!("ARTICLE {id}\r\n").repeat(TIMES);
    stream.get_mut().write_all(asked.as_bytes()).unwrap();
    std::thread::sleep(PATIENCE);
    let wanted = TIMES * article.len();
    stream.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut got, mut part) = (0, vec![0; 1 << 20]);
    while got < wanted {
        match stream.read(&mut part) {
            Ok(len) if len > 0 => got += len,
            _ => return "cut".to_owned(),
        }
    }
    "all".to_owned()
}

fn long(world: &World) -> String {
    world.feed("misc.test", YESTERDAY, "", 3000)
}

fn many_at_once(world: &World) -> String {
    world.commits_of(100, 0)
}

fn long_at_once(world: &World) -> String {
    world.commits_of(20, 70 << 10)
}

fn eight_large(world: &World) -> String {
    let mut streams: Vec<_> = (0..8).map(|_| begun(world, 200 << 10)).collect();
    std::thread::sleep(PATIENCE);
    let heard = streams
        .iter_mut()
        .map(|stream| hear_for(stream, Duration::from_millis(10)));
    if heard.into_iter().all(|heard| heard == "nothing") {
        "all"
    } else {
        "some"
    }
    .to_owned()
}

fn long_header(world: &World) -> String {
    let field = format!("X-Long: {}\r\n", "x".repeat(900));
    world.feed("misc.test", YESTERDAY, &field.repeat(2), 0)
}

fn many_fields(world: &World) -> String {
    world.feed("misc.test", YESTERDAY, &"X-Many: x\r\n".repeat(20), 0)
}

fn two_days_old(world: &World) -> String {
    world.feed("misc.test", "Tue, 30 Dec 2025 00:00:00 +0000", "", 0)
}

fn an_hour_ahead(world: &World) -> String {
    world.feed("misc.test", "Thu, 01 Jan 2026 01:00:00 +0000", "", 0)
}

fn two_groups(world: &World) -> String {
    world.feed("misc.test,misc.other", YESTERDAY, "", 0)
}

fn elsewhere(world: &World) -> String {
    world.feed("alt.test", YESTERDAY, "", 0)
}

/// A group of a name that was not there before.
fn new_group() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("made.g{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn group_is_made(world: &World) -> String {
    let name = new_group();
    let control = format!("Approved: a@b.example\r\nControl: newgroup {name}\r\n");
    assert_eq!(world.feed("misc.test", YESTERDAY, &control, 0), "239");
    let is_there = world.spool.run(&["group", "show", &name]).status.success();
    if is_there { "yes" } else { "no" }.to_owned()
}

/// Whether a NoCeM notice in misc.test does something.
fn notice_is_heeded(world: &World) -> String {
    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/openpgp");
    let key = format!("{FIXTURES}/nocem.asc");
    world.spool.text(&["control", "keys", "import", &key]);
    let notice = read_whole(
        &RealDisk,
        Path::new(&format!("{FIXTURES}/nocem.txt")),
        1 << 16,
    );
    let notice = String::from_utf8(notice.unwrap())
        .unwrap()
        .replace('\n', "\r\n");
    let heeded = || {
        let log = world.spool.log();
        log.matches("a NoCeM notice is heeded").count()
    };
    let before = heeded();
    let (id, article) = article("misc.test", YESTERDAY, "", 0);
    let (head, _) = article.split_once("\r\n\r\n").unwrap();
    let mut client = NewsClient::connect(world.server.address);
    client.send(format!("TAKETHIS {id}\r\n{head}\r\n\r\n{notice}.\r\n").as_bytes());
    assert_eq!(code(&client.line()), "239");
    if soon(|| heeded() > before) {
        "yes"
    } else {
        "no"
    }
    .to_owned()
}

/// Whether it comes to be so: what is due behind a message is done when the message has its place.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..60).any(|_| {
        let is_so = is_so();
        if !is_so {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_so
    })
}

/// Whether there is no room for a hundred and fifty cancels that wait.
fn cancels_are_forgotten(world: &World) -> String {
    let forgotten = || {
        let status = world.spool.json(&["status"]);
        status["counters"]["forgotten"].as_u64().unwrap()
    };
    let (before, mut client) = (forgotten(), NewsClient::connect(world.server.address));
    for n in 0..150 {
        let control = format!("Control: cancel <absent{n}@t.example>\r\n");
        let (id, article) = article("misc.test", YESTERDAY, &control, 1);
        client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
        assert_eq!(code(&client.line()), "239");
    }
    if forgotten() > before { "yes" } else { "no" }.to_owned()
}

/// Who the newest mail about a control message is for; nothing sends it here.
fn somebody_is_told(world: &World) -> String {
    let folder = world.spool.path().join("notices");
    let mails = || RealDisk.list(&folder).unwrap_or_default();
    let before: Vec<_> = mails().into_iter().map(|entry| entry.name).collect();
    let control = format!(
        "Approved: a@b.example\r\nControl: newgroup {}\r\n",
        new_group()
    );
    assert_eq!(world.feed("misc.test", YESTERDAY, &control, 0), "239");
    let new = || {
        let mut names = mails().into_iter().map(|entry| entry.name);
        names.find(|name| !before.contains(name) && !name.ends_with(".new"))
    };
    assert!(soon(|| new().is_some()), "{}", world.spool.log());
    let path = folder.join(new().unwrap());
    let mail =
        String::from_utf8_lossy(&read_whole(&RealDisk, &path, 1 << 16).unwrap()).into_owned();
    let (_, to) = mail.split_once("\r\nTo: ").unwrap();
    to.split('@').next().unwrap_or_default().to_owned()
}

fn two_groups_are_made(world: &World) -> String {
    let top = new_group();
    let one = format!("{top}.one");
    let control = format!("Approved: a@b.example\r\nControl: checkgroups {top}\r\n");
    let list = format!("{control}\r\n{one}\tOne\r\n{top}.other\tOther\r\n");
    assert_eq!(world.feed("misc.test", YESTERDAY, &list, 0), "239");
    let is_there = world.spool.run(&["group", "show", &one]).status.success();
    if is_there { "yes" } else { "no" }.to_owned()
}

fn cancelled_without_key(world: &World) -> String {
    let (id, article) = article("misc.test", YESTERDAY, "", 1);
    let mut client = NewsClient::connect(world.server.address);
    client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
    assert_eq!(code(&client.line()), "239");
    let control = format!("Control: cancel {id}\r\n");
    assert_eq!(world.feed("misc.test", YESTERDAY, &control, 1), "239");
    code(&client.ask(&format!("STAT {id}")))
}

/// One key: its old value, SIGHUP, its new one, and back.
fn check(row: &Row) {
    let values = |value| [row.besides, &[(row.key, value)][..]].concat();
    let world = World::start(&values(row.values[0]));
    let probe = |when: &str, seen: &str| {
        let found = (row.probe)(&world);
        assert_eq!(found, seen, "{} {when}\n{}", row.key, world.spool.log());
    };
    probe("at first", row.seen[0]);
    for (when, value, seen) in [
        ("changed", row.values[1], row.seen[1]),
        ("changed back", row.values[0], row.seen[0]),
    ] {
        let told = world.reload(&configuration(&values(value)));
        let (changed, restart) = told.split_once(" needs_restart=").unwrap_or_default();
        assert!(changed.contains(&format!("\"{}\"", row.key)), "{told}");
        // What follows from a key may be another one, that waits.
        assert!(!restart.contains(row.key), "{told}");
        probe(when, seen);
    }
    world.server.stop();
}

#[test]
fn every_key_that_is_taken_over_has_its_effect() {
    for some in ROWS.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let at_work = some.iter().map(|row| scope.spawn(move || check(row)));
            for one in at_work.collect::<Vec<_>>() {
                one.join().unwrap();
            }
        });
    }
}

/// What a key is, of every key of the sections, and of the lists.
fn keys() -> Vec<Value> {
    let spool = Spool::new();
    let shown = spool.json(&["config", "show"]);
    let mut keys = Vec::new();
    for (section, values) in shown.as_object().unwrap() {
        let paths = match values {
            Value::Object(values) => values
                .keys()
                .map(|key| format!("{section}.{key}"))
                .collect(),
            _ => vec![section.clone()],
        };
        for path in paths {
            keys.push(spool.json(&["config", "explain", &path]));
        }
    }
    keys
}

#[test]
fn every_key_that_is_said_to_be_taken_over_is_tried() {
    let live = keys().into_iter().filter(|key| key["live"] == true);
    let live: BTreeSet<String> = live
        .map(|key| key["key"].as_str().unwrap().to_owned())
        .collect();
    // A caching server takes this one over: see `caching.rs`.
    let tried = ROWS.iter().map(|row| row.key).chain(["cache.policy"]);
    let tried = tried.chain(["server.clients", "session.reply_chunk_bytes"]);
    assert_eq!(live, tried.map(str::to_owned).collect());
}

/// Another value that the file may have.
fn another(spool: &Spool, key: &Value) -> String {
    let path = key["key"].as_str().unwrap();
    let now = &key["now"];
    let candidates: Vec<String> = match now {
        Value::Bool(flag) => vec![(!flag).to_string()],
        Value::Number(number) if number.is_i64() => {
            let number = number.as_i64().unwrap();
            let limits = key["limits"].as_array().unwrap();
            let ends = limits.iter().filter(|end| *end != now);
            let near = [number * 2, number / 2, number + 1];
            let near = near.iter().filter(|near| **near != number);
            near.map(ToString::to_string)
                .chain(ends.map(ToString::to_string))
                .collect()
        }
        Value::Number(number) => vec![(number.as_f64().unwrap() / 2.0).to_string()],
        Value::String(text) => {
            let words = key["choices"].as_array().unwrap().iter();
            let words = words.filter(|word| *word != now).map(ToString::to_string);
            let others = ["other.example", "a@other.example", "127.0.0.9:25"];
            let others = others.map(|other| format!("\"{text}{other}\""));
            words.chain(others).collect()
        }
        Value::Array(_) if path == "listen.addresses" => vec!["[\"127.0.0.2:0\"]".to_owned()],
        Value::Array(_) if path == "server.metrics" => vec!["[\"127.0.0.2:0\"]".to_owned()],
        Value::Array(_) if path == "cache.forward" => vec!["[\"XPATH\"]".to_owned()],
        Value::Array(_) if path == "moderation.moderators" => vec!["[\"*:a@b\"]".to_owned()],
        other => panic!("{path} is {other}"),
    };
    let fits = |value: &String| {
        spool.configure(&configuration(&[(path, value)]));
        spool.run(&["config", "show"]).status.success()
    };
    let found = candidates.into_iter().find(fits);
    found.unwrap_or_else(|| panic!("{path} has no other value"))
}

/// It is named, the server goes on as it was, and nothing is left over when the file is as before.
#[test]
fn every_key_that_needs_a_restart_is_named_and_keeps_its_value() {
    let world = World::start(&[]);
    let scratch = Spool::new();
    let facts = || {
        let mut client = NewsClient::connect(world.server.address);
        let at = world.spool.path().display().to_string();
        let status = world.spool.json(&["status", "--spool", &at]);
        let spool = world.spool.json(&["store", "inspect", "--spool", &at]);
        let log = status["log"]["octets"].clone();
        let at = (
            status["server"]["listening"].clone(),
            status["spool"].clone(),
        );
        let group = client.ask("GROUP misc.test");
        (at, log, spool, group)
    };
    let before = facts();
    let lists = ["buffer", "set", "rule", "upstream", "censor"];
    for key in keys().iter().filter(|key| key["live"] == false) {
        let path = key["key"].as_str().unwrap();
        let config = match path {
            "buffer" => Spool::changed(&[("8MiB", "16MiB")]),
            "set" => Spool::changed(&[]) + "[[set]]\nname = \"other\"\nbuffers = [\"A\", \"B\"]\n",
            "rule" => Spool::changed(&[]) + "[[rule]]\ngroups = \"misc.*\"\nset = \"main\"\n",
            "upstream" => Spool::changed(&[]) + "[[upstream]]\naddress = \"news.example\"\n",
            "censor" => Spool::changed(&[]) + "[[censor]]\nfield = \"From\"\nmatches = \"*x*\"\n",
            "listen.tls_addresses" => configuration(&[
                (path, "['127.0.0.2:0']"),
                ("tls.certificate", "'cert.pem'"),
                ("tls.key", "'key.pem'"),
            ]),
            // Neither is of use without the other.
            "tls.certificate" | "tls.key" => {
                configuration(&[("tls.certificate", "'cert.pem'"), ("tls.key", "'key.pem'")])
            }
            "tls.more" | "tls.clients" => configuration(&[
                (
                    path,
                    if path == "tls.more" {
                        "['other.pem']"
                    } else {
                        "'ca.pem'"
                    },
                ),
                ("tls.certificate", "'cert.pem'"),
                ("tls.key", "'key.pem'"),
            ]),
            _ => configuration(&[(path, &another(&scratch, key))]),
        };
        let told = world.reload(&config);
        let (changed, restart) = told.split_once(" needs_restart=").unwrap_or_default();
        assert!(restart.contains(&format!("\"{path}\"")), "{path}: {told}");
        assert!(!changed.contains(&format!("\"{path}\"")), "{path}: {told}");
        let log = world.spool.log();
        let warned = log
            .lines()
            .rev()
            .find(|line| line.contains("after a restart only"));
        assert!(
            warned.is_some_and(|line| line.contains("WARN") && line.contains(path)),
            "{log}"
        );
        assert_eq!(facts(), before, "{path}");
    }
    assert!(
        lists
            .iter()
            .all(|list| keys().iter().any(|key| key["key"] == *list))
    );
    let told = world.reload(&configuration(&[]));
    assert!(told.contains("needs_restart=[]"), "{told}");
    assert_eq!(world.feed("misc.test", YESTERDAY, "", 0), "239");
    world.server.stop();
}

/// Sound keys of a file with a mistake are not taken over either.
/// `index.remember_s` had been named to somebody who had written `articles.age_s_max`.
#[test]
fn a_key_that_nobody_wrote_is_named_with_the_one_it_follows_from() {
    let world = World::start(&[("articles.age_s_max", "'5d'")]);
    for (key, value, changed, restart) in [
        (
            "articles.age_s_max",
            "'30d'",
            "\"articles.age_s_max\"",
            "\"index.remember_s (follows from articles.age_s_max)\"",
        ),
        (
            "session.article_bytes_max",
            "'32KiB'",
            "\"session.article_bytes_max\"",
            "",
        ),
    ] {
        let told = world.reload(&configuration(&[(key, value)]));
        assert!(told.contains(changed), "{told}");
        assert!(
            told.contains(&format!("needs_restart=[{restart}]")),
            "{told}"
        );
    }
    let octets = "\"articles.header_octets_max (follows from session.article_bytes_max)\"";
    let log = world.spool.log();
    assert!(log.contains(octets), "{log}");
    world.server.stop();
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing_and_is_told_with_its_lines() {
    let world = World::start(&[("session.greeting", "'old'")]);
    for (broken, expected) in [
        (
            "[session]\ngreeting = \"new\"\nidle_s = 0\n[listen]\nbacklogg = 3\n",
            &[
                "newsreel.toml:3:10: session.idle_s = 0 is out of its limits; give 1s to 7d",
                "newsreel.toml:5:1: unknown key `listen.backlogg`; did you mean `backlog`?",
                "2 problems in ",
            ][..],
        ),
        (
            "[session]\ngreeting = \"new\"\n[[rule\n",
            &["newsreel.toml:3:"],
        ),
        (
            "[session]\ngreeting = \"new\"\n[articles]\nage_s_max = \"30d\"\n[index]\nremember_s = \"7d\"\n",
            &["newsreel.toml:6:14: index.remember_s = 7d is less than articles.age_s_max"],
        ),
    ] {
        let told = world.reload(broken);
        assert!(
            told.contains("ERROR") && told.contains("goes on with the old one"),
            "{told}"
        );
        for expected in expected {
            assert!(told.contains(expected), "{told}");
        }
        assert_eq!(greeting(&world), "200 old (posting permitted)");
        assert_eq!(world.feed("misc.test", YESTERDAY, "", 0), "239");
    }
    let told = world.reload(&configuration(&[("session.greeting", "'new'")]));
    assert!(
        told.contains("changed=[\"session.greeting\"] needs_restart=[]"),
        "{told}"
    );
    assert_eq!(greeting(&world), "200 new (posting permitted)");
    world.server.stop();
}

/// What a server took over by SIGHUP was known to nobody after it: an offline `expire` let go by the rules from before.
#[test]
fn offline_commands_know_what_was_taken_over() {
    let few = "\n[[expire]]\ngroups = \"*\"\narticles_max = 2\n";
    let rules = |max: u32, text: &str| text.to_owned() + &few.replace("= 2", &format!("= {max}"));
    let world = World::start(&[]);
    let told = world.reload(&rules(2, &configuration(&[])));
    assert!(told.contains("changed=[\"expire\"]"), "{told}");
    let (live, fixed) = (("session.greeting", "'new'"), ("index.remember_s", "'99d'"));
    let told = world.reload(&rules(1000, &configuration(&[live, fixed])));
    assert!(
        told.contains("needs_restart=[\"index.remember_s\"]"),
        "{told}"
    );
    let World { spool, server, .. } = world;
    server.stop();
    let last = read_whole(&RealDisk, &spool.path().join("last-config.toml"), 1 << 20).unwrap();
    let last: toml::Table = String::from_utf8(last).unwrap().parse().unwrap();
    assert_eq!(last["expire"][0]["articles_max"].as_integer(), Some(1000));
    assert_eq!(last["session"]["greeting"].as_str(), Some("new"));
    assert_ne!(last["index"]["remember_s"].as_integer(), Some(99 * 86_400));
}

/// A file that an editor had just emptied to write it anew was taken for one that wants all the defaults.
#[test]
fn an_empty_file_is_not_taken_for_one_of_defaults() {
    let world = World::start(&[]);
    for nothing in ["", "\n \t\r\n", "\u{feff}", "\u{feff}\n"] {
        let told = world.reload(nothing);
        assert!(told.contains("the configuration cannot be used"), "{told}");
        assert!(
            told.contains("is empty, as while it is being written"),
            "{nothing:?}: {told}"
        );
    }
    let told = world.reload(&configuration(&[]));
    assert!(told.contains("configuration read again"), "{told}");
    world.server.stop();
}

/// What a stranger hears in place of a greeting; a network of the test's own has the address that is not loopback.
#[test]
fn strangers_are_refused_until_a_reload_lets_them_in() {
    const ADDRESS: &str = "192.0.2.1";
    let spool = Spool::with(&configuration(&[(
        "listen.addresses",
        "['192.0.2.1:1119']",
    )]));
    let inside = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
        let network = "ip link set lo up && ip address add 192.0.2.1/32 dev lo && exec \"$@\"";
        command.arg(network).arg("sh").args(program);
        command
    };
    if !inside(&["nsenter", "--version"])
        .output()
        .is_ok_and(|done| done.status.success())
    {
        println!("skipped: no network of our own can be had here");
        return;
    }
    let program = newsreel().get_program().to_str().unwrap().to_owned();
    let config = spool.config().display().to_string();
    let server = Server::start(
        inside(&[&program, "serve", "--config", &config]),
        spool.folder().join("log.txt"),
        |child| {
            let status = spool.run(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&status.stdout).ok()?;
            (status["server"]["pid"] == child.id()).then_some(status)
        },
    );
    let world = World { spool, server };
    let greeting = || {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--net", "--preserve-credentials", "--target"]);
        command.arg(world.server.pid().to_string());
        let script = format!("exec 3<>/dev/tcp/{ADDRESS}/1119 && head -n 1 <&3");
        said(command.args(["bash", "-c", &script]).output().unwrap()).unwrap()
    };
    assert_eq!(greeting(), "502 Access denied\r\n");
    for (clients, expected) in [
        ("'all'", "201 newsreel ready (no posting)\r\n"),
        ("'loopback'", "502 Access denied\r\n"),
    ] {
        let values = [
            ("listen.addresses", "['192.0.2.1:1119']"),
            ("server.clients", clients),
        ];
        let told = world.reload(&configuration(&values));
        assert!(
            told.contains("changed=[\"server.clients\"] needs_restart=[]"),
            "{told}"
        );
        assert_eq!(greeting(), expected);
    }
    world.server.stop();
}
