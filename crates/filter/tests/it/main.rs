//! Filters as the server runs them: shell scripts that judge, dawdle, die and talk nonsense.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]
#![expect(clippy::disallowed_methods, reason = "writes scripts, measures time")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use newsreel_filter::{FilterRule, Filters};
use newsreel_service::{ArticleFilter as _, Subject, Verdict};

/// Judges by a word in the article.
const JUDGE: &str = r#"#!/bin/sh
echo "newsreel-filter 1"
while read -r _ number octets kind from; do
    article=$(head -c "$octets" | tr -d '\r')
    case $article in
        *say-reject*) echo "$number reject Not this" ;;
        *say-nothing-more*) echo "$number reject" ;;
        *say-drop*) echo "$number drop" ;;
        *say-label*) echo "$number label strange" ;;
        *say-class*) echo "$number class junk" ;;
        *say-who*) echo "$number reject $kind $from $octets" ;;
        *be-slow*) sleep 2; echo "$number reject too late" ;;
        *be-wrong*) echo "$((number + 1)) accept" ;;
        *be-stuck*) sleep 600 & echo $! > "$0.pid"; wait ;;
        *die*) exit 3 ;;
        *) echo "$number accept" ;;
    esac
done
"#;

struct Script(tempfile::TempDir);

impl Script {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn rule(&self, more: &str) -> FilterRule {
        let path = self.0.path().join("filter");
        let text = format!(
            "name = 'it'\nprogram = '/bin/sh {}'\n{more}",
            path.display()
        );
        toml::from_str(&text).unwrap()
    }
}

/// Begun, with this in each rule.
async fn begun(scripts: &[(&Script, &str)]) -> Filters {
    let rules = scripts.iter().enumerate().map(|(at, (script, more))| {
        let name = format!("it{at}");
        FilterRule {
            name,
            ..script.rule(more)
        }
    });
    let filters = Filters::start(&rules.collect::<Vec<_>>()).unwrap();
    filters.begun().await;
    filters
}

fn subject(body: &str) -> Subject {
    let text = format!("Newsgroups: misc.test,alt.x\r\nSubject: s\r\n\r\n{body}\r\n.\r\n");
    Subject {
        article: text.into_bytes().into(),
        from: "192.0.2.7".parse().ok(),
        is_post: false,
    }
}

async fn judged(filters: &Filters, bodies: &[&str]) -> Vec<Verdict> {
    let subjects = bodies.iter().map(|body| subject(body)).collect();
    filters.judge(subjects).await
}

#[tokio::test]
async fn a_program_says_what_becomes_of_articles() {
    let script = Script::new(JUDGE);
    let filters = begun(&[(&script, "instances = 3")]).await;
    let said = judged(
        &filters,
        &[
            "fine",
            "say-reject",
            "say-nothing-more",
            "say-drop",
            "say-label",
            "say-class",
            "say-who",
        ],
    );
    assert_eq!(
        said.await,
        [
            Verdict::Accept,
            Verdict::Reject("Not this"),
            Verdict::Reject("Refused by a filter"),
            Verdict::Drop,
            Verdict::Accept,
            Verdict::Class("junk"),
            Verdict::Reject("feed 192.0.2.7 52"),
        ]
    );
    let many = vec!["fine"; 500];
    assert_eq!(judged(&filters, &many).await, [Verdict::Accept; 500]);
    let counts = filters.counts().remove(0);
    assert_eq!((counts.accepted, counts.labelled), (503, 1));
    assert_eq!((counts.classed, counts.rejected), (1, 3));
    assert_eq!((counts.dropped, counts.unjudged), (1, 0));
}

#[tokio::test]
async fn it_judges_what_it_is_for() {
    let script = Script::new(JUDGE);
    let (reject, accept) = (Verdict::Reject("Not this"), Verdict::Accept);
    for (more, is_post, expected) in [
        ("", false, reject),
        ("groups = 'alt.*'", false, reject),
        ("groups = 'comp.*'", false, accept),
        ("feeds = false", false, accept),
        ("feeds = false", true, reject),
        ("posts = false", true, accept),
    ] {
        let filters = begun(&[(&script, more)]).await;
        let subject = Subject {
            is_post,
            ..subject("say-reject")
        };
        assert_eq!(filters.judge(vec![subject]).await, [expected], "{more}");
    }
}

