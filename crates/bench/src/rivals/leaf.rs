//! News servers for small sites: leafnode and sn, as Debian packages them.  Each fetches the groups it is to have with a program of its own,
//! and inetd starts another for each reader.
//!
//! leafnode has its configuration and spool where it was built to have them: it sees directories of its own in these places, and nobody else
//! does.  Invariant: nothing outside its directory is touched, nor `/var/spool` nor `/etc`; it listens on loopback alone.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a server that is compared are no spool of ours"
)]

use std::fs::{create_dir_all, write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use newsreel_host::process::own_uid;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;

use super::inetd::{Inetd, Limit, Program};
use crate::error::Error;

/// Where Debian has their programs, from the root of the file system or where a package was unpacked.
const PROGRAMS: &str = "usr/sbin";

/// leafnode's user and group.
const USER: &str = "news";

/// What leafnode's programs see as its spool, and as the directory above that of its configuration.
const LEAFNODE_SPOOL: &str = "/var/spool/news";
const LEAFNODE_ETC: &str = "/etc/news";

/// Folders of leafnode's spool.
const LEAFNODE_FOLDERS: [&str; 5] = [
    "failed.postings",
    "interesting.groups",
    "leaf.node",
    "out.going",
    "temp.files",
];

/// ... and below `message.id`.
const LEAFNODE_IDS: u32 = 1000;

/// Groups that sn fetches at once, at most, and commands that it sends ahead.
const SN_PARALLEL: &str = "8";
const SN_AHEAD: &str = "5";

/// Articles of a group that sn fetches, at least: as many as it does by itself.
const SN_ARTICLES: u64 = 200;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    Leafnode,
    Sn,
}

/// What one is to fetch, and from whom.
#[derive(Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) origin: SocketAddr,
    pub(crate) groups: &'w [String],
    /// Articles of a group, at most.
    pub(crate) articles: u64,
}

impl Leaf {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Leafnode, Self::Sn];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Leafnode => "leafnode",
            Self::Sn => "sn",
        }
    }

    /// The program that fetches.
    pub(crate) const fn fetcher(self) -> &'static str {
        match self {
            Self::Leafnode => "fetchnews",
            Self::Sn => "snget",
        }
    }

    /// Whether it lists the groups of its origin that it does not fetch.
    pub(crate) const fn lists_all(self) -> bool {
        matches!(self, Self::Leafnode)
    }

    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Leafnode => &["leafnode", "fetchnews"],
            Self::Sn => &[
                "snntpd.bin",
                "snget",
                "snnewgroup",
                "snprimedb",
                "snfetch",
                "snstore",
                "SNHELLO",
            ],
        }
    }

    /// Why it cannot be run, where it is looked for below `root`.
    pub(crate) fn missing(self, root: &Path) -> Option<String> {
        let paths = self.programs().iter().map(|name| program(root, name));
        if let Some(path) = paths.into_iter().find(|path| !path.exists()) {
            return Some(format!("not installed ({} is missing)", path.display()));
        }
        let needs_root = self == Self::Leafnode && own_uid() != 0;
        needs_root.then(|| "only root may run it in directories of its own".to_owned())
    }

    /// Makes what it is to run on in `place`, and does something in a thread where its programs find that.
    pub(crate) fn prepared<T: Send>(
        self,
        (root, place): (&Path, &Path),
        wanted: &Wanted<'_>,
        act: impl FnOnce(&Prepared<'_>) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let own = Prepared {
            leaf: self,
            root,
            place,
            articles: wanted.articles,
        };
        match self {
            Self::Leafnode => {
                make_leafnode(place, wanted)?;
                let etc = (place.join("etc"), LEAFNODE_ETC);
                let spool = (place.join("spool"), LEAFNODE_SPOOL);
                among_mounts(&[etc, spool], || act(&own))
            }
            Self::Sn => {
                make(&place.join("spool"))?;
                let (host, port) = (wanted.origin.ip().to_string(), wanted.origin.port());
                let limit = Limit::new(super::command::PATIENCE);
                // Those that store at the same time would make its table of message-ids each for itself.
                own.program("snprimedb", &[])
                    .run(&place.join("snprimedb.log"), &limit)?;
                for group in wanted.groups {
                    let port = port.to_string();
                    own.program("snnewgroup", &[group, &host, &port])
                        .run(&place.join("snnewgroup.log"), &limit)?;
                }
                act(&own)
            }
        }
    }
}

/// One that has its directory, and knows its origin and its groups.
#[derive(Debug)]
pub(crate) struct Prepared<'p> {
    leaf: Leaf,
    root: &'p Path,
    place: &'p Path,
    articles: u64,
}

