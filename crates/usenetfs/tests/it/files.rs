//! Files: locks, holes, appending, copies, room; read and written by the server, and by the kernel alone.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use newsreel_host::Folder;
use newsreel_host::node::{Handle, HandleRoot, OpenFile, Pin, Room, Seek};
use newsreel_usenetfs::{Op, Settings};

use crate::world::{World, names};

/// Both ways of reading and writing: files of any length by the kernel, or none.
const WAYS: [Option<u64>; 2] = [None, Some(0)];

#[test]
fn appenders_do_not_overwrite_each_other() {
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let path = world.managed("a").join("12");
        fs::write(&path, "").unwrap();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let file = fs::OpenOptions::new().append(true).open(path);
                    let mut file = file.unwrap();
                    for _ in 0..200 {
                        writeln!(file, "{worker}").unwrap();
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), text.lines().count()), (1600, 800), "{way:?}");
    }
}

#[test]
fn who_reads_and_writes_is_decided_by_length_and_for_all_opens() {
    let Some(world) = World::with(Settings::default(), Some(4096)) else {
        return;
    };
    let of = |op| world.view().counters().of(op);
    let path = world.managed("a").join("12");
    fs::write(&path, "short").unwrap();
    if of(Op::Passthrough) == 0 {
        println!("skipped: this kernel reads and writes nothing itself");
        return;
    }
    // Who makes a file writes it without the server, which is only asked whether it has capabilities to be taken away.
    assert_eq!(
        (of(Op::Passthrough), of(Op::Write), of(Op::GetXattr)),
        (1, 0, 1)
    );
    // The last close is told to the server a little later.
    let closed = || {
        (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            of(Op::Release) == of(Op::Open) + of(Op::Create)
        })
    };
    assert!(closed());
    let passed = || of(Op::Passthrough) - 1;
    let mut short = fs::File::open(&path).unwrap();
    assert_eq!(passed(), 0);
    // It grows while it is open: whoever opens it now reads it in the same way.
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writer.write_all(&[b'x'; 8000]).unwrap();
    let mut text = Vec::new();
    short.read_to_end(&mut text).unwrap();
    assert_eq!((text.len(), passed()), (8005, 0));
    drop((short, writer));
    assert!(closed());
    let mut reader = fs::File::open(&path).unwrap();
    let second = fs::OpenOptions::new().read(true).write(true).open(&path);
    let second = second.unwrap();
    assert_eq!(passed(), 2);
    second.write_at(b"SHORT", 0).unwrap();
    text.clear();
    reader.seek(SeekFrom::Start(0)).unwrap();
    reader.read_to_end(&mut text).unwrap();
    assert_eq!((text.len(), &text[..5]), (8005, &b"SHORT"[..]));
    assert_eq!(fs::metadata(&path).unwrap().len(), 8005);
    drop((reader, second));
    // What a reader remembers of a short file is not what a writer past the server has left of it.
    fs::write(&path, "first").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert!(closed());
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert!(closed());
    let before = passed();
    let writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_at(b"other", 0).unwrap();
    drop(writer);
    assert!(closed());
    assert_eq!(fs::read(&path).unwrap(), b"other");
    assert_eq!(passed(), before + 1);
}

/// What this way of mounting cannot do is refused in the words that programs expect.
#[test]
fn what_is_not_offered_is_refused() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    const UNNAMED: i32 = 0o20_200_000;
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).custom_flags(UNNAMED);
    let refused = options.open(world.path("")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(95), "{refused}");
}

#[test]
fn locks_hold_between_users_of_the_mount() {
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let at = world.managed("a");
        fs::write(at.join("12"), "").unwrap();
        let file = fs::File::open(at.join("12")).unwrap();
        let other = fs::File::open(at.join("12")).unwrap();
        file.lock().unwrap();
        assert!(other.try_lock().is_err());
        file.unlock().unwrap();
        other.try_lock().unwrap();
    }
}

