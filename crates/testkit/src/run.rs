//! Playing a transcript: sends what `C` says, compares what comes with what `S` says.
//!
//! The first difference ends a play with file and line, what was expected, what came and the last lines before it;
//! with `bless` differences become edits and the play goes on.  Reading is bounded by a time per line, so a play always ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::article::{same_article, show};
use crate::bless::{Edit, apply, merged};
use crate::channel::{Came, Channel};
use crate::driver::{Driver, Setup, Support};
use crate::transcript::{Action, Bindings, Speech, Step, StepKind, Template, Transcript};

/// How one play ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as written.
    Passed,
    /// The driver cannot do what the file needs.
    Skipped(String),
    /// A difference, with `path:line:` in front.
    Failed(String),
}

/// The plays of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// One verdict per combination of `@with` values, with the combination's name (empty without `@with`).
    pub verdicts: Vec<(String, Verdict)>,
    /// The file with its `S:` lines as they were answered, when blessing and something differed.
    pub blessed: Option<String>,
}

impl Report {
    /// The first failure.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.verdicts
            .iter()
            .find_map(|(with, verdict)| match verdict {
                Verdict::Failed(message) if with.is_empty() => Some(message.clone()),
                Verdict::Failed(message) => Some(format!("{message}\n  with {with}")),
                Verdict::Passed | Verdict::Skipped(_) => None,
            })
    }
}

/// Plays transcripts on a driver.
#[derive(Debug)]
pub struct Runner<'d, D> {
    driver: &'d mut D,
    wait: Duration,
    bless: bool,
}

/// Lines of the conversation that a failure shows.
const CONTEXT_LINES: usize = 6;

impl<'d, D: Driver> Runner<'d, D> {
    /// A runner that waits up to `wait` for every line.
    pub const fn new(driver: &'d mut D, wait: Duration) -> Self {
        Self {
            driver,
            wait,
            bless: false,
        }
    }

    /// Collects differences of `S:` lines as edits instead of failing.
    #[must_use]
    pub const fn blessing(mut self) -> Self {
        self.bless = true;
        self
    }

    /// Plays a file, once per combination of its `@with` values.
    pub async fn play(&mut self, transcript: &Transcript) -> Report {
        let mut report = Report {
            verdicts: Vec::new(),
            blessed: None,
        };
        for with in combinations(&transcript.with) {
            let name: Vec<String> = with
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            let setup = Setup {
                config: transcript.config.clone(),
                mode: transcript.mode.clone(),
                with,
                reversed: transcript.reversed.clone(),
            };
            let mut play = Play {
                driver: self.driver,
                transcript,
                wait: self.wait,
                bless: self.bless && report.verdicts.is_empty(),
                channels: BTreeMap::new(),
                bindings: Bindings::new(),
                context: Vec::new(),
                output: Vec::new().into_iter(),
                edits: Vec::new(),
            };
            let verdict = play.all(&setup).await;
            if !play.edits.is_empty() {
                report.blessed = Some(apply(&transcript.source, &play.edits));
            }
            report.verdicts.push((name.join(", "), verdict));
        }
        report
    }
}

/// Every way to choose one value for each key.
fn combinations(with: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (key, values) in with {
        all = all
            .iter()
            .flat_map(|chosen: &Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut chosen = chosen.clone();
                    chosen.push((key.clone(), value.clone()));
                    chosen
                })
            })
            .collect();
    }
    all
}

/// Why a play stops.
enum Stop {
    Skip(String),
    Fail { line: usize, what: String },
}

type Played<T = ()> = Result<T, Stop>;

fn fail<T>(line: usize, what: impl Into<String>) -> Played<T> {
    Err(Stop::Fail {
        line,
        what: what.into(),
    })
}

struct Play<'p, D: Driver> {
    driver: &'p mut D,
    transcript: &'p Transcript,
    wait: Duration,
    bless: bool,
    channels: BTreeMap<String, Channel<D::Io>>,
    bindings: Bindings,
    context: Vec<String>,
    output: std::vec::IntoIter<String>,
    edits: Vec<Edit>,
}

