//! Directories that are converted while they are mounted: whoever uses them sees nothing of it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::Folder;
use newsreel_host::node::{Errno, FolderStream, Pin};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::{Algorithm, Mark};
use newsreel_usenetfs::{CONVERT_ATTRIBUTE, Settings};

use crate::world::{
    SELF, World, bare_view, findings, make_folder, mark, mode_of, names, natively, set_mode, shell,
};

/// Orders the conversion of a directory: what is told of it then, or why it was refused.
pub(crate) fn order(at: &Path, text: &str) -> Result<String, String> {
    let pin = Pin::of_folder(at).unwrap();
    let name = format!("{CONVERT_ATTRIBUTE}test");
    let name = OsStr::new(&name);
    let done = pin.set_attribute(name, text.as_bytes(), 0);
    let told = match pin.attribute(name) {
        Ok(told) => String::from_utf8(told).unwrap(),
        Err(errno) => errno.to_string(),
    };
    match done {
        Ok(()) => Ok(told),
        Err(errno) => Err(format!("{errno}: {told}")),
    }
}

/// A directory with some articles and other names.
fn full(at: &Path) {
    fs::create_dir(at).unwrap();
    set_mode(at, 0o755);
    for number in 0..3000 {
        fs::write(at.join(number.to_string()), number.to_string()).unwrap();
    }
    for name in ["aaa", "0123", "r0", "345x"] {
        fs::write(at.join(name), name).unwrap();
    }
    fs::create_dir(at.join("94400")).unwrap();
}

#[test]
fn a_directory_is_converted_while_it_is_in_use() {
    for is_by_name in [false, true] {
        let settings = Settings {
            is_by_name,
            ..Settings::default()
        };
        let Some(world) = World::new(settings) else {
            return;
        };
        let group = world.path("group");
        full(&group);
        let all = names(&group);
        let mut open = fs::File::create(group.join("5000")).unwrap();
        for (text, is, mode) in [
            (
                "on range1024 verify",
                Mark::Managed(Algorithm::RANGE_1024),
                0o4755,
            ),
            ("to 34/56", Mark::Managed(Algorithm::ALL[1]), 0o4755),
            ("off verify", Mark::None, 0o755),
        ] {
            let told = order(&group, text).unwrap();
            assert!(told.contains("\"state\":\"converted\""), "{told}");
            assert_eq!(mark(&world.lower("group")), is, "{text}");
            assert_eq!(mode_of(&group), mode, "{text}");
            open.write_all(b".").unwrap();
            fs::write(group.join("5001"), text).unwrap();
            assert_eq!(fs::read_to_string(group.join("2999")).unwrap(), "2999");
            assert!(!group.join("4000").exists());
            assert_eq!(names(&group.join("94400")), Vec::<String>::new());
            let shown = names(&group);
            assert!(all.iter().all(|name| shown.contains(name)));
            assert_eq!(shown.len(), all.len() + 2, "{text}");
            fs::remove_file(group.join("5001")).unwrap();
        }
        assert_eq!(fs::read_to_string(group.join("5000")).unwrap(), "...");
        drop(open);
        // And the top itself, which the mount has locked.
        order(&world.path(""), "on yyy").unwrap();
        assert_eq!(names(&world.path("")), ["group"]);
        let dir = world.end();
        let lower = dir.path().join("lower");
        assert_eq!(natively(&lower), ["group"]);
        assert_eq!(natively(&lower.join("aaa/group")).len(), all.len() + 1);
        assert_eq!(findings(&lower), Vec::<String>::new());
    }
}

/// The places of a listing follow the algorithm.
#[test]
fn nothing_is_converted_under_a_listing() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let group = world.path("group");
    full(&group);
    let mut entries = fs::read_dir(&group).unwrap();
    entries.next().unwrap().unwrap();
    let refused = order(&group, "on yyy").unwrap_err();
    assert!(refused.contains("listing it"), "{refused}");
    assert_eq!(mark(&world.lower("group")), Mark::None);
    assert_eq!(entries.count(), names(&group).len() - 1);
    // One that is open and not begun, or at its end, is none.
    let folder = Folder::open(&group).unwrap();
    let mut begun = FolderStream::of(&folder).unwrap();
    order(&group, "on yyy").unwrap();
    let mut seen = 0;
    let list = |_: &newsreel_host::node::Found| {
        seen += 1;
        Ok(true)
    };
    begun.fill(0, list).unwrap();
    assert_eq!(seen, names(&group).len() + 2);
}

