//! System calls, one by one: the same script says the same beside the mount, in an ordinary directory of it and in a managed
//! one, for all that is not told to be otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, FolderStream, Handle, HandleRoot, Pin, Stat};
use newsreel_usenetfs::{Op, Settings};

use crate::world::{Remounted, World, set_mode, shell};

/// What all scripts begin with: `tried` says what came of something, or the name of its error.
const BEGIN: &str = "
import ctypes, errno, fcntl, os, signal, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, act):
    try:
        done = act()
    except OSError as error:
        done = errno.errorcode[error.errno]
    print(what, done, flush=True)
def called(done):
    if done == -1:
        raise OSError(ctypes.get_errno(), '')
    return done
def child(act):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid
def write(name, text):
    with open(name, 'w') as file:
        file.write(text)
def read(name):
    with open(name) as file:
        return file.read()
";

/// What a script says in a directory; `None` where it cannot be run.
fn python(at: &Path, script: &str, words: &[&Path]) -> Option<String> {
    let mut command = Command::new("timeout");
    let command = command.args(["60", "python3", "-c", &format!("{BEGIN}{script}")]);
    let output = command.args(words).current_dir(at).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(127) {
        println!("skipped: there is no python3");
        return None;
    }
    Some(format!("{said}{complained}"))
}

/// The same beside the mount, in an ordinary directory and in a managed one; what it was.
fn everywhere(world: &World, script: &str, expected: &[&str]) {
    let flat = world.path("flat");
    fs::create_dir(&flat).unwrap();
    let Some(natively) = python(&world.native(), script, &[]) else {
        return;
    };
    for word in expected {
        assert!(
            natively.lines().any(|line| line == *word),
            "no {word:?}: {natively}"
        );
    }
    for at in [flat, world.managed("managed")] {
        let said = python(&at, script, &[]).unwrap();
        assert_eq!(said, natively, "{}", at.display());
    }
}

const LOCKS: &str = "
fd = os.open('1000', os.O_RDWR | os.O_CREAT, 0o644)
GET, SET, WAIT = 36, 37, 38
def lock(fd, kind, start, length, command=fcntl.F_SETLK):
    asked = struct.pack('hhqqi4x', kind, 0, start, length, 0)
    kind, _, start, length, pid = struct.unpack('hhqqi4x', fcntl.fcntl(fd, command, asked))
    if command not in (fcntl.F_GETLK, GET) or kind == fcntl.F_UNLCK:
        return kind
    return kind, start, length, {os.getppid(): 'parent', -1: 'nobody'}.get(pid, 'another')
def other(what, *tries):
    def act():
        own = os.open('1000', os.O_RDWR)
        for name, attempt in tries:
            tried(f'{what}: {name}', lambda: attempt(own))
    os.waitpid(child(act), 0)
R, W, U = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
whole = (('ex', lambda own: fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)),
         ('sh', lambda own: fcntl.flock(own, fcntl.LOCK_SH | fcntl.LOCK_NB)))
fcntl.flock(fd, fcntl.LOCK_EX); other('flock ex', *whole)
fcntl.flock(fd, fcntl.LOCK_SH); other('flock sh', *whole)
fcntl.flock(fd, fcntl.LOCK_UN); other('flock un', *whole)
for what, put, get in (('fcntl', fcntl.F_SETLK, fcntl.F_GETLK), ('ofd', SET, GET)):
    parts = (('before', lambda own: lock(own, W, 0, 10, put)), ('within', lambda own: lock(own, W, 15, 1, put)),
             ('read', lambda own: lock(own, R, 15, 1, put)), ('behind', lambda own: lock(own, W, 20, 0, put)),
             ('who', lambda own: lock(own, W, 0, 0, get)))
    lock(fd, W, 10, 10, put); other(f'{what} write', *parts)
    lock(fd, R, 10, 10, put); other(f'{what} read', *parts)
    # Of both kinds, and of one process.
    second = os.open('1000', os.O_RDWR)
    tried(f'{what} and ofd', lambda: lock(second, W, 12, 1, SET))
    # Those of a process go with any descriptor of the file that it closes, those of an open file do not.
    os.close(second); other(f'{what} closed', *parts)
    lock(fd, U, 0, 0, put); other(f'{what} none', *parts)
