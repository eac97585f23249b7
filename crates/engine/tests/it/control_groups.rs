//! newgroup, rmgroup and checkgroups: done where a rule lets them, else told and done when approved; nothing by what is malformed.

use std::sync::{Arc, Mutex};

use newsreel_engine::{ArticleRef, ControlReport, GroupAsked, GroupSpec};
use newsreel_host::disk::FaultyDisk;
use newsreel_host::{Disk, MemoryDisk};
use newsreel_service::posting::{Account, Mail, MailDrop, MailRefused, Mailed};
use newsreel_service::{OfferedId, Outcome, Reject};

use crate::world::{World, config, open_on};

pub(crate) const ADMIN: &str = "admin@a.example";

pub(crate) type Article = (String, Vec<u8>);

/// A control message that lacks nothing.
pub(crate) fn message(name: &str, from: &str, control: &str, body: &str) -> Article {
    let id = format!("<{name}@t.example>");
    let body = body.replace('\n', "\r\n");
    let text = format!(
        "Path: feeder.example!not-for-mail\r\nFrom: Admin <{from}>\r\nNewsgroups: alt.new\r\nSubject: cmsg {control}\r\n\
         Date: Tue, 14 Nov 2023 22:00:00 +0000\r\nMessage-ID: {id}\r\nApproved: {from}\r\nControl: {control}\r\n\r\n{body}.\r\n"
    );
    (id, text.into_bytes())
}

fn without(article: Article, line: &str) -> Article {
    let text = String::from_utf8(article.1).unwrap();
    assert!(text.contains(line), "{line}");
    (article.0, text.replace(line, "").into_bytes())
}

fn world_on(disk: Arc<dyn Disk>, rules: &[&str]) -> World {
    let mut config = config(4 << 20);
    config.control.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let world = World::on(disk, config);
    let groups = ["control", "control.newgroup", "control.checkgroups"];
    let groups = groups.map(GroupSpec::new).to_vec();
    world.engine.add_groups(groups).unwrap();
    world
}

fn world_of(rules: &[&str]) -> World {
    world_on(Arc::new(MemoryDisk::new()), rules)
}

/// Groups as LIST shows them, those of control messages apart: `name status description`.
pub(crate) fn groups(world: &World) -> Vec<String> {
    let groups = world.engine.groups().into_iter();
    let groups = groups.filter(|group| !group.name.starts_with("control"));
    groups
        .map(|group| {
            let line = format!("{} {} {}", group.name, group.status, group.description);
            line.trim_end().to_owned()
        })
        .collect()
}

const AT_FIRST: [&str; 2] = ["misc.other y", "misc.test y"];