#[test]
fn who_may_not_converts_nothing_and_a_plan_does_not_either() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let group = world.path("group");
    full(&group);
    set_mode(&group, 0o777);
    let script = format!("setfattr -n {CONVERT_ATTRIBUTE}x -v 'on yyy' group 2>&1");
    if !shell(Path::new("/"), (0, 0), "command -v setfattr").starts_with('/') {
        println!("there is no setfattr: it is not tried as another user");
    } else {
        let refused = shell(&world.path(""), (65_534, 65_534), &script);
        assert!(refused.contains("not permitted"), "{refused}");
    }
    let told = order(&group, "plan on yyy").unwrap();
    assert!(told.contains("\"entries\":3005"), "{told}");
    let refused = order(&group, "rubbish").unwrap_err();
    assert!(refused.contains("nvalid"), "{refused}");
    assert_eq!(mark(&world.lower("group")), Mark::None);
    order(&group, "on yyy").unwrap();
    let refused = order(&group, "on range1024").unwrap_err();
    assert!(refused.contains("managed by yyy already"), "{refused}");
    let shared = Settings {
        is_shared: true,
        ..Settings::default()
    };
    let world = World::new(shared).unwrap();
    full(&world.path("group"));
    let refused = order(&world.path("group"), "on yyy").unwrap_err();
    assert!(refused.contains("--shared"), "{refused}");
}

/// What another run left half done is completed through the mount, too.
#[test]
fn a_conversion_that_was_killed_is_completed() {
    let half = |lower: &Path| {
        full(&lower.join("group"));
        let folder = Folder::open(&lower.join("group")).unwrap();
        let target = Target::On(Algorithm::YYY);
        let stopped = convert(
            &folder,
            target,
            Options::default(),
            &mut |progress| match progress.done {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            },
        );
        assert!(stopped.is_err());
    };
    let Some(world) = World::prepared(Settings::default(), None, half) else {
        return;
    };
    let group = world.path("group");
    fs::read_dir(&group).unwrap_err();
    order(&group, "on yyy").unwrap();
    assert_eq!(names(&group).len(), 3005);
    assert_eq!(findings(&world.lower("group")), Vec::<String>::new());
}

/// The kernel holds most requests for a directory back while its conversion is ordered; not those that come without its lock.
#[test]
fn who_comes_meanwhile_waits() {
    let Some((_dir, view)) = bare_view(Settings::default()) else {
        return;
    };
    let group = make_folder(&view, "group", 0o755);
    let below = view
        .make_folder(group, OsStr::new("944"), 0o755, SELF)
        .unwrap();
    for number in 0..500 {
        let name = number.to_string();
        let (_, file) = view.create(group, name.as_ref(), 0o644, 0, SELF).unwrap();
        view.release(file);
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lookers = [0, 1].map(|first| {
            let (view, is_over) = (&view, &is_over);
            scope.spawn(move || {
                let mut looked = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    let name = ((looked + first) % 500).to_string();
                    let found = view.lookup(group, name.as_ref());
                    assert!(found.is_ok(), "{name}: {found:?}");
                    let absent = view.lookup(group, OsStr::new("700"));
                    assert_eq!(absent.map(|_| ()), Err(Errno::NOENT));
                    looked += 1;
                }
                looked
            })
        });
        let climber = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let above = view.lookup(below.node, OsStr::new(".."));
                assert_eq!(above.map(|above| above.node), Ok(group));
            }
        });
        for text in ["on range1024", "to 34/56", "to yyy", "off"].repeat(5) {
            let order = (OsStr::new("user.usenetfs.convert.x"), text.parse().unwrap());
            view.convert(group, order, SELF).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        climber.join().unwrap();
        for looker in lookers {
            assert!(looker.join().unwrap() > 0);
        }
    });
}

/// Sets or takes off what chattr(1) sets; says whether that can be.
pub(crate) fn chattr(flag: &str, at: &Path) -> bool {
    let mut command = std::process::Command::new("chattr");
    let done = command.arg(flag).arg(at).status();
    done.is_ok_and(|it| it.success())
}