impl<D: Driver> Play<'_, D> {
    async fn all(&mut self, setup: &Setup) -> Verdict {
        let played = self.start_and_steps(setup).await;
        self.channels.clear();
        let stopped = self.driver.stop().await;
        match (played, stopped) {
            (Ok(()), Ok(())) => Verdict::Passed,
            (Ok(()), Err(error)) => {
                self.failed(self.transcript.source.len(), &format!("stop: {error:#}"))
            }
            (Err(Stop::Skip(reason)), _) => Verdict::Skipped(reason),
            (Err(Stop::Fail { line, what }), _) => self.failed(line, &what),
        }
    }

    fn failed(&self, line: usize, what: &str) -> Verdict {
        let mut message = format!("{}:{line}: {what}", self.transcript.path.display());
        if let Some(source) = self.transcript.source.get(line.saturating_sub(1)) {
            let _ = write!(message, "\n  the line: {source}");
        }
        let from = self.context.len().saturating_sub(CONTEXT_LINES);
        for said in &self.context[from..] {
            let _ = write!(message, "\n  before:   {said}");
        }
        Verdict::Failed(message)
    }

    async fn start_and_steps(&mut self, setup: &Setup) -> Played {
        match self.driver.start(setup).await {
            Ok(Support::Done | Support::Output(_)) => {}
            Ok(Support::Cannot(reason)) => return Err(Stop::Skip(reason)),
            Err(error) => return fail(1, format!("the server did not start: {error:#}")),
        }
        let steps = &self.transcript.steps;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += match &step.kind {
                StepKind::Speech {
                    by_client,
                    connection,
                    speech,
                } => {
                    self.speech(&steps[at..], step.line, *by_client, connection, speech)
                        .await?
                }
                StepKind::Action(action) => {
                    self.flush_all(step.line).await?;
                    self.action(step.line, action).await?;
                    1
                }
                StepKind::Output(template) => {
                    self.tool_line(step.line, template)?;
                    1
                }
            };
        }
        self.flush_all(self.transcript.source.len()).await?;
        self.quit_all().await
    }

    /// One line of either side, or a whole block; returns how many steps were used.
    async fn speech(
        &mut self,
        steps: &[Step],
        line: usize,
        by_client: bool,
        connection: &str,
        speech: &Speech,
    ) -> Played<usize> {
        let reversed = self
            .transcript
            .reversed
            .iter()
            .any(|name| name == connection);
        let we_speak = by_client != reversed;
        self.open(line, connection, by_client, reversed).await?;
        if we_speak {
            self.say(line, connection, speech).await?;
            return Ok(1);
        }
        self.flush_all(line).await?;
        match speech {
            Speech::Line(template) if self.bless => {
                let _ = template;
                self.expect_run(steps, connection).await
            }
            Speech::Line(template) => {
                let came = self.line(line, connection).await?;
                self.compare(line, template, &came)?;
                Ok(1)
            }
            Speech::Raw(template) => {
                let want = template
                    .say(&self.bindings)
                    .map_err(|what| Stop::Fail { line, what })?;
                let came = self.channel(line, connection)?.octets(want.len()).await;
                if came == want {
                    return Ok(1);
                }
                fail(
                    line,
                    format!(
                        "expected the octets {:?}, got {:?}",
                        show(&want),
                        show(&came)
                    ),
                )
            }
            Speech::File(path) => {
                self.expect_article(line, connection, path).await?;
                Ok(1)
            }
            Speech::Repeat(times, template) => {
                for _ in 0..*times {
                    let came = self.line(line, connection).await?;
                    self.compare(line, template, &came)?;
                }
                Ok(1)
            }
            Speech::AnyOrder(_) | Speech::Must(_) | Speech::MustNot(_) => {
                self.expect_block(steps, line, connection).await
            }
        }
    }

    /// Opens the connection at its first use; a greeting that the file does not show is checked or given silently.
    async fn open(&mut self, line: usize, name: &str, by_client: bool, reversed: bool) -> Played {
        if self.channels.contains_key(name) {
            return Ok(());
        }
        let opened = if reversed {
            self.driver.accept(name).await
        } else {
            self.driver.connect(name).await
        };
        let io = match opened {
            Ok(io) => io,
            Err(error) => return fail(line, format!("cannot connect: {error:#}")),
        };
        self.channels
            .insert(name.to_owned(), Channel::new(io, self.wait));
        if !by_client {
            return Ok(());
        }
        if reversed {
            self.channel(line, name)?
                .outgoing
                .extend_from_slice(b"200 ready\r\n");
            return self.flush_all(line).await;
        }
        let greeting = self.line(line, name).await?;
        if greeting.starts_with(b"200 ") || greeting.starts_with(b"201 ") {
            return Ok(());
        }
        fail(line, format!("the greeting is {:?}", show(&greeting)))
    }

    fn channel(&mut self, line: usize, name: &str) -> Played<&mut Channel<D::Io>> {
        match self.channels.get_mut(name) {
            Some(channel) => Ok(channel),
            None => fail(line, format!("connection {name:?} is not open")),
        }
    }

    async fn say(&mut self, line: usize, name: &str, speech: &Speech) -> Played {
        let others: Vec<String> = self
            .channels
            .keys()
            .filter(|other| *other != name)
            .cloned()
            .collect();
        for other in others {
            self.flush(line, &other).await?;
        }
        let octets = |template: &Template, bindings: &Bindings| {
            template
                .say(bindings)
                .map_err(|what| Stop::Fail { line, what })
        };
        let mut said = match speech {
            Speech::Line(template) | Speech::Raw(template) => octets(template, &self.bindings)?,
            Speech::Repeat(times, template) => {
                let mut one = octets(template, &self.bindings)?;
                one.extend_from_slice(b"\r\n");
                one.repeat(*times)
            }
            Speech::File(path) => read_article(line, path)?,
            Speech::AnyOrder(_) | Speech::Must(_) | Speech::MustNot(_) => {
                return fail(line, "= + ! are for lines that are expected");
            }
        };
        self.note("C", name, &said);
        let is_line = matches!(speech, Speech::Line(_));
        let channel = self.channel(line, name)?;
        if is_line {
            channel.commands.push_back(said.clone());
            said.extend_from_slice(b"\r\n");
        }
        channel.outgoing.extend_from_slice(&said);
        Ok(())
    }

    fn note(&mut self, side: &str, name: &str, octets: &[u8]) {
        let mut text = show(&octets[..octets.len().min(160)]);
        if octets.len() > 160 {
            let _ = write!(text, "... ({} octets)", octets.len());
        }
        let at = if name.is_empty() {
            String::new()
        } else {
            format!("@{name}")
        };
        self.context.push(format!("{side}{at}: {text}"));
    }

    async fn flush(&mut self, line: usize, name: &str) -> Played {
        let channel = self.channel(line, name)?;
        if channel.outgoing.is_empty() {
            return Ok(());
        }
        match channel.flush().await {
            Ok(()) => Ok(()),
            Err(error) => fail(line, format!("sending: {error}")),
        }
    }

    async fn flush_all(&mut self, line: usize) -> Played {
        let names: Vec<String> = self.channels.keys().cloned().collect();
        for name in names {
            self.flush(line, &name).await?;
        }
        Ok(())
    }

    async fn line(&mut self, line: usize, name: &str) -> Played<Vec<u8>> {
        let wait = self.wait;
        match self.channel(line, name)?.line().await {
            Came::Line(octets) => {
                self.note("S", name, &octets);
                Ok(octets)
            }
            Came::Closed(left) if left.is_empty() => {
                fail(line, "expected a line, but the connection was closed")
            }
            Came::Closed(left) => fail(
                line,
                format!("closed in the middle of a line: {:?}", show(&left)),
            ),
            Came::Nothing(left) if left.is_empty() => {
                fail(line, format!("nothing came within {wait:?}"))
            }
            Came::Nothing(left) => fail(
                line,
                format!("no end of line within {wait:?}, only {:?}", show(&left)),
            ),
        }
    }

    fn compare(&mut self, line: usize, template: &Template, came: &[u8]) -> Played {
        if template.fits(came, &mut self.bindings) {
            return Ok(());
        }
        fail(line, format!("got {:?}", show(came)))
    }

    /// `S= S+ S!` and the plain lines among them, up to `S: .`.
    async fn expect_block(&mut self, steps: &[Step], line: usize, name: &str) -> Played<usize> {
        let block = block_of(steps, name);
        let Some((last, _)) = block.last().filter(|(_, speech)| is_dot(speech)) else {
            return fail(line, "a block with S= S+ S! must end with S: .");
        };
        let used = block.len();
        let mut came = Vec::new();
        loop {
            let octets = self.line(*last, name).await?;
            if octets == b"." {
                break;
            }
            came.push(octets);
        }
        let mut left: Vec<bool> = vec![true; came.len()];
        let mut ordered_from = 0;
        let mut closed = true;
        for (line, speech) in &block[..used - 1] {
            let (template, from) = match speech {
                Speech::Line(template) => (template, ordered_from),
                Speech::AnyOrder(template) => (template, 0),
                Speech::Must(template) | Speech::MustNot(template) => {
                    closed = false;
                    (template, 0)
                }
                _ => return fail(*line, "only lines may stand in a block"),
            };
            let found = (from..came.len())
                .find(|&place| left[place] && template.fits(&came[place], &mut self.bindings));
            match (speech, found) {
                (Speech::MustNot(_), Some(place)) => {
                    return fail(*line, format!("the block has it: {:?}", show(&came[place])));
                }
                (Speech::MustNot(_), None) => {}
                (_, None) => return fail(*line, "no such line in the block"),
                (_, Some(place)) => {
                    left[place] = false;
                    if matches!(speech, Speech::Line(_)) {
                        ordered_from = place + 1;
                    }
                }
            }
        }
        if closed && let Some(place) = left.iter().position(|&left| left) {
            return fail(
                *last,
                format!("the block has one line more: {:?}", show(&came[place])),
            );
        }
        Ok(used)
    }

    async fn expect_article(&mut self, line: usize, name: &str, path: &Path) -> Played {
        let sent = read_article(line, path)?;
        let mut served = Vec::new();
        loop {
            let octets = self.line(line, name).await?;
            if octets == b"." {
                break;
            }
            served.push(octets);
        }
        let sent: Vec<&[u8]> = lines_of(&sent);
        let served: Vec<&[u8]> = served.iter().map(Vec::as_slice).collect();
        match same_article(&sent[..sent.len().saturating_sub(1)], &served) {
            Ok(()) => Ok(()),
            Err(what) => fail(line, what),
        }
    }

    /// With `bless`: a run of plain `S:` lines, differences becoming edits.
    async fn expect_run(&mut self, steps: &[Step], name: &str) -> Played<usize> {
        let run: Vec<(usize, &Template)> = steps
            .iter()
            .map_while(|step| match &step.kind {
                StepKind::Speech {
                    by_client: false,
                    connection,
                    speech: Speech::Line(template),
                } if connection == name => Some((step.line, template)),
                _ => None,
            })
            .collect();
        let mut at = 0;
        while let Some((line, template)) = run.get(at) {
            let came = self.line(*line, name).await?;
            let command = self
                .channel(*line, name)?
                .commands
                .pop_front()
                .unwrap_or_default();
            if !template.fits(&came, &mut self.bindings) {
                self.edit(*line, &came);
            }
            at += 1;
            let next_is_plain = at < run.len();
            if has_block(&came, &command) && next_is_plain {
                at += self.bless_block(&run[at..], name).await?;
            }
        }
        Ok(run.len())
    }

    async fn bless_block(&mut self, run: &[(usize, &Template)], name: &str) -> Played<usize> {
        let dot = run.iter().position(|(_, template)| template.is(b"."));
        let block = &run[..dot.map_or(run.len(), |dot| dot + 1)];
        let Some((first, _)) = block.first() else {
            return Ok(0);
        };
        let mut lines = Vec::new();
        let mut differs = false;
        loop {
            let came = self.line(*first, name).await?;
            let old = block.get(lines.len());
            let fits = old.is_some_and(|(_, template)| template.fits(&came, &mut self.bindings));
            differs |= !fits;
            lines.push(match old {
                Some((line, _)) if fits => self.transcript.source[line - 1].clone(),
                _ => format!("{} {}", mark(name), Template::quote(&came)),
            });
            if came == b"." {
                break;
            }
        }
        if differs || lines.len() != block.len() {
            self.edits.push(Edit {
                first: *first,
                len: block.len(),
                lines,
            });
        }
        Ok(block.len())
    }

    fn edit(&mut self, line: usize, came: &[u8]) {
        let source = &self.transcript.source[line - 1];
        let (mark, old) = source.split_once(' ').unwrap_or((source, ""));
        let lines = vec![format!("{mark} {}", merged(old, came))];
        self.edits.push(Edit {
            first: line,
            len: 1,
            lines,
        });
    }

    async fn action(&mut self, line: usize, action: &Action) -> Played {
        match action {
            Action::Closed(name) => return self.expect_closed(line, name).await,
            Action::Shutdown(name) => {
                return match self.channel(line, name)?.shutdown().await {
                    Ok(()) => Ok(()),
                    Err(error) => fail(line, format!("shutdown: {error}")),
                };
            }
            Action::Drop(name) => {
                self.channels.remove(name);
                return Ok(());
            }
            Action::Restart | Action::Crash => self.channels.clear(),
            _ => {}
        }
        let support = match self.driver.act(action).await {
            Ok(support) => support,
            Err(error) => return fail(line, format!("{error:#}")),
        };
        match (action, support) {
            (_, Support::Cannot(reason)) => Err(Stop::Skip(reason)),
            (Action::Metric(_, expected), Support::Output(lines)) => {
                let template =
                    Template::parse(expected).map_err(|what| Stop::Fail { line, what })?;
                self.compare(line, &template, lines.join("\n").as_bytes())
            }
            (_, Support::Output(lines)) => {
                self.output = lines.into_iter();
                Ok(())
            }
            (_, Support::Done) => Ok(()),
        }
    }

    async fn expect_closed(&mut self, line: usize, name: &str) -> Played {
        let wait = self.wait;
        match self.channel(line, name)?.line().await {
            Came::Closed(left) if left.is_empty() => {
                self.channels.remove(name);
                Ok(())
            }
            Came::Line(octets) | Came::Closed(octets) => fail(
                line,
                format!(
                    "expected the end of the connection, got {:?}",
                    show(&octets)
                ),
            ),
            Came::Nothing(_) => fail(line, format!("the connection is still open after {wait:?}")),
        }
    }

    /// `O:` lines appear in this order among what the tool printed.
    fn tool_line(&mut self, line: usize, template: &Template) -> Played {
        for printed in self.output.by_ref() {
            if template.fits(printed.as_bytes(), &mut self.bindings) {
                return Ok(());
            }
        }
        fail(line, "the tool printed no such line (after the ones above)")
    }

    /// Stray output shows here: after QUIT comes 205 and nothing else.
    async fn quit_all(&mut self) -> Played {
        let line = self.transcript.source.len();
        let names: Vec<String> = self.channels.keys().cloned().collect();
        for name in names {
            if self.transcript.reversed.contains(&name) {
                continue;
            }
            let channel = self.channel(line, &name)?;
            if !channel.half_closed {
                channel.outgoing.extend_from_slice(b"QUIT\r\n");
                self.flush(line, &name).await?;
                let reply = self.line(line, &name).await?;
                if !reply.starts_with(b"205 ") {
                    return fail(
                        line,
                        format!("at the end, after QUIT, came {:?}", show(&reply)),
                    );
                }
            }
            self.expect_closed(line, &name).await?;
        }
        Ok(())
    }
}

