//! A list of a million groups: no table is fixed (R13).

use std::sync::Arc;

use newsreel_cache::keep::Keep;
use newsreel_cache::{CServer, CacheSettings};
use newsreel_host::{Disk, FakeClock, MemoryDisk};
use newsreel_service::{GroupCursor, GroupRow, GroupSelect, NewsService as _};
use newsreel_wire::GroupName;

use crate::cached::{REFRESH_S, asked_for, keep_settings, whole_list};
use crate::everything;
use crate::toy::To;

const GROUPS: usize = 1_000_000;

#[tokio::test]
async fn a_million_groups_are_listed_and_any_can_be_selected() {
    let to = To::default();
    let lines: String = (0..GROUPS)
        .map(|number| format!("alt.{number:07} 9 1 y\r\n"))
        .collect();
    let octets = lines.len();
    to.0.lock().listed = Box::leak(lines.into_boxed_str());
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = Arc::new(Keep::open(&disk, &keep_settings()).unwrap());
    let servers = vec![(to.clone(), everything("up", 0))];
    let there = asked_for(servers, &clock, GROUPS + 1);
    let settings = CacheSettings {
        refresh_s: REFRESH_S,
        read_ahead_max: 1,
        read_ahead_octets_max: 1 << 20,
        offline_kept_only: false,
    };
    let here = CServer::new(there, keep, settings, None);
    let list = whole_list(&here).await.unwrap();
    assert_eq!(list.len(), octets + "misc.test 0 1 y\r\n".len());
    let select = GroupSelect {
        bare: true,
        ..GroupSelect::default()
    };
    let (mut cursor, mut count, mut last) = (GroupCursor::default(), 0, String::new());
    while !cursor.is_done() {
        let mut visit = |row: GroupRow<'_>| {
            count += 1;
            last.clear();
            last.push_str(row.name.as_str());
        };
        let listing = here.groups(select, &mut cursor, 10_000, &mut visit);
        listing.await.unwrap();
    }
    assert_eq!((count, &*last), (GROUPS + 1, "misc.test"));
    let mut ids = Vec::new();
    for name in ["alt.0000000", "alt.0500000", "alt.0999999"] {
        let name = GroupName::parse(name.as_bytes()).unwrap();
        ids.push(here.group(name).await.unwrap().unwrap().id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}
