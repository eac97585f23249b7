//! Listings: whatever happens meanwhile, what was there all the time comes exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::Folder;
use newsreel_host::node::FolderStream;
use newsreel_layout::Algorithm;
use newsreel_usenetfs::Settings;

use crate::world::{Remounted, World, by, names};

/// Threads make, remove and rename what is odd; what is even stays.
fn disturb(at: &Path, stays: u32, stop: &AtomicBool, salt: u64) {
    let mut number = salt;
    while !stop.load(Ordering::Relaxed) {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let odd = (number >> 33) % u64::from(stays) * 2 + 1;
        let other = (number >> 13) % u64::from(stays) * 2 + 1;
        let path = at.join(odd.to_string());
        match number >> 60 {
            0..=6 => drop(fs::File::create(path)),
            7..=11 => drop(fs::remove_file(path)),
            _ => drop(fs::rename(path, at.join(other.to_string()))),
        }
    }
}

/// Lists by parts of `most` entries, each part by a stream of its own: what `seekdir` and a restart do.
fn by_parts(at: &Path, most: usize) -> BTreeMap<String, u32> {
    let mut seen = BTreeMap::new();
    let mut place = 0;
    loop {
        let mut taken = 0;
        let folder = Folder::open(at).unwrap();
        let mut stream = FolderStream::of(&folder).unwrap();
        stream
            .fill(place, |found| {
                if taken == most {
                    return Ok(false);
                }
                taken += 1;
                place = found.after;
                let name = found.name.clone().into_string().unwrap();
                *seen.entry(name).or_default() += 1;
                Ok(true)
            })
            .unwrap();
        if taken == 0 {
            return seen;
        }
    }
}

/// Reads a directory with buffers that hold one long name or some short ones; goes back to places in the middle and to the
/// beginning, all with one descriptor; says what came another number of times than once of all that stays behind each place.
const SCAN: &str = "
import ctypes, os, sys
at, stays = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 217}.get(os.uname().machine, 61)
stay = {str(2 * n).encode() for n in range(stays)} | {b'foo', b'aaa', b'0123', b'.overview', b'.', b'..'}
fd = os.open(at, os.O_RDONLY | os.O_DIRECTORY)
room = 280
buffer = ctypes.create_string_buffer(room)
def scan():
    found = []
    while True:
        got = libc.syscall(number, fd, buffer, room)
        if got < 0: sys.exit(os.strerror(ctypes.get_errno()))
        if got == 0: return found
        octets, at = buffer.raw[:got], 0
        while at < got:
            place = int.from_bytes(octets[at + 8:at + 16], 'little')
            length = int.from_bytes(octets[at + 16:at + 18], 'little')
            found.append((octets[at + 19:at + length].split(b'\\0')[0], place))
            at += length
def check(what, found, wanted):
    names = [name for name, _ in found]
    wrong = [(name, names.count(name)) for name in sorted(wanted) if names.count(name) != 1]
    if wrong: sys.exit(f'{what}: {wrong[:9]}')
first = scan()
check('first', first, stay)
behind = {}
for part in (3, 1, 2):
    middle = len(first) * part // 4
    os.lseek(fd, first[middle][1], 0)
    behind = {name for name, _ in first[middle + 1:]} & stay
    check(f'from the place behind {first[middle]}', scan(), behind)
os.lseek(fd, 0, 0)
check('again', scan(), stay)
print('once')
";

