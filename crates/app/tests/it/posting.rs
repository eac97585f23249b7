//! Posting as people do it: `newsreel post`, `inews`, moderators' mails; and what is left of it after a kill.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk, read_whole};

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel, said};

const ARTICLE: &str =
    "From: Ada <ada@a.example>\nNewsgroups: misc.test\nSubject: s\n\n.dot\n\u{e4}\n";

/// A program that appends the mails it gets, and the recipient in front, to a file, or fails while another file is there.
fn sendmail(folder: &Path) -> (String, PathBuf, PathBuf) {
    let (mails, closed) = (folder.join("mails"), folder.join("closed"));
    let script = folder.join("sendmail.sh");
    let text = format!(
        "test -e {closed} && exit 75\necho \"for $1\" >> {mails}\ncat >> {mails}\n",
        closed = closed.display(),
        mails = mails.display(),
    );
    newsreel_host::replace_file(&RealDisk, &script, text.as_bytes()).unwrap();
    (format!("/bin/sh {} %s", script.display()), mails, closed)
}

fn text_of(path: &Path) -> String {
    let read = read_whole(&RealDisk, path, 1 << 20);
    String::from_utf8(read.unwrap_or_default()).unwrap()
}

/// Waits until a file has this.
fn wait_for(path: &Path, text: &str) -> String {
    for _ in 0..1500 {
        let found = text_of(path);
        if found.contains(text) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{text:?} never came; there is {:?}", text_of(path));
}

#[test]
fn an_article_from_a_file_is_read_back_as_it_was() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let file = spool.folder().join("article.txt");
    newsreel_host::replace_file(&RealDisk, &file, ARTICLE.as_bytes()).unwrap();
    let told = spool.text(&["post", file.to_str().unwrap()]);
    let id = told.trim_end().rsplit(' ').next().unwrap();
    assert!(told.contains("240 Article received <"), "{told}");
    let told = spool.json(&[
        "post",
        "--server",
        &server.address.to_string(),
        file.to_str().unwrap(),
    ]);
    assert!(told[0]["answer"].as_str().unwrap().starts_with("240 "));
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask(&format!("BODY {id}")).starts_with("222"));
    assert_eq!(client.raw_block(), [&b"..dot"[..], "\u{e4}".as_bytes()]);
    assert_eq!(client.ask("GROUP misc.test"), "211 2 1 2 misc.test");
    let refused = spool.piped(
        &["post", "-"],
        "From: Ada\nNewsgroups: misc.test\nSubject: s\n\nx\n",
    );
    assert!(refused.unwrap_err().contains("441 Malformed From field"));
    server.stop();
    let none = spool.error(&["post", file.to_str().unwrap()]);
    assert!(none.contains("no server is running on the spool"), "{none}");
}

/// The first file of several that was refused kept the others from being posted, and nobody said which they were.
#[test]
fn each_of_several_files_is_tried() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let file = |name: &str, text: &str| {
        let path = spool.folder().join(name);
        newsreel_host::replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bad = file("bad.txt", "Subject: no more\n\nx\n");
    let missing = spool.folder().join("none.txt").display().to_string();
    let good = file("good.txt", ARTICLE);
    let told = spool.error(&["post", &bad, &missing, &good]);
    let last = format!("2 of 3 were not posted: {bad}, {missing}");
    assert!(told.contains(&last) && told.contains("441 "), "{told}");
    assert!(told.contains(&format!("cannot post {missing}: ")), "{told}");
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP misc.test"), "211 1 1 1 misc.test");
    let said = spool.text(&["post", &good, &good]);
    assert_eq!(said.matches(": 240 ").count(), 2, "{said}");
    server.stop();
}

/// A server where only users may read and post: ada, by the password `correct-horse`.
fn for_users_only() -> (Spool, Server) {
    let rules = "\n[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n\
                 [[access]]\nname = \"users\"\nusers = [\"*\"]\nread = \"*\"\npost = \"*\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rules));
    spool.certify("localhost");
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let added = spool.piped(&["user", "add", "ada"], "correct-horse\n");
    added.unwrap();
    (spool, server)
}