impl Prepared<'_> {
    /// Has its own program fetch the groups.
    pub(crate) fn fetch(&self, limit: &Limit) -> Result<(), Error> {
        let most = self.articles.max(SN_ARTICLES).to_string();
        let arguments: &[&str] = match self.leaf {
            // In the foreground to the end, and no group is forgotten.
            Leaf::Leafnode => &["-n", "-w"],
            Leaf::Sn => &["-p", SN_PARALLEL, "-c", SN_AHEAD, "-m", &most],
        };
        let log = self.place.join("fetch.log");
        self.program(self.leaf.fetcher(), arguments)
            .run(&log, limit)
    }

    /// Serves what was fetched.
    pub(crate) fn serve(&self, limit: &Limit) -> Result<Inetd, Error> {
        let server = match self.leaf {
            Leaf::Leafnode => "leafnode",
            Leaf::Sn => "snntpd.bin",
        };
        Inetd::start(self.program(server, &[]), limit.clone())
    }

    fn program(&self, name: &str, arguments: &[&str]) -> Program {
        let own = self.root.join(PROGRAMS).display().to_string();
        let program = Program::new(&program(self.root, name), arguments);
        program
            .with("PATH", format!("{own}:/usr/sbin:/usr/bin:/sbin:/bin"))
            .with("SNROOT", self.place.join("spool").display().to_string())
    }
}

fn program(root: &Path, name: &str) -> PathBuf {
    root.join(PROGRAMS).join(name)
}

/// leafnode's configuration: `.internal` is a domain that it takes, and that nobody has.
fn leafnode_config(origin: SocketAddr) -> String {
    format!(
        "hostname = leafnode.bench.internal\nexpire = 20\nserver = {}\nport = {}\n",
        origin.ip(),
        origin.port()
    )
}

fn make_leafnode(place: &Path, wanted: &Wanted<'_>) -> Result<(), Error> {
    let (etc, spool) = (place.join("etc/leafnode"), place.join("spool"));
    make(&etc)?;
    for folder in LEAFNODE_FOLDERS {
        make(&spool.join(folder))?;
    }
    for id in 0..LEAFNODE_IDS {
        make(&spool.join(format!("message.id/{id:03}")))?;
    }
    let config = (etc.join("config"), leafnode_config(wanted.origin));
    let interesting = spool.join("interesting.groups");
    let groups = wanted.groups.iter();
    let groups = groups.map(|group| (interesting.join(group), String::new()));
    for (path, text) in std::iter::once(config).chain(groups) {
        write(&path, text).map_err(|error| failed(&path, &error.to_string()))?;
    }
    let owner = format!("{USER}:{USER}");
    let spool = spool.display().to_string();
    Program::new(Path::new("chown"), &["-R", &owner, &spool]).run(
        &place.join("chown.log"),
        &Limit::new(super::command::PATIENCE),
    )
}

fn make(path: &Path) -> Result<(), Error> {
    create_dir_all(path).map_err(|error| failed(path, &error.to_string()))
}

/// Does something in a thread that sees directories in the places of others, with all that it starts; they go with it.
fn among_mounts<T: Send>(
    mounts: &[(PathBuf, &str)],
    act: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            mount(mounts)?;
            act()
        });
        thread.join().map_err(|_| Error::WorkerLost)?
    })
}

fn mount(mounts: &[(PathBuf, &str)]) -> Result<(), Error> {
    let said = |place: &str| {
        let place = PathBuf::from(place);
        move |error: rustix::io::Errno| failed(&place, &format!("it cannot be mounted: {error}"))
    };
    #[expect(
        deprecated,
        reason = "what makes it dangerous, a table of open files of its own, is not asked for"
    )]
    rustix::thread::unshare(UnshareFlags::FS | UnshareFlags::NEWNS).map_err(said("/"))?;
    let apart = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", apart).map_err(said("/"))?;
    for (own, place) in mounts {
        mount_bind(own, *place).map_err(said(place))?;
    }
    Ok(())
}

fn failed(path: &Path, why: &str) -> Error {
    Error::Program {
        program: path.display().to_string(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_told_with_the_file_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        make(&root.join(PROGRAMS)).unwrap();
        for name in Leaf::Sn.programs() {
            let missing = Leaf::Sn.missing(root).unwrap();
            assert!(missing.starts_with("not installed ("), "{missing}");
            write(program(root, name), "").unwrap();
        }
        assert_eq!(Leaf::Sn.missing(root), None);
        let missing = Leaf::Leafnode.missing(root).unwrap();
        assert!(
            missing.ends_with("/usr/sbin/leafnode is missing)"),
            "{missing}"
        );
    }

    #[test]
    fn leafnode_is_told_its_origin() {
        let config = leafnode_config("127.0.0.1:1190".parse().unwrap());
        assert!(
            config.ends_with("server = 127.0.0.1\nport = 1190\n"),
            "{config}"
        );
    }
}