# Who waits has it when the other gives it back, and one who was killed has none.
for what, put, wait in (('fcntl', fcntl.F_SETLK, fcntl.F_SETLKW), ('ofd', SET, WAIT)):
    lock(fd, W, 0, 0, put)
    r, w = os.pipe()
    def waits():
        own = os.open('1000', os.O_RDWR)
        os.write(w, b'.')
        tried(f'{what} waits', lambda: lock(own, W, 5, 1, wait))
    pid = child(waits); os.read(r, 1); lock(fd, U, 0, 0, put); os.waitpid(pid, 0)
    def holds():
        lock(os.open('1000', os.O_RDWR), W, 0, 0, put)
        os.write(w, b'.')
        signal.pause()
    pid = child(holds); os.read(r, 1)
    tried(f'{what} held', lambda: lock(fd, W, 0, 0, put))
    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
    tried(f'{what} killed', lambda: lock(fd, W, 0, 0, put)); lock(fd, U, 0, 0, put)
";

/// Two processes, with each kind of lock.
#[test]
fn locks_of_processes_conflict_as_they_do_natively() {
    for way in [None, Some(0)] {
        let Some(world) = World::with(Settings::default(), way) else {
            return;
        };
        let expected = [
            "flock ex: sh EAGAIN",
            "flock un: ex None",
            "fcntl write: within EAGAIN",
            "fcntl write: who (1, 10, 10, 'parent')",
            "ofd read: who (0, 10, 10, 'nobody')",
            "fcntl and ofd EAGAIN",
            "fcntl closed: within 1",
            "ofd closed: within EAGAIN",
            "ofd held EAGAIN",
            "ofd killed 1",
        ];
        everywhere(&world, LOCKS, &expected);
    }
}

const ATTRIBUTES: &str = "
write('1000', 'text'); os.mkdir('2600'); os.symlink('1000', 'soft')
def as_user(act):
    def other():
        os.setgroups([]); os.setgid(7100); os.setuid(7001)
        act()
    os.waitpid(child(other), 0)
def get(at, name):
    got = os.getxattr(at, name, follow_symlinks=False)
    return got if len(got) < 20 else len(got)
def own(at):
    names = [name for name in os.listxattr(at, follow_symlinks=False) if not name.startswith('system.')]
    return sorted(names)
for kind in ('user', 'trusted', 'security'):
    name = f'{kind}.newsreel.test'
    for at in ('1000', '2600', 'soft', '.'):
        for what, act in (
            ('get none', lambda: get(at, name)),
            ('replace none', lambda: os.setxattr(at, name, b'0', os.XATTR_REPLACE, follow_symlinks=False)),
            ('remove none', lambda: os.removexattr(at, name, follow_symlinks=False)),
            ('create', lambda: os.setxattr(at, name, b'one', os.XATTR_CREATE, follow_symlinks=False)),
            ('create again', lambda: os.setxattr(at, name, b'two', os.XATTR_CREATE, follow_symlinks=False)),
            ('get', lambda: get(at, name)),
            ('replace', lambda: os.setxattr(at, name, bytes(2000), os.XATTR_REPLACE, follow_symlinks=False)),
            ('get long', lambda: get(at, name)),
            ('list', lambda: own(at)),
            ('empty', lambda: os.setxattr(at, name, b'', follow_symlinks=False)),
            ('get empty', lambda: get(at, name)),
        ):
            tried(f'{kind} {at} {what}', act)
    fd = os.open('1000', os.O_RDONLY)
    tried(f'{kind} by descriptor', lambda: os.setxattr(fd, name, b'fd'))
    tried(f'{kind} of descriptor', lambda: os.getxattr(fd, name))
    for at in ('1000', 'soft'):
        as_user(lambda: tried(f'{kind} {at} of a stranger', lambda: get(at, name)))
        as_user(lambda: tried(f'{kind} {at} by a stranger', lambda: os.setxattr(at, name, b'x', follow_symlinks=False)))
        as_user(lambda: tried(f'{kind} {at} away by a stranger', lambda: os.removexattr(at, name, follow_symlinks=False)))
