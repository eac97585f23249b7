//! Verification and repair: every finding, what a repair does, and what it leaves to a human.

use std::ops::ControlFlow;
use std::path::Path;

use newsreel_host::{ErrorKind, process};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::verify::{Summary, verify};
use newsreel_layout::{ATTRIBUTE, Algorithm, Error, Mark, SET_UID};

use crate::world::{World, add, inodes, link, put, soft, take_away, tree, view};

const YYY: Algorithm = Algorithm::YYY;
const RANGE: Algorithm = Algorithm::RANGE_1024;

/// The findings as text, and the summary.
fn findings(world: &World, repair: bool) -> (Vec<String>, Summary) {
    let mut found = Vec::new();
    let summary = verify(&world.group(), repair, &mut |finding| {
        let mark = if finding.repaired { " (repaired)" } else { "" };
        found.push(format!("{} {}{mark}", finding.path.display(), finding.what));
    });
    found.sort();
    (found, summary.unwrap())
}

/// Says what is found, repairs, and says what is left.
#[track_caller]
fn check(world: &World, expected: &[&str], left: &[&str]) {
    let before = (tree(&world.group()), inodes(&world.group()));
    let (found, summary) = findings(world, false);
    assert_eq!(found, expected);
    assert_eq!(
        (summary.findings, summary.repaired),
        (expected.len() as u64, 0)
    );
    assert_eq!(tree(&world.group()), before.0, "looking changes nothing");
    let (_, repaired) = findings(world, true);
    assert_eq!(repaired.repaired, repaired.findings - left.len() as u64);
    assert_eq!(findings(world, false).0, left);
}

#[test]
fn a_sound_directory_has_no_findings() {
    for algorithm in Algorithm::ALL {
        let world = World::with_odd_names();
        let group = world.group();
        let seen = view(&group).len() as u64;
        let mut go_on = |_| ControlFlow::Continue(());
        convert(
            &group,
            Target::On(algorithm),
            Options::default(),
            &mut go_on,
        )
        .unwrap();
        let (found, summary) = findings(&world, false);
        let place = algorithm.place(newsreel_layout::Name::parse("777".as_ref()).unwrap());
        let link = "is a relative link; natively it leads elsewhere";
        assert_eq!(found, [format!("{} {link}", place.display())]);
        assert_eq!(summary.entries, seen);
        assert!(summary.articles > 15 && summary.buckets > 3, "{summary:?}");
    }
    let flat = World::new();
    assert_eq!(findings(&flat, true), (vec![], Summary::default()));
}

/// A copy made without extended attributes: a repair took the buckets for strays, and brought them to `aaa`.
#[test]
fn an_attribute_that_was_lost_is_told_by_how_the_files_lie() {
    for (algorithm, told) in Algorithm::ALL
        .into_iter()
        .chain([100, 1 << 20].map(|numbers| Algorithm::range(numbers).unwrap()))
        .map(|algorithm| (algorithm, algorithm.to_string()))
    {
        let (world, managed) = World::managed(algorithm);
        for number in (1..3000).step_by(37) {
            add(&managed, &number.to_string());
        }
        add(&managed, "alt");
        let before = view(&world.group());
        world.group().remove_attribute(ATTRIBUTE).unwrap();
        // One that lies astray tells nothing.
        put(&world.group(), Path::new("98765"), b"98765").unwrap();
        let lost = match told.as_str() {
            "yyy" => None,
            // Its only bucket is one of these, too, and none of a smaller one.
            "range1048576" => Some("range4096"),
            told => Some(told),
        };
        let found = lost.map_or(algorithm, |told| told.parse().unwrap());
        let place = found.place(newsreel_layout::Name::parse("98765".as_ref()).unwrap());
        let stray = format!("98765 belongs to {}", place.display());
        let lost = lost.map(|told| {
            format!(
                " has lost its attribute, without which it is taken for yyy, and lies as {told} has it; `verify --repair` \
                 writes the attribute again"
            )
        });
        let expected: Vec<&str> = lost
            .iter()
            .map(String::as_str)
            .chain([stray.as_str()])
            .collect();
        check(&world, &expected, &[]);
        let mut after = view(&world.group());
        after.retain(|name, _| name != "98765");
        assert_eq!(after, before, "{told}");
    }
}

