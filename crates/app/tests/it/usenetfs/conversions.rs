//! Conversions and repairs by the commands: what stops them, what they go on with, and how far down they reach.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use newsreel_host::Folder;
use newsreel_layout::Mark;

use super::{Place, names, skipped};
use crate::spool::{newsreel, said};

fn mark(at: &Path) -> Mark {
    Mark::read(&Folder::open(at).unwrap()).unwrap()
}

fn chattr(flag: &str, at: &Path) -> bool {
    let done = Command::new("chattr").arg(flag).arg(at).output();
    done.is_ok_and(|it| it.status.success())
}

/// Root was told that only root and the owner can have it converted.
#[test]
fn what_the_server_says_of_a_failure_is_passed_on() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let group = place.path("group");
    fs::create_dir(&group).unwrap();
    for number in 0..20 {
        fs::write(group.join(number.to_string()), "").unwrap();
    }
    let fixed = place.lower("group/7");
    if !chattr("+i", &fixed) {
        return skipped("this file system has no files that cannot be renamed");
    }
    let refused = place.run(&["convert", "on", "@mnt/group"]);
    assert!(chattr("-i", &fixed));
    let refused = refused.unwrap_err();
    for word in ["is not converted", "group/7", "as it was before"] {
        assert!(refused.contains(word), "no {word:?}: {refused}");
    }
    assert!(!refused.contains("only root"), "{refused}");
    assert_eq!(names(&group).len(), 20);
    fs::set_permissions(&group, fs::Permissions::from_mode(0o777)).unwrap();
    if let Some(refused) = place.run_as_user(&["convert", "on", "mnt/group"]) {
        let refused = refused.unwrap_err();
        assert!(refused.contains("only root and the owner of"), "{refused}");
    }
    place.run(&["convert", "on", "@mnt/group"]).unwrap();
    place.run(&["umount", "@mnt"]).unwrap();
}

