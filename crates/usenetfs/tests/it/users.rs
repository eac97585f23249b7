//! Users: what two of them may do, and whose what they make is, is the same as natively.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, Pin};
use newsreel_usenetfs::Settings;

use crate::world::{World, set_mode, shell};

/// Owner, member of the owner's group, and anybody.
const USERS: [(u32, u32); 3] = [(7001, 7100), (7002, 7100), (7003, 7200)];

const OWNER: (u32, u32) = USERS[0];

/// What each of them tries; every line says whether it could be done, and what came of it.
const TRIES: &str = "
try() { name=$1; shift; if \"$@\" >/dev/null 2>&1; then echo \"$name yes\"; else echo \"$name no\"; fi; }
try list ls dir
try enter sh -c 'cd dir'
try read cat dir/1
try write sh -c 'echo x >> dir/1'
try create sh -c 'echo mine > dir/77'
stat -c 'is %u:%g %a %h' dir/77
try folder mkdir dir/2600
stat -c 'is %u:%g %a' dir/2600
try link ln dir/1 dir/1025
try symlink ln -s nowhere dir/soft
stat -c 'is %u:%g' dir/soft
try fifo mkfifo dir/pipe
try rename mv dir/2 dir/9999
try back mv dir/9999 dir/2
try chmod chmod 600 dir/1
try touch touch -d 2001-01-01 dir/1
try chown chown 7003 dir/1
try setuid chmod 4711 dir/77
stat -c 'is %a' dir/77
try execute dir/run
try xattr setfattr -n user.x -v y dir/1
try unlink rm -f dir/2
try own rm -f dir/77
try folder-away rmdir dir/2600
try sticky rm -f dir/3
try dir-mode chmod 777 dir
";

fn prepare(root: &Path, dir_mode: u32, file_mode: u32, is_managed: bool) {
    let dir = root.join("dir");
    fs::create_dir(&dir).unwrap();
    if is_managed {
        set_mode(&dir, 0o4755);
    }
    for name in ["1", "2", "3", "run"] {
        fs::write(dir.join(name), "#!/bin/sh\nexit 0\n").unwrap();
        chown(dir.join(name), Some(OWNER.0), Some(OWNER.1)).unwrap();
        set_mode(&dir.join(name), file_mode);
    }
    chown(&dir, Some(OWNER.0), Some(OWNER.1)).unwrap();
    let bit = if is_managed { 0o4000 } else { 0 };
    set_mode(&dir, dir_mode | bit);
}

/// An access control list: its owner writes, one other user reads, the owner's group may nothing.  The bits that a mode shows
/// for the group are those of the mask, which is more.
fn list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, NOBODY),
        (0x02, 4, USERS[2].0),
        (0x04, 0, NOBODY),
        (0x10, 4, NOBODY),
        (0x20, 0, NOBODY),
    ];
    let entries = entries.iter().flat_map(|(tag, bits, who)| {
        let halves = [tag.to_le_bytes(), bits.to_le_bytes()].concat();
        [halves, who.to_le_bytes().to_vec()].concat()
    });
    2_u32.to_le_bytes().into_iter().chain(entries).collect()
}

/// Lists that are there below were not looked at: the group could do what only the mask allows.
#[test]
fn lists_below_are_obeyed_and_cannot_be_changed() {
    let name = OsStr::new("system.posix_acl_access");
    let (file, list) = (OsStr::new("1"), list());
    let mut has_lists = false;
    let prepare = |lower: &Path| {
        fs::write(lower.join(file), "text").unwrap();
        chown(lower.join(file), Some(OWNER.0), Some(OWNER.1)).unwrap();
        let pin = Pin::at(Folder::open(lower).unwrap(), file).unwrap();
        has_lists = pin.set_attribute(name, &list, 0).is_ok();
    };
    let Some(world) = World::prepared(Settings::default(), None, prepare) else {
        return;
    };
    if !has_lists {
        println!("skipped: there are no access control lists here");
        return;
    }
    let reads = |root: &Path| {
        let tries = "cat 1 > /dev/null 2>&1 && echo yes || echo no";
        USERS.map(|user| shell(root, user, tries))
    };
    let expected = ["yes\n0\n", "no\n0\n", "yes\n0\n"];
    for root in [world.lower(""), world.path("")] {
        assert_eq!(reads(&root), expected, "{root:?}");
    }
    let pin = Pin::at(Folder::open(&world.path("")).unwrap(), file).unwrap();
    assert_eq!(pin.attribute(name).unwrap(), list);
    for change in [
        pin.set_attribute(name, &list, 0),
        pin.remove_attribute(name),
    ] {
        assert_eq!(change, Err(Errno::OPNOTSUPP));
    }
}

#[test]
fn lists_are_inherited_less_the_umask() {
    let mut has_lists = false;
    let prepare = |lower: &Path| {
        for name in ["flat", "managed"] {
            fs::create_dir(lower.join(name)).unwrap();
            let pin = Pin::of_folder(&lower.join(name)).unwrap();
            let name = OsStr::new("system.posix_acl_default");
            has_lists = pin.set_attribute(name, &list(), 0).is_ok();
        }
    };
    let Some(world) = World::prepared(Settings::default(), None, prepare) else {
        return;
    };
    if !has_lists {
        println!("skipped: there are no access control lists here");
        return;
    }
    set_mode(&world.path("managed"), 0o4755);
    let inherited = |at: &Path| {
        assert_eq!(shell(at, (0, 0), "umask 077; touch 1000"), "0\n");
        let pin = Pin::at(Folder::open(at).unwrap(), OsStr::new("1000")).unwrap();
        pin.attribute(OsStr::new("system.posix_acl_access"))
            .unwrap()
    };
    // The fourth entry is the mask.
    let mut masked = list();
    masked[4 + 3 * 8 + 2] = 0;
    for name in ["flat", "managed"] {
        assert_eq!(inherited(&world.path(name)), masked, "{name}");
    }
    fs::remove_file(world.path("flat/1000")).unwrap();
    assert_eq!(inherited(&world.lower("flat")), list());
}

#[test]
fn users_may_do_what_they_may_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let mut said = String::new();
    let dir_modes = [
        0o755, 0o775, 0o777, 0o1777, 0o700, 0o750, 0o2775, 0o3777, 0o555,
    ];
    let file_modes = [0o644, 0o660, 0o755];
    for (dir_mode, file_mode) in dir_modes.into_iter().zip(file_modes.into_iter().cycle()) {
        for user in USERS.into_iter().chain([(0, 0)]) {
            let mut seen = Vec::new();
            for (root, is_managed) in [
                (world.native(), false),
                (world.path(""), false),
                (world.path(""), true),
            ] {
                prepare(&root, dir_mode, file_mode, is_managed);
                seen.push(shell(&root, user, TRIES));
                fs::remove_dir_all(root.join("dir")).unwrap();
            }
            let what = format!("{dir_mode:o} {file_mode:o} {user:?}");
            assert_eq!(seen[1], seen[0], "flat: {what}");
            assert_eq!(seen[2], seen[0], "managed: {what}");
            said.push_str(&seen[0]);
        }
    }
    for word in [
        "create yes",
        "create no",
        "unlink no",
        "sticky no",
        "is 7003:7100 ",
    ] {
        assert!(said.contains(word), "nobody ever saw {word:?}: {said}");
    }
    assert!(!said.contains("not found"), "{said}");
}