/// Who may post only as a user could not post from a file.
#[test]
fn an_article_is_posted_as_a_user() {
    let (spool, server) = for_users_only();
    let file = |name: &str, text: &str| {
        let path = spool.folder().join(name);
        newsreel_host::replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let article = file("article.txt", ARTICLE);
    let password = file("password.txt", "correct-horse\n");
    let wrong = file("wrong.txt", "wrong-horse\n");
    let as_ada = ["--user", "ada", "--password-file"];
    let nobody = spool.error(&["post", &article]);
    assert!(
        nobody.contains("201 Reading, no posting; if users may, say who you are by --user and"),
        "{nobody}"
    );
    let mut words = vec!["post", article.as_str()];
    words.extend(as_ada);
    let told = spool.error(&[&words[..], &[wrong.as_str()]].concat());
    assert!(told.contains("481"), "{told}");
    words.push(&password);
    let told = spool.text(&words);
    assert!(told.contains("240 Article received <"), "{told}");
    let port = server.address.port();
    let (by_name, authority) = (format!("localhost:{port}"), spool.folder().join("cert.pem"));
    let over_tls = ["--server", &by_name, "--tls", "starttls", "--authority"];
    words.extend(over_tls);
    words.push(authority.to_str().unwrap());
    let told = spool.text(&words);
    assert!(told.contains("240 Article received <"), "{told}");
    server.stop();
}

/// Who may post only as a user could not post by inews: it had no login, which INN's finds in passwd.nntp.
#[test]
fn inews_logs_in_where_the_server_wants_it() {
    let (spool, server) = for_users_only();
    let file = |name: &str, text: &str| {
        let path = spool.folder().join(name);
        newsreel_host::replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let logins = "# of this machine\nother.example:ada:x\nLocalhost:ada:correct-horse\n127.0.0.1:ada:wrong-horse\n";
    let (article, passwd) = (file("article.txt", ARTICLE), file("passwd.nntp", logins));
    let none = file("none.nntp", "other.example:ada:correct-horse\n");
    let (port, authority) = (
        server.address.port().to_string(),
        spool.folder().join("cert.pem"),
    );
    let inews = |to: &str, words: &[&str]| {
        let mut command = newsreel();
        command.arg("inews").args(["-h", "-S", "-O", "-p", &port]);
        command.env("HOME", spool.folder());
        command.env_remove("NNTPSERVER").args(["--server", to]);
        said(command.args(words).arg(&article).output().unwrap())
    };
    let with = ["--passwd", passwd.as_str()];
    assert_eq!(inews("localhost", &with).as_deref(), Ok(""));
    let refused = inews("127.0.0.1", &with).unwrap_err();
    assert!(refused.contains("481"), "{refused}");
    let nobody = inews("localhost", &["--passwd", &none]).unwrap_err();
    let helps =
        format!("201 Reading, no posting; {none} has no login for the server: a line `HOST");
    assert!(nobody.contains(&helps), "{nobody}");
    let asked = inews("localhost", &["-Y", "--passwd", &none]).unwrap_err();
    assert!(asked.contains("has no login for the server"), "{asked}");
    // What was not posted is kept, each time.
    let dead = text_of(&spool.folder().join("dead.article"));
    assert_eq!(dead.matches("Subject: s\n").count(), 3, "{dead}");
    assert!(asked.contains("dead.article"), "{asked}");
    let over_tls = [
        "--tls",
        "starttls",
        "--authority",
        authority.to_str().unwrap(),
    ];
    let posted = inews("localhost", &[&with[..], &over_tls, &["-Y"]].concat());
    assert_eq!(posted.as_deref(), Ok(""));
    let here = spool.text(&["inews", "-h", "-S", "--passwd", &passwd, &article]);
    assert_eq!(here, "", "the spool's server is localhost");
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("AUTHINFO USER ada").starts_with("381"));
    assert!(client.ask("AUTHINFO PASS correct-horse").starts_with("281"));
    assert_eq!(client.ask("GROUP misc.test"), "211 3 1 3 misc.test");
    server.stop();
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a link beside the spool, as an administrator makes it"
)]
fn a_link_called_inews_posts_with_inns_options() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let link = spool.folder().join("inews");
    std::os::unix::fs::symlink(newsreel().get_program(), &link).unwrap();
    let text = spool.folder().join("text");
    newsreel_host::replace_file(&RealDisk, &text, b"Subject: from inews\n\nbody\n").unwrap();
    let inews = |words: &[&str]| {
        let mut command = Command::new(&link);
        command
            .env("HOME", spool.folder())
            .env("USER", "ada")
            .env("FROMHOST", "a.example");
        command.env_remove("NAME").env_remove("NNTPSERVER");
        said(command.args(words).output().unwrap())
    };
    let (address, port) = (
        server.address.ip().to_string(),
        server.address.port().to_string(),
    );
    let text = text.to_str().unwrap();
    let to = [
        "-h",
        "-S",
        "-O",
        "-n",
        "misc.test",
        "--server",
        &address,
        "-p",
        &port,
        text,
    ];
    assert_eq!(inews(&to).as_deref(), Ok(""));
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP misc.test"), "211 1 1 1 misc.test");
    assert!(client.ask("HEAD 1").starts_with("221"));
    let head = client.block();
    for line in [
        "Subject: from inews",
        "From: ada@a.example",
        "Newsgroups: misc.test",
    ] {
        assert!(head.iter().any(|one| one == line), "{line} in {head:?}");
    }
    let dump = [
        "-D",
        "-S",
        "-O",
        "-P",
        "-n",
        "misc.test",
        "-f",
        "b@b.example",
    ];
    let dumped = |more: &[&str]| inews(&[&dump[..], more].concat()).unwrap();
    assert_eq!(
        dumped(&["-h", text]),
        "From: b@b.example\nNewsgroups: misc.test\nSubject: from inews\n\nbody\n"
    );
    // As INN's: without -h all is text.
    assert_eq!(
        dumped(&["-i", "x", "-v", text]),
        "From: b@b.example\nNewsgroups: misc.test\n\nSubject: from inews\n\nbody\n"
    );
    // Without -P who runs it is told beside an author who is somebody else, whatever the environment says of the user.
    let with_sender = inews(&[
        "-D",
        "-S",
        "-O",
        "-n",
        "misc.test",
        "-f",
        "b@b.example",
        "-h",
        text,
    ]);
    let account = newsreel_host::process::own_account().map(|it| it.name);
    let sender = account.map(|name| format!("Sender: {name}@a.example\n"));
    assert!(with_sender.unwrap().contains(&sender.unwrap_or_default()));
    server.stop();
}

