//! Conversion of a full directory: managed, ordinary, or managed by another algorithm.
//!
//! Only renames, and none that replaces anything.  Before the first, the directory's mark says what is being done; it
//! says at every moment in which places an entry may lie, so a run that is killed anywhere is completed, or undone, by
//! another.  What is not moved yet and what is moved are kept apart by a staging directory, so no name of the view is
//! ever taken for a bucket.  Steps and marks: `docs/formats/managed-directory.md`.

mod fingerprint;
mod plan;
mod steps;

use std::ops::ControlFlow;

use newsreel_host::Folder;

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::mark::{Fingerprint, Layout, Mark, Step, UnderWay, is_unsupported};

pub use plan::{Plan, Refusal, is_bucket, joined};

/// The staging directory, in the directory that is being converted.
pub const STAGING: &str = ".usenetfs-convert";

/// What a directory is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Managed; one that is managed by another algorithm is refused.
    On(Algorithm),
    /// Ordinary.
    Off,
    /// Managed by this algorithm, whatever it was.
    To(Algorithm),
}

/// How to convert.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Compare the view before and after: names, inodes, lengths.
    pub verify: bool,
}

/// How far a conversion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// How many renames of this step are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// What a conversion did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What was to be done.
    pub plan: Plan,
    /// How many renames this run did.
    pub renames: u64,
    /// The view before and after, if that was wanted when the conversion began.
    pub verified: Option<(Fingerprint, Fingerprint)>,
}

impl Report {
    /// Whether the view is known to have changed meanwhile.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.verified.is_some_and(|(before, after)| before != after)
    }
}

/// Is told how far it is; answers whether to go on.
pub type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Says what [`convert`] would do, and changes nothing.
pub fn plan(folder: &Folder, target: Target) -> Result<Plan> {
    let (from, to) = course(folder, target)?;
    plan::make(folder, from, to)
}

/// Converts a directory, goes on with a conversion to the same target, or turns one round.
///
/// Nothing else may use the directory meanwhile; its lock is taken.
pub fn convert(
    folder: &Folder,
    target: Target,
    options: Options,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report> {
    let _lock = folder.lock()?;
    convert_locked(folder, target, options, on_progress)
}

/// The same of a directory that is locked by whoever calls.
pub fn convert_locked(
    folder: &Folder,
    target: Target,
    options: Options,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report> {
    let (from, to) = course(folder, target)?;
    let plan = plan::make(folder, from, to)?;
    if !plan.refusals.is_empty() {
        return Err(refused(folder, plan.refusals));
    }
    let mut report = Report {
        plan,
        renames: 0,
        verified: None,
    };
    let under_way = match from {
        Course::Settled(layout) if layout == to => return Ok(report),
        Course::Settled(layout) => begin(folder, layout, to, options)?,
        Course::UnderWay(under_way) => {
            // One that is turned round is said to be.
            under_way.write(folder)?;
            under_way
        }
    };
    let mut run = steps::Run::new(folder, report.plan.goes_on.is_some(), on_progress)?;
    report.verified = run.complete(under_way)?;
    report.renames = run.renames();
    Ok(report)
}

/// Where a conversion begins.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// With a directory that is one or the other.
    Settled(Layout),
    /// In the middle.
    UnderWay(UnderWay),
}

/// From where to where it goes.
fn course(folder: &Folder, target: Target) -> Result<(Course, Layout)> {
    let to = match target {
        Target::On(algorithm) | Target::To(algorithm) => Layout::Managed(algorithm),
        Target::Off => Layout::Flat,
    };
    let settled = |layout| Ok((Course::Settled(layout), to));
    match Mark::read(folder)? {
        Mark::None => settled(Layout::Flat),
        Mark::Managed(is) => match target {
            Target::On(wanted) if wanted != is => {
                Err(refused(folder, vec![Refusal::ManagedBy(is)]))
            }
            _ => settled(Layout::Managed(is)),
        },
        Mark::WithoutBit(is) => Err(refused(folder, vec![Refusal::WithoutBit(is)])),
        Mark::UnderWay(under_way) if under_way.to == to => Ok((Course::UnderWay(under_way), to)),
        Mark::UnderWay(under_way) if under_way.from == to => {
            Ok((Course::UnderWay(under_way.turned()), to))
        }
        Mark::UnderWay(UnderWay { from, to, .. }) => {
            Err(refused(folder, vec![Refusal::UnderWay { from, to }]))
        }
    }
}

fn refused(folder: &Folder, reasons: Vec<Refusal>) -> Error {
    Error::Refused {
        path: folder.path().to_path_buf(),
        reasons,
    }
}

/// Writes the first mark.
fn begin(folder: &Folder, from: Layout, to: Layout, options: Options) -> Result<UnderWay> {
    let before = options.verify.then(|| fingerprint::take(folder, from));
    let under_way = UnderWay {
        from,
        to,
        step: match from {
            Layout::Flat => Step::Scatter,
            Layout::Managed(_) => Step::Lower,
        },
        before: before.transpose()?,
    };
    match under_way.write(folder) {
        Err(Error::Host(e)) if is_unsupported(&e) => {
            Err(refused(folder, vec![Refusal::NoAttributes]))
        }
        other => other.map(|()| under_way),
    }
}
