//! A filter's program: its processes, each a task that starts it, hands it articles, and starts it again.
//!
//! Nobody waits for a process that does not work: articles are taken up only while one answers in time.  What is asked goes
//! through a bounded queue; what finds no room there, or is asked while none works, is not judged.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use newsreel_host::process::kill_group;
use newsreel_service::{Reject, Subject, Verdict};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::SAID;
use crate::config::FilterRule;
use crate::counts::Counts;
use crate::protocol::{ANSWER_OCTETS_MAX, Answer, GREETING, parse_answer, write_article};

/// Articles that wait for a program at most, whatever their number of processes; they are in memory for their connections anyway.
pub const WAITING_MAX: usize = 1024;

/// A program that has ended is started again after this, after each further failure in twice the time.
const PAUSE: Duration = Duration::from_secs(1);

/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A verdict to come; an error: there will be none.
pub(crate) type Asked = oneshot::Receiver<Verdict>;

#[derive(Debug)]
struct Job {
    subject: Subject,
    /// So long somebody waits for it.
    until: Instant,
    answer: oneshot::Sender<Verdict>,
}

/// The program with its processes.
#[derive(Debug)]
pub(crate) struct Program {
    queue: mpsc::Sender<Job>,
    /// Processes that answer in time.
    working: Arc<AtomicUsize>,
    processes: usize,
    /// A permit for each process that is ready, or has failed.
    tried: Arc<Semaphore>,
    /// Dropped, it ends the tasks, and they their processes.
    _tasks: JoinSet<()>,
}

