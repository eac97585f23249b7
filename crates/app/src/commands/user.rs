//! `newsreel user add|passwd|groups|list|lock|unlock|remove`: who can log in.
//!
//! The file of users is changed in place, beside a running server too, which reads it at each login.  Passwords are read from
//! the standard input, never from the command line, where others could see them; from a terminal twice, and it does not show them.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use newsreel_host::process::shell_word;
use newsreel_host::{Disk, RealDisk};
use newsreel_users::{Change, FILE, PASSWORD_OCTETS_MAX, Users};
use serde_json::{Value, json};

use crate::access::{self, SpoolArgs};
use crate::{hidden, output};

/// One user of a spool.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The user's name
    name: String,
    #[command(flatten)]
    spool: SpoolArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Add a user; the password is asked for, or the first line of the standard input
    #[command(
        after_help = "Passwords have 8 to 256 octets and no spaces.\n\nExamples:\n  newsreel user add ada --group staff\n  newsreel user add ada --group staff < password.txt"
    )]
    Add {
        #[command(flatten)]
        named: Named,
        /// A group of users that it is in, for entries of [[access]] with @GROUP; may be given several times
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
    },
    /// Give a user another password, which is asked for, or the first line of the standard input
    #[command(
        after_help = "Examples:\n  newsreel user passwd ada\n  newsreel user passwd ada < password.txt"
    )]
    Passwd(Named),
    /// Show a user's groups, or put it into these and out of all others
    #[command(
        after_help = "Examples:\n  newsreel user groups ada\n  newsreel user groups ada --group staff --group moderators\n  \
                      newsreel user groups ada --none"
    )]
    Groups {
        #[command(flatten)]
        named: Named,
        /// A group of users that it is in from now on; may be given several times
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// It is in no group from now on
        #[arg(long, conflicts_with = "group")]
        none: bool,
    },
    /// Show who can log in
    #[command(after_help = "Example:\n  newsreel user list --json")]
    List(SpoolArgs),
    /// Let a user log in no more; who is logged in stays so until the connection ends
    #[command(after_help = "Example:\n  newsreel user lock ada")]
    Lock(Named),
    /// Let a locked user log in again
    #[command(after_help = "Example:\n  newsreel user unlock ada")]
    Unlock(Named),
    /// Remove a user
    #[command(after_help = "Example:\n  newsreel user remove ada")]
    Remove(Named),
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::List(spool) => list(spool),
        Verb::Add { named, group } => {
            let password = password(&named.name)?;
            let groups = group.clone();
            change(named, Change::Add { password, groups }, "added")
        }
        Verb::Passwd(named) => {
            let password = password(&named.name)?;
            change(named, Change::Password(password), "has a new password")
        }
        Verb::Groups { named, group, none } => match (group.is_empty(), none) {
            (true, false) => groups(named),
            (true, true) => change(named, Change::Groups(Vec::new()), "has no groups"),
            (false, _) => {
                let done = format!("has the groups {}", group.join(", "));
                change(named, Change::Groups(group.clone()), &done)
            }
        },
        Verb::Lock(named) => change(named, Change::Lock(true), "locked"),
        Verb::Unlock(named) => change(named, Change::Lock(false), "unlocked"),
        Verb::Remove(named) => change(named, Change::Remove, "removed"),
    }
}

/// The users of a spool that is there.
fn users(spool: &SpoolArgs) -> Result<Users> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let config = access::config_of(spool)?;
    let path = config.server.spool;
    if !disk.exists(&path)? {
        return Err(anyhow!(
            "{}; the users of a cache are in its directory (--spool with that of `cache.directory`), which the first start of `newsreel cache` \
             makes: start it, then add them",
            access::no_spool(&path)
        ));
    }
    access::no_foreign_root(&disk, &path)?;
    Ok(Users::new(disk, path.join(FILE)).keeping_scram(config.login.scram))
}

fn change(named: &Named, change: Change, done: &str) -> Result<()> {
    users(&named.spool)?.change(&named.name, change)?;
    if named.spool.json {
        return output::json(&json!({"user": named.name, "done": done}));
    }
    output::text(&format!("{}: {done}\n", named.name))
}

/// The groups of a user, which stay as they are.
fn groups(named: &Named) -> Result<()> {
    let name = &named.name;
    let Some(user) = users(&named.spool)?.find(name)? else {
        bail!("there is no user {name}; `newsreel user list` shows who there is");
    };
    if named.spool.json {
        return output::json(&json!({"user": name, "groups": user.groups}));
    }
    let groups = match user.groups.is_empty() {
        true => "no groups".to_owned(),
        false => user.groups.join(", "),
    };
    output::text(&format!("{name}: {groups}\n"))
}

fn list(spool: &SpoolArgs) -> Result<()> {
    let rows: Vec<Value> = users(spool)?
        .all()?
        .into_iter()
        .map(|user| json!({"name": user.name, "groups": user.groups, "locked": user.is_locked}))
        .collect();
    if spool.json {
        return output::json(&json!(rows));
    }
    let mut out = String::new();
    for row in &rows {
        let groups: Vec<&str> = row["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let state = if row["locked"] == true {
            "  locked"
        } else {
            ""
        };
        let name = row["name"].as_str().unwrap_or_default();
        out.push_str(format!("{name:24} {}{state}", groups.join(",")).trim_end());
        out.push('\n');
    }
    output::text(&out)
}

/// What somebody at a terminal types, twice, or the first line of the standard input.
fn password(name: &str) -> Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return asked(name);
    }
    let mut line = String::new();
    let most = PASSWORD_OCTETS_MAX as u64 + 3;
    let mut input = std::io::Read::take(stdin.lock(), most);
    input
        .read_line(&mut line)
        .context("cannot read the password")?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        bail!(
            "there is no password: it is the first line of the standard input, as in `newsreel user add ada < password.txt`"
        );
    }
    Ok(password.to_owned())
}

/// Asks at the terminal, which does not show what is typed.
fn asked(name: &str) -> Result<String> {
    if !std::io::stderr().is_terminal() {
        bail!(
            "nobody can be asked for the password, as the standard error is no terminal: give it on the standard input, as in \
             `newsreel user passwd {} < password.txt`",
            shell_word(name)
        );
    }
    let first = hidden::line(&format!("Password for {}: ", output::printable(name)))?;
    if first.is_empty() {
        bail!("there is no password; nothing was changed");
    }
    if hidden::line("The same again: ")? != first {
        bail!("these are two passwords; nothing was changed");
    }
    Ok(first)
}