/// The promise of 240 for what is moderated: the mail is there after a kill, and is sent when that works at last.
#[test]
fn a_mail_to_a_moderator_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (program, mails, closed) = sendmail(folder.path());
    let config = format!(
        "{}\n[moderation]\nmoderators = [\"mod.*:%s@m.example\"]\nsendmail = \"{program}\"\nretry_s_min = 1\n\
         sender = \"news@a.example\"\n",
        Spool::changed(&[])
    );
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "mod.test", "--status", "m"]);
    newsreel_host::replace_file(&RealDisk, &closed, b"").unwrap();
    let moderated = ARTICLE.replace("misc.test", "mod.test");
    let told = spool.piped(&["post", "-"], &moderated).unwrap();
    assert!(told.contains("240 "), "{told}");
    assert_eq!(spool.json(&["status"])["mails_waiting"], 1);
    server.kill();
    assert_eq!(spool.json(&["status"])["mails_waiting"], 1);
    let status = spool.text(&["status"]);
    assert!(status.contains("1 mail, 0 control messages"), "{status}");
    assert_eq!(text_of(&mails), "");
    let server = spool.serve();
    // The first attempt of this run fails, the next one does not.
    let log = spool.folder().join("log.txt");
    wait_for(&log, "could not be sent; it is kept and tried again");
    RealDisk.remove(&closed).unwrap();
    let mail = wait_for(&mails, "\n.dot\n\u{e4}\n");
    assert!(
        mail.starts_with("for mod-test@m.example\nTo: mod-test@m.example\n"),
        "{mail}"
    );
    assert!(mail.contains("\nNewsgroups: mod.test\n") && mail.contains("\nMessage-ID: <"));
    assert!(!mail.contains("Injection-"), "{mail}");
    wait_for(&log, "sent to the moderator");
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP mod.test"), "211 0 1 0 mod.test");
    server.stop();
    let left = RealDisk.list(&spool.path().join("mail")).unwrap();
    assert!(left.len() == 1 && left[0].name.ends_with(".sent"));
    assert_eq!(mail.matches("for ").count(), 1);
}