fn mark(name: &str) -> String {
    if name.is_empty() {
        "S:".into()
    } else {
        format!("S@{name}:")
    }
}

fn is_dot(speech: &Speech) -> bool {
    matches!(speech, Speech::Line(template) if template.is(b"."))
}

/// The lines of a block up to and including `S: .`.
fn block_of<'s>(steps: &'s [Step], name: &str) -> Vec<(usize, &'s Speech)> {
    let mut block = Vec::new();
    for step in steps {
        match &step.kind {
            StepKind::Speech {
                by_client: false,
                connection,
                speech,
            } if connection == name => {
                block.push((step.line, speech));
                if is_dot(speech) {
                    break;
                }
            }
            _ => break,
        }
    }
    block
}

/// Whether a reply is followed by a block (RFC 3977 section 3.2: by code, and 211 only after LISTGROUP).
fn has_block(reply: &[u8], command: &[u8]) -> bool {
    match reply.get(..3) {
        Some(
            b"100" | b"101" | b"215" | b"220" | b"221" | b"222" | b"224" | b"225" | b"230" | b"231",
        ) => true,
        Some(b"211") => command
            .get(..9)
            .is_some_and(|verb| verb.eq_ignore_ascii_case(b"LISTGROUP")),
        _ => false,
    }
}

fn lines_of(wire: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = wire;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines
}

fn read_article(line: usize, path: &Path) -> Played<Vec<u8>> {
    match crate::article::read(path) {
        Ok(wire) => Ok(wire),
        Err(error) => fail(line, format!("{error:#}")),
    }
}
