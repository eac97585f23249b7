//! A view under a mount point, until it is taken off again.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::mem;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use fuser::{Config, MountOption, Session, SessionACL};
pub use newsreel_host::mounts::Access;
use newsreel_host::mounts::MountId;
use newsreel_host::{Clock, Folder, process};

use crate::error::{Error, Result};
use crate::fuse::Fuse;
use crate::view::{Settings, View};

/// The type of a mounted view, as it stands in the table of mounts.
pub const FILE_SYSTEM: &str = "fuse.newsreel";

/// What stands for an octet of a path there, with two digits behind it.
const SIGN: u8 = b'%';

/// What a directory is called in the table of mounts: itself, but for octets that are no UTF-8, and the sign itself, which the
/// FUSE crate takes in no other way.  [`lower_of`] makes the directory out of it.
fn source_of(lower: &Path) -> String {
    let mut name = String::new();
    for chunk in lower.as_os_str().as_bytes().utf8_chunks() {
        for part in chunk.valid().split_inclusive('%') {
            name.push_str(part.strip_suffix('%').unwrap_or(part));
            if part.ends_with('%') {
                name.push_str("%25");
            }
        }
        for octet in chunk.invalid() {
            // Writing into a string cannot fail.
            let _ = write!(name, "%{octet:02X}");
        }
    }
    name
}

/// The directory that a mounted view shows, by what it is called in the table of mounts.
#[must_use]
pub fn lower_of(source: &Path) -> PathBuf {
    let mut octets = Vec::new();
    let mut rest = source.as_os_str().as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .filter(|digits| first == SIGN && digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(octet) => {
                octets.push(octet);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                octets.push(first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(octets).into()
}

/// The part of it that is ours.
const SUBTYPE: &str = "subtype=newsreel";

/// What to mount, where and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory that is shown.
    pub lower: PathBuf,
    /// Where it is shown; it may be the same.
    pub at: PathBuf,
    /// How the view behaves.
    pub settings: Settings,
    /// What may be done.
    pub access: Access,
    /// Files of at least so many octets the kernel reads and writes itself; `None` for none.
    pub passthrough_bytes_min: Option<u64>,
    /// Threads that answer the kernel.
    pub threads: usize,
}

/// A mounted view.
#[derive(Debug)]
pub struct Mounted {
    session: Session<Fuse>,
    view: Arc<View>,
    own: Own,
}

/// Ends a mount from another thread.
#[derive(Debug)]
pub struct Unmounter {
    at: PathBuf,
    id: MountId,
}

/// What was mounted; it is taken off when this is dropped, unless the kernel has done that.
#[derive(Debug)]
struct Own {
    at: PathBuf,
    id: MountId,
    is_gone: bool,
}

impl Drop for Own {
    fn drop(&mut self) {
        if !self.is_gone {
            let _ = self.id.unmount(&self.at);
        }
    }
}

/// What a user who is not root is refused is so without a reason; `at` is where they mount.
fn with_advice(error: io::Error, at: &Path) -> io::Error {
    let needs = match error.kind() {
        _ if process::own_uid() == 0 => return error,
        io::ErrorKind::PermissionDenied => {
            "/dev/fuse with mode 0666, and a mount point that is theirs"
        }
        // It is not the place that is missing.
        io::ErrorKind::NotFound if Folder::open(at).is_ok() => {
            "the program fusermount3, which is not installed (package fuse3)"
        }
        _ => return error,
    };
    io::Error::new(
        error.kind(),
        format!("{error}: who is not root needs {needs}"),
    )
}

impl Mounted {
    /// Mounts a view.  The mask of this process for new files is cleared: the kernel has applied the caller's.
    pub fn new(options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let lower = Folder::open(&options.lower)?;
        let view = Arc::new(View::new(lower, options.settings, clock)?);
        let fuse = Fuse::new(Arc::clone(&view), options.passthrough_bytes_min);
        process::clear_umask();
        let config = config(options, view.is_for_everybody());
        let failed = |source| Error::Mount {
            lower: options.lower.clone(),
            at: options.at.clone(),
            source: with_advice(source, &options.at),
        };
        // What is not there, or may not be looked at, is the kernel's to refuse.
        if let Err(newsreel_host::Error::Io { source, .. }) = Folder::open(&options.at)
            && source.kind() == io::ErrorKind::NotADirectory
        {
            return Err(failed(source));
        }
        let mapped = fuse.mapped();
        let session = Session::new(fuse, &options.at, &config).map_err(failed)?;
        let id = MountId::at(&options.at)?;
        mapped.listen(session.notifier());
        Ok(Self {
            session,
            view,
            own: Own {
                at: options.at.clone(),
                id,
                is_gone: false,
            },
        })
    }

    /// The view that is mounted.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Where it is mounted.
    #[must_use]
    pub fn at(&self) -> &Path {
        &self.own.at
    }

    /// What ends it.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        Unmounter {
            at: self.own.at.clone(),
            id: self.own.id,
        }
    }

    /// Answers the kernel until it is unmounted.
    pub fn serve(self) -> Result<()> {
        let Self {
            session,
            view,
            mut own,
        } = self;
        let ended = end(run(session));
        // Whoever ordered a conversion is told nothing any more when the mount was cut off, but it goes to its end.
        view.end();
        // What lies at the place by now is somebody else's.
        own.is_gone = ended.is_ok();
        ended.map_err(|source| Error::Broken {
            at: own.at.clone(),
            source,
        })
    }
}

