//! A directory of articles, whatever it is: flat, managed and used natively by the layout, or seen through a mount.
//!
//! Natively a managed directory is used as a news server would: names are placed by the layout, nothing is between.

use std::path::{Path, PathBuf};

use newsreel_host::{Disk as _, Folder, OpenMode, RealDisk};
use newsreel_layout::{Algorithm, Cookie, Listing, Managed, Mark, Name, Opened};

use crate::error::Error;

/// The most common size of an article in the paper.
const ARTICLE_BYTES: usize = 2048;

/// A directory.
#[derive(Debug)]
pub(crate) enum Directory {
    /// Its names are what they seem: flat, or through a mount.
    Plain(Folder),
    /// Managed, and used natively.
    Managed(Managed),
}

impl Directory {
    /// Makes one, managed if an algorithm is named.
    pub(crate) fn make(path: &Path, algorithm: Option<Algorithm>) -> Result<(), Error> {
        let (above, name) = (path.parent(), path.file_name());
        if let (Some(above), Some(name)) = (above, name) {
            Folder::open(above)?.make_folder(name.as_ref(), 0o755)?;
        }
        if let Some(algorithm) = algorithm {
            Mark::set(&Folder::open(path)?, algorithm).map_err(layout)?;
        }
        Ok(())
    }

    /// As it is on the disk.
    pub(super) fn native(path: &Path) -> Result<Self, Error> {
        Ok(match Opened::new(Folder::open(path)?).map_err(layout)? {
            Opened::Flat(folder) | Opened::UnderWay(folder, _) => Self::Plain(folder),
            Opened::Managed(managed) => Self::Managed(managed),
        })
    }

    /// As it is seen through a mount.
    pub(super) fn seen(path: &Path) -> Result<Self, Error> {
        Ok(Self::Plain(Folder::open(path)?))
    }

    fn folder(&self) -> &Folder {
        match self {
            Self::Plain(folder) => folder,
            Self::Managed(managed) => managed.folder(),
        }
    }

    /// Writes what is in memory, so that nothing of it is in the way.
    pub(super) fn settle(&self) -> Result<(), Error> {
        Ok(self.folder().sync_file_system()?)
    }

    fn place(&self, text: &str) -> Result<PathBuf, Error> {
        Ok(match self {
            Self::Plain(_) => text.into(),
            Self::Managed(managed) => managed.place(name(text)?),
        })
    }

    /// Looks at an article: one `lstat`.
    pub(super) fn look(&self, number: u64) -> Result<(), Error> {
        let place = self.place(&number.to_string())?;
        Ok(self.folder().facts_of(&place).map(drop)?)
    }

    /// Makes an article.
    pub(super) fn add(&self, number: u64) -> Result<(), Error> {
        let text = number.to_string();
        let make = |folder: &Folder, at: &Path| {
            let file = RealDisk.open(&folder.path().join(at), OpenMode::CreateNew)?;
            file.write_at(&[b'a'; ARTICLE_BYTES], 0)
        };
        match self {
            Self::Plain(folder) => Ok(make(folder, Path::new(&text))?),
            Self::Managed(managed) => managed.with_bucket(name(&text)?, make).map_err(layout),
        }
    }

    /// Removes an article, and its bucket when that is empty.
    pub(super) fn remove(&self, number: u64) -> Result<(), Error> {
        let text = number.to_string();
        self.folder().remove(&self.place(&text)?)?;
        if let Self::Managed(managed) = self {
            let bucket = managed.algorithm().bucket(name(&text)?);
            managed.tidy_bucket(bucket).map_err(layout)?;
        }
        Ok(())
    }

    /// Lists it; how many entries there are.
    pub(super) fn list(&self) -> Result<u64, Error> {
        let mut entries = 0;
        match self {
            Self::Plain(folder) => {
                for entry in folder.entries()? {
                    entry?;
                    entries += 1;
                }
            }
            Self::Managed(managed) => Listing::default()
                .fill(managed, Cookie::DOT_DOT, |_, _| {
                    entries += 1;
                    true
                })
                .map_err(layout)?,
        }
        Ok(entries)
    }
}

pub(super) fn name(text: &str) -> Result<Name<'_>, Error> {
    Name::parse(text.as_ref()).map_err(|error| Error::Argument {
        name: "number",
        value: text.to_owned(),
        why: error.to_string(),
    })
}

pub(super) fn layout(error: newsreel_layout::Error) -> Error {
    match error {
        newsreel_layout::Error::Host(error) => Error::Disk(error),
        other => Error::Program {
            program: "the layout".to_owned(),
            why: other.to_string(),
        },
    }
}
