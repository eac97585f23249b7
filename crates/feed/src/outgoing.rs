//! Files of batches on their way out: packed as they are written, and named only when nothing can be lost or doubled any more.
//!
//! A batch is written under a name that ends in `.new`, synced, and named `.whole`; then the feed's place moves behind what is in it, on
//! disk; then it gets its name.  Its name says from where to where in the log it goes: so whoever finds a `.whole` file knows by the place
//! whether it counts.  A name that a file has is left to it, as that may be the batch of a spool that was made anew, or put back from a copy.
//! Nobody but this file makes or renames anything in the directory.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Appended, Disk, ErrorKind, OpenMode};
use newsreel_wire::Sequence;

use crate::config::Packing;

const WRITE_OCTETS: usize = 256 << 10;
const NEW: &str = ".new";
const WHOLE: &str = ".whole";

/// The directory of a feed's batches.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// What the names of this feed's files begin with.
    feed: String,
}

/// How a batch is packed, and what stands in front of it.
#[derive(Debug, Clone)]
pub(crate) struct Wrapping {
    pub(crate) packing: Packing,
    /// The word of its first line; nothing: no such line.
    pub(crate) unpacker: String,
}

impl Wrapping {
    fn line(&self) -> String {
        let word = match (self.unpacker.as_str(), self.packing) {
            (_, Packing::None) | ("", _) => return String::new(),
            ("auto", Packing::Gzip) => "gunbatch",
            ("auto", Packing::Bzip2) => "bunbatch",
            ("auto", Packing::Zstd) => "zunbatch",
            (word, _) => word,
        };
        format!("#! {word}\n")
    }

    const fn ending(&self) -> &'static str {
        match self.packing {
            Packing::None => "batch",
            Packing::Gzip => "batch.gz",
            Packing::Bzip2 => "batch.bz2",
            Packing::Zstd => "batch.zst",
        }
    }
}

/// Octets on their way through a packing.
enum Packer {
    Plain(BufWriter<Appended>),
    Gzip(flate2::write::GzEncoder<BufWriter<Appended>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<Appended>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Appended>>),
}

impl Packer {
    fn new(packing: Packing, out: BufWriter<Appended>) -> io::Result<Self> {
        Ok(match packing {
            Packing::None => Self::Plain(out),
            Packing::Gzip => Self::Gzip(flate2::write::GzEncoder::new(
                out,
                flate2::Compression::default(),
            )),
            Packing::Bzip2 => Self::Bzip2(bzip2::write::BzEncoder::new(
                out,
                bzip2::Compression::best(),
            )),
            Packing::Zstd => {
                let mut packer = zstd::stream::write::Encoder::new(out, 0)?;
                packer.include_checksum(true)?;
                Self::Zstd(packer)
            }
        })
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(octets),
            Self::Gzip(out) => out.write_all(octets),
            Self::Bzip2(out) => out.write_all(octets),
            Self::Zstd(out) => out.write_all(octets),
        }
    }

    fn finish(self) -> io::Result<Appended> {
        let out = match self {
            Self::Plain(out) => out,
            Self::Gzip(out) => out.finish()?,
            Self::Bzip2(out) => out.finish()?,
            Self::Zstd(out) => out.finish()?,
        };
        out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// A batch that is being written; it goes when nobody finishes it.
pub(crate) struct Writing {
    disk: Arc<dyn Disk>,
    new: PathBuf,
    packer: Option<Packer>,
    from: Sequence,
    ending: &'static str,
    octets: u64,
    articles: u64,
}

/// A batch that is whole and on disk, and has not its name yet.
#[derive(Debug)]
pub(crate) struct Whole {
    path: PathBuf,
    name: String,
    pub(crate) articles: u64,
    pub(crate) octets: u64,
    pub(crate) packed_octets: u64,
}

impl Writing {
    /// Octets so far, before they are packed.
    pub(crate) const fn octets(&self) -> u64 {
        self.octets
    }

    /// Appends an article with its header line.
    pub(crate) fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.octets += framed.len() as u64;
        self.articles += 1;
        let closed = || io::Error::other("it is closed");
        self.packer.as_mut().ok_or_else(closed)?.write(framed)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // What stays is removed by the next run.
        let _ = self.disk.remove(&self.new);
    }
}

