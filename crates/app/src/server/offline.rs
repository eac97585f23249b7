//! Whether a caching server is offline, as an administrator switched it: that holds until it is switched again, over restarts, too.
//!
//! What was asked for is in a file of the cache's directory where it is other than the configuration says; without that file the
//! configuration says it.

use std::path::Path;

use anyhow::{Context as _, Result};
use newsreel_cache::CacheConfig;
use newsreel_host::{Disk, ErrorKind, read_whole, replace_file};

/// The file's name.
const FILE: &str = "offline";

/// What may be in it.
const SAID: [(&[u8], bool); 2] = [(b"on\n", true), (b"off\n", false)];

/// Whether a server that starts is offline.
pub(super) fn begins(disk: &dyn Disk, config: &CacheConfig) -> Result<bool> {
    let path = config.directory.join(FILE);
    if !disk.exists(&path)? {
        return Ok(config.offline);
    }
    let said = read_whole(disk, &path, 16)?;
    let Some((_, offline)) = SAID.into_iter().find(|(text, _)| *text == said) else {
        tracing::warn!(target: "newsreel::cache", path = %path.display(), offline = config.offline,
            "the file neither says `on` nor `off`: the server is offline or not as `cache.offline` says");
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
    let said = SAID.into_iter().find(|(_, is)| *is == offline);
    let held = match said.filter(|_| offline != config.offline) {
        Some((text, _)) => replace_file(disk, &path, text),
        None => match disk.remove(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| disk.sync_dir(&config.directory)),
        },
    };
    held.with_context(|| {
        let path: &Path = &path;
        format!(
            "nothing was switched, as it would not outlive this server: {}",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
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
            disk.remove(Path::new("/cache/offline")).unwrap();
        }
        // Damage is no reason not to start.
        replace_file(&disk, Path::new("/cache/offline"), b"x").unwrap();
        assert!(begins(&disk, &config(true)).unwrap());
    }
}
