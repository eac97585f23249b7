//! `newsreel usenetfs`: the commands, a mount as a process of its own, and what is left when that is killed.
//!
//! Skipped, with the reason printed, where nothing can be mounted.
#![expect(
    clippy::disallowed_methods,
    reason = "what is mounted is used as any program would use it"
)]

mod conversions;
mod convert_cut;
mod figures;
mod fio;
mod inn;
mod mount8;
mod places;
mod power_cut;
mod refusals;
mod users;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scale::{binary, is_full};
use crate::spool::{newsreel, said};

/// A directory to be mounted; what is mounted goes with it.
struct Place {
    dir: tempfile::TempDir,
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

impl Place {
    fn new() -> Option<Self> {
        if newsreel_host::process::own_uid() != 0 {
            skipped("only root can mount");
            return None;
        }
        if !Path::new("/dev/fuse").exists() {
            skipped("there is no /dev/fuse");
            return None;
        }
        Some(Self::within(tempfile::tempdir().unwrap()))
    }

    /// In memory, where there is such a file system that keeps attributes: for many files.
    fn in_memory() -> Option<Self> {
        let keeps_attributes = |dir: &tempfile::TempDir| {
            let folder = newsreel_host::Folder::open(dir.path()).unwrap();
            folder.set_attribute("user.newsreel.test", b"").is_ok()
        };
        let place = Self::new()?;
        let dir = tempfile::tempdir_in("/dev/shm").ok();
        Some(dir.filter(keeps_attributes).map_or(place, Self::within))
    }