/// Kills the server while it converts; says whether that was before its end.
fn kill_in(place: &Place, words: &[&str]) -> bool {
    let (pid, before) = (place.pid(), mark(&place.lower("group")));
    let mut order = newsreel();
    order.args(["usenetfs", "convert"]).args(words);
    order.arg(place.path("group"));
    let order = order.stdout(Stdio::null()).stderr(Stdio::piped());
    let order = order.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while mark(&place.lower("group")) == before {
        assert!(Instant::now() < until, "nothing is converted");
        std::thread::yield_now();
    }
    said(Command::new("kill").args(["-KILL", &pid]).output().unwrap()).unwrap();
    let ordered = said(order.wait_with_output().unwrap());
    let server = Path::new("/proc").join(&pid);
    while server.exists() {
        assert!(Instant::now() < until, "the server lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_half = matches!(mark(&place.lower("group")), Mark::UnderWay(_));
    assert!(!is_half || ordered.is_err(), "{ordered:?}");
    is_half
}

/// Whoever orders it again after the mount was made again has it completed; until then it is not served.
#[test]
fn a_conversion_whose_server_was_killed_is_resumed_through_the_next_mount() {
    let Some(place) = Place::in_memory() else {
        return;
    };
    let group = place.path("group");
    fs::create_dir(place.lower("group")).unwrap();
    for number in 0..20_000 {
        let text = number.to_string();
        fs::write(place.lower("group").join(&text), &text).unwrap();
    }
    place.mount();
    let all = names(&group);
    let orders: [&[&str]; 3] = [&["on"], &["to", "34/56"], &["off"]];
    for words in orders {
        // A machine may be so busy that it is over before anybody is killed: then it is brought back, and tried again.
        let mut tries = 0;
        while !kill_in(&place, words) {
            tries += 1;
            assert!(tries < 20, "{words:?} was always over");
            place.mount();
            let back: &[&str] = match words[0] {
                "on" => &["off"],
                _ => &["to", "range1024"],
            };
            place
                .run(&[&["convert"], back, &["@mnt/group"]].concat())
                .unwrap();
        }
        let dead = fs::read_dir(&group).unwrap_err();
        assert_eq!(dead.raw_os_error(), Some(107), "{dead}");
        place.mount();
        let busy = fs::read_dir(&group).unwrap_err();
        assert_eq!(busy.raw_os_error(), Some(16), "{busy}");
        place
            .run(&[&["convert"], words, &["@mnt/group"]].concat())
            .unwrap();
        assert!(names(&group) == all, "{words:?}");
        for number in [0, 777, 19_999] {
            let text = fs::read_to_string(group.join(number.to_string()));
            assert_eq!(text.unwrap(), number.to_string());
        }
        place.run(&["umount", "@mnt"]).unwrap();
        let verified = place.json(&["verify", "@lower/group"]);
        assert_eq!(verified["findings"], serde_json::json!([]), "{words:?}");
        place.mount();
    }
    place.run(&["umount", "@mnt"]).unwrap();
    assert_eq!(
        (names(&place.lower("group")), mark(&place.lower("group"))),
        (all, Mark::None)
    );
}

/// Paths are octets: umount did not wait for the server, and nothing kept a part of what was mounted from being mounted again.
#[test]
fn a_directory_whose_path_is_no_utf_8_is_mounted_like_any_other() {
    let Some(place) = Place::new() else {
        return;
    };
    let at = |octets: &[u8]| -> PathBuf { place.dir.path().join(OsStr::from_bytes(octets)) };
    let (lower, mnt) = (at(b"b\xfccher %41"), at(b"gr\xfcn"));
    for path in [&lower, &mnt] {
        fs::create_dir(path).unwrap();
    }
    let group = OsStr::from_bytes(b"gr\xfcppe");
    let run = |verb: &[&str], paths: &[&Path]| {
        let mut command = newsreel();
        said(
            command
                .arg("usenetfs")
                .args(verb)
                .args(paths)
                .output()
                .unwrap(),
        )
    };
    run(&["mount"], &[&lower, &mnt]).unwrap();
    let shown = mnt.join(group);
    fs::create_dir(&shown).unwrap();
    for number in 0..20 {
        fs::write(shown.join(number.to_string()), "").unwrap();
    }
    let status = run(&["status", "--json"], &[&mnt]).unwrap();
    assert!(status.contains("cher %41"), "{status}");
    let listed = run(&["status", "--json"], &[]).unwrap();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let lossy = lower.to_string_lossy();
    let mut rows = listed.as_array().unwrap().iter();
    let row = rows.find(|row| row["lower"] == *lossy);
    assert_eq!(row.unwrap()["serves"], true, "{listed}");
    run(&["convert", "on", "--verify"], &[&shown]).unwrap();
    assert!(lower.join(group).join("r0/7").exists());
    // What holds it, and what it holds, is known to be mounted.
    let other = at(b"other");
    fs::create_dir(&other).unwrap();
    for what in [place.dir.path(), lower.join(group).as_path()] {
        let refused = run(&["mount"], &[what, &other]).unwrap_err();
        assert!(refused.contains("is mounted on"), "{refused}");
    }
    // It is free at once: umount waits for the server.
    run(&["umount"], &[&mnt]).unwrap();
    run(&["convert", "off"], &[&lower.join(group)]).unwrap();
    assert_eq!(names(&lower.join(group)).len(), 20);
    run(&["convert", "to", "yyy"], &[&lower.join(group)]).unwrap();
    run(&["verify", "--recursive", "--repair"], &[&lower]).unwrap();
    // The table of mounts has the same path as `mount` was given.
    run(&["mount", "-o", "ro"], &[&lower, &mnt]).unwrap();
    assert_eq!(names(&shown).len(), 20);
    run(&["umount"], &[&mnt]).unwrap();
}

/// What lies in directories below is repaired too, if that is wanted, and else nothing but what was named.
#[test]
fn a_repair_reaches_down_if_it_is_told_to() {
    let Some(place) = Place::new() else {
        return;
    };
    let spool = place.lower("spool");
    for group in ["alt/test", "alt/2600", "comp/lang/c"] {
        fs::create_dir_all(spool.join(group)).unwrap();
        for number in [1, 1024, 5000] {
            fs::write(spool.join(group).join(number.to_string()), group).unwrap();
        }
    }
    // One in another, whose parent is managed as well.
    for group in ["alt/test", "alt/2600", "alt", "comp/lang/c"] {
        let at = format!("@lower/spool/{group}");
        place.run(&["convert", "on", &at]).unwrap();
    }
    let [test, phrack] = ["alt/aaa/test", "alt/r2048/2600"].map(|group| spool.join(group));
    let c = spool.join("comp/lang/c");
    // Articles in wrong buckets and in none, an empty bucket, and one of another mode.
    fs::rename(test.join("r1024/1024"), test.join("r0/1024")).unwrap();
    fs::rename(phrack.join("r4096/5000"), phrack.join("5000")).unwrap();
    fs::create_dir(c.join("r8192")).unwrap();
    fs::set_permissions(c.join("r0"), fs::Permissions::from_mode(0o700)).unwrap();
    // A whole group that lies astray, with something astray in it.
    fs::rename(&phrack, spool.join("alt/2600")).unwrap();
    let count = |words: &[&str]| -> (usize, u64) {
        let mut command = newsreel();
        command.args(["usenetfs", "verify", "--json"]).args(words);
        let output = command.arg(&spool).output().unwrap();
        let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = seen["findings"].as_array().unwrap();
        (findings.len(), seen["repaired"].as_u64().unwrap())
    };
    // The parent is an ordinary directory: of itself there is nothing to say, and nothing below it is touched.
    assert_eq!(count(&["--repair"]), (0, 0));
    assert!(test.join("r0/1024").exists());
    // What lies astray is not gone into by a look alone.
    assert_eq!(count(&["--recursive"]).1, 0);
    assert!(test.join("r0/1024").exists() && spool.join("alt/2600").exists());
    let (found, repaired) = count(&["--recursive", "--repair"]);
    assert_eq!((found, repaired), (found, found as u64));
    assert!(found >= 4, "{found}");
    assert_eq!(count(&["--recursive"]), (0, 0));
    for at in [test.join("r1024/1024"), phrack.join("r4096/5000")] {
        assert!(at.exists(), "{}", at.display());
    }
    assert!(!c.join("r8192").exists());
    place.mount();
    for group in ["alt/test", "alt/2600", "comp/lang/c"] {
        let shown = names(&place.path("spool").join(group));
        assert_eq!(
            shown,
            ["1", "1024", "5000"].map(str::to_owned).into(),
            "{group}"
        );
    }
    place.run(&["umount", "@mnt"]).unwrap();
}