os.chmod('1000', 0o600)
as_user(lambda: tried('unreadable', lambda: get('1000', 'user.newsreel.test')))
for at in ('1000', '2600', 'soft', '.'):
    tried(f'{at} all', lambda: own(at))
    for name in own(at):
        tried(f'{at} {name} away', lambda: os.removexattr(at, name, follow_symlinks=False))
tried('longest name', lambda: os.setxattr('1000', 'user.' + 'x' * 250, b'x'))
tried('name too long', lambda: os.setxattr('1000', 'user.' + 'x' * 251, b'x'))
tried('value too long', lambda: os.setxattr('1000', 'user.x', bytes(65537)))
tried('no name', lambda: os.setxattr('1000', 'user.', b''))
tried('no kind', lambda: os.setxattr('1000', 'nonsense', b''))
tried('another kind', lambda: os.setxattr('1000', 'nonsense.x', b''))
tried('none of the system', lambda: os.getxattr('1000', 'system.nonsense'))
tried('room too small', lambda: called(libc.getxattr(b'1000', b'user.' + b'x' * 250, ctypes.create_string_buffer(1), 0)))
";

/// Of every kind that there is, on whatever has attributes, by whoever may and may not.
#[test]
fn extended_attributes_are_as_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let expected = [
        "user 1000 get none ENODATA",
        "user 1000 create again EEXIST",
        "user soft create EPERM",
        "user 2600 get b'one'",
        "trusted 1000 get long 2000",
        "trusted soft get b'one'",
        "trusted 1000 of a stranger ENODATA",
        "trusted 1000 by a stranger EPERM",
        "security 1000 get b'one'",
        "unreadable EACCES",
    ];
    everywhere(&world, ATTRIBUTES, &expected);
}

const RENAMES: &str = "
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
def rename(old, new, flags):
    return called(libc.renameat2(-100, old.encode(), -100, new.encode(), flags))
def tree():
    found = {}
    for at, folders, files in os.walk('.'):
        found.update({os.path.join(at, name): read(os.path.join(at, name)) for name in files})
        found.update({os.path.join(at, name): None for name in folders})
    return sorted(found.items())
";

const FLAGS: &str = "
for name in ('1', '5000', 'foo'):
    write(name, name)
os.mkdir('2600'); write('2600/7', 'seven'); os.mkdir('944')
for what, old, new, flags in (
    ('none', '1', '2', NOREPLACE), ('one', '2', '5000', NOREPLACE), ('itself', '2', '2', NOREPLACE),
    ('a directory', '2600', '944', NOREPLACE), ('a directory away', '2600', '5001', NOREPLACE),
    ('other kinds', '2', 'bar', NOREPLACE), ('back', 'bar', '2', NOREPLACE),
    ('two', '2', '5000', EXCHANGE), ('names', 'foo', '2', EXCHANGE), ('kinds', '2', '5001', EXCHANGE),
    ('directories', '2', '944', EXCHANGE), ('with what it holds', '944', '944/7', EXCHANGE),
    ('with nothing', '5000', '9000', EXCHANGE), ('of nothing', '9000', '5000', EXCHANGE),
    ('both', '5000', '2', NOREPLACE | EXCHANGE), ('unknown', '5000', '2', 8),
    ('too long', '5000', 'x' * 256, NOREPLACE),
):
    tried(what, lambda: rename(old, new, flags))
print(tree())
";

