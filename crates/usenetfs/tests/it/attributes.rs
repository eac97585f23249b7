//! Attributes: the set-uid bit, times of managed directories, extended attributes, what a status says, bounds.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use newsreel_host::Folder;
use newsreel_host::node::{FolderStream, Pin};
use newsreel_layout::{ATTRIBUTE, Algorithm, Mark};
use newsreel_usenetfs::{BitKept, Op, STATUS_ATTRIBUTE, Settings};

use crate::world::{World, by, findings, mark, mode_of, names, set_mode, shell};

#[test]
fn the_bit_manages_an_empty_directory_and_no_other() {
    let Some(world) = World::new(by(Algorithm::YYY)) else {
        return;
    };
    let notices = world.view().notices();
    let at = world.managed("a");
    assert_eq!(mark(&world.lower("a")), Mark::Managed(Algorithm::YYY));
    fs::write(at.join("12345"), "").unwrap();
    assert!(world.lower("a/234/12345").exists());
    // The other bits change, the bit stays, and this is counted.
    set_mode(&at, 0o750);
    assert_eq!(
        (mode_of(&at), world.view().counters().of(Op::BitKept)),
        (0o4750, 1)
    );
    assert_eq!(mode_of(&world.lower("a/234")), 0o750);
    fs::remove_file(at.join("12345")).unwrap();
    set_mode(&at, 0o700);
    assert_eq!((mode_of(&at), mark(&world.lower("a"))), (0o700, Mark::None));
    fs::write(at.join("12345"), "").unwrap();
    assert!(world.lower("a/12345").exists());
    set_mode(&at, 0o4755);
    assert_eq!(
        (mode_of(&at), world.view().counters().of(Op::BitKept)),
        (0o755, 2)
    );
    assert_eq!(names(&at), ["12345"]);
    let kept = |is_managed| BitKept {
        directory: fs::canonicalize(world.lower("a")).unwrap(),
        inode: fs::metadata(world.lower("a")).unwrap().ino(),
        is_managed,
    };
    assert_eq!(
        notices.try_iter().collect::<Vec<_>>(),
        [kept(true), kept(false)]
    );
    let inode = kept(true).inode;
    let said = format!(r#""suid_kept_last_inode":{inode}"#);
    assert!(world.view().status().contains(&said));
    assert!(!world.view().status().contains("/a"));
}

/// The directory had its new owner and mode when one of its buckets could not get them, and whoever asked was told an error.
#[test]
fn an_owner_or_mode_that_a_bucket_cannot_have_changes_nothing() {
    let Some(world) = World::new(by(Algorithm::RANGE_1024)) else {
        return;
    };
    let at = world.managed("a");
    for number in 0..10 {
        fs::write(at.join((number * 1024).to_string()), "").unwrap();
    }
    let fixed = world.lower("a/r4096");
    if !crate::converting::chattr("+i", &fixed) {
        println!("skipped: this file system has no directories that cannot be changed");
        return;
    }
    let (mode, owner) = (
        fs::set_permissions(&at, fs::Permissions::from_mode(0o4700)),
        chown(&at, Some(7001), Some(7001)),
    );
    let is = fs::metadata(&at).unwrap();
    let found = findings(&world.lower("a"));
    assert!(crate::converting::chattr("-i", &fixed));
    assert!(mode.is_err() && owner.is_err());
    assert_eq!((is.uid(), is.gid(), is.mode() & 0o7777), (0, 0, 0o4755));
    assert_eq!(found, Vec::<String>::new());
    chown(&at, Some(7001), Some(7001)).unwrap();
    set_mode(&at, 0o4700);
    assert_eq!(findings(&world.lower("a")), Vec::<String>::new());
}

#[test]
fn a_listing_that_was_open_sees_what_the_bit_changed() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.path("a");
    fs::create_dir(&at).unwrap();
    let mut stream = FolderStream::of(Folder::open(&at).unwrap()).unwrap();
    let mut listed = || {
        let mut names = Vec::new();
        stream
            .fill(0, |found| {
                names.push(found.name.clone().into_string().unwrap());
                Ok(true)
            })
            .unwrap();
        names.sort();
        names
    };
    assert_eq!(listed(), [".", ".."]);
    set_mode(&at, 0o4755);
    fs::write(at.join("5"), "").unwrap();
    assert_eq!(listed(), [".", "..", "5"]);
    fs::remove_file(at.join("5")).unwrap();
    set_mode(&at, 0o755);
    fs::write(at.join("6"), "").unwrap();
    assert_eq!(listed(), [".", "..", "6"]);
}

