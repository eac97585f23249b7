//! The `.nntp` format: parsed into steps, nothing is played here.
//!
//! Parsing is strict: a directive nobody knows or a line without a mark is an error with its line number, so that a
//! slip of the pen never becomes a check that is not made.

mod parse;
mod template;

pub use parse::parse;
pub use template::{Bindings, Template};

use std::path::PathBuf;
use std::time::Duration;

/// A parsed file.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// Where it was read from; failures name it.
    pub path: PathBuf,
    /// The first comment line: what is promised.
    pub title: String,
    /// `@config key = value` lines.
    pub config: Vec<(String, String)>,
    /// `@mode word key=value ...`, if given.
    pub mode: Option<String>,
    /// `@with key = a, b`: the file is played once per value.
    pub with: Vec<(String, Vec<String>)>,
    /// Connections the server opens (`@upstream`, `@sink`): the transcript plays their server side.
    pub reversed: Vec<String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The file as it is, for `bless`.
    pub source: Vec<String>,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its line in the file, from 1.
    pub line: usize,
    /// What.
    pub kind: StepKind,
}

/// What a step is.
#[derive(Debug, Clone)]
pub enum StepKind {
    /// A line with a mark `C` or `S`.
    Speech {
        /// Whether the client's side says it.
        by_client: bool,
        /// The connection; empty for the first one.
        connection: String,
        /// What is said.
        speech: Speech,
    },
    /// A directive.
    Action(Action),
    /// `O:` a line the tool of the last `@run` prints.
    Output(Template),
}

/// What one side says.
#[derive(Debug, Clone)]
pub enum Speech {
    /// `:` a line.
    Line(Template),
    /// `|` octets without CRLF.
    Raw(Template),
    /// `<` an article file.
    File(PathBuf),
    /// `*` the same line so many times.
    Repeat(usize, Template),
    /// `=` a line of a block, in any order.
    AnyOrder(Template),
    /// `~` a line of a block, in any order and once or more often.
    AnyTimes(Template),
    /// `+` a line that a block must have.
    Must(Template),
    /// `!` a line that a block must not have.
    MustNot(Template),
}

/// A directive that is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `@group name [status [description]]`.
    Group {
        /// The group's name.
        name: String,
        /// Its status field.
        status: String,
        /// Its description, perhaps empty.
        description: String,
    },
    /// `@user name password [group ...]`.
    User {
        /// Their name.
        name: String,
        /// Their password.
        password: String,
        /// The groups they are in.
        groups: Vec<String>,
    },
    /// `@article <id> group[:number],... file`.
    Article {
        /// Its message-id.
        id: String,
        /// Its groups, with the number it must get if one is given.
        groups: Vec<(String, Option<u64>)>,
        /// The file.
        file: PathBuf,
    },
    /// `@clock 2026-01-31T12:00:00Z`, as seconds since 1970.
    Clock(u64),
    /// `@advance 10d`.
    Advance(Duration),
    /// `@expire`.
    Expire,
    /// `@restart`: a clean stop and a start.
    Restart,
    /// `@crash`: as by `kill -9`, and a start.
    Crash,
    /// `@stop`: the server is told to stop, and connections are still there.
    Stop,
    /// `@fault ...`.
    Fault(Vec<String>),
    /// `@run verb ...`: a command-line tool.
    Run(Vec<String>),
    /// `@metric name value`.
    Metric(String, String),
    /// `@wait 1s`: this long nothing is said.
    Wait(Duration),
    /// `@closed [connection]`: the server closes it, without another octet.
    Closed(String),
    /// `@shutdown [connection]`: the client's half is closed.
    Shutdown(String),
    /// `@tls [connection] [as name]`: the client begins TLS, and shows a certificate for the name.
    Tls(String, Option<String>),
    /// `@deflate [connection]`: the client begins to compress.
    Deflate(String),
    /// `@drop [connection]`: the connection is gone.
    Drop(String),
}
