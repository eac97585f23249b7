//! Mounts and their places: over themselves, under others, in each other; whoever ends takes off nothing but its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Place, names};
use crate::spool::{newsreel, said};

fn system(program: &str, words: &[&str], at: &Path) {
    said(Command::new(program).args(words).arg(at).output().unwrap()).unwrap();
}

fn signal(name: &str, pid: &str) {
    said(Command::new("kill").args([name, pid]).output().unwrap()).unwrap();
}

fn ends(pid: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while Path::new("/proc").join(pid).exists() {
        assert!(Instant::now() < until, "the server has not ended");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server that ended unmounted its path, whatever lay there by then: data in memory of others went with it.
#[test]
fn an_ending_server_takes_off_nothing_of_others() {
    let Some(place) = Place::new() else {
        return;
    };
    let at = place.path("");
    let tmpfs = ["-t", "tmpfs", "-o", "size=1m", "newsreel-test"];
    // Taken off lazily, and something else mounted before its last user leaves.
    fs::write(place.lower("file"), "text").unwrap();
    place.mount();
    let pid = place.pid();
    let open = fs::File::open(place.path("file")).unwrap();
    place.run(&["umount", "--lazy", "@mnt"]).unwrap();
    system("mount", &tmpfs, &at);
    fs::write(place.path("precious"), "").unwrap();
    signal("-TERM", &pid);
    std::thread::sleep(Duration::from_millis(100));
    assert!(place.path("precious").exists());
    drop(open);
    ends(&pid);
    assert!(place.path("precious").exists(), "{:?}", names(&at));
    system("umount", &[], &at);
    // The same over it: a signal takes off neither.
    place.mount();
    let pid = place.pid();
    system("mount", &tmpfs, &at);
    fs::write(place.path("precious"), "").unwrap();
    signal("-TERM", &pid);
    std::thread::sleep(Duration::from_millis(100));
    assert!(place.path("precious").exists(), "{:?}", names(&at));
    system("umount", &[], &at);
    assert!(place.path("file").exists());
    signal("-HUP", &pid);
    assert_eq!(place.pid(), pid);
    place.run(&["umount", "@mnt"]).unwrap();
    ends(&pid);
}

/// `..` of what lies right below led into the mount itself, and was refused as another file system.
#[test]
fn a_directory_is_mounted_over_itself() {
    let Some(place) = Place::new() else {
        return;
    };
    let at = place.path("");
    for name in ["plain/inner", "group"] {
        fs::create_dir_all(at.join(name)).unwrap();
    }
    fs::set_permissions(at.join("group"), fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..20 {
        fs::write(at.join("group").join(number.to_string()), "").unwrap();
    }
    place.run(&["convert", "on", "@mnt/group"]).unwrap();
    let look = || {
        assert_eq!(names(&at.join("plain")), ["inner".to_owned()].into());
        assert_eq!(names(&at.join("group")).len(), 20);
        let found = Command::new("find").arg(&at).output().unwrap();
        let found = said(found).unwrap();
        assert_eq!(found.lines().count(), 24, "{found}");
        let up = said(
            Command::new("ls")
                .args(["-id"])
                .arg(at.join("group/.."))
                .output()
                .unwrap(),
        );
        let top = said(Command::new("ls").args(["-id"]).arg(&at).output().unwrap());
        let inode = |line: String| line.split_whitespace().next().map(str::to_owned);
        assert_eq!(inode(up.unwrap()), inode(top.unwrap()));
    };
    place.run(&["mount", "@mnt", "@mnt"]).unwrap();
    look();
    place.run(&["umount", "@mnt"]).unwrap();
    // And where something is mounted over what is shown, later.
    place.run(&["mount", "@mnt", "@lower"]).unwrap();
    system(
        "mount",
        &["-t", "tmpfs", "-o", "size=1m", "newsreel-test"],
        &at,
    );
    let shown = names(&place.lower("plain"));
    system("umount", &[], &at);
    place.run(&["umount", "@lower"]).unwrap();
    assert_eq!(shown, ["inner".to_owned()].into());
}

/// Two servers for one directory each showed for a day what the other one had changed.
#[test]
fn overlapping_mounts_are_refused_unless_they_share() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir_all(place.lower("part/of/it")).unwrap();
    let other = place.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let word = "is mounted on";
    for (first, second) in [("@lower", "@lower/part/of"), ("@lower/part/of", "@lower")] {
        place.run(&["mount", first, "@mnt"]).unwrap();
        for options in [&[][..], &["--shared"]] {
            let words = [&["mount"], options, &[second, "@other"]].concat();
            let refused = place.run(&words).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
        place.run(&["umount", "@mnt"]).unwrap();
        place.run(&["mount", "--shared", first, "@mnt"]).unwrap();
        let refused = place.run(&["mount", second, "@other"]).unwrap_err();
        assert!(refused.contains(word), "{refused}");
        place.run(&["mount", "--shared", second, "@other"]).unwrap();
        for at in ["@mnt", "@other"] {
            place.run(&["umount", at]).unwrap();
        }
    }
    fs::write(place.dir.path().join("file"), "").unwrap();
    let refused = place.run(&["mount", "@lower", "@file"]).unwrap_err();
    assert!(
        refused.to_lowercase().contains("not a directory"),
        "{refused}"
    );
}

/// `status` of all mounts waited for ever for one server that was stopped, and so did `umount --lazy`.
#[test]
fn a_server_that_is_stopped_is_not_waited_for() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let pid = place.pid();
    signal("-STOP", &pid);
    let began = Instant::now();
    let status = place.run(&["status", "@mnt"]);
    let all = place.run(&["status"]);
    let taken_off = place.run(&["umount", "--lazy", "@mnt"]);
    let took = began.elapsed();
    signal("-CONT", &pid);
    ends(&pid);
    let error = status.unwrap_err();
    assert!(error.contains("does not answer"), "{error}");
    assert!(all.unwrap().contains("false"));
    taken_off.unwrap();
    assert!(took < Duration::from_secs(40), "{took:?}");
}

/// Directories that could not be looked into were passed over without a word, one unreadable mark was the end, and every
/// directory stayed open.
#[test]
fn a_verification_goes_on_and_says_what_it_could_not_see() {
    let Some(place) = Place::new() else {
        return;
    };
    for number in 0..100 {
        fs::create_dir_all(place.lower(&format!("many/{number}"))).unwrap();
    }
    let odd = place.lower("bad\u{1b}[31m");
    fs::create_dir(&odd).unwrap();
    let folder = newsreel_host::Folder::open(&odd).unwrap();
    folder
        .set_attribute("user.usenetfs", b"9 nonsense")
        .unwrap();
    let lower = place.lower("");
    let script = "ulimit -n 64; exec \"$0\" usenetfs verify --recursive \"$1\"";
    let mut command = Command::new("sh");
    let command = command
        .args(["-c", script])
        .arg(crate::scale::binary())
        .arg(&lower);
    let output = command.output().unwrap();
    let (told, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        error.contains("1 things are not as they should be"),
        "{told}{error}"
    );
    assert!(
        told.contains("bad?[31m: not verified") && !told.contains('\u{1b}'),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// What is seen through a mount is flat, whatever it is below: neither command has anything true to say of it.
#[test]
fn what_is_seen_through_a_mount_is_neither_verified_nor_weighed() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir(place.lower("group")).unwrap();
    fs::write(place.lower("group/1000"), "").unwrap();
    place.run(&["convert", "on", "@lower/group"]).unwrap();
    for (lower, group) in [("@lower", "@mnt/group"), ("@mnt", "@mnt/group")] {
        place.run(&["mount", lower, "@mnt"]).unwrap();
        for words in [
            ["verify"].as_slice(),
            &["verify", "--recursive"],
            &["advise"],
        ] {
            let refused = place.run(&[words, &[group]].concat());
            let refused = refused.unwrap_err();
            let why = if words.len() > 1 {
                "not as they should be"
            } else {
                "through a mount"
            };
            assert!(refused.contains(why), "{words:?}: {refused}");
        }
        if lower != "@mnt" {
            assert_eq!(place.json(&["verify", "@lower/group"])["entries"], 1);
            assert_eq!(
                place.json(&["advise", "@lower/group"])[0]["is"],
                "range1024"
            );
        }
        place.run(&["umount", "@mnt"]).unwrap();
        fs::create_dir_all(place.path("group")).unwrap();
    }
}

/// Whoever asked a stopped server anything used the mount, which could not be taken off then.
#[test]
fn a_stopped_server_is_told_of() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir(place.lower("group")).unwrap();
    place.mount();
    let pid = place.pid();
    signal("-STOP", &pid);
    let mut command = newsreel();
    command
        .args(["usenetfs", "convert", "on"])
        .arg(place.path("group"));
    let mut waiting = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut complaint = std::io::BufReader::new(waiting.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut complaint, &mut told).unwrap();
    assert!(
        told.contains("waiting for the server of the mount"),
        "{told}"
    );
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let refused = place.run(&["umount", "@mnt"]).unwrap_err();
    signal("-CONT", &pid);
    ends(&pid);
    assert!(refused.contains("is unmounted, but"), "{refused}");
    assert!(refused.contains("its server has not ended"), "{refused}");
    assert!(names(&place.path("")).is_empty());
}

#[test]
fn what_is_in_use_is_said_to_be() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::write(place.lower("file"), "").unwrap();
    place.mount();
    let open = fs::File::open(place.path("file")).unwrap();
    let words = ["usenetfs", "umount"];
    let output = newsreel().args(words).arg(place.path("")).output();
    let refused = said(output.unwrap()).unwrap_err();
    assert!(refused.contains("is in use; --lazy"), "{refused}");
    drop(open);
    place.run(&["umount", "@mnt"]).unwrap();
}

/// Its mount stayed behind without a server.
#[test]
fn a_server_that_cannot_say_that_it_serves_takes_its_mount_off() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::write(place.lower("file"), "text").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = newsreel();
    command.args(["usenetfs", "mount", "--foreground", "--announce"]);
    command.arg(place.lower("")).arg(place.path(""));
    command.stdout(writer).status().unwrap();
    assert!(names(&place.path("")).is_empty());
    // One that nobody hears may be heard by another way.
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = newsreel();
    command.args(["usenetfs", "mount", "--foreground", "--announce"]);
    command.arg(place.lower("")).arg(place.path(""));
    let refused = said(command.stdout(full.unwrap()).output().unwrap()).unwrap_err();
    assert!(
        refused.contains("cannot be said on standard output"),
        "{refused}"
    );
    assert!(names(&place.path("")).is_empty());
}