pub(crate) async fn send(world: &World, articles: &[Article]) {
    let taken = vec![Outcome::Accepted; articles.len()];
    assert_eq!(world.send(articles).await, taken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rule_lets_is_done_with_the_message() {
    let memory = MemoryDisk::new();
    let world = world_on(
        Arc::new(memory.clone()),
        &["all:*:*:drop", "all:admin@a.example:alt.*:doit"],
    );
    let text = "alt.new is new.\n\nFor your newsgroups file:\nalt.new\tWhat is new. (Moderated)\n";
    send(
        &world,
        &[message("1", ADMIN, "newgroup alt.new moderated", text)],
    )
    .await;
    let made = [
        "alt.new m What is new. (Moderated)",
        AT_FIRST[0],
        AT_FIRST[1],
    ];
    assert_eq!(groups(&world), made);
    let group = world.engine.group("alt.new").unwrap();
    assert_eq!(group.creator, ADMIN);
    assert_eq!(world.high("control.newgroup"), 1);
    // A crash leaves both.
    let crashed = Arc::new(memory.crash_losing_all());
    let after = open_on(crashed, &world.config, &world.clock);
    assert_eq!(groups(&after), made);
    assert!(after.by_id("<1@t.example>").await.is_some());
    drop(after);
    // Again: nothing; otherwise: changed; of another: nothing.
    let again = message("2", ADMIN, "newgroup alt.new moderated", text);
    let other = message("3", "other@a.example", "newgroup alt.more", text);
    let elsewhere = message("4", ADMIN, "newgroup misc.more", text);
    send(&world, &[again, other, elsewhere]).await;
    assert_eq!(groups(&world), made);
    let text = "For your newsgroups file:\nalt.new\tWhat is newer.\n";
    send(&world, &[message("5", ADMIN, "newgroup alt.new", text)]).await;
    assert_eq!(groups(&world)[0], "alt.new y What is newer.");
    send(&world, &[message("6", ADMIN, "rmgroup alt.new", "")]).await;
    assert_eq!(groups(&world), AT_FIRST);
    assert_eq!(world.high("control"), 1, "there is no control.rmgroup");
    assert_eq!(world.engine.control_waiting().unwrap(), []);
    assert_eq!(world.problems(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_malformed_changes_nothing() {
    let world = world_of(&["all:*:*:doit"]);
    let say = |name: &str, control: &str| message(name, ADMIN, control, "");
    let sent = [
        without(
            say("1", "newgroup alt.new"),
            "Approved: admin@a.example\r\n",
        ),
        say("2", "newgroup"),
        say("3", "newgroup alt.new moderated moderated"),
        say("4", "newgroup alt..new"),
        say("5", "newgroup control.new"),
        say("6", "newgroup to.here"),
        say("7", "rmgroup"),
        say("8", "rmgroup misc.test misc.other"),
        say("9", "rmgroup control"),
        say("10", "rmgroup no.such"),
        say("11", "checkgroups"),
        message("12", ADMIN, "checkgroups alt", "alt.new\tA\nalt.new\tB\n"),
        message("13", ADMIN, "checkgroups alt..x", "alt.new\tA\n"),
        message("14", ADMIN, "checkgroups", "control.x\tA\n"),
        message("15", ADMIN, "sendsys alt.new", ""),
        message("16", ADMIN, "version", ""),
    ];
    let before: Vec<_> = world
        .engine
        .groups()
        .into_iter()
        .map(|it| it.name)
        .collect();
    send(&world, &sent[..14]).await;
    let outcomes = world.send(&sent[14..]).await;
    assert!(
        !outcomes.contains(&Outcome::Accepted),
        "no group of theirs is here"
    );
    let after: Vec<_> = world
        .engine
        .groups()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(before, after);
    for n in 1..=14 {
        let which = ArticleRef::Id(format!("<{n}@t.example>"));
        let report = world.engine.control_message(&which).unwrap().unwrap();
        assert_eq!(report.asks, [], "{n}");
        assert_eq!(report.problem.is_none(), n == 10, "{n}: {report:?}");
        assert_eq!(world.engine.control_approve(&which).is_ok(), n == 10);
    }
    assert_eq!(groups(&world), AT_FIRST);
}

/// What an administrator has set stays: a message opens no group that is closed here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_here_stays() {
    let world = world_of(&["all:*:*:doit"]);
    let of = |name: &str, status: &str| GroupSpec {
        status: status.to_owned(),
        ..GroupSpec::new(name)
    };
    let set = [
        of("alt.n", "n"),
        of("alt.x", "x"),
        of("alt.a", "=misc.test"),
    ];
    world.engine.add_groups(set.to_vec()).unwrap();
    let body = |name: &str| format!("For your newsgroups file:\n{name}\tNew.\n");
    let sent = ["alt.n", "alt.x", "alt.a"].map(|name| {
        let control = format!("newgroup {name} moderated");
        message(name, ADMIN, &control, &body(name))
    });
    send(&world, &sent).await;
    let expected = ["alt.a =misc.test New.", "alt.n n New.", "alt.x x New."];
    assert_eq!(groups(&world)[..3], expected);
}

fn asked(report: &ControlReport) -> Vec<String> {
    let line = |asked: &GroupAsked| match asked {
        GroupAsked::Make { name, status, .. } => format!("make {name} {status}"),
        GroupAsked::Set { name, .. } => format!("set {name}"),
        GroupAsked::Remove { name } => format!("remove {name}"),
    };
    let asks = report.asks.iter();
    asks.map(|it| format!("{} {}", line(&it.asked), it.rule))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_rule_lets_waits_for_approval() {
    let world = world_of(&["newgroup:*:alt.bad.*:drop"]);
    let sent = [
        message("1", ADMIN, "newgroup alt.new", ""),
        message("2", ADMIN, "rmgroup misc.test", ""),
        message("3", ADMIN, "newgroup alt.bad.new", ""),
    ];
    send(&world, &sent).await;
    assert_eq!(groups(&world), AT_FIRST);
    let waiting = world.engine.control_waiting().unwrap();
    let said: Vec<_> = waiting
        .iter()
        .map(|it| (it.message_id.as_str(), asked(it)))
        .collect();
    assert_eq!(
        said,
        [
            ("<1@t.example>", vec!["make alt.new y log".to_owned()]),
            ("<2@t.example>", vec!["remove misc.test log".to_owned()]),
        ]
    );
    for which in ["<1@t.example>", "control:1"] {
        let which: ArticleRef = which.parse().unwrap();
        let done = world.engine.control_approve(&which).unwrap();
        assert_eq!(done.asks.len(), 1);
        let again = world.engine.control_approve(&which).unwrap();
        assert_eq!(again.asks, [], "done already");
    }
    assert_eq!(groups(&world), ["alt.new y", "misc.other y"]);
    assert_eq!(world.engine.control_waiting().unwrap(), []);
    let dropped: ArticleRef = "<3@t.example>".parse().unwrap();
    let dropped = world.engine.control_message(&dropped).unwrap().unwrap();
    assert_eq!(asked(&dropped), ["make alt.bad.new y drop"]);
    let none: ArticleRef = "<none@t.example>".parse().unwrap();
    assert_eq!(world.engine.control_message(&none).unwrap(), None);
    assert!(world.engine.control_approve(&none).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkgroups_makes_a_hierarchy_as_it_is_listed() {
    let mut config = config(4 << 20);
    config.control.rules = vec!["checkgroups:admin@a.example:alt.*:doit".to_owned()];
    config.control.checkgroups_changes_max = 4;
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let there = [
        "alt.keep",
        "alt.old",
        "alt.sub.old",
        "alternative.x",
        "control",
    ];
    world
        .engine
        .add_groups(there.map(GroupSpec::new).to_vec())
        .unwrap();
    let list = "This is the list.\nalt.keep\t\tKept.\nalt.new\tNew. (Moderated)\n";
    let check = |name: &str, arguments: &str, list: &str| {
        message(name, ADMIN, &format!("checkgroups {arguments}"), list)
    };
    // alt.sub is left out of it, and so is what only begins like it.
    send(&world, &[check("1", "alt !alt.sub #1", list)]).await;
    let made = [
        "alt.keep y Kept.",
        "alt.new m New. (Moderated)",
        "alt.sub.old y",
        "alternative.x y",
        AT_FIRST[0],
        AT_FIRST[1],
    ];
    assert_eq!(groups(&world), made);
    // Too much at once waits.
    let many: String = (0..5).map(|n| format!("alt.many.g{n}\tMany.\n")).collect();
    let all = format!("{list}alt.sub.old\tOld.\n{many}");
    send(&world, &[check("2", "#2", &all)]).await;
    assert_eq!(groups(&world), made);
    let waiting = world.engine.control_waiting().unwrap();
    assert_eq!((waiting[0].asks.len(), waiting[0].more), (3, 3));
    let which: ArticleRef = "<2@t.example>".parse().unwrap();
    world.engine.control_approve(&which).unwrap();
    assert_eq!(groups(&world).len(), made.len() + 5);
    assert!(groups(&world).contains(&"alt.sub.old y Old.".to_owned()));
    assert_eq!(world.engine.control_waiting().unwrap(), []);
}

/// A list that was heeded was shown as waiting when a newer one had left out a group of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_list_settles_what_it_leaves_out() {
    let world = world_of(&["all:*:*:doit"]);
    let check = |name: &str, list: &str| message(name, ADMIN, "checkgroups alt", list);
    let both = "alt.one\tOne.\nalt.two\tTwo.\n";
    send(&world, &[check("1", both)]).await;
    send(&world, &[check("2", "alt.two\tTwo.\n")]).await;
    let made = groups(&world);
    assert!(
        !made.iter().any(|line| line.starts_with("alt.one")),
        "{made:?}"
    );
    assert_eq!(world.engine.control_waiting().unwrap(), []);
}

/// A commit that fails takes its groups with it: the peer sends the message again, and then they are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_commit_failed_is_heeded_when_it_comes_again() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = world_on(Arc::new(faulty.clone()), &["all:*:*:doit"]);
    let made = |nth: usize| {
        let control = format!("newgroup alt.n{nth}");
        message(&nth.to_string(), ADMIN, &control, "")
    };
    let sent = |nth| vec![made(nth)];
    let (nth, _) = world.until_a_commit_fails(&faulty, sent).await;
    let group = format!("alt.n{nth} y");
    assert!(!groups(&world).contains(&group));
    let again = world.send_until_answered(&made(nth)).await;
    assert_eq!(again, Outcome::Accepted);
    assert!(groups(&world).contains(&group));
    let crashed = Arc::new(memory.crash_losing_all());
    let after = open_on(crashed, &world.config, &world.clock);
    assert!(groups(&after).contains(&group));
}

/// Mails that were made.
#[derive(Debug, Default)]
struct Mails(Mutex<Vec<Mail>>);

impl MailDrop for Mails {
    fn find(&self, _: &OfferedId) -> Option<Mailed> {
        None
    }

    fn has_room(&self, _: Option<Account>) -> Result<(), MailRefused> {
        Ok(())
    }

    fn submit(&self, mail: &Mail, _: Option<Account>) -> Result<(), MailRefused> {
        self.0.lock().unwrap().push(mail.clone());
        Ok(())
    }
}

/// A rule with `mail`: the message waits as with `log`, and a mail says what it asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_tells_of_what_waits() {
    let mut config = config(4 << 20);
    let rules = ["all:*:*:mail", "all:*:misc.*:log", "all:*:alt.made:doit"];
    config.control.rules = rules.map(str::to_owned).to_vec();
    config.control.mail_to = "usenet@n.example".to_owned();
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let filed = ["control", "control.newgroup"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(filed).unwrap();
    let waiting = || {
        let waiting = world.engine.control_waiting().unwrap().into_iter();
        waiting
            .map(|it| it.message_id + " " + &it.asks[0].becomes)
            .collect::<Vec<_>>()
    };
    // Where no mails can be sent it waits all the same.
    send(&world, &[message("1", ADMIN, "newgroup alt.new", "")]).await;
    assert_eq!(waiting(), ["<1@t.example> mail"]);
    let mails = Arc::new(Mails::default());
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    let text = "For your newsgroups file:\nalt.more\tWhat is more.\n";
    let sent = [
        message("2", ADMIN, "newgroup alt.more", text),
        message("3", ADMIN, "rmgroup misc.test", ""),
        message("4", ADMIN, "newgroup alt.made", ""),
        message("5", ADMIN, "newgroup alt..bad", ""),
    ];
    send(&world, &sent).await;
    let told = mails.0.lock().unwrap().clone();
    let [mail] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(
        (mail.to.as_str(), mail.id.as_bytes()),
        ("usenet@n.example", &b"<2@t.example>"[..])
    );
    let said = String::from_utf8(mail.text.clone()).unwrap();
    assert!(
        said.contains("\r\n    make alt.more y What is more.\r\n"),
        "{said}"
    );
    let expected = [
        "<1@t.example> mail",
        "<2@t.example> mail",
        "<3@t.example> log",
    ];
    assert_eq!(waiting(), expected);
    assert_eq!(groups(&world)[0], "alt.made y");
    let which = ArticleRef::Id("<2@t.example>".to_owned());
    world.engine.control_approve(&which).unwrap();
    assert_eq!(groups(&world)[1], "alt.more y What is more.");
    assert_eq!(world.problems(), [""; 0]);
}

/// An older list of a hierarchy does not undo a newer one that was heeded; it waits for approval (RFC 5537 section 5.2.3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkgroups_that_is_older_waits() {
    let world = world_of(&["all:*:*:log", "checkgroups:admin@a.example:alt.*:doit"]);
    let list = |name: &str, arguments: &str, listed: &[&str]| {
        let lines: String = listed
            .iter()
            .map(|it| format!("alt.{it}\tOf {it}\n"))
            .collect();
        message(name, ADMIN, &format!("checkgroups {arguments}"), &lines)
    };
    let of_alt = || {
        let mut names = groups(&world);
        names.retain(|line| line.starts_with("alt."));
        let names = names.iter().filter_map(|line| line.split(' ').next());
        names
            .map(|name| name.replacen("alt.", "", 1))
            .collect::<Vec<_>>()
    };
    send(&world, &[list("1", "alt #20260102", &["one", "two"])]).await;
    assert_eq!(of_alt(), ["one", "two"]);
    // A smaller number, and none where there was one.
    send(&world, &[list("2", "alt #20260101", &["one"])]).await;
    send(&world, &[list("3", "", &["one"])]).await;
    send(&world, &[list("4", "alt #x", &["one"])]).await;
    assert_eq!(of_alt(), ["one", "two"]);
    // Both wait: neither was heeded, so neither settles what the other asks for.
    let waits = |which: &ControlReport| (which.message_id.clone(), which.asks[0].becomes.clone());
    let waiting = world.engine.control_waiting().unwrap();
    let refused = ["<2@t.example>", "<3@t.example>"].map(|id| (id.to_owned(), "log".to_owned()));
    assert_eq!(waiting.iter().map(waits).collect::<Vec<_>>(), refused);
    // The same number again, and one of somebody who is not heeded, which keeps nobody back.
    send(
        &world,
        &[list("5", "alt #20260102", &["one", "three", "two"])],
    )
    .await;
    assert_eq!(of_alt(), ["one", "three", "two"]);
    let forged = message(
        "6",
        "eve@a.example",
        "checkgroups alt #99999999",
        "alt.one\tOf one\n",
    );
    send(&world, &[forged]).await;
    send(&world, &[list("7", "alt #20260103", &["one"])]).await;
    assert_eq!(of_alt(), ["one"]);
    assert_eq!(world.problems(), [""; 0]);
}

/// The same in other groups.
fn to(article: Article, groups: &str) -> Article {
    let text = String::from_utf8(article.1).unwrap();
    let text = text.replace("Newsgroups: alt.new", &format!("Newsgroups: {groups}"));
    (article.0, text.into_bytes())
}

/// An article without Control.
fn plain(name: &str, groups: &str) -> Article {
    let article = message(name, ADMIN, "cancel <none@t.example>", "x\n");
    to(
        without(article, "Control: cancel <none@t.example>\r\n"),
        groups,
    )
}

/// Ordinary articles to the groups that are filed in by the server hid what waits there, a thousand of them all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_control_message_is_not_filed_among_them() {
    let world = world_of(&[]);
    world
        .engine
        .add_groups(["junk", "control.cancel"].map(GroupSpec::new).to_vec())
        .unwrap();
    let only = [
        plain("1", "control"),
        plain("2", "control.newgroup"),
        plain("3", "junk,control.cancel"),
    ];
    let none = vec![Outcome::Rejected(Reject::UnknownGroups); 3];
    assert_eq!(world.send(&only).await, none);
    send(&world, &[plain("4", "control,misc.test,junk")]).await;
    for group in ["control", "control.newgroup", "control.cancel", "junk"] {
        assert_eq!(world.high(group), 0, "{group}");
    }
    assert_eq!(world.high("misc.test"), 1);
    // What is one is filed by its verb, whatever groups it names.
    let message = message("5", ADMIN, "newgroup alt.new", "");
    send(&world, &[to(message, "control")]).await;
    assert_eq!(world.high("control.newgroup"), 1);
}

/// A thousand cancels in the same group, or a thousand forged messages, hid a message that waits, and let an old list undo a
/// newer one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_flood_hides_what_waits_or_what_was_heeded() {
    let mut config = config(32 << 20);
    config.journal.segment_octets = 16 << 20;
    config.control.rules = vec![
        "all:*:*:log".to_owned(),
        "checkgroups:admin@a.example:alt.*:doit".to_owned(),
    ];
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let there = ["control", "control.newgroup"];
    world
        .engine
        .add_groups(there.map(GroupSpec::new).to_vec())
        .unwrap();
    let list = |name: &str, serial: u64, group: &str| {
        let lines = format!("{group}\tOf it.\n");
        message(name, ADMIN, &format!("checkgroups alt #{serial}"), &lines)
    };
    send(&world, &[list("newer", 2, "alt.two")]).await;
    let waiting = [
        message("made", ADMIN, "newgroup alt.made", ""),
        message("gone", ADMIN, "rmgroup misc.other", ""),
    ];
    send(&world, &waiting).await;
    let mut flood = Vec::new();
    for n in 0..1100 {
        let cancel = format!("cancel <{n}@none.example>");
        let cancel = message(&format!("c{n}"), ADMIN, &cancel, "x\n");
        flood.push(to(cancel, "misc.test"));
        let forged = format!("newgroup alt.forged{n}");
        flood.push(message(&format!("f{n}"), "eve@a.example", &forged, ""));
    }
    for some in flood.chunks(100) {
        send(&world, some).await;
    }
    assert_eq!(world.high("control"), 1102);
    let waiting = world.engine.control_waiting().unwrap();
    assert_eq!(waiting.len(), 1102);
    let first: Vec<&str> = waiting.iter().map(|it| it.message_id.as_str()).collect();
    assert_eq!(first[..2], ["<made@t.example>", "<gone@t.example>"]);
    send(&world, &[list("older", 1, "alt.one")]).await;
    let made = groups(&world);
    assert!(made.contains(&"alt.two y Of it.".to_owned()), "{made:?}");
    assert!(world.engine.group("alt.one").is_none());
}