fn scan_with_tiny_buffers(at: &Path, stays: u32) {
    let mut python = Command::new("python3");
    let python = python.args(["-c", SCAN]).arg(at).arg(stays.to_string());
    let Ok(output) = python.output() else {
        println!("skipped in part: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!((&*said, &*complained), ("once\n", ""));
}

fn check(settings: Settings, is_managed: bool, stays: u32) {
    let Some(world) = World::new(settings) else {
        return;
    };
    let at = world.path("group");
    fs::create_dir(&at).unwrap();
    if is_managed {
        crate::world::set_mode(&at, 0o4755);
    }
    let stay: BTreeSet<String> = (0..stays)
        .map(|number| (number * 2).to_string())
        .chain(["foo", "aaa", "0123", ".overview"].map(str::to_owned))
        .collect();
    for name in &stay {
        fs::write(at.join(name), name).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for salt in 0..2 {
            let (at, stop) = (&at, &stop);
            scope.spawn(move || disturb(at, stays, stop, salt));
        }
        let done = StopAtEnd(&stop);
        for most in [1000, 97, 7, usize::MAX] {
            let seen = by_parts(&at, most);
            for name in &stay {
                assert_eq!(seen.get(name), Some(&1), "{name} by {most}");
            }
            if is_managed {
                let twice: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).collect();
                // What was removed and made again may be seen again; only by a rename onto a later name, here.
                assert!(twice.len() < 300, "{twice:?}");
            }
        }
        scan_with_tiny_buffers(&at, stays);
        drop(done);
    });
    let all = names(&at).len();
    let seen = by_parts(&at, 50);
    assert_eq!(seen.len(), all + 2, "with . and ..");
}

/// Ends the threads however the scope ends.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn managed_directories_are_listed_under_change() {
    for algorithm in [Algorithm::RANGE_1024, Algorithm::YYY] {
        check(by(algorithm), true, 3000);
    }
}

/// With their hundreds of buckets for few articles: each opening of a listing reads the names of all of them.
#[test]
fn directories_of_the_papers_experiments_are_listed_under_change() {
    for algorithm in [Algorithm::ALL[1], Algorithm::ALL[2], Algorithm::ALL[3]] {
        check(by(algorithm), true, 500);
    }
}

#[test]
fn other_directories_are_listed_under_change() {
    check(Settings::default(), false, 3000);
}

/// An image of a file system, mounted until it is dropped.
struct Image(std::path::PathBuf);

