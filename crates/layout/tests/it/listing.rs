//! Listings: order, any buffer size, from any cookie, and while the directory changes.

use std::collections::BTreeMap;

use newsreel_layout::{Algorithm, Cookie, Listing, Managed};
use proptest::prelude::*;

use crate::world::{Done, World, add, listed, take_away};

/// Lists in pieces of `piece`, with a listing that is made anew for each when `fresh`.
fn in_pieces(managed: &Managed, piece: usize, fresh: bool) -> Vec<(String, Cookie)> {
    let mut all = Vec::new();
    let mut listing = Listing::default();
    let mut from = Cookie::DOT_DOT;
    loop {
        if fresh {
            listing = Listing::default();
        }
        let mut got = Vec::new();
        listing
            .fill(managed, from, |entry, cookie| {
                let fits = got.len() < piece;
                if fits {
                    got.push((entry.name.to_string_lossy().into_owned(), cookie));
                }
                fits
            })
            .unwrap();
        let Some((_, last)) = got.last() else {
            return all;
        };
        from = *last;
        all.append(&mut got);
    }
}

#[test]
fn the_order_is_others_then_buckets_then_numbers() {
    let names = ["1024", "foo", "999", "7", "345", "3450", "13459", "03451"];
    for (algorithm, expected) in [
        (
            Algorithm::YYY,
            ["foo", "7", "345", "999", "1024", "3450", "13459", "03451"],
        ),
        (
            Algorithm::ALL[3],
            ["foo", "7", "1024", "345", "3450", "03451", "13459", "999"],
        ),
        (
            Algorithm::RANGE_1024,
            ["foo", "03451", "7", "345", "999", "1024", "3450", "13459"],
        ),
    ] {
        let (_world, managed) = World::managed(algorithm);
        for name in names {
            add(&managed, name);
        }
        let seen = listed(&managed);
        if algorithm == Algorithm::RANGE_1024 {
            // Two of the others, by their hashes.
            let mut seen = seen;
            seen[..2].sort_by_key(|name| name != "foo");
            assert_eq!(seen, expected, "{algorithm}");
        } else {
            assert_eq!(seen, expected, "{algorithm}");
        }
    }
}

#[test]
fn any_piece_and_any_restart_give_the_same() {
    for algorithm in Algorithm::ALL {
        let (_world, managed) = World::managed(algorithm);
        for number in (1000..1300).chain([5, 77_777, 123_456_789]) {
            add(&managed, &number.to_string());
        }
        for name in ["foo", "bar", "0123"] {
            add(&managed, name);
        }
        let whole = in_pieces(&managed, usize::MAX, false);
        assert_eq!(whole.len(), 306);
        for piece in [1, 7, 100] {
            assert_eq!(
                in_pieces(&managed, piece, false),
                whole,
                "{algorithm} {piece}"
            );
            assert_eq!(
                in_pieces(&managed, piece, true),
                whole,
                "{algorithm} {piece}"
            );
        }
        // From every cookie on, forwards and backwards, with one listing.
        let mut listing = Listing::default();
        for at in (0..whole.len()).chain((0..whole.len()).rev()) {
            let mut next = None;
            let mut take = |entry: &newsreel_host::folder::Entry| {
                next = next
                    .take()
                    .or_else(|| Some(entry.name.to_string_lossy().into_owned()));
                false
            };
            listing
                .fill(&managed, whole[at].1, |entry, _| take(entry))
                .unwrap();
            assert_eq!(next.as_ref(), whole.get(at + 1).map(|(name, _)| name));
        }
    }
}

#[test]
fn a_rewound_listing_sees_what_is_new() {
    let (_world, managed) = World::managed(Algorithm::YYY);
    let mut listing = Listing::default();
    let count = |listing: &mut Listing| {
        let mut count = 0;
        let take = |_: &_, _| {
            count += 1;
            true
        };
        listing.fill(&managed, Cookie::DOT_DOT, take).unwrap();
        count
    };
    assert_eq!(count(&mut listing), 0);
    add(&managed, "1");
    assert_eq!(count(&mut listing), 1);
    add(&managed, "20000");
    assert_eq!(count(&mut listing), 2);
    add(&managed, "2");
    assert_eq!(count(&mut listing), 3);
}

/// Others make and remove while this thread lists with tiny buffers: what stays is returned exactly once.
#[test]
fn what_stays_is_returned_exactly_once_while_others_come_and_go() {
    for algorithm in Algorithm::ALL {
        let (world, managed) = World::managed(algorithm);
        let stay: Vec<String> = (0..120).map(|n| (n * 37).to_string()).collect();
        for name in stay.iter().map(String::as_str).chain(["foo", "007"]) {
            add(&managed, name);
        }
        let done = Done::default();
        std::thread::scope(|scope| {
            let _end = done.at_end();
            for thread in 0..2 {
                let (done, managed) = (&done, world.open());
                scope.spawn(move || {
                    for round in 0_u32.. {
                        if done.is_set() {
                            return;
                        }
                        let number = (round * 74 + thread * 37) % 5_000;
                        let names = [format!("{number}x"), (number / 37 * 37 + 1).to_string()];
                        for name in names.iter().map(|name| format!("{name}{thread}")) {
                            add(&managed, &name);
                            take_away(&managed, &name);
                        }
                    }
                });
            }
            for piece in [1, 5, 50] {
                for fresh in [false, piece == 50] {
                    let mut seen = BTreeMap::<String, u32>::new();
                    for (name, _) in in_pieces(&managed, piece, fresh) {
                        *seen.entry(name).or_default() += 1;
                    }
                    for name in &stay {
                        assert!(
                            seen.contains_key(name),
                            "{algorithm} {piece}: {name} is missing"
                        );
                    }
                    let twice: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).collect();
                    assert!(twice.is_empty(), "{algorithm} {piece}: {twice:?}");
                }
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A managed directory against a set of names: whatever is made and removed, both list the same.
    #[test]
    fn prop_a_view_is_a_set_of_names(
        at in 0..Algorithm::ALL.len(),
        steps in proptest::collection::vec((any::<bool>(), "([0-9]{1,5}|[a0]{1,4})"), 1..60),
    ) {
        let (_world, managed) = World::managed(Algorithm::ALL[at]);
        let mut model = std::collections::BTreeSet::new();
        for (adds, name) in steps {
            if adds {
                if model.insert(name.clone()) {
                    add(&managed, &name);
                }
            } else if model.remove(&name) {
                take_away(&managed, &name);
            }
        }
        let mut seen = listed(&managed);
        seen.sort();
        prop_assert_eq!(seen, model.into_iter().collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Ranges of any length are listed in pieces of any length, by one listing or by one for each piece, each entry once and in the
    /// order of its number.
    #[test]
    fn prop_ranges_of_any_length_are_listed_once(
        numbers in prop_oneof![2..100_u32, 2..=1_u32 << 24],
        articles in proptest::collection::btree_set(prop_oneof![0..2_000_u64, 0..1_u64 << 62], 1..60),
        piece in 1..20_usize,
    ) {
        let (_world, managed) = World::managed(Algorithm::range(numbers).unwrap());
        for number in &articles {
            add(&managed, &number.to_string());
        }
        let expected: Vec<String> = articles.iter().map(u64::to_string).collect();
        for fresh in [false, true] {
            let listed = in_pieces(&managed, piece, fresh);
            let names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
            prop_assert_eq!(&names, &expected, "{} by {}", numbers, piece);
        }
    }
}
