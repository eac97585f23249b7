//! What was measured, and what lies between: `docs/decisions/0008-when-a-directory-should-be-managed.md`.
//!
//! One row is one run of `crates/layout/examples/measure.rs` on one file system and one size, or of the figures of `docs/reports/usenetfs.md`.  Between sizes costs grow
//! by a power of the size; beyond the smallest and the largest nothing is known, and they count for the rest.

use super::Search;

/// One operation: time on a processor, and reads of the device when nothing is in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) cpu_us: f64,
    pub(super) reads: f64,
}

/// The operations of a layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) lookup: Cost,
    pub(super) add: Cost,
    pub(super) remove: Cost,
    pub(super) list: Cost,
}

/// A size with both layouts.
struct Row {
    entries: f64,
    flat: Costs,
    managed: Costs,
}

/// Lookup, add, remove, list, each with its processor time and its reads.
const fn costs(all: [(f64, f64); 4]) -> Costs {
    const fn cost((cpu_us, reads): (f64, f64)) -> Cost {
        Cost { cpu_us, reads }
    }
    let [lookup, add, remove, list] = all;
    Costs {
        lookup: cost(lookup),
        add: cost(add),
        remove: cost(remove),
        list: cost(list),
    }
}

/// ext2 without `dir_index`: half of the lookups at random and half in order, as in figures 3 to 6 of `docs/reports/usenetfs.md`; the reads
/// beyond 65,536 entries are those there.
static LINEAR: [Row; 5] = [
    Row {
        entries: 1024.0,
        flat: costs([(3.2, 0.01), (41.0, 0.03), (9.0, 0.01), (91.0, 3.0)]),
        managed: costs([(2.7, 0.01), (12.0, 0.04), (8.0, 0.01), (147.0, 10.0)]),
    },
    Row {
        entries: 4096.0,
        flat: costs([(7.1, 0.04), (83.0, 0.05), (9.0, 0.01), (287.0, 5.0)]),
        managed: costs([(3.5, 0.05), (12.0, 0.04), (8.0, 0.01), (475.0, 24.0)]),
    },
    Row {
        entries: 32768.0,
        flat: costs([(41.0, 0.33), (457.0, 0.2), (9.0, 0.02), (2000.0, 32.0)]),
        managed: costs([(4.0, 0.35), (12.0, 0.04), (8.0, 0.02), (3240.0, 137.0)]),
    },
    Row {
        entries: 262144.0,
        flat: costs([(320.0, 0.66), (1503.0, 0.29), (9.0, 0.02), (16500.0, 256.0)]),
        managed: costs([(5.5, 0.7), (20.0, 0.04), (8.0, 0.02), (28800.0, 1092.0)]),
    },
    Row {
        entries: 524288.0,
        flat: costs([(689.0, 0.66), (2847.0, 0.29), (7.5, 0.02), (33030.0, 512.0)]),
        managed: costs([(6.1, 0.7), (21.5, 0.04), (7.2, 0.02), (55805.0, 2184.0)]),
    },
];

/// ext4.
static HASHED: [Row; 4] = [
    Row {
        entries: 1024.0,
        flat: costs([(11.0, 0.01), (20.4, 0.01), (10.1, 0.01), (504.8, 12.0)]),
        managed: costs([(5.6, 0.01), (19.0, 0.01), (12.9, 0.01), (697.3, 16.0)]),
    },
    Row {
        entries: 8192.0,
        flat: costs([(7.4, 0.1), (20.1, 0.05), (14.9, 0.06), (14452.4, 61.0)]),
        managed: costs([(8.2, 0.1), (19.5, 0.01), (21.2, 0.01), (4831.7, 86.0)]),
    },
    Row {
        entries: 65536.0,
        flat: costs([(27.9, 0.72), (41.3, 0.36), (30.4, 0.37), (42921.0, 392.0)]),
        managed: costs([(20.2, 0.79), (19.4, 0.01), (15.6, 0.01), (42710.3, 646.0)]),
    },
    Row {
        entries: 524288.0,
        flat: costs([(98.8, 2.81), (43.4, 0.85), (66.4, 0.85), (254644.7, 3050.0)]),
        managed: costs([
            (106.3, 3.79),
            (18.2, 0.02),
            (13.6, 0.02),
            (480292.4, 5108.0),
        ]),
    },
];

