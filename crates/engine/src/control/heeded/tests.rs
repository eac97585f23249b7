//! Tests of what was heeded.

use super::*;
use crate::control::groups;

/// A list with these arguments, of that hour, in which there are groups of de and fr.
fn list(arguments: &str, at: u64, date: u64) -> HeededRecord {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let named = groups::named(&words).unwrap();
    let scope = Scope::new(named, ["de.x", "fr.x"].into_iter());
    HeededRecord {
        at: Sequence(at),
        date: UnixTime(date),
        holder: Holder::of_approval(),
        said: Said::List(List {
            serial: groups::serial_number(&words).unwrap(),
            scope,
            sender: "a@b.example".to_owned(),
            signer: None,
            is_approved: true,
            says: None,
        }),
    }
}

/// One group, of that hour.
fn group(name: String, at: u64, date: u64, holder: Holder) -> HeededRecord {
    HeededRecord {
        at: Sequence(at),
        date: UnixTime(date),
        holder,
        said: Said::OfGroup(name),
    }
}

/// That list by who may speak of these groups only.
fn of(mut record: HeededRecord, groups: &str) -> HeededRecord {
    if let Said::List(list) = &mut record.said {
        list.is_approved = false;
        list.says = Says::parse(&[(groups.to_owned(), true)]);
        list.sender = groups.to_owned();
    }
    record.holder = Holder::of_rule(groups);
    record
}

#[test]
fn which_list_is_older() {
    // What is asked of a group by a list of hour 5, behind one that was heeded and is of hour 4, 5, and 6.
    for (own, group, other, is_late) in [
        ("de #1", "de.x", "de #2", [true; 3]),
        ("de #2", "de.x", "de #2", [false; 3]),
        ("de #10", "de.x", "de #9", [false; 3]),
        ("de", "de.x", "de #2", [true; 3]),
        // Where there is no number to go by the Date decides.
        ("de #2", "de.x", "de", [false, false, true]),
        ("de", "de.x", "de", [false, false, true]),
        ("de #1", "de.sub.x", "de.sub #2", [false, false, true]),
        ("de #1", "de.x", "de.sub #2", [false; 3]),
        ("de #1", "de.x", "fr #2", [false; 3]),
        ("de fr #1", "fr.x", "fr #2", [true; 3]),
        ("de fr #1", "de.x", "fr #2", [false; 3]),
        ("#1", "fr.x", "fr #2", [true; 3]),
        // What the other one leaves out it says nothing of.
        ("de #1", "de.sub.x", "de !de.sub #2", [false; 3]),
        (
            "de #1",
            "de.sub.x",
            "de !de.sub de.sub.x #2",
            [false, false, true],
        ),
        (
            "de !de.sub #1",
            "de.sub.x",
            "de.sub #2",
            [false, false, true],
        ),
    ] {
        let date_of = |date| {
            let mut table = Table::default();
            table.note(list(other, 1, date));
            table.is_late(&list(own, 2, 5), group)
        };
        assert_eq!([4, 5, 6].map(date_of), is_late, "{own}, {group}, {other}");
    }
}

/// The largest number, the latest Date and the last arrival were remembered, each of another message: one that was approved though it is
/// older hid a newer one that waits, and came in between.
#[test]
fn an_older_one_that_was_approved_hides_no_newer_one() {
    let holder = Holder(0);
    let of_group = |at, date| group("de.x".to_owned(), at, date, holder);
    let of_list = |at: u64, date, serial: u64| list(&format!("de #{serial}"), at, date);
    for [newest, older, waits] in [
        [of_group(1, 9), of_group(3, 3), of_group(2, 5)],
        [of_list(1, 9, 9), of_list(3, 3, 3), of_list(2, 5, 5)],
        [of_list(1, 3, 9), of_list(3, 9, 3), of_list(2, 5, 5)],
    ] {
        let mut table = Table::default();
        table.note(newest.clone());
        table.note(older.clone());
        assert!(!table.is_settled(&waits, "de.x", false), "{waits:?}");
        assert_eq!(table.all(), std::slice::from_ref(&newest));
        assert!(table.is_late(&waits, "de.x"));
        // In whichever order they were approved.
        let mut table = Table::default();
        table.note(older);
        table.note(newest.clone());
        assert_eq!(table.all(), [newest]);
    }
}

