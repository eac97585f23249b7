//! A view under a mount point, until it is taken off again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use newsreel_host::{Clock, Folder, process};

use crate::error::{Error, Result};
use crate::fuse::Fuse;
use crate::view::{Settings, View};

/// The type of a mounted view, as it stands in the table of mounts.
pub const FILE_SYSTEM: &str = "fuse.newsreel";

/// The part of it that is ours.
const SUBTYPE: &str = "subtype=newsreel";

/// What may be done with what is mounted, beside reading it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Nothing can be changed.
    pub read_only: bool,
    /// Devices can be used.
    pub devices: bool,
    /// Set-uid programs run as their owner.
    pub set_uid: bool,
    /// No program can be run.
    pub no_exec: bool,
    /// Reading a file leaves its time alone.
    pub no_atime: bool,
}

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
    at: PathBuf,
}

/// Ends a mount from another thread.
#[derive(Debug)]
pub struct Unmounter {
    session: SessionUnmounter,
    at: PathBuf,
}

impl Mounted {
    /// Mounts a view.  The mask of this process for new files is cleared: the kernel has applied the caller's.
    pub fn new(options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let lower = Folder::open(&options.lower)?;
        let view = Arc::new(View::new(lower, options.settings, clock)?);
        let fuse = Fuse::new(Arc::clone(&view), options.passthrough_bytes_min);
        process::clear_umask();
        let config = config(options, view.is_for_everybody());
        let session = Session::new(fuse, &options.at, &config).map_err(|source| Error::Mount {
            lower: options.lower.clone(),
            at: options.at.clone(),
            source,
        })?;
        Ok(Self {
            session,
            view,
            at: options.at.clone(),
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
        &self.at
    }

    /// What ends it.
    pub fn unmounter(&mut self) -> Unmounter {
        Unmounter {
            session: self.session.unmount_callable(),
            at: self.at.clone(),
        }
    }

    /// Answers the kernel until it is unmounted.
    pub fn serve(self) -> Result<()> {
        let Self { session, view, at } = self;
        let ended = session.run();
        view.settle();
        end(ended).map_err(|source| Error::Broken { at, source })
    }
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
    /// Unmounts; if it is in use, it is gone from its place at once, and ends with its last user.
    pub fn unmount(&mut self) -> Result<()> {
        if self.session.unmount().is_ok() {
            return Ok(());
        }
        Ok(newsreel_host::mounts::unmount(&self.at, true)?)
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
    let lower = options.lower.to_string_lossy();
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(lower.into_owned()),
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