/// XFS.
static TREE: [Row; 4] = [
    Row {
        entries: 1024.0,
        flat: costs([(6.2, 0.04), (15.9, 0.01), (15.4, 0.05), (118.8, 5.0)]),
        managed: costs([(4.4, 0.04), (14.4, 0.02), (15.7, 0.06), (366.6, 8.0)]),
    },
    Row {
        entries: 8192.0,
        flat: costs([(7.5, 0.16), (18.0, 0.01), (14.9, 0.05), (1036.0, 41.0)]),
        managed: costs([(9.7, 0.18), (16.3, 0.02), (17.1, 0.06), (2388.4, 51.0)]),
    },
    Row {
        entries: 65536.0,
        flat: costs([(23.2, 1.16), (18.2, 0.01), (15.5, 0.05), (5081.7, 313.0)]),
        managed: costs([(13.5, 1.27), (16.7, 0.02), (14.3, 0.06), (16202.7, 397.0)]),
    },
    Row {
        entries: 524288.0,
        flat: costs([(30.8, 2.84), (21.7, 0.04), (15.8, 0.06), (74341.7, 2176.0)]),
        managed: costs([(52.1, 3.79), (18.2, 0.03), (16.0, 0.06), (132206.4, 3158.0)]),
    },
];

/// What a mount adds to each operation, whatever lies below: the request, most of which is waking the server, in microseconds
/// (`docs/decisions/0025-what-a-request-to-a-mount-costs.md` and the report, natively and mounted).
const REQUEST_US: [f64; 3] = [40.0, 100.0, 70.0];
/// The same of a listing: what its requests cost together, and each entry.
const LISTING_US: (f64, f64) = (700.0, 0.14);

/// The costs of a managed directory of so many entries through a mount.
pub(super) fn mounted(managed: &Costs, entries: u64) -> Costs {
    let [lookup, add, remove] = REQUEST_US;
    let (listing, entry) = LISTING_US;
    let with = |cost: Cost, more: f64| Cost {
        cpu_us: cost.cpu_us + more,
        ..cost
    };
    Costs {
        lookup: with(managed.lookup, lookup),
        add: with(managed.add, add),
        remove: with(managed.remove, remove),
        list: with(managed.list, listing + entry * entries as f64),
    }
}

/// The costs of a directory of so many entries, flat and managed.
pub(super) fn at(search: Search, entries: u64) -> (Costs, Costs) {
    let rows: &[Row] = match search {
        Search::Linear => &LINEAR,
        Search::Hashed => &HASHED,
        Search::Tree => &TREE,
    };
    let (first, last) = (rows[0].entries, rows[rows.len() - 1].entries);
    let entries = (entries as f64).clamp(first, last);
    let reached = rows.partition_point(|row| row.entries <= entries);
    let at = reached.clamp(1, rows.len() - 1);
    let (low, high) = (&rows[at - 1], &rows[at]);
    let share = (entries / low.entries).ln() / (high.entries / low.entries).ln();
    (
        between(&low.flat, &high.flat, share),
        between(&low.managed, &high.managed, share),
    )
}

fn between(low: &Costs, high: &Costs, share: f64) -> Costs {
    // A count of nothing has no power: it is taken as nearly nothing.
    let power = |low: f64, high: f64| {
        let (low, high) = (low.max(0.001), high.max(0.001));
        low * (high / low).powf(share)
    };
    let cost = |low: Cost, high: Cost| Cost {
        cpu_us: power(low.cpu_us, high.cpu_us),
        reads: power(low.reads, high.reads),
    };
    Costs {
        lookup: cost(low.lookup, high.lookup),
        add: cost(low.add, high.add),
        remove: cost(low.remove, high.remove),
        list: cost(low.list, high.list),
    }
}
