//! How much memory there is for this process (the machine's, or less where a control group limits it), and in what pages
//! it comes.

use std::path::Path;

use crate::disk::read_small;
use crate::error::{Error, Op, Result};

/// Where control groups (version 2) are seen.
const GROUPS: &str = "/sys/fs/cgroup";

/// Octets of memory this process may hope for: the machine's, or the tightest limit of the control groups it is in.
#[must_use]
pub fn machine_octets() -> u64 {
    let facts = rustix::system::sysinfo();
    let machine = facts.totalram.saturating_mul(u64::from(facts.mem_unit));
    let own = read_small(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limit_in = |dir: &Path| read_small(&dir.join("memory.max")).ok();
    tightest(&own, limit_in).map_or(machine, |limit| limit.min(machine))
}

/// Takes memory in small pages from here on, 4 KiB on most machines.  A huge page (2 MiB) is seldom wholly needed, and on
/// a virtual machine that gave its free memory back to the host getting one costs seven times as much an octet.
///
/// # Errors
/// When the kernel does not know how.
pub fn take_small_pages() -> Result<()> {
    rustix::thread::disable_transparent_huge_pages(true).map_err(|errno| Error::Io {
        op: Op::Stat,
        path: "transparent huge pages".into(),
        source: errno.into(),
    })
}

/// The tightest limit from the control group that `/proc/self/cgroup` names up to the root.
fn tightest(own: &str, limit_in: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let dir = Path::new(GROUPS).join(group);
    let within = |dir: &&Path| dir.starts_with(GROUPS);
    let limits = dir.ancestors().take_while(within).filter_map(limit_in);
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let limits = [
            ("/sys/fs/cgroup/system.slice/newsreel.service", "max\n"),
            ("/sys/fs/cgroup/system.slice", "2000\n"),
            ("/sys/fs/cgroup", "3000\n"),
            // Never looked at: it is above them.
            ("/sys/fs", "1\n"),
        ];
        let limit_in = |dir: &Path| {
            let found = limits.iter().find(|(of, _)| Path::new(of) == dir);
            found.map(|(_, limit)| (*limit).to_owned())
        };
        let of = |own: &str| tightest(own, limit_in);
        assert_eq!(of("0::/system.slice/newsreel.service\n"), Some(2000));
        assert_eq!(of("12:cpu:/\n0::/\n"), Some(3000));
        assert_eq!(of("0::/user.slice\n"), Some(3000));
        assert_eq!(of("4:memory:/old\n"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(machine_octets() > 64 << 20);
    }
}