#[test]
fn holes_are_holes_and_copies_are_copies() {
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let at = world.managed("a");
        let file = fs::File::create(at.join("12")).unwrap();
        file.write_at(b"end", 1 << 20).unwrap();
        drop(file);
        // By our own hands: the standard library looks for no holes.
        let pin = Pin::at(Folder::open(&at).unwrap(), "12".as_ref()).unwrap();
        let root = HandleRoot::of(Folder::open(&at).unwrap()).unwrap();
        let handle = Handle::of(&pin).unwrap();
        let file = OpenFile::by_handle(&root, &handle, 2).unwrap();
        assert_eq!(file.seek(Seek::Data, 0), Ok(1 << 20), "{way:?}");
        assert_eq!(file.seek(Seek::Hole, 0), Ok(0));
        file.allocate(0, 0, 2 << 20).unwrap();
        drop(file);
        fs::copy(at.join("12"), at.join("5000")).unwrap();
        let copy = fs::read(at.join("5000")).unwrap();
        assert_eq!(
            (copy.len(), &copy[1 << 20..(1 << 20) + 3]),
            (2 << 20, &b"end"[..])
        );
        // Made durable, with the directory: both buckets are reached.
        fs::File::open(at.join("5000")).unwrap().sync_all().unwrap();
        fs::File::open(&at).unwrap().sync_all().unwrap();
        assert_eq!(world.view().counters().of(Op::FsyncFolder), 1);
    }
}

#[test]
fn the_room_is_that_of_the_file_system_below() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let room = |at: &Path| Room::of(Folder::open(at).unwrap()).unwrap();
    let (below, shown) = (room(&world.lower("")), room(&world.path("")));
    assert_eq!(
        (
            below.blocks,
            below.fragment_bytes,
            below.inodes,
            below.name_bytes_max
        ),
        (
            shown.blocks,
            shown.fragment_bytes,
            shown.inodes,
            shown.name_bytes_max
        )
    );
}

/// A full file system says so, through whatever is full: a file, a bucket, a name.
#[test]
fn a_full_file_system_says_so_and_loses_nothing() {
    // An inode more or less decides whether it is a bucket or a file that finds no room.
    for (inodes, way) in [(60, None), (61, None), (60, Some(4096)), (61, Some(4096))] {
        let mount = |lower: &Path| {
            let options = format!("size=1m,nr_inodes={inodes}");
            let mut command = Command::new("mount");
            let command = command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
            assert!(command.arg(lower).status().unwrap().success());
        };
        let Some(world) = World::prepared(Settings::default(), way, mount) else {
            return;
        };
        fill(&world);
        let dir = world.end();
        newsreel_host::mounts::unmount(&dir.path().join("lower"), true).unwrap();
    }
}

/// An image of btrfs whose files may take so many octets together, mounted at a directory.
fn with_limit(at: &Path) -> bool {
    let image = at.with_extension("image");
    let script = format!(
        "truncate -s 160M {0} && mkfs.btrfs -q -f {0} && mount -o loop {0} {1} && btrfs quota enable {1} && \
         btrfs qgroup limit 4M 0/5 {1} && sync -f {1} && echo ready",
        image.display(),
        at.display()
    );
    let said = crate::world::shell(Path::new("/"), (0, 0), &script);
    if !said.contains("ready") {
        println!("skipped: there is no file system with limits of room here: {said}");
    }
    said.contains("ready")
}

/// A limit that is reached is EDQUOT, as natively; what was there stays, and what is removed makes room.
#[test]
fn a_quota_that_is_used_up_says_so_and_loses_nothing() {
    for way in WAYS {
        let mut is_limited = false;
        let prepare = |lower: &Path| is_limited = with_limit(lower);
        let Some(world) = World::prepared(Settings::default(), way, prepare) else {
            return;
        };
        if !is_limited {
            return;
        }
        let (at, flat) = (world.managed("a"), world.path("flat"));
        fs::create_dir(&flat).unwrap();
        for number in 0..20 {
            fs::write(at.join((number * 1024).to_string()), "text").unwrap();
        }
        let before = names(&at);
        let refused = [&at, &flat].map(|at| {
            let refused = fs::write(at.join("7"), vec![b'x'; 16 << 20]);
            // Where the room of the one before is not given out again yet, not even the file was made.
            match fs::remove_file(at.join("7")) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.unwrap(),
            }
            refused.unwrap_err().raw_os_error()
        });
        let after = names(&at);
        // What was removed has made room.
        write_in_time(&at.join("9"), &vec![b'x'; 1 << 20], 122);
        let dir = world.end();
        let lower = dir.path().join("lower");
        let found = crate::world::findings(&lower.join("a"));
        newsreel_host::mounts::unmount(&lower, true).unwrap();
        assert_eq!((refused, found), ([Some(122); 2], Vec::new()), "{way:?}");
        assert_eq!(after, before);
    }
}

