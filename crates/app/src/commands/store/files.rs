//! `newsreel store verify|dump|export PATH`: what lies in a buffer, a segment, or the directory of a set, of whatever spool.
//!
//! It is only read, by itself: no spool is needed, no log and no views; where there is one, it says what was withdrawn.  Beside a server
//! that writes it what comes meanwhile may be missed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use indicatif::ProgressBar;
use newsreel_host::{Disk, File, OpenMode, RealDisk};
use newsreel_store::{
    Alone, BufferReader, Comparison, ScanRange, Scanned, open_alone, register_damage,
};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::nntp::framing::wire_to_lf;
use newsreel_wire::{Sequence, TokenText, UnixTime, batch};
use serde_json::{Value, json};

use super::KnowsArgs;
use super::marks::{Marks, Row};
use crate::{access, config, output};

/// So many damaged places of a file are named.
const DAMAGE_NAMED_MAX: usize = 100;

/// Octets of a batch that are written at once, about.
const WRITE_OCTETS: usize = 1 << 20;

/// A record whose header is sound.
struct Found<'a> {
    sequence: Sequence,
    arrival: UnixTime,
    is_sound: bool,
    /// The buffer's bitmap says that it is not wanted any more: it was cancelled, expired or moved.
    is_withdrawn: bool,
    /// In wire form.
    article: &'a [u8],
}

impl Found<'_> {
    /// Its message-id, as far as it can be read.
    fn id(&self) -> String {
        let headers = Headers::scan_stored(self.article).ok();
        let id = headers
            .as_ref()
            .and_then(|headers| headers.content(Known::MessageId));
        String::from_utf8_lossy(id.unwrap_or_default()).into_owned()
    }
}

/// What a walk found.
#[derive(Default)]
struct Totals {
    /// The first buffer's.
    name: Option<String>,
    articles: u64,
    octets: u64,
    damaged: u64,
    places: Vec<String>,
}

impl Totals {
    fn damage(&mut self, place: String) {
        self.damaged += 1;
        if self.places.len() < DAMAGE_NAMED_MAX {
            self.places.push(place);
        }
    }
}

fn open(path: &Path) -> Result<Alone> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    Ok(open_alone(&disk, path)?)
}

/// Walks what was not overwritten, oldest first, with a progress bar for a person who waits.
fn walk(
    (path, files): (&Path, Alone),
    mut each: impl FnMut(&Found<'_>, &str) -> Result<()>,
) -> Result<Totals> {
    let mut totals = Totals::default();
    let bar = access::bar();
    bar.set_length(files.octets());
    for reader in files {
        // What is wrong with one file is no reason not to show the next.
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => {
                totals.damage(error.to_string());
                continue;
            }
        };
        let facts = reader.facts();
        if let Some(complaint) = facts.complaint {
            output::warning(&format!("{}: {complaint}", facts.path));
        }
        totals.name.get_or_insert(facts.name);
        let within = match Path::new(&facts.path) == path {
            true => String::new(),
            false => format!("{}: ", facts.path),
        };
        walk_one((&reader, &within), &bar, &mut totals, &mut each)?;
    }
    bar.finish_and_clear();
    Ok(totals)
}

