//! Generated pages are as the binary would make them now (`NEWSREEL_BLESS=1` rewrites them), and scripts and other files
//! that users get are what the README says.

use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::{Disk as _, RealDisk, read_whole, replace_file};

use crate::spool::{newsreel, said};

/// Pages with the words that print them.
const PAGES: &[(&str, &[&str])] = &[("docs/reference/config.md", &["config", "reference"])];

/// A file of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn text_of(name: &str) -> String {
    let octets = read_whole(&RealDisk, &file(name), 1 << 20);
    String::from_utf8(octets.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

/// Help had been asked for, and the machine was set up first.
#[test]
fn scripts_say_how_they_are_used_and_do_nothing_else() {
    for (script, option) in [("script/test", "--set-up"), ("script/demo", "--stop")] {
        for help in ["--help", "-h"] {
            let said = said(Command::new(file(script)).arg(help).output().unwrap()).unwrap();
            let line = format!("{script} {option}");
            assert!(said.contains(&line) && !said.contains("==="), "{said}");
        }
        let error = said(Command::new(file(script)).arg("--hlep").output().unwrap()).unwrap_err();
        assert!(error.contains("--hlep is no option"), "{error}");
    }
}

/// systemd runs what the program takes, and the server says it is ready only by its log: no notification, no watchdog.
#[test]
fn the_units_of_systemd_run_what_there_is() {
    for (name, verb, directory) in [
        ("newsreel", "serve", "spool"),
        ("newsreel-cache", "cache", "directory"),
    ] {
        unit_runs(&format!("contrib/systemd/{name}.service"), verb, directory);
    }
    assert!(text_of("contrib/systemd/newsreel-cache.socket").contains("ListenStream="));
    let readme = text_of("README.md");
    for told in [
        "contrib/systemd/newsreel.service",
        "newsreel man",
        "newsreel completions bash",
    ] {
        assert!(readme.contains(told), "{told}");
    }
}

fn unit_runs(path: &str, verb: &str, directory: &str) {
    let unit = text_of(path);
    let value = |key: &str| {
        let mut lines = unit.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {key} in {unit}"))
    };
    let mut words = value("ExecStart").split(' ');
    assert!(words.next().unwrap().ends_with("/newsreel"));
    let help = said(newsreel().args(words).arg("--help").output().unwrap()).unwrap();
    assert!(help.contains(&format!("Usage: newsreel {verb}")), "{help}");
    assert_eq!((value("Type"), value("User")), ("exec", "news"));
    assert!(!unit.contains("Watchdog"), "{unit}");
    let directory = format!("#   {directory} = \"{}\"", value("ReadWritePaths"));
    assert!(unit.contains(&directory), "{unit}");
}

#[test]
fn generated_pages_are_fresh() {
    for (page, words) in PAGES {
        let path = file(page);
        let fresh = said(newsreel().args(*words).output().unwrap()).unwrap();
        if std::env::var_os("NEWSREEL_BLESS").is_some() {
            RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
            replace_file(&RealDisk, &path, fresh.as_bytes()).unwrap();
        }
        let stored = read_whole(&RealDisk, &path, 1 << 20).unwrap_or_default();
        assert!(
            stored == fresh.as_bytes(),
            "{page} is stale: run `cargo xtask docs`"
        );
    }
}
