//! What a power cut leaves.

use std::collections::BTreeSet;

use super::*;
use crate::disk::read_whole;
use crate::error::ErrorKind;

const SECTOR: usize = 512;

fn disk_with(path: &Path) -> (MemoryDisk, Arc<dyn File>) {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/d")).unwrap();
    let file = disk.open(path, OpenMode::CreateNew).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    (disk, file)
}

fn contents(disk: &MemoryDisk, path: &Path) -> Vec<u8> {
    read_whole(disk, path, 1 << 24).unwrap()
}

fn names_in(disk: &MemoryDisk) -> Vec<String> {
    disk.list(Path::new("/d"))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

#[test]
fn synced_data_survive_every_crash() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    file.write_at(&[1; 10_000], 3).unwrap();
    assert_eq!(disk.unsynced_sectors(path).unwrap(), 20);
    file.sync_data().unwrap();
    assert_eq!(disk.unsynced_sectors(path).unwrap(), 0);
    for seed in 0..50 {
        assert_eq!(contents(&disk.crash(seed), path), contents(&disk, path));
    }
    assert_eq!(
        contents(&disk.crash_losing_all(), path),
        contents(&disk, path)
    );
}

#[test]
fn unsynced_sectors_survive_or_not_each_for_itself() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    file.write_at(&[1; 4 * SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&[2; 3 * SECTOR], 256).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..500 {
        let after = contents(&disk.crash(seed), path);
        assert_eq!(after.len(), 4 * SECTOR);
        let sectors: Vec<bool> = after
            .chunks(SECTOR)
            .zip(contents(&disk, path).chunks(SECTOR))
            .map(|(sector, new)| {
                assert!(
                    sector == new || sector == [1; SECTOR],
                    "a sector is old or new, never mixed"
                );
                sector == new
            })
            .collect();
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 16, "every combination of four sectors");
    assert_eq!(contents(&disk.crash_losing_all(), path), [1; 4 * SECTOR]);
    assert_eq!(
        contents(&disk.crash(7), path),
        contents(&disk.crash(7), path),
        "repeatable"
    );
}

#[test]
fn a_failed_sync_is_not_healed_by_a_good_one() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    file.write_at(&[1; 2 * SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&[2; 2 * SECTOR], 0).unwrap();
    file.lose_unsynced();
    file.sync_data().unwrap();
    assert_eq!(contents(&disk, path), [2; 2 * SECTOR], "still readable");
    assert_eq!(
        contents(&disk.crash_losing_all(), path),
        [1; 2 * SECTOR],
        "but not durable"
    );
    file.write_at(&[3; SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    let expected = [[3; SECTOR], [1; SECTOR]].concat();
    assert_eq!(
        contents(&disk.crash_losing_all(), path),
        expected,
        "written again, synced"
    );
    file.drop_cache(0, 2 * SECTOR as u64).unwrap();
    assert_eq!(contents(&disk, path), expected, "evicted, the medium shows");
}

#[test]
fn length_is_durable_only_after_sync() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    file.write_at(&[1; 700], 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&[1; 700], 700).unwrap();
    let lens: BTreeSet<usize> = (0..100)
        .map(|seed| contents(&disk.crash(seed), path).len())
        .collect();
    assert_eq!(lens, BTreeSet::from([700, 1400]));
    file.set_len(10).unwrap();
    assert_eq!(contents(&disk.crash_losing_all(), path), [1; 700]);
    file.zero_fill(0, 10).unwrap();
    assert_eq!(contents(&disk.crash_losing_all(), path), [1; 700]);
    file.sync_data().unwrap();
    assert_eq!(contents(&disk.crash_losing_all(), path), [0; 10]);
    file.zero_fill(0, 1 << 20).unwrap();
    assert_eq!(contents(&disk.crash_losing_all(), path), [0; 10]);
}

#[test]
fn names_are_durable_only_after_their_directory_is_synced() {
    let (disk, _file) = disk_with(Path::new("/d/a"));
    let open = |name: &str| {
        disk.open(&Path::new("/d").join(name), OpenMode::CreateNew)
            .unwrap()
    };
    open("b").write_at(b"b", 0).unwrap();
    disk.rename(Path::new("/d/a"), Path::new("/d/c")).unwrap();
    disk.rename(Path::new("/d/c"), Path::new("/d/e")).unwrap();
    let seen: BTreeSet<Vec<String>> = (0..500).map(|seed| names_in(&disk.crash(seed))).collect();
    let list = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let all = [
        &["a"][..],
        &["c"],
        &["e"],
        &["a", "b"],
        &["b", "c"],
        &["b", "e"],
    ];
    assert_eq!(seen, all.into_iter().map(list).collect());
    assert_eq!(names_in(&disk.crash_losing_all()), ["a"]);
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(
        names_in(&disk.crash_losing_all()),
        ["a"],
        "another directory does not count"
    );
    disk.sync_dir(Path::new("/d")).unwrap();
    assert_eq!(names_in(&disk.crash_losing_all()), ["b", "e"]);
    disk.remove(Path::new("/d/b")).unwrap();
    assert_eq!(names_in(&disk.crash_losing_all()), ["b", "e"]);
    assert_eq!(
        contents(&disk.crash_losing_all(), Path::new("/d/b")),
        b"",
        "data was not synced"
    );
}

#[test]
fn a_crashed_disk_is_apart_from_the_old_one() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    let lock = disk.lock(Path::new("/d/lock")).unwrap();
    file.write_at(b"one", 0).unwrap();
    file.sync_data().unwrap();
    let after = disk.crash_losing_all();
    file.write_at(b"two", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(contents(&after, path), b"one");
    after.lock(Path::new("/d/lock")).expect("the holder died");
    drop(lock);
}

/// What was written to one file because another was synced is never there without it.
#[test]
fn a_crash_is_one_moment_for_all_files() {
    let (first, second) = (Path::new("/d/a"), Path::new("/d/z"));
    let (disk, file) = disk_with(first);
    let other = disk.open(second, OpenMode::CreateNew).unwrap();
    for n in 0..64 {
        let path = format!("/d/between-{n}");
        disk.open(Path::new(&path), OpenMode::CreateNew).unwrap();
    }
    disk.sync_dir(Path::new("/d")).unwrap();
    let put = |file: &dyn File, n: u64| {
        file.write_at(&n.to_le_bytes(), 0).unwrap();
        file.sync_data().unwrap();
    };
    put(&*file, 0);
    put(&*other, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..50_000 {
                put(&*file, n);
                put(&*other, n);
            }
        });
        for _ in 0..2000 {
            let left = disk.crash_losing_all();
            let of = |path| u64::from_le_bytes(contents(&left, path)[..8].try_into().unwrap());
            assert!(of(first) >= of(second));
        }
    });
}