#[test]
fn strays_go_where_they_belong() {
    let (world, managed) = World::managed(YYY);
    add(&managed, "123456");
    for name in ["98", "034", "345x", "foo"] {
        put(&world.group(), Path::new(name), name.as_bytes()).unwrap();
    }
    put(&world.group(), Path::new("345/777"), b"777").unwrap();
    world.group().make_folder(Path::new("alt"), 0o755).unwrap();
    check(
        &world,
        &[
            "034 belongs to 003/034",
            "345/777 belongs to 077/777",
            "345x belongs to aaa/345x",
            "98 belongs to 009/98",
            "alt belongs to aaa/alt",
            "foo belongs to aaa/foo",
        ],
        &[],
    );
    assert_eq!(view(&world.group()).len(), 7);
}

#[test]
fn directories_of_buckets_hold_only_buckets() {
    let (world, managed) = World::managed(Algorithm::ALL[1]);
    add(&managed, "123456");
    put(&world.group(), Path::new("34/57"), b"57").unwrap();
    put(&world.group(), Path::new("34/x"), b"x").unwrap();
    check(
        &world,
        &["34/57 belongs to 00/57/57", "34/x belongs to aaa/x"],
        &[],
    );
}

#[test]
fn two_things_of_one_name_are_left_and_one_thing_under_two_names_is_one() {
    let (world, managed) = World::managed(YYY);
    add(&managed, "123456");
    add(&managed, "99");
    let group = world.group();
    put(&group, Path::new("123456"), b"another").unwrap();
    link(&group, "009/99", &group, "345/99");
    check(
        &world,
        &[
            "123456 belongs to 345/123456, where something else is",
            "345/99 is also where it belongs, 009/99",
        ],
        &["123456 belongs to 345/123456, where something else is"],
    );
    assert_eq!(group.facts_of(Path::new("009/99")).unwrap().links, 1);
}

#[test]
fn a_killed_repair_is_gone_on_with() {
    let (world, managed) = World::managed(YYY);
    add(&managed, "123456");
    let group = world.group();
    group
        .make_folder(Path::new(".usenetfs-convert"), 0o755)
        .unwrap();
    check(&world, &[".usenetfs-convert is left over, and empty"], &[]);
    group
        .make_folder(Path::new(".usenetfs-convert"), 0o755)
        .unwrap();
    for name in ["foo", "123456"] {
        let at = Path::new(".usenetfs-convert").join(name);
        put(&group, &at, name.as_bytes()).unwrap();
    }
    let clash = ".usenetfs-convert/123456 belongs to 345/123456, where something else is";
    check(
        &world,
        &[clash, ".usenetfs-convert/foo belongs to aaa/foo"],
        &[clash],
    );
}

#[test]
fn buckets_get_owner_and_mode_of_the_directory() {
    let (world, managed) = World::managed(YYY);
    add(&managed, "123456");
    add(&managed, "foo");
    let bucket = world.group().open_folder(Path::new("345")).unwrap();
    bucket.set_mode(0o700).unwrap();
    let others = world.group().open_folder(Path::new("aaa")).unwrap();
    others.set_mode(0o700).unwrap();
    if process::own_uid() == 0 {
        others.set_owner(1, 1).unwrap();
    }
    let what = "has not the owner, group and mode of the directory";
    check(
        &world,
        &[&format!("345 {what}"), &format!("aaa {what}")],
        &[],
    );
}

/// A server that was killed between the removal of the last file and that of its bucket left a finding behind, and so a verification that failed.
#[test]
fn empty_buckets_mean_nothing_and_are_counted_where_they_are_not_needed_again() {
    for (algorithm, bucket, count) in [(RANGE, "r1024", 1), (RANGE, "aaa", 0), (YYY, "345", 0)] {
        let (world, _) = World::managed(algorithm);
        world.group().make_folder(Path::new(bucket), 0o755).unwrap();
        check(&world, &[], &[]);
        let is_there = tree(&world.group()).len() as u64;
        assert_eq!(is_there, 1 - count, "a repair removes what is not needed");
        let _ = world.group().make_folder(Path::new(bucket), 0o755);
        assert_eq!(findings(&world, false).1.empty_buckets, count);
    }
}

