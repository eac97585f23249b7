//! Generated pages are as the binary would make them now.  `NEWSREEL_BLESS=1` rewrites them.

use std::path::Path;

use newsreel_host::{Disk as _, RealDisk, read_whole, replace_file};

use crate::spool::{newsreel, said};

/// Pages with the words that print them.
const PAGES: &[(&str, &[&str])] = &[("docs/reference/config.md", &["config", "reference"])];

#[test]
fn generated_pages_are_fresh() {
    for (page, words) in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(page);
        let fresh = said(newsreel().args(*words).output().unwrap()).unwrap();
        if std::env::var_os("NEWSREEL_BLESS").is_some() {
            RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
            replace_file(&RealDisk, &path, fresh.as_bytes()).unwrap();
        }
        let stored = read_whole(&RealDisk, &path, 1 << 20).unwrap_or_default();
        assert!(
            stored == fresh.as_bytes(),
            "{page} is stale: run `cargo xtask docs`"
        );
    }
}
