//! What the table says of rows and scenes, and of those that are missing.

use super::*;
use crate::expiry::Step;
use crate::measure::machine::DeviceCost;
use crate::storage::{Batch, Statistics, Whole};

fn device(read_octets: u64, operations: u64) -> DeviceCost {
    DeviceCost {
        read_octets,
        written_octets: 0,
        reads: 0,
        writes: operations,
        flushes: 0,
        service_ms: None,
    }
}

fn row(file_system: &str, server: &str, method: &str, per_second: f64, operations: u64) -> Row {
    let batch = Batch {
        articles: 100,
        groups: 10,
        octets: 1000,
        seconds: 1.0,
        per_second,
    };
    Row {
        file_system: file_system.to_owned(),
        server: server.to_owned(),
        method: method.to_owned(),
        batches: vec![batch; 4],
        per_second,
        factor: None,
        statistics: Statistics {
            cpu: None,
            server_cpu_us: 1.0,
            read_calls: 0,
            write_calls: 0,
            calls: None,
            calls_untold: None,
            device: Some(device(40, operations)),
            settling_seconds: 0.0,
        },
        short: None,
        whole: Whole {
            octets: 4000,
            device: None,
            written_ratio: Some(1.5),
        },
        complaints: Vec::new(),
    }
}

/// What nothing came of.
fn failed<T>() -> Scene<T> {
    Err("steady state: no root".to_owned())
}

fn nothing() -> Scenes {
    Scenes {
        steady: failed(),
        large: failed(),
        expiry: failed(),
        removal: failed(),
        cancels: failed(),
        reads: failed(),
        opening: failed(),
    }
}

