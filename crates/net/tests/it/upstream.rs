//! The client against scripted servers: the transcripts in `tests/transcripts/upstream`.
//!
//! What a file says by `@run` is done one after the other by a task, while the file goes on as the server:
//!
//! - `open NAME [tls|starttls] [user=U] [password=P] [clear] [compress] [feeds] [answer_s=S]`: a
//!   connection to `@upstream NAME`
//! - `ask WORDS`: a command, and its status line; `ask -` for none of it but the next status line
//! - `pipeline WORDS | WORDS`: commands in one go
//! - `lines [MAX]`, `block [MAX]`: the block that follows, line by line or as octets
//! - `article FILE`: sends it
//! - `facts`: whether it may be posted, whether the connection is idle, and still there
//! - `quit`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use newsreel_net::client::{Client, ClientError, Login, Remote, Security, Trust};
use newsreel_testkit::transcript::{Action, parse};
use newsreel_testkit::{Driver, Runner, Setup, Support, Verdict, certificate, read_article};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

const BLOCK_OCTETS_MAX: usize = 1 << 20;

fn tests_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    folder.canonicalize().unwrap()
}

enum Job {
    Do(Vec<String>, Option<DuplexStream>),
    Tell(oneshot::Sender<Vec<String>>),
}

#[derive(Debug, Default)]
struct Scripted {
    waiting: BTreeMap<String, DuplexStream>,
    jobs: Option<mpsc::Sender<Job>>,
    task: Option<JoinHandle<()>>,
}

/// Where it goes, as `open` says.
fn remote_of(words: &[String]) -> Remote {
    let mut remote = Remote::reader("news.test.example");
    let mut login = Login {
        user: String::new(),
        password: String::new(),
        in_clear: false,
    };
    let own = certificate().unwrap().files()[0].1.as_bytes().to_vec();
    let trust = Trust::new(&remote.host, Some(&own), None).unwrap();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("tls", _) => remote.security = Security::Implicit(trust.clone()),
            ("starttls", _) => remote.security = Security::Starttls(trust.clone()),
            ("user", user) => login.user = user.to_owned(),
            ("password", password) => login.password = password.to_owned(),
            ("clear", _) => login.in_clear = true,
            ("compress", _) => remote.compress = true,
            ("answer_s", within) => {
                remote.times.answer = Duration::from_secs(within.parse().unwrap());
            }
            ("feeds", _) => remote.reads = false,
            _ => panic!("open knows no {word}"),
        }
    }
    remote.login = (!login.user.is_empty()).then_some(login);
    remote
}

async fn status(
    client: &mut Client<DuplexStream>,
    told: &mut Vec<String>,
) -> Result<(), ClientError> {
    let code = client.reply("the test").await?;
    let text = String::from_utf8_lossy(client.text());
    told.push(format!("{code} {text}").trim_end().to_owned());
    Ok(())
}

async fn act(
    client: &mut Client<DuplexStream>,
    words: &[String],
    told: &mut Vec<String>,
) -> Result<(), ClientError> {
    let most = |at: usize| words.get(at).map(|word| word.parse().unwrap());
    let octets = |words: &[String]| -> Vec<Vec<u8>> {
        words.iter().map(|word| word.clone().into_bytes()).collect()
    };
    match words[0].as_str() {
        "ask" if words[1] == "-" => status(client, told).await?,
        "ask" => {
            let words = octets(&words[1..]);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            client.command(&words)?;
            status(client, told).await?;
        }
        "pipeline" => {
            for words in words[1..].split(|word| word == "|") {
                let words = octets(words);
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                client.command(&words)?;
            }
            client.send().await?;
        }
        "lines" => {
            let (most, mut count) = (most(1).unwrap_or(usize::MAX), 0);
            while let Some(line) = client.line("the list").await? {
                count += 1;
                if count <= most {
                    told.push(String::from_utf8_lossy(line).into_owned());
                }
            }
            let left_out = client.lines_left_out();
            told.push(format!("{count} lines, {left_out} left out"));
        }
        "block" => {
            let mut block = Vec::new();
            let most = most(1).unwrap_or(BLOCK_OCTETS_MAX);
            client.block("the block", most, &mut block).await?;
            told.push(block.escape_ascii().to_string());
        }
        "article" => {
            let article = read_article(&tests_folder().join(&words[1])).unwrap();
            client.article(&article).await?;
        }
        "facts" => {
            let (may_post, is_idle) = (client.may_post(), client.is_idle());
            let is_fresh = client.is_fresh().await;
            told.push(format!(
                "may post {may_post}, idle {is_idle}, fresh {is_fresh}"
            ));
        }
        other => panic!("no verb {other}"),
    }
    Ok(())
}