#[test]
fn a_strict_mount_says_no() {
    let settings = Settings {
        is_strict: true,
        inherits: true,
        ..Settings::default()
    };
    let Some(world) = World::new(settings) else {
        return;
    };
    let at = world.managed("a");
    fs::create_dir(at.join("sub")).unwrap();
    assert_eq!(
        mark(&world.lower("a/aaa/sub")),
        Mark::Managed(Algorithm::RANGE_1024)
    );
    assert_eq!(mode_of(&at.join("sub")) & 0o4000, 0o4000);
    let mode = fs::metadata(&at).unwrap().permissions();
    let refused = fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o755));
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(16));
    fs::set_permissions(&at, mode).unwrap();
    assert_eq!(names(&at), ["sub"]);
}

#[test]
fn buckets_follow_the_owner_and_set_gid_is_inherited() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("a");
    fs::write(at.join("1"), "").unwrap();
    chown(&at, Some(7001), Some(7100)).unwrap();
    set_mode(&at, 0o6775);
    let said = shell(
        &at,
        (7001, 7300),
        "umask 022; touch 2 5000; mkdir 9000; stat -c '%u:%g %a' 2 5000 9000",
    );
    assert_eq!(said, "7001:7100 644\n7001:7100 644\n7001:7100 2755\n0\n");
    for bucket in ["r0", "r4096", "r8192"] {
        let is = fs::metadata(world.lower("a").join(bucket)).unwrap();
        assert_eq!(
            (is.uid(), is.gid(), is.mode() & 0o7777),
            (7001, 7100, 0o2775),
            "{bucket}"
        );
    }
    assert_eq!(findings(&world.lower("a")), Vec::<String>::new());
}

#[test]
fn a_managed_directory_shows_the_times_of_its_buckets() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("a");
    let is = fs::metadata(&at).unwrap();
    let (mut last, mut last_changed) = (is.modified().unwrap(), changed(&is));
    for change in [
        "touch 1", "touch 2", "mv 2 3", "rm 3", "ln 1 4", "mkdir 5", "rmdir 5",
    ] {
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(shell(&at, (0, 0), change), "0\n");
        let is = fs::metadata(&at).unwrap();
        assert!(is.modified().unwrap() > last, "{change}");
        assert!(changed(&is) > last_changed, "{change}");
        assert_eq!(is.nlink(), 1, "{change}");
        (last, last_changed) = (is.modified().unwrap(), changed(&is));
    }
    // What was said is on disk when the mount has ended, and was not written each time.
    let dir = world.end();
    let lower = fs::metadata(dir.path().join("lower/a")).unwrap();
    assert_eq!(lower.modified().unwrap(), last);
}

#[test]
fn a_directory_that_was_removed_has_no_links() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    for mode in [0o755, 0o4755] {
        let at = world.path("a");
        fs::create_dir(&at).unwrap();
        set_mode(&at, mode);
        let open = fs::File::open(&at).unwrap();
        fs::remove_dir(&at).unwrap();
        assert_eq!(open.metadata().unwrap().nlink(), 0, "{mode:o}");
    }
}

fn changed(is: &fs::Metadata) -> SystemTime {
    let secs = Duration::from_secs(is.ctime().unsigned_abs());
    SystemTime::UNIX_EPOCH + secs + Duration::from_nanos(is.ctime_nsec().unsigned_abs())
}

#[test]
fn a_time_that_was_set_stays() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("a");
    // The second change waits to be written.
    fs::write(at.join("1"), "").unwrap();
    fs::write(at.join("3"), "").unwrap();
    let said = shell(
        &at,
        (0, 0),
        "touch -d @1000 .; stat -c %Y .; touch 2; test $(stat -c %Y .) -gt 1000",
    );
    assert_eq!(said, "1000\n0\n");
}

#[test]
fn the_mark_is_hidden_and_other_attributes_are_not() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = Folder::open(&world.managed("a")).unwrap();
    at.set_attribute("user.newsreel.test", b"x").unwrap();
    assert_eq!(
        at.attribute("user.newsreel.test").unwrap(),
        Some(b"x".to_vec())
    );
    assert_eq!(at.attribute(ATTRIBUTE).unwrap(), None);
    assert!(at.set_attribute(ATTRIBUTE, b"1 yyy").is_err());
    assert!(at.remove_attribute(ATTRIBUTE).is_err());
    assert_eq!(
        mark(&world.lower("a")),
        Mark::Managed(Algorithm::RANGE_1024)
    );
    let pin = Pin::at(&at, OsStr::new(".")).unwrap();
    assert_eq!(pin.attributes().unwrap(), b"user.newsreel.test\0");
    let top = Folder::open(&world.path("")).unwrap();
    let status = top.attribute(STATUS_ATTRIBUTE).unwrap().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert!(
        status["operations"]["mkdir"].as_u64() >= Some(1),
        "{status}"
    );
    assert_eq!(
        status["lower"].as_str().map(Path::new),
        Some(&*world.lower(""))
    );
}
