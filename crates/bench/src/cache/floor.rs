//! What of a hit is the machine's own: the same questions to a server that does nothing, a process like the cache, by turns.
//!
//! Who waits for each answer waits above all until the other process is woken, and how long that takes is another thing where both have
//! processors of their own, as where the reader sits at another machine, than where they share one and take turns.  The machine chooses
//! either from one second to the next, so each is had on purpose and told apart.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use super::fixture::Fixture;
use super::operations::Operation;
use crate::error::Error;
use crate::load::Machine;
use crate::measure::process::ServerLook;
use crate::rivals::Running;

/// Each is asked so often by turns; the median counts.
const ROUNDS: usize = 15;

/// So often all articles are read for the processor time of one, of which the kernel tells hundredths of a second.
const COSTED: usize = 50;

/// Where reader and server run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placing {
    /// The reader on the first processor, the server on the others.
    Apart,
    /// Both on the first processor.
    Together,
}

impl Placing {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Apart, Self::Together];

    /// For tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Apart => "each on a processor of its own",
            Self::Together => "both on one processor",
        }
    }
}

/// What a reader waits for, and what the server spends on it, at the cache and where nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// For what.
    pub operation: Operation,
    /// Where both ran.
    pub placing: Placing,
    /// Milliseconds at the cache, all of it kept.
    pub hit_ms: f64,
    /// Milliseconds where nothing is done.
    pub nothing_ms: f64,
}

/// Processor time for an article that is kept, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Where both ran.
    pub placing: Placing,
    /// Microseconds of the cache's.
    pub hit_us: f64,
    /// Microseconds of the server's that does nothing.
    pub nothing_us: f64,
}

/// The cache and the server that does nothing.
pub(super) struct Both<'b> {
    pub(super) machine: Machine<'b>,
    pub(super) has: Fixture,
    pub(super) cache: Running,
    pub(super) nothing: Running,
}

/// The processors that this program may run on.
fn processors() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None).map_err(failed)?;
    Ok((0..CpuSet::MAX_CPU).filter(|at| set.is_set(*at)).collect())
}

fn failed(error: rustix::io::Errno) -> Error {
    Error::EventLoop(error.into())
}

fn held(on: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    on.iter().for_each(|at| set.set(*at));
    set
}

impl Both<'_> {
    /// What a reader waits for, each operation and either way.
    pub(super) fn floors(&self) -> Result<Vec<Floor>, Error> {
        let mut floors = Vec::new();
        self.placed(|placing| {
            for operation in Operation::NULL {
                let (mut hits, mut nothings) = (Vec::new(), Vec::new());
                for _ in 0..ROUNDS {
                    hits.push(self.timed(operation, self.cache.address, self.has)?);
                    let has = self.has.absent();
                    nothings.push(self.timed(operation, self.nothing.address, has)?);
                }
                floors.push(Floor {
                    operation,
                    placing,
                    hit_ms: median(hits),
                    nothing_ms: median(nothings),
                });
            }
            Ok(())
        })?;
        Ok(floors)
    }

    /// What an article costs, either way.
    pub(super) fn costs(&self) -> Result<Vec<Cost>, Error> {
        let mut costs = Vec::new();
        self.placed(|placing| {
            costs.push(Cost {
                placing,
                hit_us: us_each(self.machine, &self.cache, Operation::Articles, self.has)?,
                nothing_us: us_each(
                    self.machine,
                    &self.nothing,
                    Operation::Articles,
                    self.has.absent(),
                )?,
            });
            Ok(())
        })?;
        Ok(costs)
    }

    /// Does it with reader and servers held where they are to run, and lets them go wherever they want again.
    fn placed(&self, mut each: impl FnMut(Placing) -> Result<(), Error>) -> Result<(), Error> {
        let all = processors()?;
        let (first, others) = all.split_at(all.len().min(1));
        let others = if others.is_empty() { first } else { others };
        let mut done = Ok(());
        for placing in Placing::ALL {
            let of_server = match placing {
                Placing::Apart => others,
                Placing::Together => first,
            };
            done = done
                .and_then(|()| self.hold(first, of_server))
                .and_then(|()| each(placing));
        }
        done.and(self.hold(&all, &all))
    }

    fn hold(&self, reader: &[usize], server: &[usize]) -> Result<(), Error> {
        sched_setaffinity(None, &held(reader)).map_err(failed)?;
        for running in [&self.cache, &self.nothing] {
            for thread in threads(self.machine, running.pid) {
                // It may have ended by itself.
                let _ = sched_setaffinity(Some(thread), &held(server));
            }
        }
        Ok(())
    }

    fn timed(&self, operation: Operation, at: SocketAddr, has: Fixture) -> Result<f64, Error> {
        let begin = self.machine.clock.monotonic();
        operation.run(at, &has)?;
        let took: Duration = self.machine.clock.monotonic().saturating_sub(begin);
        Ok(took.as_secs_f64() * 1000.0)
    }
}

/// Microseconds of a server's processor time for an article.
pub(super) fn us_each(
    machine: Machine<'_>,
    server: &Running,
    operation: Operation,
    has: Fixture,
) -> Result<f64, Error> {
    let look = || ServerLook::take(machine.disk, server.pid);
    operation.run(server.address, &has)?;
    ServerLook::wait_for_rest(look);
    let before = look();
    for _ in 0..COSTED {
        operation.run(server.address, &has)?;
    }
    let spent = look().since(&before).cpu.as_secs_f64();
    Ok(spent * 1e6 / (COSTED as u64 * has.read().max(1)) as f64)
}

/// The threads of a process.
fn threads(machine: Machine<'_>, pid: u32) -> Vec<Pid> {
    let folder = format!("/proc/{pid}/task");
    let listed = machine.disk.list(folder.as_ref()).unwrap_or_default();
    let numbers = listed.iter().filter_map(|entry| entry.name.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_is_no_median() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}
