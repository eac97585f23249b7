//! The benchmark of "The Brave Little Toaster Meets Usenet" (LISA 1996), on any storage method and any directory.
//!
//! A captured feed and clones of it come in batches, as many in each pass; a pass has three phases. **unbatch**: the batches go
//! through `rnews` into a server. **batch**, every third pass: what came in the pass before goes out to a backlogged feed.
//! **expire**: what came six passes ago goes. A pass is half a day of the server's clock, so articles stay three days.
//! Invariant: every contender is fed the same octets, which follow from the seed; what a phase leaves in memory is written, and where
//! that is possible forgotten, before the next begins.

mod about;
mod args;
mod feed;
mod goals;
mod inn;
mod limit;
mod newsreel;
mod page;
mod place;
mod pool;
mod run;
mod subject;
mod tables;
mod variant;

pub use self::about::About;
pub use self::args::ToasterArgs;
pub use self::goals::goals;
pub use self::page::human;
pub use self::place::Place;
pub use self::run::{Expired, Pass, Phase, Report, Run, Sent, Skip, Told, run};
pub use self::subject::Taken;
pub use self::tables::{markdown, pictures};
pub use self::variant::Variant;
pub use crate::usenetfs::Goal;
