//! `newsreel store list|inspect|create|attach|move|retire|scrub|explain|verify|dump|export`: the buffers, what lies in them, and which rule
//! takes an article.

mod attach;
mod create;
mod files;
mod marks;
mod relocate;
mod resize;
mod retire;
mod scrub;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_engine::ArticleRef;
use newsreel_host::{Clock as _, Disk as _, RealClock, RealDisk};
use newsreel_store::{ARTICLE_OCTETS_MAX, FileFormat, RuleSubject, Rules};
use newsreel_wire::UnixTime;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::nntp::framing::{dot_stuff, lf_to_wire};
use serde_json::{Value, json};

use crate::access::{self, LookArgs, SpoolArgs};
use crate::control::request::Request;
use crate::{input, output, strip};

/// What the storage rules say, each up to the one that takes the article.
const RULE_COLUMNS: &[(&str, &str)] = &[
    ("RULE", "rule"),
    ("SET", "set"),
    ("TAKES IT", "taken"),
    ("WHY", "why"),
];

/// The columns of `store list`: what an administrator looks for first.
const LIST_COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("METHOD", "method"),
    ("ROOM", "room"),
    ("USED", "used"),
    ("ARTICLES", "articles"),
    ("CYCLE", "cycle"),
    ("OLDEST", "age"),
    ("A DAY", "rate"),
    ("STAYS", "stays"),
    ("STATE", "state"),
    ("FILE", "path"),
];

/// The columns of a table of buffers in `status`.
const BUFFER_COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("OCTETS", "octets"),
    ("CYCLE", "cycle"),
    ("POSITION", "free_offset"),
    ("RESERVED", "reserved_offset"),
    ("STATE", "state"),
    ("FILE", "path"),
];