/// Managed directories were shown without their articles, and new ones went into buckets that those below show as names.
#[test]
fn what_a_mount_shows_is_not_mounted_again() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir(place.lower("group")).unwrap();
    place.mount();
    let again = place.dir.path().join("again");
    fs::create_dir(&again).unwrap();
    for shown in [place.path(""), place.path("group")] {
        for shared in [&[][..], &["--shared"]] {
            let mut command = newsreel();
            command.args(["usenetfs", "mount"]).args(shared);
            let refused = said(command.arg(&shown).arg(&again).output().unwrap()).unwrap_err();
            assert!(refused.contains("is seen through a mount"), "{refused}");
        }
    }
    // Nor over itself.
    place.run(&["umount", "@mnt"]).unwrap();
    for is_refused in [false, true] {
        let mut command = newsreel();
        command.args(["usenetfs", "mount"]);
        command.arg(place.lower("")).arg(place.lower(""));
        let tried = said(command.output().unwrap());
        assert_eq!(tried.is_err(), is_refused, "{tried:?}");
    }
    system("umount", &[], &place.lower(""));
}

/// Whoever may read a directory may lock it: a user's lock on `/` kept everybody from mounting anything.
#[test]
fn locks_of_strangers_above_are_in_nobodys_way() {
    use std::os::unix::process::CommandExt as _;
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir(place.lower("full")).unwrap();
    fs::write(place.lower("full/1"), "").unwrap();
    for kind in ["-s", "-x"] {
        let mut stranger = Command::new("flock");
        let mut stranger = stranger
            .args([kind, "--no-fork"])
            .arg(place.dir.path())
            .args(["sleep", "60"])
            .uid(65_534)
            .gid(65_534)
            .spawn()
            .unwrap();
        let above = newsreel_host::Folder::open(place.dir.path()).unwrap();
        while above.lock().is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = ["on", "off"].map(|way| place.run(&["convert", way, "@lower/full"]));
        let mounted = place.run(&["mount", "@lower", "@mnt"]);
        if mounted.is_ok() {
            place.run(&["umount", "@mnt"]).unwrap();
        }
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(done.iter().all(Result::is_ok), "{kind}: {done:?}");
        mounted.unwrap();
    }
}

