//! Programs that people use, at the binary: a group is opened, articles are read and posted, files come out as they went in.
//!
//! They are those of Debian; where one is not installed its test says so and is skipped, unless `NEWSREEL_TEST_CLIENTS` has it:
//! `script/test` names there what it has found or installed.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use newsreel_host::process::kill_group;
use newsreel_host::{Disk as _, RealDisk, read_whole, replace_file};

use crate::caching::Cache;
use crate::client::{NewsClient, article};
use crate::spool::{Server, Spool, said};

/// Where a program is, if it is anywhere; says what is skipped.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
#[expect(
    clippy::disallowed_methods,
    reason = "what must be there is said to the tests, not to the program"
)]
pub(crate) fn program(path: &'static str, package: &str) -> Option<Command> {
    if RealDisk.exists(Path::new(path)).unwrap() {
        return Some(Command::new(path));
    }
    let promised = std::env::var("NEWSREEL_TEST_CLIENTS").unwrap_or_default();
    assert!(
        !is_named(path, &promised),
        "there is no {path}, and it should be there"
    );
    println!("skipped: there is no {path} (apt-get install {package})");
    None
}

/// Whether a list of programs has the one that is there.
fn is_named(path: &str, list: &str) -> bool {
    let name = Path::new(path).file_name().unwrap();
    list.split_whitespace().any(|one| name == one)
}

/// Where a client was missing its tests passed, in CI too.
#[test]
fn what_is_promised_is_not_skipped() {
    assert!(is_named("/usr/bin/tin", "slrnpull tin "));
    assert!(!is_named("/usr/bin/tin", "") && !is_named("/usr/bin/tin", "tinc"));
}

/// No client of these takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client says until it ends; one that does not end is ended, with what it started.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    output_of(child.unwrap())
}

pub(crate) fn output_of(child: Child) -> Output {
    let (leader, (ended, ending)) = (child.id(), sync_channel(1));
    std::thread::spawn(move || {
        let _ = ended.send(child.wait_with_output());
    });
    let Ok(output) = ending.recv_timeout(PATIENCE) else {
        kill_group(leader);
        panic!("it did not end: {:?}", ending.recv_timeout(PATIENCE));
    };
    output.unwrap()
}

/// What a program writes to its terminal.
pub(crate) struct Screen {
    parts: Receiver<String>,
    /// Since what was looked for last.
    pub(crate) shown: String,
}

impl Screen {
    pub(crate) fn watch(mut terminal: ChildStdout) -> Self {
        let (sender, parts) = sync_channel(1000);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(octets @ 1..) = terminal.read(&mut part) {
                let part = String::from_utf8_lossy(&part[..octets]);
                if sender.send(part.into_owned()).is_err() {
                    return;
                }
            }
        });
        let shown = String::new();
        Self { parts, shown }
    }

    /// What comes next; none: nothing more does.
    pub(crate) fn more(&self) -> Option<String> {
        self.parts.recv_timeout(PATIENCE).ok()
    }

    /// Waits until this comes; `false`: it does not.
    pub(crate) fn shows(&mut self, what: &str) -> bool {
        loop {
            if let Some(at) = self.shown.find(what) {
                self.shown.drain(..at + what.len());
                return true;
            }
            match self.more() {
                Some(part) => self.shown += &part,
                None => return false,
            }
        }
    }
}

/// Python, if it has nntplib; says what is skipped.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(crate) fn nntplib() -> Option<Command> {
    let mut python = program("/usr/bin/python3", "python3")?;
    python.args(["-W", "ignore"]);
    let has_it = Command::new(python.get_program())
        .args(["-W", "ignore", "-c", "import nntplib"])
        .stderr(Stdio::null())
        .status();
    if has_it.unwrap().success() {
        return Some(python);
    }
    println!("skipped: this Python has no nntplib any more");
    None
}

/// A server with a group and one article in it, with lines that begin with dots and octets of all kinds; and where the client
/// goes, to it or to a cache in front of it.
struct Site {
    spool: Spool,
    server: Server,
    cache: Option<(Cache, Server)>,
}

impl Site {
    /// One that is gone to, and one with a cache in front.
    fn both() -> impl Iterator<Item = Self> {
        [false, true].into_iter().map(Self::new)
    }

    fn new(has_cache: bool) -> Self {
        let spool = Spool::new();
        let server = spool.serve();
        spool.text(&["group", "add", "misc.test"]);
        let mut client = NewsClient::connect(server.address);
        let body = "..\r\n..dots\r\n\r\n\u{e4}\u{2028}\tx\r\n";
        let text = article(FIRST, "misc.test").replace(&format!("body of {FIRST}\r\n"), body);
        client.send(format!("TAKETHIS {FIRST}\r\n{text}").as_bytes());
        assert!(client.line().starts_with("239"));
        let in_front = || {
            let cache = Cache::of(server.address);
            let front = cache.serve();
            (cache, front)
        };
        let cache = has_cache.then(in_front);
        Self {
            spool,
            server,
            cache,
        }
    }

