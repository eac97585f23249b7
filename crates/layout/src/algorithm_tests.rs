//! Tests of the algorithms: the paper's examples, names at the edges, and properties over all names.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn place(algorithm: &str, name: &str) -> String {
    let algorithm: Algorithm = algorithm.parse().unwrap();
    let name = Name::parse(OsStr::new(name)).unwrap();
    algorithm.place(name).to_str().unwrap().to_owned()
}

#[track_caller]
fn check(algorithm: &str, rows: &[(&str, &str)]) {
    for (name, expected) in rows {
        assert_eq!(
            place(algorithm, name),
            format!("{expected}/{name}"),
            "{algorithm}"
        );
    }
}

/// The examples of the paper's sections 2, 3 and 4.3.
#[test]
fn the_papers_examples() {
    check("yyy", &[("123456", "345"), ("foo", "aaa"), ("987", "098")]);
    for last in '0'..='9' {
        let name = format!("12345{last}");
        check("yyy", &[(name.as_str(), "345")]);
    }
    check("34/56", &[("123456", "34/56")]);
    check("56/34", &[("123456", "56/34")]);
    check("456", &[("123456", "456")]);
}

#[test]
fn digits_are_taken_from_the_name_as_it_is_written() {
    check(
        "yyy",
        &[
            ("7", "000"),
            ("0", "000"),
            ("10", "001"),
            ("0123", "012"),
            ("123", "012"),
            ("345", "034"),
            ("2600", "260"),
            ("aaa", "aaa"),
            ("98765432109876543210", "321"),
            ("12345.tmp", "aaa"),
            (".overview", "aaa"),
        ],
    );
    check("34/56", &[("7", "00/07"), ("0123", "01/23"), ("x", "aaa")]);
    check("56/34", &[("7", "07/00"), ("0123", "23/01"), ("x", "aaa")]);
    check("456", &[("7", "007"), ("0123", "123"), ("x", "aaa")]);
}

#[test]
fn ranges_hold_consecutive_numbers() {
    check(
        "range1024",
        &[
            ("0", "r0"),
            ("1023", "r0"),
            ("1024", "r1024"),
            ("1000000", "r999424"),
            ("4611686018427387903", "r4611686018427386880"),
            ("4611686018427387904", "aaa"),
            ("0123", "aaa"),
            ("r1024", "aaa"),
            ("aaa", "aaa"),
        ],
    );
    check("range10", &[("129", "r120"), ("130", "r130")]);
}

#[test]
fn a_name_of_255_octets_has_its_place() {
    let long = "9".repeat(255);
    check("yyy", &[(&long, "999")]);
    check("range1024", &[(&long, "aaa")]);
}

#[test]
fn names_of_algorithms() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
    assert_eq!(Algorithm::YYY.to_string(), "yyy");
    assert_eq!(Algorithm::default().to_string(), "range1024");
    assert_eq!(
        "range16777216".parse(),
        Ok(Algorithm::range(1 << 24).unwrap())
    );
    for bad in [
        "",
        "YYY",
        "yyy ",
        "34-56",
        "range",
        "range0",
        "range1",
        "range01024",
        "range+8",
        "range16777217",
        "range99999999999999999999",
    ] {
        assert_eq!(
            bad.parse::<Algorithm>(),
            Err(AlgorithmError(bad.to_owned())),
            "{bad}"
        );
    }
    assert_eq!(
        "abc".parse::<Algorithm>().unwrap_err().to_string(),
        "\"abc\" is no algorithm; there are yyy, 34/56, 56/34, 456, range1024 and range with any number from 2 to 16777216"
    );
}

/// The bucket that a path of directories is.
fn bucket_at(algorithm: Algorithm, path: &Path) -> Option<Bucket> {
    let mut above = None;
    let mut parts = path.iter().peekable();
    while let Some(part) = parts.next() {
        match algorithm.node(above, part)? {
            Node::Bucket(bucket) => return parts.peek().is_none().then_some(bucket),
            Node::Inner(rank) => above = Some(rank),
        }
    }
    None
}