impl Program {
    pub(crate) fn start(rule: &FilterRule, counts: &Arc<Counts>) -> Self {
        let (queue, jobs) = mpsc::channel(WAITING_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        let working = Arc::new(AtomicUsize::new(0));
        let tried = Arc::new(Semaphore::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..rule.instances {
            let keeper = Keeper {
                rule: rule.clone(),
                jobs: Arc::clone(&jobs),
                working: Arc::clone(&working),
                tried: Some(Arc::clone(&tried)),
                counts: Arc::clone(counts),
                is_working: false,
                number: 0,
            };
            tasks.spawn(keeper.run());
        }
        Self {
            queue,
            working,
            processes: rule.instances as usize,
            tried,
            _tasks: tasks,
        }
    }

    /// When each process is ready, or has failed.
    pub(crate) async fn begun(&self) {
        let all = u32::try_from(self.processes).unwrap_or(u32::MAX);
        // Not closed before it is dropped.
        let _ = self.tried.acquire_many(all).await;
    }

    /// Hands an article over; none: nobody would judge it.
    pub(crate) fn ask(&self, subject: &Subject, until: Instant) -> Option<Asked> {
        if self.working.load(Ordering::Acquire) == 0 {
            return None;
        }
        let (answer, asked) = oneshot::channel();
        let subject = subject.clone();
        let job = Job {
            subject,
            until,
            answer,
        };
        self.queue.try_send(job).ok()?;
        Some(asked)
    }
}

/// Who keeps one process running.
struct Keeper {
    rule: FilterRule,
    jobs: Arc<Mutex<mpsc::Receiver<Job>>>,
    working: Arc<AtomicUsize>,
    /// Told once.
    tried: Option<Arc<Semaphore>>,
    counts: Arc<Counts>,
    is_working: bool,
    /// Of the last article that was handed over.
    number: u64,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.note(false);
    }
}

/// A running process, which leads a group with what it starts.  One that is dropped ends by the end of its input, if it is sound;
/// one that failed is killed.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Keeper {
    async fn run(mut self) {
        let filter = self.rule.name.clone();
        let mut pause = PAUSE;
        loop {
            let handed_over = self.number;
            let ended = match self.start().await {
                Ok(mut process) => {
                    tracing::info!(target: "newsreel::filter", %filter, "ready");
                    let Err(why) = self.serve(&mut process).await else {
                        return;
                    };
                    process.end().await;
                    why
                }
                Err(error) => error,
            };
            self.note(false);
            self.has_tried();
            if self.number > handed_over {
                pause = PAUSE;
            }
            let pause_s = pause.as_secs();
            tracing::error!(target: "newsreel::filter", %filter, error = %ended, pause_s,
                "the program is started again after a pause; until then filter.when_down holds");
            sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    fn has_tried(&mut self) {
        if let Some(tried) = self.tried.take() {
            tried.add_permits(1);
        }
    }

    /// Whether its process answers in time.
    fn note(&mut self, is_working: bool) {
        match (self.is_working, is_working) {
            (false, true) => self.working.fetch_add(1, Ordering::AcqRel),
            (true, false) => self.working.fetch_sub(1, Ordering::AcqRel),
            _ => return,
        };
        self.is_working = is_working;
    }

    /// Starts the process and waits until it says that it is ready.
    async fn start(&self) -> io::Result<Process> {
        let mut words = self.rule.program.split_ascii_whitespace();
        let mut child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no input or output"));
        };
        let mut process = Process {
            child,
            input,
            output: BufReader::new(output),
        };
        let hung = Duration::from_secs(self.rule.hung_s);
        let said = match timeout(hung, process.line()).await {
            Ok(Ok(said)) if said == GREETING => return Ok(process),
            Ok(Ok(said)) => format!("it said {said:?} where {GREETING:?} comes first"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not say {GREETING:?} in time (filter.hung_s)"),
        };
        process.end().await;
        Err(io::Error::other(said))
    }

    /// Hands articles over until the process fails; `Ok`: nobody asks any more.
    async fn serve(&mut self, process: &mut Process) -> io::Result<()> {
        self.note(true);
        self.has_tried();
        let jobs = Arc::clone(&self.jobs);
        loop {
            let next = async { jobs.lock().await.recv().await };
            let job = tokio::select! {
                job = next => job,
                ended = process.child.wait() => {
                    return Err(io::Error::other(format!("it ended: {}", ended?)));
                }
            };
            let Some(Job {
                subject,
                until,
                answer,
            }) = job
            else {
                return Ok(());
            };
            // Its time was up while it waited.
            if answer.is_closed() {
                continue;
            }
            let verdict = self.judged(process, &subject, until).await?;
            let _ = answer.send(verdict);
        }
    }

    /// What the process says of an article.  While it is late nobody else is sent to it, nor while an article is with it that
    /// had waited for others too long: all that was sent at once would else wait anew with each part of it.
    async fn judged(
        &mut self,
        process: &mut Process,
        subject: &Subject,
        until: Instant,
    ) -> io::Result<Verdict> {
        self.number += 1;
        let number = self.number;
        let late = Duration::from_millis(self.rule.late_ms);
        let hung = Duration::from_secs(self.rule.hung_s);
        let begun = Instant::now();
        let asking = process.ask(number, subject);
        tokio::pin!(asking);
        // Those who wait must find it late when they give up, else they would hand over the next and wait again.
        let until = until - EARLIER.min(late / 20);
        let line = match tokio::time::timeout_at(until, &mut asking).await {
            Ok(line) => line?,
            Err(_) => {
                let filter = &self.rule.name;
                tracing::warn!(target: "newsreel::filter", %filter, late_ms = self.rule.late_ms, "late");
                self.note(false);
                let line = tokio::time::timeout_at(begun + late.max(hung), asking).await;
                let line = line.map_err(|_| io::Error::other("it hangs (filter.hung_s)"))??;
                self.note(true);
                line
            }
        };
        let answer = parse_answer(&line, number)
            .ok_or_else(|| io::Error::other(format!("it said {line:?} of article {number}")))?;
        Ok(self.verdict(answer))
    }

    fn verdict(&self, answer: Answer<'_>) -> Verdict {
        let filter = &self.rule.name;
        match answer {
            Answer::Accept => Verdict::Accept,
            Answer::Drop => Verdict::Drop,
            Answer::Reject("") => Verdict::Reject(REFUSED),
            Answer::Reject(text) => Verdict::Reject(SAID.kept(text).unwrap_or(REFUSED)),
            Answer::Label(label) => {
                tracing::info!(target: "newsreel::filter", %filter, label, "labelled");
                self.counts.labelled();
                Verdict::Accept
            }
            Answer::Class(class) => SAID.kept(class).map_or(Verdict::Accept, Verdict::Class),
        }
    }
}

/// A process is noted as late so long before its articles' time is up.
const EARLIER: Duration = Duration::from_millis(10);

/// For a refusal without a text.
const REFUSED: &str = Reject::Filtered.text();

impl Process {
    /// Kills it, with what it started, unless it has ended by itself.
    async fn end(&mut self) {
        if let Some(leader) = self.child.id() {
            kill_group(leader);
        }
        let _ = self.child.kill().await;
    }

    /// Hands an article over and waits for the line it answers.
    async fn ask(&mut self, number: u64, subject: &Subject) -> io::Result<String> {
        let mut told = Vec::with_capacity(subject.article.len() + 64);
        write_article(number, subject, &mut told);
        self.input.write_all(&told).await?;
        self.input.flush().await?;
        self.line().await
    }

    /// The next line, without its end.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut output = (&mut self.output).take(ANSWER_OCTETS_MAX as u64);
        output.read_until(b'\n', &mut line).await?;
        match line.strip_suffix(b"\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).trim_end().to_owned()),
            None if line.is_empty() => Err(io::Error::other("it closed its output")),
            None => Err(io::Error::other("it said a line that does not end")),
        }
    }
}
