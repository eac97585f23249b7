//! `newsreel rnews`, or a link to the program called `rnews`: takes batches, as INN's rnews(1) does.

use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use newsreel_host::{Disk, RealClock, RealDisk};

use crate::access::no_foreign_root;
use crate::batches::Taker;
use crate::batches::damages::Damages;
use crate::batches::kept::{FOLDER, Folder};
use crate::batches::settled::Tally;
use crate::batches::unpack::Parts;
use crate::posting::Tls;
use crate::{batches, input, output, posting};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  newsreel rnews < batch\n  newsreel rnews batch.gz batch.zst\n  newsreel rnews --retry\n\n\
                  A file is a batch (`#! rnews`), such a batch packed with gzip, bzip2, zstd or compress, with or without a line as \
                  `#! cunbatch` in front, or one article. Each article is accepted, refused (it is here), rejected, or deferred: \
                  kept on disk while the server is away or takes nothing, until `newsreel rnews --retry`. What is damaged \
                  is kept, too; the rest of its batch is taken. A file that cannot be read is named, and holds no other.\n\n\
                  The exit code is 0 when every article has one of these answers, and everything else of the files is kept; \
                  2 when the command line is not understood; else 1: not everything was taken, and the same files can be given again."
)]
pub(crate) struct Args {
    /// Batches, or articles [default: the standard input]
    #[arg(default_value = input::STANDARD_INPUT, hide_default_value = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take what was deferred
    #[arg(short = 'U', long, conflicts_with = "files")]
    retry: bool,
    #[command(flatten)]
    to: HandOver,
}

/// Where articles go, and what is said of them: the same for everything that hands articles over.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HandOver {
    /// Print a line for each article
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,
    /// The server to hand articles to [default: the one that runs on the spool]
    #[arg(long, value_name = "HOST[:PORT]")]
    server: Option<String>,
    /// The directory of what is deferred or damaged [default: batches, in the spool]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = crate::config::HELP_WITH_SPOOL)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl HandOver {
    /// The spool, and the directory of what is deferred or damaged.
    pub(super) fn places(&self) -> Result<(PathBuf, Folder)> {
        input::limits_are_errors()?;
        let spool = super::post::spool(self.spool.as_deref(), self.config.as_deref())?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        if self.keep.is_none() {
            no_foreign_root(&disk, &spool)?;
        }
        let keep = self.keep.clone().unwrap_or_else(|| spool.join(FOLDER));
        let folder = Folder::new(disk, Arc::new(RealClock::new()), keep);
        Ok((spool, folder))
    }

    /// Where articles go.
    pub(super) fn server(&self, spool: &Path) -> Result<SocketAddr> {
        match &self.server {
            Some(name) => posting::find(name, None, Tls::None),
            None => posting::server_of(spool),
        }?
        .address()
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (spool, folder) = args.to.places()?;
    let server = args.to.server(&spool);
    let server = server.map_err(|error| output::chain(&error));
    let mut taking = Taking {
        tally: Tally::new(folder.clone(), args.to.verbose, args.to.json),
        damages: Damages::new(folder.clone()),
        folder,
        server,
    };
    let taken = match args.retry {
        true => taking.retry(),
        false => taking.take_files(&args.files),
    };
    // What came of those before the one that failed is said, too.
    taking.report(args.to.json)?;
    taken.and_then(|()| taking.damages.all_was_read())
}

struct Taking {
    folder: Folder,
    server: Result<SocketAddr, String>,
    tally: Tally,
    damages: Damages,
}

impl Taking {
    /// One connection for all: an article does not wait for the answers to those of the file before.
    fn take_files(&mut self, files: &[PathBuf]) -> Result<()> {
        let (folder, tally, damages) = (&self.folder, &mut self.tally, &mut self.damages);
        batches::hand_over(&self.server, tally, damages, |taker| {
            for path in files {
                taker.damages.begin(said_name(path));
                let taken = input::open(path).and_then(|(mut file, can_be_read_again)| {
                    match can_be_read_again {
                        true => take_file(taker, folder, path, &mut *file),
                        false => take_stream(taker, folder, &mut *file),
                    }
                });
                let taken = taker.damages.or_unread(taken);
                taken.with_context(|| format!("cannot take {}", said_name(path)))?;
                taker.damages.finish()?;
                // The next one may be a pipe in which nothing is yet.
                taker.flush();
            }
            Ok(())
        })
    }

    fn retry(&mut self) -> Result<()> {
        let ready = self.server.clone().and_then(batches::is_ready);
        if let Err(why) = ready {
            self.tally.is_away_because(why);
        }
        let mut untaken = Vec::new();
        for path in self.folder.waiting()? {
            if self.tally.is_away() {
                self.tally.still_waits(path);
                continue;
            }
            if let Err(error) = self.retry_one(&path) {
                let why = output::chain(&error);
                untaken.push(format!("cannot take {}: {why}", path.display()));
                self.tally.still_waits(path);
            }
        }
        match untaken.is_empty() {
            true => Ok(()),
            false => bail!(untaken.join("\n")),
        }
    }

    /// Takes a file that waits; it stays where that fails, and holds no other.
    fn retry_one(&mut self, path: &Path) -> Result<()> {
        // Another command may have taken it since they were listed.
        let Some(mut file) = input::open_if_there(path)? else {
            return Ok(());
        };
        self.damages.begin(said_name(path));
        let (folder, tally, damages) = (&self.folder, &mut self.tally, &mut self.damages);
        batches::hand_over(&self.server, tally, damages, |taker| {
            take_file(taker, folder, path, &mut *file)
        })?;
        self.folder.forget(path)
    }

    fn report(&self, json: bool) -> Result<()> {
        if json {
            let mut report = self.tally.json();
            self.damages.json(&mut report);
            return output::json(&report);
        }
        output::said(&format!("{}{}", self.tally.said(), self.damages.said()))
    }
}

/// Takes what can be read again, if need be.
fn take_file(
    taker: &mut Taker<'_, '_>,
    folder: &Folder,
    path: &Path,
    file: &mut dyn Read,
) -> Result<()> {
    if !taker.take(file)?
        && let Some(mut again) = input::open_if_there(path)?
    {
        taker.damages.kept(folder.hold(&mut *again)?.keep()?);
    }
    Ok(())
}

/// Takes what comes once: from what is packed on it is copied first, because damage may leave nothing that is worth keeping but all of it.
fn take_stream(taker: &mut Taker<'_, '_>, folder: &Folder, file: &mut dyn Read) -> Result<()> {
    let mut parts = Parts::new(file);
    while !parts.is_packed() {
        if taker.part(&mut parts)?.is_none() {
            return Ok(());
        }
    }
    taker.flush();
    let held = folder.hold(&mut parts.rest())?;
    if !taker.take(&mut held.reader())? {
        taker.damages.kept(held.keep()?);
    }
    Ok(())
}

fn said_name(path: &Path) -> String {
    match path == Path::new(input::STANDARD_INPUT) {
        true => "the standard input".to_owned(),
        false => path.display().to_string(),
    }
}
