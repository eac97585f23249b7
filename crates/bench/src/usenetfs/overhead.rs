//! Table 2 of the paper: what the mount itself costs a package that is unpacked and built, in a directory that is not managed.
//!
//! Invariant: natively and through the mount one after the other in each round, beginning with the other one in the next; the
//! least of all rounds counts, of each figure by itself. Processors are counted with all their work, that of the server behind
//! the mount included, and the device until everything is written.

use std::path::PathBuf;
use std::time::Duration;

use newsreel_host::Folder;
use serde::Serialize;

use super::goals::Goal;
use super::package::Package;
use super::volume::{FileSystem, View, Volume, call, device_of};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::machine::{CpuLook, DeviceLook};
use crate::measure::progress::Progress;

/// The room for a package; more files than this have few.
const FILES_MAX: u64 = 1 << 18;

/// What to measure.
#[derive(Debug, Clone)]
pub struct OverheadArgs {
    /// An empty or new directory, for the image file and mount points.
    pub directory: PathBuf,
    /// The program that mounts.
    pub program: PathBuf,
    /// On which file system.
    pub file_system: FileSystem,
    /// Its size.
    pub octets: u64,
    /// What is unpacked and built.
    pub package: Package,
    /// How often.
    pub rounds: u32,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// What it costs to unpack a package and to build it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BuildCost {
    /// Until it was unpacked.
    pub unpack_seconds: f64,
    /// From then until it was built.
    pub build_seconds: f64,
    /// Both.
    pub seconds: f64,
    /// Time of all processors at work meanwhile, and until it was written.
    pub processor_seconds: Option<f64>,
    /// Octets that the device read.
    pub read_octets: Option<u64>,
    /// Octets that it wrote.
    pub written_octets: Option<u64>,
}

impl BuildCost {
    /// The lesser of each.
    fn least(self, other: Self) -> Self {
        let octets = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.min(b));
        let processor = self.processor_seconds.zip(other.processor_seconds);
        Self {
            unpack_seconds: self.unpack_seconds.min(other.unpack_seconds),
            build_seconds: self.build_seconds.min(other.build_seconds),
            seconds: self.seconds.min(other.seconds),
            processor_seconds: processor.map(|(a, b)| a.min(b)),
            read_octets: octets(self.read_octets, other.read_octets),
            written_octets: octets(self.written_octets, other.written_octets),
        }
    }

    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        let processor = self.processor_seconds;
        let processor = processor.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}"));
        format!(
            "unpacked {:.3} s, built {:.3} s, both {:.3} s, processors {processor} s",
            self.unpack_seconds, self.build_seconds, self.seconds
        )
    }
}

/// The least of all rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverheadReport {
    /// The file system.
    pub file_system: String,
    /// What was run to build.
    pub build: String,
    /// How often.
    pub rounds: u32,
    /// On the file system itself.
    pub native: BuildCost,
    /// Through the mount.
    pub mounted: BuildCost,
    /// By how much of a hundred the mount takes longer.
    pub wall_percent: f64,
    /// By how much of a hundred processors work longer.
    pub processor_percent: Option<f64>,
}

impl OverheadReport {
    fn new(args: &OverheadArgs, native: BuildCost, mounted: BuildCost) -> Self {
        let processor = mounted.processor_seconds.zip(native.processor_seconds);
        Self {
            file_system: args.file_system.name().to_owned(),
            build: args.package.build.clone(),
            rounds: args.rounds,
            native,
            mounted,
            wall_percent: more(mounted.seconds, native.seconds),
            processor_percent: processor.map(|(mounted, native)| more(mounted, native)),
        }
    }

    /// What is asked of a mount.
    #[must_use]
    pub fn goals(&self) -> Vec<Goal> {
        let more = |what: &str, asked, measured| {
            let what = format!(
                "more {what} for an unpacking and a build through the mount, {}",
                self.file_system
            );
            Goal::at_most(what, asked, measured, " %")
        };
        let wall = more("time", 2.0, self.wall_percent);
        let processor = self.processor_percent;
        let processor = processor.map(|percent| more("work of processors", 1.2, percent));
        [wall].into_iter().chain(processor).collect()
    }

    /// As a table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let (native, mounted) = (&self.native, &self.mounted);
        let mut text = format!(
            "| {} | native | mounted | more |\n|---|---|---|---|\n",
            self.file_system
        );
        let mib = |octets: Option<u64>| octets.map(|octets| octets as f64 / f64::from(1 << 20));
        for (what, native, mounted) in [
            (
                "unpacked, s",
                Some(native.unpack_seconds),
                Some(mounted.unpack_seconds),
            ),
            (
                "built, s",
                Some(native.build_seconds),
                Some(mounted.build_seconds),
            ),
            ("both, s", Some(native.seconds), Some(mounted.seconds)),
            (
                "processors, s",
                native.processor_seconds,
                mounted.processor_seconds,
            ),
            (
                "read, MiB",
                mib(native.read_octets),
                mib(mounted.read_octets),
            ),
            (
                "written, MiB",
                mib(native.written_octets),
                mib(mounted.written_octets),
            ),
        ] {
            let shown = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
            let ratio = native.zip(mounted).filter(|&(native, _)| native > 0.0);
            let ratio = ratio.map_or("-".to_owned(), |(native, mounted)| {
                format!("{:+.1} %", more(mounted, native))
            });
            text.push_str(&format!(
                "| {what} | {} | {} | {ratio} |\n",
                shown(native),
                shown(mounted)
            ));
        }
        text
    }
}

