//! The benchmark of sending, small: that everything arrives and is counted, not how fast it is.

use newsreel_host::process::own_uid;
use newsreel_host::{RealDisk, read_whole};
use newsreel_testkit::free_ports;
use serde_json::Value;

use crate::spool::{newsreel, said};

#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// Each neighbour gets every article, whether it comes or waits, from memory and from a cold disk, and what is asked stands beside it.
#[test]
fn every_neighbour_gets_every_article() {
    if own_uid() != 0 {
        return skipped("only root can empty the caches of the machine");
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, report) = (dir.path().join("work"), dir.path().join("sending.md"));
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args([
        "bench", "sending", "--json", "--port", &port, "--rounds", "1",
    ]);
    command.args([
        "--articles",
        "400",
        "--fresh",
        "100",
        "--peers",
        "1,3",
        "--connections",
        "2",
    ]);
    let told = said(
        command
            .arg("--directory")
            .arg(&work)
            .arg("--report")
            .arg(&report)
            .output()
            .unwrap(),
    );
    let told: Value = serde_json::from_str(&told.unwrap()).unwrap();
    let rows = told["rows"].as_array().unwrap();
    let seen = rows.iter().map(|row| {
        let scene = row["scene"].as_str().unwrap();
        (
            scene,
            row["peers"].as_u64().unwrap(),
            row["sent"].as_u64().unwrap(),
        )
    });
    let asked = [
        ("peers", 1, 100),
        ("peers", 3, 300),
        ("own", 1, 400),
        ("own", 1, 400),
        ("cold", 1, 400),
        ("cold", 1, 400),
        ("files", 1, 400),
        ("files", 1, 400),
        ("cursor", 0, 400),
        ("cursor", 1, 400),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), asked, "{told}");
    // All but the client that sends by itself tell what it cost them.
    let costs = rows.iter().filter(|row| row["cpu_us"].is_number());
    assert_eq!(costs.count(), 9, "{told}");
    assert_eq!(told["goals"].as_array().unwrap().len(), 4, "{told}");
    let table = read_whole(&RealDisk, &report, 1 << 20).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert!(
        table.contains("articles/s to newsreel on 2 connections | at least 60000"),
        "{table}"
    );
}
