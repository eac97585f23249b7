//! `newsreel usenetfs`: large article directories as many small ones; mounted, converted, verified, weighed.
//!
//! Only arguments are read and reports printed here; what is done is in the crates `usenetfs` and `layout`.

mod advise;
mod convert;
mod helper;
mod mount;
mod status;
mod through;
mod umount;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_host::folder::FileSystemKind;
use newsreel_host::{ErrorKind, Folder, mounts};
use newsreel_layout::convert::is_bucket;
use newsreel_layout::{Algorithm, SET_MARK, set_around};
use newsreel_usenetfs::{FILE_SYSTEM, lower_of};

use crate::output;

pub(crate) use helper::arguments;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show a directory, and those below it, with managed ones flat
    Mount(mount::Args),
    /// Take a mount off again
    Umount(umount::Args),
    /// Tell how a mount is and what was asked of it
    Status(status::Args),
    /// Turn a full directory over, or back
    #[command(subcommand)]
    Convert(convert::Verb),
    /// Look for what no view finds, and for what is left over
    Verify(verify::Args),
    /// Say whether managing a directory pays
    Advise(advise::Args),
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Mount(args) => mount::run(args),
        Verb::Umount(args) => umount::run(args),
        Verb::Status(args) => status::run(args),
        Verb::Convert(verb) => convert::run(verb),
        Verb::Verify(args) => verify::run(args),
        Verb::Advise(args) => advise::run(args),
    }
}

/// An algorithm of the command line.
pub(super) fn algorithm(text: &str) -> Result<Algorithm, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// The whole path of a directory that a mount of ours shows, if one does.  A server that does not answer is told of.
fn within_mount(directory: &Path) -> Result<Option<PathBuf>> {
    let path = directory.to_path_buf();
    let looked = in_time(move || mounts::canonical(&path));
    let is_answered = looked.is_some();
    let path = looked.map_or_else(|| std::path::absolute(directory), Ok)?;
    let mut above = mounts::mount_points()?;
    above.retain(|mount| path.starts_with(&mount.at));
    // Of two at one place the later one lies on top.
    let nearest = above
        .iter()
        .max_by_key(|mount| mount.at.components().count());
    let is_ours = nearest.is_some_and(|mount| mount.kind == FILE_SYSTEM);
    if is_ours && !is_answered {
        say_waiting(&path);
    }
    Ok(is_ours.then_some(path))
}

/// Refuses a directory that is seen through a mount of ours, which shows it as it does not lie.
fn not_seen_through(folder: &Folder) -> Result<()> {
    let is_fuse = folder.file_system()?.kind == FileSystemKind::Fuse;
    if is_fuse && within_mount(folder.path())?.is_some() {
        bail!(
            "{} is seen through a mount; name the directory that is mounted, and unmount it first if it is mounted over itself",
            folder.path().display()
        );
    }
    Ok(())
}

/// What is to be done with a directory that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Convert,
    Repair,
}

/// Refuses to work on a directory that is seen through a mount, or that a mount shows.
fn not_mounted(folder: &Folder, work: Work) -> Result<()> {
    if folder.file_system()?.kind == FileSystemKind::Fuse {
        bail!(
            "{} is seen through a mount; name the directory that is mounted, and unmount it first",
            folder.path().display()
        );
    }
    not_itself_mounted(folder, work)?;
    none_above(folder, false)
}

/// Refuses a directory that is mounted itself, where that is still served.
fn not_itself_mounted(folder: &Folder, work: Work) -> Result<()> {
    let Some(at) = shown_on(folder)? else {
        return Ok(());
    };
    let Some(holder) = folder.used_by(false)? else {
        return Ok(());
    };
    let what_to_do = match work {
        Work::Convert => "name it there, and its server converts it",
        Work::Repair => "unmount it first",
    };
    bail!(
        "{} is mounted on {}{}: {what_to_do}",
        folder.path().display(),
        at.display(),
        by_process(holder),
    )
}

/// Where a mount of ours shows this directory, the last one.
fn shown_on(folder: &Folder) -> Result<Option<PathBuf>> {
    let own = mounts::canonical(folder.path());
    let mut all = all_mounted()?.into_iter();
    Ok(all.rfind(|mounted| mounted.source == own).map(|it| it.at))
}

