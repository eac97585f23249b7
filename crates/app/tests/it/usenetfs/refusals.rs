//! What is not mounted and not converted, and what is said of it.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Place, skipped};
use crate::spool::said;

/// A group of newsreel's own was turned over behind its server's back, which removed its articles.
#[test]
fn the_directory_of_a_set_is_its_servers_to_lay_out() {
    let Some(place) = Place::new() else {
        return;
    };
    let group = place.lower("set/misc/test");
    fs::create_dir_all(&group).unwrap();
    fs::write(place.lower("set/.newsreel-set"), "").unwrap();
    fs::write(group.join("1"), "").unwrap();
    for words in [
        ["mount", "@lower/set/misc", "@mnt"],
        ["mount", "@lower", "@mnt"],
        ["convert", "on", "@lower/set/misc/test"],
        ["convert", "on", "@lower"],
    ] {
        let refused = place.run(&words).unwrap_err();
        let says = [
            "lower/set is the directory of a set",
            "`layouts` of the [[set]]",
        ];
        assert!(says.iter().all(|it| refused.contains(it)), "{refused}");
    }
    let advice = place.json(&["advise", "@lower/set/misc/test"]);
    let advice = advice[0]["advice"].as_str().unwrap().to_owned();
    assert!(advice.contains("`layouts`"), "{advice}");
    // Who shares it converts nothing.
    place
        .run(&["mount", "--shared", "@lower/set", "@mnt"])
        .unwrap();
    assert!(place.run(&["convert", "on", "@mnt/misc/test"]).is_err());
    place.run(&["umount", "@mnt"]).unwrap();
    assert!(group.join("1").exists());
}

#[test]
fn a_bucket_is_not_mounted() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let group = place.managed("group");
    fs::write(group.join("7"), "").unwrap();
    fs::create_dir(group.join("sub")).unwrap();
    place.run(&["umount", "@mnt"]).unwrap();
    let refused = place
        .run(&["mount", "@lower/group/r0", "@mnt"])
        .unwrap_err();
    assert!(
        refused.contains("is a bucket of a managed directory"),
        "{refused}"
    );
    place
        .run(&["mount", "@lower/group/aaa/sub", "@mnt"])
        .unwrap();
    place.run(&["umount", "@mnt"]).unwrap();
}

/// It was tried five hundred times, each of which took its time: more than a minute where ten seconds are promised.
#[test]
fn the_end_of_a_stopped_server_is_not_waited_for_much_longer_than_is_said() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let pid = place.pid();
    let signal = |name: &str| {
        said(Command::new("kill").args([name, &pid]).output().unwrap()).unwrap();
    };
    signal("-STOP");
    let began = Instant::now();
    let ended = place.run(&["umount", "@mnt"]);
    let took = began.elapsed();
    signal("-CONT");
    let error = ended.unwrap_err();
    assert!(error.contains("its server has not ended"), "{error}");
    assert!(took < Duration::from_secs(40), "{took:?}");
}

/// Verify ended with 1 for good.
#[test]
fn a_relative_link_and_an_empty_bucket_are_no_findings() {
    let Some(place) = Place::new() else {
        return skipped("nothing can be mounted");
    };
    place.mount();
    let group = place.managed("group");
    fs::write(group.join("8"), "").unwrap();
    std::os::unix::fs::symlink("8", group.join("7")).unwrap();
    place.run(&["umount", "@mnt"]).unwrap();
    fs::create_dir(place.lower("group/r1024")).unwrap();
    let said = place.run(&["verify", "@lower/group"]).unwrap();
    for word in [
        "(1 of them empty)",
        "0 findings",
        "1 notes",
        "r0/7: is a relative link",
    ] {
        assert!(said.contains(word), "{said}");
    }
    let verified = place.json(&["verify", "--repair", "@lower/group"]);
    assert_eq!(verified["notes"].as_array().unwrap().len(), 1, "{verified}");
    assert!(!place.lower("group/r1024").exists());
}
