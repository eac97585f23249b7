//! The figures of the paper, little of them: every layout natively and mounted, drawn, and nothing left behind.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Place, names, skipped};
use crate::spool::{newsreel, said};

const FIGURES: [&str; 5] = ["3-random", "3-sequential", "4", "5", "6"];

/// What this measurement says; none: no file system can be made and mounted here.
fn measured(work: &Path, report: &Path, words: &str) -> Option<String> {
    let mut command = newsreel();
    command.args(["bench", "usenetfs"]).args(words.split(' '));
    command.arg("--directory").arg(work);
    command.arg("--report").arg(report);
    match said(command.output().unwrap()) {
        Ok(rows) => Some(rows),
        Err(why) if why.contains("mke2fs") || why.contains("mount:") => {
            skipped(&format!("no file system can be made and mounted: {why}"));
            None
        }
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn small_figures_are_measured_and_drawn() {
    let Some(place) = Place::new() else {
        return;
    };
    let (work, report) = (place.lower("work"), place.lower("report"));
    let words = "figures --json --file-systems ext2,ext4 --exponent-max 6 --step 3 --rounds 2 --articles 20";
    let Some(rows) = measured(&work, &report, words) else {
        return;
    };
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    // Two file systems, six layouts, three sizes, natively and mounted.
    assert_eq!(rows.len(), 2 * 6 * 3 * 2);
    for row in &rows {
        for what in [
            "random_us",
            "known_us",
            "sequential_us",
            "add_us",
            "remove_us",
            "list_us",
        ] {
            let took = row[what].as_f64().unwrap();
            assert!(took > 0.0 && took < 1e8, "{what}: {row}");
        }
        // What the kernel knows it asks nobody for.
        let asked = row["known_requests"].as_u64();
        assert_eq!(asked, (row["mounted"] == true).then_some(0), "{row}");
        // The largest directory is emptied in the end.
        let emptied = row["emptied_list_us"].as_f64();
        assert_eq!(emptied.is_some_and(|took| took > 0.0), row["files"] == 64);
    }
    let of = |name: &str, value: Value| rows.iter().filter(|row| row[name] == value).count();
    assert_eq!(of("mounted", true.into()), rows.len() / 2);
    assert_eq!(of("layout", "34/56".into()), rows.len() / 6);
    assert_eq!(of("files", 64.into()), rows.len() / 3);

    for figure in FIGURES {
        for file_system in ["ext2", "ext4"] {
            let path = report.join(format!("{file_system}-{figure}.svg"));
            let picture = fs::read_to_string(path).unwrap();
            let curves = picture.matches(", mounted").count() + picture.matches(", native").count();
            assert!(
                picture.starts_with("<svg") && curves == 12,
                "{figure}: {curves} curves"
            );
        }
    }
    let page = fs::read_to_string(report.join("figures.md")).unwrap();
    assert_eq!(page.matches("| 64 |").count(), 2 * 6 * 2, "{page}");
    assert_eq!(
        page.matches("mounted, ext4, 64 files |").count(),
        2 * 5,
        "{page}"
    );
    // Neither images nor mount points stay.
    assert!(names(&work).is_empty(), "{:?}", names(&work));
    let again = newsreel()
        .args(["bench", "usenetfs", "figures", "--directory"])
        .arg(&report)
        .output();
    let refused = said(again.unwrap()).unwrap_err();
    assert!(refused.contains("not empty"), "{refused}");
}

#[test]
fn figures_of_chosen_layouts_with_nothing_in_memory() {
    let Some(place) = Place::new() else {
        return;
    };
    let (work, report) = (place.lower("work"), place.lower("report"));
    let words = "figures --cold --file-systems ext4 --layouts range64 --exponent-max 0 --rounds 1 --articles 5";
    let Some(rows) = measured(&work, &report, words) else {
        return;
    };
    let ways: Vec<Vec<&str>> = rows
        .lines()
        .take_while(|row| !row.is_empty())
        .map(|row| row.split_whitespace().skip(1).take(4).collect())
        .collect();
    let expected = [
        ["1", "range64", "native", "blocks"],
        ["1", "range64", "mounted", "blocks"],
        ["1", "range64", "native", "nothing"],
        ["1", "range64", "mounted", "nothing"],
    ];
    assert_eq!(ways, expected, "{rows}");
    for figure in FIGURES {
        let path = report.join(format!("ext4-{figure}-cold.svg"));
        let picture = fs::read_to_string(path).unwrap();
        assert_eq!(picture.matches("range64, ").count(), 2, "{figure}");
        assert!(picture.contains("nothing in memory"), "{figure}");
    }
    let page = fs::read_to_string(report.join("figures.md")).unwrap();
    assert_eq!(page.matches("| nothing |").count(), 2, "{page}");
    assert!(names(&work).is_empty(), "{:?}", names(&work));
}

#[test]
fn a_conversion_is_measured_killed_and_resumed() {
    let Some(place) = Place::new() else {
        return;
    };
    let (work, report) = (place.lower("work"), place.lower("table.md"));
    let words = "convert --json --files 700 --rounds 1 --kills 2";
    let Some(found) = measured(&work, &report, words) else {
        return;
    };
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        (&found["files"], &found["algorithm"]),
        (&700.into(), &"range1024".into())
    );
    for by in ["converted", "renamed"] {
        for what in ["on", "off", "cold_on", "cold_off"] {
            let took = found[by][what].as_f64().unwrap();
            assert!(took > 0.0 && took < 600.0, "{by}, {what}: {found}");
        }
    }
    let table = fs::read_to_string(&report).unwrap();
    assert!(table.contains("| range1024 to flat |"), "{table}");
    assert!(names(&work).is_empty(), "{:?}", names(&work));
}

#[test]
fn clients_at_the_same_time_in_one_directory() {
    let Some(place) = Place::new() else {
        return;
    };
    let (work, report) = (place.lower("work"), place.lower("table.md"));
    let words = "parallel --json --file-systems ext4 --layouts flat,range64 --clients 1,3 --rounds 1 --articles 200";
    let Some(rows) = measured(&work, &report, words) else {
        return;
    };
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    // Two layouts, two numbers of clients, natively and mounted.
    assert_eq!(rows.len(), 2 * 2 * 2);
    for row in &rows {
        for what in ["add_us", "remove_us"] {
            let took = row[what].as_f64().unwrap();
            assert!(took > 0.0 && took < 1e6, "{what}: {row}");
        }
    }
    let of = |name: &str, value: Value| rows.iter().filter(|row| row[name] == value).count();
    assert_eq!(of("clients", 3.into()), rows.len() / 2);
    assert_eq!(of("mounted", true.into()), rows.len() / 2);
    assert_eq!(of("layout", "range64".into()), rows.len() / 2);
    let table = fs::read_to_string(report).unwrap();
    assert_eq!(
        table.matches("| range64 | mounted | 3 |").count(),
        1,
        "{table}"
    );
    assert!(names(&work).is_empty(), "{:?}", names(&work));
}

#[test]
fn a_package_is_built_natively_and_through_a_mount() {
    let Some(place) = Place::new() else {
        return;
    };
    let (work, report) = (place.lower("work"), place.lower("table.md"));
    let overhead = |build: &str| {
        let mut command = newsreel();
        command.args(["bench", "usenetfs", "overhead", "--json", "--directory"]);
        command.arg(&work).arg("--report").arg(&report);
        command.args(["--rounds", "1", "--room", "64", "--sources", "2"]);
        said(command.args(["--build", build]).output().unwrap())
    };
    // It is built if it runs.
    let found = match overhead("sh ./configure && make -s && ./program > said && test -s said") {
        Ok(found) => found,
        Err(why)
            if ["mke2fs", "mount:", "compiler", "make: not found"]
                .iter()
                .any(|it| why.contains(it)) =>
        {
            return skipped(&format!("no package can be built on a mount: {why}"));
        }
        Err(why) => panic!("{why}"),
    };
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["rounds"], 1, "{found}");
    for by in ["native", "mounted"] {
        for what in ["unpack_seconds", "build_seconds", "processor_seconds"] {
            let took = found[by][what].as_f64().unwrap();
            assert!(took > 0.0 && took < 600.0, "{by}, {what}: {found}");
        }
        assert!(found[by]["written_octets"].as_u64().unwrap() > 0, "{found}");
    }
    let table = fs::read_to_string(&report).unwrap();
    assert!(
        table.starts_with("| ext4 | native | mounted | more |"),
        "{table}"
    );
    assert_eq!(
        table.matches("through the mount, ext4 | at most").count(),
        2,
        "{table}"
    );
    let left = names(&work);
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["package.tar"]);
    fs::remove_dir_all(&work).unwrap();
    let why = overhead("echo no rule for this >&2; false").unwrap_err();
    assert!(
        why.contains("no rule for this") && why.contains("false"),
        "{why}"
    );
    assert!(!names(&work).contains("view"), "{:?}", names(&work));
}
