//! Which server the numbers of groups come from: readers remember numbers, so that those of another server are taken only where
//! somebody says so, or where they are compared and are the same.

use anyhow::{Context as _, Result, bail};
use newsreel_cache::keep::{Keep, Renumbered};
use newsreel_cache::{RServer, Routes, Upstream};

use crate::config::Config;

/// What is started in front of the servers elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Starting {
    /// A caching server.
    Cache,
    /// The same, and numbers may be those of other servers than before.
    Renumbering,
    /// A server with groups of its own.
    Beside,
}

impl Starting {
    /// How numbers of another server are taken.
    const fn to_renumber(self) -> &'static str {
        match self {
            Self::Cache | Self::Renumbering => "give --renumber",
            Self::Beside => "run `newsreel cache --renumber` with this configuration",
        }
    }
}

/// Groups that a message names.
const NAMED: usize = 5;

/// Numbers that readers remember become another server's only if somebody says so, or if they are the same there.
pub(super) async fn take_routes(
    keep: &Keep,
    there: &RServer<Upstream>,
    config: &Config,
    (routes, starting): (&Routes, Starting),
) -> Result<()> {
    let is_declared = |other: &Renumbered| {
        let mut servers = config.upstream.iter();
        servers.any(|it| it.address == other.to && it.same_numbers_as == other.from)
    };
    let others = keep.renumbered(routes)?;
    if starting == Starting::Renumbering {
        return Ok(keep.take_routes(routes, &others)?);
    }
    let (declared, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_declared);
    if others.is_empty() {
        if !declared.is_empty() && !are_the_same(keep, there, &declared, starting).await? {
            // The next start looks at it again.
            return Ok(());
        }
        return Ok(keep.take_routes(routes, &[])?);
    }
    let named: Vec<&str> = others.iter().take(NAMED).map(|it| &*it.group).collect();
    bail!(
        "the numbers of {}, {}{}, would come from another server than before, and readers remember them: put back which \
         [[upstream]] these groups come from (its place, its `tier`, its `groups`), say `same_numbers_as` where it has the same \
         numbers, or {} once",
        crate::output::count(others.len() as u64, "group"),
        named.join(" "),
        others.get(NAMED).map_or("", |_| " and others"),
        starting.to_renumber()
    );
}

/// Compares what is said to be the same; false: it cannot be asked, and a server with groups of its own takes the administrator's word
/// for it meanwhile, as these are to be read whatever becomes of others.
async fn are_the_same(
    keep: &Keep,
    there: &RServer<Upstream>,
    declared: &[Renumbered],
    starting: Starting,
) -> Result<bool> {
    let groups = crate::output::count(declared.len() as u64, "group");
    let compared = match there.compared(keep, declared).await {
        Err(error) if starting == Starting::Beside => {
            tracing::warn!(
                target: "newsreel::cache", groups, %error,
                "whether numbers are the same (`same_numbers_as`) cannot be looked at now; they are taken to be, and compared at the next start"
            );
            return Ok(false);
        }
        compared => compared
            .context("whether numbers are the same (`same_numbers_as`) cannot be looked at now")?,
    };
    if let Some((group, number)) = compared.other {
        bail!(
            "number {} of {group} is another article at the server that is to have the same numbers (`same_numbers_as`): put back \
             which [[upstream]] its numbers come from, or {} once",
            number.0,
            starting.to_renumber()
        );
    }
    if compared.same == 0 {
        bail!(
            "nothing that is kept of {groups} could be compared with the server that is to have the same numbers \
             (`same_numbers_as`): {} once to take its numbers all the same",
            starting.to_renumber()
        );
    }
    let same = compared.same;
    tracing::info!(target: "newsreel::cache", groups, same, "numbers come from another server, which has the same");
    Ok(true)
}
