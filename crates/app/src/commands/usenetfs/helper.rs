//! The binary as `mount(8)` calls it: under the name `mount.fuse.newsreel`, with the arguments of a mount helper.

use std::ffi::OsString;
use std::path::Path;

/// What the link for `mount(8)` is called.
const HELPERS: [&str; 2] = ["mount.fuse.newsreel", "mount.newsreel"];

/// The arguments as the command line is read: those of a mount helper mean a mount.
pub(crate) fn arguments(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = words.first().map(Path::new).and_then(Path::file_name);
    if called.is_some_and(|called| HELPERS.iter().any(|helper| called == *helper)) {
        let verb = ["newsreel", "usenetfs", "mount", "--helper"];
        words.splice(..1, verb.map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_helper_mounts() {
        let read = |words: &[&str]| -> Vec<String> {
            let words = words.iter().map(OsString::from);
            let words = arguments(words).into_iter();
            words.map(|word| word.into_string().unwrap()).collect()
        };
        assert_eq!(
            read(&["/sbin/mount.fuse.newsreel", "/spool", "/news", "-o", "ro"]),
            [
                "newsreel", "usenetfs", "mount", "--helper", "/spool", "/news", "-o", "ro"
            ]
        );
        assert_eq!(read(&["newsreel", "status"]), ["newsreel", "status"]);
        assert_eq!(read(&[]), Vec::<String>::new());
    }
}