fn fill(world: &World) {
    let at = world.managed("a");
    let full = fs::write(at.join("1"), vec![b'x'; 2 << 20]).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(28), "{full}");
    fs::remove_file(at.join("1")).unwrap();
    let mut made = Vec::new();
    for number in 0..60 {
        let name = (number * 1024).to_string();
        match fs::File::create(at.join(&name)) {
            Ok(_) => made.push(name),
            Err(full) => {
                assert_eq!(full.raw_os_error(), Some(28), "{full}");
                break;
            }
        }
    }
    made.sort();
    assert!((20..60).contains(&made.len()), "{made:?}");
    assert_eq!(names(&at), made);
    // What there is can be removed, and then there is room.
    fs::remove_file(at.join(&made[0])).unwrap();
    write_in_time(&at.join(&made[0]), b"x", 28);
}

/// Writes where there will be room: the file system gives it out again when its journal has told of what was removed.
fn write_in_time(path: &Path, octets: &[u8], full: i32) {
    let is_full = |written: &std::io::Result<()>| {
        let errno = written
            .as_ref()
            .err()
            .and_then(std::io::Error::raw_os_error);
        errno == Some(full)
    };
    let mut written = fs::write(path, octets);
    for _ in 0..100 {
        if is_full(&written) {
            std::thread::sleep(std::time::Duration::from_millis(100));
            written = fs::write(path, octets);
        }
    }
    written.unwrap();
}

/// A program may take back that it appends; the server went on appending, and octets came to be at the wrong place.
#[test]
fn who_appends_no_more_writes_where_it_wants() {
    const SCRIPT: &str = "import fcntl, os, sys\n\
        fd = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)\n\
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)\n\
        os.pwrite(fd, b'bb', 0)\n\
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)\n\
        os.write(fd, b'cc')\n";
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let path = world.managed("a").join("12");
        fs::write(&path, "AAAA").unwrap();
        let python = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(&path)
            .status();
        let Ok(status) = python else {
            println!("skipped: there is no python3");
            return;
        };
        assert!(status.success());
        assert_eq!(fs::read_to_string(&path).unwrap(), "bbAAcc", "{way:?}");
    }
}

/// `dd oflag=direct` takes the flag back for an end that is no whole block.
#[test]
fn the_odd_end_of_a_file_is_written_after_a_direct_beginning() {
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let (from, to) = (world.native().join("from"), world.managed("a").join("12"));
        fs::write(&from, vec![7; 5000]).unwrap();
        let (input, output) = (
            format!("if={}", from.display()),
            format!("of={}", to.display()),
        );
        let mut dd = Command::new("dd");
        let dd = dd.args([&input, &output]).args(["bs=4096", "oflag=direct"]);
        let done = dd.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{way:?}: {said}");
        assert_eq!(fs::read(&to).unwrap(), vec![7; 5000]);
    }
}

/// What was written through memory had the old time for a day; rsync passed it by.
#[test]
fn what_is_written_through_memory_has_a_new_time() {
    const SCRIPT: &str = "import mmap, os, sys\n\
        fd = os.open(sys.argv[1], os.O_RDWR)\n\
        m = mmap.mmap(fd, 8192)\n\
        os.close(fd)\n\
        os.stat(sys.argv[1])\n\
        m[5] = 65\n\
        m.flush()\n\
        m.close()\n";
    for way in WAYS {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let path = world.managed("a").join("12");
        fs::write(&path, vec![0; 8192]).unwrap();
        let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let before = time(&path);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let python = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(&path)
            .status();
        let Ok(status) = python else {
            println!("skipped: there is no python3");
            return;
        };
        assert!(status.success());
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let below = time(&world.lower("a").join("r0/12"));
        assert_eq!(time(&path), below, "{way:?}");
        assert!(below > before, "{way:?}");
    }
}