#[test]
fn only_canonical_names_are_buckets() {
    let is = |algorithm: &str, path: &str| {
        bucket_at(algorithm.parse().unwrap(), Path::new(path)).is_some()
    };
    for (algorithm, path) in [
        ("yyy", "000"),
        ("yyy", "aaa"),
        ("34/56", "34/56"),
        ("34/56", "aaa"),
        ("range1024", "r0"),
        ("range1024", "r1024"),
        ("range10", "r20"),
    ] {
        assert!(is(algorithm, path), "{algorithm} {path}");
    }
    for (algorithm, path) in [
        ("yyy", "00"),
        ("yyy", "0000"),
        ("yyy", "r0"),
        ("yyy", "aab"),
        ("yyy", "34/56"),
        ("34/56", "34"),
        ("34/56", "345"),
        ("34/56", "34/aaa"),
        ("34/56", "34/567"),
        ("range1024", "0"),
        ("range1024", "r1"),
        ("range1024", "r01024"),
        ("range1024", "r"),
        ("range1024", "r4611686018427387904"),
        ("range1024", "r0/r0"),
    ] {
        assert!(!is(algorithm, path), "{algorithm} {path}");
    }
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        (0..Algorithm::ALL.len()).prop_map(|at| Algorithm::ALL[at]),
        (2..=1_u32 << 24).prop_map(|numbers| Algorithm::range(numbers).unwrap()),
    ]
}

/// Names: mostly numbers, some with leading zeros, some of any octets.
fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        (0..2_000_000_u64).prop_map(|number| number.to_string().into_bytes()),
        "[0-9]{1,30}".prop_map(String::into_bytes),
        "[0-9a-c]{1,5}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..=255),
    ]
}

proptest! {
    /// A name's bucket is found again from the bucket's path, and no other bucket has that path.
    #[test]
    fn prop_every_name_has_exactly_one_bucket(algorithm in algorithms(), name in names()) {
        let Ok(name) = Name::parse(OsStr::from_bytes(&name)) else {
            return Ok(());
        };
        let bucket = algorithm.bucket(name);
        let path = algorithm.bucket_path(bucket);
        prop_assert_eq!(bucket_at(algorithm, &path), Some(bucket));
        prop_assert_eq!(algorithm.place(name), path.join(name.as_os_str()));
        prop_assert_eq!(name.digits().is_none() && bucket != Bucket::OTHERS, false);
    }

    /// Directories that are buckets have the path that their bucket has.
    #[test]
    fn prop_a_bucket_has_one_path(algorithm in algorithms(), parts in proptest::collection::vec("(aaa|r?[0-9]{1,6})", 1..3)) {
        let path: PathBuf = parts.iter().collect();
        if let Some(bucket) = bucket_at(algorithm, &path) {
            prop_assert_eq!(algorithm.bucket_path(bucket), path);
        }
    }

    /// Names of algorithms are read back.
    #[test]
    fn prop_algorithms_round_trip(algorithm in algorithms()) {
        prop_assert_eq!(algorithm.to_string().parse::<Algorithm>(), Ok(algorithm));
    }

    /// Different names stay different.
    #[test]
    fn prop_places_are_unique(algorithm in algorithms(), names in proptest::collection::btree_set(names(), 1..50)) {
        let names: Vec<_> = names.iter().filter_map(|name| Name::parse(OsStr::from_bytes(name)).ok()).collect();
        let places: BTreeSet<_> = names.iter().map(|name| algorithm.place(*name)).collect();
        prop_assert_eq!(places.len(), names.len());
    }
}

/// A thousand buckets of a hundred, and ten neighbours in one, as the paper has it; the others' figures beside it.
#[test]
fn how_a_hundred_thousand_articles_spread() {
    let spread = |algorithm: Algorithm| {
        let numbers: Vec<String> = (1_000_000..1_100_000).map(|n| n.to_string()).collect();
        let buckets: Vec<Bucket> = numbers
            .iter()
            .map(|n| algorithm.bucket(Name::parse(OsStr::new(n)).unwrap()))
            .collect();
        let changes = buckets.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let distinct: BTreeSet<_> = buckets.into_iter().collect();
        format!("{algorithm}: {} buckets, {changes} changes", distinct.len())
    };
    expect_test::expect![[r#"
        yyy: 1000 buckets, 9999 changes
        34/56: 10000 buckets, 99999 changes
        56/34: 10000 buckets, 99999 changes
        456: 1000 buckets, 99999 changes
        range1024: 99 buckets, 98 changes
    "#]]
    .assert_eq(&Algorithm::ALL.map(|a| spread(a) + "\n").concat());
}