#[test]
fn which_list_is_settled_as_a_whole() {
    let waits = list("de #6", 5, 5);
    for (heeded, is_settled) in [
        (list("de #7", 9, 4), true),
        (list("de #5", 9, 9), false),
        (list("de #7", 4, 9), false),
        (list("#7", 9, 5), true),
        (list("de !de.sub #7", 9, 5), false),
        (list("de de.sub #7", 9, 5), false),
        (list("fr #7", 9, 5), false),
        (of(list("de #7", 9, 5), "de.*"), true),
        (of(list("de #7", 9, 5), "de.sub.*"), false),
    ] {
        let mut table = Table::default();
        table.note(heeded.clone());
        assert_eq!(table.is_settled_below(&waits), is_settled, "{heeded:?}");
        if is_settled {
            assert!(table.is_settled(&waits, "de.some.x", true), "{heeded:?}");
        }
    }
}

#[test]
fn which_list_says_nothing_new() {
    for (own, heeded, is_superseded) in [
        ("de #1", "de #2", true),
        ("de #2", "de #2", false),
        ("de", "de #2", true),
        ("de #1", "#2", true),
        ("#1", "de #2", false),
        ("de fr #1", "de #2", false),
        ("de #1", "de !de.sub #2", false),
        ("de !de.sub #1", "de !de.sub #2", true),
        ("de !de.sub #1", "de #2", true),
        ("de.sub #1", "de #2", false),
    ] {
        let mut table = Table::default();
        table.note(list(heeded, 1, 5));
        let is_it = table.is_superseded(&list(own, 2, 5));
        assert_eq!(is_it, is_superseded, "{own}, {heeded}");
    }
    // Who may speak of a part only supersedes nobody who may speak of more.
    let mut table = Table::default();
    table.note(of(list("de #2", 1, 5), "de.sub.*"));
    assert!(!table.is_superseded(&of(list("de #1", 2, 5), "de.*")));
    assert!(table.is_superseded(&of(list("de #1", 2, 5), "de.sub.*")));
}

/// A list that came behind a newer one that waits, and was done though it is older, hid that from who should approve it.
#[test]
fn what_is_older_settles_nothing() {
    let waits = list("de #6", 5, 5);
    for (heeded, is_settled) in [
        (list("de #5", 6, 9), false),
        (list("de", 7, 9), false),
        (list("de.sub #9", 8, 4), false),
        (list("de #7", 4, 9), false),
        (list("de #7", 9, 4), true),
    ] {
        let mut table = Table::default();
        table.note(heeded.clone());
        assert_eq!(
            table.is_settled(&waits, "de.sub.x", true),
            is_settled,
            "{heeded:?}"
        );
    }
    // Of a group by its own messages, too.
    let waits = group("de.x".to_owned(), 5, 5, Holder(0));
    for (at, date, is_settled) in [(6, 4, false), (4, 9, false), (7, 5, true)] {
        let mut table = Table::default();
        table.note(group("de.x".to_owned(), at, date, Holder(0)));
        assert_eq!(
            table.is_settled(&waits, "de.x", true),
            is_settled,
            "{at} {date}"
        );
    }
    // Itself, unless it was held back there.
    let mut table = Table::default();
    let own = of(list("de #6", 5, 5), "de.*");
    table.note(own.clone());
    assert!(table.is_settled(&own, "de.x", false) && !table.is_settled(&own, "de.x", true));
}

/// What a list keeps back was asked of the rules in force: after other rules it kept back nothing, or more.
#[test]
fn a_list_speaks_of_what_it_was_done_of() {
    let mut table = Table::default();
    table.note(of(list("de #9", 1, 9), "de.sub.*"));
    assert!(table.is_late(&list("de #8", 2, 9), "de.sub.x"));
    assert!(!table.is_late(&list("de #8", 2, 9), "de.x"));
    // A log of before does not say: then the rules at the start do.
    let mut record = of(list("fr #9", 1, 9), "fr.*");
    if let Said::List(list) = &mut record.said {
        list.says = None;
    }
    table.note(record);
    assert!(!table.is_late(&list("fr #8", 2, 9), "fr.x"));
    table.complete(&Rules::parse(&["all:*:fr.*:doit".to_owned()]).unwrap());
    assert!(table.is_late(&list("fr #8", 2, 9), "fr.x"));
    assert!(
        !table.is_late(&list("de #8", 2, 9), "de.x"),
        "that one says"
    );
}

