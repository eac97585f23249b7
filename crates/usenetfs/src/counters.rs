//! What was asked of a mounted file system, by kind: the rows of the paper's Table 1, for `status` and `advise`.
//!
//! Only what reaches the server is counted; the kernel answers much from its own memory.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A kind of operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* $variant,)*
        }

        impl Op {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// How it is called.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        const OPS: usize = [$(Op::$variant,)*].len();
    };
}

ops! {
    /// A name was looked up.
    Lookup = "lookup",
    /// Of them, names that were not there.
    Missing = "lookup_missing",
    /// The kernel gave up an inode.
    Forget = "forget",
    /// Attributes were asked for.
    GetAttr = "getattr",
    /// Attributes were changed.
    SetAttr = "setattr",
    /// The text of a link was read.
    ReadLink = "readlink",
    /// A file was made and opened.
    Create = "create",
    /// A special file was made.
    MakeNode = "mknod",
    /// A directory was made.
    MakeFolder = "mkdir",
    /// A symbolic link was made.
    Symlink = "symlink",
    /// A file got another name.
    Link = "link",
    /// A name was removed.
    Unlink = "unlink",
    /// A directory was removed.
    RemoveFolder = "rmdir",
    /// An entry was renamed.
    Rename = "rename",
    /// A file was opened.
    Open = "open",
    /// Of them, files the kernel reads and writes itself.
    Passthrough = "open_passthrough",
    /// Octets were read.
    Read = "read",
    /// Octets were written.
    Write = "write",
    /// A file was closed by its last user.
    Release = "release",
    /// A file was made durable.
    Fsync = "fsync",
    /// A directory was opened.
    OpenFolder = "opendir",
    /// A part of a listing was read.
    List = "readdir",
    /// A part of a listing was read with the attributes of its entries.
    ListPlus = "readdirplus",
    /// A directory was made durable.
    FsyncFolder = "fsyncdir",
    /// The room of the file system was asked for.
    StatFs = "statfs",
    /// An extended attribute was read or their names listed.
    GetXattr = "getxattr",
    /// An extended attribute was set or removed.
    SetXattr = "setxattr",
    /// The conversion of a directory was ordered.
    Convert = "convert",
    /// A range was reserved, freed or cleared.
    Allocate = "fallocate",
    /// The next data or hole was looked for.
    Seek = "lseek",
    /// A range was copied from file to file.
    Copy = "copy_file_range",
    /// An empty bucket was removed.
    BucketRemoved = "buckets_removed",
    /// The set-uid bit of a directory that is not empty was to be changed, and stayed as it was.
    BitKept = "suid_kept",
}

/// So often each kind was asked for.
#[derive(Debug)]
pub struct Counters([AtomicU64; OPS]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; OPS])
    }
}

impl Counters {
    /// Counts one.
    pub fn count(&self, op: Op) {
        self.add(op, 1);
    }

    /// Counts several.
    pub fn add(&self, op: Op, times: u64) {
        if let Some(counter) = self.0.get(op as usize) {
            counter.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// So many there were.
    #[must_use]
    pub fn of(&self, op: Op) -> u64 {
        let counter = self.0.get(op as usize);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_counter_and_name() {
        let counters = Counters::default();
        for (at, op) in Op::ALL.iter().enumerate() {
            counters.add(*op, at as u64);
        }
        for (at, op) in Op::ALL.iter().enumerate() {
            assert_eq!(counters.of(*op), at as u64, "{}", op.name());
        }
        let names: std::collections::BTreeSet<_> = Op::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(names.len(), Op::ALL.len());
    }
}
