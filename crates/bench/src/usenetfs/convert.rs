//! How long a full directory takes to become managed, and flat again, beside the bare renames; and whether a conversion that is
//! killed over and over ends as any other.
//!
//! Invariant: conversions are run by the program, as anybody would, and a time counts until what was changed is durable; after one
//! that was killed names, inodes and lengths are those from before the first kill, or it is an error.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::Folder;
use newsreel_layout::{Algorithm, Managed};
use rustix::process::Signal;
use serde::Serialize;

use super::directory::{Directory, layout, name};
use super::goals::{Goal, PAPER_FILES};
use super::volume::{FileSystem, Volume, told};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::progress::Progress;

/// What to measure.
#[derive(Debug, Clone)]
pub struct ConvertArgs {
    /// An empty or new directory, for the image file and its mount point.
    pub directory: PathBuf,
    /// The program that converts.
    pub program: PathBuf,
    /// On which file system.
    pub file_system: FileSystem,
    /// What the directory is managed by.
    pub algorithm: Algorithm,
    /// Files in it.
    pub files: u64,
    /// How often each is measured.
    pub rounds: u32,
    /// How often the last conversion is killed.
    pub kills: u32,
    /// Show progress bars on standard error when that is a terminal.
    pub progress: bool,
}

/// Seconds of one way to do it, the least of all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seconds {
    /// From flat to managed, with the blocks of the directory in memory.
    pub on: f64,
    /// From managed to flat.
    pub off: f64,
    /// From flat to managed, with nothing in memory before.
    pub cold_on: f64,
    /// From managed to flat, with nothing in memory before.
    pub cold_off: f64,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvertReport {
    /// The file system.
    pub file_system: String,
    /// What the directory is managed by.
    pub algorithm: String,
    /// Files in it.
    pub files: u64,
    /// By the program.
    pub converted: Seconds,
    /// The same names renamed one by one, in the order of their numbers, and nothing else: no mark, no check, nothing to go on from.
    pub renamed: Seconds,
    /// So often a conversion was killed before it ended, and went on in another run.
    pub killed: u32,
}

impl ConvertReport {
    /// As a table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let algorithm = &self.algorithm;
        let rows = |what: &str, seconds: Seconds| {
            let Seconds { on, off, .. } = seconds;
            let [cold_on, cold_off] = [seconds.cold_on, seconds.cold_off];
            format!(
                "| flat to {algorithm}{what} | {on:.2} | {cold_on:.2} |\n| {algorithm} to flat{what} | {off:.2} | {cold_off:.2} |\n"
            )
        };
        format!(
            "| {}, {} files | blocks in memory, s | nothing in memory, s |\n|---|---|---|\n{}{}\n\
             Killed {} times and resumed: the same names, inodes and lengths as before.\n",
            self.file_system,
            self.files,
            rows("", self.converted),
            rows(", bare renames", self.renamed),
            self.killed,
        )
    }

    /// What is asked of a directory of the paper's largest size.
    #[must_use]
    pub fn goals(&self) -> Vec<Goal> {
        if self.files != PAPER_FILES || self.file_system != FileSystem::Ext4.name() {
            return Vec::new();
        }
        let of = |what: String, seconds| {
            let what = format!("{what}, ext4, {PAPER_FILES} files");
            Goal::at_most(what, 10.0, seconds, " s")
        };
        let algorithm = &self.algorithm;
        let [on, off] = [
            format!("flat to {algorithm}"),
            format!("{algorithm} to flat"),
        ];
        let seconds = self.converted;
        vec![
            of(format!("{on}, blocks in memory"), seconds.on),
            of(format!("{on}, nothing in memory"), seconds.cold_on),
            of(format!("{off}, blocks in memory"), seconds.off),
            of(format!("{off}, nothing in memory"), seconds.cold_off),
        ]
    }
}

/// Measures.
pub fn run(args: &ConvertArgs, machine: Machine<'_>) -> Result<ConvertReport, Error> {
    let volume = Volume::new(&args.directory, args.file_system, args.files)?;
    let stage = Stage {
        args,
        machine,
        volume: &volume,
    };
    stage.fill()?;
    let all = u64::from(args.rounds) * 8;
    let shown = Progress::new(args.progress, "converting", Some(all));
    // By turns: what else the machine does befalls both.
    let [mut converted, mut renamed] = [[Duration::MAX; 4]; 2];
    let mut done = 0;
    let mut next = || {
        shown.at(done);
        done += 1;
    };
    for _ in 0..args.rounds {
        for (turn, least) in converted.iter_mut().enumerate() {
            next();
            let took = stage.timed(turn, |on| told(&mut stage.command(on), "").map(drop))?;
            *least = took.min(*least);
        }
        for (turn, least) in renamed.iter_mut().enumerate() {
            next();
            let took = stage.timed(turn, |on| stage.rename(on))?;
            *least = took.min(*least);
        }
    }
    drop(shown);
    let converted = seconds(converted);
    let killed = stage.kill_and_resume(converted.on)?;
    Ok(ConvertReport {
        file_system: args.file_system.name().to_owned(),
        algorithm: args.algorithm.to_string(),
        files: args.files,
        converted,
        renamed: seconds(renamed),
        killed,
    })
}