impl Image {
    /// With one article, of number 700, that the file system cannot read.
    fn damaged(dir: &Path) -> Option<Self> {
        let script = "truncate -s 16M image && mkfs.ext4 -q -F image && mkdir at && mount -o loop image at && \
                      mkdir at/flat at/managed && for n in $(seq 0 1500); do b=$(printf %04d $n); b=at/managed/${b%?}; \
                      [ -d $b ] || mkdir $b; :>at/flat/$n; :>$b/$n; done && chmod u+s at/managed && umount at && \
                      debugfs -w -R 'clri flat/700' image && debugfs -w -R 'clri managed/070/700' image && \
                      mount -o loop,errors=continue image at && echo ready";
        let said = crate::world::shell(dir, (0, 0), script);
        if !said.contains("ready") {
            println!("skipped: there is no damaged file system: {said}");
            return None;
        }
        Some(Self(dir.join("at")))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// What another test is about to start has what is open here for a moment, too.
fn unmount(at: &Path) {
    for round in (0..600).rev() {
        let unmounted = Command::new("umount").arg(at).status();
        if unmounted.unwrap().success() {
            return;
        }
        assert!(round > 0, "{} is busy", at.display());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// One article that the disk could not read hid its whole directory, and what was counted before it was never forgotten.
#[test]
fn what_cannot_be_reached_hides_nothing_else() {
    if !crate::world::can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(image) = Image::damaged(dir.path()) else {
        return;
    };
    for name in ["flat", "managed"] {
        let folder = Folder::open(&image.0).unwrap();
        let clock = std::sync::Arc::new(newsreel_host::RealClock::default());
        let view = newsreel_usenetfs::View::new(folder, Settings::default(), clock).unwrap();
        let group = view.lookup(newsreel_usenetfs::ROOT, OsStr::new(name));
        let stream = view.open_folder(group.unwrap().node).unwrap();
        let (mut listed, mut reached) = (BTreeSet::new(), Vec::new());
        let take = |item: &newsreel_usenetfs::Item<'_>, entry: &newsreel_usenetfs::Entry| {
            listed.insert(item.name.to_owned());
            if entry.node == entry.stat.inode && !item.is_dots() {
                reached.push(entry.node);
            }
            Ok(true)
        };
        view.list_plus(stream, 0, take).unwrap();
        assert_eq!(listed.len(), 1501 + 2, "{name}");
        assert_eq!(reached.len(), 1500, "{name}");
        assert!(reached.iter().all(|node| view.forget(*node, 1)));
    }
    let lower = image.0.clone();
    let bind = |at: &Path| {
        let bound = Command::new("mount")
            .arg("--bind")
            .args([&lower, at])
            .status();
        assert!(bound.unwrap().success());
    };
    let world = World::prepared(Settings::default(), None, bind).unwrap();
    let script =
        "for at in flat managed; do ls $at | wc -l; ls -l $at 2>&1 >/dev/null | wc -l; done";
    let said = crate::world::shell(&world.path(""), (0, 0), script);
    let below = world.lower("");
    let dir = world.end();
    unmount(&below);
    drop(dir);
    assert_eq!(said, "1501\n1\n1501\n1\n0\n");
}

/// Whoever began many listings of a large directory and ended none had the server keep all its names as many times.
#[test]
fn listings_that_are_not_ended_keep_a_bounded_number_of_names() {
    let Some((_dir, view)) = crate::world::bare_view(by(Algorithm::YYY)) else {
        return;
    };
    let group = crate::world::make_folder(&view, "group", 0o4755);
    for number in 0..5000 {
        let name = format!("x{number}");
        let made = view.make_node(group, name.as_ref(), 0o100_644, (0, 0), crate::world::SELF);
        view.forget(made.unwrap().node, 1);
    }
    let streams: Vec<_> = (0..300).map(|_| view.open_folder(group).unwrap()).collect();
    let mut places = vec![0; streams.len()];
    let mut seen = vec![0; streams.len()];
    let mut list = |most: usize| {
        for (at, stream) in streams.iter().enumerate() {
            let (mut left, from) = (most, places[at]);
            let take = |item: &newsreel_usenetfs::Item<'_>| {
                left = left.saturating_sub(1);
                if left > 0 {
                    (places[at], seen[at]) = (item.after, seen[at] + 1);
                }
                Ok(left > 0)
            };
            view.list(*stream, from, take).unwrap();
        }
    };
    list(10);
    let status: serde_json::Value = serde_json::from_str(&view.status()).unwrap();
    let held = status["listing_names_held"].as_u64().unwrap();
    assert!(held > 0 && held <= 1 << 20, "{held}");
    list(usize::MAX);
    assert!(seen.iter().all(|seen| *seen == 5002), "{seen:?}");
    let status: serde_json::Value = serde_json::from_str(&view.status()).unwrap();
    assert_eq!(status["listing_names_held"], 0);
}

#[test]
fn places_outlive_the_mount() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let at = world.managed("group");
    for number in 0..50_000_u32 {
        if number % 100 == 0 {
            fs::write(at.join(number.to_string()), "").unwrap();
        }
    }
    let list = |at: &Path, from: u64, most: usize| {
        let mut stream = FolderStream::of(Folder::open(at).unwrap()).unwrap();
        let (mut found, mut place) = (Vec::new(), from);
        stream
            .fill(from, |entry| {
                if found.len() == most {
                    return Ok(false);
                }
                found.push(entry.name.clone());
                place = entry.after;
                Ok(true)
            })
            .unwrap();
        (found, place)
    };
    let (first, place) = list(&at, 0, 200);
    let (rest, _) = list(&at, place, usize::MAX);
    assert_eq!(first.len() + rest.len(), 502);
    assert_eq!(first[0], OsStr::new("."));
    let dir = world.end();
    // The entry behind which the listing stopped is not there any more, nor is its bucket.
    let gone = first.last().unwrap().to_str().unwrap().to_owned();
    let lower = dir.path().join("lower/group");
    let number: u32 = gone.parse().unwrap();
    let bucket = lower.join(format!("r{}", number / 1024 * 1024));
    fs::remove_file(bucket.join(&gone)).unwrap();
    let remounted = Remounted::new(dir);
    assert_eq!(list(&remounted.path("group"), place, usize::MAX).0, rest);
}
