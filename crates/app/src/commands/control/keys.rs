//! `newsreel control keys import|list|remove`: public keys by which control messages are verified.
//!
//! The keyring is changed in place, beside a running server too, which reads it for each message that it verifies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use newsreel_engine::{KEYRING_OCTETS_MAX, Keyring};
use newsreel_host::{Disk, RealDisk};
use newsreel_openpgp::Certificate;
use serde_json::{Value, json};

use crate::access::{self, SpoolArgs};
use crate::{input, output};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Take public keys into the keyring; a key that is there is replaced
    #[command(
        after_help = "Whoever has one of these keys can change groups where a rule names it, so be sure of where the file comes \
                      from: compare the fingerprints.\n\nExamples:\n  newsreel control keys import admin.asc\n  \
                      newsreel control keys import --dry-run PGPKEYS"
    )]
    Import {
        /// A file of public keys, armored or not; `-` is the standard input
        file: PathBuf,
        /// Only say which keys are in it
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Show the keys
    #[command(after_help = "Example:\n  newsreel control keys list --json")]
    List(SpoolArgs),
    /// Take a key out
    #[command(after_help = "Example:\n  newsreel control keys remove news.announce.example")]
    Remove {
        /// One of its names, or its fingerprint
        key: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Import {
            file,
            dry_run,
            spool,
        } => import(file, *dry_run, spool),
        Verb::List(spool) => {
            let keys = keyring(spool)?.all()?;
            said(&keys, spool, "there are no keys\n")
        }
        Verb::Remove { key, spool } => {
            let removed = keyring(spool)?.remove(key)?;
            match spool.json {
                true => output::json(&json!({"key": key, "removed": removed})),
                false => output::text(&format!("{key}: removed\n")),
            }
        }
    }
}

/// The keyring of a spool that is there.
fn keyring(spool: &SpoolArgs) -> Result<Keyring> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let path = access::config_of(spool)?.server.spool;
    if !disk.exists(&path)? {
        return Err(access::no_spool(&path));
    }
    access::no_foreign_root(&disk, &path)?;
    Ok(Keyring::of_spool(disk, &path))
}

fn import(file: &Path, dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let keyring = keyring(spool)?;
    let octets = input::read(file, KEYRING_OCTETS_MAX)?.octets;
    let imported = keyring
        .import(&octets, dry_run)
        .with_context(|| format!("{} cannot be imported", file.display()))?;
    for why in &imported.refused {
        output::warning(&format!("a key was not taken: {why}"));
    }
    if imported.taken.is_empty() {
        bail!("{} has no key that can be taken", file.display());
    }
    said(&imported.taken, spool, "")
}

fn said(keys: &[Certificate], spool: &SpoolArgs, none: &str) -> Result<()> {
    let rows: Vec<Value> = keys.iter().map(row).collect();
    if spool.json {
        return output::json(&json!(rows));
    }
    if rows.is_empty() {
        return output::text(none);
    }
    let shown = rows.iter().map(|row| {
        let names = row["names"].as_array().into_iter().flatten();
        let names: Vec<String> = names.map(output::cell).collect();
        let expires = match &row["expires"] {
            Value::Null => String::new(),
            expires => output::date(expires),
        };
        let state = if row["revoked"] == true {
            "revoked"
        } else {
            &expires
        };
        json!({
            "fingerprint": row["fingerprint"],
            "kind": row["kind"],
            "until": output::or_dash(state.to_owned()),
            "names": names.join(", "),
        })
    });
    let columns = [
        ("fingerprint", "fingerprint"),
        ("kind", "kind"),
        ("until", "until"),
        ("names", "names"),
    ];
    output::text(&output::table(&columns, &shown.collect::<Vec<_>>()))
}

fn row(key: &Certificate) -> Value {
    let standing = key.standing();
    json!({
        "fingerprint": key.fingerprint().to_string(),
        "kind": key.algorithm(),
        "names": standing.names,
        "made": key.created(),
        "expires": standing.expires,
        "revoked": standing.is_revoked,
    })
}
