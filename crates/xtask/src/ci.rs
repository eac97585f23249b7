//! The steps of the continuous integration: one table, run in order, each timed, up to the first failure.
//!
//! A step is a plain command, printed before it runs, so that anyone can repeat it by hand.  What the tests that failed
//! said is said again at the end, where whoever sees only the last lines finds it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the steps of the day: format, tidy, clippy and the tests
    #[arg(long)]
    quick: bool,
    /// Say the steps and their commands, run nothing
    #[arg(long)]
    list: bool,
    /// Run only the steps with this word in their name
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

/// One step.
struct Step {
    name: &'static str,
    /// Part of `--quick`.
    quick: bool,
    command: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// Tests with these words in their names do all they can now, to the release binary.
const FULL: &[(&str, &str)] = &[("NEWSREEL_TEST_SCALE", "full")];

/// The tests with these words in their names, one at a time, with their figures.  All packages are named so that what
/// the step of all tests has built is used again.
macro_rules! full_tests {
    ($words:literal) => {
        &[
            "cargo",
            "test",
            "--locked",
            "--workspace",
            "--test",
            "it",
            "--",
            $words,
            "--nocapture",
            "--test-threads=1",
        ]
    };
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        quick: true,
        command: &["cargo", "fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        name: "tidy: the house rules",
        quick: true,
        command: &["cargo", "test", "--locked", "--package", "newsreel-xtask"],
        environment: &[],
    },
    Step {
        name: "clippy",
        quick: true,
        command: &[
            "cargo",
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
        environment: &[],
    },
    Step {
        name: "tests: unit, property, conformance, fault, transcripts, fuzz corpus, documentation",
        quick: true,
        command: &["cargo", "test", "--locked", "--workspace", "--no-fail-fast"],
        // Many of them wait, for disks, clocks and processes.
        environment: &[
            ("RUST_TEST_THREADS", "4"),
            ("RUSTDOCFLAGS", "--deny warnings"),
        ],
    },
    Step {
        name: "with PAM: that it is built and asked",
        quick: false,
        // All packages, so that only the binary and its tests are built anew.
        command: &[
            "cargo",
            "test",
            "--locked",
            "--workspace",
            "--features",
            "newsreel-app/pam",
            "--test",
            "it",
            "--",
            "pam::",
        ],
        environment: &[],
    },
    Step {
        name: "fuzz targets: that they build",
        quick: false,
        // Only checked, on the stable compiler: nothing is linked, so libFuzzer itself need not be there or be built.
        command: &[
            "cargo",
            "check",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--bins",
            "--target-dir",
            "target",
        ],
        environment: &[("CUSTOM_LIBFUZZER_PATH", "/usr/lib/libFuzzer.a")],
    },
    Step {
        name: "documentation",
        quick: false,
        command: &[
            "cargo",
            "doc",
            "--locked",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ],
        environment: &[("RUSTDOCFLAGS", "--deny warnings")],
    },
    Step {
        name: "release build",
        quick: false,
        command: &[
            "cargo",
            "build",
            "--locked",
            "--release",
            "--package",
            "newsreel-app",
        ],
        environment: &[],
    },
    Step {
        name: "tools: what tries a mounted file system",
        quick: false,
        command: &[
            "cargo",
            "install",
            "--locked",
            "--debug",
            "--root",
            "target/tools",
            "pjdfstest@0.2.2",
            "fsx@0.3.2",
        ],
        environment: &[],
    },
    Step {
        name: "release: a mounted file system",
        quick: false,
        command: full_tests!("usenetfs::"),
        environment: FULL,
    },
    Step {
        name: "release: buffers on block devices",
        quick: false,
        command: full_tests!("block_device::"),
        environment: FULL,
    },
    Step {
        name: "release: transcripts over loopback",
        quick: false,
        command: full_tests!("transcripts::"),
        environment: FULL,
    },
    Step {
        name: "a hundred thousand groups",
        quick: false,
        command: full_tests!("scale::"),
        environment: FULL,
    },
    Step {
        name: "release: the memory of a hundred thousand groups",
        quick: false,
        command: full_tests!("many_groups::"),
        environment: FULL,
    },
    Step {
        name: "release: the real corpus",
        quick: false,
        command: full_tests!("corpus::"),
        environment: FULL,
    },
    Step {
        name: "release: 50 kills in the middle of a feed",
        quick: false,
        command: full_tests!("kills::"),
        environment: FULL,
    },
    Step {
        name: "release: a thousand articles over a slow link",
        quick: false,
        command: full_tests!("caching::a_thousand"),
        environment: FULL,
    },
    Step {
        name: "release: the demo, small",
        quick: false,
        command: &["script/demo", "--small"],
        environment: &[],
    },
    Step {
        name: "release: small bench",
        quick: false,
        command: full_tests!("bench::every_pass"),
        environment: FULL,
    },
    Step {
        name: "release: small bench of storage",
        quick: false,
        command: full_tests!("bench_storage::"),
        environment: FULL,
    },
    Step {
        name: "release: the toaster on every place",
        quick: false,
        // A minute, for its images are written out in full. Its other tests do in the daily run all that they do whole, to fewer articles.
        command: full_tests!("bench_toaster::every_place"),
        environment: FULL,
    },
    Step {
        name: "release: all articles through a ring of servers",
        quick: false,
        // Through INN, too, they take minutes: the daily run sends some that way.
        command: full_tests!("relaying::everything_arrives_once_in_a_ring"),
        environment: FULL,
    },
    Step {
        name: "release: soak of 60 seconds",
        quick: false,
        command: full_tests!("bench::feed_readers"),
        environment: FULL,
    },
];

#[expect(clippy::print_stdout, reason = "the task's result")]
#[expect(
    clippy::disallowed_methods,
    reason = "steps are timed for the person who waits"
)]
pub(crate) fn run(args: &Args) -> Result<()> {
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| is_chosen(step, args)).collect();
    if chosen.is_empty() {
        bail!(
            "no step has {:?} in its name; see --list",
            args.only.as_deref().unwrap_or_default()
        );
    }
    let begin = Instant::now();
    let mut times = Vec::new();
    for (at, step) in chosen.iter().enumerate() {
        println!("\n=== {}/{} {}", at + 1, chosen.len(), step.name);
        println!("    {}", said(step));
        if args.list {
            continue;
        }
        let step_begin = Instant::now();
        execute(step)?;
        let seconds = step_begin.elapsed().as_secs();
        println!("=== done in {}", minutes(seconds));
        times.push((step.name, seconds));
    }
    if !args.list {
        println!("\nAll steps passed:");
        for (name, seconds) in times {
            println!("  {:>6}  {name}", minutes(seconds));
        }
        println!("  {:>6}  in all", minutes(begin.elapsed().as_secs()));
    }
    Ok(())
}

