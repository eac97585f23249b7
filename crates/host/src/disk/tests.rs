//! One suite for every disk: what a caller may rely on, whichever disk was passed in.

use std::io::IoSlice;
use std::path::Path;

use super::*;
use crate::Op;

/// Runs `check` on the real disk (in a fresh directory) and on the memory disk.
fn on_every_disk(check: impl Fn(&dyn Disk, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    check(&RealDisk, dir.path());
    let memory = MemoryDisk::new();
    memory.create_dir_all(Path::new("/spool")).unwrap();
    check(&memory, Path::new("/spool"));
}

fn kind<T: Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn open_modes() {
    on_every_disk(|disk, dir| {
        let path = dir.join("a");
        assert_eq!(kind(disk.open(&path, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(
            kind(disk.open(&path, OpenMode::ReadWrite)),
            ErrorKind::NotFound
        );
        assert!(!disk.exists(&path).unwrap());
        disk.open(&path, OpenMode::CreateNew)
            .unwrap()
            .write_at(b"x", 0)
            .unwrap();
        assert!(disk.exists(&path).unwrap());
        assert_eq!(
            kind(disk.open(&path, OpenMode::CreateNew)),
            ErrorKind::Exists
        );
        let again = disk.open(&path, OpenMode::CreateOrOpen).unwrap();
        assert_eq!(read_all(&*again), b"x", "CreateOrOpen must not cut");
        let reader = disk.open(&path, OpenMode::Read).unwrap();
        assert_eq!(kind(reader.write_at(b"y", 0)), ErrorKind::Io);
        let lost = dir.join("no/such/dir");
        assert_eq!(
            kind(disk.open(&lost, OpenMode::CreateNew)),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn reads_and_writes_at_offsets() {
    on_every_disk(|disk, dir| {
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        assert!(file.is_empty().unwrap());
        file.write_at(b"hello", 4094).unwrap();
        assert_eq!(file.len().unwrap(), 4099);
        let mut buf = [9; 8];
        assert_eq!(file.read_at(&mut buf, 4093).unwrap(), 6);
        assert_eq!(&buf, b"\0hello\x09\x09");
        assert_eq!(file.read_at(&mut buf, 5000).unwrap(), 0);
        let error = file.read_exact_at(&mut buf, 4095).unwrap_err();
        assert!(matches!(
            error,
            Error::ShortRead {
                offset: 4095,
                wanted: 8,
                got: 4,
                ..
            }
        ));
        let cached = file.read_cached_at(&mut buf, 4093).unwrap();
        assert!(matches!(cached, None | Some(6)), "{cached:?}");
    });
}

/// What will be needed is in memory soon, whatever its length.
#[test]
fn what_will_be_needed_comes_into_memory() {
    on_every_disk(|disk, dir| {
        let len = 3 << 20;
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(&vec![7; len], 0).unwrap();
        file.sync_all().unwrap();
        let mut buf = [0; 100];
        file.read_exact_at(&mut buf, 0).unwrap();
        if file.read_cached_at(&mut buf, 0).unwrap().is_none() {
            eprintln!("skipped: this file system does not say what is in memory");
            return;
        }
        file.drop_cache(0, len as u64).unwrap();
        file.will_need(4096, len as u64 - 4096);
        let mut is_there = |offset| {
            let cached = file.read_cached_at(&mut buf, offset);
            matches!(cached, Ok(Some(100)))
        };
        for _ in 0..1000 {
            if [4096, 1 << 20, 2 << 20, len as u64 - 100]
                .into_iter()
                .all(&mut is_there)
            {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("it does not come into memory");
    });
}

#[test]
fn vectored_writes_take_any_number_of_parts() {
    on_every_disk(|disk, dir| {
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let octets: Vec<u8> = (0..5000_u32)
            .flat_map(|n| (n as u16).to_le_bytes())
            .collect();
        let parts: Vec<IoSlice<'_>> = octets.chunks(3).map(IoSlice::new).collect();
        file.write_vectored_at(&parts, 10).unwrap();
        assert_eq!(read_all(&*file).split_off(10), octets);
        file.write_vectored_at(&[], 10).unwrap();
    });
}

#[test]
fn direct_writes_are_writes() {
    on_every_disk(|disk, dir| {
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.zero_fill(0, 1 << 20).unwrap();
        assert_eq!(
            read_all(&*file).len(),
            1 << 20,
            "read before, so that a stale page would be seen"
        );
        let mut buf = AlignedBuf::new();
        buf.append(300_000).fill(7);
        buf.pad_to_multiple(DIRECT_ALIGN_BYTES);
        file.write_direct_at(&buf, 8192).unwrap();
        file.write_direct_at(&buf[..5000], 1 << 20)
            .expect("odd length: an ordinary write");
        file.write_direct_at(&buf[1..4097], 4097)
            .expect("odd place: an ordinary write");
        file.write_direct_at(&[], 0).unwrap();
        file.sync_data().unwrap();
        let mut model = vec![0; 1 << 20];
        model[8192..308_192].fill(7);
        model[4097..8193].fill(7);
        model.extend_from_slice(&[7; 5000]);
        assert!(read_all(&*file) == model);
    });
}

#[test]
fn direct_reads_are_reads() {
    on_every_disk(|disk, dir| {
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let octets: Vec<u8> = (0..300_001_u32).map(|n| (n * 7 % 251) as u8).collect();
        file.write_at(&octets, 0).unwrap();
        // Who may only read may do so around the cache as well, and sees what has not come to the medium yet.
        let file = disk.open(&dir.join("a"), OpenMode::Read).unwrap();
        let mut buf = AlignedBuf::new();
        buf.append(8 * DIRECT_ALIGN_BYTES).fill(0);
        file.read_exact_direct_at(&mut buf, 8192).unwrap();
        assert!(*buf == octets[8192..8192 + buf.len()]);
        let end = octets.len() / DIRECT_ALIGN_BYTES * DIRECT_ALIGN_BYTES;
        assert_eq!(
            file.read_direct_at(&mut buf, end as u64).unwrap(),
            octets.len() - end
        );
        assert_eq!(buf[..octets.len() - end], octets[end..]);
        let short = file.read_exact_direct_at(&mut buf, end as u64).unwrap_err();
        assert!(matches!(short, Error::ShortRead { .. }), "{short}");
        file.read_exact_direct_at(&mut buf[1..100], 3)
            .expect("odd place: an ordinary read");
        assert_eq!(buf[1..100], octets[3..102]);
        assert_eq!(file.read_direct_at(&mut [], 0).unwrap(), 0);
    });
}

#[test]
fn zero_fill_reserve_and_set_len() {
    on_every_disk(|disk, dir| {
        let file = disk.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 20_000], 0).unwrap();
        file.zero_fill(100, 12_000).unwrap();
        let bytes = read_all(&*file);
        assert!(bytes[..100].iter().all(|b| *b == 7) && bytes[12_100..].iter().all(|b| *b == 7));
        assert!(bytes[100..12_100].iter().all(|b| *b == 0));
        file.zero_fill(19_000, 3_000_000).unwrap();
        assert_eq!(file.len().unwrap(), 3_019_000);
        assert!(read_all(&*file)[19_000..].iter().all(|b| *b == 0));
        file.reserve(0, 4_000_000).unwrap();
        assert_eq!(file.len().unwrap(), 4_000_000);
        file.set_len(50).unwrap();
        file.set_len(200).unwrap();
        assert_eq!(read_all(&*file), [vec![7; 50], vec![0; 150]].concat());
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        file.drop_cache(0, 200).unwrap();
    });
}

#[test]
fn room_is_given_back() {
    on_every_disk(|disk, dir| {
        let path = dir.join("a");
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let blocks = || rustix::fs::stat(&path).map(|stat| stat.st_blocks);
        let before = blocks();
        file.give_back(8192, 1 << 19).unwrap();
        file.sync_all().unwrap();
        let (from, to) = (8192, 8192 + (1 << 19));
        let octets = read_all(&*file);
        assert_eq!(octets.len(), 1 << 20);
        assert!(
            octets[..from]
                .iter()
                .chain(&octets[to..])
                .all(|octet| *octet == 7)
        );
        assert!(octets[from..to].iter().all(|octet| *octet == 0));
        if let (Ok(before), Ok(after)) = (before, blocks()) {
            assert!(after <= before - (1 << 10), "{before} and {after} blocks");
        }
    });
}

#[test]
fn names() {
    on_every_disk(|disk, dir| {
        let deep = dir.join("x/y");
        disk.create_dir_all(&deep).unwrap();
        disk.create_dir_all(&deep).unwrap();
        for name in ["b", "a", "c"] {
            let file = disk.open(&deep.join(name), OpenMode::CreateNew).unwrap();
            file.write_at(name.as_bytes(), 2).unwrap();
        }
        disk.rename(&deep.join("c"), &deep.join("a")).unwrap();
        disk.sync_dir(&deep).unwrap();
        let entry = |name: &str, len, is_dir| DirEntry {
            name: name.to_owned(),
            len,
            is_dir,
        };
        assert_eq!(
            disk.list(&deep).unwrap(),
            [entry("a", 3, false), entry("b", 3, false)]
        );
        assert_eq!(disk.list(&dir.join("x")).unwrap(), [entry("y", 0, true)]);
        assert_eq!(read_whole(disk, &deep.join("a"), 3).unwrap(), b"\0\0c");
        assert_eq!(kind(read_whole(disk, &deep.join("a"), 2)), ErrorKind::Io);
        disk.remove(&deep.join("a")).unwrap();
        assert_eq!(kind(disk.remove(&deep.join("a"))), ErrorKind::NotFound);
        assert_eq!(
            kind(disk.rename(&deep.join("a"), &deep.join("z"))),
            ErrorKind::NotFound
        );
        assert_eq!(kind(disk.list(&dir.join("none"))), ErrorKind::NotFound);
        assert_eq!(kind(disk.sync_dir(&dir.join("none"))), ErrorKind::NotFound);
        assert!(disk.free_bytes(dir).unwrap() > 0);
    });
}

#[test]
fn a_file_may_have_several_names() {
    on_every_disk(|disk, dir| {
        let [first, second] = ["a", "b"].map(|name| dir.join(name));
        assert!(!disk.has_entries(dir).unwrap());
        assert_eq!(kind(disk.has_entries(&first)), ErrorKind::NotFound);
        let link = disk.link(&first, &second);
        assert_eq!(kind(link), ErrorKind::NotFound, "nothing to link to");
        let file = disk.open(&first, OpenMode::CreateNew).unwrap();
        file.write_at(b"text", 0).unwrap();
        disk.link(&first, &second).unwrap();
        assert!(disk.has_entries(dir).unwrap());
        assert_eq!(kind(disk.link(&first, &second)), ErrorKind::Exists);
        assert_eq!(kind(disk.link(&first, dir)), ErrorKind::Exists);
        let lost = disk.link(&first, &dir.join("no/such/dir"));
        assert_eq!(kind(lost), ErrorKind::NotFound);
        let other = disk.open(&second, OpenMode::ReadWrite).unwrap();
        other.write_at(b"T", 0).unwrap();
        disk.remove(&first).unwrap();
        assert_eq!(read_all(&*file), b"Text");
        assert_eq!(read_all(&*other), b"Text");
    });
    let memory = MemoryDisk::new();
    let dir = Path::new("/spool");
    memory.create_dir_all(dir).unwrap();
    let [first, second] = ["a", "b"].map(|name| dir.join(name));
    let file = memory.open(&first, OpenMode::CreateNew).unwrap();
    memory.link(&first, &second).unwrap();
    memory.sync_file_system(dir).unwrap();
    file.write_at(b"x", 0).unwrap();
    // Whatever a power cut leaves, it leaves under both names.
    for seed in 0..20 {
        let left = memory.crash(seed);
        let read = |path| read_all(&*left.open(path, OpenMode::Read).unwrap());
        assert_eq!(read(&first), read(&second), "{seed}");
    }
    let left = memory.crash_losing_all();
    left.open(&first, OpenMode::ReadWrite)
        .unwrap()
        .write_at(b"y", 0)
        .unwrap();
    assert_eq!(
        read_all(&*left.open(&second, OpenMode::Read).unwrap()),
        b"y"
    );
}

/// Where two file systems are to be had, as memory and a disk mostly are.
#[test]
fn a_name_on_another_file_system_is_a_symbolic_link() {
    let here = tempfile::tempdir().unwrap();
    let Ok(there) = tempfile::tempdir_in("/dev/shm") else {
        return skip("there is no /dev/shm");
    };
    let device = |dir: &Path| std::os::unix::fs::MetadataExt::dev(&dir.metadata().unwrap());
    if device(here.path()) == device(there.path()) {
        return skip("/dev/shm is on the same file system");
    }
    let system = |dir: &Path| RealDisk.file_system(dir).unwrap();
    assert!(system(here.path()) != system(there.path()));
    RealDisk.make_dirs(&here.path().join("sub")).unwrap();
    assert_eq!(system(here.path()), system(&here.path().join("sub")));
    let [first, second] = [here.path().join("a"), there.path().join("b")];
    let file = RealDisk.open(&first, OpenMode::CreateNew).unwrap();
    file.write_at(b"text", 0).unwrap();
    RealDisk.link(&first, &second).unwrap();
    assert_eq!(kind(RealDisk.link(&first, &second)), ErrorKind::Exists);
    let read = RealDisk.open_cached(&second).unwrap().unwrap();
    assert_eq!(read_all(&*read), b"text");
    RealDisk.remove(&second).unwrap();
    assert_eq!(
        read_all(&*RealDisk.open(&first, OpenMode::Read).unwrap()),
        b"text"
    );
}

fn skip(why: &str) {
    println!("skipped: {why}");
}

#[test]
fn an_open_file_outlives_its_name() {
    on_every_disk(|disk, dir| {
        let path = dir.join("a");
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(b"still here", 0).unwrap();
        disk.remove(&path).unwrap();
        let fresh = disk.open(&path, OpenMode::CreateNew).unwrap();
        assert!(fresh.is_empty().unwrap());
        assert_eq!(read_all(&*file), b"still here");
    });
}

#[test]
fn locks_are_exclusive_and_name_their_holder() {
    on_every_disk(|disk, dir| {
        let path = dir.join("lock");
        let lock = disk.lock(&path).unwrap();
        assert_eq!(lock.path(), path);
        let error = disk.lock(&path).unwrap_err();
        let own = Some(std::process::id());
        assert!(
            matches!(error, Error::Locked { pid, .. } if pid == own),
            "{error}"
        );
        drop(lock);
        disk.lock(&path).unwrap();
    });
}

#[test]
fn directories_are_locked_as_files_are() {
    on_every_disk(|disk, dir| {
        let lock = disk.lock(dir).unwrap();
        let error = disk.lock(dir).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        drop(lock);
        disk.lock(dir).unwrap();
    });
    // One may be reached by a link.
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    let dir = folder.path().join("dir");
    RealDisk.create_dir_all(&dir).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a disk must cope with"
    )]
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let _lock = RealDisk.lock(&link).unwrap();
    RealDisk.lock(&dir).unwrap_err();
}

/// Articles are for everybody on the machine, what else the server keeps is not; who runs it may take away more.
#[test]
fn files_are_for_those_whom_they_are_meant_for() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let status = read_small(Path::new("/proc/self/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = u32::from_str_radix(mask.unwrap().trim(), 8).unwrap();
    for (name, how, mode) in [
        ("article", OpenMode::CreateForAll, 0o644),
        ("other", OpenMode::CreateNew, 0o640),
        ("third", OpenMode::CreateOrOpen, 0o640),
    ] {
        let path = dir.path().join(name);
        RealDisk.open(&path, how).unwrap();
        let facts = path.metadata().unwrap();
        assert_eq!(facts.mode() & 0o777, mode & !mask, "{name}");
        let again = RealDisk.open(&path, how).map(drop);
        assert_eq!(again.is_err(), how != OpenMode::CreateOrOpen, "{name}");
    }
}

/// Reading an article writes nothing, where the file is ours (notes of each access would).
#[test]
fn reading_notes_no_time_of_access() {
    const NOATIME: u32 = 0o1_000_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    RealDisk.open(&path, OpenMode::CreateNew).unwrap();
    let flags = |how| {
        let _file = RealDisk.open(&path, how).unwrap();
        let open = Path::new("/proc/self/fd").read_dir().unwrap();
        let mut numbers = open.flatten().map(|entry| entry.file_name());
        let leads_there = |number: &std::ffi::OsString| {
            let link = Path::new("/proc/self/fd").join(number).read_link();
            link.is_ok_and(|target| target == path)
        };
        let number = numbers.find(leads_there).unwrap();
        let facts = read_small(&Path::new("/proc/self/fdinfo").join(number)).unwrap();
        let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"));
        u32::from_str_radix(flags.unwrap().trim(), 8).unwrap()
    };
    assert_eq!(flags(OpenMode::Read) & NOATIME, NOATIME);
    assert_eq!(flags(OpenMode::ReadWrite) & NOATIME, 0);
}

#[test]
fn a_pipe_in_a_files_place_holds_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (done, waits) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::CreateOrOpen] {
            let error = RealDisk.open(&path, mode).unwrap_err();
            assert!(error.to_string().contains("a pipe"), "{error}");
        }
        let error = RealDisk.lock(&path).unwrap_err();
        assert!(error.to_string().contains("a pipe"), "{error}");
        done.send(()).unwrap();
    });
    waits
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("opening must not wait for a writer");
}

#[test]
fn a_lock_is_not_written_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (letter, link) = (dir.path().join("letter"), dir.path().join("lock"));
    RealDisk
        .open(&letter, OpenMode::CreateNew)
        .unwrap()
        .write_at(b"precious", 0)
        .unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a disk must cope with"
    )]
    std::os::unix::fs::symlink(&letter, &link).unwrap();
    let error = RealDisk.lock(&link).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    let file = RealDisk.open(&letter, OpenMode::Read).unwrap();
    assert_eq!(read_all(&*file), b"precious");
}

