//! Idle connections: opened, held, and found alive at the end.
//!
//! Invariant: every connection that is counted was greeted, and answered once more after the pause.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use crate::client::connect::Opened;
use crate::error::Error;
use crate::load::{Machine, allow_open_files, has_process};
use crate::measure::process::ServerLook;
use crate::measure::progress::Progress;

/// How many connections to hold, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleArgs {
    /// The server's address.
    pub server: SocketAddr,
    /// Number of connections.
    pub connections: usize,
    /// How long to hold them.
    pub duration_secs: f64,
    /// Process id of the server on this machine: its memory is reported.
    pub server_pid: Option<u32>,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// What idle connections cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IdleReport {
    /// Number of connections.
    pub connections: usize,
    /// Connections that still answered at the end.
    pub alive: usize,
    /// How long it took to open them all.
    pub open_seconds: f64,
    /// The server's memory before.
    pub rss_before_bytes: Option<u64>,
    /// The server's memory with all of them open.
    pub rss_after_bytes: Option<u64>,
    /// What one connection costs.
    pub rss_each_bytes: Option<f64>,
    /// Processor time of the server while they were held.
    pub held_cpu_seconds: Option<f64>,
    /// Processes of the server with all of them open.
    pub processes: Option<u64>,
    /// Threads of the server with all of them open.
    pub threads: Option<u64>,
}

impl IdleReport {
    /// For a terminal.
    pub fn human(&self) -> String {
        let clients = format!(
            "{} idle connections opened in {:.2} s, {} alive at the end\n",
            self.connections, self.open_seconds, self.alive
        );
        let (Some(before), Some(after), Some(each), Some(cpu)) = (
            self.rss_before_bytes,
            self.rss_after_bytes,
            self.rss_each_bytes,
            self.held_cpu_seconds,
        ) else {
            return clients + "what they cost the server: give its --pid\n";
        };
        format!(
            "{clients}server: {:.1} MB before, {:.1} MB with them, {:.1} KB each; {cpu:.2} s CPU while held; \
             {} threads in {} processes\n",
            before as f64 / 1e6,
            after as f64 / 1e6,
            each / 1e3,
            self.threads.unwrap_or_default(),
            self.processes.unwrap_or_default(),
        )
    }
}

/// Opens connections, holds them and asks each once at the end.
pub fn run(args: &IdleArgs, machine: Machine<'_>) -> Result<IdleReport, Error> {
    if !(1..=60_000).contains(&args.connections) {
        return Err(Error::Argument {
            name: "connections",
            value: args.connections.to_string(),
            why: "from 1 to 60,000 work".to_owned(),
        });
    }
    if let Some(pid) = args.server_pid {
        has_process(machine, pid)?;
    }
    allow_open_files(args.connections as u64 + 100);
    let look = || {
        args.server_pid
            .map(|pid| ServerLook::take(machine.disk, pid))
    };
    let before = look();
    let started = machine.clock.monotonic();
    let progress = Progress::new(args.progress, "connections", Some(args.connections as u64));
    let mut held = Vec::with_capacity(args.connections);
    for place in 0..args.connections {
        let mut connection = Opened::open(args.server, false)?;
        connection.command("MODE READER", &[200, 201])?;
        held.push(connection);
        progress.at(place as u64 + 1);
    }
    let opened = machine.clock.monotonic();
    let open = look();
    std::thread::sleep(Duration::from_secs_f64(
        args.duration_secs.clamp(0.0, 86_400.0),
    ));
    let after = look();
    let mut alive = 0;
    for connection in &mut held {
        alive += usize::from(connection.command("DATE", &[111]).is_ok());
    }
    let held_cost = open
        .as_ref()
        .zip(after.as_ref())
        .map(|(open, after)| after.since(open));
    let rss = |look: Option<&ServerLook>| look.map(ServerLook::rss_octets);
    let (rss_before, rss_after) = (rss(before.as_ref()), rss(after.as_ref()));
    let grown = rss_before
        .zip(rss_after)
        .map(|(before, after)| after as f64 - before as f64);
    Ok(IdleReport {
        connections: args.connections,
        alive,
        open_seconds: opened.saturating_sub(started).as_secs_f64(),
        rss_before_bytes: rss_before,
        rss_after_bytes: rss_after,
        rss_each_bytes: grown.map(|grown| grown / args.connections as f64),
        held_cpu_seconds: held_cost.map(|cost| cost.cpu.as_secs_f64()),
        processes: held_cost.map(|cost| cost.processes),
        threads: held_cost.map(|cost| cost.threads),
    })
}
