//! The repository as data: every text file under its path from the root.
//!
//! Rules read only this, so a test can hand them a made-up tree.  It is loaded once and never written through here.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Folders that hold no sources of ours, wherever they are.
const SKIPPED: [&str; 5] = [".git", "target", "newsreel-spool", "corpus", "artifacts"];

/// All files of the repository, by path with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the working tree under `root`; a file that is not UTF-8 is there with an empty text.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_folder(root, "")?;
        Ok(tree)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "tidy reads the sources, not a spool"
    )]
    fn add_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.add_folder(&entry.path(), &format!("{prefix}{name}/"))?;
                }
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path())
                    .with_context(|| format!("cannot read {}", entry.path().display()))?;
                self.files.insert(
                    format!("{prefix}{name}"),
                    String::from_utf8(bytes).unwrap_or_default(),
                );
            }
        }
        Ok(())
    }

    /// A made-up tree, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        Self { files }
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether this is a file or a folder with something in it.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.contains_key(path) || self.under(&format!("{path}/")).next().is_some()
    }

    /// All files whose path begins with `prefix`, sorted.
    pub(crate) fn under<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.files
            .range(prefix.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(prefix))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All files with this ending (without the dot), sorted.
    pub(crate) fn ending<'a>(
        &'a self,
        ending: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.under("").filter(move |(path, _)| {
            path.rsplit_once('.')
                .is_some_and(|(_, found)| found == ending)
        })
    }

    /// The direct children of a folder (with `/` at its end): bare names of files and folders, sorted.
    pub(crate) fn children(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .under(folder)
            .map(|(path, _)| {
                let rest = &path[folder.len()..];
                rest.split('/').next().unwrap_or(rest).to_owned()
            })
            .collect();
        names.dedup();
        names
    }

    /// The names of the crates: folders of `crates/` with a manifest.
    pub(crate) fn crates(&self) -> Vec<String> {
        let mut names = self.children("crates/");
        names.retain(|name| self.exists(&format!("crates/{name}/Cargo.toml")));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_and_list_their_children() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/b/notes.md", ""),
        ]);
        assert!(tree.exists("crates/a"));
        assert!(tree.exists("crates/a/src/"));
        assert!(!tree.exists("crates/a/sr"));
        assert_eq!(tree.children("crates/a/"), ["Cargo.toml", "src"]);
        assert_eq!(tree.crates(), ["a"]);
        assert_eq!(tree.ending("md").count(), 1);
    }
}