    fn within(dir: tempfile::TempDir) -> Self {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["lower", "mnt"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn lower(&self, at: &str) -> PathBuf {
        self.dir.path().join("lower").join(at)
    }

    fn path(&self, at: &str) -> PathBuf {
        self.dir.path().join("mnt").join(at)
    }

    /// Runs a command of `newsreel usenetfs`; words that begin with `@` are paths here.
    fn run(&self, words: &[&str]) -> Result<String, String> {
        let path = |word: &&str| match word.strip_prefix('@') {
            Some(at) => self.dir.path().join(at).into_os_string(),
            None => word.into(),
        };
        let soon = Instant::now() + Duration::from_secs(10);
        loop {
            let mut command = newsreel();
            let command = command.arg("usenetfs").args(words.iter().map(path));
            let ran = said(command.output().unwrap());
            // What is open here a child of another test has, too, until it has become its command.
            let is_held = |error: &String| error.contains("is in use");
            if words[0] != "umount" || !ran.as_ref().is_err_and(is_held) || Instant::now() > soon {
                return ran;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.run(&words).unwrap()).unwrap()
    }

    fn mount(&self) {
        self.run(&["mount", "@lower", "@mnt"]).unwrap();
    }

    /// Makes a managed directory through the mount.
    fn managed(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        path
    }

    fn pid(&self) -> String {
        self.json(&["status", "@mnt"])["pid"].to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whatever a failed test left; nothing, after one that passed.
        let _ = Command::new("umount")
            .arg("-lq")
            .arg(self.path(""))
            .output();
    }
}

fn names(at: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(at).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_directory_is_mounted_watched_and_unmounted() {
    let Some(place) = Place::new() else {
        return;
    };
    let no_log = place.run(&["mount", "--log", "@lower/none/log", "@lower", "@mnt"]);
    let no_log = no_log.unwrap_err();
    assert!(no_log.contains("cannot write the log"), "{no_log}");
    place.mount();
    let group = place.managed("group");
    for number in 0..10 {
        fs::write(group.join((number * 1000).to_string()), "text").unwrap();
    }
    for count in ["0", "4000"] {
        let refused = place.run(&["mount", "--threads", count, "@lower", "@mnt"]);
        let refused = refused.unwrap_err();
        assert!(refused.contains("from 1 to 64"), "{refused}");
    }
    let twice = place.run(&["mount", "@lower", "@mnt"]).unwrap_err();
    assert!(twice.contains("in use by another mount"), "{twice}");
    let status = place.json(&["status", "@mnt"]);
    assert_eq!(status["operations"]["create"], 10, "{status}");
    let all = place.json(&["status"]);
    let all = all.as_array().unwrap();
    let own = all.iter().find(|row| row["lower"] == status["lower"]);
    assert_eq!(own.unwrap()["serves"], true, "{all:?}");
    let text = place.run(&["status", "@mnt"]).unwrap();
    assert!(
        text.contains("create") && text.contains("inodes known"),
        "{text}"
    );
    // Whose it is, and where to name it, whether it is what is mounted or lies in that.
    let at = format!(
        "mounted on {} (process {})",
        place.path("").display(),
        place.pid()
    );
    let at = at.replace("/ (", " (");
    for (directory, word) in [
        ("@lower", ": name it there"),
        ("@lower/group", ": name it there"),
    ] {
        let refused = place.run(&["convert", "off", directory]).unwrap_err();
        assert!(refused.contains(&format!("{at}{word}")), "{refused}");
    }
    for (directory, word) in [
        ("@lower", at.as_str()),
        ("@lower/group", at.as_str()),
        ("@mnt/group", "through a mount"),
    ] {
        let refused = place.run(&["verify", "--repair", directory]).unwrap_err();
        assert!(refused.contains(word), "{refused}");
    }
    place.run(&["umount", "@mnt"]).unwrap();
    assert!(names(&place.path("")).is_empty());
    assert_eq!(place.json(&["verify", "@lower/group"])["entries"], 10);
    let none = place.run(&["umount", "@mnt"]).unwrap_err();
    assert!(none.contains("no mount of newsreel's"), "{none}");
}

#[test]
fn a_full_directory_is_turned_over_and_back() {
    let Some(place) = Place::new() else {
        return;
    };
    let group = place.lower("group");
    fs::create_dir(&group).unwrap();
    for number in 0..3000 {
        fs::write(group.join(number.to_string()), "").unwrap();
    }
    let plan = place.json(&["convert", "on", "@lower/group", "--dry-run"]);
    assert_eq!(
        (&plan["entries"], &plan["new_folders"]),
        (&Value::from(3000), &Value::from(3))
    );
    assert_eq!(names(&group).len(), 3000);
    let report = place.json(&["convert", "on", "@lower/group", "--verify"]);
    assert_eq!(report["before"], report["after"]);
    assert!(group.join("r2048/2999").exists());
    place
        .run(&["convert", "to", "yyy", "@lower/group"])
        .unwrap();
    assert!(group.join("299/2999").exists());
    let advice = place.json(&["advise", "--recursive", "@lower"]);
    assert_eq!(advice[1]["entries"], 3000, "{advice}");
    assert_eq!(advice[1]["is"], "yyy");
    place.mount();
    assert_eq!(names(&place.path("group")).len(), 3000);
    let counted = place.json(&["advise", "--counts", "@mnt", "@lower/group"]);
    assert_eq!(counted[0]["is"], "yyy");
    place.run(&["umount", "@mnt"]).unwrap();
    let said = place
        .run(&["convert", "off", "@lower/group", "--verify"])
        .unwrap();
    assert!(said.contains("the view is the same as before"), "{said}");
    assert_eq!(names(&group).len(), 3000);
    fs::write(group.join("x"), "").unwrap();
    place.run(&["convert", "on", "@lower/group"]).unwrap();
    fs::rename(group.join("aaa/x"), group.join("r0/x")).unwrap();
    let bad = place.run(&["verify", "--recursive", "@lower"]).unwrap_err();
    assert!(bad.contains("1 things are not as they should be"), "{bad}");
    place.run(&["verify", "--repair", "@lower/group"]).unwrap();
    assert!(group.join("aaa/x").exists());
}

#[test]
fn a_directory_is_turned_over_through_its_mount() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    let group = place.path("group");
    fs::create_dir(&group).unwrap();
    for number in 0..3000 {
        fs::write(group.join(number.to_string()), "").unwrap();
    }
    let plan = place.json(&["convert", "on", "@mnt/group", "--dry-run"]);
    assert_eq!(plan["entries"], 3000, "{plan}");
    assert!(place.lower("group/2999").exists());
    let report = place.json(&["convert", "on", "@mnt/group", "--verify"]);
    assert_eq!(report["before"]["entries"], 3000, "{report}");
    assert_eq!(report["before"], report["after"]);
    assert!(place.lower("group/r2048/2999").exists());
    assert_eq!(names(&group).len(), 3000);
    let error = place.run(&["convert", "on", "--algorithm", "yyy", "@mnt/group"]);
    let error = error.unwrap_err();
    assert!(error.contains("managed by range1024 already"), "{error}");
    assert_eq!(error.matches("is not converted").count(), 1, "{error}");
    // Whoever lists it is waited for, and then it is said.
    let mut entries = fs::read_dir(&group).unwrap();
    entries.next().unwrap().unwrap();
    let error = place.run(&["convert", "off", "@mnt/group"]).unwrap_err();
    assert!(error.contains("somebody is listing it"), "{error}");
    drop(entries);
    let said = place.run(&["convert", "off", "@mnt/group", "--verify"]);
    let said = said.unwrap();
    assert!(said.contains("the view is the same as before"), "{said}");
    assert!(place.lower("group/2999").exists());
    place.run(&["umount", "@mnt"]).unwrap();
}

/// The paper mounts a spool over itself; and so does `mount -t fuse.newsreel`, through a helper of that name.
#[test]
fn mount_8_calls_a_helper() {
    let Some(place) = Place::new() else {
        return;
    };
    let helper = place.dir.path().join("mount.fuse.newsreel");
    symlink(binary(), &helper).unwrap();
    let both = place.path("");
    fs::write(both.join("file"), "").unwrap();
    let run = |options: &str| {
        let mut command = Command::new(&helper);
        let command = command.arg(&both).arg(&both).args(["-o", options]);
        said(command.output().unwrap())
    };
    let error = run("rw,rubbish").unwrap_err();
    assert!(error.contains("\"rubbish\" is no option"), "{error}");
    run("ro,algorithm=yyy,nofail,x-systemd.automount").unwrap();
    assert_eq!(place.json(&["status", "@mnt"])["algorithm"], "yyy");
    let refused = fs::write(both.join("other"), "").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(30));
    assert!(names(&both).contains("file"));
    run("remount,rw,noexec").unwrap();
    fs::write(both.join("other"), "").unwrap();
    run("remount,ro").unwrap();
    fs::write(both.join("third"), "").unwrap_err();
    // What it does not name stays as it was.
    let table = fs::read("/proc/self/mountinfo").unwrap();
    let table = String::from_utf8_lossy(&table);
    let at = both.to_str().unwrap().trim_end_matches('/');
    let line = table.lines().rfind(|line| line.contains(at)).unwrap();
    assert!(line.contains("noexec"), "{line}");
    // As mount(8) says it of a mount that stands in no table of its own: with what the kernel tells.
    run("ro,noexec,user_id=0,group_id=0,default_permissions,allow_other,remount,rw").unwrap();
    fs::write(both.join("third"), "").unwrap();
    let error = run("ro,user_id=0").unwrap_err();
    assert!(error.contains("\"user_id=0\" is no option"), "{error}");
    let faked = Command::new(&helper)
        .args(["-f", "/nowhere"])
        .arg(&both)
        .output();
    said(faked.unwrap()).unwrap();
    place.run(&["umount", "@mnt"]).unwrap();
}

#[test]
fn a_signal_ends_a_mount_and_what_is_open_goes_on() {
    let Some(place) = Place::new() else {
        return;
    };
    place.mount();
    fs::write(place.path("file"), "text").unwrap();
    let open = fs::File::open(place.path("file")).unwrap();
    let pid = place.pid();
    said(Command::new("kill").args(["-TERM", &pid]).output().unwrap()).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while !names(&place.path("")).is_empty() {
        assert!(Instant::now() < until, "it is still mounted");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &open, &mut text).unwrap();
    assert_eq!(text, "text");
    drop(open);
    while Path::new("/proc").join(&pid).exists() {
        assert!(Instant::now() < until, "the server has not ended");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A full directory does not become managed by `chmod`; whoever keeps the server's log can see that somebody tried.
#[test]
fn a_bit_that_cannot_change_is_logged() {
    let Some(place) = Place::new() else {
        return;
    };
    fs::create_dir_all(place.lower("group/full")).unwrap();
    // Relative, while the server is in no directory of its caller's.
    let mut mount = newsreel();
    mount.current_dir(place.dir.path());
    mount.args(["usenetfs", "mount", "-o", "log=mount.log", "lower"]);
    said(mount.arg(place.path("")).output().unwrap()).unwrap();
    fs::set_permissions(place.path("group"), fs::Permissions::from_mode(0o4755)).unwrap();
    let real = fs::canonicalize(place.lower("group")).unwrap();
    let real = real.display().to_string();
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&real).unwrap());
    assert_eq!(
        place.json(&["status", "@mnt"])["suid_kept_last_inode"],
        inode
    );
    // Who does it over and over does not fill the log.
    for _ in 0..20 {
        fs::set_permissions(place.path("group"), fs::Permissions::from_mode(0o4755)).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    place.run(&["umount", "@mnt"]).unwrap();
    let log = fs::read_to_string(place.dir.path().join("mount.log")).unwrap();
    let expected = format!("{real} stays not managed, because it is not empty");
    assert!(
        log.matches(&expected).count() == 1 && log.contains("convert on"),
        "{log}"
    );
}

/// Killed under load: whoever uses it is told, nothing has to be repaired, and all that was made is there.
#[test]
fn a_killed_server_leaves_nothing_to_repair() {
    let Some(place) = Place::new() else {
        return;
    };
    for round in 0..5 {
        place.mount();
        let group = place.managed(&format!("group{round}"));
        let pid = place.pid();
        let stop = AtomicBool::new(false);
        let made = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|worker| {
                    let (group, stop) = (&group, &stop);
                    scope.spawn(move || work(group, worker, stop))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(100 + 70 * round));
            // On a machine that is busy with other things that may have been too short.
            let soon = Instant::now() + Duration::from_secs(30);
            while names(&group).len() < 40 && Instant::now() < soon {
                std::thread::sleep(Duration::from_millis(10));
            }
            said(Command::new("kill").args(["-KILL", &pid]).output().unwrap()).unwrap();
            stop.store(true, Ordering::Relaxed);
            let made = workers.into_iter().map(|worker| worker.join().unwrap());
            made.collect::<Vec<_>>()
        });
        assert_eq!(fs::read_dir(&group).unwrap_err().raw_os_error(), Some(107));
        let mut verify = newsreel();
        let verify = verify.args(["usenetfs", "verify", "--recursive", "--json"]);
        let output = verify.arg(place.lower("")).output().unwrap();
        let verified: Value = serde_json::from_slice(&output.stdout).unwrap();
        // An empty bucket means nothing: one whose first entry did not come, or that was about to go.
        assert_eq!(verified["findings"], Value::Array(Vec::new()));
        assert!(output.status.success(), "{verified}");
        let empty = verified["empty_buckets"].as_u64().unwrap();
        assert!(empty <= made.len() as u64, "{verified}");
        place.mount();
        let there = names(&group);
        let mut known = 0;
        for (kept, _) in &made {
            let missing: Vec<_> = kept.iter().filter(|name| !there.contains(*name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
            known += kept.len();
        }
        assert!(
            known > 20,
            "only {known} were made before the server was killed"
        );
        // What was under way may be there or not: one operation a worker.
        let gone: Vec<_> = made.iter().flat_map(|(_, gone)| gone).collect();
        assert!(gone.iter().filter(|name| there.contains(**name)).count() <= made.len());
        place.run(&["umount", "@mnt"]).unwrap();
    }
}

/// What is left of a mount whose server was killed is taken off by any name of its place.
#[test]
fn a_dead_mount_is_unmounted_through_a_link() {
    let Some(place) = Place::new() else {
        return;
    };
    symlink(".", place.dir.path().join("here")).unwrap();
    for name in ["@mnt", "@here/mnt", "@lower/../here/mnt/"] {
        place.mount();
        let pid = place.pid();
        said(Command::new("kill").args(["-KILL", &pid]).output().unwrap()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while fs::read_dir(place.path("")).err().map(|e| e.raw_os_error()) != Some(Some(107)) {
            assert!(Instant::now() < until, "the server lives on");
            std::thread::sleep(Duration::from_millis(10));
        }
        place.run(&["umount", name]).unwrap();
        assert!(names(&place.path("")).is_empty());
    }
}

/// What somebody does who is root nowhere but in a name space of their own: no handles, no passthrough.
const AS_A_USER: &str = r#"
set -e
"$0" usenetfs mount lower mnt
mkdir mnt/a mnt/b; chmod u+s mnt/a
for i in 1 2 3 5000 foo; do echo "text $i" > mnt/a/$i; done
exec 3< mnt/a/3; rm mnt/a/3; cat <&3
mv mnt/a/1 mnt/b/one; mv mnt/b/one mnt/a/9000; ln mnt/a/9000 mnt/b/two; rm mnt/a/9000
mv mnt/a mnt/c; cat mnt/c/5000 mnt/b/two; echo more >> mnt/c/2; : > mnt/c/foo; chmod 600 mnt/c/foo
ls mnt/c mnt/b; stat -c '%a %s %h' mnt/c/foo mnt/b/two
"$0" usenetfs status --json mnt | grep -c '"everybody": false'
exec 3<&-
"$0" usenetfs umount mnt
"#;

#[test]
fn an_ordinary_user_mounts_for_themselves() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut command = Command::new("unshare");
    let command = command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let command = command.args([AS_A_USER]).arg(binary());
    let output = command.current_dir(place.dir.path()).output().unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    if complained.contains("unshare failed") {
        return skipped("this machine makes no name spaces for users");
    }
    assert!(
        complained.contains("nobody else can use it"),
        "{complained}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "text 3\ntext 5000\ntext 1\nmnt/b:\ntwo\n\nmnt/c:\n2\n5000\nfoo\n600 0 1\n644 7 1\n1\n",
        "{complained}"
    );
    assert!(output.status.success(), "{complained}");
    let verified = place.json(&["verify", "@lower/c"]);
    assert_eq!(
        (&verified["entries"], &verified["buckets"]),
        (&3.into(), &3.into())
    );
}

/// No descriptor is kept for what was looked at, and little memory; a million files, in full.
#[test]
fn what_is_known_costs_little() {
    let Some(place) = Place::in_memory() else {
        return;
    };
    let files = if is_full() { 1_000_000 } else { 20_000 };
    let group = place.lower("group");
    fs::create_dir(&group).unwrap();
    let folder = newsreel_host::Folder::open(&group).unwrap();
    newsreel_layout::Mark::set(&folder, newsreel_layout::Algorithm::RANGE_1024).unwrap();
    for number in 0..files {
        let bucket = group.join(format!("r{}", number / 1024 * 1024));
        if number % 1024 == 0 {
            fs::create_dir(&bucket).unwrap();
        }
        fs::File::create(bucket.join(number.to_string())).unwrap();
    }
    place.mount();
    let pid = place.pid();
    // What it asked for, not the pages of its program, which the kernel takes and gives back as memory is needed.
    let own = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mut asked_for = status
            .lines()
            .filter_map(|line| line.strip_prefix("RssAnon:"));
        let kib = asked_for.next().unwrap().trim().trim_end_matches(" kB");
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        (kib.parse::<u64>().unwrap() << 10, open)
    };
    let stat = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            fs::symlink_metadata(place.path("group").join(number.to_string())).unwrap();
        }
    };
    // What is needed once is not counted: of each of its threads, too, which many at a time wake.
    std::thread::scope(|scope| {
        for thread in 0..16 {
            scope.spawn(move || stat(thread * 60..thread * 60 + 60));
        }
    });
    // The kernel forgets names when it needs memory, or when somebody on this machine tells it to, as a test beside this one does
    // for a while: what was known then and is not any more is no part of what is measured.
    let mut tries = 0;
    let (memory, open) = loop {
        let before = own();
        stat(0..files);
        let status = place.json(&["status", "@mnt"]);
        if status["inodes_known"].as_u64() >= Some(u64::from(files)) {
            break before;
        }
        tries += 1;
        assert!(tries < 60, "{status}");
    };
    let (memory_now, open_now) = own();
    let grown = memory_now.saturating_sub(memory);
    let allowed = u64::from(files) * 64 + (8 << 20);
    assert!(grown <= allowed, "{grown} octets for {files} files");
    assert!(open_now <= open + 4, "{open} descriptors, then {open_now}");
    place.run(&["umount", "@mnt"]).unwrap();
}

/// Makes articles and removes some, until it is told that the server is gone; what is there then, and what is not.
fn work(group: &Path, worker: usize, stop: &AtomicBool) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for number in 0.. {
        let name = (worker * 100_000 + number * 7).to_string();
        if fs::write(group.join(&name), "text").is_err() {
            break;
        }
        if number % 3 == 0 {
            match fs::remove_file(group.join(&name)) {
                Ok(()) => gone.push(name),
                Err(_) => break,
            }
        } else {
            kept.push(name);
        }
        if stop.load(Ordering::Relaxed) && number > 100_000 {
            break;
        }
    }
    (kept, gone)
}

