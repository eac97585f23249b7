//! `newsreel bench cache`, small: everything is counted and nothing timed is judged.

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
