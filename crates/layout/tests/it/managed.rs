//! Managed directories: marks, buckets on demand, buckets that go again.

use std::path::Path;

use newsreel_host::ErrorKind;
use newsreel_layout::{ATTRIBUTE, Algorithm, Error, Mark, Name, Opened, SET_UID};

use crate::world::{Done, World, add, contents, listed, put, take_away, tree};

#[test]
fn the_bit_alone_means_the_papers_algorithm() {
    let world = World::new();
    let group = world.group();
    assert_eq!(Mark::read(&group).unwrap(), Mark::None);
    group.set_mode(0o755 | SET_UID).unwrap();
    assert_eq!(Mark::read(&group).unwrap(), Mark::Managed(Algorithm::YYY));
    add(&world.open(), "123456");
    assert_eq!(tree(&group), ["345/", "345/123456"]);
}

#[test]
fn marks_are_set_and_taken_off_where_nothing_is() {
    for algorithm in Algorithm::ALL {
        let (world, managed) = World::managed(algorithm);
        let group = world.group();
        assert_eq!(Mark::read(&group).unwrap(), Mark::Managed(algorithm));
        assert_eq!(group.facts().unwrap().mode, 0o755 | SET_UID);
        add(&managed, "123456");
        add(&managed, "foo");
        let refused = Mark::clear(&managed).unwrap_err();
        assert!(matches!(refused, Error::NotEmpty { .. }), "{refused}");
        let refused = Mark::set(&group, Algorithm::YYY).unwrap_err();
        assert!(matches!(refused, Error::NotEmpty { .. }), "{refused}");
        assert_eq!(Mark::read(&group).unwrap(), Mark::Managed(algorithm));
        take_away(&managed, "123456");
        take_away(&managed, "foo");
        Mark::clear(&managed).unwrap();
        assert_eq!(Mark::read(&group).unwrap(), Mark::None);
        assert_eq!(group.facts().unwrap().mode, 0o755);
        assert!(tree(&group).is_empty(), "{algorithm}: {:?}", tree(&group));
    }
}

#[test]
fn nothing_is_made_behind_a_link_in_a_buckets_place() {
    let two_levels: Algorithm = "34/56".parse().unwrap();
    let (world, managed) = World::managed(two_levels);
    let victim = World::new_beside(&world, "victim");
    #[expect(clippy::disallowed_methods, reason = "makes what an attacker would")]
    std::os::unix::fs::symlink(victim.path(), world.group().path().join("34")).unwrap();
    let name = std::ffi::OsStr::new("123456");
    let bucket = two_levels.bucket(Name::parse(name).unwrap());
    managed.make_bucket(bucket).unwrap_err();
    assert!(tree(&victim).is_empty(), "{:?}", tree(&victim));
}

#[test]
fn buckets_follow_a_changed_mode() {
    for algorithm in Algorithm::ALL {
        let (world, managed) = World::managed(algorithm);
        add(&managed, "123456");
        add(&managed, "foo");
        world.group().set_mode(0o750 | SET_UID).unwrap();
        managed.adopt_buckets(|_| {}).unwrap();
        for name in ["123456", "foo"] {
            let place = managed.place(Name::parse(std::ffi::OsStr::new(name)).unwrap());
            let bucket = world.group().facts_of(place.parent().unwrap()).unwrap();
            assert_eq!(bucket.mode, 0o750, "{algorithm} {name}");
        }
        assert_eq!(world.group().facts().unwrap().mode, 0o750 | SET_UID);
    }
}

#[test]
fn a_mark_without_its_bit_counts_as_none() {
    let (world, _) = World::managed(Algorithm::RANGE_1024);
    let group = world.group();
    group.set_mode(0o755).unwrap();
    assert_eq!(
        Mark::read(&group).unwrap(),
        Mark::WithoutBit(Algorithm::RANGE_1024)
    );
    assert!(matches!(Opened::new(group).unwrap(), Opened::Flat(_)));
}

#[test]
fn a_mark_of_a_later_version_is_not_touched() {
    let world = World::new();
    let group = world.group();
    group.set_attribute(ATTRIBUTE, b"2 something").unwrap();
    let error = Mark::read(&group).unwrap_err().to_string();
    assert!(
        error.contains(
            "its attribute user.usenetfs is \"2 something\", which this version does not understand"
        ) && error.contains("`setfattr -x user.usenetfs`"),
        "{error}"
    );
}

#[test]
fn buckets_have_the_mode_of_the_directory() {
    let (world, managed) = World::managed(Algorithm::ALL[1]);
    let group = world.group();
    group.set_mode(SET_UID | 0o2773).unwrap();
    add(&managed, "123456");
    for path in ["34", "34/56"] {
        let facts = group.facts_of(Path::new(path)).unwrap();
        assert_eq!(facts.mode, 0o2773, "{path}");
    }
}

#[test]
fn names_of_any_kind_have_their_place() {
    let long = "x".repeat(255);
    for algorithm in Algorithm::ALL {
        let (_world, managed) = World::managed(algorithm);
        let names = [
            "1",
            "345",
            "aaa",
            "r0",
            "0123",
            "123",
            "34",
            ".x",
            long.as_str(),
        ];
        for name in names {
            add(&managed, name);
        }
        let mut seen = listed(&managed);
        seen.sort();
        let mut expected = names.map(str::to_owned);
        expected.sort();
        assert_eq!(seen, expected, "{algorithm}");
        for name in names {
            let place = managed.place(Name::parse(name.as_ref()).unwrap());
            assert_eq!(
                contents(&managed.folder().path().join(place)),
                name.as_bytes()
            );
        }
    }
}

#[test]
fn only_buckets_that_are_not_needed_again_go() {
    for (algorithm, left) in [
        (Algorithm::YYY, vec!["345/", "aaa/"]),
        (Algorithm::RANGE_1024, vec!["aaa/"]),
    ] {
        let (world, managed) = World::managed(algorithm);
        for name in ["123456", "123457", "foo"] {
            add(&managed, name);
        }
        take_away(&managed, "123456");
        assert_eq!(listed(&managed), ["foo", "123457"]);
        take_away(&managed, "123457");
        take_away(&managed, "foo");
        assert_eq!(tree(&world.group()), left);
    }
}

#[test]
fn errors_that_no_bucket_cures_come_through() {
    let (_world, managed) = World::managed(Algorithm::YYY);
    add(&managed, "foo");
    let name = Name::parse("foo".as_ref()).unwrap();
    let error = managed
        .with_bucket(name, |folder, at| put(folder, at, b""))
        .unwrap_err();
    assert!(
        matches!(&error, Error::Host(e) if e.kind() == ErrorKind::Exists),
        "{error}"
    );
    // A rename whose source is missing says the same as one whose bucket is.
    let error = managed
        .with_bucket(name, |folder, at| {
            folder.rename_new(Path::new("none"), folder, at)
        })
        .unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

/// Two threads make and remove files of one bucket: it comes and goes under both, and no file may fail to be made.
#[test]
fn buckets_made_and_removed_at_the_same_time() {
    let (world, managed) = World::managed(Algorithm::RANGE_1024);
    let other = world.open();
    let done = Done::default();
    std::thread::scope(|scope| {
        let _end = done.at_end();
        scope.spawn(|| {
            while !done.is_set() {
                add(&other, "2");
                take_away(&other, "2");
            }
        });
        for _ in 0..2000 {
            add(&managed, "1");
            take_away(&managed, "1");
        }
    });
    assert!(tree(&world.group()).is_empty());
}
