//! Names: links, renames, directories called like articles, what is open and has no name, where `..` leads.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, fchown, symlink};
use std::path::Path;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, FolderStream, Renaming};
use newsreel_layout::{Algorithm, Mark};
use newsreel_usenetfs::{Changes, ROOT, Settings};

use crate::world::{
    SELF, World, bare_view, by, findings, make_folder, mark, names, natively, shell,
};

const ROOT_USER: (u32, u32) = (0, 0);

/// The inode of `..` as a listing says; programs such as `ls` ask again.
fn listed_above(at: &Path) -> u64 {
    let mut inode = 0;
    let mut stream = FolderStream::of(Folder::open(at).unwrap()).unwrap();
    stream
        .fill(0, |found| {
            if found.name == ".." {
                inode = found.inode;
            }
            Ok(true)
        })
        .unwrap();
    inode
}

#[test]
fn crossposts_are_one_file_under_many_names() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let (a, b) = (world.managed("a"), world.managed("b"));
    let c = world.path("c");
    fs::create_dir(&c).unwrap();
    fs::write(a.join("1"), "text").unwrap();
    let all = [a.join("1"), b.join("5000"), c.join("7"), a.join("foo")];
    for name in &all[1..] {
        fs::hard_link(&all[0], name).unwrap();
    }
    let first = fs::metadata(&all[0]).unwrap();
    for name in &all {
        let is = fs::metadata(name).unwrap();
        assert_eq!(
            (is.ino(), is.nlink()),
            (first.ino(), 4),
            "{}",
            name.display()
        );
    }
    fs::write(&all[2], "other").unwrap();
    fs::remove_file(&all[0]).unwrap();
    assert_eq!(fs::read_to_string(&all[1]).unwrap(), "other");
    assert_eq!(fs::metadata(&all[3]).unwrap().nlink(), 3);
    assert_eq!(
        fs::metadata(world.lower("a/aaa/foo")).unwrap().ino(),
        first.ino()
    );
}

#[test]
fn dots_never_lead_into_a_bucket() {
    for algorithm in Algorithm::ALL {
        let Some(world) = World::new(by(algorithm)) else {
            return;
        };
        // alt.autos.porsche.944, and a managed one in a managed one.
        let outer = world.managed("outer");
        for name in ["944", "foo"] {
            let inner = outer.join(name);
            fs::create_dir(&inner).unwrap();
            fs::create_dir(inner.join("flat")).unwrap();
            fs::create_dir(inner.join("flat/77")).unwrap();
        }
        let inner = outer.join("2600");
        fs::create_dir(&inner).unwrap();
        crate::world::set_mode(&inner, 0o4755);
        fs::create_dir(inner.join("345")).unwrap();
        for (below, above) in [
            ("outer/944", "outer"),
            ("outer/foo", "outer"),
            ("outer/944/flat", "outer/944"),
            ("outer/foo/flat", "outer/foo"),
            ("outer/foo/flat/77", "outer/foo/flat"),
            ("outer/2600", "outer"),
            ("outer/2600/345", "outer/2600"),
            ("outer", ""),
        ] {
            let expected = fs::metadata(world.path(above)).unwrap().ino();
            // As the kernel resolves it, and as the listing says.
            let resolved = fs::metadata(world.path(below).join("..")).unwrap().ino();
            assert_eq!(resolved, expected, "{algorithm} {below}");
            assert_eq!(
                listed_above(&world.path(below)),
                expected,
                "{algorithm} {below}"
            );
        }
        assert_eq!(
            shell(&inner.join("345"), ROOT_USER, "cd .. && ls"),
            "345\n0\n"
        );
    }
}

#[test]
fn an_open_file_without_a_name_still_works() {
    for is_by_name in [false, true] {
        without_a_name(Settings {
            is_by_name,
            ..Settings::default()
        });
    }
}

fn without_a_name(settings: Settings) {
    let Some(world) = World::with(settings, Some(4096)) else {
        return;
    };
    let at = world.managed("a");
    for len in [10, 10_000] {
        let path = at.join("12");
        fs::write(&path, vec![b'x'; len]).unwrap();
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"more").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        assert_eq!((text.len(), &text[len..]), (len + 4, &b"more"[..]));
        file.set_len(3).unwrap();
        file.sync_all().unwrap();
        // Attributes are changed by the descriptor, too: the kernel asks for that by the inode, not by what is open.
        let longer = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        file.set_permissions(PermissionsExt::from_mode(0o640))
            .unwrap();
        fchown(&file, Some(7001), Some(7100)).unwrap();
        file.set_modified(longer).unwrap();
        let is = file.metadata().unwrap();
        assert_eq!(
            (is.len(), is.mode() & 0o7777, is.uid(), is.gid()),
            (3, 0o640, 7001, 7100)
        );
        assert_eq!(is.modified().unwrap(), longer);
        // Its bucket went with its name.
        assert!(!world.lower("a/r0").exists());
    }
}