/// Where a program is that the tests use if it is installed: by the steps of the continuous integration, or by anybody.
fn program(name: &str) -> Option<PathBuf> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin");
    let output = Command::new("sh")
        .args([
            "-c",
            "PATH=\"$1:$PATH:$HOME/.cargo/bin\" command -v \"$0\"",
            name,
            tools,
        ])
        .output()
        .unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    path.lines().next().map(PathBuf::from)
}

/// The lines of the Rust package `pjdfstest` that did not say `ok`, and its summary.
fn pjdfstest(program: &Path, config: &Path, at: &Path) -> (BTreeSet<String>, String) {
    let output = Command::new(program)
        .current_dir("/")
        .arg("-c")
        .arg(config)
        .arg("-p")
        .arg(at)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let is_bad = |line: &&str| line.contains("::") && !line.trim_end().ends_with(" ok");
    let bad = said.lines().filter(is_bad);
    let bad = bad.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let summary = said.lines().find(|line| line.starts_with("Summary"));
    (
        bad.collect(),
        summary.unwrap_or("it said nothing").to_owned(),
    )
}

/// Which of its features are tried, and as whom.
const PJDFSTEST: &str = "
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.02
allow_remount = false
[dummy_auth]
entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"], [\"games\", \"games\"]]
";

