//! Inodes of a real file system, reached by a descriptor or by a handle, and what can be done with them and in them.
//!
//! For a file system that stands in front of another one.  Errors are the kernel's own numbers, because they are passed
//! on as they are; no path is ever joined, and no symbolic link is followed.

mod file;
mod handle;
mod names;
mod pin;
mod stat;
mod stream;
#[cfg(test)]
mod tests;

pub use file::{OpenFile, Seek};
pub use handle::{Handle, HandleRoot};
pub use names::{
    Renaming, appends, create_file, inode_above, keeps_flags, link, make_folder, make_node,
    make_symlink, open_bucket, remove, remove_folder, rename,
};
pub use pin::{Pin, real_path};
pub use rustix::io::Errno;
pub use stat::{Room, Stamp, Stat, TimeChange, look_at, set_times};
pub use stream::{FolderStream, Found};

/// What the kernel says: a value, or its number for why not.
pub type Outcome<T> = Result<T, Errno>;

impl From<&crate::Error> for Errno {
    fn from(error: &crate::Error) -> Self {
        match error {
            crate::Error::NotFound { .. } => Self::NOENT,
            crate::Error::Exists { .. } => Self::EXIST,
            crate::Error::Full { .. } => Self::NOSPC,
            crate::Error::OverQuota { .. } => Self::DQUOT,
            crate::Error::Locked { .. } => Self::BUSY,
            crate::Error::NotAFile { .. } => Self::ISDIR,
            crate::Error::Io { source, .. } => source
                .raw_os_error()
                .map_or(Self::IO, Self::from_raw_os_error),
            crate::Error::ShortRead { .. } | crate::Error::Stopped { .. } => Self::IO,
        }
    }
}
