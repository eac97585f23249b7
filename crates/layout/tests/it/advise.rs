//! Advice: what is counted, and what follows for the directories that spools have.

use std::path::Path;

use newsreel_host::folder::FileSystemKind;
use newsreel_layout::advise::{Census, Mix, READ_US, Search, Verdict, advise, census, day};
use newsreel_layout::{Algorithm, Layout};

use crate::world::{World, add, put};

fn directory(search: Option<Search>, entries: u64) -> Census {
    Census {
        layout: Layout::Flat,
        entries,
        articles: entries,
        folder_bytes: 0,
        file_system: FileSystemKind::Ext,
        search,
    }
}

#[test]
fn a_directory_is_counted_flat_and_managed() {
    let world = World::new();
    for name in ["1", "2", "100000", "foo"] {
        put(&world.group(), Path::new(name), b"").unwrap();
    }
    let flat = census(&world.group()).unwrap();
    assert_eq!(
        (flat.layout, flat.entries, flat.articles),
        (Layout::Flat, 4, 3)
    );
    let (world, managed) = World::managed(Algorithm::RANGE_1024);
    for name in ["1", "2", "100000", "foo"] {
        add(&managed, name);
    }
    // In no view.
    put(&world.group(), Path::new("3"), b"").unwrap();
    let managed = census(&world.group()).unwrap();
    assert_eq!(managed.layout, Layout::Managed(Algorithm::RANGE_1024));
    assert_eq!((managed.entries, managed.articles), (4, 3));
    assert!(managed.folder_bytes >= flat.folder_bytes, "{managed:?}");
}

#[test]
fn verdicts_for_the_sizes_that_groups_have() {
    let mut text = String::new();
    for search in [Search::Linear, Search::Hashed, Search::Tree] {
        for entries in [100, 1000, 3000, 10_000, 100_000, 1_000_000] {
            let advice = advise(&directory(Some(search), entries), Mix::of_1998(entries));
            let gain = |day: Option<newsreel_layout::advise::Day>| {
                day.map_or(0.0, |day| day.flat / day.managed)
            };
            let (memory, disk) = (gain(advice.in_memory), gain(advice.on_disk));
            let through = advice.in_memory.map_or(0.0, |day| day.flat / day.mounted);
            let (natively, mounted) = (advice.natively, advice.mounted);
            text += &format!(
                "{search:?} {entries}: {natively} ({memory:.1}, {disk:.1}); mounted {mounted} ({through:.1})\n"
            );
        }
    }
    expect_test::expect![[r#"
        Linear 100: leave it as it is (1.4, 0.8); mounted leave it as it is (0.1)
        Linear 1000: leave it as it is (1.5, 1.3); mounted leave it as it is (0.1)
        Linear 3000: manage it by range1024 (2.2, 1.5); mounted keep it flat (0.2)
        Linear 10000: manage it by range1024 (5.0, 2.0); mounted keep it flat (0.4)
        Linear 100000: manage it by range1024 (27.4, 3.8); mounted manage it by range1024 (3.0)
        Linear 1000000: manage it by range1024 (108.7, 11.5); mounted manage it by range1024 (14.6)
        Hashed 100: leave it as it is (1.4, 1.1); mounted leave it as it is (0.2)
        Hashed 1000: leave it as it is (1.7, 1.5); mounted leave it as it is (0.2)
        Hashed 3000: leave it as it is (1.2, 1.2); mounted keep it flat (0.2)
        Hashed 10000: leave it as it is (1.0, 1.0); mounted keep it flat (0.2)
        Hashed 100000: leave it as it is (1.3, 1.0); mounted keep it flat (0.5)
        Hashed 1000000: leave it as it is (1.0, 0.8); mounted leave it as it is (0.7)
        Tree 100: leave it as it is (1.0, 0.9); mounted leave it as it is (0.1)
        Tree 1000: leave it as it is (1.3, 1.1); mounted leave it as it is (0.1)
        Tree 3000: leave it as it is (1.0, 1.0); mounted keep it flat (0.1)
        Tree 10000: leave it as it is (0.9, 0.9); mounted keep it flat (0.2)
        Tree 100000: leave it as it is (1.3, 0.9); mounted keep it flat (0.4)
        Tree 1000000: keep it flat (0.6, 0.7); mounted keep it flat (0.3)
    "#]]
    .assert_eq(&text);
}

/// What was so already was advised.
#[test]
fn what_is_so_already_is_said_to_be() {
    let range = Layout::Managed(Algorithm::RANGE_1024);
    let manage = Verdict::Manage(Algorithm::RANGE_1024);
    for (verdict, is, said) in [
        (manage, Layout::Flat, "manage it by range1024"),
        (manage, range, "managed by range1024: keep it so"),
        (
            manage,
            Layout::Managed(Algorithm::YYY),
            "manage it by range1024, instead of yyy",
        ),
        (Verdict::Flat, Layout::Flat, "flat: keep it so"),
        (Verdict::Flat, range, "make it flat"),
        (Verdict::Either, range, "leave it as it is"),
        (
            Verdict::Unknown,
            Layout::Flat,
            "not measured on such a file system",
        ),
    ] {
        assert_eq!(verdict.said(is), said);
    }
}

/// Figure 6 of our own report: through a mount a searched directory pays from some 100,000 articles on, and no other does.
#[test]
fn a_mount_costs_a_request_for_each_operation() {
    for (search, entries, expected) in [
        (Search::Linear, 8192, false),
        (Search::Linear, 200_000, true),
        (Search::Hashed, 200_000, false),
        (Search::Tree, 200_000, false),
    ] {
        let advice = advise(&directory(Some(search), entries), Mix::of_1998(entries));
        let manages = advice.mounted == Verdict::Manage(Algorithm::RANGE_1024);
        assert_eq!(manages, expected, "{search:?} {entries}: {advice:?}");
        let day = advice.in_memory.unwrap();
        assert!(day.mounted > day.managed, "{day:?}");
    }
}

#[test]
fn nothing_is_said_of_what_was_not_measured() {
    let advice = advise(&directory(None, 1_000_000), Mix::of_1998(1_000_000));
    assert_eq!(
        (advice.natively, advice.in_memory),
        (Verdict::Unknown, None)
    );
    assert_eq!(advice.mounted, Verdict::Unknown);
}

#[test]
fn what_is_done_with_a_directory_decides() {
    let listed = Mix {
        lookups: 0.0,
        adds: 0.0,
        removes: 0.0,
        listings: 1000.0,
    };
    let entries = 100_000;
    assert_eq!(
        advise(&directory(Some(Search::Tree), entries), listed).natively,
        Verdict::Flat
    );
    let fed = Mix {
        adds: 100_000.0,
        removes: 100_000.0,
        listings: 0.0,
        ..listed
    };
    let manage = Verdict::Manage(Algorithm::RANGE_1024);
    assert_eq!(
        advise(&directory(Some(Search::Hashed), entries), fed).natively,
        manage
    );
}

#[test]
fn a_day_costs_more_with_more_entries_and_slower_disks() {
    for search in [Search::Linear, Search::Hashed, Search::Tree] {
        let cost = |entries, read_us| day(search, entries, Mix::of_1998(entries), read_us);
        let mut last = cost(1000, 0.0);
        for entries in [2000, 5000, 8192, 20_000, 65_536, 300_000, 2_000_000] {
            let now = cost(entries, 0.0);
            assert!(
                now.flat > last.flat && now.managed > last.managed,
                "{search:?} {entries}"
            );
            let on_disk = cost(entries, READ_US);
            assert!(on_disk.flat > now.flat && on_disk.managed > now.managed);
            last = now;
        }
    }
}