    fn address(&self) -> SocketAddr {
        let front = self.cache.as_ref();
        front.map_or(self.server.address, |(_, front)| front.address)
    }

    fn port(&self) -> u16 {
        self.address().port()
    }

    fn stored(&self, id: &str) -> Vec<u8> {
        stored(&self.server, id)
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.spool.folder().join(name);
        RealDisk.create_dir_all(&path).unwrap();
        path
    }

    fn stop(self) {
        if let Some((_, front)) = self.cache {
            front.stop();
        }
        self.server.stop();
    }
}

const FIRST: &str = "<first@t.example>";

/// An article as the server has it, with LF at the ends of its lines.
fn stored(server: &Server, id: &str) -> Vec<u8> {
    let mut client = NewsClient::connect(server.address);
    assert!(
        client.ask(&format!("ARTICLE {id}")).starts_with("220"),
        "{id}"
    );
    let lines = client.raw_block().into_iter();
    let unstuffed = lines.map(|line| match line.strip_prefix(b".") {
        Some(rest) => rest.to_vec(),
        None => line,
    });
    unstuffed
        .flat_map(|mut line| {
            line.push(b'\n');
            line
        })
        .collect()
}

fn body(article: &[u8]) -> &[u8] {
    let at = article.windows(2).position(|two| two == b"\n\n").unwrap();
    &article[at + 2..]
}

fn read(path: &Path) -> Vec<u8> {
    read_whole(&RealDisk, path, 1 << 20).unwrap()
}

fn write(path: &Path, octets: &[u8]) {
    replace_file(&RealDisk, path, octets).unwrap();
}

fn proto(id: &str) -> String {
    format!(
        "From: Ada <ada@a.example>\nNewsgroups: misc.test\nSubject: posted\nMessage-ID: {id}\n\n.dot\n\u{e4}\n"
    )
}

const NNTPLIB: &str = r#"
import nntplib, sys
server = nntplib.NNTP("127.0.0.1", int(sys.argv[1]))
assert {"READER", "POST", "OVER", "HDR", "LIST"} <= set(server.getcapabilities())
_, count, first, last, name = server.group("misc.test")
assert (count, first, last, name) == (1, 1, 1, "misc.test")
_, article = server.article("1")
open(sys.argv[2], "wb").write(b"".join(line + b"\n" for line in article.lines))
_, rows = server.over((1, None))
assert [number for number, _ in rows] == [1] and rows[0][1]["message-id"] == article.message_id
assert server.post(open(sys.argv[3], "rb")).startswith("240 ")
_, groups = server.list()
assert [(it.group, int(it.last), it.flag) for it in groups] == [("misc.test", 2, "y")]
server.quit()
"#;

#[test]
fn nntplib_of_python() {
    for site in Site::both() {
        nntplib_of_python_at(&site);
        site.stop();
    }
}

fn nntplib_of_python_at(site: &Site) {
    let Some(mut python) = nntplib() else {
        return;
    };
    let [script, got, post] =
        ["read_and_post.py", "got", "post"].map(|it| site.spool.folder().join(it));
    write(&script, NNTPLIB.as_bytes());
    write(&post, proto("<python@t.example>").as_bytes());
    let port = site.port().to_string();
    python.arg(script).arg(port).args([&got, &post]);
    said(output(&mut python)).unwrap();
    assert_eq!(read(&got), site.stored(FIRST));
    let posted = site.stored("<python@t.example>");
    assert_eq!(body(&posted), ".dot\n\u{e4}\n".as_bytes());
}

#[test]
fn slrnpull_reads_and_posts() {
    for site in Site::both() {
        slrnpull_reads_and_posts_at(&site);
        site.stop();
    }
}

fn slrnpull_reads_and_posts_at(site: &Site) {
    let Some(mut slrnpull) = program("/usr/bin/slrnpull", "slrnpull") else {
        return;
    };
    let home = site.folder("slrnpull");
    write(&home.join("slrnpull.conf"), b"misc.test 100 0 0\n");
    // What slrn leaves there is stuffed already.
    RealDisk.create_dir_all(&home.join("out.going")).unwrap();
    write(
        &home.join("out.going/X1"),
        proto("<slrn@t.example>").replace("\n.", "\n..").as_bytes(),
    );
    slrnpull
        .arg("-d")
        .arg(&home)
        .arg("-h")
        .arg(site.address().to_string());
    said(output(&mut slrnpull)).unwrap();
    assert_eq!(read(&home.join("news/misc/test/1")), site.stored(FIRST));
    let posted = site.stored("<slrn@t.example>");
    assert_eq!(body(&posted), ".dot\n\u{e4}\n".as_bytes());
}

