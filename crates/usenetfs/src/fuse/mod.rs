//! The kernel's requests, translated to the view and back.  Nothing is decided here but what the kernel may remember,
//! and which files it reads and writes itself.

mod backing;
mod convert;
mod mapped;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    BackingId, BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use newsreel_host::Caller;
use newsreel_host::caller::obey_quotas;
use newsreel_host::node::{Errno, Outcome, Renaming, Seek, Stat, appends, keeps_flags};

use crate::counters::Op;
use crate::view::{Changes, Entry, Item, View, is_order};
use backing::Backings;
use convert::{attributes, device, kind, nothing, number, time_change};
use mapped::Mapped;

/// What is known stays true for as long: a day, where nobody else changes anything.
const ALONE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where others do.
const AMONG_OTHERS: Duration = Duration::from_secs(1);

/// The most that is copied at once; the reply has 32 bits for it.
const COPY_BYTES_MAX: u64 = 1 << 30;

thread_local! {
    /// What is read, until it is sent.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A view as the kernel sees it.
#[derive(Debug)]
pub(crate) struct Fuse {
    view: Arc<View>,
    backings: Backings,
    mapped: Mapped,
    /// Files of at least so many octets, and those opened to be written, the kernel reads and writes itself, where it
    /// can: that saves a request for each piece that is written, and the question for capabilities before the first.
    passthrough_bytes_min: Option<u64>,
    remembered: Duration,
    missing_remembered: Option<Duration>,
}

impl Fuse {
    pub(crate) fn new(view: Arc<View>, passthrough_bytes_min: Option<u64>) -> Self {
        let is_shared = view.settings().is_shared;
        Self {
            view,
            backings: Backings::default(),
            mapped: Mapped::default(),
            passthrough_bytes_min,
            remembered: if is_shared { AMONG_OTHERS } else { ALONE },
            missing_remembered: (!is_shared).then_some(ALONE),
        }
    }

    /// Who has to be told how the kernel is reached.
    pub(crate) fn mapped(&self) -> Mapped {
        self.mapped.clone()
    }

    /// For how long the kernel may remember what it is told of a node.
    fn remembered(&self, node: u64) -> Duration {
        if self.mapped.has(node) {
            AMONG_OTHERS
        } else {
            self.remembered
        }
    }

    fn entry(&self, found: Outcome<Entry>, reply: ReplyEntry) {
        match found {
            Ok(entry) => reply.entry(
                &self.remembered(entry.node),
                &attributes(entry.node, &entry.stat),
                Generation(entry.generation),
            ),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn stat(&self, found: Outcome<Stat>, reply: ReplyAttr) {
        match found {
            Ok(stat) => reply.attr(&self.remembered(stat.inode), &attributes(stat.inode, &stat)),
            Err(errno) => reply.error(number(errno)),
        }
    }

    /// How a file is opened that the kernel does not read itself.
    fn plainly(&self) -> FopenFlags {
        // There is nothing to be flushed when a file is closed: what was written is written.
        let flags = FopenFlags::FOPEN_NOFLUSH;
        if self.view.settings().is_shared {
            flags
        } else {
            flags | FopenFlags::FOPEN_KEEP_CACHE
        }
    }

    fn list_plus(&self, stream: u64, from: u64, reply: &mut ReplyDirectoryPlus) -> Outcome<()> {
        self.view.list_plus(stream, from, |item, entry| {
            let remembered = match entry.is_reached() {
                true => self.remembered(entry.node),
                false => Duration::ZERO,
            };
            let is_full = reply.add(
                INodeNo(entry.node),
                item.after,
                item.name,
                &remembered,
                &attributes(entry.node, &entry.stat),
                Generation(entry.generation),
            );
            Ok(!is_full)
        })
    }
}

/// Gives a file to the kernel, which reads and writes it as this thread would: limits of room hold then, too.
fn register(give: impl FnOnce() -> io::Result<BackingId>) -> io::Result<BackingId> {
    obey_quotas()?;
    give()
}

fn empty(done: Outcome<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(number(errno)),
    }
}

fn written(done: Outcome<usize>, reply: ReplyWrite) {
    match done {
        Ok(octets) => reply.written(u32::try_from(octets).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(number(errno)),
    }
}

/// A value, or its length when no room is given for it.
fn value(found: Outcome<Vec<u8>>, room: u32, reply: ReplyXattr) {
    match found {
        Err(errno) => reply.error(number(errno)),
        Ok(value) => match u32::try_from(value.len()) {
            Ok(len) if room == 0 => reply.size(len),
            Ok(len) if len <= room => reply.data(&value),
            _ => reply.error(fuser::Errno::ERANGE),
        },
    }
}

fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

/// An open file, if one was named.
fn opened(file: Option<FileHandle>) -> Option<u64> {
    file.map(|file| file.0)
}

impl Filesystem for Fuse {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = vec![
            InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_POSIX_ACL,
        ];
        if self.view.settings().is_shared {
            wanted.push(InitFlags::FUSE_AUTO_INVAL_DATA);
        } else {
            wanted.push(InitFlags::FUSE_CACHE_SYMLINKS);
        }
        for flags in wanted {
            // What this kernel does not offer is done without.
            let _ = config.add_capabilities(flags);
        }
        let offered = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
        if !offered || config.set_max_stack_depth(1).is_err() {
            self.passthrough_bytes_min = None;
        }
        Ok(())
    }

    fn destroy(&mut self) {
        self.view.settle();
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match (self.view.lookup(parent.0, name), self.missing_remembered) {
            (Err(Errno::NOENT), Some(remembered)) => {
                reply.entry(&remembered, &nothing(), Generation(0));
            }
            (found, _) => self.entry(found, reply),
        }
    }

    fn forget(&self, _request: &Request, node: INodeNo, lookups: u64) {
        if self.view.forget(node.0, lookups) {
            self.mapped.forget(node.0);
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        node: INodeNo,
        file: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.stat(self.view.attributes(node.0, opened(file)), reply);
    }

    fn setattr(
        &self,
        _request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        file: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes {
            mode,
            uid,
            gid,
            len: size,
            accessed: time_change(accessed),
            modified: time_change(modified),
            file: opened(file),
        };
        self.stat(self.view.change(node.0, &changes), reply);
    }

    fn readlink(&self, _request: &Request, node: INodeNo, reply: ReplyData) {
        match self.view.read_link(node.0) {
            Ok(text) => reply.data(&text),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let made = self
            .view
            .make_node(parent.0, name, mode, device(rdev), caller(request));
        self.entry(made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.view.make_folder(parent.0, name, mode, caller(request));
        self.entry(made, reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.view.unlink(parent.0, name), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.view.remove_folder(parent.0, name), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let text = target.as_os_str();
        let made = self
            .view
            .make_symlink(parent.0, name, text, caller(request));
        self.entry(made, reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let known = RenameFlags::RENAME_NOREPLACE | RenameFlags::RENAME_EXCHANGE;
        if !known.contains(flags) {
            return reply.error(fuser::Errno::EINVAL);
        }
        let how = Renaming {
            no_replace: flags.contains(RenameFlags::RENAME_NOREPLACE),
            exchange: flags.contains(RenameFlags::RENAME_EXCHANGE),
        };
        let renamed = self
            .view
            .rename(parent.0, name, new_parent.0, new_name, how);
        empty(renamed, reply);
    }

    fn link(
        &self,
        _request: &Request,
        node: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        self.entry(self.view.link(node.0, new_parent.0, new_name), reply);
    }

    fn open(&self, _request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self
            .view
            .open(node.0, flags.0)
            .and_then(|handle| Ok((handle, self.view.file(handle)?)));
        let (handle, file) = match opened {
            Ok(opened) => opened,
            Err(errno) => return reply.error(number(errno)),
        };
        self.mapped.open(node.0, flags);
        let backing = self.backings.open(node.0, &file, || {
            let bytes_min = self.passthrough_bytes_min?;
            if !keeps_flags(flags.0) {
                return None;
            }
            let is_written = flags.acc_mode() != OpenAccMode::O_RDONLY;
            let is_large = || Stat::of(&*file).is_ok_and(|stat| stat.len >= bytes_min);
            (is_written || is_large()).then(|| register(|| reply.open_backing(&*file)))
        });
        match backing {
            Some(backing) => {
                self.view.counters().count(Op::Passthrough);
                let flags = FopenFlags::FOPEN_NOFLUSH;
                reply.opened_passthrough(FileHandle(handle), flags, &backing);
            }
            None => reply.opened(FileHandle(handle), self.plainly()),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _node: INodeNo,
        file: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size = usize::try_from(size).unwrap_or(0);
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            match self.view.read(file.0, &mut buffer[..size], offset) {
                Ok(got) => reply.data(&buffer[..got]),
                Err(errno) => reply.error(number(errno)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        _node: INodeNo,
        file: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // As the file's flags are now: they may be others than when it was opened.  What comes from a cache knows where it goes.
        let appends = appends(flags.0) && !how.contains(WriteFlags::FUSE_WRITE_CACHE);
        written(self.view.write(file.0, data, offset, appends), reply);
    }

    fn flush(
        &self,
        _request: &Request,
        _node: INodeNo,
        _file: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        node: INodeNo,
        file: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.backings.release(node.0);
        self.view.release(file.0);
        self.mapped.release(node.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _node: INodeNo,
        file: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        empty(self.view.sync(file.0, datasync), reply);
    }

    fn opendir(&self, _request: &Request, node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.view.open_folder(node.0) {
            Ok(stream) => reply.opened(FileHandle(stream), FopenFlags::empty()),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _node: INodeNo,
        stream: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let add = |item: &Item<'_>| {
            let inode = INodeNo(item.inode);
            Ok(!reply.add(inode, item.after, kind(item.kind_bits), item.name))
        };
        match self.view.list(stream.0, offset, add) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _node: INodeNo,
        stream: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        match self.list_plus(stream.0, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        _node: INodeNo,
        stream: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.view.release_folder(stream.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        node: INodeNo,
        _stream: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        empty(self.view.sync_folder(node.0), reply);
    }

    fn statfs(&self, _request: &Request, _node: INodeNo, reply: ReplyStatfs) {
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        match self.view.room() {
            Ok(room) => reply.statfs(
                room.blocks,
                room.free,
                room.available,
                room.inodes,
                room.inodes_free,
                small(room.block_bytes),
                small(room.name_bytes_max),
                small(room.fragment_bytes),
            ),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if is_order(name) {
            let text = str::from_utf8(value).unwrap_or_default();
            let Ok(order) = text.parse() else {
                return reply.error(fuser::Errno::EINVAL);
            };
            let (view, name, caller) = (Arc::clone(&self.view), name.to_owned(), caller(request));
            let ordered = thread::Builder::new().name("usenetfs-convert".to_owned());
            let carry_out = move || empty(view.convert(node.0, (&name, order), caller), reply);
            // Where there can be no thread the reply goes with it, and says so.
            drop(ordered.spawn(carry_out));
            return;
        }
        let flags = flags.cast_unsigned();
        empty(self.view.set_attribute(node.0, name, value, flags), reply);
    }

    fn getxattr(
        &self,
        _request: &Request,
        node: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        if size > 0 {
            return value(self.view.attribute(node.0, name), size, reply);
        }
        let file = self.backings.file(node.0);
        match self.view.attribute_len(node.0, name, file.as_deref()) {
            Ok(len) => reply.size(u32::try_from(len).unwrap_or(u32::MAX)),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn listxattr(&self, _request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        value(self.view.attribute_names(node.0), size, reply);
    }

    fn removexattr(&self, _request: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.view.remove_attribute(node.0, name), reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self
            .view
            .create(parent.0, name, mode, flags, caller(request));
        let made = made.and_then(|(entry, handle)| Ok((entry, handle, self.view.file(handle)?)));
        let (entry, handle, file) = match made {
            Ok(made) => made,
            Err(errno) => return reply.error(number(errno)),
        };
        // Who makes a file writes it.
        self.mapped.open(entry.node, OpenFlags(flags));
        let backing = self.backings.open(entry.node, &file, || {
            self.passthrough_bytes_min.filter(|_| keeps_flags(flags))?;
            Some(register(|| reply.open_backing(&*file)))
        });
        let (remembered, about) = (
            &self.remembered(entry.node),
            attributes(entry.node, &entry.stat),
        );
        let (generation, handle) = (Generation(entry.generation), FileHandle(handle));
        match backing {
            Some(backing) => {
                self.view.counters().count(Op::Passthrough);
                let flags = FopenFlags::FOPEN_NOFLUSH;
                reply.created_passthrough(remembered, &about, generation, handle, flags, &backing);
            }
            None => reply.created(remembered, &about, generation, handle, self.plainly()),
        }
    }

    fn ioctl(
        &self,
        _request: &Request,
        _node: INodeNo,
        _file: FileHandle,
        _flags: IoctlFlags,
        _cmd: u32,
        _in_data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(fuser::Errno::ENOTTY);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _node: INodeNo,
        file: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(self.view.allocate(file.0, mode, offset, length), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _node: INodeNo,
        file: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let what = match whence {
            3 => Some(Seek::Data),
            4 => Some(Seek::Hole),
            _ => None,
        };
        let found = match (what, u64::try_from(offset)) {
            (Some(what), Ok(offset)) => self.view.seek(file.0, what, offset),
            (Some(_), Err(_)) => Err(Errno::NXIO),
            (None, _) => Err(Errno::INVAL),
        };
        match found.map(i64::try_from) {
            Ok(Ok(offset)) => reply.offset(offset),
            Ok(Err(_)) => reply.error(fuser::Errno::EOVERFLOW),
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _node_in: INodeNo,
        file_in: FileHandle,
        offset_in: u64,
        _node_out: INodeNo,
        file_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let len = usize::try_from(len.min(COPY_BYTES_MAX)).unwrap_or(0);
        let copied = self
            .view
            .copy((file_in.0, offset_in), (file_out.0, offset_out), len);
        written(copied, reply);
    }
}
