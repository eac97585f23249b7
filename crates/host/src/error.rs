//! The one error of this crate: what was tried, on which path, and what the machine said.
//!
//! Variants tell apart what a caller can do about it: make the file, free space, wait for the lock's holder, treat
//! the medium as failing, or (in crash tests) stop.  Nothing here logs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What Linux says of a bad spot: of a sector, of its check data, of what a file system keeps there.
const MEDIUM: [Errno; 5] = [
    Errno::IO,
    Errno::NODATA,
    Errno::ILSEQ,
    Errno::UCLEAN,
    Errno::BADMSG,
];

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What was tried on the disk; also how a faulty disk's script names an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Open or make a file.
    Open,
    /// Read at an offset.
    Read,
    /// Write at an offset.
    Write,
    /// Make a file's data durable.
    Sync,
    /// Make a directory's names durable.
    SyncDir,
    /// Cut or extend a file.
    SetLen,
    /// Fill a range with written zeros.
    ZeroFill,
    /// Reserve room for a range.
    Reserve,
    /// Give room of a file back.
    GiveBack,
    /// Give a file another name.
    Rename,
    /// Remove a name.
    Remove,
    /// Give a file one more name.
    Link,
    /// Make directories.
    CreateDir,
    /// Change mode, owner or an extended attribute.
    SetAttribute,
    /// List a directory.
    List,
    /// Ask for a length, an existence or free room.
    Stat,
    /// Take a lock.
    Lock,
    /// Ask the kernel for random octets.
    Random,
}