#[test]
fn replacing_a_file_survives_an_old_leftover() {
    on_every_disk(|disk, dir| {
        let path = dir.join("manifest");
        disk.open(&dir.join("manifest.new"), OpenMode::CreateNew)
            .unwrap()
            .write_at(b"junk junk", 0)
            .unwrap();
        replace_file(disk, &path, b"one").unwrap();
        replace_file(disk, &path, b"2").unwrap();
        assert_eq!(read_whole(disk, &path, 100).unwrap(), b"2");
        assert_eq!(disk.list(dir).unwrap().len(), 1);
    });
}

#[test]
fn replacing_a_file_is_all_or_nothing_at_every_stop() {
    let (dir, path) = (Path::new("/d"), Path::new("/d/manifest"));
    for stop in 1.. {
        let memory = MemoryDisk::new();
        memory.create_dir_all(dir).unwrap();
        replace_file(&memory, path, b"old").unwrap();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        faulty.stop_at_change(stop);
        let done = replace_file(&faulty, path, &[b'n'; 2000]).is_ok();
        for seed in 0..40 {
            let after = read_whole(&memory.crash(seed), path, 4000).unwrap();
            assert!(
                after == [b'n'; 2000] || (after == b"old" && !done),
                "stop {stop}, seed {seed}"
            );
        }
        if done {
            assert!(stop > 5, "create, write, sync, rename, sync the directory");
            break;
        }
    }
}

