//! The rules of the paper, of groups and sizes, and of fields.

use proptest::prelude::*;

use super::*;
use crate::config::{RuleConfig, RuleContent, SetConfig};

fn rules(list: &[(&str, GroupMatch, Option<u64>, Option<u32>)]) -> Rules {
    let mut config = StoreConfig::two_buffers(1 << 20);
    config.rules.clear();
    config.sets.clear();
    for (at, (groups, matching, larger_than, groups_min)) in list.iter().enumerate() {
        let name = format!("s{at}");
        config.sets.push(SetConfig {
            name: name.clone(),
            buffers: vec!["C0".to_owned()],
            ..SetConfig::default()
        });
        config.rules.push(RuleConfig {
            groups: (*groups).to_owned(),
            matching: *matching,
            larger_than: *larger_than,
            groups_min: *groups_min,
            set: name,
            ..RuleConfig::default()
        });
    }
    Rules::new(&config).unwrap()
}

/// An article with these header fields and this body.
fn article(fields: &str, body: &str) -> Vec<u8> {
    let wire = format!("Subject: x\n{fields}\n{body}.\n");
    wire.replace('\n', "\r\n").into_bytes()
}

/// An article in these groups.
fn in_groups(newsgroups: &str) -> Vec<u8> {
    match newsgroups {
        "" => article("", ""),
        _ => article(&format!("Newsgroups: {newsgroups}\n"), ""),
    }
}

