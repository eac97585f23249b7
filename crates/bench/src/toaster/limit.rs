//! A control group that limits a server's memory, what it has in the page cache included: so articles exceed it on any machine.
//!
//! Invariant: the group goes when this does; it can only when nobody is in it, so the server has ended before.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of control groups are no spool of ours"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Version 2, where memory is one of several controllers, and version 1, where it has a tree of its own.
const TREES: [(&str, &str); 3] = [
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/unified", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];
const CONTROLLERS: &str = "cgroup.controllers";
const SUBTREE: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";

/// A group.
#[derive(Debug)]
pub(super) struct Limit {
    group: PathBuf,
}

impl Limit {
    /// Makes one; an error says why there is none.
    pub(super) fn new(octets: u64) -> Result<Self, Error> {
        let mut why = "this machine has no control groups for memory".to_owned();
        for (tree, file) in TREES {
            let tree = Path::new(tree);
            if !governs_memory(tree, file) {
                continue;
            }
            match Self::within(tree, file, octets) {
                Ok(limit) => return Ok(limit),
                Err(error) => why = error,
            }
        }
        Err(Error::missing("a control group for memory", why))
    }

    fn within(tree: &Path, file: &str, octets: u64) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("cannot be made in {}: {error}", tree.display());
        if tree.join(SUBTREE).exists() {
            fs::write(tree.join(SUBTREE), "+memory").map_err(said)?;
        }
        let group = tree.join(format!("newsreel-bench-{}", std::process::id()));
        fs::create_dir_all(&group).map_err(said)?;
        let limit = Self { group };
        fs::write(limit.group.join(file), octets.to_string()).map_err(said)?;
        Ok(limit)
    }

    /// What this process and those that it starts have in memory from now on counts.
    pub(super) fn add(&self, pid: u32) -> Result<(), Error> {
        fs::write(self.group.join(PROCESSES), pid.to_string()).map_err(|source| Error::Stream {
            what: format!("cannot put the server into {}", self.group.display()),
            source,
        })
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Whatever went wrong has been told; here only nothing may stay.
        let _ = fs::remove_dir(&self.group);
    }
}

fn governs_memory(tree: &Path, file: &str) -> bool {
    match fs::read_to_string(tree.join(CONTROLLERS)) {
        Ok(controllers) => controllers
            .split_ascii_whitespace()
            .any(|one| one == "memory"),
        Err(_) => tree.join(file).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_governed_where_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        assert!(!governs_memory(tree, "limit"));
        fs::write(tree.join("limit"), "1").unwrap();
        assert!(governs_memory(tree, "limit"));
        fs::write(tree.join(CONTROLLERS), "cpu memoryless\n").unwrap();
        assert!(!governs_memory(tree, "limit"));
        fs::write(tree.join(CONTROLLERS), "cpu memory io\n").unwrap();
        assert!(governs_memory(tree, "limit"));
    }

    #[test]
    fn a_group_has_its_limit_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        fs::write(tree.join(SUBTREE), "").unwrap();
        let limit = Limit::within(tree, "memory.max", 1 << 20).unwrap();
        assert_eq!(fs::read_to_string(tree.join(SUBTREE)).unwrap(), "+memory");
        let group = limit.group.clone();
        assert_eq!(
            fs::read_to_string(group.join("memory.max")).unwrap(),
            "1048576"
        );
        limit.add(7).unwrap();
        assert_eq!(fs::read_to_string(group.join(PROCESSES)).unwrap(), "7");
        // In a control group these are no files that keep it from going.
        fs::remove_file(group.join("memory.max")).unwrap();
        fs::remove_file(group.join(PROCESSES)).unwrap();
        drop(limit);
        assert!(!group.exists());
        let nowhere = tree.join("nowhere/below");
        fs::write(tree.join("nowhere"), "").unwrap();
        assert!(
            Limit::within(&nowhere, "x", 1)
                .unwrap_err()
                .contains("nowhere")
        );
    }
}