impl Op {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::SyncDir,
        Self::SetLen,
        Self::ZeroFill,
        Self::Reserve,
        Self::GiveBack,
        Self::Rename,
        Self::Remove,
        Self::Link,
        Self::CreateDir,
        Self::SetAttribute,
        Self::List,
        Self::Stat,
        Self::Lock,
        Self::Random,
    ];

    /// Whether the operation changes what a restart would find.
    #[must_use]
    pub const fn changes(self) -> bool {
        !matches!(
            self,
            Self::Read | Self::List | Self::Stat | Self::Lock | Self::Random
        )
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SyncDir => "sync directory",
            Self::SetLen => "set length of",
            Self::ZeroFill => "zero-fill",
            Self::Reserve => "reserve room in",
            Self::GiveBack => "give back room of",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::Link => "link",
            Self::CreateDir => "create directory",
            Self::SetAttribute => "set an attribute of",
            Self::List => "list",
            Self::Stat => "look at",
            Self::Lock => "lock",
            Self::Random => "get random octets from",
        })
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file or directory.
    #[error("cannot {op} {}: it does not exist", path.display())]
    NotFound {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
    },
    /// The file was to be new and is there already.
    #[error("cannot {op} {}: it exists already", path.display())]
    Exists {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
    },
    /// The file system is full.
    #[error("cannot {op} {}: no space left; free some, or make the store smaller", path.display())]
    Full {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
    },
    /// The owner's quota is used up.
    #[error("cannot {op} {}: over the quota of its owner; free some, or have it raised", path.display())]
    OverQuota {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
    },
    /// Another process holds the lock.
    #[error("{} is locked{}; stop that process first", path.display(), by_pid(*pid))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder, when it could be read.
        pid: Option<u32>,
    },
    /// The file ends before what was asked for.
    #[error("cannot read {wanted} octets at {offset} of {}: the file ends after {got}", path.display())]
    ShortRead {
        /// Which file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// How many octets were wanted.
        wanted: usize,
        /// How many there were.
        got: usize,
    },
    /// Something else stands in the file's place.
    #[error("cannot {op} {}: it is {what}; take it away, and put the file back if there was one", path.display())]
    NotAFile {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A test's script stopped the machine here: nothing after this happens.
    #[error("cannot {op} {}: the machine was stopped by the test", path.display())]
    Stopped {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
    },
    /// Anything else the operating system said, a failing medium above all.
    #[error("cannot {op} {}: {source}", path.display())]
    Io {
        /// What was tried.
        op: Op,
        /// On which path.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

/// [`Error`] without its details, to decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file or directory.
    NotFound,
    /// There already.
    Exists,
    /// No space or quota left.
    Full,
    /// Another process holds the lock.
    Locked,
    /// The file is shorter than expected.
    ShortRead,
    /// A directory, a pipe or the like stands in the file's place.
    NotAFile,
    /// Stopped by a test's script.
    Stopped,
    /// Anything else; [`Error::is_medium`] tells whether the medium is to blame.
    Io,
}

fn by_pid(pid: Option<u32>) -> String {
    pid.map_or_else(
        || " by another process".to_owned(),
        |pid| format!(" by process {pid}"),
    )
}

impl Error {
    /// Sorts an operating system's error.
    #[must_use]
    pub fn from_io(op: Op, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { op, path },
            io::ErrorKind::AlreadyExists => Self::Exists { op, path },
            io::ErrorKind::StorageFull => Self::Full { op, path },
            io::ErrorKind::QuotaExceeded => Self::OverQuota { op, path },
            io::ErrorKind::IsADirectory => Self::NotAFile {
                op,
                path,
                what: "a directory",
            },
            _ if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Self::NotAFile {
                op,
                path,
                what: "a symbolic link that leads to itself",
            },
            _ => Self::Io { op, path, source },
        }
    }

    /// What a failing medium says (EIO).
    #[must_use]
    pub fn medium(op: Op, path: &Path) -> Self {
        let source = io::Error::from_raw_os_error(Errno::IO.raw_os_error());
        Self::Io {
            op,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Whether the medium has a bad spot there, so that what lies elsewhere may be good and what was lost has to be made
    /// anew.  A device that is gone, or a process without descriptors, is none of that: nothing follows for the data.
    #[must_use]
    pub fn is_medium(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        let code = source.raw_os_error();
        code.is_some_and(|code| MEDIUM.iter().any(|errno| errno.raw_os_error() == code))
    }

    /// Whether a file stands in the place of a directory above it.
    #[must_use]
    pub fn is_below_a_file(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    }

    /// Whether this path is kept from who runs the program: what lies beside it may be read all the same.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether it may not be written, for whatever reason: it may be read all the same.
    #[must_use]
    pub fn is_unwritable(&self) -> bool {
        let is_so = |kind| {
            matches!(
                kind,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            )
        };
        matches!(self, Self::Io { source, .. } if is_so(source.kind()))
    }

    /// The error without its details.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } => ErrorKind::Exists,
            Self::Full { .. } | Self::OverQuota { .. } => ErrorKind::Full,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::ShortRead { .. } => ErrorKind::ShortRead,
            Self::NotAFile { .. } => ErrorKind::NotAFile,
            Self::Stopped { .. } => ErrorKind::Stopped,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// What was tried.
    #[must_use]
    pub const fn op(&self) -> Op {
        match self {
            Self::NotFound { op, .. }
            | Self::Exists { op, .. }
            | Self::Full { op, .. }
            | Self::OverQuota { op, .. }
            | Self::NotAFile { op, .. }
            | Self::Stopped { op, .. }
            | Self::Io { op, .. } => *op,
            Self::Locked { .. } => Op::Lock,
            Self::ShortRead { .. } => Op::Read,
        }
    }

    /// The path it was tried on.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path, .. }
            | Self::Exists { path, .. }
            | Self::Full { path, .. }
            | Self::OverQuota { path, .. }
            | Self::Locked { path, .. }
            | Self::ShortRead { path, .. }
            | Self::NotAFile { path, .. }
            | Self::Stopped { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_where_and_what_to_do() {
        let path = Path::new("/spool/a.log");
        let quota = Error::from_io(Op::Write, path, io::Error::from_raw_os_error(122));
        assert_eq!(quota.kind(), ErrorKind::Full);
        assert!(quota.to_string().contains("over the quota"), "{quota}");
        // Passed on by a file system in front of another one it is still what it was.
        assert_eq!(Errno::from(&quota), Errno::DQUOT);
        let full = Error::from_io(Op::Write, path, io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::Full);
        assert_eq!(
            full.to_string(),
            "cannot write /spool/a.log: no space left; free some, or make the store smaller"
        );
        let medium = Error::medium(Op::Sync, path);
        assert_eq!(
            (medium.kind(), medium.op(), medium.path()),
            (ErrorKind::Io, Op::Sync, path)
        );
        assert!(medium.to_string().contains("os error 5"), "{medium}");
        assert!(medium.is_medium() && !full.is_medium());
        for (code, is_medium) in [(61, true), (84, true), (6, false), (24, false), (19, false)] {
            let error = Error::from_io(Op::Read, path, io::Error::from_raw_os_error(code));
            assert_eq!(error.is_medium(), is_medium, "{error}");
        }
        for (code, is_below_a_file, is_denied) in
            [(20, true, false), (13, false, true), (5, false, false)]
        {
            let error = Error::from_io(Op::Open, path, io::Error::from_raw_os_error(code));
            let told = (error.is_below_a_file(), error.is_denied());
            assert_eq!(told, (is_below_a_file, is_denied), "{error}");
        }
        let locked = Error::Locked {
            path: path.to_path_buf(),
            pid: Some(42),
        };
        assert_eq!(
            locked.to_string(),
            "/spool/a.log is locked by process 42; stop that process first"
        );
    }
}