#[tokio::test]
async fn the_first_that_does_not_take_it_decides() {
    let judge = Script::new(JUDGE);
    let other = Script::new(
        &JUDGE
            .replace("say-reject", "fine")
            .replace("say-class", "-"),
    );
    let filters = begun(&[(&judge, ""), (&other, "")]).await;
    let said = judged(&filters, &["say-reject", "fine", "say-class", "else"]).await;
    let (reject, class) = (Verdict::Reject("Not this"), Verdict::Class("junk"));
    assert_eq!(said, [reject, reject, class, Verdict::Accept]);
}

/// Each part of what was sent at once waited until its time was up, where the program was in time for each single article.
#[tokio::test]
async fn what_was_sent_at_once_does_not_wait_part_by_part() {
    let script = Script::new(&JUDGE.replace("*be-slow*) sleep 2", "*be-slow*) sleep 0.8"));
    let filters = begun(&[(&script, "late_ms = 1000\nwhen_down = 'accept'")]).await;
    let began = Instant::now();
    assert_eq!(judged(&filters, &["be-slow"; 3]).await[1], Verdict::Accept);
    let first = began.elapsed();
    for _ in 0..20 {
        judged(&filters, &["be-slow"; 3]).await;
    }
    let all = began.elapsed();
    assert!(first >= Duration::from_millis(900), "{first:?}");
    assert!(all < Duration::from_millis(1500), "{all:?}");
}

/// Who is late costs its article the time it has, and those behind it nothing.
#[tokio::test]
async fn nobody_waits_for_a_slow_program() {
    let script = Script::new(JUDGE);
    let rule = "late_ms = 500\nwhen_down = 'defer'";
    let filters = begun(&[(&script, rule)]).await;
    let began = Instant::now();
    let said = judged(&filters, &["fine", "be-slow", "say-reject"]).await;
    assert_eq!(said, [Verdict::Accept, Verdict::Later, Verdict::Later]);
    let counts = filters.counts().remove(0);
    assert_eq!((counts.accepted, counts.unjudged), (1, 2));
    let late = began.elapsed();
    assert!(late < Duration::from_millis(1900), "{late:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    let said = judged(&filters, &["say-reject"; 50]).await;
    assert_eq!(said, [Verdict::Later; 50]);
    assert!(began.elapsed() < Duration::from_millis(400));
    // It has caught up: what it said too late is forgotten.
    let again = wait_for(&filters, "say-reject", Verdict::Reject("Not this"));
    assert!(again.await < Duration::from_secs(5));
}

/// How long until an article gets this verdict.
async fn wait_for(filters: &Filters, body: &str, verdict: Verdict) -> Duration {
    let began = Instant::now();
    while judged(filters, &[body]).await != [verdict] {
        assert!(began.elapsed() < Duration::from_secs(20), "{body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

#[tokio::test]
async fn a_program_that_fails_is_started_again() {
    let script = Script::new(JUDGE);
    let rule = "when_down = 'reject'\nhung_s = 1\nlate_ms = 100";
    let down = Verdict::Reject("Refused by a filter");
    for body in ["die", "be-wrong"] {
        let filters = begun(&[(&script, rule)]).await;
        assert_eq!(judged(&filters, &[body]).await, [down], "{body}");
        wait_for(&filters, "fine", Verdict::Accept).await;
    }
}

/// Only the program was killed once, and what it had started went on.
#[tokio::test]
async fn one_that_hangs_goes_with_what_it_started() {
    let script = Script::new(JUDGE);
    let filters = begun(&[(&script, "hung_s = 1\nlate_ms = 100")]).await;
    judged(&filters, &["be-stuck"]).await;
    wait_for(&filters, "fine", Verdict::Accept).await;
    let started = std::fs::read_to_string(script.0.path().join("filter.pid")).unwrap();
    let stat = Path::new("/proc").join(started.trim()).join("stat");
    let began = Instant::now();
    // One that nobody has waited for yet does nothing, either.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{started} goes on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_does_not_begin_judges_nothing() {
    for text in [
        "#!/bin/sh\necho hello\ncat > /dev/null\n",
        "#!/bin/sh\nexit 1\n",
        "#!/nonexistent\n",
        "#!/bin/sh\nsleep 30\n",
    ] {
        let script = Script::new(text);
        let began = Instant::now();
        let filters = begun(&[(&script, "hung_s = 1\nwhen_down = 'defer'")]).await;
        assert_eq!(
            judged(&filters, &["fine"]).await,
            [Verdict::Later],
            "{text}"
        );
        assert!(began.elapsed() < Duration::from_secs(5), "{text}");
    }
}
