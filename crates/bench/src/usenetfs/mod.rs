//! The figures of the Usenetfs paper (CUCS-022-98), measured anew: what directories of growing size cost, flat and managed by
//! every algorithm, natively and through a mount, on file systems that find names by searching, by a hash and in a tree.
//!
//! Each file system is made in an image file of its own and mounted; root is needed.  Names are looked for with nothing
//! known of them and the blocks of the directories in memory: the search itself, which is what the paper measures; and with
//! nothing in memory, if that is asked for.
//! What a mount itself costs is measured by the build of a package, and what a news server leaves for others by builds beside it.  And a
//! soak: INN on a mount, fed, read and expired at the same time.
//! Must not know FUSE: what is mounted is mounted by the program, as anybody would.

mod beside;
mod convert;
pub(crate) mod directory;
mod figures;
mod goals;
mod overhead;
mod package;
mod page;
mod parallel;
mod plot;
mod soak;
mod stand;
pub(crate) mod volume;

pub use self::beside::{
    BESIDE_TITLES, BesideArgs, BesideRow, Build, Server, beside_svg, run as beside,
};
pub use self::convert::{ConvertArgs, ConvertReport, run as convert};
pub use self::figures::{FiguresArgs, Layout, Row, run};
pub use self::goals::{GOAL_TITLES, Goal, goals};
pub use self::overhead::{BuildCost, OverheadArgs, OverheadReport, run as overhead};
pub use self::package::Package;
pub use self::page::{human, markdown};
pub use self::parallel::{PARALLEL_TITLES, ParallelArgs, ParallelRow, run as parallel};
pub use self::plot::{Figure, svg};
pub use self::soak::{SoakArgs, SoakReport, run as soak};
pub use self::volume::FileSystem;
