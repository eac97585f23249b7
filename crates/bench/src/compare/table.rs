//! What a comparison found: ratios with their spread, and the figures behind them.
//!
//! Invariant: a ratio is between two servers in the same step of the same round, never between
//! rounds. A step that went wrong on a server is marked wherever its figures are shown.

use std::fmt::Write as _;

use serde::Serialize;

use crate::report::Report;

/// The smallest, the middle and the largest of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        Some(Self {
            min,
            median: f64::midpoint(lower, upper),
            max,
        })
    }
}

/// All steps of all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The servers; the first is the one that is compared with each of the others.
    pub rivals: Vec<String>,
    /// Each step.
    pub steps: Vec<StepComparison>,
}

/// One step.
#[derive(Debug, Clone, Serialize)]
pub struct StepComparison {
    /// The step's name.
    pub step: &'static str,
    /// For each server, in order.
    pub rivals: Vec<RivalResult>,
}

/// One step on one server.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RivalResult {
    /// Operations a second.
    pub per_second: Option<Spread>,
    /// Processor time of the server for one operation.
    pub cpu_us: Option<Spread>,
    /// Octets received by the client, in megabytes a second.
    pub received_mb_per_second: Option<Spread>,
    /// How many times the rate of this server the first one has.
    pub rate_ratio: Option<Spread>,
    /// How many times the processor time of the first server this one takes.
    pub cpu_ratio: Option<Spread>,
    /// Whether every reply of every round was right.
    pub sound: bool,
    /// Each round's report.
    pub rounds: Vec<Report>,
}

impl Comparison {
    pub(super) fn new(rivals: Vec<String>, steps: Vec<&'static str>) -> Self {
        let empty = vec![RivalResult::default(); rivals.len()];
        let step = |step| StepComparison {
            step,
            rivals: empty.clone(),
        };
        Self {
            steps: steps.into_iter().map(step).collect(),
            rivals,
        }
    }

    pub(super) fn add(&mut self, step: usize, rival: usize, report: Report) {
        let found = self
            .steps
            .get_mut(step)
            .and_then(|step| step.rivals.get_mut(rival));
        if let Some(result) = found {
            result.rounds.push(report);
        }
    }

    /// Works out the spreads.
    pub(super) fn conclude(&mut self) {
        for step in &mut self.steps {
            let first = step
                .rivals
                .first()
                .map(|first| first.rounds.clone())
                .unwrap_or_default();
            for result in &mut step.rivals {
                result.conclude(&first);
            }
        }
    }

    /// For a terminal.
    pub fn human(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_human(&mut text);
        text
    }

    fn write_human(&self, text: &mut String) -> std::fmt::Result {
        write!(text, "{:24}", "step")?;
        for (place, name) in self.rivals.iter().enumerate() {
            write!(text, " | {:>20} /s {:>8} us", name, "CPU")?;
            if place > 0 {
                write!(text, " {:>22} {:>8}", "rate x (min..max)", "CPU x")?;
            }
        }
        writeln!(text)?;
        for step in &self.steps {
            write!(text, "{:24}", step.step)?;
            for (place, result) in step.rivals.iter().enumerate() {
                result.write_human(text, place > 0)?;
            }
            writeln!(text)?;
        }
        for step in &self.steps {
            for (result, name) in step.rivals.iter().zip(&self.rivals) {
                for complaint in result.rounds.iter().flat_map(|report| &report.complaints) {
                    writeln!(text, "{} on {name}: {complaint}", step.step)?;
                }
            }
        }
        Ok(())
    }
}

impl RivalResult {
    fn conclude(&mut self, first: &[Report]) {
        // A round in which nothing was done says nothing about how fast it is.
        let worked = |report: &&Report| report.operations > 0;
        let spread = |of: &dyn Fn(&Report) -> Option<f64>| {
            Spread::of(self.rounds.iter().filter(worked).filter_map(of).collect())
        };
        let cpu = |report: &Report| report.server.map(|server| server.cpu_us);
        let per_second = spread(&|report| Some(report.per_second));
        let cpu_us = spread(&|report| cpu(report));
        let received = spread(&|report| Some(report.received_mb_per_second));
        let pairs = || {
            let pairs = first.iter().zip(&self.rounds);
            pairs.filter(|(first, own)| first.operations > 0 && own.operations > 0)
        };
        let rates = pairs().map(|(first, own)| first.per_second / own.per_second.max(1e-9));
        let cpus = pairs().filter_map(|(first, own)| Some(cpu(own)? / cpu(first)?.max(1e-9)));
        self.rate_ratio = Spread::of(rates.collect());
        self.cpu_ratio = Spread::of(cpus.collect());
        self.per_second = per_second;
        self.cpu_us = cpu_us;
        self.received_mb_per_second = received;
        self.sound = self.rounds.iter().all(Report::is_sound);
    }

    fn write_human(&self, text: &mut String, against_first: bool) -> std::fmt::Result {
        let middle = |spread: Option<Spread>| spread.map_or(f64::NAN, |spread| spread.median);
        let mark = if self.sound { ' ' } else { '!' };
        write!(
            text,
            " |{mark}{:>20.0} /s {:>8.2} us",
            middle(self.per_second),
            middle(self.cpu_us)
        )?;
        if against_first {
            let Some(rate) = self.rate_ratio else {
                return write!(text, " {:>31}", "");
            };
            let range = format!("{:.2} ({:.2}..{:.2})", rate.median, rate.min, rate.max);
            write!(text, " {range:>22} {:>8.2}", middle(self.cpu_ratio))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_a_middle() {
        assert_eq!(Spread::of(vec![]), None);
        let of = |values: &[f64]| Spread::of(values.to_vec()).unwrap();
        assert_eq!(
            of(&[3.0, 1.0, 2.0]),
            Spread {
                min: 1.0,
                median: 2.0,
                max: 3.0
            }
        );
        assert_eq!(of(&[1.0, 4.0]).median, 2.5);
    }
}
