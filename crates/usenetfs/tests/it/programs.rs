//! Programs that walk through directories: on a mount with managed groups they find, copy and pack what they do natively.

use std::fs;
use std::path::Path;

use newsreel_layout::Mark;
use newsreel_usenetfs::Settings;

use crate::world::{World, findings, mark, shell};

const ROOT_USER: (u32, u32) = (0, 0);

/// A small spool: groups with articles, gaps, names that are no numbers or look like buckets, groups called like articles,
/// crossposts, links, a hole, other owners, modes and times.
const SPOOL: &str = "
set -e
umask 022
mkdir -p alt/test alt/2600 alt/autos/porsche/944 comp
for n in $(seq 1 7 3000); do echo \"article $n of alt.test\" > alt/test/$n; done
for n in 1 999 1000 1001 123456 0123; do echo \"article $n\" > alt/2600/$n; echo \"porsche $n\" > alt/autos/porsche/944/$n; done
for name in .overview aaa r0 345x '-dash' 'two words'; do echo \"name $name\" > \"alt/test/$name\"; done
mkdir alt/test/345; echo below > alt/test/345/7
ln alt/test/1 alt/2600/77777; ln alt/test/1 comp/1; ln alt/test/8 alt/test/5000
ln -s 1 alt/test/soft; ln -s /nowhere alt/2600/6000
truncate -s 1M alt/test/hole; echo end >> alt/test/hole
mkfifo comp/pipe
chown 7001:7100 alt/test/15 alt/2600; chmod 600 alt/test/15; chmod 4711 alt/test/22; chmod 1777 comp; chmod 2775 alt/2600
find . -type f,p -exec touch -d '2001-02-03 04:05:06.789' {} +
find . -type l -exec touch -h -d '2002-02-03 04:05:06' {} +
find . -depth -type d -exec touch -d '2003-02-03 04:05:06' {} +
";

/// All that is to be seen of a tree; but what a managed directory has otherwise: its links, its length, its set-uid bit.
const SEEN: &str = r"
find . -printf '%P %y %u %g %T@ %m %s %n %l\n' |
    sed -E 's/^(.* d .*) [0-9]+ [0-9]+ $/\1/; s/^(.* d .*) 4([0-7]{3})$/\1 \2/; s/^(.* d .*) 5([0-7]{3})$/\1 1\2/; s/^(.* d .*) 6([0-7]{3})$/\1 2\2/' |
    LC_ALL=C sort
find . -type f -exec cksum {} + | LC_ALL=C sort
";

/// The groups of it that are managed, with the number of their entries.
const MANAGED: [&str; 4] = ["alt", "alt/test", "alt/2600", "alt/autos/porsche/944"];

/// Where the same spool lies: beside the mount, and in it with managed groups.
fn spools(world: &World) -> [std::path::PathBuf; 2] {
    let (native, mounted) = (world.native().join("spool"), world.path("spool"));
    for at in [&native, &mounted] {
        fs::create_dir(at).unwrap();
    }
    manage(&mounted);
    for at in [&native, &mounted] {
        assert_eq!(shell(at, ROOT_USER, SPOOL), "0\n");
    }
    [native, mounted]
}

/// Makes the groups, empty.
fn manage(at: &Path) {
    for group in MANAGED {
        let made = shell(
            at,
            ROOT_USER,
            &format!("umask 022; mkdir -p {group}; chmod u+s {group}"),
        );
        assert_eq!(made, "0\n");
    }
}

/// Says what stands in one of two texts only.
#[track_caller]
fn assert_same(seen: &str, natively: &str, what: &str) {
    let only = |one: &str, other: &str| -> Vec<String> {
        let lines = one
            .lines()
            .filter(|line| !other.lines().any(|it| it == *line));
        lines.map(str::to_owned).collect()
    };
    let (more, missing) = (only(seen, natively), only(natively, seen));
    assert!(seen == natively, "{what}: {more:?} instead of {missing:?}");
}

#[track_caller]
fn same(script: &str, [native, mounted]: &[std::path::PathBuf; 2], least_lines: usize) {
    let natively = shell(native, ROOT_USER, script);
    let lines = natively.lines().count();
    assert!(
        natively.ends_with("0\n") && lines > least_lines,
        "{script}: {lines} lines"
    );
    assert_same(&shell(mounted, ROOT_USER, script), &natively, script);
}

/// Whether there is a program; says that what is to be shown with it is not.
fn has(program: &str) -> bool {
    let found = shell(Path::new("/"), ROOT_USER, &format!("command -v {program}"));
    if found == "127\n" || found == "1\n" {
        println!("skipped: there is no {program}");
        return false;
    }
    true
}