/// Through managed and unmanaged directories, everything is as on the file system below.
#[test]
fn posix_holds_as_it_does_natively() {
    let Some(place) = Place::new() else {
        return;
    };
    let Some(program) = program("pjdfstest") else {
        return skipped("pjdfstest is not installed (cargo install pjdfstest)");
    };
    let config = place.dir.path().join("pjdfstest.toml");
    fs::write(&config, PJDFSTEST).unwrap();
    let native = place.dir.path().join("native");
    fs::create_dir(&native).unwrap();
    place
        .run(&["mount", "@lower", "@mnt", "-o", "dev,suid"])
        .unwrap();
    let flat = place.path("flat");
    fs::create_dir(&flat).unwrap();
    let managed = place.managed("managed");
    let (mut expected, summary) = pjdfstest(&program, &config, &native);
    assert!(summary.contains("398 total"), "{summary}");
    // The C library knows how many links a file may have by the type of the file system, and of this one it does not.
    expected.insert("link::link_count_max skipped".to_owned());
    for at in [flat, managed] {
        let (bad, summary) = pjdfstest(&program, &config, &at);
        assert_eq!(bad, expected, "{}: {summary}", at.display());
        assert!(names(&at).is_empty(), "{:?}", names(&at));
    }
    place.run(&["umount", "@mnt"]).unwrap();
    assert_eq!(place.json(&["verify", "@lower/managed"])["entries"], 0);
}