impl Outgoing {
    pub(crate) fn new(disk: Arc<dyn Disk>, path: PathBuf, feed: &str) -> Self {
        let feed = feed.to_owned();
        Self { disk, path, feed }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a batch.
    pub(crate) fn begin(&self, from: Sequence, wrapping: &Wrapping) -> io::Result<Writing> {
        self.disk
            .create_dir_all(&self.path)
            .map_err(io::Error::other)?;
        let new = self.path.join(format!("{}-{:015}{NEW}", self.feed, from.0));
        self.forget(&new)?;
        let file = self.disk.open(&new, OpenMode::CreateNew);
        let file = file.map_err(io::Error::other)?;
        let mut writing = Writing {
            disk: Arc::clone(&self.disk),
            new,
            packer: None,
            from,
            ending: wrapping.ending(),
            octets: 0,
            articles: 0,
        };
        let mut out = BufWriter::with_capacity(WRITE_OCTETS, Appended::new(file));
        out.write_all(wrapping.line().as_bytes())?;
        writing.packer = Some(Packer::new(wrapping.packing, out)?);
        Ok(writing)
    }

    /// Has all of a batch on disk, with everything before `to` in it.
    pub(crate) fn finish(&self, mut writing: Writing, to: Sequence) -> io::Result<Whole> {
        let packer = writing.packer.take();
        let packer = packer.ok_or_else(|| io::Error::other("it is closed"))?;
        let out = packer.finish()?;
        out.file().sync_all().map_err(io::Error::other)?;
        let name = format!(
            "{}-{:015}-{:015}.{}",
            self.feed, writing.from.0, to.0, writing.ending
        );
        let path = self.free(&format!("{name}{WHOLE}"))?;
        if let Err(error) = self.rename(&writing.new, &path) {
            // It may have that name all the same, and does not count.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok(Whole {
            path,
            name,
            articles: writing.articles,
            octets: writing.octets,
            packed_octets: out.written(),
        })
    }

    /// Gives a batch its name, the feed's place being behind it; what that is.
    pub(crate) fn name(&self, whole: &Whole) -> io::Result<PathBuf> {
        let name = self.free(&whole.name)?;
        self.rename(&whole.path, &name)?;
        Ok(name)
    }

    /// A batch does not count.
    pub(crate) fn discard(&self, whole: &Whole) -> io::Result<()> {
        self.forget(&whole.path)
    }

    /// What a run left that was killed: what is whole and counts gets its name, everything else goes.
    pub(crate) fn tidy(&self, settled_before: Sequence) -> io::Result<()> {
        for entry in self.entries()? {
            let path = self.path.join(&entry);
            if entry.ends_with(NEW) {
                self.forget(&path)?;
            } else if let Some(name) = entry.strip_suffix(WHOLE) {
                match self.end_of(name) {
                    Some(to) if to <= settled_before => {
                        self.rename(&path, &self.free(name)?)?;
                    }
                    _ => self.forget(&path)?,
                }
            }
        }
        Ok(())
    }

    /// The finished batches, oldest first, and how many octets they have.
    pub(crate) fn finished(&self) -> io::Result<(Vec<PathBuf>, u64)> {
        let (mut found, mut octets) = (Vec::new(), 0);
        for entry in self.entries()? {
            if self.end_of(&entry).is_some() && !entry.ends_with(WHOLE) {
                let path = self.path.join(&entry);
                let file = self.disk.open(&path, OpenMode::Read);
                match file.and_then(|file| file.len()) {
                    Ok(len) => octets += len,
                    // Somebody took it away meanwhile.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(io::Error::other(error)),
                }
                found.push(path);
            }
        }
        Ok((found, octets))
    }