#[test]
fn find_and_grep_find_what_they_do_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let spools = spools(&world);
    same(SEEN, &spools, 500);
    for (script, least) in [
        ("find . | LC_ALL=C sort", 400),
        ("find . -depth -name '*00*' | LC_ALL=C sort", 10),
        ("find . -samefile alt/test/1 | LC_ALL=C sort", 2),
        (
            "find alt -links +1 -type f -printf '%P %n\\n' | LC_ALL=C sort",
            3,
        ),
        ("find . -xdev -type d -empty; find . -size +100k", 1),
        ("cd alt/test/345 && find ../.. -name 7 -path '*345*'", 1),
        (
            "grep -r --exclude=pipe -D skip 'article 1' . | LC_ALL=C sort",
            50,
        ),
        ("grep -rlD skip porsche alt | LC_ALL=C sort", 5),
        ("ls -RA | LC_ALL=C sort", 400),
        (
            "du --apparent-size -a alt/autos/porsche/944/* alt/2600/1* | LC_ALL=C sort",
            5,
        ),
    ] {
        same(script, &spools, least);
    }
    // And what is found can be removed while it is being found, as expiry does.
    same(
        "find alt -type f -name '1*' -delete && find . | LC_ALL=C sort",
        &spools,
        200,
    );
    same(
        "rm -r alt/test/[2-9]* && ls alt/test | LC_ALL=C sort",
        &spools,
        5,
    );
    let dir = world.end();
    let lower = dir.path().join("lower/spool");
    let odd: Vec<_> = findings(&lower.join("alt/aaa/test"))
        .into_iter()
        .filter(|finding| !finding.contains("relative link"))
        .collect();
    assert_eq!(odd, Vec::<String>::new());
}

/// Packed from either it is the same, and unpacked into either.
#[test]
fn tar_packs_and_unpacks_as_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    if !has("tar") {
        return;
    }
    let spools = spools(&world);
    // The set-uid bit of a managed directory is all that an archive has otherwise.
    let pack = "tar --sort=name --format=posix -cf ../$0.tar . && tar --full-time -tvf ../$0.tar | \
                sed 's/^drws/drwx/' | LC_ALL=C sort";
    same(&pack.replace("$0", "spool"), &spools, 400);
    let (native, mounted) = (&spools[0], &spools[1]);
    let seen = shell(native, ROOT_USER, SEEN);
    let unpacked = |into: &Path, archive: &Path| {
        let script = format!("tar -xpf {} && {SEEN}", archive.display());
        shell(into, ROOT_USER, &script)
    };
    let (from_native, from_mounted) = (
        native.with_file_name("spool.tar"),
        mounted.with_file_name("spool.tar"),
    );
    let plain = world.native().join("plain");
    fs::create_dir(&plain).unwrap();
    assert_same(&unpacked(&plain, &from_mounted), &seen, "from the mount");
    let again = world.path("again");
    fs::create_dir(&again).unwrap();
    manage(&again);
    assert_same(&unpacked(&again, &from_native), &seen, "into the mount");
    assert!(matches!(mark(&world.lower("again/alt")), Mark::Managed(_)));
    // Over what is there, as a restored backup.
    assert_same(&unpacked(&again, &from_mounted), &seen, "into it again");
}

/// Copied from either it is the same, into either, and a second run has nothing to do.
#[test]
fn rsync_copies_as_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    if !has("rsync") {
        return;
    }
    let spools = spools(&world);
    let (native, mounted) = (&spools[0], &spools[1]);
    let seen = shell(native, ROOT_USER, SEEN);
    let rsync = |from: &Path, to: &Path, options: &str| {
        let script = format!("rsync -aHS {options} {}/ {}/", from.display(), to.display());
        shell(Path::new("/"), ROOT_USER, &script)
    };
    let plain = world.native().join("plain");
    let [copy, all] = ["copy", "all"].map(|name| world.path(name));
    // A directory is made, and given its mode, before anything is in it: those that are managed stay so, and with an option all
    // become so.
    for (from, to, options) in [
        (mounted, &plain, "--delete"),
        (mounted, &copy, "--delete"),
        (native, &all, "--delete --chmod=Du+s"),
    ] {
        assert_eq!(rsync(from, to, options), "0\n");
        let what = to.display().to_string();
        assert_same(&shell(to, ROOT_USER, SEEN), &seen, &what);
        // By contents, too, nothing is left to be done.
        let again = rsync(from, to, &format!("{options} --checksum -i"));
        assert_eq!(again, "0\n", "{what}");
    }
    for (at, is) in [
        ("copy/alt", true),
        ("copy/alt/aaa/autos", false),
        ("all/aaa/alt", true),
    ] {
        let mark = mark(&world.lower(at));
        assert_eq!(matches!(mark, Mark::Managed(_)), is, "{at}: {mark:?}");
    }
    // What is gone at one end goes at the other.
    let removed = shell(mounted, ROOT_USER, "rm -r alt/test/1* alt/2600 comp/1");
    assert_eq!(removed, "0\n");
    assert_eq!(rsync(mounted, &plain, "--delete"), "0\n");
    // Natively, too, it leaves the times of directories in which it removes something as they become.
    let names = "find . | LC_ALL=C sort";
    let left = shell(mounted, ROOT_USER, names);
    assert_same(&shell(&plain, ROOT_USER, names), &left, "what is left");
}
