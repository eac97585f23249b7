//! Servers side by side: the same steps, in turn, in rounds. Contents only.
//!
//! Absolute figures on a shared machine mean little, so what counts are the ratios within a round:
//! the servers take turns at every step, and who begins changes from round to round.

mod rounds;
mod steps;
mod table;

pub use self::rounds::{CompareArgs, make_directory, run};
pub use self::steps::{STEPS, Step, feeding_steps};
pub use self::table::{Comparison, Spread, StepComparison};
