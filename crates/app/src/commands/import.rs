//! `newsreel import`: takes articles from mail folders and directory trees, as `newsreel rnews` takes batches.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use indicatif::ProgressBar;
use newsreel_host::{Disk as _, RealDisk};
use newsreel_wire::mbox::Quoting;
use serde_json::{Value, json};

use super::rnews::HandOver;
use crate::batches::damages::Damages;
use crate::batches::settled::Tally;
use crate::imports::{Counts, Takes, mbox, tree};
use crate::{access, batches, input, output};

/// What `--dry-run` does not look at.
const LAST_WORD: &str = "whether they are in groups that are here, not too old and not here already is the server's word\n";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Take the messages of mail folders (mbox)
    #[command(
        after_help = "A folder may be packed with gzip, bzip2, zstd or compress. A message begins with a line `From ` behind an empty line. Such a \
                      line inside a message stands there with a `>` in front: mboxrd has one more for each `>` that was there already, mboxo \
                      only ever the one, so that a line that was `>From ` loses its `>`; no file says which it is.\n\n\
                      Each message is an article that is accepted, refused (it is here), rejected, or deferred, as with `newsreel rnews`; \
                      what is damaged is named, and kept. A folder that cannot be read is named, and the exit code is 1 then. One without Path gets `Path: not-for-mail`, one without Date that of its line `From `. \
                      Old articles are rejected unless `articles.age_s_max` lets them in.\n\n\
                      Examples:\n  newsreel import mbox --dry-run misc.test.mbox.gz\n  newsreel import mbox --quoting mboxo archive/*.mbox"
    )]
    Mbox {
        /// Mail folders
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// How lines that begin with `From ` are quoted: mboxrd, mboxo, none
        #[arg(long, value_name = "HOW", default_value = "mboxrd", value_parser = quoting)]
        quoting: Quoting,
        #[command(flatten)]
        common: Common,
    },
    /// Take the articles of directory trees, one in each file
    #[command(
        after_help = "A tradspool, for example: files are taken in the order of their numbers, directory by directory. An article that has several \
                      names is accepted once, and refused under the others. What is no article is named, and stays where it is; what cannot be \
                      read is named, and the exit code is 1 then. Links are followed. Old articles are rejected unless \
                      `articles.age_s_max` lets them in.\n\n\
                      Examples:\n  newsreel import tree --dry-run /var/spool/news/articles\n  newsreel import tree -v old/misc old/comp"
    )]
    Tree {
        /// Directories
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Common {
    /// Only count the articles, and name what is damaged and what no server takes
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    to: HandOver,
}

fn quoting(word: &str) -> Result<Quoting, String> {
    Ok(match word {
        "mboxrd" => Quoting::Each,
        "mboxo" => Quoting::Once,
        "none" => Quoting::None,
        _ => return Err("say mboxrd, mboxo or none".to_owned()),
    })
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let bar = access::bar();
    match verb {
        Verb::Mbox {
            files,
            quoting,
            common,
        } => {
            let octets = files.iter().map(|path| RealDisk.facts(path));
            let octets = octets.filter_map(|facts| facts.ok().flatten());
            bar.set_length(octets.map(|facts| facts.len).sum());
            let read = |taker: &mut dyn Takes| read_folders(files, *quoting, &bar, taker);
            common.run(&bar, true, read)
        }
        Verb::Tree { dirs, common } => {
            let counts = dirs.iter().map(|dir| tree::count(&RealDisk, dir));
            bar.set_length(counts.sum::<Result<u64>>()?);
            common.run(&bar, false, |taker| {
                let mut each = dirs.iter();
                each.try_for_each(|dir| tree::take(&RealDisk, dir, taker, &mut || bar.inc(1)))
            })
        }
    }
}

fn read_folders(
    files: &[PathBuf],
    quoting: Quoting,
    bar: &ProgressBar,
    taker: &mut dyn Takes,
) -> Result<()> {
    for path in files {
        taker.damages().begin(path.display().to_string());
        let taken = input::open(path)
            .and_then(|(file, _)| mbox::take(&mut bar.wrap_read(file), quoting, taker));
        let about = || format!("cannot take {}", path.display());
        taker.damages().or_unread(taken).with_context(about)?;
    }
    Ok(())
}

impl Common {
    /// Hands over what `read` reads, and reports; `is_kept`: damage is kept in a file.
    fn run(
        &self,
        bar: &ProgressBar,
        is_kept: bool,
        read: impl FnOnce(&mut dyn Takes) -> Result<()>,
    ) -> Result<()> {
        let (spool, folder) = self.to.places()?;
        if self.dry_run {
            let mut damages = Damages::named();
            let mut counts = Counts {
                articles: 0,
                rejected: BTreeMap::new(),
                damages: &mut damages,
            };
            let done = read(&mut counts);
            let (articles, reasons) = (counts.articles, counts.rejected);
            let rejected: u64 = reasons.values().sum();
            let mut said = output::count(articles, "article") + " would be handed over\n";
            for (why, many) in &reasons {
                said += &format!("rejected {many} of them: {why}\n");
            }
            said += LAST_WORD;
            let report = json!({"dry_run": true, "articles": articles, "rejected": rejected, "reasons": reasons});
            bar.finish_and_clear();
            self.report(report, &said, &damages)?;
            return done.and_then(|()| damages.all_was_read());
        }
        // A server that takes articles now: nothing that can be read again any time is copied to wait.
        let server = self.to.server(&spool)?;
        if let Err(why) = batches::is_ready(server) {
            bail!("{why}; nothing was taken");
        }
        let mut tally = Tally::new(folder.clone(), self.to.verbose, self.to.json);
        let mut damages = match is_kept {
            true => Damages::new(folder),
            false => Damages::named(),
        };
        let done = batches::hand_over(&Ok(server), &mut tally, &mut damages, |taker| read(taker));
        bar.finish_and_clear();
        // What came of those before the one that failed is said, too.
        self.report(tally.json(), &tally.said(), &damages)?;
        done?;
        damages.all_was_read()?;
        if tally.is_in_vain() {
            bail!("no article was taken; why is said above");
        }
        Ok(())
    }

    fn report(&self, mut report: Value, said: &str, damages: &Damages) -> Result<()> {
        if self.to.json {
            damages.json(&mut report);
            return output::json(&report);
        }
        output::said(&format!("{said}{}", damages.said()))
    }
}