/// By how much of a hundred `this` is more than `that`.
fn more(this: f64, that: f64) -> f64 {
    100.0 * (this / that - 1.0)
}

/// Measures; every build is told when it is done, with its round and whether it was through the mount.
pub fn run(
    args: &OverheadArgs,
    machine: Machine<'_>,
    on_build: &mut dyn FnMut(u32, bool, &BuildCost),
) -> Result<OverheadReport, Error> {
    let volume = Volume::with_room(&args.directory, args.file_system, FILES_MAX, args.octets)?;
    let mut least: [Option<BuildCost>; 2] = [None, None];
    let shown = Progress::new(args.progress, "builds", Some(2 * u64::from(args.rounds)));
    let mut done = 0;
    for round in 0..args.rounds {
        let first = round % 2 == 1;
        for mounted in [first, !first] {
            let cost = build(args, machine, &volume, mounted)?;
            on_build(round + 1, mounted, &cost);
            done += 1;
            shown.at(done);
            let least = &mut least[usize::from(mounted)];
            *least = Some(least.map_or(cost, |least| least.least(cost)));
        }
    }
    let [Some(native), Some(mounted)] = least else {
        return Err(Error::Argument {
            name: "the number of rounds",
            value: args.rounds.to_string(),
            why: "measure at least once".to_owned(),
        });
    };
    Ok(OverheadReport::new(args, native, mounted))
}

/// One build, of which nothing stays.
fn build(
    args: &OverheadArgs,
    machine: Machine<'_>,
    volume: &Volume,
    mounted: bool,
) -> Result<BuildCost, Error> {
    let view = args.directory.join("view");
    let view = mounted.then(|| View::new(&args.program, volume.at(), &view));
    let view = view.transpose()?;
    let at = view.as_ref().map_or(volume.at(), View::at).join("build");
    machine.disk.create_dir_all(&at)?;
    let settle = || Folder::open(volume.at())?.sync_file_system();
    let device = device_of(volume.at())?;
    settle()?;
    let look = || {
        (
            CpuLook::take(machine.disk),
            DeviceLook::take(machine.disk, &device),
        )
    };
    let (cpu, disk) = look();
    let begin = machine.clock.monotonic();
    let top = args.package.unpack(&at)?;
    let unpacked = machine.clock.monotonic();
    args.package.build(&top)?;
    let built = machine.clock.monotonic();
    settle()?;
    let (cpu_after, disk_after) = look();
    call("rm", ["-rf".as_ref(), at.as_os_str()])?;
    let disk = disk_after.zip(disk);
    let disk = disk.map(|(after, before)| after.since(&before));
    let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
    Ok(BuildCost {
        unpack_seconds: seconds(begin, unpacked),
        build_seconds: seconds(unpacked, built),
        seconds: seconds(begin, built),
        processor_seconds: cpu_after
            .zip(cpu)
            .map(|(after, before)| after.busy_since(&before).as_secs_f64()),
        read_octets: disk.map(|cost| cost.read_octets),
        written_octets: disk.map(|cost| cost.written_octets),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_each_figure_and_how_much_more_it_is() {
        let cost = |unpack: f64, build: f64, processor: Option<f64>, octets| BuildCost {
            unpack_seconds: unpack,
            build_seconds: build,
            seconds: unpack + build,
            processor_seconds: processor,
            read_octets: Some(octets),
            written_octets: None,
        };
        let least = cost(1.0, 8.0, Some(3.0), 7).least(cost(2.0, 6.0, Some(4.0), 5));
        let expected = BuildCost {
            seconds: 8.0,
            ..cost(1.0, 6.0, Some(3.0), 5)
        };
        assert_eq!(least, expected);
        let args = OverheadArgs {
            directory: PathBuf::new(),
            program: PathBuf::new(),
            file_system: FileSystem::Ext4,
            octets: 0,
            package: Package {
                tar: PathBuf::new(),
                build: "make".to_owned(),
            },
            rounds: 2,
            progress: false,
        };
        let report = OverheadReport::new(&args, least, cost(2.0, 6.4, Some(3.03), 0));
        assert!((report.wall_percent - 5.0).abs() < 1e-9, "{report:?}");
        let processor = report.processor_percent.unwrap();
        assert!((processor - 1.0).abs() < 1e-9, "{report:?}");
        let met: Vec<bool> = report.goals().iter().map(Goal::is_met).collect();
        assert_eq!(met, [false, true]);
        let table = report.markdown();
        for line in [
            "| both, s | 8.000 | 8.400 | +5.0 % |",
            "| processors, s | 3.000 | 3.030 | +1.0 % |",
            "| written, MiB | - | - | - |",
        ] {
            assert!(table.contains(line), "{table}");
        }
    }
}
