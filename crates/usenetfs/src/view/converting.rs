//! The conversion of a directory that is mounted.
//!
//! The directory is closed meanwhile: who wants something in it by name waits.  What is open stays open, and nothing that the kernel knows becomes
//! wrong: the view of a directory is the same before and after.  A listing that is being read is the exception, because its places follow the
//! algorithm: then it is not begun.

use std::ops::ControlFlow;

use newsreel_host::node::{Errno, Outcome, Stat, real_path};
use newsreel_host::{Caller, Folder};
use newsreel_layout::convert::{Options, convert, convert_locked, plan};
use serde_json::json;

use super::{ROOT, View};
use crate::counters::Op;
use crate::folders::errno;
use crate::orders::{Order, plan_as_json, progress_as_json, report_as_json};

impl View {
    /// Converts a directory as it is ordered by its owner or root.  What is refused, and why, and what was done is told by the
    /// attribute that gave the order.
    pub fn convert(&self, node: u64, order: Order, caller: Caller) -> Outcome<()> {
        self.counters.count(Op::Convert);
        let pin = self.pin(node)?;
        let stat = Stat::of(&*pin)?;
        if !stat.is_folder() {
            return Err(Errno::NOTDIR);
        }
        if caller.uid != 0 && caller.uid != stat.uid {
            return Err(Errno::PERM);
        }
        let mut folder = Folder::of_descriptor(pin.open_folder()?, format!("inode {node}").into());
        if let Ok(path) = real_path(&folder) {
            folder = Folder::of_descriptor(pin.open_folder()?, path);
        }
        let refuse = |state: &str, error: &str| {
            self.told
                .tell(node, json!({"state": state, "error": error}));
            Err(Errno::BUSY)
        };
        if order.is_plan {
            let plan = plan(&folder, order.target).map_err(|error| self.failed(node, &error))?;
            let told = json!({"state": "planned", "plan": plan_as_json(&plan)});
            self.told.tell(node, told);
            return Ok(());
        }
        if self.settings.is_shared {
            return refuse(
                "refused",
                "others may change it: it is mounted with --shared",
            );
        }
        let _closed = self.gate.close(node);
        if self.streams.any(|stream| stream.is_being_read(node)) {
            return refuse("listed", "somebody is listing it");
        }
        self.converted(node, &folder, order)
    }

    /// Converts a directory that is closed.
    fn converted(&self, node: u64, folder: &Folder, order: Order) -> Outcome<()> {
        // If that fails, its time is only older than it should be.
        let _ = self.write_time(node);
        let mut on_progress = |progress| {
            self.told.tell(node, progress_as_json(progress));
            ControlFlow::Continue(())
        };
        let options = Options {
            verify: order.verify,
        };
        // The top is locked already, for as long as it is mounted.
        let converted = match node {
            ROOT => convert_locked(folder, order.target, options, &mut on_progress),
            _ => convert(folder, order.target, options, &mut on_progress),
        };
        self.folders.drop(node);
        let report = converted.map_err(|error| self.failed(node, &error))?;
        // All of it is durable.
        self.changes.drop(node);
        let told = json!({"state": "converted", "report": report_as_json(&report)});
        self.told.tell(node, told);
        Ok(())
    }

    fn failed(&self, node: u64, error: &newsreel_layout::Error) -> Errno {
        let told = json!({"state": "failed", "error": error.to_string()});
        self.told.tell(node, told);
        errno(error)
    }
}
