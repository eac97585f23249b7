//! Whether a caching server is offline, as an administrator switched it: that holds until it is switched again, over restarts, too.
//!
//! What was asked for is in a file of the cache's directory; without that file the configuration says it.

use anyhow::{Context as _, Result};
use newsreel_cache::CacheConfig;
use newsreel_host::{Disk, read_whole, replace_file};

/// The file's name.
const FILE: &str = "offline";

/// What is in it.
const fn said(offline: bool) -> &'static [u8] {
    if offline { b"on\n" } else { b"off\n" }
}

/// Whether a server that starts is offline.
pub(super) fn begins(disk: &dyn Disk, config: &CacheConfig) -> Result<bool> {
    let path = config.directory.join(FILE);
    if !disk.exists(&path)? {
        return Ok(config.offline);
    }
    let is = |offline: &bool| read_whole(disk, &path, 16).is_ok_and(|text| text == said(*offline));
    let Some(offline) = [true, false].into_iter().find(is) else {
        tracing::warn!(target: "newsreel::cache", path = %path.display(), offline = config.offline,
            "the file cannot be read, or says neither `on` nor `off`: the server is offline or not as `cache.offline` says");
        return Ok(config.offline);
    };
    if offline != config.offline {
        tracing::info!(target: "newsreel::cache", offline, "as `newsreel cache offline` said last; `cache.offline` says otherwise");
    }
    Ok(offline)
}

/// Has that hold from the next start on.
pub(super) fn hold(disk: &dyn Disk, config: &CacheConfig, offline: bool) -> Result<()> {
    let path = config.directory.join(FILE);
    replace_file(disk, &path, said(offline)).with_context(|| {
        format!(
            "nothing was switched, as it would not outlive this server: {}",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use newsreel_host::MemoryDisk;

    use super::*;

    /// It ended with the restart, be it that of a machine which was cut off from the network on purpose.
    #[test]
    fn what_was_switched_last_holds_after_a_restart() {
        let disk = MemoryDisk::new();
        let config = |offline| CacheConfig {
            directory: "/cache".into(),
            offline,
            ..CacheConfig::default()
        };
        disk.create_dir_all(Path::new("/cache")).unwrap();
        for is_configured in [false, true] {
            let begins = || begins(&disk, &config(is_configured)).unwrap();
            assert_eq!(begins(), is_configured);
            for offline in [!is_configured, is_configured, is_configured, !is_configured] {
                hold(&disk, &config(is_configured), offline).unwrap();
                assert_eq!(begins(), offline);
            }
            // Also where the configuration came to say the same, and then something else.
            hold(&disk, &config(!is_configured), !is_configured).unwrap();
            assert_eq!(begins(), !is_configured);
            disk.remove(Path::new("/cache/offline")).unwrap();
        }
        // Damage is no reason not to start.
        for damage in ["", "x", "on\non\non\non\non\non\n"] {
            replace_file(&disk, Path::new("/cache/offline"), damage.as_bytes()).unwrap();
            assert!(begins(&disk, &config(true)).unwrap());
        }
    }
}
