//! `newsreel control import`: rules for `control.rules`, printed for the configuration, from files of other systems.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_host::{Disk as _, RealDisk};
use newsreel_wire::article::is_address;

use crate::config;
use crate::policies::Made;
use crate::{input, output};

/// A file of rules is no larger, octets: INN's has 100 KB.
const FILE_OCTETS_MAX: usize = 4 << 20;

/// What `--config` is here.
const HELP_MAIL_TO: &str = "The configuration that the rules are for: where it has `control.mail_to`, --mail-to may be left out";

/// Directories in directories.
const DIRECTORIES_DEEP_MAX: usize = 8;

/// Lines that were left out and are told.
const LEFT_SHOWN_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What it prints belongs into the configuration; nothing is changed here. The last rule that matches holds, so give general \
                  files first. Where a hierarchy signs, its key has to be imported: `newsreel control keys import`.\n\n\
                  Examples:\n  newsreel control import /etc/news/control.ctl --mail-to usenet@example.org > control.toml\n  \
                  newsreel control import control-config"
)]
pub(crate) struct Args {
    /// Files: INN's control.ctl, or policies, a hierarchy each; `-` is the standard input, and of a directory all files are meant,
    /// in the order of their names
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do what is said by the senders that a policy without a key names, instead of asking first: anybody can write in
    /// their names
    #[arg(long)]
    trust_senders: bool,
    /// Where the mails of rules with `mail` go (`control.mail_to`)
    #[arg(long, value_name = "ADDRESS")]
    mail_to: Option<String>,
    #[arg(long, value_name = "FILE", help = HELP_MAIL_TO)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut made = Made {
        mail_to: args.mail_to.clone(),
        ..Made::default()
    };
    if let Some(mail_to) = &args.mail_to
        && !is_address(mail_to.as_bytes())
    {
        bail!("--mail-to {mail_to:?} is no address; one such as usenet@example.org is wanted");
    }
    let mut files = Vec::new();
    for file in &args.files {
        files_of(file, DIRECTORIES_DEEP_MAX, &mut files)?;
    }
    for file in &files {
        let octets = input::read(file, FILE_OCTETS_MAX)?.octets;
        let text = String::from_utf8(octets);
        let text = text.with_context(|| format!("{} is not UTF-8", file.display()))?;
        made.take(&file.display().to_string(), &text, args.trust_senders);
    }
    if args.json {
        return output::json(&serde_json::to_value(&made)?);
    }
    for left in made.left.iter().take(LEFT_SHOWN_MAX) {
        let (file, line) = (&left.file, left.line);
        output::warning(&format!("{file}:{line}: left out: {}", left.why));
    }
    if let Some(more @ 1..) = made.left.len().checked_sub(LEFT_SHOWN_MAX) {
        output::warning(&format!("{more} more were left out; --json shows them"));
    }
    if made.rules.is_empty() {
        bail!("nothing in these files is a rule about groups");
    }
    let has_address = made.mail_to.is_some() || says_where(args.config.as_deref())?;
    if made.mails() && !has_address {
        output::warning(
            "some of these rules send mails, and nobody said where to: give --mail-to, or put control.mail_to beside them",
        );
    }
    output::text(&made.printed())
}

/// Whether the configuration that they are for says already where mails go.
fn says_where(file: Option<&Path>) -> Result<bool> {
    let Some(file) = file else {
        return Ok(false);
    };
    // Its rules may be what is still wrong with it.
    let (config, _) = config::look(file)?;
    Ok(!config.control.mail_to.is_empty())
}

/// A file, or all files in a directory: those of its own, then those of the directories in it.
fn files_of(path: &Path, deep_max: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    if deep_max == 0 {
        bail!(
            "{} lies too deep in directories: give it by itself",
            path.display()
        );
    }
    let entries = RealDisk.list(path)?;
    let (directories, own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.is_dir);
    files.extend(own.iter().map(|entry| path.join(&entry.name)));
    for directory in directories {
        files_of(&path.join(directory.name), deep_max - 1, files)?;
    }
    Ok(())
}