/// In the order in which they are done: on and off, with blocks in memory and with nothing.
fn seconds(least: [Duration; 4]) -> Seconds {
    let [on, off, cold_on, cold_off] = least.map(|time| time.as_secs_f64());
    Seconds {
        on,
        off,
        cold_on,
        cold_off,
    }
}

struct Stage<'a> {
    args: &'a ConvertArgs,
    machine: Machine<'a>,
    volume: &'a Volume,
}

impl Stage<'_> {
    fn at(&self) -> PathBuf {
        self.volume.at().join("group")
    }

    fn fill(&self) -> Result<(), Error> {
        let at = self.at();
        Directory::make(&at, None)?;
        let directory = Directory::native(&at)?;
        let shown = Progress::new(self.args.progress, "filling", Some(self.args.files));
        for number in 1..=self.args.files {
            directory.add(number)?;
            shown.at(number);
        }
        Ok(())
    }

    fn command(&self, on: bool) -> Command {
        let mut command = Command::new(&self.args.program);
        command.args(["usenetfs", "convert"]);
        match on {
            true => command
                .args(["on", "--algorithm"])
                .arg(self.args.algorithm.to_string()),
            false => command.arg("off"),
        };
        command.arg(self.at());
        command
    }

    /// How long a turn takes, until nothing of it is in memory only.
    fn timed(
        &self,
        turn: usize,
        convert: impl FnOnce(bool) -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        let (disk, clock) = (self.machine.disk, self.machine.clock);
        match turn >= 2 {
            true => self.volume.cool(disk)?,
            false => self.volume.settle(disk)?,
        }
        let begin = clock.monotonic();
        convert(turn.is_multiple_of(2))?;
        disk.sync_file_system(self.volume.at())?;
        Ok(clock.monotonic().saturating_sub(begin))
    }

    /// The renames alone.
    fn rename(&self, on: bool) -> Result<(), Error> {
        let managed = Managed::new(Folder::open(&self.at())?, self.args.algorithm);
        let folder = managed.folder();
        for number in 1..=self.args.files {
            let text = number.to_string();
            let (flat, name) = (Path::new(&text), name(&text)?);
            match on {
                true => managed
                    .with_bucket(name, |folder, place| folder.rename_new(flat, folder, place))
                    .map_err(layout)?,
                false => folder.rename_new(&managed.place(name), folder, flat)?,
            }
        }
        if !on {
            managed.remove_buckets().map_err(layout)?;
        }
        Ok(())
    }

    /// Kills runs that go on with one conversion, each after its part of the time that all of it took, and lets the last end.
    fn kill_and_resume(&self, seconds: f64) -> Result<u32, Error> {
        let part = Duration::from_secs_f64(seconds / f64::from(self.args.kills + 1));
        let mut killed = 0;
        for _ in 0..self.args.kills {
            killed += u32::from(self.is_killed(part)?);
        }
        // It fails where the view is not what it was when the first of them began.
        told(self.command(true).arg("--verify"), "")?;
        let mut verify = Command::new(&self.args.program);
        told(verify.args(["usenetfs", "verify"]).arg(self.at()), "")?;
        Ok(killed)
    }

    /// Whether it was killed before it ended.
    fn is_killed(&self, after: Duration) -> Result<bool, Error> {
        let failed = |error: std::io::Error| Error::Program {
            program: self.args.program.display().to_string(),
            why: error.to_string(),
        };
        let mut command = self.command(true);
        command.arg("--verify").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        std::thread::sleep(after);
        child.kill().map_err(failed)?;
        let status = child.wait().map_err(failed)?;
        Ok(status.signal() == Some(Signal::KILL.as_raw()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_beside_what_is_asked() {
        let mut report = ConvertReport {
            file_system: "ext4".to_owned(),
            algorithm: "range1024".to_owned(),
            files: PAPER_FILES,
            converted: seconds([3000, 4000, 10_500, 10_000].map(Duration::from_millis)),
            renamed: seconds([2500, 3000, 9000, 8000].map(Duration::from_millis)),
            killed: 3,
        };
        let met: Vec<bool> = report.goals().iter().map(Goal::is_met).collect();
        assert_eq!(met, [true, false, true, true]);
        let text = report.markdown();
        for line in [
            "| ext4, 524288 files |",
            "| flat to range1024 | 3.00 | 10.50 |\n| range1024 to flat | 4.00 | 10.00 |\n",
            "| flat to range1024, bare renames | 2.50 | 9.00 |\n",
            "Killed 3 times",
        ] {
            assert!(text.contains(line), "{text}");
        }
        report.files -= 1;
        assert!(report.goals().is_empty());
    }
}
