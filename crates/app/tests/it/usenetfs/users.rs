//! What the commands tell users who are not root, and what they leave as it was for them.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use super::{Place, skipped};
use crate::spool::{newsreel, said};

/// Somebody; nobody is in the group of whose number one more is.
const USER: u32 = 7001;

impl Place {
    /// Runs a command as somebody who is in no group but their own; `None` where they cannot reach the program.
    pub(super) fn run_as_user(&self, words: &[&str]) -> Option<Result<String, String>> {
        let mut command = newsreel();
        command.arg("usenetfs").args(words).uid(USER).gid(USER);
        match command.current_dir(self.dir.path()).output() {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                skipped("the program is where nobody but root can run it");
                None
            }
            output => Some(said(output.unwrap())),
        }
    }
}

/// The kernel took the set-gid bit off without a word, and buckets came into another group.
#[test]
fn a_group_that_cannot_be_kept_is_a_refusal() {
    let Some(place) = Place::new() else {
        return;
    };
    let group = place.lower("group");
    fs::create_dir(&group).unwrap();
    fs::write(group.join("1000"), "").unwrap();
    chown(&group, Some(USER), Some(USER + 1)).unwrap();
    let convert = |words: &[&str], mode| {
        fs::set_permissions(&group, fs::Permissions::from_mode(mode)).unwrap();
        place.run_as_user(&[&["convert"], words, &["lower/group"]].concat())
    };
    for mode in [0o2775, 0o775] {
        for words in [["on"].as_slice(), &["on", "--dry-run"]] {
            let Some(refused) = convert(words, mode) else {
                return;
            };
            let refused = refused.unwrap_err();
            assert!(refused.contains("you are not in that group"), "{refused}");
        }
        assert!(group.join("1000").exists());
    }
    place.run(&["convert", "on", "@lower/group"]).unwrap();
    let refused = convert(&["off"], 0o6775).unwrap().unwrap_err();
    assert!(refused.contains("you are not in that group"), "{refused}");
    // What has neither at stake goes on.
    convert(&["off"], 0o4775).unwrap().unwrap();
    chown(&group, Some(USER), Some(USER)).unwrap();
    convert(&["on"], 0o2775).unwrap().unwrap();
    for (path, mode) in [("", 0o6775), ("r0", 0o2775)] {
        let is = fs::metadata(group.join(path)).unwrap().permissions();
        assert_eq!(is.mode() & 0o7777, mode, "{path:?}");
    }
}

#[test]
fn a_mount_of_others_stays() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    if let Some(refused) = place.run_as_user(&["umount", "mnt"]) {
        let refused = refused.unwrap_err();
        assert!(
            refused.contains("only root and the user who mounted it"),
            "{refused}"
        );
    }
    place.run(&["umount", "@mnt"]).unwrap();
}

#[test]
fn what_an_ordinary_user_needs_is_named() {
    let Some(place) = Place::new() else {
        return;
    };
    let device = fs::metadata("/dev/fuse").unwrap().permissions();
    if device.mode() & 0o006 != 0o006 {
        return skipped("who is not root cannot use /dev/fuse here");
    }
    for path in [place.lower(""), place.path("")] {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
    let mut command = newsreel();
    let command = command.args(["usenetfs", "mount", "lower", "mnt"]);
    let command = command.uid(USER).gid(USER).env("PATH", "/nowhere");
    let Ok(output) = command.current_dir(place.dir.path()).output() else {
        return skipped("the program is where nobody but root can run it");
    };
    let refused = said(output).unwrap_err();
    assert!(refused.contains("fusermount3"), "{refused}");
}

/// It was said that its server may have died.
#[test]
fn a_mount_that_a_user_has_for_themselves_is_told_as_theirs() {
    let Some(place) = Place::new() else {
        return;
    };
    let device = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let device = device.unwrap();
    let options = format!("fd=0,rootmode=40000,user_id={USER},group_id={USER}");
    let mut mount = Command::new("mount");
    mount.args(["-i", "-t", "fuse.newsreel", "-o", &options]);
    mount.arg(place.lower("")).arg(place.path(""));
    let mounted = mount.stdin(device.try_clone().unwrap()).output();
    if let Err(why) = said(mounted.unwrap()) {
        return skipped(&why);
    }
    let open = format!("/proc/self/fdinfo/{}", device.as_raw_fd());
    let tells = fs::read_to_string(open)
        .unwrap()
        .contains("fuse_connection");
    let pid = std::process::id();
    let at = place.path("");
    let at = at.to_string_lossy();
    let at = at.trim_end_matches('/');
    // What other tests are about to start has this device for a moment, too; and a server that another one has stopped may have one of the
    // same number, of a mount that is gone.
    for round in (0..600).rev() {
        let refused = place.run(&["status", "@mnt"]).unwrap_err();
        assert!(refused.contains("for themselves alone"), "{refused}");
        let listed = place.json(&["status"]);
        let mut mounts = listed.as_array().unwrap().iter();
        let found = mounts.find(|mount| mount["mountpoint"] == at).unwrap();
        assert!(found["serves"].is_null(), "{found}");
        let lives = format!("lives (process {pid})");
        if !tells || (refused.contains(&lives) && found["pid"] == pid) {
            break;
        }
        assert!(round > 0, "{refused} {found}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