/// One whose recipient nobody knew was tried for ever, and nothing but the log told of it.
#[test]
fn a_mail_that_is_refused_for_good_is_counted_apart() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("sendmail.sh");
    newsreel_host::replace_file(&RealDisk, &script, b"cat > /dev/null\nexit 67\n").unwrap();
    let config = format!(
        "{}\n[moderation]\nmoderators = [\"mod.*:%s@m.example\"]\nsendmail = \"/bin/sh {}\"\n\
         retry_s_min = 1\nretry_s_max = 1\n",
        Spool::changed(&[]),
        script.display()
    );
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "mod.test", "--status", "m"]);
    let moderated = ARTICLE.replace("misc.test", "mod.test");
    spool.piped(&["post", "-"], &moderated).unwrap();
    let log = spool.folder().join("log.txt");
    wait_for(&log, "a mail is refused for good, and is tried no more");
    // It goes out of the queue behind that.
    let counts = || {
        let status = spool.json(&["status"]);
        ["mails_waiting", "mails_refused"].map(|it| status[it].as_u64())
    };
    while counts() != [Some(0), Some(1)] {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = spool.text(&["status"]);
    assert!(status.contains("; refused for good: 1 mail"), "{status}");
    server.stop();
}

/// A mail about a control message, which any stranger causes, kept those to moderators waiting for as long as it took to send.
#[test]
fn a_notice_that_is_slow_to_send_keeps_no_moderators_mail_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (mails, script) = (folder.path().join("mails"), folder.path().join("mail.sh"));
    let text = format!(
        "cat >> {mails}\necho \"for $1\" >> {mails}\ncase $1 in usenet@*) exec sleep 40;; esac\n",
        mails = mails.display(),
    );
    newsreel_host::replace_file(&RealDisk, &script, text.as_bytes()).unwrap();
    let config = format!(
        "{}\n[moderation]\nmoderators = [\"mod.*:%s@m.example\"]\nsendmail = \"/bin/sh {} %s\"\n\
         [control]\nrules = [\"all:*:*:mail\"]\nmail_to = \"usenet@n.example\"\n",
        Spool::changed(&[]),
        script.display()
    );
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "mod.test", "--status", "m"]);
    let newgroup = ARTICLE.replace(
        "Subject",
        "Control: newgroup alt.new\nApproved: a@b.example\nSubject",
    );
    spool.piped(&["post", "-"], &newgroup).unwrap();
    wait_for(&mails, "for usenet@n.example");
    let moderated = ARTICLE.replace("misc.test", "mod.test");
    spool.piped(&["post", "-"], &moderated).unwrap();
    // It waits for less than the notice takes.
    wait_for(&mails, "for mod-test@m.example");
    // It goes out of the queue behind that; the notice is being sent still.
    let waiting = || spool.json(&["status"])["mails_waiting"].as_u64();
    while waiting() == Some(2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(waiting(), Some(1));
    server.stop();
}

/// 240 means on disk: sixteen posters, a kill in the middle, and every article that was acknowledged is there.
#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let address = server.address;
    let posters: Vec<_> = (0..16)
        .map(|_| std::thread::spawn(move || post_until_the_end(address)))
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    server.kill();
    let taken: Vec<String> = posters
        .into_iter()
        .flat_map(|one| one.join().unwrap())
        .collect();
    assert!(taken.len() > 16, "{}", taken.len());
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    for id in &taken {
        assert!(client.ask(&format!("STAT {id}")).starts_with("223"), "{id}");
    }
    server.stop();
}

/// Posts one article after the other while the server is there; the ids it acknowledged.
fn post_until_the_end(address: std::net::SocketAddr) -> Vec<String> {
    use std::io::{BufRead as _, BufReader, Write as _};
    let stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut stream = BufReader::new(stream);
    let article = ARTICLE
        .replace('\n', "\r\n")
        .replace("\r\n.dot", "\r\n..dot")
        + ".\r\n";
    let mut taken = Vec::new();
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    loop {
        for said in ["POST\r\n", &article] {
            line.clear();
            let sent = stream.get_mut().write_all(said.as_bytes());
            if sent.is_err()
                || !matches!(stream.read_line(&mut line), Ok(1..))
                || !line.ends_with('\n')
            {
                return taken;
            }
        }
        let id = line.strip_prefix("240 Article received ");
        taken.push(id.unwrap().trim_end().to_owned());
    }
}