#[test]
fn renames_with_flags_are_as_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let expected = [
        "none 0",
        "one EEXIST",
        "two 0",
        "kinds 0",
        "with nothing ENOENT",
        "both EINVAL",
        "unknown EINVAL",
    ];
    everywhere(&world, &format!("{RENAMES}{FLAGS}"), &expected);
    // A whiteout is a device, which nobody wants in a spool; and nothing is moved.
    let script = format!(
        "{RENAMES}tried('whiteout', lambda: rename('5000', '5002', WHITEOUT))\n\
         tried('with both', lambda: rename('5000', '5002', WHITEOUT | NOREPLACE))\n\
         print(os.path.exists('5000'), os.path.exists('5002'))"
    );
    for at in ["flat", "managed"] {
        let Some(said) = python(&world.path(at), &script, &[]) else {
            return;
        };
        assert_eq!(
            said, "whiteout EINVAL\nwith both EINVAL\nTrue False\n",
            "{at}"
        );
    }
    // From kind to kind of directory: managed ones keep their bit, and what they hold.
    let script = format!(
        "{RENAMES}write('flat/77', 'flat'); write('managed/1234', 'managed')\n\
         tried('files', lambda: rename('flat/77', 'managed/1234', EXCHANGE))\n\
         print(read('flat/77'), read('managed/1234'))\n\
         tried('directories', lambda: rename('flat', 'managed', EXCHANGE))\n\
         print(read('managed/77'), read('flat/1234'), os.stat('flat').st_mode & 0o4000 > 0)\n\
         tried('in the way', lambda: rename('flat', 'managed', NOREPLACE))"
    );
    let said = python(&world.path(""), &script, &[]).unwrap();
    assert_eq!(
        said,
        "files 0\nmanaged flat\ndirectories 0\nmanaged flat True\nin the way EEXIST\n"
    );
    let dir = world.end();
    let findings = crate::world::findings(&dir.path().join("lower/flat"));
    assert_eq!(findings, Vec::<String>::new());
    assert!(dir.path().join("lower/flat/r1024/1234").exists());
}

/// A name is given, and taken, only within the file system.
#[test]
fn nothing_is_linked_or_renamed_out_of_a_mount() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    world.managed("a");
    fs::create_dir(world.path("b")).unwrap();
    const SCRIPT: &str = "
beside = sys.argv[1]
write('a/1', 'one'); write(beside + '/2', 'two'); os.mkdir('a/2600')
tried('link out', lambda: os.link('a/1', beside + '/1'))
tried('rename out', lambda: os.rename('a/1', beside + '/1'))
tried('directory out', lambda: os.rename('a/2600', beside + '/1'))
tried('link in', lambda: os.link(beside + '/2', 'a/2'))
tried('rename in', lambda: os.rename(beside + '/2', 'a/2'))
tried('link within', lambda: os.link('a/1', 'b/5000'))
tried('rename within', lambda: os.rename('b/5000', 'a/5000'))
print(sorted(os.listdir('a')), os.listdir('b'), os.listdir(beside), os.stat('a/5000').st_nlink)
";
    let Some(said) = python(&world.path(""), SCRIPT, &[&world.native()]) else {
        return;
    };
    let expected = "link out EXDEV\nrename out EXDEV\ndirectory out EXDEV\nlink in EXDEV\nrename in EXDEV\n\
                    link within None\nrename within None\n['1', '2600', '5000'] [] ['2'] 2\n";
    assert_eq!(said, expected);
}

/// What an entry is, as the listing itself says; programs that trust it do not ask further.
#[test]
fn a_listing_says_what_its_entries_are() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let flat = world.path("flat");
    fs::create_dir(&flat).unwrap();
    let kinds = |at: &Path| {
        // So many before them that the kernel asks for the rest without all about each.
        for number in 0..1000 {
            fs::write(at.join(number.to_string()), "").unwrap();
        }
        for name in ["26000", "sub", "94400"] {
            fs::create_dir(at.join(name)).unwrap();
        }
        set_mode(&at.join("94400"), 0o4755);
        symlink("1", at.join("50000")).unwrap();
        drop(UnixListener::bind(at.join("70000")).unwrap());
        let script = "mkfifo 90000; mknod 110000 c 1 3; mknod 130000 b 7 200";
        let made = shell(at, (0, 0), script);
        assert_eq!(made, "0\n");
        let mut found = BTreeMap::new();
        let mut stream = FolderStream::of(Folder::open(at).unwrap()).unwrap();
        stream
            .fill(0, |entry| {
                found.insert(entry.name.clone(), entry.kind_bits);
                Ok(true)
            })
            .unwrap();
        found
    };
    let natively = kinds(&world.native());
    assert_eq!(natively.len(), 1010);
    assert!(natively.values().all(|kind| *kind != 0), "{natively:?}");
    for at in [flat, world.managed("managed")] {
        let mut differs = kinds(&at);
        differs.retain(|name, kind| natively.get(name) != Some(kind));
        assert_eq!(differs, BTreeMap::new(), "{}", at.display());
    }
    assert!(world.view().counters().of(Op::List) > 0);
}