fn walk_one(
    (reader, within): (&Arc<dyn BufferReader>, &str),
    bar: &ProgressBar,
    totals: &mut Totals,
    each: &mut impl FnMut(&Found<'_>, &str) -> Result<()>,
) -> Result<()> {
    let name = reader.name();
    let mut scan = Arc::clone(reader).scan(ScanRange::Live);
    let mut comparison = Comparison::new(reader, scan.at());
    let cut_at = reader.cut_at();
    loop {
        let (before, scanned) = (scan.at(), scan.step());
        if let Ok(scanned) = &scanned {
            let mut tell = |why: String| totals.damage(format!("{within}{why}"));
            comparison.look(scan.as_mut(), scanned.as_ref(), &mut tell)?;
        }
        let scanned = match scanned {
            Ok(Some(scanned)) => scanned,
            Ok(None) => {
                ended(reader, &comparison, totals, within);
                return Ok(());
            }
            Err(error) => {
                totals.damage(format!("{within}{error}"));
                return Ok(());
            }
        };
        // Where a cycle ends the rest of it is not counted, which nobody sees.
        bar.inc(scan.at().offset().saturating_sub(before.offset()));
        match scanned {
            Scanned::Passed => {}
            Scanned::Damaged { to, .. } if cut_at.is_some_and(|at| at < to) => {}
            Scanned::Damaged { from, to, .. } => {
                totals.damage(format!(
                    "{within}nothing can be read from {from:#x} to {to:#x}"
                ));
            }
            Scanned::Record {
                token,
                sequence,
                arrival,
                sound,
                ..
            } => {
                let found = Found {
                    sequence,
                    arrival,
                    is_sound: sound,
                    is_withdrawn: comparison.is_withdrawn(&token)?,
                    article: scan.article(),
                };
                let position = token.position();
                let text = TokenText { name, position }.to_string();
                if !sound {
                    let file = reader
                        .file_of(&token)
                        .map(|file| file.display().to_string());
                    let file = file.map_or(String::new(), |file| format!(", {file},"));
                    totals.damage(format!("the article {text}{file} is damaged"));
                }
                totals.articles += 1;
                totals.octets += found.article.len() as u64;
                each(&found, &text)?;
            }
        }
    }
}

/// Tells at the end of a file that it was cut, and of a bitmap by which nothing is alive.
fn ended(
    reader: &Arc<dyn BufferReader>,
    comparison: &Comparison,
    totals: &mut Totals,
    within: &str,
) {
    if let Some(why) = comparison.nothing_alive() {
        output::warning(&format!("{}: {why}", reader.facts().path));
    }
    if let Some(at) = reader.cut_at() {
        totals.damage(format!(
            "{within}nothing can be read from {at:#x} on: it was cut"
        ));
    }
}

/// Reads every article and compares its checksums.
pub(super) fn verify(paths: &[PathBuf], config: Option<&Path>, as_json: bool) -> Result<()> {
    if config.is_some() {
        config::load(config, None)?;
    }
    let (mut rows, mut damaged) = (Vec::new(), 0);
    let mut others = 0;
    for path in paths {
        if is_register(path) {
            let row = register(path)?;
            damaged += row["damaged"].as_u64().unwrap_or(0);
            rows.push(row);
            continue;
        }
        let walked = open(path).and_then(|files| walk((path, files), |_, _| Ok(())));
        let totals = match walked {
            Ok(totals) => totals,
            // The others are looked at still.
            Err(error) if paths.len() > 1 => {
                others += 1;
                rows.push(json!({"file": path, "error": output::chain(&error)}));
                continue;
            }
            Err(error) => return Err(error),
        };
        damaged += totals.damaged;
        rows.push(json!({
            "file": path, "name": totals.name, "articles": totals.articles, "octets": totals.octets,
            "damaged": totals.damaged, "places": totals.places,
        }));
    }
    if as_json {
        output::json(&Value::from(rows))?;
    } else {
        for row in &rows {
            let places = row["places"].as_array().into_iter().flatten();
            for place in places {
                output::text(&format!(
                    "{}: {}\n",
                    output::cell(&row["file"]),
                    output::cell(place)
                ))?;
            }
            if let Some(why) = row["error"].as_str().or(row["what"].as_str()) {
                output::text(&format!("{}: {why}\n", output::cell(&row["file"])))?;
                continue;
            }
            output::text(&format!(
                "{}: {}, {}, {} damaged\n",
                output::cell(&row["file"]),
                output::count(row["articles"].as_u64().unwrap_or(0), "article"),
                output::count(row["octets"].as_u64().unwrap_or(0), "octet"),
                row["damaged"],
            ))?;
        }
    }
    match (damaged, others) {
        (0, 1..) => bail!("{} could not be looked at", output::count(others, "file")),
        _ => unless_damaged(damaged),
    }
}

/// Whether it is a file of the register, which lies beside buffers.
fn is_register(path: &Path) -> bool {
    let name = path.file_name();
    let is_named = name.is_some_and(|name| name == "register" || name == "register.copy");
    is_named && !RealDisk.list(path).is_ok_and(|entries| !entries.is_empty())
}

/// The register has no articles; what is wrong with this file of it.
fn register(path: &Path) -> Result<Value> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let damage = register_damage(&RealDisk, dir)?;
    let of_it = format!("{}: ", path.display());
    let places: Vec<&str> = damage
        .iter()
        .filter_map(|why| why.strip_prefix(&of_it))
        .collect();
    Ok(json!({
        "file": path, "articles": 0, "octets": 0, "damaged": places.len(), "places": places,
        "what": "the register, which says what buffers the spool has; no articles lie in it",
    }))
}

/// So many rows, or so many octets of their texts, are held until the spool is asked about them.
const ROWS_AT_ONCE: usize = 1000;