/// Options of commands that read files by themselves: who knows what was withdrawn of them.
#[derive(Debug, clap::Args)]
pub(crate) struct KnowsArgs {
    /// The spool that knows what was withdrawn of it [default: the one in which it lies, else that of --config, if it is of that]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// The configuration file [default: what the server of that spool last ran with]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List the buffers and sets of segments: room, how much of it is used, age of the oldest article, octets a day, state
    #[command(
        after_help = "A DAY is how much came a day since the oldest article, once that is an hour, STAYS how long an article that comes now will be there \
                      at that rate, or by the limits of its set (keep_octets, keep_s). ARTICLES with a ~ is estimated from a part of a large \
                      history, within a percent or two; with it the count of a set of several buffers stands below.\n\n\
                      Examples:\n  newsreel store list --spool /var/spool/newsreel\n  newsreel store list --json"
    )]
    List {
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Make the configured buffers that are not there yet, before the first start or before one with new buffers
    #[command(
        after_help = "A start makes them too, and takes no articles before they are written out: with this it need not. Only what is \
                      missing or blank is made, and none while one of them cannot be, which --dry-run says as well; nothing is written \
                      over. No server may be running.\n\n\
                      Examples:\n  newsreel store create --config newsreel.toml --dry-run\n  \
                      newsreel store create TEXT2 --config newsreel.toml"
    )]
    Create {
        /// Only these buffers; each must not be there yet
        buffers: Vec<String>,
        /// Only say what would be made, where, and how large
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Take in the articles of buffers, segments or directories from elsewhere, with their arrivals and numbers
    #[command(
        after_help = "From another machine, or of a spool of which nothing else is left. Each article that is not known here is stored \
                      as one that has just come, by this server's rules; PATH is only read, and may go afterwards. Groups and numbers \
                      are those of its Xref; where a group has given a number already the article gets the next one, so give all files \
                      of one server at once: they are merged in the order in which their articles came. Directories of files that another \
                      server made, or whose catalogue is lost, are taken in too: groups and numbers are those of Xref, or of the paths.\n\n\
                      What was cancelled, had expired or was moved there stays out as far as the files tell, as of the last checkpoint: \
                      the bitmap of a cyclic buffer does, and what is noted behind the end of a segment; in a directory of files it is \
                      not there any more. --withdrawn takes in what a bitmap or a segment says, too.\n\n\
                      Where a cyclic set would overwrite what comes by what comes behind it nothing is taken; with --oldest-may-go all is, \
                      and the newest stay, as in a feed.\n\n\
                      It may be ended and begun again at any time: what is known is passed over. A stop of it or of the server does no harm; \
                      behind a kill of the server, or a power cut, numbers of what was not taken yet may have been passed, and it comes \
                      under other ones: --dry-run says how many, and where numbers matter begin anew with an empty spool. Beside a running \
                      server that one reads the files, so it must be able to. Ends with 1 where something is damaged or was not taken.\n\n\
                      Examples:\n  newsreel store attach /mnt/old/buffers/C0 /mnt/old/buffers/C1 --make-groups --dry-run\n  \
                      newsreel store attach /mnt/old/buffers/C0 --make-groups --oldest-may-go\n  \
                      newsreel store attach /mnt/old/segments/main\n  newsreel store attach --in-place /nfs/archive/C0"
    )]
    Attach {
        /// Files of buffers or segments, or directories of segments or of files with one article each
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Make the groups that are not here; otherwise an article is filed in those that are, and not taken where none is
        #[arg(long)]
        make_groups: bool,
        /// Also articles that had been cancelled, expired or moved there, as the bitmap of a buffer or a segment's notes say
        #[arg(long)]
        withdrawn: bool,
        /// Serve them from where they lie: PATH is the `file` of a set of method `attached`, and nothing is copied
        #[arg(long)]
        in_place: bool,
        /// Take all, also where a set would overwrite the oldest of what comes by what comes behind it
        #[arg(long, conflicts_with = "in_place")]
        oldest_may_go: bool,
        /// Only say what would be taken
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Have articles that one set keeps kept by another
    #[command(
        after_help = "Numbers, arrivals, overview and message-ids stay as they are; readers notice nothing. Each article is durable in its new \
                      place before the old one is cleared, so there must be room for some more; nothing moves that a cyclic set would \
                      overwrite by what moves behind it. What comes meanwhile stays: change the \
                      rules first. With WILDMAT only articles in groups that match, also where they are in others too; without it \
                      those in no group move as well, for which the whole set is read.\n\n\
                      It may be ended and begun again at any time, also after a crash: it goes on. Ends with 1 where articles could not be \
                      moved. --dry-run says how many would be, what they take in the other set, and what it has free or would overwrite.\n\n\
                      Examples:\n  newsreel store move --from main --to text 'comp.*,!comp.binaries.*' --dry-run\n  \
                      newsreel store move --from text --to main"
    )]
    Move {
        /// Only articles in these groups
        wildmat: Option<String>,
        /// The set that has them
        #[arg(long, value_name = "SET")]
        from: String,
        /// The set that is to have them
        #[arg(long, value_name = "SET")]
        to: String,
        /// Only say how much would be moved
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Have a cyclic buffer take nothing new, so that it can be taken away when nothing is left in it
    #[command(
        after_help = "Its articles go oldest first, at the pace at which the rest of its set is overwritten: when that has come around \
                      once the buffer is drained. One in which nothing is alive, as nothing ever came or all was withdrawn, is drained with \
                      the server's next checkpoint. Then, and not earlier, `newsreel store list` says that it may be taken out of the \
                      configuration. Beside a running server it holds from the next article on.\n\n\
                      Examples:\n  newsreel store retire C0\n  newsreel store retire C0 --undo"
    )]
    Retire {
        /// The buffer
        buffer: String,
        /// Have it take articles again
        #[arg(long)]
        undo: bool,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Make cyclic buffers as large as the configuration says, with the articles that are in them
    #[command(
        after_help = "Nothing in them moves. One that is to be smaller is that when it has come around: nothing more is written behind the new \
                      end, what lies there goes when its turn comes, and then the file is cut; `store list` has it as `narrowing` until then. A server \
                      that is running takes articles meanwhile. Killed anywhere, it is begun again, or goes on.\n\n\
                      Examples:\n  newsreel store resize --config newsreel.toml --dry-run\n  \
                      newsreel store resize TEXT2 --config newsreel.toml"
    )]
    Resize {
        /// Only these buffers; otherwise all that have another size than the configuration says
        buffers: Vec<String>,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Read every article that is alive, and compare its checksums, at a limited rate
    #[command(
        after_help = "Each damaged article is told with its buffer, offset and token, and with message-id, groups and numbers where \
                      they are known. Ends with 0 when all is sound, with 1 when something is damaged or cannot be read. Reads around \
                      the page cache, and holds nobody up. A server does the same in the background ([scrub] in the configuration); \
                      `newsreel status` tells what it found.\n\n\
                      Without --rate it reads beside a server as fast as [scrub] says, and without one as fast as it goes.\n\n\
                      Examples:\n  newsreel store scrub\n  newsreel store scrub C0 --rate 64MiB --json"
    )]
    Scrub {
        /// Only these buffers
        buffers: Vec<String>,
        /// Octets read a second, at most, as in 16MiB; 0: as fast as it goes
        #[arg(long, value_name = "OCTETS", value_parser = crate::typed::octets)]
        rate: Option<u64>,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Show buffers one by one, each drawn as a strip: where it stands, how old its articles are, how long they stay
    #[command(
        after_help = "Examples:\n  newsreel store inspect\n  newsreel store inspect C0 --json"
    )]
    Inspect {
        /// Only these buffers
        buffers: Vec<String>,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Say which storage rule takes an article, and why the others before it do not
    #[command(
        after_help = "Examples:\n  newsreel store explain '<1@host.example>'\n  \
                      newsreel store explain article.txt --config newsreel.toml"
    )]
    Explain {
        /// An article that is here (`<MESSAGE-ID>`, `GROUP:NUMBER`, `TOKEN`), or a file with one, - being the standard input
        article: String,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Read every article of a buffer, a segment or a set's directory, and compare its checksums
    #[command(
        after_help = "It is only read; no spool is needed. Ends with 0 when all is sound, with 1 when something is \
                      damaged.\n\n\
                      Examples:\n  newsreel store verify newsreel-spool/buffers/C0\n  \
                      newsreel store verify newsreel-spool/articles/text\n  \
                      newsreel store verify segments/main/*.seg --json"
    )]
    Verify {
        /// Files of buffers or segments, or directories of sets whose articles are segments or files of their own
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The configuration file, as every command takes it: it is read, and nothing of it is needed here
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
    /// List the articles of a buffer, a segment or a set's directory: token, sequence, arrival, octets, message-id
    #[command(
        after_help = "It is only read; no spool is needed. With --json there is one object a line. WITHDRAWN is what was cancelled, has \
                      expired or moved: as the spool says in which the path lies or that --spool names, beside its running server or without; \
                      where there is none, as far as the bitmap of a cyclic buffer, or what is noted behind a segment, tells.\n\n\
                      Examples:\n  newsreel store dump newsreel-spool/buffers/C0\n  \
                      newsreel store dump newsreel-spool/articles/text"
    )]
    Dump {
        /// The file of a buffer or segment, or the directory of a set
        path: PathBuf,
        #[command(flatten)]
        knows: KnowsArgs,
        /// Answer in JSON, an object a line
        #[arg(long)]
        json: bool,
    },
    /// Write the articles of a buffer, a segment or a set's directory as a batch (`#! rnews`)
    #[command(
        after_help = "It is only read; no spool is needed. What is damaged is left out, and told; so is what was cancelled, has expired or \
                      moved, as far as that is known: see `newsreel store dump --help`.\n\n\
                      Examples:\n  newsreel store export newsreel-spool/buffers/C0 --to articles.rnews\n  \
                      newsreel store export 00000007.seg > articles.rnews"
    )]
    Export {
        /// The file of a buffer or segment, or the directory of a set
        path: PathBuf,
        /// Write it here, not to the standard output; it must not be there
        #[arg(long, value_name = "PATH")]
        to: Option<PathBuf>,
        /// What was cancelled, has expired or moved, too
        #[arg(long)]
        withdrawn: bool,
        #[command(flatten)]
        knows: KnowsArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::List { spool } => list(spool),
        Verb::Inspect { buffers, spool } => inspect(buffers, spool),
        Verb::Create {
            buffers,
            dry_run,
            spool,
        } => create::run(buffers, *dry_run, spool),
        Verb::Attach {
            paths,
            make_groups,
            withdrawn,
            in_place,
            oldest_may_go,
            dry_run,
            spool,
        } => attach::run(
            paths,
            [*make_groups, *withdrawn, *in_place, *oldest_may_go],
            *dry_run,
            spool,
        ),
        Verb::Move {
            wildmat,
            from,
            to,
            dry_run,
            spool,
        } => relocate::run((from, to), wildmat.as_deref(), *dry_run, spool),
        Verb::Retire {
            buffer,
            undo,
            dry_run,
            spool,
        } => retire::run(buffer, *undo, *dry_run, spool),
        Verb::Resize {
            buffers,
            dry_run,
            spool,
        } => resize::run(buffers, *dry_run, spool),
        Verb::Scrub {
            buffers,
            rate,
            spool,
        } => scrub::run(buffers, *rate, spool),
        Verb::Explain { article, spool } => explain(article, spool),
        Verb::Verify {
            paths,
            config,
            json,
        } => files::verify(paths, config.as_deref(), *json),
        Verb::Dump { path, knows, json } => files::dump(path, knows, *json),
        Verb::Export {
            path,
            to,
            withdrawn,
            knows,
        } => files::export(path, (knows, *withdrawn), to.as_deref()),
    }
}