const HANDLES: &str = "
class Handle(ctypes.Structure):
    _fields_ = [('length', ctypes.c_uint), ('kind', ctypes.c_int), ('octets', ctypes.c_char * 128)]
def handle(name):
    it, mount = Handle(128), ctypes.c_int()
    called(libc.name_to_handle_at(-100, name.encode(), ctypes.byref(it), ctypes.byref(mount), 0))
    return it
root = os.open('.', os.O_RDONLY)
def opened(it, flags=os.O_RDONLY):
    return called(libc.open_by_handle_at(root, ctypes.byref(it), flags))
write('1', 'one'); write('foo', 'foo'); os.mkdir('2600'); write('2600/7', 'seven'); os.symlink('1', 'soft')
handles = {name: handle(name) for name in ('1', 'foo', '2600', '2600/7', 'soft', '.')}
for name, it in handles.items():
    fd = opened(it, os.O_PATH)
    print(name, os.fstat(fd).st_ino == os.lstat(name).st_ino)
    os.close(fd)
print(os.read(opened(handles['1']), 9), os.read(opened(handles['2600/7']), 9))
fd = opened(handles['1'], os.O_RDWR); os.write(fd, b'ONE'); os.close(fd); print(read('1'))
fd = opened(handles['2600']); print(os.listdir(fd), os.stat('..', dir_fd=fd).st_ino == os.stat('.').st_ino)
# Whatever it is called by now.
os.rename('1', '5000'); os.rename('2600', '944')
print(os.read(opened(handles['1']), 9), os.read(opened(handles['2600/7']), 9), os.listdir(opened(handles['2600'])))
# As long as it is open, and no longer.
fd = opened(handles['foo']); os.unlink('foo')
print(os.read(opened(handles['foo']), 9), os.fstat(opened(handles['foo'])).st_nlink)
write('bar', 'bar'); gone = handle('bar'); os.unlink('bar')
def is_gone():
    # Who wrote it closes it a moment after it said so.
    for _ in range(1000):
        os.close(opened(gone))
        time.sleep(0.01)
tried('gone', is_gone)
gone.octets = b'nonsense'
tried('nonsense', lambda: opened(gone))
";

/// As a server of NFS asks for what it has handed out.
#[test]
fn handles_lead_to_their_files_as_natively() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    everywhere(
        &world,
        HANDLES,
        &["soft True", "b'ONE' b'seven' ['7']", "gone ESTALE"],
    );
}

/// A server of NFS hands out handles that outlive a mount: where they lead follows from the files alone.
#[test]
fn handles_lead_to_their_files_when_these_are_known_again() {
    let Some(world) = World::new(Settings::default()) else {
        return;
    };
    let names = ["group/1000", "group/2600", "flat/7"];
    world.managed("group");
    fs::create_dir(world.path("flat")).unwrap();
    fs::create_dir(world.path("group/2600")).unwrap();
    for name in ["group/1000", "flat/7"] {
        fs::write(world.path(name), name).unwrap();
    }
    let top = Folder::open(&world.path("")).unwrap();
    let handles = names.map(|name| {
        let (at, name) = name.split_once('/').unwrap();
        let folder = top.open_folder(at.as_ref()).unwrap();
        Handle::of(Pin::at(folder, name.as_ref()).unwrap()).unwrap()
    });
    drop(top);
    let mounted = Remounted::new(world.end());
    let root = HandleRoot::of(Folder::open(&mounted.path("")).unwrap()).unwrap();
    for handle in &handles {
        assert_eq!(Pin::by_handle(&root, handle).err(), Some(Errno::STALE));
    }
    for (name, handle) in names.iter().zip(&handles) {
        let inode = fs::metadata(mounted.path(name)).unwrap().ino();
        let pin = Pin::by_handle(&root, handle).unwrap();
        assert_eq!(Stat::of(&pin).unwrap().inode, inode, "{name}");
    }
}