    /// Names of this feed's files, sorted.
    fn entries(&self) -> io::Result<Vec<String>> {
        let entries = match self.disk.list(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io::Error::other)?,
        };
        let files = entries.into_iter().filter(|entry| !entry.is_dir);
        let names = files.map(|entry| entry.name);
        Ok(names
            .filter(|name| self.numbers_of(name).is_some())
            .collect())
    }

    /// What stands behind the feed's name in a name of its files: another feed's name may begin as this one's does.
    fn numbers_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(self.feed.as_str())?.strip_prefix('-')?;
        let (from, _) = rest.split_once(['-', '.'])?;
        (from.len() == 15 && from.parse::<u64>().is_ok()).then_some(rest)
    }

    /// Up to where a batch goes, as its name says.
    fn end_of(&self, name: &str) -> Option<Sequence> {
        let (_, rest) = self.numbers_of(name)?.split_once('-')?;
        let (to, ending) = rest.split_once('.')?;
        let is_batch = ending.split('.').any(|word| word == "batch");
        to.parse().ok().map(Sequence).filter(|_| is_batch)
    }

    /// This name, or one like it that no file has.
    fn free(&self, name: &str) -> io::Result<PathBuf> {
        let (front, ending) = name.split_once(".batch").unwrap_or((name, ""));
        let others = (2..=u32::MAX).map(|nth| format!("{front}.{nth}.batch{ending}"));
        for name in std::iter::once(name.to_owned()).chain(others) {
            let path = self.path.join(name);
            if !self.disk.exists(&path).map_err(io::Error::other)? {
                return Ok(path);
            }
        }
        Err(io::Error::other("there is no name left"))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = self.disk.rename(from, to);
        let synced = renamed.and_then(|()| self.disk.sync_dir(&self.path));
        synced.map_err(io::Error::other)
    }

    fn forget(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io::Error::other(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::{MemoryDisk, replace_file};

    use super::*;

    #[test]
    fn a_feed_knows_its_files_and_no_others() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let folder = Outgoing::new(Arc::clone(&disk), "/out".into(), "all");
        disk.create_dir_all(Path::new("/out")).unwrap();
        let put =
            |name: &str| replace_file(&*disk, &Path::new("/out").join(name), b"1234").unwrap();
        for name in [
            "all-000000000000001-000000000000005.batch.gz",
            "all-000000000000005-000000000000009.batch.whole",
            "all-000000000000009-000000000000012.batch.whole",
            "all-000000000000009.new",
            "all-2-000000000000001-000000000000005.batch.whole",
            "all-2-000000000000001.new",
            "README",
        ] {
            put(name);
        }
        folder.tidy(Sequence(9)).unwrap();
        let names = disk.list(Path::new("/out")).unwrap();
        let names: Vec<String> = names.into_iter().map(|entry| entry.name).collect();
        assert_eq!(
            names,
            [
                "README",
                "all-000000000000001-000000000000005.batch.gz",
                "all-000000000000005-000000000000009.batch",
                "all-2-000000000000001-000000000000005.batch.whole",
                "all-2-000000000000001.new",
            ]
        );
        let (found, octets) = folder.finished().unwrap();
        assert_eq!((found.len(), octets), (2, 8));
    }

    /// It was written over, and what was in it lost: by a spool that was made anew.
    #[test]
    fn a_batch_that_nobody_has_taken_is_not_written_over() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let folder = Outgoing::new(Arc::clone(&disk), "/out".into(), "all");
        let wrapping = Wrapping {
            packing: Packing::None,
            unpacker: String::new(),
        };
        let whole = |text: &str| {
            let mut writing = folder.begin(Sequence(1), &wrapping).unwrap();
            writing.write(text.as_bytes()).unwrap();
            folder.finish(writing, Sequence(5)).unwrap()
        };
        for text in ["a", "b"] {
            folder.name(&whole(text)).unwrap();
        }
        // Nor by one that is named after a kill.
        whole("c");
        folder.tidy(Sequence(5)).unwrap();
        let (found, octets) = folder.finished().unwrap();
        assert_eq!((found.len(), octets), (3, 3), "{found:?}");
        let expected = [
            "all-000000000000001-000000000000005.2.batch",
            "all-000000000000001-000000000000005.3.batch",
            "all-000000000000001-000000000000005.batch",
        ];
        assert_eq!(found, expected.map(|name| Path::new("/out").join(name)));
    }
}
