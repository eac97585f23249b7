//! A server is watched while it is busy: in a steady state nothing grows but what it is to remember, and it does not
//! get slower.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use newsreel_host::{Disk, RealDisk};
use serde_json::Value;

use crate::spool::{Spool, newsreel};

const EVERY: Duration = Duration::from_millis(500);
const MIB: f64 = 1024.0 * 1024.0;

/// A server at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_s: f64,
    accepted: f64,
    /// Resident memory without that of the history, which remembers every id for days.
    memory: f64,
    overview_disk: f64,
    /// Octets on disk for each id of the history.
    history_each: f64,
    index_files: usize,
    log_segments: f64,
}

/// Looks at a server again and again.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

fn look(config: &Path, index: &Path, begun: Instant) -> Option<Sample> {
    let mut command = newsreel();
    command.args(["status", "--json", "--config"]).arg(config);
    let status: Value = serde_json::from_slice(&command.output().ok()?.stdout).ok()?;
    let figure = |value: &Value| value.as_f64().unwrap();
    let history = &status["history"];
    Some(Sample {
        at_s: begun.elapsed().as_secs_f64(),
        accepted: figure(&status["counters"]["accepted"]),
        memory: figure(&status["memory_octets"]) - figure(&history["memory_octets"]),
        overview_disk: figure(&status["overview"]["disk_octets"]),
        history_each: figure(&history["disk_octets"]) / figure(&history["sealed"]).max(1.0),
        index_files: RealDisk.list(index).ok()?.len(),
        log_segments: figure(&status["log"]["segments"]),
    })
}

/// The mean over some samples.
fn mean(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(figure).sum::<f64>() / samples.len() as f64
}

/// Articles a second over some samples.
fn rate(samples: &[Sample]) -> f64 {
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    (last.accepted - first.accepted) / (last.at_s - first.at_s)
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "samples have their time")]
    pub(crate) fn start(spool: &Spool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (config, index) = (spool.config(), spool.path().join("index"));
        let (told, begun) = (Arc::clone(&stop), Instant::now());
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            while !told.load(Ordering::Relaxed) {
                samples.extend(look(&config, &index, begun));
                std::thread::sleep(EVERY);
            }
            samples
        });
        Self { stop, thread }
    }

    /// Ends watching.  What has a limit stayed within it; and, when the time was long enough to judge, the last
    /// quarter was as the second one, in which the buffers had wrapped already.
    #[expect(clippy::print_stdout, reason = "the figures of the soak")]
    pub(crate) fn assert_steady(self, is_long: bool) {
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.thread.join().unwrap();
        assert!(!samples.is_empty(), "nothing was seen");
        for sample in &samples {
            // Every checkpoint makes four, and there are a dozen a second; compaction keeps up with them.
            assert!(sample.index_files < 240, "{sample:?}");
            // What is alive takes a few.
            assert!(sample.overview_disk < 64.0 * MIB, "{sample:?}");
            assert!(sample.log_segments < 32.0, "{sample:?}");
        }
        if !is_long {
            return;
        }
        let quarter = samples.len() / 4;
        assert!(quarter > 2, "only {} samples", samples.len());
        let (middle, end) = (
            &samples[quarter..2 * quarter],
            &samples[samples.len() - quarter..],
        );
        let row = |what: &str, figure: fn(&Sample) -> f64, unit: f64| {
            let (then, now) = (mean(middle, figure) / unit, mean(end, figure) / unit);
            println!("soak: {what:16} {then:9.1} in the middle, {now:9.1} at the end");
            (then, now)
        };
        let memory = row("memory, MB", |sample| sample.memory, MIB);
        let overview = row("overview, MB", |sample| sample.overview_disk, MIB);
        let history = row("history, octets", |sample| sample.history_each, 1.0);
        let files = row("index files", |sample| sample.index_files as f64, 1.0);
        let most = samples.iter().map(|sample| sample.index_files).max();
        let widest = samples.iter().map(|sample| sample.overview_disk);
        let widest = widest.fold(0.0, f64::max) / MIB;
        println!("soak: at most {most:?} index files, {widest:.1} MB of overview");
        let segments = row("log segments", |sample| sample.log_segments, 1.0);
        let rates = (rate(middle), rate(end));
        println!("soak: {:.0} articles/s, then {:.0}", rates.0, rates.1);
        // Seen on two cores: 0.85 and 0.91 of the rate, at most 162 files, as many at the end as in the middle to a
        // quarter, the same overview to a tenth.
        assert!(rates.1 > 0.7 * rates.0, "slower: {rates:?}");
        assert!(files.1 < 1.5 * files.0 + 20.0, "files: {files:?}");
        assert!(
            overview.1 < 1.5 * overview.0 + 4.0,
            "overview: {overview:?}"
        );
        assert!(memory.1 < 1.1 * memory.0 + 16.0, "memory: {memory:?}");
        assert!(history.1 < 1.1 * history.0, "history: {history:?}");
        assert!(segments.1 < segments.0 + 3.0, "log: {segments:?}");
    }
}