const CHANGES: &str = "
for what, act in (
    ('create', lambda: os.close(os.open('2', os.O_CREAT | os.O_WRONLY))),
    ('create there', lambda: os.close(os.open('1', os.O_CREAT | os.O_WRONLY))),
    ('create and read', lambda: os.close(os.open('1', os.O_CREAT | os.O_RDONLY))),
    ('other bucket', lambda: os.close(os.open('90000', os.O_CREAT | os.O_WRONLY))),
    ('write', lambda: os.close(os.open('1', os.O_WRONLY))),
    ('append', lambda: os.close(os.open('1', os.O_WRONLY | os.O_APPEND))),
    ('truncate', lambda: os.truncate('1', 0)),
    ('mkdir', lambda: os.mkdir('3')), ('mkdir there', lambda: os.mkdir('2600')),
    ('symlink', lambda: os.symlink('1', '4')), ('mkfifo', lambda: os.mkfifo('5')),
    ('link', lambda: os.link('1', '6')), ('rename', lambda: os.rename('1', '7')),
    ('rename to another', lambda: os.rename('1', '90000')),
    ('unlink', lambda: os.unlink('1')),
    ('rmdir', lambda: os.rmdir('2600')),
    ('chmod', lambda: os.chmod('1', 0o600)), ('chown', lambda: os.chown('1', 1, 1)),
    ('times', lambda: os.utime('1', (5, 5))),
    ('attribute', lambda: os.setxattr('1', 'user.x', b'')),
    ('attribute away', lambda: os.removexattr('1', 'user.there')),
    ('read', lambda: read('1')), ('names', lambda: sorted(os.listdir('.'))),
):
    tried(what, act)
fd = os.open('.', os.O_RDONLY)
tried('sync', lambda: os.fsync(fd))
";

fn some_things(at: &Path) {
    fs::write(at.join("1"), "one").unwrap();
    fs::create_dir(at.join("2600")).unwrap();
    let folder = Folder::open(at).unwrap();
    let pin = Pin::at(&folder, "1".as_ref()).unwrap();
    pin.set_attribute("user.there".as_ref(), b"", 0).unwrap();
}

fn mount(words: &[&str], at: &Path) {
    // Whoever wrote closes its file a moment after it said so.
    let mut done = Command::new("mount").args(words).arg(at).output().unwrap();
    for _ in 0..500 {
        if done.status.success() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        done = Command::new("mount").args(words).arg(at).output().unwrap();
    }
    panic!("mount {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A file system below that was made read-only while it is served, and a mount that is: both refuse what the kernel does
/// of a read-only directory, in its words.
#[test]
fn nothing_changes_what_is_read_only() {
    let bind = |lower: &Path| {
        let status = Command::new("mount")
            .arg("--bind")
            .args([lower, lower])
            .status();
        assert!(status.unwrap().success());
    };
    let Some(world) = World::prepared(Settings::default(), None, bind) else {
        return;
    };
    let beside = world.native();
    fs::create_dir(world.path("flat")).unwrap();
    world.managed("managed");
    for at in [&beside, &world.path("flat"), &world.path("managed")] {
        some_things(at);
    }
    bind(&beside);
    mount(&["-o", "remount,bind,ro"], &beside);
    let natively = python(&beside, CHANGES, &[]);
    shell(
        Path::new("/"),
        (0, 0),
        &format!("umount {}", beside.display()),
    );
    let mut seen = Vec::new();
    let mut see = |how: &'static str| {
        for name in ["flat", "managed"] {
            let said = python(&world.path(name), CHANGES, &[]);
            seen.push((format!("{how}, {name}"), said));
        }
    };
    let lower = world.lower("");
    mount(&["-o", "remount,bind,ro"], &lower);
    see("below");
    mount(&["-o", "remount,bind,rw"], &lower);
    let access = newsreel_usenetfs::Access {
        read_only: true,
        ..newsreel_usenetfs::Access::default()
    };
    newsreel_host::mounts::remount(&world.path(""), access).unwrap();
    see("the mount");
    let dir = world.end();
    let lower = dir.path().join("lower");
    let found = crate::world::findings(&lower.join("managed"));
    newsreel_host::mounts::unmount(&lower, true).unwrap();
    let Some(natively) = natively else {
        return;
    };
    for word in [
        "create EROFS",
        "unlink EROFS",
        "rename to another EROFS",
        "read one",
    ] {
        assert!(
            natively.lines().any(|line| line == word),
            "no {word:?}: {natively}"
        );
    }
    for (how, said) in seen {
        assert_eq!(said.as_ref(), Some(&natively), "{how}");
    }
    assert_eq!(found, Vec::<String>::new());
}