/// Runs a session.  The crate would unmount its path when that ends, whatever lies there by then: what it keeps for that is
/// never dropped.  The descriptor in it goes with the process.
fn run(session: Session<Fuse>) -> io::Result<()> {
    let nobody = thread::Builder::new().spawn(|| Ok(()))?;
    let mut background = session.spawn()?;
    let server = mem::replace(&mut background.guard, nobody);
    mem::forget(background);
    server
        .join()
        .map_err(|_| io::Error::other("the thread that serves broke"))?
}

/// How a session ended.  A thread that takes a request (the release of a file, which nobody waits for) at the moment of
/// the unmount is told `ECONNABORTED`, the others `ENODEV`; both say that the kernel has ended the mount.
fn end(ended: io::Result<()>) -> io::Result<()> {
    match ended {
        Err(source) if source.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
        ended => ended,
    }
}

impl Unmounter {
    /// Unmounts; if it is in use, it is gone from its place at once, and ends with its last user.  Where it lies there no more,
    /// or under another mount, nothing is done; says so.
    pub fn unmount(&self) -> Result<bool> {
        Ok(self.id.unmount(&self.at)?)
    }
}

fn config(options: &Options, is_for_everybody: bool) -> Config {
    let Access {
        read_only,
        devices,
        set_uid,
        no_exec,
        no_atime,
    } = options.access;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source_of(&options.lower)),
        MountOption::CUSTOM(SUBTYPE.to_owned()),
        MountOption::DefaultPermissions,
    ];
    let flags = [
        (read_only, MountOption::RO),
        (devices, MountOption::Dev),
        (set_uid, MountOption::Suid),
        (no_exec, MountOption::NoExec),
        (no_atime, MountOption::NoAtime),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    config.mount_options.extend(set.map(|(_, option)| option));
    config.acl = if is_for_everybody {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = options.threads > 1;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_goes_into_the_table_of_mounts_and_comes_back() {
        for (octets, name) in [
            (b"/var/spool/news".as_slice(), "/var/spool/news"),
            ("/gr\u{fc}n, blau".as_bytes(), "/gr\u{fc}n, blau"),
            (b"/b\xfccher/\xff", "/b%FCcher/%FF"),
            (b"/100%/%FC%", "/100%25/%25FC%25"),
        ] {
            let lower = PathBuf::from(OsString::from_vec(octets.to_vec()));
            assert_eq!(source_of(&lower), name);
            assert_eq!(lower_of(Path::new(name)), lower);
        }
        // Of an older server.
        for name in ["/100%", "/%zz/%", "/%+5", "/%\u{fc}"] {
            assert_eq!(lower_of(Path::new(name)), Path::new(name));
        }
    }
}
