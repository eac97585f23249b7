//! The conversion of a directory that is mounted.
//!
//! The directory is closed meanwhile: who wants something in it by name waits.  What is open stays open, and nothing that the kernel knows of names
//! becomes wrong: the view of a directory is the same before and after.  A listing that is being read is the exception, because its places follow the
//! algorithm: then it is not begun.  An order takes long: it has a thread of its own, and one conversion is carried out at a time.

use std::ffi::OsStr;
use std::mem;
use std::ops::ControlFlow;

use newsreel_host::caller::obey_quotas;
use newsreel_host::node::{Errno, Outcome, Stat, real_path};
use newsreel_host::{Caller, Folder};
use newsreel_layout::convert::{
    Options, Refusal, Report, Target, convert, convert_locked, joined, plan,
};
use newsreel_layout::{Error, Mark};
use serde_json::{Value, json};

use super::{ROOT, View};
use crate::counters::Op;
use crate::folders::errno;
use crate::orders::{Order, plan_as_json, progress_as_json, report_as_json};

/// Why an order is refused while one is carried out.
const ANOTHER: &str = "another directory is being converted";

/// An order to a directory, by the name of its attribute.
#[derive(Clone, Copy)]
struct Ordered<'a> {
    node: u64,
    name: &'a OsStr,
    order: Order,
    /// Who gave it.
    uid: u32,
}

impl View {
    /// Converts a directory as it is ordered by its owner or root.  What is refused, and why, and what was done is told by the
    /// attribute that gave the order.
    pub fn convert(
        &self,
        node: u64,
        (name, order): (&OsStr, Order),
        caller: Caller,
    ) -> Outcome<()> {
        self.counters.count(Op::Convert);
        obey_quotas()?;
        let pin = self.pin(node)?;
        let stat = Stat::of(&*pin)?;
        if !stat.is_folder() {
            return Err(Errno::NOTDIR);
        }
        if caller.uid != 0 && caller.uid != stat.uid {
            return Err(Errno::PERM);
        }
        let path = real_path(&*pin).unwrap_or_else(|_| format!("inode {node}").into());
        let folder = Folder::of_descriptor(pin.open_folder()?, path);
        let ordered = Ordered {
            node,
            name,
            order,
            uid: caller.uid,
        };
        if order.is_plan {
            return self.planned(ordered, &folder);
        }
        let Some(_alone) = self.ordering.try_lock() else {
            return self.refused(ordered, "busy", ANOTHER);
        };
        if self.settings.is_shared {
            let why = "others may change it: it is mounted with --shared";
            return self.refused(ordered, "refused", why);
        }
        let _closed = self.gate.close(node);
        if self.streams.any(|stream| stream.is_being_read(node)) {
            return self.refused(ordered, "busy", "somebody is listing it");
        }
        self.converted(ordered, &folder)
    }

    /// Says what would be done; that takes nobody's turn.
    fn planned(&self, ordered: Ordered<'_>, folder: &Folder) -> Outcome<()> {
        let _inside = self.gate.enter(ordered.node);
        let turn = self.gate.turn();
        let plan = plan(folder, ordered.order.target)
            .map_err(|error| self.failed(ordered, &error, why(&error)))?;
        let is_alone = turn.closed.is_none() && self.gate.turn() == turn;
        // In the middle of the conversion of what it lies in it looks like that.
        if plan.refusals.contains(&Refusal::Bucket) && !is_alone {
            return self.refused(ordered, "busy", ANOTHER);
        }
        let told = json!({"state": "planned", "plan": plan_as_json(&plan)});
        self.tell(ordered, told);
        Ok(())
    }

    /// Waits for the conversion that is carried out, lets none begin any more, and writes what is known in memory only.
    pub fn end(&self) {
        mem::forget(self.ordering.lock());
        self.settle();
    }

    /// Converts a directory that is closed.
    fn converted(&self, ordered: Ordered<'_>, folder: &Folder) -> Outcome<()> {
        let node = ordered.node;
        // If that fails, its time is only older than it should be.
        let _ = self.write_time(node);
        let before = Mark::read(folder);
        let ended = match self.carried_out(ordered, folder, ordered.order.target) {
            Ok(report) => {
                // All of it is durable.
                self.changes.drop(node);
                let told = json!({"state": "converted", "report": report_as_json(&report)});
                self.tell(ordered, told);
                Ok(())
            }
            Err(error) => {
                let how = self.brought_back(ordered, folder, before);
                Err(self.failed(ordered, &error, format!("{}{how}", why(&error))))
            }
        };
        self.folders.drop(node);
        ended
    }

    fn carried_out(
        &self,
        ordered: Ordered<'_>,
        folder: &Folder,
        target: Target,
    ) -> Result<Report, Error> {
        let mut on_progress = |progress| {
            self.tell(ordered, progress_as_json(progress));
            ControlFlow::Continue(())
        };
        let options = Options {
            verify: ordered.order.verify,
        };
        // The top is locked already, for as long as it is mounted.
        match ordered.node {
            ROOT => convert_locked(folder, target, options, &mut on_progress),
            _ => convert(folder, target, options, &mut on_progress),
        }
    }

    /// Brings a directory back to what it was before a conversion that failed in the middle; says what it is now.
    fn brought_back(
        &self,
        ordered: Ordered<'_>,
        folder: &Folder,
        before: Result<Mark, Error>,
    ) -> &'static str {
        const STUCK: &str =
            "; it is not served until the same conversion, or the one back, has gone through";
        if !matches!(Mark::read(folder), Ok(Mark::UnderWay(_))) {
            return "";
        }
        let back = match before {
            Ok(Mark::None) => Target::Off,
            Ok(Mark::Managed(algorithm)) => Target::To(algorithm),
            _ => return STUCK,
        };
        match self.carried_out(ordered, folder, back) {
            Ok(_) => "; the directory is as it was before",
            Err(_) => STUCK,
        }
    }

    fn tell(&self, ordered: Ordered<'_>, what: Value) {
        let Ordered {
            node, name, uid, ..
        } = ordered;
        self.told.tell(uid, (node, name), what);
    }

    fn refused(&self, ordered: Ordered<'_>, state: &str, error: &str) -> Outcome<()> {
        self.tell(ordered, json!({"state": state, "error": error}));
        Err(Errno::BUSY)
    }

    fn failed(&self, ordered: Ordered<'_>, error: &Error, said: String) -> Errno {
        self.tell(ordered, json!({"state": "failed", "error": said}));
        errno(error)
    }
}

/// Why a directory is not converted; which one knows whoever asked.
fn why(error: &Error) -> String {
    match error {
        Error::Refused { reasons, .. } => joined(reasons),
        other => other.to_string(),
    }
}