/// An article to be explained: its wire form, and what is known of one that is here.
struct Subject {
    wire: Vec<u8>,
    arrival: UnixTime,
    stored: Value,
}

impl Subject {
    fn of_file(path: &Path) -> Result<Self> {
        let octets_max = usize::try_from(ARTICLE_OCTETS_MAX).unwrap_or(usize::MAX);
        let text = input::read(path, octets_max)?.octets;
        let mut wire = Vec::new();
        if text.windows(2).any(|two| two == b"\r\n") {
            dot_stuff(&text, &mut wire);
        } else {
            lf_to_wire(&text, &mut wire);
        }
        Ok(Self {
            wire,
            arrival: UnixTime(RealClock::new().now().secs),
            stored: Value::Null,
        })
    }

    fn of_stored(which: &str, spool: &LookArgs, identity: &str) -> Result<Self> {
        let which = which.to_owned();
        let stored = access::ask(spool, Request::Article { which })?;
        let latin1 = stored["octets_as_latin1"].as_str();
        let text: Vec<u8> = match latin1 {
            // Each character stands for an octet.
            Some(octets) => octets.chars().map(|c| c as u8).collect(),
            None => stored["text"].as_str().unwrap_or_default().into(),
        };
        let mut wire = Vec::new();
        dot_stuff(&text, &mut wire);
        as_it_came(&mut wire, identity.as_bytes());
        Ok(Self {
            wire,
            arrival: UnixTime(stored["arrival"].as_u64().unwrap_or(0)),
            stored: json!({"set": stored["set"], "token": stored["token"]}),
        })
    }
}

