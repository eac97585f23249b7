//! Handles lead back to their inode, streams go on where they were, and nothing follows a link.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::fs::OFlags;

use super::*;
use crate::{Folder, process};

const READ_WRITE: i32 = 2;

fn scratch() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    (dir, folder)
}

fn put(folder: &Folder, name: &str, text: &[u8]) {
    let file = create_file(folder, OsStr::new(name), READ_WRITE, 0o644).unwrap();
    assert_eq!(file.write(text, 0, false).unwrap(), text.len());
}

#[test]
fn a_handle_leads_back_until_the_last_name_and_user_are_gone() {
    if process::own_uid() != 0 {
        println!("skipped: only root opens handles");
        return;
    }
    let (_dir, folder) = scratch();
    put(&folder, "a", b"text");
    let pin = Pin::at(&folder, OsStr::new("a")).unwrap();
    let handle = Handle::of(&pin).unwrap();
    link(&pin, &folder, OsStr::new("b")).unwrap();
    remove(&folder, OsStr::new("a")).unwrap();
    let root = HandleRoot::of(&folder).unwrap();
    let file = OpenFile::by_handle(&root, &handle, 0).unwrap();
    assert_eq!(Stat::of(&file).unwrap().links, 1);
    remove(&folder, OsStr::new("b")).unwrap();
    let again = Pin::by_handle(&root, &handle).unwrap();
    assert_eq!(Handle::of(&again).unwrap(), handle);
    let mut buf = [0; 10];
    assert_eq!(file.read(&mut buf, 1), Ok(3));
    drop((pin, file, again));
    let mut gone = root.open(&handle, OFlags::PATH).err();
    for _ in 0..100 {
        // A kernel that is just about to forget the inode may say so.
        if gone != Some(Errno::NOMEM) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        gone = root.open(&handle, OFlags::PATH).err();
    }
    assert_eq!(gone, Some(Errno::STALE));
    assert_eq!(Handle::new(handle.kind(), handle.octets()), Some(handle));
}

#[test]
fn links_are_pinned_and_never_followed() {
    let (_dir, folder) = scratch();
    make_folder(&folder, OsStr::new("sub"), 0o755).unwrap();
    make_symlink(&folder, OsStr::new("soft"), OsStr::new("sub")).unwrap();
    let pin = Pin::at(&folder, OsStr::new("soft")).unwrap();
    assert_eq!(pin.read_link().unwrap(), b"sub");
    assert_eq!(Stat::of(&pin).unwrap().kind_bits(), 0o120_000);
    let through = open_bucket(&folder, Path::new("soft"));
    assert_eq!(through.err(), Some(Errno::LOOP));
    assert!(open_bucket(&folder, Path::new("sub")).is_ok());
}

#[test]
fn what_a_pin_changes_is_the_inode() {
    let (_dir, folder) = scratch();
    put(&folder, "a", b"text");
    let pin = Pin::at(&folder, OsStr::new("a")).unwrap();
    pin.set_mode(0o640).unwrap();
    let at = Stamp { secs: -5, nanos: 7 };
    set_times(&pin, TimeChange::Keep, TimeChange::To(at)).unwrap();
    let stat = Stat::of(&pin).unwrap();
    assert_eq!((stat.mode, stat.modified, stat.len), (0o100_640, at, 4));
    let name = OsStr::new("user.newsreel.test");
    pin.set_attribute(name, b"value", 0).unwrap();
    assert_eq!(pin.attribute(name).unwrap(), b"value");
    assert_eq!(pin.attributes().unwrap(), b"user.newsreel.test\0");
    pin.remove_attribute(name).unwrap();
    assert_eq!(pin.attribute(name), Err(Errno::NODATA));
}

#[test]
fn appending_goes_to_the_end_when_it_is_asked_for() {
    let (_dir, folder) = scratch();
    let append = READ_WRITE | OFlags::APPEND.bits().cast_signed();
    let file = create_file(&folder, OsStr::new("a"), append, 0o644).unwrap();
    file.write(b"abc", 0, true).unwrap();
    file.write(b"def", 0, true).unwrap();
    file.write(b"X", 1, false).unwrap();
    let mut buf = [0; 10];
    assert_eq!(file.read(&mut buf, 0), Ok(6));
    assert_eq!(&buf[..6], b"aXcdef");
    assert_eq!(file.seek(Seek::Hole, 0), Ok(6));
}

fn names(stream: &mut FolderStream, from: u64, most: usize) -> (Vec<OsString>, u64) {
    let (mut names, mut at) = (Vec::new(), from);
    stream
        .fill(from, |found| {
            if names.len() == most {
                return Ok(false);
            }
            names.push(found.name.clone());
            at = found.after;
            Ok(true)
        })
        .unwrap();
    (names, at)
}

#[test]
fn a_stream_goes_on_from_any_place() {
    let (_dir, folder) = scratch();
    for number in 0..300 {
        put(&folder, &number.to_string(), b"");
    }
    let mut stream = FolderStream::of(&folder).unwrap();
    let (all, end) = names(&mut stream, 0, 1000);
    assert_eq!(all.len(), 302);
    assert!(names(&mut stream, end, 1000).0.is_empty());
    let (first, at) = names(&mut stream, 0, 100);
    let (second, _) = names(&mut stream, at, 1000);
    assert_eq!([first, second.clone()].concat(), all);
    let mut other = FolderStream::of(&folder).unwrap();
    assert_eq!(names(&mut other, at, 1000).0, second);
}
