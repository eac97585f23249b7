//! The runner against a toy server: good files pass, damaged ones fail at the right line, bless mends them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use newsreel_testkit::transcript::{Action, parse};
use newsreel_testkit::{Driver, Runner, Setup, Support, Verdict};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

/// Answers `ECHO text`, `LIST`, `DIE` and `QUIT`.
#[derive(Debug, Default)]
struct Toy {
    setup: Setup,
}

async fn serve(io: DuplexStream) {
    let (read, mut write) = tokio::io::split(io);
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"200 toy\r\n").await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        let reply = match line.split_once(' ').unwrap_or((&line, "")) {
            ("ECHO", text) => format!("299 {text}\r\n"),
            ("LIST", _) => "215 list\r\nb 2\r\na 1\r\nc 3\r\n.\r\n".to_owned(),
            ("DIE", _) => return,
            ("QUIT", _) => {
                let _ = write.write_all(b"205 bye\r\n").await;
                return;
            }
            _ => "500 what\r\n".to_owned(),
        };
        if write.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Driver for Toy {
    type Io = DuplexStream;

    async fn start(&mut self, setup: &Setup) -> anyhow::Result<Support> {
        self.setup = setup.clone();
        Ok(match &setup.mode {
            Some(mode) => Support::Cannot(format!("no mode {mode}")),
            None => Support::Done,
        })
    }

    async fn connect(&mut self, _name: &str) -> anyhow::Result<DuplexStream> {
        let (ours, theirs) = duplex(64);
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(serve(theirs));
        Ok(ours)
    }

    async fn accept(&mut self, _name: &str) -> anyhow::Result<DuplexStream> {
        let (ours, theirs) = duplex(64);
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(async move {
            let (read, mut write) = tokio::io::split(theirs);
            let mut lines = BufReader::new(read).lines();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "200 ready");
            write.write_all(b"DATE\r\n").await.unwrap();
            let _ = lines.next_line().await;
        });
        Ok(ours)
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        Ok(match action {
            Action::Run(words) => {
                Support::Output(vec!["one".into(), words.join("+"), "three".into()])
            }
            Action::Metric(_, _) => Support::Output(vec!["7".into()]),
            Action::Group { .. } => Support::Done,
            _ => Support::Cannot("toy".into()),
        })
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn play(text: &str, bless: bool) -> newsreel_testkit::Report {
    let transcript = parse(Path::new("t.nntp"), Path::new("."), text).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut toy = Toy::default();
    let mut runner = Runner::new(&mut toy, Duration::from_secs(5));
    if bless {
        runner = runner.blessing();
    }
    runtime.block_on(runner.play(&transcript))
}

#[track_caller]
fn passes(text: &str) {
    let report = play(text, false);
    assert_eq!(report.failure(), None);
    assert!(
        report
            .verdicts
            .iter()
            .all(|(_, verdict)| *verdict == Verdict::Passed),
        "{report:?}"
    );
}

#[track_caller]
fn fails(text: &str, expected: Expect) {
    expected.assert_eq(&play(text, false).failure().unwrap());
}

#[test]
fn good_files_pass() {
    passes("# t\nS: 200 {*}\nC: ECHO a\nC: ECHO b\nS: 299 a\nS: 299 b\n");
    passes(
        "# t\nC: ECHO {x*300}\nS: 299 {x*300}\nC@b: ECHO 5\nS@b: 299 {n}\nC: ECHO {n}\nS: 299 5\n",
    );
    passes("# t\nC: LIST\nS: 215 {*}\nS= a 1\nS= b 2\nS= c 3\nS: .\n");
    passes("# t\nC: LIST\nS: 215 {*}\nS: b 2\nS+ c {*}\nS! d {*}\nS: .\n");
    passes("# t\nC: LIST\nS: 215 {*}\nS~ b {*}\nS~ a {*}\nS~ c {*}\nS: .\n");
    passes("# t\nC: LIST\nS: 215 {*}\nS~ {*} 2\nS~ {*}\nS: .\n");
    passes("# t\nC: ECHO a\nS: {298|299} a\nC: ECHO ab\nS: 299 {a|ab}\n");
    passes("# t\nC: DIE\n@closed\n@wait 2s\nC: ECHO back\nS: 299 back\n");
    passes(
        "# t\nC| ECHO \nC| x\\x0d\\x0a\nS| 299 x\\x0d\\x0a\nC: ECHO y\n@shutdown\nS: 299 y\n"
            .replace("ECHO \n", "ECHO\\x20\n")
            .as_str(),
    );
    passes("# t\n@with a = 1, 2\n@with b = x\n@group misc.test\nC: ECHO 1\nS: 299 1\n");
    passes("# t\n@run a b\nO: one\nO: a+{*}\n@metric m 7\n");
    passes("# t\n@upstream up\nC@up: DATE\nS@up: 111 20260101000000\n");
}

/// More than both sides' buffers hold, said in one go.
#[test]
fn a_long_pipeline_does_not_lock() {
    let commands = "C: ECHO 0123456789\n".repeat(500);
    let replies = "S: 299 0123456789\n".repeat(500);
    passes(&format!("# t\n{commands}{replies}"));
}

#[test]
fn differences_are_told_with_their_line() {
    fails(
        "# t\nC: ECHO a\nS: 299 b\n",
        expect![[r#"
            t.nntp:3: got "299 a"
              the line: S: 299 b
              before:   S: 200 toy
              before:   C: ECHO a
              before:   S: 299 a"#]],
    );
    fails(
        "# t\nC: LIST\nS: 215 {*}\nS= a 1\nS= b 2\nS: .\n",
        expect![[r#"
            t.nntp:6: the block has one line more: "c 3"
              the line: S: .
              before:   C: LIST
              before:   S: 215 list
              before:   S: b 2
              before:   S: a 1
              before:   S: c 3
              before:   S: ."#]],
    );
    for (text, start) in [
        (
            "# t\nC: LIST\nS: 215 {*}\nS+ d\nS: .\n",
            "t.nntp:4: no such line in the block",
        ),
        (
            "# t\nC: LIST\nS: 215 {*}\nS~ a 1\nS~ b 2\nS: .\n",
            "t.nntp:6: the block has one line more: \"c 3\"",
        ),
        (
            "# t\nC: LIST\nS: 215 {*}\nS~ {*}\nS~ b 2\nS: .\n",
            "t.nntp:5: no such line in the block",
        ),
        (
            "# t\nC: LIST\nS: 215 {*}\nS! a 1\nS: .\n",
            "t.nntp:4: the block has it: \"a 1\"",
        ),
        (
            "# t\nC: LIST\nS: 215 {*}\nS+ a 1\nS: b 2\nS: a 1\nS: .\n",
            "t.nntp:6: no such line",
        ),
        (
            "# t\nC: ECHO a\nS: {431|438} a\n",
            "t.nntp:3: got \"299 a\"",
        ),
        (
            "# t\nC: ECHO a\nS: 299 a\nS: more\n",
            "t.nntp:4: nothing came within 5s",
        ),
        (
            "# t\nC: ECHO a\n",
            "t.nntp:2: at the end, after QUIT, came \"299 a\"",
        ),
        (
            "# t\nC: DIE\n",
            "t.nntp:2: expected a line, but the connection was closed",
        ),
        (
            "# t\nC: ECHO a\n@closed\n",
            "t.nntp:3: expected the end of the connection, got \"299 a\"",
        ),
        ("# t\nC: ECHO {n}\n", "t.nntp:2: {n} has not been seen yet"),
        (
            "# t\n@run a\nO: two\n",
            "t.nntp:3: the tool printed no such line",
        ),
        ("# t\n@metric m 8\n", "t.nntp:2: got \"7\""),
        ("# t\nC< none.eml\n", "t.nntp:2: reading ./none.eml"),
    ] {
        let failure = play(text, false).failure().unwrap();
        assert!(failure.starts_with(start), "{failure}");
    }
}

#[test]
fn what_the_driver_cannot_do_skips_with_its_reason() {
    let report = play("# t\n@mode transit\nC: X\nS: 1\n", false);
    assert_eq!(
        report.verdicts,
        [(String::new(), Verdict::Skipped("no mode transit".into()))]
    );
    let report = play("# t\n@crash\nC: X\nS: 1\n", false);
    assert_eq!(
        report.verdicts,
        [(String::new(), Verdict::Skipped("toy".into()))]
    );
}

/// Lines in any order are what was meant, whatever order they came in: they are compared, not rewritten.
#[test]
fn bless_leaves_lines_in_any_order_alone() {
    let sets = [
        "S: b 2\nS+ c {*}\nS! d\nS: .\n",
        "S= c 3\nS= b 2\nS= a 1\nS: .\n",
    ];
    for set in sets {
        let report = play(&format!("# t\nC: LIST\nS: 216 x\n{set}"), true);
        let blessed = report.blessed.as_deref();
        let expected = format!("# t\nC: LIST\nS: 215 list\n{set}");
        assert_eq!(blessed, Some(expected.as_str()), "{report:?}");
    }
    let failure = play("# t\nC: LIST\nS: 215 x\nS+ z\nS: .\n", true).failure();
    assert!(
        failure
            .unwrap()
            .starts_with("t.nntp:4: no such line in the block")
    );
}

#[test]
fn bless_rewrites_what_differs_and_keeps_holes() {
    let report = play(
        "# t\nS: 201 {*}\nC: ECHO a\nC: LIST\nS: 299 a\nS: 214 {*}\nS: {first} 2\nS: x\nS: .\nC: NO\nS: 299 b\n",
        true,
    );
    expect![[r#"
        # t
        S: 200 {*}
        C: ECHO a
        C: LIST
        S: 299 a
        S: 215 {*}
        S: {first} 2
        S: a 1
        S: c 3
        S: .
        C: NO
        S: 500 what
    "#]]
    .assert_eq(&report.blessed.unwrap());
    assert_eq!(
        play(
            "# t\nC: LIST\nS: 215 list\nS: b 2\nS: a 1\nS: c 3\nS: .\n",
            true
        )
        .blessed,
        None
    );
}