/// Takes out of a stored article what this server wrote into it: Xref, where it was filed, and the name that it had then, or has now, at the
/// front of Path with what it says there.
fn as_it_came(wire: &mut Vec<u8>, identity: &[u8]) {
    let Ok(headers) = Headers::scan_stored(wire) else {
        return;
    };
    let Some(path) = headers.get(Known::Path) else {
        return;
    };
    let xref = headers.get(Known::Xref);
    let mut words = xref.map(|xref| xref.trimmed().split(|octet| *octet == b' '));
    let name = words.as_mut().and_then(Iterator::next).unwrap_or(identity);
    let mut rest = path.content;
    if let Some(behind) = rest
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(b"!"))
    {
        rest = behind;
        // What we found out about who sent it (RFC 5537 section 3.2.1).
        while rest.starts_with(b".") || rest.starts_with(b"!") {
            let behind = rest.iter().position(|octet| *octet == b'!');
            rest = rest
                .get(behind.map_or(rest.len(), |at| at + 1)..)
                .unwrap_or_default();
        }
    }
    let own = path.content.len() - rest.len();
    let own = path.content_start..path.content_start + own;
    let xref = xref.map_or(0..0, |xref| xref.start..xref.end);
    // The later one first, so that the other stays where it is.
    let (first, second) = match own.start < xref.start {
        true => (xref, own),
        false => (own, xref),
    };
    wire.drain(first);
    wire.drain(second);
}