#[test]
fn one_sync_makes_files_names_and_directories_durable() {
    on_every_disk(|disk, dir| {
        let deep = dir.join("a/b");
        disk.make_dirs(&deep).unwrap();
        let file = disk.open(&deep.join("1"), OpenMode::CreateNew).unwrap();
        file.write_at(b"text", 0).unwrap();
        disk.sync_file_system(dir).unwrap();
        assert!(disk.exists(&deep.join("1")).unwrap());
        assert!(disk.sync_file_system(&dir.join("none")).is_err());
    });
    let memory = MemoryDisk::new();
    let path = Path::new("/spool/a/1");
    memory.make_dirs(Path::new("/spool/a")).unwrap();
    let file = memory.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(b"text", 0).unwrap();
    assert!(!memory.crash_losing_all().exists(path).unwrap());
    memory.sync_file_system(Path::new("/spool")).unwrap();
    file.write_at(b"TEXT", 0).unwrap();
    let left = memory.crash_losing_all();
    assert_eq!(
        read_all(&*left.open(path, OpenMode::Read).unwrap()),
        b"text"
    );
}

#[test]
fn a_failing_sync_of_the_file_system_loses_what_was_not_synced() {
    let memory = MemoryDisk::new();
    let path = Path::new("/spool/1");
    memory.make_dirs(Path::new("/spool")).unwrap();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let file = faulty.open(path, OpenMode::CreateNew).unwrap();
    faulty.sync_file_system(Path::new("/spool")).unwrap();
    file.write_at(b"text", 0).unwrap();
    let syncs = faulty.counts().syncs();
    faulty.add(Fault::new(Op::SyncDir, "/spool", Effect::Medium));
    assert!(faulty.sync_file_system(Path::new("/spool")).is_err());
    assert_eq!(faulty.counts().syncs(), syncs + 1);
    faulty.sync_file_system(Path::new("/spool")).unwrap();
    let left = memory.crash_losing_all();
    let mut octets = [0; 4];
    let _ = left
        .open(path, OpenMode::Read)
        .unwrap()
        .read_at(&mut octets, 0);
    assert_ne!(
        &octets, b"text",
        "a second sync saved what the first one lost"
    );
}