/// Walks the articles of a path, each handed on with what its spool says of it; what was damaged is told behind them.
fn listed(
    (path, knows): (&Path, &KnowsArgs),
    mut text_of: impl FnMut(&Found<'_>) -> Vec<u8>,
    mut each: impl FnMut(&Row) -> Result<()>,
) -> Result<(u64, u64)> {
    let files = open(path)?;
    let mut marks = Marks::of(path, knows)?;
    let (mut rows, mut octets, mut withdrawn) = (Vec::new(), 0, 0);
    let mut hand_on = |rows: &mut Vec<Row>| -> Result<()> {
        marks.mark(rows)?;
        withdrawn += rows.iter().filter(|row| row.is_withdrawn).count() as u64;
        rows.drain(..).try_for_each(|row| each(&row))
    };
    let totals = walk((path, files), |found, token| {
        let row = Row {
            token: token.to_owned(),
            id: found.id(),
            sequence: found.sequence.0,
            arrival: found.arrival.0,
            octets: found.article.len() as u64,
            is_sound: found.is_sound,
            is_withdrawn: found.is_withdrawn,
            text: text_of(found),
        };
        octets += row.text.len();
        rows.push(row);
        if rows.len() >= ROWS_AT_ONCE || octets >= WRITE_OCTETS {
            octets = 0;
            hand_on(&mut rows)?;
        }
        Ok(())
    })?;
    hand_on(&mut rows)?;
    for place in &totals.places {
        output::warning(place);
    }
    marks.tell(path);
    if marks.is_alone() {
        output::warning(
            "it lies in no spool: of what was cancelled, expired or moved only that is told of which a \
             bitmap tells (none in segments and directories of sets); --spool DIR names the spool it belongs to",
        );
    }
    marks.close()?;
    Ok((withdrawn, totals.damaged))
}

/// A command that has shown what can be read ends with 1 where something could not be.
fn unless_damaged(damaged: u64) -> Result<()> {
    match damaged {
        0 => Ok(()),
        1 => bail!("one place is damaged"),
        _ => bail!("{damaged} places are damaged"),
    }
}

/// Lists the records.
pub(super) fn dump(path: &Path, knows: &KnowsArgs, as_json: bool) -> Result<()> {
    let say = |row: &Row| {
        let (token, sequence, arrival, octets) =
            (&row.token, row.sequence, row.arrival, row.octets);
        output::text(&if as_json {
            let record = json!({
                "token": token, "sequence": sequence, "arrival": arrival, "octets": octets,
                "damaged": !row.is_sound, "withdrawn": row.is_withdrawn, "message_id": row.id,
            });
            format!("{record}\n")
        } else {
            let state = match (row.is_sound, row.is_withdrawn) {
                (false, _) => "  DAMAGED",
                (true, true) => "  WITHDRAWN",
                (true, false) => "",
            };
            let id = output::foreign(&row.id);
            format!("{token}  {sequence}  {arrival}  {octets}  {id}{state}\n")
        })
    };
    let (_, damaged) = listed((path, knows), |_| Vec::new(), say)?;
    unless_damaged(damaged)
}

/// Where a batch goes.
enum Target {
    Output,
    File(Arc<dyn File>, u64),
}

impl Target {
    fn write(&mut self, octets: &[u8]) -> Result<()> {
        match self {
            Self::Output => output::octets_out(octets)?,
            Self::File(file, at) => {
                file.write_at(octets, *at)?;
                *at += octets.len() as u64;
            }
        }
        Ok(())
    }
}

/// Writes the sound articles as one batch; those that were withdrawn too if that is wanted.
pub(super) fn export(
    path: &Path,
    (knows, with_withdrawn): (&KnowsArgs, bool),
    to: Option<&Path>,
) -> Result<()> {
    // Whether there is anything to write is known before anything is written.
    open(path)?;
    let mut target = match to {
        None => Target::Output,
        Some(to) => {
            let file = RealDisk.open(to, OpenMode::CreateNew);
            Target::File(file.with_context(|| "the batch is not begun")?, 0)
        }
    };
    let (mut out, mut articles) = (Vec::new(), 0_u64);
    let text_of = |found: &Found<'_>| {
        let mut text = Vec::new();
        if found.is_sound {
            wire_to_lf(found.article, &mut text);
        }
        text
    };
    let (withdrawn, damaged) = listed((path, knows), text_of, |row| {
        if row.is_sound && (with_withdrawn || !row.is_withdrawn) {
            batch::write_article(&row.text, &mut out);
            articles += 1;
        }
        if out.len() >= WRITE_OCTETS {
            target.write(&out)?;
            out.clear();
        }
        Ok(())
    })?;
    target.write(&out)?;
    if let Target::File(file, _) = &target {
        file.sync_all()?;
    }
    if withdrawn > 0 {
        let these = output::count(withdrawn, "article");
        let why = "withdrawn (cancelled, expired or moved)";
        let which = "`newsreel store dump` says which";
        output::warning(&match with_withdrawn {
            true => format!("{these} of these had been {why}; {which}"),
            false => format!("left out, since {why}: {these}; --withdrawn takes them too, {which}"),
        });
    }
    if let Some(to) = to {
        output::text(&format!(
            "{} in {}\n",
            output::count(articles, "article"),
            to.display()
        ))?;
    }
    unless_damaged(damaged)
}