/// A failure in the middle left a directory that nobody could use until somebody acted.
#[test]
fn what_fails_in_the_middle_is_brought_back() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let group = world.path("group");
    full(&group);
    let all = names(&group);
    let (yyy, range) = (
        Mark::Managed(Algorithm::YYY),
        Mark::Managed(Algorithm::RANGE_1024),
    );
    for (was, at, text, is) in [
        (Mark::None, "group/2500", "on yyy", yyy),
        (yyy, "group/250/2500", "to range1024", range),
    ] {
        let fixed = world.lower(at);
        if !chattr("+i", &fixed) {
            println!("skipped: this file system has no files that cannot be renamed");
            return;
        }
        let refused = order(&group, text);
        let shown = names(&group);
        assert!(chattr("-i", &fixed));
        let refused = refused.unwrap_err();
        assert!(refused.contains("as it was before"), "{text}: {refused}");
        assert_eq!(shown, all);
        assert_eq!(mark(&world.lower("group")), was);
        assert_eq!(findings(&world.lower("group")), Vec::<String>::new());
        order(&group, text).unwrap();
        assert_eq!(mark(&world.lower("group")), is);
    }
}

/// One thread answers all requests here; a conversion has its own, so others go on.
#[test]
fn nobody_else_is_held_up() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    for name in ["one", "two"] {
        full(&world.path(name));
    }
    let child = world.path("one/94400");
    let is_over = AtomicBool::new(false);
    let (mut refused, mut listed) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        let converting = scope.spawn(|| {
            for text in ["on yyy", "off"].repeat(5) {
                while let Err(told) = order(&world.path("one"), text) {
                    assert!(told.contains("another directory is being"), "{told}");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let below = Folder::open(&child).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            // `..` of what lies in it is answered, a second order refused, and what one would do is told, at once.
            let mut stream = FolderStream::of(&below).unwrap();
            stream.fill(0, |_| Ok(true)).unwrap();
            listed += 1;
            let told = order(&world.path("one/94400"), "plan on yyy").unwrap_or_else(|told| told);
            assert!(!told.contains("bucket"), "{told}");
            order(&world.path("two"), "plan on yyy").unwrap();
            if let Err(told) = order(&world.path("two"), "off") {
                assert!(told.contains("another directory is being"), "{told}");
                refused += 1;
            }
        }
        converting.join().unwrap();
    });
    assert!(refused > 0 && listed > refused, "{refused} of {listed}");
}

/// Who asked over and over what a conversion would do had the one turn nearly always, and nobody else had theirs.
#[test]
fn a_plan_takes_nobodys_turn() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    for name in ["one", "two"] {
        full(&world.path(name));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0_u64;
            while asked == 0 || !is_over.load(Ordering::Relaxed) {
                order(&world.path("one"), "plan on yyy").unwrap();
                asked += 1;
            }
        });
        let ordered = ["on yyy", "off"].repeat(10).into_iter();
        let told: Vec<_> = ordered
            .map(|text| order(&world.path("two"), text))
            .collect();
        is_over.store(true, Ordering::Relaxed);
        asking.join().unwrap();
        assert!(told.iter().all(Result::is_ok), "{told:?}");
    });
}

/// The process ended in the middle of a conversion when its mount was cut off, and left a directory that nobody could use.
#[test]
fn a_mount_that_is_cut_off_ends_with_its_conversion() {
    let Some(mut world) = World::new(Settings::default()) else {
        return;
    };
    let group = world.path("group");
    fs::create_dir(&group).unwrap();
    for number in 0..20_000 {
        fs::File::create(world.lower("group").join(number.to_string())).unwrap();
    }
    let view = std::sync::Arc::clone(world.view());
    std::thread::scope(|scope| {
        let ordered = scope.spawn(|| order(&group, "on range1024"));
        while !matches!(mark(&world.lower("group")), Mark::UnderWay(_)) {
            std::thread::yield_now();
        }
        let cut = std::process::Command::new("umount")
            .arg("-f")
            .arg(world.path(""))
            .output();
        cut.unwrap();
        ordered.join().unwrap().unwrap_err();
    });
    world.stop();
    assert_eq!(
        mark(&world.lower("group")),
        Mark::Managed(Algorithm::RANGE_1024)
    );
    // And none begins.
    let words = (
        OsStr::new("user.usenetfs.convert.x"),
        "off".parse().unwrap(),
    );
    assert_eq!(
        view.convert(newsreel_usenetfs::ROOT, words, SELF),
        Err(Errno::BUSY)
    );
}
