//! Places in the listing of a managed directory, as the 64-bit offsets that `readdir` and `seekdir` speak of.
//!
//! A cookie follows from the entry's name alone, so a listing goes on exactly where it was after a restart, over NFS,
//! or when anything was made or removed in between.  Order: `.`, `..`, the entries of `aaa` by hash, then the buckets
//! in order, by number.  Only names that share a hash are told apart by their neighbours.
//!
//! ```text
//! bits  62 61                        0
//!        0  0  0, 1, 2                      start, after `.`, after `..`
//!        0  1  hash of the name, 61 bits    aaa
//!        1  number, 62 bits                 ranges
//!        1  bucket, 14 bits; 0, number, 47 bits; or 1, hash, 47 bits: other rows of digits
//! ```

use std::os::unix::ffi::OsStrExt;

use newsreel_host::folder::Entry;

use crate::algorithm::{Algorithm, Bucket};
use crate::hash::hash_of;
use crate::name::Name;

/// A place in a listing: right behind one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cookie(u64);

const OTHERS: u64 = 1 << 61;
const BUCKETS: u64 = 1 << 62;
const END: u64 = 1 << 63;
/// Where the rank of a bucket of digits stands.
const RANK_SHIFT: u32 = 48;
/// Set for rows of digits that are no number as it is written, or a long one.
const HASHED: u64 = 1 << 47;
/// So many names of one hash find room behind the last hash.
const SPARE: u64 = 1 << 16;

impl Cookie {
    /// Before everything.
    pub const START: Self = Self(0);
    /// Behind `.`, which the listing leaves to its caller.
    pub const DOT: Self = Self(1);
    /// Behind `..`, which the listing leaves to its caller.
    pub const DOT_DOT: Self = Self(2);

    /// A cookie as it came from outside; any number is a place.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The cookie as a number below 2^63.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The first bucket that may hold entries behind this place; `None` behind the last.
    pub(crate) fn bucket(self, algorithm: Algorithm) -> Option<Bucket> {
        if self.0 >= END {
            return None;
        }
        let Some(place) = self.0.checked_sub(BUCKETS) else {
            return Some(Bucket::OTHERS);
        };
        Some(Bucket(Some(match algorithm.range_numbers() {
            Some(numbers) => place - place % u64::from(numbers),
            None => place >> RANK_SHIFT,
        })))
    }
}

/// The entries of a bucket that belong there, in the order of their cookies.
pub(crate) fn in_order(
    algorithm: Algorithm,
    bucket: Bucket,
    entries: impl IntoIterator<Item = Entry>,
) -> Vec<(Cookie, Entry)> {
    let own = entries.into_iter().filter_map(|entry| {
        let name = Name::parse(&entry.name).ok()?;
        let belongs = algorithm.bucket(name) == bucket;
        let wanted = belongs.then(|| wanted(algorithm, bucket, name))?;
        Some((Cookie(wanted), entry))
    });
    spread(own.collect())
}

/// The place a name wants; those that share one go behind each other.
fn wanted(algorithm: Algorithm, bucket: Bucket, name: Name<'_>) -> u64 {
    let hash =
        |bits: u32| (hash_of(name.as_os_str().as_bytes()) >> (64 - bits)).min((1 << bits) - SPARE);
    let Some(rank) = bucket.0 else {
        return OTHERS | hash(61);
    };
    match (algorithm.range_numbers(), name.number()) {
        (Some(_), number) => BUCKETS | number.unwrap_or(rank),
        (None, Some(number)) if number < HASHED => BUCKETS | (rank << RANK_SHIFT) | number,
        (None, _) => BUCKETS | (rank << RANK_SHIFT) | HASHED | hash(47),
    }
}

