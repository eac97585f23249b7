//! What a pass found out, for people and for programs.
//!
//! Invariant: every figure names its unit, and figures that were not measured are absent, not zero.
//! Must not print.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use crate::client::tally::{KindTally, Reason, Tally};
use crate::load::LoadArgs;
use crate::measure::process::ServerCost;

/// The result of one pass.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was run.
    pub pass: String,
    /// Connections.
    pub connections: usize,
    /// Commands under way on a connection at most.
    pub depth: usize,
    /// Whether replies were acknowledged at once.
    pub quick_ack: bool,
    /// Whether it was in TLS.
    pub tls: bool,
    /// Whether it was compressed; octets are counted as they were before that.
    pub compressed: bool,
    /// From the first command to the last reply.
    pub seconds: f64,
    /// Answered operations of the kind that the pass measures.
    pub operations: u64,
    /// Operations a second.
    pub per_second: f64,
    /// Octets received, in megabytes a second.
    pub received_mb_per_second: f64,
    /// Octets sent, in megabytes a second.
    pub sent_mb_per_second: f64,
    /// Articles the server took (235, 239, 240).
    pub accepted: u64,
    /// Articles that the server did not want (435, 437, 438, 439, 441).
    pub refused: u64,
    /// Why the server did not take articles, in its own words, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonReport>,
    /// Articles that were asked for and not there (423, 430).
    pub missing: u64,
    /// Replies that were not what was asked for.
    pub damaged: u64,
    /// Articles that were compared octet for octet.
    pub compared: u64,
    /// Lines of multi-line replies where they are counted.
    pub lines: u64,
    /// Connections that ended before their work.
    pub lost_connections: u64,
    /// The first of the damaged replies and lost connections, in words.
    pub complaints: Vec<String>,
    /// Each kind of command that was sent.
    pub commands: Vec<CommandReport>,
    /// Processor time of this client for one operation.
    pub client_cpu_us: f64,
    /// How much of one processor this client used.
    pub client_cpu_share: f64,
    /// What it cost the server, when its process is known.
    pub server: Option<ServerReport>,
    /// How it went on, when that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
    /// After how long each so many operations were done, when that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lap_secs: Vec<f64>,
}

/// One kind of command.
#[derive(Debug, Clone, Serialize)]
pub struct CommandReport {
    /// The command.
    pub command: &'static str,
    /// Answered ones.
    pub answered: u64,
    /// Replies by code.
    pub codes: BTreeMap<u16, u64>,
    /// From sending to the last octet of the reply.
    pub latency: Latency,
}

/// Why a server did not take articles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonReport {
    /// The code of its reply.
    pub code: u16,
    /// What followed it, the message-id left out.
    pub text: String,
    /// Times it was said.
    pub count: u64,
}

impl fmt::Display for ReasonReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.text.is_empty() { "" } else { " " };
        write!(f, "{}{space}{} x {}", self.code, self.text, self.count)
    }
}

/// How long replies took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// On average.
    pub mean_us: f64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 90 of a hundred took no longer.
    pub p90_us: f64,
    /// 99 of a hundred took no longer.
    pub p99_us: f64,
    /// 999 of a thousand took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// What the server spent, its children included.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ServerReport {
    /// Processor time for one operation.
    pub cpu_us: f64,
    /// Of it in user mode (from ticks of 10 ms: coarse in short runs).
    pub user_us: f64,
    /// Of it in the kernel.
    pub system_us: f64,
    /// How much of one processor it used.
    pub cpu_share: f64,
    /// Times it went to sleep, for one operation.
    pub voluntary_switches: f64,
    /// Times it was pushed aside, for one operation.
    pub involuntary_switches: f64,
    /// Read calls (files, sockets by `read`) for one operation.
    pub read_calls: f64,
    /// Write calls for one operation.
    pub write_calls: f64,
    /// Octets handed to write calls, for one operation.
    pub written_bytes: f64,
    /// Octets fetched from the disk, for one operation.
    pub disk_read_bytes: f64,
    /// Octets sent to the disk, for one operation.
    pub disk_written_bytes: f64,
    /// Memory held at the end.
    pub rss_bytes: u64,
    /// The same with pages that are shared counted in part.
    pub pss_bytes: u64,
    /// Threads at the end.
    pub threads: u64,
    /// Processes at the end.
    pub processes: u64,
}