#[test]
fn what_is_in_memory_is_opened_without_waiting() {
    on_every_disk(|disk, dir| {
        let path = dir.join("a");
        let made = disk.open(&path, OpenMode::CreateNew).unwrap();
        made.write_at(b"x", 0).unwrap();
        if let Some(file) = disk.open_cached(&path).unwrap() {
            assert_eq!(read_all(&*file), b"x");
        }
        let missing = disk.open_cached(&dir.join("none"));
        let is_known = missing.map(|file| file.is_some());
        assert!(!is_known.unwrap_or(false));
    });
}

/// It stands where a file should be, as a directory does.
#[test]
fn a_link_that_leads_to_itself_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a disk must cope with"
    )]
    std::os::unix::fs::symlink("link", &link).unwrap();
    for mode in [OpenMode::Read, OpenMode::ReadWrite] {
        let error = RealDisk.open(&link, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAFile, "{error}");
        assert!(error.to_string().contains("leads to itself"), "{error}");
    }
}

/// Old tools tell by it what people read; a server that serves a million articles is not to write a million times of access.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "what an ordinary program does is what it is held against"
)]
fn reading_writes_no_time_of_access() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"an article").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let set = || {
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let times = std::fs::FileTimes::new().set_accessed(long_ago);
        file.set_times(times).unwrap();
    };
    let accessed = || std::fs::metadata(&path).unwrap().accessed().unwrap();
    set();
    std::fs::read(&path).unwrap();
    if accessed() == long_ago {
        return println!("skipped: no time of access is written here at all");
    }
    set();
    let file = RealDisk.open(&path, OpenMode::Read).unwrap();
    assert_eq!(read_all(&*file), b"an article");
    assert_eq!(accessed(), long_ago);
    let file = RealDisk.open_cached(&path).unwrap();
    if let Some(file) = file {
        read_all(&*file);
    }
    assert_eq!(accessed(), long_ago);
}

