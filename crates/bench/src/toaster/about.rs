//! What a report says of the machine and of what was asked for, so that another run can be the same.

use std::path::Path;

use newsreel_host::machine_octets;
use newsreel_host::mounts::{canonical, mount_points};
use serde::Serialize;

use super::args::ToasterArgs;
use super::feed::Feed;
use crate::load::Machine;
use crate::measure::process::text;

/// Machine and options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Processors that this process may use.
    pub cores: usize,
    /// Octets of memory.
    pub memory_octets: u64,
    /// The kernel.
    pub kernel: String,
    /// The file system that image files and a directory that was given lie on.
    pub below: String,
    /// Decides generated articles.
    pub seed: u64,
    /// When the feed was new, seconds since 1970.
    pub base_time_secs: u64,
    /// Where originals come from; none: they are generated.
    pub from: Vec<String>,
    /// Articles of all passes.
    pub articles: u64,
    /// Groups of them.
    pub groups: usize,
    /// Passes.
    pub passes: u32,
    /// Articles of a batch.
    pub batch_articles: u64,
    /// What a server might have in memory, if that was limited.
    pub limit_octets: Option<u64>,
}

impl About {
    pub(super) fn new(args: &ToasterArgs, feed: &Feed, machine: Machine<'_>) -> Self {
        let kernel = text(machine.disk, Path::new("/proc/sys/kernel/osrelease"));
        let from = args.corpus.from.iter();
        Self {
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            memory_octets: machine_octets(),
            kernel: kernel.unwrap_or_default().trim().to_owned(),
            below: file_system_of(args.at.as_ref().unwrap_or(&args.directory)),
            seed: args.corpus.seed,
            base_time_secs: args.base_time_secs(),
            from: from.map(|path| path.display().to_string()).collect(),
            articles: feed.articles(),
            groups: feed.groups().len(),
            passes: args.passes,
            batch_articles: args.batch_articles,
            limit_octets: args.memory_octets,
        }
    }

    /// As a paragraph.
    pub(super) fn said(&self) -> String {
        let limit = self.limit_octets.map_or_else(String::new, |octets| {
            format!(" A server has at most {} MiB in memory.", octets >> 20)
        });
        let originals = match self.from.is_empty() {
            true => format!("generated with seed {}", self.seed),
            false => format!("of {}", self.from.join(", ")),
        };
        format!(
            "{} cores, {} MiB of memory, Linux {}, images on {}. {} articles in {} passes, batches of {}, {} groups; originals {originals}, \
             new at {}.{limit}\n",
            self.cores,
            self.memory_octets >> 20,
            self.kernel,
            self.below,
            self.articles,
            self.passes,
            self.batch_articles,
            self.groups,
            self.base_time_secs,
        )
    }
}

/// The kind of file system that a path lies on.
pub(super) fn file_system_of(path: &Path) -> String {
    let path = canonical(path);
    let mounts = mount_points().unwrap_or_default();
    let above = mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.at));
    // Of several at one place the last lies on top.
    let nearest = above.max_by_key(|mount| mount.at.components().count());
    nearest.map_or_else(|| "unknown".to_owned(), |mount| mount.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_on_the_nearest_mount() {
        assert_eq!(file_system_of(Path::new("/proc/self/status")), "proc");
        assert_ne!(file_system_of(Path::new("/")), "unknown");
    }
}