/// Where files are reached by name, `fchmod` of one that was open was ESTALE when the name that was seen last was gone and
/// others were left, and when very many others had lost their names since.
#[test]
fn what_is_open_is_reached_whatever_became_of_its_names() {
    for is_by_name in [false, true] {
        let settings = Settings {
            is_by_name,
            ..Settings::default()
        };
        let Some((_dir, view)) = bare_view(settings) else {
            return;
        };
        let (a, b) = (
            make_folder(&view, "a", 0o4755),
            make_folder(&view, "b", 0o755),
        );
        let make = |parent: u64, name: &str| {
            let made = view.create(parent, OsStr::new(name), 0o644, 2, SELF);
            let (entry, file) = made.unwrap();
            (entry.node, file)
        };
        let (one, _open) = make(a, "1");
        let (two, _open) = make(a, "2");
        view.link(two, b, OsStr::new("other")).unwrap();
        view.unlink(b, OsStr::new("other")).unwrap();
        view.unlink(a, OsStr::new("1")).unwrap();
        for number in 10..5000 {
            let name = number.to_string();
            let (_, file) = make(b, &name);
            view.release(file);
            view.unlink(b, OsStr::new(&name)).unwrap();
        }
        for node in [one, two] {
            let changes = Changes {
                mode: Some(0o600),
                uid: Some(7001),
                ..Changes::default()
            };
            let stat = view.change(node, &changes).unwrap();
            assert_eq!(
                (stat.inode, stat.mode & 0o7777, stat.uid),
                (node, 0o600, 7001)
            );
            view.set_attribute(node, OsStr::new("user.x"), b"x", 0)
                .unwrap();
            assert_eq!(view.attribute(node, OsStr::new("user.x")).unwrap(), b"x");
            assert_eq!(
                view.attributes(node, None).unwrap().links,
                u32::from(node == two)
            );
        }
    }
}

#[test]
fn directories_move_with_their_bit() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("alt.test");
    fs::write(at.join("5"), "").unwrap();
    let empty = world.managed("empty");
    fs::write(empty.join("7"), "").unwrap();
    fs::remove_file(empty.join("7")).unwrap();
    fs::write(empty.join("foo"), "").unwrap();
    // Not empty: it stays.
    assert!(fs::rename(&at, &empty).is_err());
    fs::remove_file(empty.join("foo")).unwrap();
    assert!(world.lower("empty/aaa").exists(), "an empty bucket is left");
    fs::rename(&at, &empty).unwrap();
    assert_eq!(names(&world.path("")), ["empty"]);
    assert_eq!(names(&empty), ["5"]);
    assert_eq!(
        mark(&world.lower("empty")),
        Mark::Managed(Algorithm::RANGE_1024)
    );
    fs::write(empty.join("6"), "").unwrap();
    assert_eq!(natively(&world.lower("empty")), ["5", "6"]);
    fs::remove_file(empty.join("5")).unwrap();
    assert!(fs::remove_dir(&empty).is_err());
    fs::remove_file(empty.join("6")).unwrap();
    fs::remove_dir(&empty).unwrap();
    assert!(!world.lower("empty").exists());
}

#[test]
fn any_octets_are_names_and_255_of_them() {
    let Some(world) = World::new(by(Algorithm::YYY)) else {
        return;
    };
    let at = world.managed("a");
    let longest = "9".repeat(255);
    let odd = OsString::from_vec(b"\xff\n \\".to_vec());
    for name in [
        longest.clone().into(),
        odd,
        "aaa".into(),
        "098".into(),
        "x".repeat(255).into(),
    ] {
        fs::write(at.join(&name), "text").unwrap();
        assert_eq!(fs::read_to_string(at.join(&name)).unwrap(), "text");
    }
    let too_long = fs::write(at.join("9".repeat(256)), "").unwrap_err();
    assert_eq!(too_long.raw_os_error(), Some(36));
    assert!(world.lower("a").join("999").join(longest).exists());
    assert_eq!(findings(&world.lower("a")), Vec::<String>::new());
}

#[test]
fn text_of_links_is_kept_and_resolves_in_the_view() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("a");
    fs::write(at.join("1"), "one").unwrap();
    fs::write(world.path("beside"), "beside").unwrap();
    for (name, target) in [("5000", "1"), ("soft", "../beside"), ("9", "/dev/null")] {
        symlink(target, at.join(name)).unwrap();
        assert_eq!(fs::read_link(at.join(name)).unwrap().to_str(), Some(target));
    }
    assert_eq!(fs::read_to_string(at.join("5000")).unwrap(), "one");
    assert_eq!(fs::read_to_string(at.join("soft")).unwrap(), "beside");
}

