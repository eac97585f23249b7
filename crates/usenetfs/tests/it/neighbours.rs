//! What is not the mount's alone: other mounts below it, conversions that did not end, others who change things.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use newsreel_host::{Folder, RealClock, mounts};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::{Algorithm, Mark};
use newsreel_usenetfs::{Error, Settings, View};

use crate::world::{World, mark, names, natively};

/// Takes a file system in memory off again.
struct InMemory<'a>(&'a Path);

impl<'a> InMemory<'a> {
    fn at(path: &'a Path) -> Self {
        let mut command = std::process::Command::new("mount");
        let command = command.args(["-t", "tmpfs", "tmpfs"]).arg(path);
        assert!(command.status().unwrap().success());
        Self(path)
    }
}

impl Drop for InMemory<'_> {
    fn drop(&mut self) {
        mounts::unmount(self.0, true).unwrap();
    }
}

#[test]
fn what_is_mounted_below_is_not_entered_and_not_shown() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    fs::create_dir(world.lower("flat")).unwrap();
    fs::create_dir(world.lower("flat/below")).unwrap();
    fs::create_dir(world.lower("flat/beside")).unwrap();
    let below = world.lower("flat/below");
    let _mounted = InMemory::at(&below);
    fs::write(below.join("secret"), "").unwrap();
    let error = fs::metadata(world.path("flat/below")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(18), "{error}");
    assert_eq!(names(&world.path("flat")), ["beside"]);
    assert!(fs::metadata(world.path("flat/below/secret")).is_err());
}

#[test]
fn a_directory_that_is_half_converted_is_refused() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let lower = world.lower("group");
    fs::create_dir(&lower).unwrap();
    for number in 0..10 {
        fs::write(lower.join(number.to_string()), "").unwrap();
    }
    let folder = Folder::open(&lower).unwrap();
    let stopped = convert(
        &folder,
        Target::On(Algorithm::YYY),
        Options::default(),
        &mut |_| std::ops::ControlFlow::Break(()),
    );
    assert!(stopped.is_err());
    assert!(matches!(mark(&lower), Mark::UnderWay(_)));
    let group = world.path("group");
    let busy = |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(16), "{error}");
    busy(fs::read_dir(&group).unwrap_err());
    busy(fs::metadata(group.join("5")).unwrap_err());
    busy(fs::write(group.join("77"), "").unwrap_err());
    busy(fs::remove_dir(&group).unwrap_err());
    let dir = world.end();
    let lower = dir.path().join("lower/group");
    let folder = Folder::open(&lower).unwrap();
    let done = when_unlocked(
        || {
            convert(
                &folder,
                Target::On(Algorithm::YYY),
                Options::default(),
                &mut |_| std::ops::ControlFlow::Continue(()),
            )
        },
        |error| {
            let newsreel_layout::Error::Host(error) = error else {
                return false;
            };
            matches!(error, newsreel_host::Error::Locked { .. })
        },
    );
    done.unwrap();
    assert_eq!(natively(&lower).len(), 10);
}

#[test]
fn what_has_no_handles_is_not_served() {
    if !crate::world::can_mount() {
        return;
    }
    let lower = Folder::open(Path::new("/proc")).unwrap();
    let clock = Arc::new(RealClock::default());
    let refused = View::new(lower, Settings::default(), clock).unwrap_err();
    assert!(matches!(refused, Error::NoHandles { .. }), "{refused}");
}

#[test]
fn one_server_alone_or_several_that_agree() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let clock = || Arc::new(RealClock::default());
    let lower = || Folder::open(&world.lower("")).unwrap();
    let shared = Settings {
        is_shared: true,
        ..Settings::default()
    };
    for settings in [Settings::default(), shared] {
        let refused = View::new(lower(), settings, clock()).unwrap_err();
        assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    }
    let dir = world.end();
    let lower = || Folder::open(&dir.path().join("lower")).unwrap();
    let alone_or_not = |settings| {
        let view = || View::new(lower(), settings, clock());
        when_unlocked(view, |error| matches!(error, Error::InUse { .. })).unwrap()
    };
    let first = alone_or_not(shared);
    let second = View::new(lower(), shared, clock()).unwrap();
    let refused = View::new(lower(), Settings::default(), clock()).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop((first, second));
    alone_or_not(Settings::default());
}

/// Tries again for a while: a program that another test starts has our locks until it is that program.
fn when_unlocked<T, E>(
    act: impl Fn() -> Result<T, E>,
    is_locked: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut done = act();
    for _ in 0..200 {
        if done.as_ref().err().is_some_and(&is_locked) {
            std::thread::sleep(Duration::from_millis(20));
            done = act();
        }
    }
    done
}

/// A news server that writes natively beside a mount.
#[test]
fn what_others_do_is_seen_in_a_shared_mount() {
    let settings = Settings {
        is_shared: true,
        ..Settings::default()
    };
    let Some(world) = World::new(settings) else {
        return;
    };
    let at = world.managed("a");
    fs::write(at.join("1"), "one").unwrap();
    assert!(!at.join("2").exists());
    fs::write(world.lower("a/r0/2"), "two").unwrap();
    // A name that was missing is looked for again at once.
    assert_eq!(fs::read_to_string(at.join("2")).unwrap(), "two");
    fs::remove_file(world.lower("a/r0/1")).unwrap();
    fs::remove_file(world.lower("a/r0/2")).unwrap();
    fs::remove_dir(world.lower("a/r0")).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while at.join("1").exists() {
        assert!(Instant::now() < until, "it is still shown");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Its bucket went and comes again.
    fs::write(at.join("3"), "").unwrap();
    assert_eq!(natively(&world.lower("a")), ["3"]);
    // What is made managed natively is so in the view.
    fs::create_dir(world.path("b")).unwrap();
    assert!(names(&world.path("b")).is_empty());
    Mark::set(&Folder::open(&world.lower("b")).unwrap(), Algorithm::YYY).unwrap();
    fs::write(world.path("b/12345"), "").unwrap();
    assert!(world.lower("b/234/12345").exists());
}