/// The verdict of each line that begins so.
fn said(lines: &[Line], begin: &str) -> Vec<String> {
    let texts = lines.iter().map(Line::markdown);
    let texts = texts.filter(|text| text.starts_with(&format!("| {begin}")));
    texts
        .map(|text| {
            text.trim_end()
                .split(" | ")
                .skip(1)
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect()
}

#[test]
fn what_was_not_measured_is_said_to_be_so() {
    let lines = goals(&[], &nothing(), 1);
    assert!(lines.len() >= 9, "{lines:?}");
    for line in &lines {
        assert!(line.markdown().ends_with(" | not measured |\n"), "{line:?}");
    }
    assert_eq!(nothing().failures().len(), 7);
}

#[test]
fn cyclic_buffers_are_held_against_files_on_each_file_system() {
    let rows = [
        row("ext4", OWN, REFERENCE, 100.0, 800),
        row("ext4", OWN, CNFS, 300.0, 100),
        row("ext2", OWN, REFERENCE, 100.0, 800),
        row("ext2", OWN, CNFS, 299.0, 101),
    ];
    let lines = goals(&rows, &nothing(), 1);
    let expected = [
        "at least 3x | 3.00x | met |",
        "at least 3x | 2.99x | missed |",
    ];
    assert_eq!(said(&lines, "cnfs: rate"), expected);
    let expected = [
        "at least 8x | 8.00x | met |",
        "at least 8x | 7.92x | missed |",
    ];
    assert_eq!(said(&lines, "cnfs: disk operations"), expected);
    assert_eq!(
        said(&lines, "cnfs: octets read while")[0],
        "at most 1 % | 1.00 % | met |"
    );
}

/// A run with a part of the articles had been judged as a whole one is.
#[test]
fn a_part_of_what_is_asked_is_not_judged() {
    let rows = [
        row("ext4", OWN, REFERENCE, 100.0, 800),
        row("ext4", OWN, CNFS, 300.0, 100),
    ];
    let lines = goals(&rows, &nothing(), 500);
    let expected = ["at least 3x | 3.00x | not judged: 1/500 of the articles |"];
    assert_eq!(said(&lines, "cnfs: rate"), expected);
    let judged = |line: &Line| matches!(line, Line::Bound(_));
    assert!(!lines.iter().any(judged), "{lines:?}");
}

/// Files need not be both faster than INN's and as cheap as the calls alone.
#[test]
fn either_of_two_bounds_will_do() {
    let with = |own: f64, inn: f64, bare: f64| {
        let rows = [
            row("ext4", OWN, TIMEHASH, own, 1),
            row("ext4", INN, TIMEHASH, inn, 1),
            row("ext4", BARE, TIMEHASH, bare, 1),
        ];
        said(&goals(&rows, &nothing(), 1), TIMEHASH).remove(0)
    };
    assert_eq!(with(150.0, 100.0, 300.0), "at least 1.5x | 1.50x | met |");
    assert_eq!(with(130.0, 100.0, 169.0), "at most 1.3x | 1.30x | met |");
    assert_eq!(with(130.0, 100.0, 182.0), "at most 1.3x | 1.40x | missed |");
    let alone = [
        row("ext4", OWN, TIMEHASH, 150.0, 1),
        row("ext4", INN, TIMEHASH, 140.0, 1),
    ];
    let line = goals(&alone, &nothing(), 1);
    assert!(said(&line, TIMEHASH)[0].ends_with("not measured |"));
}

#[test]
fn scenes_are_held_against_what_is_asked() {
    let step = |octets| Step {
        seconds: 1.0,
        articles: Some(device(octets, 1)),
        views: Some(DeviceCost {
            written_octets: 640,
            ..device(0, 1)
        }),
    };
    let expiry = |method: &str, octets| expiry::Row {
        file_system: EXT4.to_owned(),
        method: method.to_owned(),
        expired: 10,
        expiring: step(octets),
        reclaiming: Step {
            articles: Some(DeviceCost {
                written_octets: 4096,
                ..device(0, 1)
            }),
            ..step(0)
        },
    };
    let removal = |program: &str, removal_us| removal::Row {
        file_system: EXT4.to_owned(),
        program: program.to_owned(),
        layout: "flat".to_owned(),
        articles: 2000,
        seconds: 1.0,
        article_us: 90.0,
        removal_us,
        settling_seconds: 0.0,
        operations: None,
    };
    let reads = |asked, calls| Reads {
        method: CNFS,
        size: "of some octets",
        articles: 100,
        asked,
        calls,
    };
    let scenes = Scenes {
        steady: Ok(row("ext4", OWN, CNFS, 1.0, 1)),
        large: Ok(row("ext4", OWN, CNFS, 1.0, 1)),
        expiry: Ok(vec![expiry(CNFS, 0), expiry(SEGMENT, 512)]),
        removal: Ok(vec![removal("fastrm", 90.0), removal(OWN, 30.0)]),
        cancels: Ok(Cancels {
            articles: 100,
            per_second: 49_999.0,
        }),
        reads: Ok(vec![
            reads(1.0, Ok(100)),
            reads(2.0, Ok(201)),
            reads(1.0, Err("strace cannot be run".to_owned())),
        ]),
        opening: Ok(Opening {
            buffers: 20,
            octets: 1 << 40,
            seconds: 0.5,
            memory_octets: 101_000_000,
        }),
    };
    let lines = goals(&[], &scenes, 1);
    let verdict = |begin: &str| -> Vec<String> {
        let texts = said(&lines, begin).into_iter();
        texts
            .map(|text| text.rsplit(" | ").next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(verdict("cnfs: octets written"), ["met |", "missed |"]);
    assert_eq!(verdict("cnfs: octets read and written"), ["met |"]);
    assert_eq!(verdict("segment: octets read and written"), ["missed |"]);
    assert_eq!(
        said(&lines, "cnfs: octets of log and views"),
        [
            "to be told | 64 until it is gone, 64 when the views are reclaimed; 409.6 of headers, bitmap and notes then | |"
        ]
    );
    assert_eq!(verdict("tradspool in range1024"), ["met |"]);
    assert_eq!(verdict("cancels"), ["missed |"]);
    assert_eq!(
        verdict("cnfs: calls that read"),
        ["met |", "missed |", "not measured |"]
    );
    assert_eq!(verdict("20 buffers"), ["met |", "missed |"]);
    assert_eq!(scenes.failures(), Vec::<&str>::new());
}