/// A conversion moved what was being shown elsewhere.
#[test]
fn what_holds_a_mounted_directory_is_not_converted() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir_all(place.lower("a/b/c")).unwrap();
    place.run(&["mount", "@lower/a/b", "@mnt"]).unwrap();
    for at in ["@lower", "@lower/a"] {
        let refused = place.run(&["convert", "on", at]).unwrap_err();
        assert!(refused.contains("unmount it first"), "{refused}");
    }
    place.run(&["umount", "@mnt"]).unwrap();
    place.run(&["convert", "on", "@lower/a"]).unwrap();
}

/// A signal then ended the server at once, and what was open was lost.
#[test]
fn a_mount_whose_place_was_renamed_ends_with_its_last_user() {
    let Some(place) = Place::new() else {
        return;
    };
    let at = |name: &str| place.dir.path().join(name);
    fs::create_dir_all(at("a/b/mnt")).unwrap();
    fs::write(place.lower("file"), "text").unwrap();
    place.run(&["mount", "@lower", "@a/b/mnt"]).unwrap();
    let pid = place.json(&["status", "@a/b/mnt"])["pid"].to_string();
    let open = fs::File::open(at("a/b/mnt/file")).unwrap();
    fs::rename(at("a/b"), at("a/c")).unwrap();
    signal("-TERM", &pid);
    std::thread::sleep(Duration::from_millis(200));
    let text = std::io::read_to_string(&open);
    let shown = names(&at("a/c/mnt"));
    drop(open);
    system("umount", &[], &at("a/c/mnt"));
    ends(&pid);
    assert_eq!(text.unwrap(), "text");
    assert_eq!(shown, ["file".to_owned()].into());
}