/// What works in the view was a finding that no repair could end.
#[test]
fn a_relative_link_is_a_note() {
    let (world, managed) = World::managed(RANGE);
    managed
        .make_bucket(RANGE.bucket(newsreel_layout::Name::parse("7".as_ref()).unwrap()))
        .unwrap();
    let bucket = world.group().open_folder(Path::new("r0")).unwrap();
    soft(&bucket, Path::new("../8"), "7");
    let (told, summary) = findings(&world, false);
    assert_eq!(
        told,
        ["r0/7 is a relative link; natively it leads elsewhere"]
    );
    assert_eq!((summary.findings, summary.notes), (0, 1));
}

/// A copy of a managed directory as its mount shows it: the bit came along and made every file a stray.
#[test]
fn a_flat_copy_with_the_bit_is_one_finding() {
    let flat = |world: &World| {
        let group = world.group();
        for name in ["1", "2", "123456", "foo"] {
            put(&group, Path::new(name), name.as_bytes()).unwrap();
        }
        group.make_folder(Path::new("sub"), 0o755).unwrap();
        let before = view(&group);
        group.set_mode(0o755 | SET_UID).unwrap();
        before
    };
    let told = " has the set-uid bit and no mark, and all of it (5) lies flat, so that its view is empty: most likely it was copied from a \
                mount, and the bit with it; `chmod u-s` (not through a mount) makes it an ordinary directory again, `verify --repair` one \
                that is managed by yyy";
    let world = World::new();
    let before = flat(&world);
    check(&world, &[told], &[]);
    assert_eq!(view(&world.group()), before);
    assert_eq!(Mark::read(&world.group()).unwrap(), Mark::Managed(YYY));
    // Whether a directory with the name of a bucket is one nobody knows: what is in it stays there.
    let world = World::new();
    flat(&world);
    let group = world.group();
    group.make_folder(Path::new("345"), 0o755).unwrap();
    put(&group, Path::new("345/1"), b"1").unwrap();
    let told = told.replace("(5)", "(6)");
    check(&world, &[&told], &[&told]);
    assert!(tree(&group).contains(&"345/1".to_owned()));
}

/// What was set aside just now was told once more.
#[test]
fn a_repair_after_one_that_was_killed_counts_each_thing_once() {
    let (world, _) = World::managed(YYY);
    let group = world.group();
    let staging = Path::new(".usenetfs-convert");
    group.make_folder(staging, 0o755).unwrap();
    put(&group, &staging.join("1"), b"").unwrap();
    for number in 2..40 {
        put(&group, Path::new(&number.to_string()), b"").unwrap();
    }
    let (told, summary) = findings(&world, true);
    assert_eq!((summary.findings, summary.repaired), (39, 39), "{told:?}");
    assert_eq!(view(&group).len(), 39);
}

#[test]
fn a_lost_bit_is_set_again_unless_the_directory_looks_flat() {
    let lost = " is marked as managed, but its set-uid bit is off";
    let lose = |world: &World| world.group().set_mode(0o755).unwrap();
    let (world, managed) = World::managed(RANGE);
    add(&managed, "123456");
    lose(&world);
    check(&world, &[lost], &[]);
    assert_eq!(Mark::read(&world.group()).unwrap(), Mark::Managed(RANGE));

    let (world, _) = World::managed(RANGE);
    lose(&world);
    check(&world, &[lost], &[]);
    assert_eq!(Mark::read(&world.group()).unwrap(), Mark::None);

    // Its buckets stay when nothing is in them any more.
    for algorithm in [YYY, RANGE] {
        let (world, managed) = World::managed(algorithm);
        for name in ["123456", "readme"] {
            add(&managed, name);
            take_away(&managed, name);
        }
        assert!(!tree(&world.group()).is_empty());
        lose(&world);
        check(&world, &[lost], &[]);
        assert_eq!(
            Mark::read(&world.group()).unwrap(),
            Mark::Managed(algorithm)
        );
    }

    let (world, managed) = World::managed(RANGE);
    add(&managed, "123456");
    lose(&world);
    put(&world.group(), Path::new("123457"), b"").unwrap();
    check(&world, &[lost], &[lost]);
    assert_eq!(world.group().facts().unwrap().mode & SET_UID, 0);
}