fn asked<T>(article: &[u8], octets: u64, ask: impl FnOnce(&RuleSubject<'_>) -> T) -> T {
    ask(&RuleSubject {
        headers: &Headers::scan(article).unwrap(),
        octets,
        arrival: UnixTime(1_767_225_600),
    })
}

fn choose(rules: &Rules, newsgroups: &str, octets: u64) -> Option<usize> {
    let chosen = asked(&in_groups(newsgroups), octets, |subject| {
        rules.choose(subject)
    });
    chosen.map(|chosen| chosen.rule)
}

#[test]
fn the_rules_of_the_paper() {
    use GroupMatch::First;
    let rules = rules(&[
        ("*warez*", First, None, None),
        ("*binaries*", First, None, None),
        ("*", First, Some(100_000), None),
        ("*", First, None, Some(10)),
        ("*", First, None, None),
    ]);
    assert_eq!(choose(&rules, "alt.binaries.x,misc.test", 5), Some(1));
    assert_eq!(
        choose(&rules, "misc.test,alt.binaries.x", 5),
        Some(4),
        "first group only"
    );
    assert_eq!(
        choose(&rules, "misc.test", 100_000),
        Some(4),
        "strictly more"
    );
    assert_eq!(choose(&rules, "misc.test", 100_001), Some(2));
    let ten = (0..10)
        .map(|n| format!("a.g{n}"))
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(choose(&rules, &ten, 5), Some(3), "ten or more");
    let nine = (0..9)
        .map(|n| format!("a.g{n}"))
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(choose(&rules, &nine, 5), Some(4));
}

/// A group counted as often as an article names it.
#[test]
fn a_crosspost_is_to_so_many_groups_as_differ() {
    let rules = rules(&[("*", GroupMatch::First, None, Some(3))]);
    assert_eq!(choose(&rules, "a.b,a.b,a.b", 5), None);
    assert_eq!(choose(&rules, "a.b,a.b,a.c,a.d", 5), Some(0));
    let said = explain(&rules, "a.b,a.c,a.b", 5);
    assert!(said[0].contains("2 groups, it wants 3 or more"), "{said:?}");
}

/// A range of sizes: more than one limit, and at most the other.
#[test]
fn a_rule_takes_sizes_up_to_its_limit() {
    let mut config = StoreConfig::two_buffers(1 << 20);
    config.rules.truncate(1);
    config.rules[0].larger_than = Some(100);
    config.rules[0].octets_max = Some(2000);
    let rules = Rules::new(&config).unwrap();
    for (octets, takes) in [(100, false), (101, true), (2000, true), (2001, false)] {
        let chosen = choose(&rules, "misc.test", octets);
        assert_eq!(chosen.is_some(), takes, "{octets}");
    }
    let said = explain(&rules, "misc.test", 2001);
    assert!(
        said[0].contains("2001 octets") && said[0].contains("2000"),
        "{said:?}"
    );
}

/// What the rules say, as lines.
fn explain(rules: &Rules, newsgroups: &str, octets: u64) -> Vec<String> {
    notes(&asked(&in_groups(newsgroups), octets, |subject| {
        rules.explain(subject)
    }))
}

fn notes(notes: &[RuleNote]) -> Vec<String> {
    let notes = notes.iter();
    let sign = |taken| if taken { '+' } else { '-' };
    notes
        .map(|note| {
            format!(
                "{} {}{} {}",
                note.rule,
                sign(note.taken),
                note.set,
                note.why
            )
        })
        .collect()
}

#[test]
fn explain_says_what_each_rule_said() {
    use GroupMatch::{All, Any, First};
    let rules = rules(&[
        ("*", First, Some(100), None),
        ("*", First, None, Some(3)),
        ("comp.*,@*.poison", First, None, None),
        ("news.*", All, None, None),
        ("rec.*", Any, None, None),
        ("*", First, None, None),
    ]);
    assert_eq!(
        explain(&rules, "misc.a,alt.b", 7),
        [
            "0 -s0 7 octets are not more than 100",
            "1 -s1 2 groups, it wants 3 or more",
            "2 -s2 misc.a, the first group, does not match \"comp.*,@*.poison\"",
            "3 -s3 misc.a does not match \"news.*\"",
            "4 -s4 no group matches \"rec.*\"",
            "5 +s5 it takes everything",
        ]
    );
    let last = |newsgroups: &str| explain(&rules, newsgroups, 7).pop().unwrap();
    assert_eq!(
        last("comp.a,misc.b"),
        "2 +s2 comp.a matches \"comp.*,@*.poison\""
    );
    assert_eq!(last("news.a,news.b"), "3 +s3 all 2 groups match \"news.*\"");
    assert_eq!(last("misc.a,rec.b"), "4 +s4 rec.b matches \"rec.*\"");
    let poisoned = explain(&rules, "comp.a,misc.poison", 7);
    assert_eq!(
        poisoned[2],
        "2 -s2 misc.poison is poison to \"comp.*,@*.poison\""
    );
}

#[test]
fn no_group_meets_no_rule_but_one_for_everything() {
    let some = rules(&[
        ("*", GroupMatch::All, None, None),
        ("a.*", GroupMatch::All, None, None),
    ]);
    assert_eq!(choose(&some, "", 1), Some(0));
    let some = rules(&[("a.*", GroupMatch::All, None, None)]);
    assert_eq!(explain(&some, "", 1), ["0 -s0 the article names no group"]);
}

#[test]
fn a_size_limit_of_zero_is_a_limit() {
    let some = rules(&[("*", GroupMatch::First, Some(0), None)]);
    assert_eq!(
        (choose(&some, "a.b", 0), choose(&some, "a.b", 1)),
        (None, Some(0))
    );
}

proptest! {
    #[test]
    fn prop_explain_agrees_with_choose(
        list in proptest::collection::vec(
            ("(!|@)?[ab*]\\.?[ab*]{1,3}(,[!@]?[ab]{1,2}\\*?)?", 0u8..3, proptest::option::of(0u64..9), proptest::option::of(0u32..4)),
            1..6,
        ),
        newsgroups in "([ab]{1,2}(\\.[ab]{1,2})?,){0,3}[ab]",
        octets in 0u64..9,
    ) {
        let matching = |n| [GroupMatch::First, GroupMatch::Any, GroupMatch::All][usize::from(n)];
        let list: Vec<_> = list.iter().map(|(g, m, l, n)| (g.as_str(), matching(*m), *l, *n)).collect();
        let rules = rules(&list);
        let article = in_groups(&newsgroups);
        let notes = asked(&article, octets, |subject| rules.explain(subject));
        let taken = notes.last().filter(|note| note.taken).map(|note| note.rule);
        prop_assert_eq!(choose(&rules, &newsgroups, octets), taken);
        let refused = &notes[..notes.len() - usize::from(taken.is_some())];
        prop_assert!(refused.iter().all(|note| !note.taken));
    }
}

#[test]
fn any_and_all_and_poison() {
    let rules = rules(&[
        ("comp.*,@alt.*", GroupMatch::Any, None, None),
        ("news.*", GroupMatch::All, None, None),
    ]);
    assert_eq!(choose(&rules, "misc.a,comp.b", 5), Some(0));
    assert_eq!(choose(&rules, "comp.b,alt.c", 5), None);
    assert_eq!(choose(&rules, "news.a,news.b", 5), Some(1));
    assert_eq!(choose(&rules, "news.a,misc.b", 5), None);
}

#[test]
fn fields_and_content_decide_too() {
    let mut config = StoreConfig::two_buffers(1 << 20);
    let rule = |change: &dyn Fn(&mut RuleConfig)| {
        let mut rule = RuleConfig::default();
        change(&mut rule);
        rule
    };
    config.rules = vec![
        rule(&|rule| rule.from = Some("*@robots.example*".to_owned())),
        rule(&|rule| rule.path = Some("*!far.example!*".to_owned())),
        rule(&|rule| rule.header = Some("x-archive".to_owned())),
        rule(&|rule| (rule.expires_s_min, rule.expires_s_max) = (Some(3600), Some(86_400))),
        rule(&|rule| rule.content = Some(RuleContent::YEnc)),
        rule(&|rule| rule.content = Some(RuleContent::Binary)),
        rule(&|rule| rule.content = Some(RuleContent::Text)),
    ];
    let rules = Rules::new(&config).unwrap();
    let usual = "Newsgroups: a.b\nFrom: a@b.example\nPath: near!x\n";
    let at = |fields: &str, body: &str| {
        let article = article(&format!("{fields}Newsgroups: a.b\n"), body);
        asked(&article, 5, |subject| rules.choose(subject)).map(|chosen| chosen.rule)
    };
    assert_eq!(at("From: Bot\n <x@robots.example>\n", ""), Some(0));
    assert_eq!(at("Path: near!far.example!x\n", ""), Some(1));
    assert_eq!(at("X-Archive: yes\n", ""), Some(2));
    let expires = |date: &str| at(&format!("Expires: {date}\n"), "");
    assert_eq!(expires("Thu, 01 Jan 2026 01:00:00 +0000"), Some(3));
    assert_eq!(expires("Fri, 02 Jan 2026 00:00:00 +0000"), Some(3));
    assert_eq!(expires("Fri, 02 Jan 2026 00:00:01 +0000"), Some(6));
    assert_eq!(expires("Thu, 01 Jan 2026 00:59:59 +0000"), Some(6));
    assert_eq!(
        at("", "=ybegin line=128 size=1 name=x\nk\n=yend\n"),
        Some(4)
    );
    assert_eq!(at("", "begin 644 x\n#0A)2\n`\nend\n"), Some(5));
    let said = asked(&article(usual, ""), 5, |subject| rules.explain(subject));
    assert_eq!(
        notes(&said),
        [
            "0 -main From does not match \"*@robots.example*\"",
            "1 -main Path does not match \"*!far.example!*\"",
            "2 -main it has no field x-archive",
            "3 -main it has no Expires that can be read",
            "4 -main it is text",
            "5 -main it is text",
            "6 +main a.b matches \"*\", it is text",
        ]
    );
    let held = |at: usize, fields: &str, body: &str| {
        let article = article(&format!("{fields}Newsgroups: a.b\n"), body);
        let said = asked(&article, 5, |subject| rules.explain(subject));
        notes(&said[at..]).concat()
    };
    let from = "From: Bot <x@robots.example>\n";
    let taken = held(0, from, "");
    assert_eq!(
        taken,
        "0 +main a.b matches \"*\", From matches \"*@robots.example*\""
    );
    let taken = held(3, "Expires: Fri, 02 Jan 2026 00:00:00 +0000\n", "");
    assert!(
        taken.ends_with("it expires 3600 to 86400 seconds after it came"),
        "{taken}"
    );
}