/// Writing around the page cache opened the file once more, and so wrote what had been opened to be read.
#[test]
fn what_was_opened_to_be_read_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let file = RealDisk.open(&path, OpenMode::CreateNew).unwrap();
    file.write_at(&[1; 4096], 0).unwrap();
    let mut page = AlignedBuf::new();
    page.append(4096).fill(2);
    let cached = RealDisk.open_cached(&path).unwrap();
    let opened = RealDisk.open(&path, OpenMode::Read).unwrap();
    for file in cached.into_iter().chain([opened]) {
        assert!(file.write_direct_at(&page, 0).is_err());
        assert!(file.zero_fill(0, 4096).is_err());
        assert_eq!(read_all(&*file), [1; 4096]);
    }
    file.write_direct_at(&page, 0).unwrap();
    assert_eq!(read_all(&*file), [2; 4096]);
}

/// Whether it is was not known of a path that leads through a file, and what was written was acknowledged.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "what others do beside a server is not done through a disk"
)]
fn a_file_that_no_path_leads_to_is_not_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let (sub, aside) = (dir.path().join("sub"), dir.path().join("aside"));
    for is_kept in [false, true] {
        RealDisk.create_dir_all(&sub).unwrap();
        let path = sub.join("a");
        let file = RealDisk.open(&path, OpenMode::CreateNew).unwrap();
        assert!(file.is_in_place().unwrap());
        match is_kept {
            true => RealDisk.rename(&path, &aside).unwrap(),
            false => RealDisk.remove(&path).unwrap(),
        }
        assert!(!file.is_in_place().unwrap());
        std::fs::remove_dir(&sub).unwrap();
        RealDisk.open(&sub, OpenMode::CreateNew).unwrap();
        assert!(!file.is_in_place().unwrap(), "{is_kept}");
        RealDisk.remove(&sub).unwrap();
        std::os::unix::fs::symlink(&sub, &sub).unwrap();
        assert!(!file.is_in_place().unwrap(), "{is_kept}");
        RealDisk.remove(&sub).unwrap();
    }
}
