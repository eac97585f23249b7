//! A comparison of two do-nothing servers: rounds, ratios, and nothing left behind.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use newsreel_bench::Error;
use newsreel_bench::compare::{self, CompareArgs, STEPS};
use newsreel_bench::load::Machine;
use newsreel_bench::null::{NullArgs, NullServer};
use newsreel_bench::rivals::{CommandRival, Rival, Running};
use newsreel_host::{Disk, RealClock, RealDisk};
use newsreel_testkit::free_ports;

/// A do-nothing server in a thread; takes the port it is given.
#[derive(Debug, Default)]
struct Idler {
    name: &'static str,
    serving: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    starts: usize,
}

impl Rival for Idler {
    fn name(&self) -> &str {
        self.name
    }

    fn start(
        &mut self,
        directory: &Path,
        address: SocketAddr,
        groups: &Path,
    ) -> Result<Running, Error> {
        assert!(directory.is_dir() && groups.is_file());
        let server = NullServer::bind(&NullArgs::new(address))?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&told).unwrap());
        self.serving = Some((stop, thread));
        self.starts += 1;
        Ok(Running {
            address,
            pid: std::process::id(),
        })
    }

    fn stop(&mut self) -> Result<(), Error> {
        if let Some((stop, thread)) = self.serving.take() {
            stop.store(true, Ordering::Relaxed);
            thread.join().unwrap();
        }
        Ok(())
    }
}

fn args(directory: &Path, steps: &[&str]) -> CompareArgs {
    CompareArgs {
        rounds: 2,
        articles: 200,
        seconds: 0.1,
        steps: steps.iter().map(|&step| step.to_owned()).collect(),
        port: free_ports().unwrap(),
        ..CompareArgs::new(directory.to_path_buf())
    }
}

#[test]
fn rounds_give_ratios_and_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    let idler = |name| Idler {
        name,
        ..Idler::default()
    };
    let mut rivals: Vec<Box<dyn Rival>> = vec![Box::new(idler("ours")), Box::new(idler("theirs"))];
    let steps = ["takethis-4", "stat-16", "list-4"];
    let args = args(directory.path(), &steps);
    let comparison = compare::run(&args, &mut rivals, machine).unwrap();
    assert_eq!(comparison.rivals, ["ours", "theirs"]);
    assert_eq!(comparison.steps.len(), 3);
    for step in &comparison.steps {
        for result in &step.rivals {
            assert!(
                result.sound && result.rounds.len() == 2,
                "{}",
                comparison.human()
            );
            let ratio = result.rate_ratio.unwrap();
            assert!(ratio.min <= ratio.median && ratio.median <= ratio.max && ratio.min > 0.0);
        }
        let own = step.rivals[0].rate_ratio.unwrap();
        assert_eq!((own.min, own.max), (1.0, 1.0));
    }
    assert!(comparison.human().contains("takethis-4"));
    assert_eq!(RealDisk.list(directory.path()).unwrap(), []);
}

#[test]
fn unknown_steps_are_named() {
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    let error = compare::run(&args(Path::new("/nowhere"), &["fly"]), &mut [], machine).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("steps is fly: it must be one of takethis-1,"),
        "{text}"
    );
    assert!(STEPS.iter().all(|step| text.contains(step.name)));
    let beyond = CompareArgs {
        port: 65_535,
        ..args(Path::new("/nowhere"), &[])
    };
    let rival = || -> Box<dyn Rival> { Box::new(CommandRival::newsreel("/nowhere")) };
    let error = compare::run(&beyond, &mut [rival(), rival()], machine).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("port is 65535: 2 servers need"),
        "{error}"
    );
}