#[test]
fn a_full_disk_says_so_and_frees_what_is_removed() {
    let disk = MemoryDisk::with_capacity(1000);
    let file = disk.open(Path::new("a"), OpenMode::CreateNew).unwrap();
    file.write_at(&[1; 600], 0).unwrap();
    assert_eq!(disk.free_bytes(Path::new("a")).unwrap(), 400);
    for result in [
        file.write_at(&[1; 1], 1000),
        file.reserve(0, 1001),
        file.zero_fill(999, 2),
        file.set_len(1001),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Full);
    }
    assert_eq!(file.len().unwrap(), 600);
    file.set_len(100).unwrap();
    assert_eq!(disk.free_bytes(Path::new("a")).unwrap(), 900);
    disk.sync_dir(Path::new("")).unwrap();
    disk.remove(Path::new("a")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    drop(file);
    assert_eq!(disk.free_bytes(Path::new("a")).unwrap(), 1000);
}

#[test]
fn rot_on_the_medium_is_seen_by_readers_and_stays() {
    let path = Path::new("/d/a");
    let (disk, file) = disk_with(path);
    file.write_at(&[0; 600], 0).unwrap();
    file.sync_data().unwrap();
    disk.flip_bit(path, 513, 3).unwrap();
    disk.corrupt(path, 0, b"xy").unwrap();
    assert_eq!(disk.unsynced_sectors(path).unwrap(), 0);
    for disk in [disk.crash_losing_all(), disk] {
        let bytes = contents(&disk, path);
        assert_eq!((&bytes[..3], bytes[513]), (&b"xy\0"[..], 8));
    }
}

proptest::proptest! {
    /// Against a plain vector: reads see every write; the worst crash leaves exactly the last synced state.
    #[test]
    fn prop_contents_follow_a_plain_model(
        steps in proptest::collection::vec((0_u8..5, 0_u64..20_000, 0_u64..9_000, 1_u8..255), 1..60),
    ) {
        let path = Path::new("/d/a");
        let (disk, file) = disk_with(path);
        let mut model: Vec<u8> = Vec::new();
        let mut durable = model.clone();
        for (what, offset, len, octet) in steps {
            let (from, to) = (offset as usize, (offset + len) as usize);
            match what {
                0 | 1 => {
                    let fill = if what == 0 { octet } else { 0 };
                    if what == 0 {
                        file.write_at(&vec![octet; len as usize], offset).unwrap();
                    } else {
                        file.zero_fill(offset, len).unwrap();
                    }
                    if len > 0 {
                        model.resize(model.len().max(to), 0);
                        model[from..to].fill(fill);
                    }
                }
                2 => {
                    file.set_len(offset).unwrap();
                    model.resize(from, 0);
                }
                3 => {
                    file.sync_data().unwrap();
                    durable.clone_from(&model);
                }
                _ => file.drop_cache(offset, len).unwrap(),
            }
            proptest::prop_assert_eq!(&contents(&disk, path), &model);
        }
        proptest::prop_assert_eq!(&contents(&disk.crash_losing_all(), path), &durable);
    }
}