/// What `fsx` does to a file, by mode.
const FSX: [(&str, &str); 4] = [
    ("as it is", ""),
    (
        "everything",
        "flen = 262144\n[weights]\nclose_open = 1\ninvalidate = 1\nfsync = 0.1\nfdatasync = 0.1\nposix_fallocate = 1\n\
         punch_hole = 1\nsendfile = 1\nposix_fadvise = 1\ncopy_file_range = 1\n",
    ),
    (
        "aligned",
        "[opsize]\nalign = 512\nmax = 65536\n[weights]\nclose_open = 1\n",
    ),
    (
        "no mappings",
        "[weights]\nmapread = 0\nmapwrite = 0\nclose_open = 1\ntruncate = 1\n",
    ),
];

#[test]
fn fsx_finds_nothing() {
    let Some(place) = Place::new() else {
        return;
    };
    let Some(program) = program("fsx") else {
        return skipped("fsx is not installed (cargo install fsx)");
    };
    for passthrough in ["off", "0", "65536"] {
        place
            .run(&["mount", "--passthrough", passthrough, "@lower", "@mnt"])
            .unwrap();
        let managed = place.managed("managed");
        for (number, (mode, config)) in FSX.iter().enumerate() {
            let path = place.dir.path().join("fsx.toml");
            fs::write(&path, config).unwrap();
            let file = managed.join(number.to_string());
            // The first opening decides who reads and writes; it is to be one of a file that is there.
            fs::write(&file, "").unwrap();
            let mut command = Command::new("timeout");
            let command = command
                .arg("60")
                .arg(&program)
                .arg("-q")
                .arg("-f")
                .arg(&path);
            let command = command
                .args(["-N", "3000", "-S", "5", "-P"])
                .arg(place.dir.path());
            let output = command.arg(&file).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{mode}, passthrough {passthrough}: {said}"
            );
            fs::remove_file(&file).unwrap();
        }
        fs::remove_dir(&managed).unwrap();
        let status = place.json(&["status", "@mnt"]);
        let passed = status["operations"]["open_passthrough"].as_u64().unwrap();
        assert_eq!(passed > 0, passthrough != "off", "{passthrough}: {status}");
        place.run(&["umount", "@mnt"]).unwrap();
    }
}