/// A look on the way.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Moment {
    /// Seconds since the start.
    pub at_secs: f64,
    /// Operations answered so far.
    pub operations: u64,
    /// The server's memory.
    pub server_rss_bytes: Option<u64>,
}

/// What a worker counted, for people: what a server says may have anything in it.
fn reasons(counted: &[Reason]) -> Vec<ReasonReport> {
    let shown = |reason: &Reason| {
        let text = String::from_utf8_lossy(&reason.text);
        ReasonReport {
            code: reason.code,
            text: text.replace(char::is_control, "?"),
            count: reason.count,
        }
    };
    let mut reasons: Vec<ReasonReport> = counted.iter().map(shown).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons
}

impl Report {
    pub(crate) fn new(
        pass: &str,
        args: &LoadArgs,
        depth: usize,
        elapsed: Duration,
        tally: Tally,
    ) -> Self {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let counted = tally.kinds.iter().filter(|kind| kind.kind.counted);
        let operations = counted.map(|kind| kind.latency_ns.len()).sum();
        let coded = |wanted: &[u16]| {
            let codes = tally.kinds.iter().flat_map(KindTally::codes);
            codes
                .filter(|(code, _)| wanted.contains(code))
                .map(|(_, count)| count)
                .sum()
        };
        Self {
            pass: pass.to_owned(),
            connections: args.connections,
            depth,
            quick_ack: args.quick_ack,
            tls: args.tls,
            compressed: args.compress,
            seconds,
            operations,
            per_second: operations as f64 / seconds,
            received_mb_per_second: tally.octets_in as f64 / seconds / 1e6,
            sent_mb_per_second: tally.octets_out as f64 / seconds / 1e6,
            accepted: coded(&[235, 239, 240]),
            refused: coded(&[435, 437, 438, 439, 441]),
            reasons: reasons(&tally.reasons),
            missing: coded(&[423, 430]),
            damaged: tally.damaged,
            compared: tally.compared,
            lines: tally.lines,
            lost_connections: tally.lost,
            commands: tally.kinds.iter().filter_map(CommandReport::new).collect(),
            complaints: tally.complaints,
            client_cpu_us: 0.0,
            client_cpu_share: 0.0,
            server: None,
            timeline: Vec::new(),
            lap_secs: Vec::new(),
        }
    }

    pub(crate) fn client_spent(&mut self, cpu: Duration) {
        self.client_cpu_us = cpu.as_secs_f64() * 1e6 / self.divisor();
        self.client_cpu_share = cpu.as_secs_f64() / self.seconds;
    }

    pub(crate) fn server_spent(&mut self, cost: &ServerCost) {
        let divisor = self.divisor();
        let each = |sum: u64| sum as f64 / divisor;
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / divisor;
        self.server = Some(ServerReport {
            cpu_us: micros(cost.cpu),
            user_us: micros(cost.user),
            system_us: micros(cost.system),
            cpu_share: cost.cpu.as_secs_f64() / self.seconds,
            voluntary_switches: each(cost.voluntary_switches),
            involuntary_switches: each(cost.involuntary_switches),
            read_calls: each(cost.read_calls),
            write_calls: each(cost.write_calls),
            written_bytes: each(cost.written_octets),
            disk_read_bytes: each(cost.disk_read_octets),
            disk_written_bytes: each(cost.disk_written_octets),
            rss_bytes: cost.rss_octets,
            pss_bytes: cost.pss_octets,
            threads: cost.threads,
            processes: cost.processes,
        });
    }

    /// Whether every reply was right and no connection was lost.
    pub const fn is_sound(&self) -> bool {
        self.damaged == 0 && self.lost_connections == 0
    }

    /// How long 99 of a hundred replies to a command took at most.
    pub(crate) fn percentile_99_us(&self, command: &str) -> Option<f64> {
        let mut commands = self.commands.iter();
        let found = commands.find(|report| report.command == command);
        found.map(|report| report.latency.p99_us)
    }