/// What was made stayed when the server had no descriptor left to tell of it, and whoever had asked was told an error.
#[test]
fn an_error_means_that_nothing_was_made() {
    let Some(place) = Place::new() else {
        return;
    };
    place
        .run(&["mount", "--inherit", "@lower", "@mnt"])
        .unwrap();
    let pid = place.pid();
    let group = place.managed("group");
    fs::write(group.join("1"), "").unwrap();
    let limit = |most: &str| {
        let limit = format!("--nofile={most}:1048576");
        said(
            Command::new("prlimit")
                .args(["--pid", &pid, &limit])
                .output()
                .unwrap(),
        )
    };
    if limit("1048576").is_err() {
        return super::skipped("there is no prlimit");
    }
    let mut refused = 0;
    for most in 8..60 {
        for (name, make) in [
            ("1000", "mkdir"),
            ("1001", "mkfifo"),
            ("1002", "touch"),
            ("1003", "ln -s x"),
            ("1004", "ln 1"),
        ] {
            limit(&most.to_string()).unwrap();
            let words = make.split(' ').chain([name]).collect::<Vec<_>>();
            let made = Command::new(words[0])
                .args(&words[1..])
                .current_dir(&group)
                .output();
            limit("1048576").unwrap();
            let below = place.lower("group/r0").join(name);
            let is_there = fs::symlink_metadata(&below).is_ok();
            if made.unwrap().status.success() {
                assert!(is_there, "{make} {most}");
                said(
                    Command::new("rm")
                        .args(["-r", name])
                        .current_dir(&group)
                        .output()
                        .unwrap(),
                )
                .unwrap();
            } else {
                refused += 1;
                assert!(!is_there, "{make} {most}");
            }
        }
    }
    assert!(refused > 5, "{refused}");
    place.run(&["umount", "@mnt"]).unwrap();
}