fn explain(article: &str, spool: &LookArgs) -> Result<()> {
    let path = Path::new(article);
    let config = access::config_of(spool)?.engine_config();
    let subject = if article == input::STANDARD_INPUT || RealDisk.exists(path)? {
        Subject::of_file(path)?
    } else if article.parse::<ArticleRef>().is_ok() {
        Subject::of_stored(article, spool, &config.sequencer.path_identity)?
    } else {
        bail!("{article:?} is no file that is there, and no <message-id>, group:number or token");
    };
    let store = config.store;
    let rules = Rules::new(&store)?;
    let headers =
        Headers::scan_stored(&subject.wire).with_context(|| format!("{article} is no article"))?;
    let notes = rules.explain(&RuleSubject {
        headers: &headers,
        octets: subject.wire.len() as u64,
        arrival: subject.arrival,
    });
    let taken = notes.last().filter(|note| note.taken);
    let set = taken.and_then(|note| store.sets.iter().find(|set| set.name == note.set));
    let class = set.map(|set| set.class());
    let format = taken.and_then(|note| note.format);
    let rows: Vec<Value> = notes
        .iter()
        .map(|note| {
            // People count from 1.
            json!({"rule": note.rule + 1, "set": note.set, "taken": note.taken, "why": note.why})
        })
        .collect();
    if spool.json {
        let set = taken.map(|note| note.set.clone());
        let (rules, stored) = (rows, subject.stored);
        return output::json(
            &json!({"rules": rules, "set": set, "class": class, "format": format, "stored": stored}),
        );
    }
    let mut shown = rows;
    for row in &mut shown {
        row["taken"] = if row["taken"] == true { "yes" } else { "no" }.into();
    }
    let mut said = output::table(RULE_COLUMNS, &shown);
    match set {
        None => said.push_str("no rule takes it: it is refused\n"),
        Some(set) if set.class() != set.name => {
            said.push_str(&format!("it is of class {}\n", set.class()));
        }
        Some(_) => {}
    }
    if let Some(format) = format {
        let form = match format {
            FileFormat::Native => "native form",
            FileFormat::Wire => "wire form",
        };
        said.push_str(&format!("its file gets the {form}\n"));
    }
    if !subject.stored.is_null() {
        let (set, token) = (&subject.stored["set"], &subject.stored["token"]);
        let (set, token) = (output::cell(set), output::cell(token));
        said.push_str(&format!("it lies in set {set}, at {token}\n"));
    }
    output::text(&said)
}

fn list(spool: &LookArgs) -> Result<()> {
    let buffers = access::ask(spool, Request::Store)?;
    if spool.json {
        return output::json(&buffers);
    }
    output::text(&overview(&buffers))
}

/// The buffers as `store list` shows them.
fn overview(buffers: &Value) -> String {
    let mut rows = buffers.as_array().cloned().unwrap_or_default();
    for row in &mut rows {
        let number = |key: &str| row[key].as_u64();
        let used = number("live_octets").zip(number("octets"));
        let used = used.map(|(live, room)| u128::from(live) * 100 / u128::from(room.max(1)));
        let said = [
            (
                "used",
                used.map_or("-".to_owned(), |percent| format!("{percent} %")),
            ),
            ("room", strip::room(row)),
            ("articles", strip::articles(row, "articles")),
            ("age", output::duration(&row["oldest_age_s"])),
            ("rate", output::octets(&row["octets_a_day"])),
            ("stays", output::duration(&row["lasts_s"])),
        ];
        for (key, said) in said {
            row[key] = said.into();
        }
    }
    with_states(LIST_COLUMNS, rows) + &of_sets(buffers)
}

/// How many articles the sets have that have several buffers.
fn of_sets(buffers: &Value) -> String {
    let mut sets: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for row in buffers.as_array().into_iter().flatten() {
        let articles = strip::articles(row, "set_articles");
        let set = sets.entry(output::cell(&row["set"]));
        set.or_insert((articles, 0)).1 += 1;
    }
    let several = sets.iter().filter(|(_, (_, buffers))| *buffers > 1);
    let lines = several.map(|(set, (articles, buffers))| {
        let many = if articles == "1" {
            "article"
        } else {
            "articles"
        };
        format!("set {set}: {articles} {many} in {buffers} buffers\n")
    });
    lines.collect()
}

