//! What a play expects of more than one line: blocks, articles, and runs of replies that are to be blessed.

use std::path::Path;

use crate::article::{same_article, show};
use crate::bless::{Edit, merged};
use crate::driver::Driver;
use crate::play::{Play, Played, fail, read_article};
use crate::transcript::{Speech, Step, StepKind, Template};

impl<D: Driver> Play<'_, D> {
    /// `S= S~ S+ S!` and the plain lines among them, up to `S: .`.
    pub(crate) async fn expect_block(
        &mut self,
        steps: &[Step],
        line: usize,
        name: &str,
    ) -> Played<usize> {
        let block = block_of(steps, name);
        let Some((last, _)) = block.last().filter(|(_, speech)| is_dot(speech)) else {
            return fail(line, "a block with S= S~ S+ S! must end with S: .");
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
                Speech::AnyOrder(template) | Speech::AnyTimes(template) => (template, 0),
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
                    match speech {
                        Speech::Line(_) => ordered_from = place + 1,
                        Speech::AnyTimes(_) => self.take_all(template, &came, &mut left),
                        _ => {}
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

    /// Takes the other lines that fit from those that are left.
    fn take_all(&mut self, template: &Template, came: &[Vec<u8>], left: &mut [bool]) {
        for (line, left) in came.iter().zip(left) {
            *left = *left && !template.fits(line, &mut self.bindings);
        }
    }

    pub(crate) async fn expect_article(&mut self, line: usize, name: &str, path: &Path) -> Played {
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
    pub(crate) async fn expect_run(&mut self, steps: &[Step], name: &str) -> Played<usize> {
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
            if !has_block(&came, &command) {
                continue;
            }
            // What is said in any order cannot be blessed: it is compared, and a person mends it.
            let rest = block_of(&steps[at..], name);
            if rest.iter().any(|(_, speech)| is_set(speech)) {
                return Ok(at + self.expect_block(&steps[at..], *line, name).await?);
            }
            if at < run.len() {
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
}

fn mark(name: &str) -> String {
    if name.is_empty() {
        "S:".into()
    } else {
        format!("S@{name}:")
    }
}

fn is_set(speech: &Speech) -> bool {
    matches!(
        speech,
        Speech::AnyOrder(_) | Speech::AnyTimes(_) | Speech::Must(_) | Speech::MustNot(_)
    )
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
            b"100" | b"101" | b"215" | b"220" | b"221" | b"222" | b"224" | b"225" | b"230" | b"231"
            | b"282",
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