#[test]
fn what_is_strange_below_is_in_no_view() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("a");
    fs::write(at.join("1"), "").unwrap();
    let victim = world.native();
    fs::write(world.lower("a/stray"), "").unwrap();
    fs::write(world.lower("a/r0/9999"), "").unwrap();
    symlink(&victim, world.lower("a/r1024")).unwrap();
    symlink(&victim, world.lower("a/aaa")).unwrap();
    assert_eq!(names(&at), ["1"]);
    for name in ["stray", "9999", "r0", "aaa"] {
        assert!(!at.join(name).exists(), "{name}");
    }
    // Nothing is made behind a link that stands in a bucket's place.
    assert!(fs::write(at.join("1025"), "").is_err());
    assert!(fs::write(at.join("foo"), "").is_err());
    assert_eq!(names(&victim), Vec::<String>::new());
}

/// The kernel looks a name up once; whatever becomes of the name, the node leads to the same file.
#[test]
fn nodes_lead_to_their_files_wherever_these_go() {
    for is_by_name in [false, true] {
        let settings = Settings {
            is_by_name,
            ..Settings::default()
        };
        let Some((_dir, view)) = bare_view(settings) else {
            return;
        };
        let (a, b) = (
            make_folder(&view, "a", 0o4755),
            make_folder(&view, "b", 0o755),
        );
        let make = |parent: u64, name: &str| {
            let made = view.create(parent, OsStr::new(name), 0o644, 2, SELF);
            let (entry, file) = made.unwrap();
            view.release(file);
            entry.node
        };
        let rename = |from: u64, name: &str, to: u64, new_name: &str, how: Renaming| {
            view.rename(from, OsStr::new(name), to, OsStr::new(new_name), how)
                .unwrap();
        };
        let is_there = |node: u64| {
            let stat = view.attributes(node, None).unwrap();
            assert_eq!(stat.inode, node, "by name: {is_by_name}");
            let file = view.open(node, 0).unwrap();
            view.release(file);
        };
        let (one, two) = (make(a, "1"), make(b, "two"));
        rename(a, "1", b, "one", Renaming::default());
        is_there(one);
        let exchange = Renaming {
            no_replace: false,
            exchange: true,
        };
        let three = make(a, "3");
        rename(a, "3", b, "two", exchange);
        is_there(two);
        is_there(three);
        // With the directory that it lies in.
        let five = make(a, "5000");
        rename(ROOT, "a", ROOT, "c", Renaming::default());
        is_there(five);
        let removed = make(a, "7");
        view.unlink(a, OsStr::new("7")).unwrap();
        assert_eq!(view.attributes(removed, None).unwrap().links, 0);
        view.forget(removed, 1);
        assert_eq!(view.attributes(removed, None), Err(Errno::STALE));
    }
}

/// A thread that had not made a file for somebody yet took room for buckets beyond every quota.
#[test]
fn limits_of_room_hold_for_whatever_takes_some() {
    let Some((_dir, view)) = bare_view(by(Algorithm::RANGE_1024)) else {
        return;
    };
    // CAP_SYS_RESOURCE, which no quota holds for.
    let goes_beyond = || {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap() & 1 << 24 != 0
    };
    if !std::thread::scope(|scope| scope.spawn(goes_beyond).join().unwrap()) {
        println!("skipped: whoever runs this goes beyond no quota anyway");
        return;
    }
    let group = make_folder(&view, "group", 0o4755);
    let made = view.make_node(group, OsStr::new("1"), 0o100_644, (0, 0), SELF);
    let node = made.unwrap().node;
    let name = OsStr::new::<str>;
    let order = (name("user.usenetfs.convert.x"), "to yyy".parse().unwrap());
    let acts: [&(dyn Fn() -> bool + Sync); 4] = [
        &|| view.link(node, group, name("2000")).is_ok(),
        &|| {
            let how = Renaming::default();
            view.rename(group, name("1"), group, name("4000"), how)
                .is_ok()
        },
        &|| view.set_attribute(node, name("user.x"), b"", 0).is_ok(),
        &|| view.convert(group, order, SELF).is_ok(),
    ];
    for (at, act) in acts.into_iter().enumerate() {
        std::thread::scope(|scope| {
            let acting = scope.spawn(move || (act(), goes_beyond()));
            assert_eq!(acting.join().unwrap(), (true, false), "{at}");
        });
    }
}
