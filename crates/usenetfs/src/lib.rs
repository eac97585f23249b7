//! Usenetfs: a file system, mounted by FUSE, that shows large article directories flat and keeps them as many small
//! ones.
//!
//! Three parts.  `view` is the file system itself: nodes, names, files, listings over a real directory; it knows
//! nothing of FUSE and is tested without a mount.  `fuse` translates the kernel's requests to it.  `mount` puts both
//! under a mount point.  Where names lie is the business of `newsreel-layout`; every system call is made by
//! `newsreel-host`.  Nothing on disk depends on what is in memory here: a server that dies leaves nothing to repair.

mod changes;
mod counters;
mod error;
mod folders;
mod fuse;
mod gate;
mod graves;
mod mount;
mod naming;
mod nodes;
mod notices;
mod open;
mod orders;
mod reach;
mod rows;
mod view;

pub use counters::{Counters, Op};
pub use error::{Error, Result};
pub use mount::{Access, FILE_SYSTEM, Mounted, Options, Unmounter, lower_of};
pub use notices::BitKept;
pub use orders::{CONVERT_ATTRIBUTE, NoOrder, Order, plan_as_json, report_as_json};
pub use view::{Changes, Entry, Item, ROOT, STATUS_ATTRIBUTE, Settings, View};
