//! One play of a transcript: step by step, until the first difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::article::show;
use crate::bless::Edit;
use crate::channel::{Came, Channel};
use crate::driver::{Driver, Setup, Support};
use crate::run::Verdict;
use crate::transcript::{Action, Bindings, Speech, Step, StepKind, Template, Transcript};

/// Lines of the conversation that a failure shows.
const CONTEXT_LINES: usize = 6;

/// Why a play stops.
pub(crate) enum Stop {
    Skip(String),
    Fail { line: usize, what: String },
}

pub(crate) type Played<T = ()> = Result<T, Stop>;

pub(crate) fn fail<T>(line: usize, what: impl Into<String>) -> Played<T> {
    Err(Stop::Fail {
        line,
        what: what.into(),
    })
}

pub(crate) struct Play<'p, D: Driver> {
    pub(crate) driver: &'p mut D,
    pub(crate) transcript: &'p Transcript,
    pub(crate) wait: Duration,
    pub(crate) bless: bool,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) bindings: Bindings,
    pub(crate) context: Vec<String>,
    pub(crate) output: std::vec::IntoIter<String>,
    pub(crate) edits: Vec<Edit>,
}

impl<D: Driver> Play<'_, D> {
    pub(crate) async fn all(&mut self, setup: &Setup) -> Verdict {
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
            Speech::AnyOrder(_) | Speech::AnyTimes(_) | Speech::Must(_) | Speech::MustNot(_) => {
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

    pub(crate) fn channel(&mut self, line: usize, name: &str) -> Played<&mut Channel> {
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
            Speech::AnyOrder(_) | Speech::AnyTimes(_) | Speech::Must(_) | Speech::MustNot(_) => {
                return fail(line, "= ~ + ! are for lines that are expected");
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

    pub(crate) async fn line(&mut self, line: usize, name: &str) -> Played<Vec<u8>> {
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

    async fn action(&mut self, line: usize, action: &Action) -> Played {
        match action {
            Action::Closed(name) => return self.expect_closed(line, name).await,
            Action::Shutdown(name) => {
                return match self.channel(line, name)?.shutdown().await {
                    Ok(()) => Ok(()),
                    Err(error) => fail(line, format!("shutdown: {error}")),
                };
            }
            Action::Tls(name, shown) => {
                let is_server = self.transcript.reversed.contains(name);
                if is_server {
                    // TLS from the first octet on: nothing was said yet.
                    self.open(line, name, false, true).await?;
                }
                let channel = self.channel(line, name)?;
                return match channel.secure(is_server, shown.as_deref()).await {
                    Ok(()) => Ok(()),
                    Err(error) => fail(line, format!("TLS: {error}")),
                };
            }
            Action::Deflate(name) => {
                return match self.channel(line, name)?.deflate() {
                    Ok(()) => Ok(()),
                    Err(error) => fail(line, format!("deflate: {error}")),
                };
            }
            Action::Wait(time) => {
                tokio::time::sleep(*time).await;
                return Ok(());
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

pub(crate) fn read_article(line: usize, path: &Path) -> Played<Vec<u8>> {
    match crate::article::read(path) {
        Ok(wire) => Ok(wire),
        Err(error) => fail(line, format!("{error:#}")),
    }
}