/// On a terminal, which `script` is: a group is opened by keys, an article read, and what was put off is posted. In batches, too, it
/// saves what is new.
#[test]
fn tin_reads_and_posts() {
    for site in Site::both() {
        tin_reads_and_posts_at(&site);
        site.stop();
    }
}

fn tin_reads_and_posts_at(site: &Site) {
    let (Some(mut tin), Some(_)) = (
        program("/usr/bin/tin", "tin"),
        program("/usr/bin/script", "bsdutils"),
    ) else {
        return;
    };
    let home = site.folder("tin");
    write(&home.join(".newsrc"), b"misc.test:\n");
    // Without it a warning is shown for a while.
    write(&home.join(".cancelsecret"), b"");
    // Without it what it posts is in a character set of its own.
    RealDisk.create_dir_all(&home.join(".tin")).unwrap();
    write(
        &home.join(".tin/attributes"),
        b"scope=*\nmm_network_charset=UTF-8\n",
    );
    let port = site.port();
    let usual = format!("-4 -r -d -q -n -g 127.0.0.1 -p {port}");
    let at_home = |command: &mut Command| {
        command.env("HOME", &home);
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    };
    at_home(tin.arg("-S").args(usual.split(' ')).stdin(Stdio::null()));
    said(output(&mut tin)).unwrap();
    let saved = read(&home.join("News/misc/test/1"));
    assert_eq!(saved, site.stored(FIRST));

    let on_terminal = |words: &str, keys: &[(&str, &str)]| {
        let command = format!("tin {words} {usual}");
        let mut script = Command::new("/usr/bin/script");
        at_home(script.args(["-qec", &command, "/dev/null"]));
        let mut child = script
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut screen = Screen::watch(child.stdout.take().unwrap());
        for (seen, key) in keys {
            if !screen.shows(seen) {
                kill_group(child.id());
                panic!("no {seen:?} after {:?}", screen.shown);
            }
            input.write_all(key.as_bytes()).unwrap();
        }
        said(output_of(child)).unwrap();
    };
    // The list of groups, the group, the article, and out again.
    let keys = [
        ("End of groups", "\r"),
        ("End of articles", "\r"),
        (".dots", ""),
        ("Last response", "q"),
        ("End of articles", "q"),
        ("End of groups", "q"),
        ("really want to quit", "y"),
    ];
    on_terminal("", &keys);
    assert_eq!(read(&home.join(".newsrc")), b"misc.test: 1\n");
    let text = proto("<tin@t.example>");
    let postponed = format!("From nobody Thu Jan  1 00:00:00 2026\n{text}\n");
    write(&home.join(".tin/postponed.articles"), postponed.as_bytes());
    on_terminal("-o", &[]);
    let posted = site.stored("<tin@t.example>");
    assert_eq!(body(&posted), ".dot\n\u{e4}\n".as_bytes());
}

#[test]
fn suck_reads() {
    for site in Site::both() {
        suck_reads_at(&site);
        site.stop();
    }
}

fn suck_reads_at(site: &Site) {
    let Some(mut suck) = program("/usr/bin/suck", "suck") else {
        return;
    };
    let [data, temporary, articles] = ["data", "temporary", "articles"].map(|it| site.folder(it));
    write(&data.join("sucknewsrc"), b"misc.test 0\n");
    suck.arg("127.0.0.1").arg("-N").arg(site.port().to_string());
    suck.arg("-dd")
        .arg(data)
        .arg("-dt")
        .arg(temporary)
        .arg("-dm")
        .arg(&articles)
        .arg("-m");
    said(output(&mut suck)).unwrap();
    let files = RealDisk.list(&articles).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(read(&articles.join(&files[0].name)), site.stored(FIRST));
}

#[test]
fn rpost_of_suck_posts() {
    for site in Site::both() {
        rpost_posts_at(&site);
        site.stop();
    }
}

fn rpost_posts_at(site: &Site) {
    let Some(mut rpost) = program("/usr/bin/rpost", "suck") else {
        return;
    };
    let folder = site.folder("rpost");
    let [article, batch] = ["article", "batch"].map(|name| folder.join(name));
    write(&article, proto("<rpost@t.example>").as_bytes());
    write(&batch, format!("{}\n", article.display()).as_bytes());
    rpost.args(["127.0.0.1", "-N", &site.port().to_string(), "-b"]);
    said(output(rpost.arg(&batch))).unwrap();
    let posted = site.stored("<rpost@t.example>");
    assert_eq!(body(&posted), ".dot\n\u{e4}\n".as_bytes());
}

