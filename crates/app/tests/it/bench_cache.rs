//! `newsreel bench cache`, small: everything is counted and nothing timed is judged.

use std::path::Path;

use newsreel_host::{RealDisk, read_whole};
use newsreel_testkit::free_ports;
use serde_json::Value;

use crate::spool::{newsreel, said};

/// Each operation is done at the origin, at the cache for the first time and again; what is read again does not go over the link.
#[test]
fn a_reader_is_timed_at_the_origin_and_at_a_cache() {
    let dir = tempfile::tempdir().unwrap();
    let (work, report) = (dir.path().join("work"), dir.path().join("report"));
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args(["bench", "cache", "--json", "--small", "--port", &port]);
    command.args(["--rival-seconds", "0"]);
    command.arg("--directory").arg(&work);
    command.arg("--report").arg(&report);
    let told = said(command.output().unwrap()).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let figures = told["figures"].as_array().unwrap();
    let count = |link: &str, asked: &str| {
        let these = figures
            .iter()
            .filter(|it| it["link"] == link && it["asked"] == asked);
        these.count()
    };
    assert_eq!(
        [
            count("none", "origin"),
            count("none", "miss"),
            count("none", "hit")
        ],
        [6, 4, 6]
    );
    assert_eq!(
        [
            count("20ms", "origin"),
            count("20ms", "miss"),
            count("20ms", "hit")
        ],
        [4, 4, 6]
    );
    for figure in figures {
        let trips = figure["round_trips"].as_u64().unwrap();
        match figure["asked"].as_str().unwrap() {
            "hit" => assert_eq!(trips, 0, "{figure}"),
            "miss" if figure["operation"] == "articles" => {
                assert!((1..=20).contains(&trips), "{figure}")
            }
            _ => assert!(trips > 0, "{figure}"),
        }
        assert!(figure["ms"].as_f64().unwrap() > 0.0, "{figure}");
    }
    let facts = &told["facts"][0];
    // Three operations and the processor time, apart and together.
    let rows = |what: &str| facts[what].as_array().unwrap().len();
    assert_eq!((rows("floors"), rows("costs")), (6, 2), "{facts}");
    assert_eq!(facts["prefetched"], 200, "{facts}");
    assert!(facts["overview_made_ms"].as_f64().unwrap() > 0.0, "{facts}");
    // Of 400 groups a hundred have changed: their lines, and no others.
    let refresh = facts["refresh_octets"].as_u64().unwrap();
    assert!((1000..=6000).contains(&refresh), "{facts}");
    // Readers at two caches: what others have read is there, and is asked for again where that is wanted.
    let databases = told["databases"].as_array().unwrap();
    let of = |what: &str, asks_again: bool, key: &str| {
        let mut rows = databases.iter();
        let row = rows.find(|row| row["what"] == what && row["asks_again"] == asks_again);
        row.unwrap()[key].as_u64().unwrap()
    };
    assert_eq!(databases.len(), 8, "{told}");
    for asks_again in [true, false] {
        let (articles, hits) = (
            of("articles", asks_again, "answers"),
            of("articles", asks_again, "hits"),
        );
        assert!(articles > 100 && (1..articles).contains(&hits), "{told}");
    }
    assert_eq!(of("groups", true, "hits"), 0, "{told}");
    assert!(of("groups", false, "hits") > 0, "{told}");
    let left_out = told["leaves"].as_array().unwrap().iter();
    let left_out = left_out.filter(|it| it["why_not"] == "left out (--rival-seconds 0)");
    assert_eq!(left_out.count(), 2, "{told}");
    let page = read_whole(&RealDisk, &report.join("tables.md"), 1 << 20).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(
        page.contains("## newsreel, a round trip of 20 ms"),
        "{page}"
    );
    assert!(page.contains("this run was smaller"), "{page}");
    for picture in ["link-none.svg", "link-20ms.svg"] {
        assert!(
            read_whole(&RealDisk, &report.join(picture), 1 << 20)
                .unwrap()
                .starts_with(b"<svg")
        );
    }
}

/// Both fetch what the origin has, and all that is read from the cache is read from them; who is not installed is told.
#[test]
fn leafnode_and_sn_are_read_beside_it() {
    let servers = [
        ("leafnode", "/usr/sbin/leafnode"),
        ("sn", "/usr/sbin/snntpd.bin"),
    ];
    let is_installed = |path: &str| Path::new(path).exists();
    let is_any = servers.iter().any(|(_, path)| is_installed(path));
    if newsreel_host::process::own_uid() != 0 || !is_any {
        println!("skipped: neither leafnode nor sn is installed, or we are not root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args(["bench", "cache", "--json", "--links", "none"]);
    command.args(["--groups", "360", "--articles", "20", "--port", &port]);
    command.arg("--directory").arg(dir.path().join("work"));
    let told = said(command.output().unwrap()).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    for (found, (name, path)) in told["leaves"].as_array().unwrap().iter().zip(servers) {
        assert_eq!(found["name"], name);
        if !is_installed(path) {
            let why = found["why_not"].as_str().unwrap();
            assert!(why.starts_with("not installed"), "{found}");
            continue;
        }
        assert!(found["why_not"].is_null(), "{found}");
        assert_eq!(found["articles"], 100, "{found}");
        let hits = found["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 6, "{found}");
        for hit in hits {
            assert!(hit["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{hit}");
        }
    }
}