/// Sorts, and gives every entry a place of its own.
fn spread(mut entries: Vec<(Cookie, Entry)>) -> Vec<(Cookie, Entry)> {
    entries.sort_unstable();
    let mut free = 0;
    for (cookie, _) in &mut entries {
        cookie.0 = cookie.0.max(free);
        free = cookie.0 + 1;
    }
    entries
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ffi::{OsStr, OsString};

    use newsreel_host::folder::Kind;
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str) -> Entry {
        Entry {
            name: OsString::from(name),
            kind: Kind::File,
            inode: 1,
        }
    }

    fn bucket(algorithm: Algorithm, name: &str) -> Bucket {
        algorithm.bucket(Name::parse(OsStr::new(name)).unwrap())
    }

    fn cookie(algorithm: Algorithm, name: &str) -> Cookie {
        let listed = in_order(algorithm, bucket(algorithm, name), [entry(name)]);
        listed[0].0
    }

    /// Clients keep cookies: what these rows say never changes.
    #[test]
    fn cookies_are_for_ever() {
        let rows = [
            (Algorithm::YYY, "123456"),
            (Algorithm::YYY, "0123"),
            (Algorithm::YYY, "foo"),
            (Algorithm::RANGE_1024, "123456"),
            (Algorithm::RANGE_1024, "4611686018427387903"),
            (Algorithm::RANGE_1024, "foo"),
        ];
        let text = rows.map(|(a, name)| format!("{a} {name}: {:#x}\n", cookie(a, name).raw()));
        expect_test::expect![[r#"
            yyy 123456: 0x415900000001e240
            yyy 0123: 0x400cbe693daaf4c0
            yyy foo: 0x22bba1522cb3fda3
            range1024 123456: 0x400000000001e240
            range1024 4611686018427387903: 0x7fffffffffffffff
            range1024 foo: 0x22bba1522cb3fda3
        "#]]
        .assert_eq(&text.concat());
    }

    #[test]
    fn names_of_one_hash_stand_behind_each_other() {
        let place = |at, name| (Cookie(at), entry(name));
        let listed = spread(vec![
            place(8, "c"),
            place(7, "b"),
            place(7, "a"),
            place(7, "d"),
            place(20, "e"),
        ]);
        let text: Vec<_> = listed
            .iter()
            .map(|(cookie, entry)| format!("{}{}", entry.name.to_string_lossy(), cookie.raw()))
            .collect();
        assert_eq!(text, ["a7", "b8", "d9", "c10", "e20"]);
    }

    #[test]
    fn what_lies_in_a_wrong_bucket_is_not_listed() {
        let all = ["12", "345", "foo", "19"].map(entry);
        let listed = in_order(Algorithm::YYY, bucket(Algorithm::YYY, "12"), all);
        let names: Vec<_> = listed.iter().map(|(_, entry)| entry.name.clone()).collect();
        assert_eq!(names, ["12", "19"]);
    }

    #[test]
    fn cookies_from_outside_are_places() {
        for algorithm in Algorithm::ALL {
            for raw in [0, 1, 2, 3, OTHERS, BUCKETS - 1] {
                assert_eq!(Cookie(raw).bucket(algorithm), Some(Bucket::OTHERS));
            }
            for raw in [END, u64::MAX] {
                assert_eq!(Cookie(raw).bucket(algorithm), None);
            }
        }
        assert_eq!(
            Cookie(BUCKETS).bucket(Algorithm::YYY),
            Some(Bucket(Some(0)))
        );
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9]{1,25}",
            any::<u64>().prop_map(|n| n.to_string()),
            (0..30_000_u32).prop_map(|n| n.to_string()),
            "[a-z0-9]{1,6}",
        ]
    }

    /// Those that have a name of their own, and ranges of any length.
    fn algorithms() -> impl Strategy<Value = Algorithm> {
        prop_oneof![
            (0..Algorithm::ALL.len()).prop_map(|at| Algorithm::ALL[at]),
            (2..=1_u32 << 24).prop_map(|numbers| Algorithm::range(numbers).unwrap()),
            (2..=100_u32).prop_map(|numbers| Algorithm::range(numbers).unwrap()),
        ]
    }

    proptest! {
        /// A cookie of a range is its number's, whatever the range: a listing of other ranges goes on from it, in the bucket
        /// that holds the number.
        #[test]
        fn prop_cookies_of_ranges_are_numbers(
            numbers in prop_oneof![2..=100_u32, 2..=1_u32 << 24],
            number in prop_oneof![0..100_000_u64, 0..1_u64 << 62],
        ) {
            let algorithm = Algorithm::range(numbers).unwrap();
            let cookie = cookie(algorithm, &number.to_string());
            prop_assert_eq!(cookie.raw(), BUCKETS | number);
            let first = number - number % u64::from(numbers);
            prop_assert_eq!(cookie.bucket(algorithm), Some(Bucket(Some(first))));
        }

        /// Every entry has a cookie of its own, in the order of the buckets, and its bucket is found again from it.
        #[test]
        fn prop_cookies_are_unique_and_lead_back(
            algorithm in algorithms(),
            names in proptest::collection::btree_set(names(), 1..100),
        ) {
            let mut listed = Vec::new();
            let buckets: BTreeSet<_> = names.iter().map(|name| bucket(algorithm, name)).collect();
            for bucket in buckets {
                for (cookie, _) in in_order(algorithm, bucket, names.iter().map(|name| entry(name))) {
                    prop_assert_eq!(cookie.bucket(algorithm), Some(bucket));
                    listed.push(cookie);
                }
            }
            prop_assert_eq!(listed.len(), names.len());
            prop_assert!(listed.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(listed[0] > Cookie::DOT_DOT && listed[listed.len() - 1].raw() < END);
        }

        /// A cookie is the name's alone, whoever its neighbours are.
        #[test]
        fn prop_a_cookie_follows_from_the_name(
            algorithm in algorithms(),
            names in proptest::collection::btree_set(names(), 1..100),
        ) {
            for name in &names {
                let among = in_order(algorithm, bucket(algorithm, name), names.iter().map(|name| entry(name)));
                let found = among.iter().find(|(_, entry)| entry.name == **name).unwrap();
                prop_assert_eq!(found.0, cookie(algorithm, name));
            }
        }
    }
}