fn is_chosen(step: &Step, args: &Args) -> bool {
    (step.quick || !args.quick)
        && args
            .only
            .as_ref()
            .is_none_or(|word| step.name.contains(word))
}

/// The step as one would type it.
fn said(step: &Step) -> String {
    let environment = step
        .environment
        .iter()
        .map(|(name, value)| format!("{name}='{value}'"));
    let words = step.command.iter().map(|word| (*word).to_owned());
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

fn execute(step: &Step) -> Result<()> {
    let Some((program, words)) = step.command.split_first() else {
        bail!("step {} has no command", step.name);
    };
    let mut child = Command::new(program)
        .args(words)
        .current_dir(crate::root())
        .env("CARGO_INCREMENTAL", "0")
        .envs(step.environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut failures = Failures::default();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line)? > 0 {
            std::io::stdout().write_all(&line)?;
            failures.see(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!(
            "{}step failed: {} ({status})\nrepeat it with: {}",
            failures.said,
            step.name,
            said(step)
        );
    }
    Ok(())
}

/// What the tests that failed said, as the test harness prints it, without their backtraces.
#[derive(Debug, Default)]
struct Failures {
    said: String,
    /// Lines that are still taken of the test that is being told of.
    left: usize,
}

impl Failures {
    const LINES_EACH: usize = 12;

    fn see(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.left = Self::LINES_EACH;
        } else if line == "stack backtrace:" || line == "failures:" {
            self.left = 0;
        }
        if self.left > 0 && !line.is_empty() {
            self.left -= 1;
            self.said.push_str(line);
            self.said.push('\n');
        }
    }
}

fn minutes(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_subset_is_the_beginning_of_all() {
        let quick = Args {
            quick: true,
            list: true,
            only: None,
        };
        let first_slow = STEPS.iter().position(|step| !step.quick).unwrap();
        assert_eq!(
            STEPS.iter().filter(|step| is_chosen(step, &quick)).count(),
            first_slow
        );
        assert_eq!(said(&STEPS[0]), "cargo fmt --all --check");
        assert_eq!(minutes(75), "1:15");
    }

    #[test]
    fn what_failed_tests_said_is_kept() {
        let mut failures = Failures::default();
        for line in [
            "test a::b ... FAILED",
            "---- a::b stdout ----",
            "",
            "thread 'a::b' panicked at it.rs:7:5:",
            "left is not right",
            "stack backtrace:",
            "   0: __rust_begin",
            "---- c stdout ----",
            "no",
            "failures:",
            "    a::b",
        ] {
            failures.see(line);
        }
        assert_eq!(
            failures.said,
            "---- a::b stdout ----\nthread 'a::b' panicked at it.rs:7:5:\nleft is not right\n---- c stdout ----\nno\n"
        );
    }

    #[test]
    fn every_cargo_step_that_builds_is_locked() {
        for step in STEPS
            .iter()
            .filter(|step| step.command[0] == "cargo" && step.command[1] != "fmt")
        {
            assert!(step.command.contains(&"--locked"), "{}", step.name);
        }
    }
}
