//! What is asked, beside what was measured.
//!
//! Invariant: a goal compares figures of one report; where a report has not got all of them, nothing is said of it.

use super::run::{Report, Run};
use super::variant::Variant;
use crate::usenetfs::Goal;

const INN: &str = "inn";
const CNFS: &str = "cnfs";
const RANGE: &str = "tradspool-range1024";
/// As in the paper's figure 3 the last pass is held against the first only where there are as many.
const PAPER_PASSES: usize = 14;

/// All that can be said of a report.
#[must_use]
pub fn goals(report: &Report) -> Vec<Goal> {
    let plain = |run: &&Run| run.variant == Variant::Plain.name() && run.complaints.is_empty();
    let runs: Vec<&Run> = report.runs.iter().filter(plain).collect();
    let inn_at = |place: &str| {
        let mut all = runs.iter();
        all.find(|run| run.place == place && run.server == INN)
    };
    let mut goals = Vec::new();
    for run in runs.iter().filter(|run| run.server != INN) {
        let named = format!("{}, {}", run.place, run.method);
        if let Some(inn) = inn_at(&run.place) {
            let ratio = run.per_second / inn.per_second.max(1e-9);
            let what = format!("{named}: articles unbatched, as often as INN's");
            goals.push(Goal::at_least(what, 5.0, ratio, "x"));
            let expired = run.expire_us().zip(inn.expire_us());
            if let (RANGE, Some((own, inns))) = (run.method.as_str(), expired) {
                let what =
                    format!("{named}: articles expired in a second, as often as `fastrm`'s files");
                goals.push(Goal::at_least(what, 2.0, inns / own.max(1e-9), "x"));
            }
        }
        if run.method != CNFS {
            continue;
        }
        if let Some(written) = run.expire_written_octets() {
            let what = format!("{named}: written to the disk of articles while they expire");
            goals.push(Goal::at_most(what, 0.0, written as f64, " octets"));
        }
        if run.passes.len() >= PAPER_PASSES {
            let what = format!("{named}: rate of the last pass, of the first's");
            goals.push(Goal::at_least(what, 97.0, 100.0 * run.ageing, " %"));
        }
    }
    goals
}

impl Run {
    /// Seconds in which articles expired, in passes in which any did, and how many did.
    fn expired(&self) -> (f64, u64) {
        let passes = self.passes.iter().map(|pass| &pass.expire);
        let going = passes.filter(|expire| expire.articles > 0);
        going.fold((0.0, 0), |(seconds, articles), expire| {
            (seconds + expire.phase.seconds, articles + expire.articles)
        })
    }

    /// How long one took.
    fn expire_us(&self) -> Option<f64> {
        let (seconds, articles) = self.expired();
        (articles > 0).then(|| seconds * 1e6 / articles as f64)
    }

    /// Minutes of an expire phase in the mean, of those in which articles went.
    pub(super) fn expire_minutes(&self) -> Option<f64> {
        let passes = self.passes.iter();
        let going = passes.filter(|pass| pass.expire.articles > 0).count();
        (going > 0).then(|| self.expired().0 / 60.0 / going as f64)
    }

    /// Seconds of all phases of a kind, none where there was none.
    pub(super) fn seconds(&self) -> [Option<f64>; 3] {
        let unbatch = self.passes.iter().map(|pass| pass.unbatch.seconds).sum();
        let sent: Vec<f64> = self
            .passes
            .iter()
            .filter_map(|pass| Some(pass.batch.as_ref()?.seconds))
            .collect();
        let batch = (!sent.is_empty()).then(|| sent.iter().sum());
        let (expire, articles) = self.expired();
        [Some(unbatch), batch, (articles > 0).then_some(expire)]
    }

    fn expire_written_octets(&self) -> Option<u64> {
        let devices = self.passes.iter().map(|pass| pass.expire.phase.device);
        devices
            .map(|device| Some(device?.written_octets))
            .sum::<Option<u64>>()
    }
}