/// Whose lock it is, where that is known.
fn by_process(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// Refuses a directory that lies in one that is mounted or being converted; by others who share it, if so do we.
fn none_above(folder: &Folder, is_shared: bool) -> Result<()> {
    let mut inner = folder.facts()?;
    let mut above = folder.open_folder("..".as_ref());
    // Who may not look further up cannot have mounted it there either, unless another user did: then the conversion's
    // own lock is all there is.
    while let Ok(level) = above {
        let facts = level.facts()?;
        if facts.is_same_as(&inner) {
            break;
        }
        if let Some(holder) = level.used_by(is_shared)? {
            let above = mounts::canonical(level.path());
            let by = by_process(holder);
            // A conversion, or a server that works on it as it lies: newsreel's own has its spool locked.
            let how = match shown_on(&level)? {
                Some(at) => format!(
                    "mounted on {}{by}: name it there, or unmount that first",
                    at.display()
                ),
                None => format!(
                    "in use{}; end that first",
                    holder.map_or_else(String::new, |pid| format!(" by process {pid}"))
                ),
            };
            bail!(
                "{} lies in {}, which is {how}",
                folder.path().display(),
                above.display()
            );
        }
        inner = facts;
        above = level.open_folder("..".as_ref());
    }
    Ok(())
}

/// Refuses to mount a directory of which a part, or that as a part, is mounted already: neither server would learn what is
/// changed through the other one.  One that is seen through a mount of ours is refused in any case: it is shown as it does not lie.
fn not_overlapping(lower: &Path, is_shared: bool) -> Result<()> {
    let folder = Folder::open(lower)?;
    not_seen_through(&folder)?;
    none_above(&folder, is_shared)?;
    // Who may not look up has not that above it.
    if is_bucket(&folder).unwrap_or(false) {
        bail!(
            "{} is a bucket of a managed directory, whose names are none of a view; mount that directory, or what it lies in",
            lower.display()
        );
    }
    // Who shares it converts nothing.
    let set = if is_shared {
        None
    } else {
        set_around(&folder)?
    };
    if let Some(set) = set {
        bail!(
            "{} is the directory of a set of newsreel's own spool ({SET_MARK} is in it), whose server lays out the directories of its groups itself: \
             set `layouts` of the [[set]] in place of a mount, or look at it with --shared -o ro",
            set.display()
        );
    }
    if let Some(part) = mounted_below(lower, is_shared)? {
        bail!(
            "{} is mounted on {} already, and lies in {}; end that first, or mount both with --shared",
            part.source.display(),
            part.at.display(),
            lower.display()
        );
    }
    Ok(())
}

/// A mount of a part of a directory, by others than those who share it, if so do we.
fn mounted_below(lower: &Path, is_shared: bool) -> Result<Option<mounts::MountPoint>> {
    for mounted in all_mounted()? {
        if mounted.source == lower || !mounted.source.starts_with(lower) {
            continue;
        }
        // A path that leads elsewhere by now says nothing.
        if let Ok(part) = Folder::open(&mounted.source)
            && part.is_in_use(is_shared)?
        {
            return Ok(Some(mounted));
        }
    }
    Ok(None)
}

/// A server that does not answer for so long is not waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Does what a server may never answer; `None` if it does not in time.  The thread that waits ends with this process.
fn in_time<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (answer, answered) = std::sync::mpsc::sync_channel(1);
    let asking = std::thread::Builder::new().name("usenetfs-ask".to_owned());
    asking
        .spawn(move || {
            // Nobody waits for it any more, when it comes too late.
            let _ = answer.send(ask());
        })
        .ok()?;
    answered.recv_timeout(ANSWERS_WITHIN).ok()
}

/// Does what a server may not answer for long; says so when it has not in time, and goes on waiting.
fn patiently<T>(directory: &Path, ask: impl FnOnce() -> T) -> T {
    let (done, ended) = std::sync::mpsc::sync_channel::<()>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(ANSWERS_WITHIN) == Err(RecvTimeoutError::Timeout) {
                say_waiting(directory);
            }
        });
        let answer = ask();
        drop(done);
        answer
    })
}

