//! A crate's manifest takes from the workspace what all crates share.

use super::super::Findings;
use crate::tree::Tree;

/// Lines every manifest has.
const LINES: [&str; 4] = [
    "version.workspace = true",
    "edition.workspace = true",
    "license.workspace = true",
    "[lints]",
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let text = tree.text(&path).unwrap_or_default();
        for wanted in LINES {
            if !text.lines().any(|line| line == wanted) {
                findings.file(&path, format!("lacks `{wanted}`"));
            }
        }
        if !text.contains(&format!("name = \"newsreel-{name}\"")) {
            findings.file(&path, format!("the package must be called newsreel-{name}"));
        }
        own_versions(&path, text, findings);
    }
}

/// Versions are said once, in the workspace's manifest.
fn own_versions(path: &str, text: &str, findings: &mut Findings) {
    let mut in_dependencies = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        } else if in_dependencies && line.contains('=') && !line.contains("workspace = true") {
            findings.line(
                path,
                at + 1,
                "take the version from [workspace.dependencies]",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn what_is_not_shared_is_named() {
        let manifest = "[package]\nname = \"newsreel-b\"\nversion.workspace = true\n\
                        edition.workspace = true\nlicense.workspace = true\n\
                        [dependencies]\nbytes = \"1\"\nitoa.workspace = true\n";
        assert_eq!(
            findings_of(check, &[("crates/a/Cargo.toml", manifest)]),
            [
                "crates/a/Cargo.toml: lacks `[lints]`",
                "crates/a/Cargo.toml: the package must be called newsreel-a",
                "crates/a/Cargo.toml:7: take the version from [workspace.dependencies]",
            ]
        );
    }
}