    /// For a terminal.
    pub fn human(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_human(&mut text);
        text
    }

    fn divisor(&self) -> f64 {
        self.operations.max(1) as f64
    }

    fn write_human(&self, text: &mut String) -> fmt::Result {
        let acks = if self.quick_ack { "quick" } else { "usual" };
        writeln!(
            text,
            "{}: {} operations in {:.2} s = {:.0}/s ({:.1} MB/s in, {:.1} MB/s out); \
             {} connections, depth {}, {acks} acknowledgements",
            self.pass,
            self.operations,
            self.seconds,
            self.per_second,
            self.received_mb_per_second,
            self.sent_mb_per_second,
            self.connections,
            self.depth,
        )?;
        for command in &self.commands {
            command.write_human(text)?;
        }
        for reason in &self.reasons {
            writeln!(text, "  not taken  {reason}")?;
        }
        let cpu = self.client_cpu_share * 100.0;
        writeln!(
            text,
            "  client     {:.2} us CPU an operation ({cpu:.0} %)",
            self.client_cpu_us
        )?;
        if let Some(server) = &self.server {
            server.write_human(text)?;
        }
        if self.compared > 0 {
            writeln!(
                text,
                "  compared   {} articles octet for octet",
                self.compared
            )?;
        }
        if !self.is_sound() {
            writeln!(
                text,
                "  WRONG      {} replies damaged, {} connections lost",
                self.damaged, self.lost_connections
            )?;
        }
        for complaint in &self.complaints {
            writeln!(text, "    {complaint}")?;
        }
        for moment in &self.timeline {
            let rss = moment.server_rss_bytes.unwrap_or_default() as f64 / 1e6;
            writeln!(
                text,
                "  {:8.1} s  {} done, {rss:.1} MB",
                moment.at_secs, moment.operations
            )?;
        }
        Ok(())
    }
}

impl ServerReport {
    fn write_human(&self, text: &mut String) -> fmt::Result {
        writeln!(
            text,
            "  server     {:.2} us CPU an operation ({:.2} user + {:.2} system, {:.0} %), \
             {:.2} sleeps, {:.2} read and {:.2} write calls",
            self.cpu_us,
            self.user_us,
            self.system_us,
            self.cpu_share * 100.0,
            self.voluntary_switches,
            self.read_calls,
            self.write_calls,
        )?;
        writeln!(
            text,
            "             {:.1} MB resident ({:.1} MB in proportion), {} threads in {} processes; \
             {:.0} octets written, {:.0} to disk an operation",
            self.rss_bytes as f64 / 1e6,
            self.pss_bytes as f64 / 1e6,
            self.threads,
            self.processes,
            self.written_bytes,
            self.disk_written_bytes,
        )
    }
}

impl CommandReport {
    fn write_human(&self, text: &mut String) -> fmt::Result {
        let codes = self
            .codes
            .iter()
            .map(|(code, count)| format!("{code} x {count}"));
        let latency = &self.latency;
        writeln!(
            text,
            "  {:10} p50 {:.0} us, p90 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0}; {}",
            self.command,
            latency.p50_us,
            latency.p90_us,
            latency.p99_us,
            latency.p999_us,
            latency.max_us,
            codes.collect::<Vec<_>>().join(", "),
        )
    }

    fn new(tally: &KindTally) -> Option<Self> {
        let codes: BTreeMap<u16, u64> = tally.codes().collect();
        if tally.latency_ns.is_empty() && codes.is_empty() {
            return None;
        }
        let at = |quantile| tally.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
        Some(Self {
            command: tally.kind.name,
            answered: tally.latency_ns.len(),
            codes,
            latency: Latency {
                mean_us: tally.latency_ns.mean() / 1e3,
                p50_us: at(0.5),
                p90_us: at(0.9),
                p99_us: at(0.99),
                p999_us: at(0.999),
                max_us: tally.latency_ns.max() as f64 / 1e3,
            },
        })
    }
}