fn say_waiting(directory: &Path) {
    output::warning(&format!(
        "waiting for the server of the mount that shows {}: it is stopped, or waits for its disk",
        directory.display()
    ));
}

/// What of ours is mounted at a place; the one on top.
fn mounted_at(at: &Path) -> Result<mounts::MountPoint> {
    let path = at.to_path_buf();
    let looked = in_time(move || mounts::canonical(&path));
    // In front of a server that does not answer, the place is what was typed.
    let place = looked.map_or_else(|| std::path::absolute(at), Ok)?;
    let all = mounts::mount_points()?;
    let found = all.into_iter().rfind(|mount| mount.at == place);
    found
        .and_then(ours)
        .with_context(|| format!("{} is no mount of newsreel's", at.display()))
}

/// Takes off what is left of a mount whose server has died.
fn clear_dead(at: &Path) -> Result<()> {
    let Ok(mounted) = mounted_at(at) else {
        return Ok(());
    };
    let place = mounted.at.clone();
    let Some(looked) = in_time(move || Folder::open(&place)) else {
        bail!(
            "the server of what is mounted on {} does not answer; newsreel usenetfs umount --lazy takes it off",
            mounted.at.display()
        );
    };
    match looked {
        Err(newsreel_host::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::NotConnected =>
        {
            Ok(mounts::unmount(&mounted.at, true)?)
        }
        _ => Ok(()),
    }
}

/// Every mount of ours.
fn all_mounted() -> Result<Vec<mounts::MountPoint>> {
    Ok(mounts::mount_points()?
        .into_iter()
        .filter_map(ours)
        .collect())
}

/// A mount if it is of ours, with the directory that it shows.
fn ours(mut mount: mounts::MountPoint) -> Option<mounts::MountPoint> {
    mount.source = lower_of(&mount.source);
    (mount.kind == FILE_SYSTEM).then_some(mount)
}

/// Is handed a directory, or why there is none; says whether it goes on below it.
type Visit<'a> = dyn FnMut(&Path, Result<&Folder>) -> Result<bool> + 'a;

/// Visits the directories of a list, with all below them if that is wanted, one after the other; managed ones are not entered
/// by their buckets.  As many are open at once as lie in each other.  What cannot be opened or listed is told, and is the end
/// only of what was named.
fn each(named: &[PathBuf], recursive: bool, visit: &mut Visit<'_>) -> Result<()> {
    for path in named {
        let folder = Folder::open(path)?;
        if recursive {
            below(&folder, visit)?;
        } else {
            visit(path, Ok(&folder))?;
        }
    }
    Ok(())
}

fn below(folder: &Folder, visit: &mut Visit<'_>) -> Result<()> {
    if !visit(folder.path(), Ok(folder))? {
        return Ok(());
    }
    let places = match inner(folder) {
        Ok(places) => places,
        Err(error) => return visit(folder.path(), Err(error)).map(|_| ()),
    };
    for place in places {
        match folder.open_folder(&place) {
            Ok(inner) => below(&inner, visit)?,
            // Gone meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                visit(&folder.path().join(&place), Err(error.into()))?;
            }
        }
    }
    Ok(())
}

/// Where the directories lie that a directory's view shows.
fn inner(folder: &Folder) -> Result<Vec<PathBuf>> {
    use newsreel_host::folder::Kind;
    use newsreel_layout::{Cookie, Listing, Name, Opened};
    let mut places = Vec::new();
    let again = folder.open_folder(".".as_ref())?;
    match Opened::new(again)? {
        Opened::Flat(flat) => {
            for entry in flat.entries()? {
                let entry = entry?;
                if entry.kind == Kind::Folder {
                    places.push(PathBuf::from(entry.name));
                }
            }
        }
        Opened::Managed(managed) => {
            Listing::default().fill(&managed, Cookie::DOT_DOT, |entry, _| {
                if let (Kind::Folder, Ok(name)) = (entry.kind, Name::parse(&entry.name)) {
                    places.push(managed.place(name));
                }
                true
            })?;
        }
        Opened::UnderWay(..) => {}
    }
    places.sort_unstable();
    Ok(places)
}
