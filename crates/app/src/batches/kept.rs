//! What is kept of batches: articles that wait for the server, and what was damaged.
//!
//! A file has its name only when all of it is on disk: until then it ends in `.new`, and nobody counts on it.  What we write is a
//! zstd frame with a checksum, so that what keeps a bomb is some ten-thousandth of what it unpacks to: larger than one of bzip2, or of gzip in
//! gzip, and never by what it would be unpacked.  What is in a file that waits is a batch.

use std::io::{self, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use newsreel_host::{Appended, Clock, Disk, ErrorKind, File, OpenMode};

/// The directory of batches in a spool.
pub(crate) const FOLDER: &str = "batches";
const WAITING: &str = "waiting";
const DAMAGED: &str = "damaged";
/// What a file that is not whole ends in.
const UNFINISHED: &str = ".new";
/// A file that nobody finished for so long is left from a program that was killed.
const UNFINISHED_S_MAX: u64 = 24 * 3600;
const WRITE_OCTETS: usize = 256 << 10;
/// Fast, and better than nothing by far.
const LEVEL: i32 = 1;

/// The two directories.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    path: PathBuf,
}

/// A file that is being written, and goes with this.
pub(crate) struct Keeping {
    unfinished: Unfinished,
    out: zstd::stream::write::Encoder<'static, BufWriter<Appended>>,
}

/// A file that nobody counts on, until it has its name.
#[derive(Debug)]
struct Unfinished {
    disk: Arc<dyn Disk>,
    /// Where it is to be.
    path: PathBuf,
    is_kept: bool,
}

impl Unfinished {
    /// All of it is on disk, and then its name; where it is.
    fn finish(mut self, out: &Appended) -> Result<PathBuf> {
        out.file().sync_all()?;
        self.disk.rename(&unfinished(&self.path), &self.path)?;
        self.is_kept = true;
        let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
        self.disk.sync_dir(folder)?;
        Ok(self.path.clone())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            // What stays is removed another day.
            let _ = self.disk.remove(&unfinished(&self.path));
        }
    }
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeping")
            .field("path", &self.unfinished.path)
            .finish_non_exhaustive()
    }
}

/// A copy of an input, which goes with this.
#[derive(Debug)]
pub(crate) struct Held {
    unfinished: Unfinished,
    out: Appended,
}

impl Held {
    /// It stays; where it is.
    pub(crate) fn keep(self) -> Result<PathBuf> {
        self.unfinished.finish(&self.out)
    }

    /// All of it, from the beginning.
    pub(crate) fn reader(&self) -> impl Read {
        let (file, mut at) = (Arc::clone(self.out.file()), 0);
        Reading(move |buf: &mut [u8]| {
            let read = file.read_at(buf, at).map_err(io::Error::other)?;
            at += read as u64;
            Ok(read)
        })
    }
}

/// What is read by asking for it.
struct Reading<F>(F);

impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Read for Reading<F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (self.0)(buf)
    }
}

impl Folder {
    pub(crate) const fn new(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, path: PathBuf) -> Self {
        Self { disk, clock, path }
    }

    /// Begins a file of articles that wait.
    pub(crate) fn wait(&self) -> Result<Keeping> {
        self.keep(WAITING, "batch.zst")
    }

    /// Begins a file of what is damaged.
    pub(crate) fn damage(&self) -> Result<Keeping> {
        self.keep(DAMAGED, "remains.zst")
    }

    fn keep(&self, folder: &str, ending: &str) -> Result<Keeping> {
        let (file, unfinished) = self.begin(folder, ending)?;
        let out = BufWriter::with_capacity(WRITE_OCTETS, Appended::new(file));
        let mut out = zstd::stream::write::Encoder::new(out, LEVEL)?;
        out.include_checksum(true)?;
        Ok(Keeping { unfinished, out })
    }

    /// Makes a file under a name that nobody has.
    fn begin(&self, folder: &str, ending: &str) -> Result<(Arc<dyn File>, Unfinished)> {
        let folder = self.path.join(folder);
        self.disk.create_dir_all(&folder)?;
        let (now, pid) = (self.clock.now().secs, newsreel_host::process::own_pid());
        let mut nth = 0;
        loop {
            let path = folder.join(format!("{now:010}-{pid}-{nth:04}.{ending}"));
            nth += 1;
            if self.disk.exists(&path)? {
                continue;
            }
            match self.disk.open(&unfinished(&path), OpenMode::CreateNew) {
                Err(error) if error.kind() == ErrorKind::Exists => {}
                file => {
                    let (file, disk) = (file?, Arc::clone(&self.disk));
                    let is_kept = false;
                    return Ok((
                        file,
                        Unfinished {
                            disk,
                            path,
                            is_kept,
                        },
                    ));
                }
            }
        }
    }

    /// Copies an input that may have to be kept as it is.
    pub(crate) fn hold(&self, input: &mut dyn Read) -> Result<Held> {
        let (file, unfinished) = self.begin(DAMAGED, "original")?;
        let out = Appended::new(file);
        let mut held = Held { unfinished, out };
        let mut out = BufWriter::with_capacity(WRITE_OCTETS, &mut held.out);
        io::copy(input, &mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(held)
    }

    /// The batches that wait, oldest first.  What programs left that were killed goes: whoever gave it to them gives it again.
    pub(crate) fn waiting(&self) -> Result<Vec<PathBuf>> {
        self.finished(DAMAGED)?;
        let mut found = self.finished(WAITING)?;
        found.sort();
        Ok(found)
    }

    fn finished(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let folder = self.path.join(folder);
        let entries = match self.disk.list(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.is_dir) {
            let path = folder.join(&entry.name);
            if !entry.name.ends_with(UNFINISHED) {
                found.push(path);
            } else if let Some(facts) = self.disk.facts(&path)?
                && facts.modified + UNFINISHED_S_MAX < self.clock.now().secs
            {
                self.forget(&path)?;
            }
        }
        Ok(found)
    }

    /// Removes a batch that waits no more; another may have done so.
    pub(crate) fn forget(&self, path: &Path) -> Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => Ok(done?),
        }
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

impl Keeping {
    /// Appends octets.
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        let path = self.unfinished.path.display();
        self.out
            .write_all(octets)
            .with_context(|| format!("cannot write {path}"))
    }

    /// Appends an article as batches have it.
    pub(crate) fn article(&mut self, article: &[u8]) -> Result<()> {
        self.write(format!("#! rnews {}\n", article.len()).as_bytes())?;
        self.write(article)
    }

    /// Makes it durable; where it is.
    pub(crate) fn finish(self) -> Result<PathBuf> {
        let Self { unfinished, out } = self;
        let about = || format!("cannot write {}", unfinished.path.display());
        let out = out.finish().with_context(about)?;
        let out = out.into_inner().map_err(io::IntoInnerError::into_error);
        let out = out.with_context(about)?;
        unfinished.finish(&out)
    }
}