#[test]
fn a_hierarchy_is_forgotten_with_what_is_in_it() {
    let mut table = Table::default();
    for name in ["de", "de.x", "de.x.y", "dex", "de.y"] {
        table.note(group(name.to_owned(), 1, 9, Holder(0)));
    }
    for arguments in ["de #9", "de.x #9", "de.x.y fr #9", "fr #9"] {
        table.note(list(arguments, 1, 9));
    }
    table.forget("de.x");
    let names: Vec<&String> = table.order.values().collect();
    assert_eq!(names, ["de", "dex", "de.y"]);
    // What a list says of another hierarchy stays, where it stood.
    let left: Vec<_> = table.lists.values().collect();
    let of_fr = list("!de.x.y fr #9", 1, 9);
    assert_eq!(left, [&list("de #9", 1, 9), &of_fr, &list("fr #9", 1, 9)]);
    assert!(table.is_late(&list("fr #8", 2, 9), "fr.x"));
    let octets: usize = table.all().iter().map(HeededRecord::octets).sum();
    assert_eq!(octets, table.octets());
    assert_eq!(table.meant.len(), 2);
    table.forget("de");
    table.forget("fr");
    assert_eq!(table.all(), [group("dex".to_owned(), 1, 9, Holder(0))]);
}

#[test]
fn it_is_bounded_and_what_was_heeded_first_goes() {
    let mut table = Table::default();
    for n in 0..5000 {
        table.note(group(format!("alt.n{n}"), n, n, Holder(0)));
        table.note(list(&format!("de.n{n} #1"), n, n));
        table.note(list(&format!("de.m{} #{n}", n % 3), n, n));
        table.tidy(20_000);
    }
    assert!(table.octets() < 40_000 && table.of_groups.octets() > 19_000);
    let octets = |all: &[HeededRecord]| all.iter().map(HeededRecord::octets).sum::<usize>();
    let all = table.all();
    assert_eq!(octets(&all), table.octets());
    // Of one sender no more than so many, and of one list the newest.
    assert_eq!(table.lists.len(), HEEDED_LISTS_OF_ONE_MAX);
    let meant: usize = table.meant.values().map(SmallVec::len).sum();
    assert_eq!(
        meant, HEEDED_LISTS_OF_ONE_MAX,
        "what is forgotten is looked for nowhere"
    );
    let settled = |came: u64, name: &str| {
        let waits = group(name.to_owned(), came, 0, Holder(0));
        table.is_settled(&waits, name, false)
    };
    assert!(settled(4999, "alt.n4999") && !settled(5000, "alt.n4999"));
    assert!(!settled(0, "alt.n0"));
    assert!(table.is_late(&list("de.m1 #4998", 1, 9999), "de.m1.x"));
    let mut again = Table::default();
    all.into_iter().for_each(|record| again.note(record));
    assert_eq!(again.all(), table.all());
}

/// 900 rmgroups by who holds one hierarchy had the order of all others forgotten, where the segments of the log are small.
#[test]
fn nobodys_flood_has_what_others_said_forgotten() {
    let mut table = Table::default();
    let (mine, mole) = (Holder::of_rule("de.*"), Holder::of_key("AB12"));
    for n in 0..50 {
        table.note(group(format!("de.n{n}"), n, 9, mine));
    }
    table.note(of(list("de #7", 50, 50), "de.*"));
    for n in 100..20_000 {
        table.note(group(format!("alt.n{n}"), n, 9, mole));
        // Nor by long lists of many senders whom one rule believes.
        let scope: Vec<String> = (0..20).map(|at| format!("alt.m{n}x{at}")).collect();
        let mut long = of(list(&scope.join(" "), n, 9), "alt.*");
        if let Said::List(list) = &mut long.said {
            list.sender = format!("{n}@a.example");
        }
        table.note(long);
        table.tidy(16_000);
    }
    let late = |name: &str| table.is_late(&group(name.to_owned(), 1, 8, mine), name);
    assert!((0..50).all(|n| late(&format!("de.n{n}"))));
    assert!(late("alt.n19999") && !late("alt.n100"));
    assert!(table.is_late(&list("de #6", 1, 99), "de.x"));
    // Who takes a group over takes its room over.
    for n in 0..50 {
        table.note(group(format!("de.n{n}"), 30_000, 9, mole));
    }
    let octets: usize = table.all().iter().map(HeededRecord::octets).sum();
    assert_eq!(octets, table.octets());
}
