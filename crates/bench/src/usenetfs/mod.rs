//! The figures of the Usenetfs paper (CUCS-022-98), measured anew: what directories of growing size cost, flat and managed by
//! every algorithm, natively and through a mount, on file systems that find names by searching, by a hash and in a tree.
//!
//! Each file system is made in an image file of its own and mounted; root is needed.  Names are looked for with nothing
//! known of them and the blocks of the directories in memory: the search itself, which is what the paper measures; and with
//! nothing in memory, if that is asked for.
//! And a soak: INN on a mount, fed, read and expired at the same time.
//! Must not know FUSE: what is mounted is mounted by the program, as anybody would.

mod directory;
mod figures;
mod goals;
mod page;
mod plot;
mod soak;
mod stand;
pub(crate) mod volume;

pub use self::figures::{FiguresArgs, Layout, Row, run};
pub use self::goals::{GOAL_TITLES, Goal, goals};
pub use self::page::{human, markdown};
pub use self::plot::{Figure, svg};
pub use self::soak::{SoakArgs, SoakReport, run as soak};
pub use self::volume::FileSystem;
