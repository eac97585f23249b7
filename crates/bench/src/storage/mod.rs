//! Figures 8 and 9 of the paper on cyclic buffers, measured anew: what each storage method makes of the same batches.
//!
//! Each contender gets a file system of its own, made in an image file and mounted, so that what its device did is known;
//! root is needed. The batches come in one streaming session, as in the paper. What else is asked of storage is measured in scenes of its own,
//! and all of it put into one table.
//! Invariant: all contenders get the same articles in the same order; what could not be counted is absent, never zero.

mod bare;
mod contenders;
mod figures;
mod goals;
pub(crate) mod page;
mod plot;
mod scenes;

pub(crate) use self::bare::groups_of;
pub use self::contenders::{METHODS, Method};
pub use self::figures::{Batch, DURABILITY, Row, Short, Statistics, StorageArgs, Whole, run};
pub use self::goals::{Line, goals};
pub(crate) use self::page::{UNTOLD, heading, line};
pub use self::page::{human, markdown};
pub use self::plot::{Figure, svg};
pub use self::scenes::{Cancels, Opening, Reads, Scene, SceneArgs, Scenes};