/// A repair took groups with names of three digits for buckets, and moved their articles out of them.
#[test]
fn directories_that_are_called_like_buckets_are_left_alone() {
    let world = World::new();
    let group = world.group();
    for name in ["123", "345"] {
        group.make_folder(Path::new(name), 0o755).unwrap();
        for number in 1..20 {
            put(&group, &Path::new(name).join(number.to_string()), b"").unwrap();
        }
    }
    group.set_attribute(ATTRIBUTE, b"1 yyy").unwrap();
    let lost = " is marked as managed, but its set-uid bit is off";
    check(&world, &[lost], &[lost]);
    assert_eq!(tree(&group).len(), 2 + 2 * 19);
}

#[test]
fn a_conversion_under_way_is_told_and_left() {
    let (world, _) = World::managed(RANGE);
    world
        .group()
        .set_attribute(ATTRIBUTE, b"1 convert range1024 flat spread")
        .unwrap();
    let told = " a conversion from range1024 to flat is under way; run it to its end";
    check(&world, &[told], &[told]);
}

#[test]
fn a_repair_holds_the_lock_and_a_look_does_not() {
    let (world, _) = World::managed(RANGE);
    let _lock = world.group().lock().unwrap();
    verify(&world.group(), false, &mut |_| {}).unwrap();
    let error = verify(&world.group(), true, &mut |_| {}).unwrap_err();
    assert!(
        matches!(&error, Error::Host(e) if e.kind() == ErrorKind::Locked),
        "{error}"
    );
}

/// The owner of a directory led root out of it by links in the places of buckets: files came to be where only root may write.
#[test]
fn a_repair_is_led_nowhere_by_links_in_the_places_of_buckets() {
    let (world, _) = World::managed(RANGE);
    let outside = World::new_beside(&world, "outside");
    let group = world.group();
    put(&group, Path::new("5"), b"5").unwrap();
    // It belongs to `aaa`, where it goes; then its place is free.
    soft(&group, outside.path(), "r0");
    check(&world, &["5 belongs to r0/5", "r0 belongs to aaa/r0"], &[]);
    assert_eq!(view(&group).len(), 2);

    // Where it belongs is something else: it stays, and whatever belongs behind it too.
    let (world, managed) = World::managed(RANGE);
    add(&managed, "r0");
    let group = world.group();
    put(&group, Path::new("5"), b"5").unwrap();
    put(&group, Path::new("2000"), b"2000").unwrap();
    soft(&group, outside.path(), "r0");
    let stays = [
        "5 belongs to r0/5, and something that is no directory is in the way",
        "r0 belongs to aaa/r0, where something else is",
    ];
    check(
        &world,
        &["2000 belongs to r1024/2000", stays[0], stays[1]],
        &stays,
    );

    // What is set aside is not set aside elsewhere, and a file of that name is no error.
    let (world, _) = World::managed(RANGE);
    let group = world.group();
    put(&group, Path::new("foo"), b"foo").unwrap();
    soft(&group, outside.path(), ".usenetfs-convert");
    check(
        &world,
        &[
            ".usenetfs-convert belongs to aaa/.usenetfs-convert",
            "foo belongs to aaa/foo",
        ],
        &[],
    );
    let (world, managed) = World::managed(RANGE);
    add(&managed, ".usenetfs-convert");
    let group = world.group();
    put(&group, Path::new("foo"), b"foo").unwrap();
    soft(&group, outside.path(), ".usenetfs-convert");
    let stay = [
        ".usenetfs-convert belongs to aaa/.usenetfs-convert, where something else is",
        "foo belongs to aaa/foo",
    ];
    check(&world, &stay, &stay);
    assert_eq!(tree(&outside), Vec::<String>::new());
}
