//! What a reader waits for at a caching server, and what it answers by itself: tables 1 to 3 of "NewsCache" (1999), with links of a pace of their own.
//!
//! An origin with a long list of groups, and a cache in front of it that has nothing: each operation at the origin, at the cache for the first
//! time, and again; and beside it, where they are installed, servers that fetch all of it before.  Invariant: the same octets at every origin, and every answer is looked at.

mod fixture;
mod floor;
mod leaves;
mod link;
mod operations;
mod page;
mod readers;
mod run;

pub use self::floor::{Cost, Floor, Placing};
pub use self::leaves::{LeafHit, LeafReport, LeavesArgs};
pub use self::link::{Link, Pace};
pub use self::operations::Operation;
pub use self::readers::DatabaseReport;
pub use self::run::{Asked, CacheArgs, CacheReport, Facts, Figure, LINKS, run};