#[test]
fn inews_of_inn_posts() {
    for site in Site::both() {
        inews_of_inn_posts_at(&site);
        site.stop();
    }
}

fn inews_of_inn_posts_at(site: &Site) {
    let Some(mut inews) = program("/usr/bin/inews", "inn2-inews") else {
        return;
    };
    let settings = site.spool.folder().join("inn.conf");
    let text = "domain: a.example\nfromhost: a.example\npathhost: a.example\nserver: 127.0.0.1\nmta: \"/bin/false %s\"\npathnews: /usr/lib/news\n\
                hismethod: hisv6\nenableoverview: false\n";
    write(&settings, text.as_bytes());
    // A From of its own makes it add a Sender, `user%host`, which is no address.
    let mut child = inews
        .args(["-h", "-S", "-O", "-p", &site.port().to_string()])
        .env("INNCONF", settings)
        .env("NNTPSERVER", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let text = "From: Ada <ada@b.example>\nNewsgroups: misc.test\nSubject: from inews\nMessage-ID: <inews@t.example>\n\n.dot\ntext\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    said(output_of(child)).unwrap();
    let kept = site.stored("<inews@t.example>");
    assert_eq!(body(&kept), b".dot\ntext\n");
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("%a.example\n"), "{kept}");
}

/// Octets of a part of a file in yEnc, which has every octet but NUL, LF and CR.
fn yenc(part: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for line in part.chunks(128) {
        for octet in line {
            match octet.wrapping_add(42) {
                escaped @ (0 | b'\n' | b'\r' | b'=' | b'.') => {
                    lines.extend_from_slice(&[b'=', escaped.wrapping_add(64)]);
                }
                plain => lines.push(plain),
            }
        }
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

#[test]
fn nzbget_puts_a_file_together_as_it_was() {
    for site in Site::both() {
        nzbget_puts_a_file_together_as_it_was_at(&site);
        site.stop();
    }
}

fn nzbget_puts_a_file_together_as_it_was_at(site: &Site) {
    const PART: usize = 40_000;
    let Some(mut nzbget) = program("/usr/bin/nzbget", "nzbget") else {
        return;
    };
    let file: Vec<u8> = (0..100_000u32)
        .map(|n| (n.wrapping_mul(n) / 7 + n) as u8)
        .collect();
    let (size, parts) = (file.len(), file.len().div_ceil(PART));
    let mut segments = String::new();
    let mut client = NewsClient::connect(site.address());
    for (at, part) in file.chunks(PART).enumerate() {
        let (number, begin, len) = (at + 1, at * PART + 1, part.len());
        let head = format!(
            "From: a@b.example\r\nNewsgroups: misc.test\r\nSubject: \"file.bin\" yEnc ({number}/{parts})\r\n\
             Message-ID: <part{number}@t.example>\r\n\r\n\
             =ybegin part={number} total={parts} line=128 size={size} name=file.bin\r\n\
             =ypart begin={begin} end={}\r\n",
            begin + len - 1
        );
        let mut crc = flate2::Crc::new();
        crc.update(part);
        let tail = format!(
            "=yend size={len} part={number} pcrc32={:08x}\r\n.\r\n",
            crc.sum()
        );
        assert!(client.ask("POST").starts_with("340"));
        client.send(&[head.as_bytes(), &yenc(part), tail.as_bytes()].concat());
        assert!(client.line().starts_with("240"));
        segments += &format!(
            "<segment bytes=\"{len}\" number=\"{number}\">part{number}@t.example</segment>"
        );
    }
    let list = site.spool.folder().join("file.nzb");
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<nzb xmlns=\"http://www.newzbin.com/DTD/2003/nzb\">\
         <file poster=\"a@b.example\" date=\"1767225600\" subject=\"&quot;file.bin&quot; yEnc (1/{parts})\">\
         <groups><group>misc.test</group></groups><segments>{segments}</segments></file></nzb>\n"
    );
    write(&list, text.as_bytes());
    let home = site.folder("nzbget");
    let (main, port) = (home.display(), site.port());
    for option in [
        format!("MainDir={main}"),
        format!("DestDir={main}/done"),
        "Server1.Host=127.0.0.1".to_owned(),
        format!("Server1.Port={port}"),
        "Server1.Connections=4".to_owned(),
        "OutputMode=log".to_owned(),
        "ParCheck=manual".to_owned(),
        "WriteLog=none".to_owned(),
    ] {
        nzbget.arg("-o").arg(option);
    }
    said(output(nzbget.arg("-n").arg(&list))).unwrap();
    assert!(
        read(&home.join("done/file/file.bin")) == file,
        "another file came out"
    );
}