async fn work(mut jobs: mpsc::Receiver<Job>) {
    let (mut client, mut told) = (None, Vec::new());
    while let Some(job) = jobs.recv().await {
        let done = match job {
            Job::Tell(to) => {
                to.send(std::mem::take(&mut told)).unwrap();
                continue;
            }
            Job::Do(words, Some(io)) => {
                let opened = Client::open(io, &remote_of(&words)).await;
                opened.map(|opened| client = Some(opened))
            }
            Job::Do(words, None) if words[0] == "quit" => {
                client.take().unwrap().quit().await;
                Ok(())
            }
            Job::Do(words, None) => act(client.as_mut().unwrap(), &words, &mut told).await,
        };
        if let Err(error) = done {
            told.push(error.to_string());
        }
    }
}

impl Driver for Scripted {
    type Io = DuplexStream;

    async fn start(&mut self, _setup: &Setup) -> anyhow::Result<Support> {
        let (jobs, received) = mpsc::channel(64);
        #[expect(clippy::disallowed_methods, reason = "stop joins it")]
        let task = tokio::spawn(work(received));
        *self = Self {
            waiting: BTreeMap::new(),
            jobs: Some(jobs),
            task: Some(task),
        };
        Ok(Support::Done)
    }

    async fn connect(&mut self, _name: &str) -> anyhow::Result<DuplexStream> {
        anyhow::bail!("there is no server of ours here")
    }

    async fn accept(&mut self, name: &str) -> anyhow::Result<DuplexStream> {
        let waiting = self.waiting.remove(name);
        waiting.ok_or_else(|| anyhow::anyhow!("nobody opens {name}"))
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        let Action::Run(words) = action else {
            return Ok(Support::Cannot(format!("{action:?}")));
        };
        let jobs = self.jobs.as_ref().unwrap();
        match words[0].as_str() {
            "result" => {
                let (to, told) = oneshot::channel();
                jobs.send(Job::Tell(to)).await?;
                return Ok(Support::Output(told.await?));
            }
            "open" => {
                let (ours, theirs) = duplex(4096);
                self.waiting.insert(words[1].clone(), theirs);
                jobs.send(Job::Do(words[2..].to_vec(), Some(ours))).await?;
            }
            _ => jobs.send(Job::Do(words.clone(), None)).await?,
        }
        Ok(Support::Done)
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.jobs = None;
        if let Some(task) = self.task.take() {
            task.await?;
        }
        Ok(())
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "reads transcripts")]
fn transcripts_of_upstreams_hold() {
    let mut played = 0;
    for entry in std::fs::read_dir(tests_folder().join("transcripts/upstream")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let transcript = parse(&path, &tests_folder(), &text);
        let transcript = transcript.unwrap_or_else(|error| panic!("{error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let mut driver = Scripted::default();
        let report = runtime.block_on(async {
            let mut runner = Runner::new(&mut driver, Duration::from_secs(4000));
            runner.play(&transcript).await
        });
        if let Some(failure) = report.failure() {
            panic!("{failure}");
        }
        for (_, verdict) in &report.verdicts {
            assert_eq!(*verdict, Verdict::Passed, "{}", path.display());
        }
        played += 1;
    }
    assert!(played > 0);
}