fn inspect(names: &[String], spool: &LookArgs) -> Result<()> {
    let mut buffers = match access::ask(spool, Request::Store)? {
        Value::Array(buffers) => buffers,
        other => bail!("the server answered {other}"),
    };
    let all: Vec<String> = buffers
        .iter()
        .map(|buffer| output::cell(&buffer["name"]))
        .collect();
    if let Some(name) = names.iter().find(|name| !all.contains(name)) {
        bail!("there is no buffer {name:?}; there are {}", all.join(", "));
    }
    buffers.retain(|buffer| names.is_empty() || names.contains(&output::cell(&buffer["name"])));
    if spool.json {
        return output::json(&buffers.into());
    }
    let strips: Vec<String> = buffers.iter().map(strip::buffer).collect();
    output::text(&format!("{}\n{}", strips.join("\n"), strip::KEY))
}

/// The buffers as `status` shows them.
pub(super) fn table(buffers: &Value) -> String {
    let rows = buffers.as_array().cloned().unwrap_or_default();
    with_states(BUFFER_COLUMNS, rows)
}

/// A table of buffers; what is the matter with one stands in full below it.
fn with_states(columns: &[(&str, &str)], mut rows: Vec<Value>) -> String {
    let mut below = String::new();
    for row in &mut rows {
        let state = strip::state(row);
        let word = word(&state);
        if word != state {
            below.push_str(&format!("{}: {state}\n", output::cell(&row["name"])));
        }
        row["state"] = word.into();
    }
    output::table(columns, &rows) + &below
}

/// One word for a state.
fn word(state: &str) -> &str {
    match state.split_once(": ") {
        _ if newsreel_engine::is_well(state) => state,
        Some((
            word @ ("suspended" | "retired" | "drained" | "narrowing" | "defers" | "damaged"),
            _,
        )) => word,
        _ => "impaired",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// It was "1 articles".
    #[test]
    fn a_set_has_one_article_or_several() {
        let row = |articles: u64| json!({"set": "main", "set_articles": articles});
        for (articles, said) in [(1, "1 article"), (0, "0 articles"), (2, "2 articles")] {
            let line = of_sets(&json!([row(articles), row(articles)]));
            assert_eq!(line, format!("set main: {said} in 2 buffers\n"));
        }
    }

    /// On a server in transit mode, whose articles have no Xref, its own entry stayed.
    #[test]
    fn an_article_is_judged_as_it_came() {
        for (stored, came) in [
            (
                "Path: us!.POSTED!a!b\r\nXref: us x:1\r\n\r\n.\r\n",
                "Path: a!b\r\n\r\n.\r\n",
            ),
            (
                "Xref: old x:1\r\nPath: old!a!b\r\n\r\n.\r\n",
                "Path: a!b\r\n\r\n.\r\n",
            ),
            ("Path: us!!a!b\r\n\r\n.\r\n", "Path: a!b\r\n\r\n.\r\n"),
            ("Path: usa!b\r\n\r\n.\r\n", "Path: usa!b\r\n\r\n.\r\n"),
        ] {
            let mut wire = stored.as_bytes().to_vec();
            as_it_came(&mut wire, b"us");
            assert_eq!(String::from_utf8_lossy(&wire), came);
        }
    }

    #[test]
    fn long_states_stand_below_the_table() {
        let row = |name: &str, state: &str| {
            json!({"name": name, "set": "main", "octets": 1, "cycle": 1, "free_offset": 5,
                "reserved_offset": 5, "state": state, "path": "/s"})
        };
        let said = table(&json!([
            row("C0", "ok"),
            row("C1", "suspended: cannot write /s: it is gone"),
            row("C2", "one copy of its header is damaged (bad crc)"),
            json!({"name": "C3", "set": "main", "octets": 1, "cycle": 1, "free_offset": 5, "reserved_offset": 5,
                "state": "narrowing: it becomes smaller", "becomes_in_s": 7200, "path": "/s"}),
        ]));
        assert_eq!(
            said,
            "BUFFER  SET   OCTETS  CYCLE  POSITION  RESERVED  STATE      FILE\n\
             C0      main       1      1         5         5  ok         /s\n\
             C1      main       1      1         5         5  suspended  /s\n\
             C2      main       1      1         5         5  impaired   /s\n\
             C3      main       1      1         5         5  narrowing  /s\n\
             C1: suspended: cannot write /s: it is gone\n\
             C2: one copy of its header is damaged (bad crc)\n\
             C3: narrowing: it becomes smaller, in 2 h 0 min\n"
        );
    }
}
