//! What a spool says of articles that are read from its files by themselves: which of them are offered no more.
//!
//! The files are read without it; it is asked beside, by its running server or its log and views, if the path lies in a spool or
//! one is named. Invariant: a spool is asked about files of its own only, never about a copy of another's.

use std::path::Path;

use anyhow::{Result, bail};
use newsreel_engine::SPOOL_FILE;
use newsreel_host::{Disk as _, RealDisk};
use serde_json::Value;

use super::KnowsArgs;
use crate::access::{Access, SpoolArgs};
use crate::control::request::Request;
use crate::{config, output};

/// An article that was read, as far as it is told or written.
pub(super) struct Row {
    pub(super) token: String,
    pub(super) id: String,
    pub(super) sequence: u64,
    pub(super) arrival: u64,
    pub(super) octets: u64,
    pub(super) is_sound: bool,
    /// Cancelled, expired or moved.
    pub(super) is_withdrawn: bool,
    /// In the form of a batch, where that is wanted.
    pub(super) text: Vec<u8>,
}

/// Who is asked.
pub(super) struct Marks {
    spool: Option<Access>,
    /// There is nobody to ask.
    is_alone: bool,
    /// Articles that the spool has and of which the file tells that they were withdrawn.
    contradicted: u64,
}

impl Marks {
    /// Of the spool that is named, or else of that in which the path lies, or else of that of the configuration.
    pub(super) fn of(path: &Path, knows: &KnowsArgs) -> Result<Self> {
        let (named, config) = (knows.spool.as_deref(), knows.config.as_deref());
        let path = path.canonicalize()?;
        let found = path
            .ancestors()
            .find(|dir| RealDisk.exists(&dir.join(SPOOL_FILE)).unwrap_or(false));
        let config = match named.or(found) {
            Some(_) => config.map(Path::to_owned),
            None => config::meant(config, None),
        };
        let config = config.as_deref();
        let configured = match config {
            Some(_) => Some(config::load(config, named)?.server.spool),
            None => None,
        };
        let Some(spool) = named.or(found).or(configured.as_deref()) else {
            return Ok(Self::none(true));
        };
        match Self::ask(&path, (spool, config)) {
            Ok(None) if named.is_some() => bail!(
                "{} is no buffer, segment or set of the spool {}",
                path.display(),
                spool.display()
            ),
            Ok(None) => Ok(Self::none(true)),
            Ok(spool) => Ok(Self {
                spool,
                is_alone: false,
                contradicted: 0,
            }),
            Err(error) if named.is_some() => Err(error),
            Err(error) => {
                let spool = spool.display();
                output::warning(&format!(
                    "the spool {spool} cannot be asked what was withdrawn, so only what bitmaps say of that is told: {}",
                    output::chain(&error)
                ));
                Ok(Self::none(false))
            }
        }
    }

    /// A way to the spool, if the path is of it.
    fn ask(path: &Path, (spool, config): (&Path, Option<&Path>)) -> Result<Option<Access>> {
        let args = SpoolArgs {
            spool: Some(spool.to_path_buf()),
            config: config.map(Path::to_path_buf),
            json: false,
        };
        let mut access = Access::open(&(&args).into(), false)?;
        let buffers = access.ask(Request::Store)?;
        let mut places = buffers.as_array().into_iter().flatten();
        let is_ours = places.any(|buffer| {
            let place = Path::new(buffer["path"].as_str().unwrap_or_default()).canonicalize();
            place.is_ok_and(|place| path.starts_with(place))
        });
        match is_ours {
            true => Ok(Some(access)),
            false => access.close().map(|()| None),
        }
    }

    /// Marks what is withdrawn.
    pub(super) fn mark(&mut self, rows: &mut [Row]) -> Result<()> {
        let Some(access) = &mut self.spool else {
            return Ok(());
        };
        let articles = rows.iter().map(|row| (row.token.clone(), row.id.clone()));
        let articles = articles.collect();
        let answer = access.ask_quietly(Request::StoreWithdrawn { articles })?;
        let answers = answer.as_array().into_iter().flatten();
        for (row, answer) in rows.iter_mut().zip(answers) {
            // What the spool does not know the file may.
            if let Value::Bool(is_withdrawn) = *answer {
                self.contradicted += u64::from(row.is_withdrawn && !is_withdrawn);
                row.is_withdrawn = is_withdrawn;
            }
        }
        Ok(())
    }

    const fn none(is_alone: bool) -> Self {
        Self {
            spool: None,
            is_alone,
            contradicted: 0,
        }
    }

    /// Whether there was nobody to ask.
    pub(super) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Tells of what the file says wrongly, once all was marked.
    pub(super) fn tell(&self, path: &Path) {
        if self.contradicted > 0 {
            output::warning(&format!(
                "{}: the bitmap is damaged, or what is noted behind a segment: of {} articles that the spool has it tells that they were \
                 withdrawn. They are taken as there; `newsreel store scrub` writes a bitmap again",
                path.display(),
                self.contradicted
            ));
        }
    }

    /// Ends it.
    pub(super) fn close(self) -> Result<()> {
        self.spool.map_or(Ok(()), Access::close)
    }
}
