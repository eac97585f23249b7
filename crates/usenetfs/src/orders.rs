//! Conversions that are ordered through the mount: what the order says, and what is told of it, as JSON.
//!
//! Both are the value of an extended attribute of the directory: it is set to give the order, which ends with the conversion, and read to learn how far
//! that is and what came of it.  Its name ends with whatever tells the order from others.  The order is words: `[plan] on ALGORITHM | off | to
//! ALGORITHM [verify]`.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

use newsreel_layout::convert::{Plan, Progress, Report, Target};
use newsreel_layout::{Algorithm, Fingerprint};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What the name of an extended attribute of a directory of the mount begins with by which its conversion is ordered.
pub const CONVERT_ATTRIBUTE: &str = "user.usenetfs.convert.";

/// Of so many orders of each user it is told what came of them.
const TOLD_MAX: usize = 64;

/// What is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// What the directory is to become.
    pub target: Target,
    /// Whether it is only said what would be done.
    pub is_plan: bool,
    /// Whether the view is compared before and after.
    pub verify: bool,
}

/// No order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoOrder;

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plan {
            f.write_str("plan ")?;
        }
        match self.target {
            Target::On(algorithm) => write!(f, "on {algorithm}"),
            Target::Off => f.write_str("off"),
            Target::To(algorithm) => write!(f, "to {algorithm}"),
        }?;
        f.write_str(if self.verify { " verify" } else { "" })
    }
}

impl FromStr for Order {
    type Err = NoOrder;

    fn from_str(text: &str) -> Result<Self, NoOrder> {
        let planned = text.strip_prefix("plan ");
        let words = planned.unwrap_or(text);
        let verified = words.strip_suffix(" verify");
        let words: Vec<_> = verified.unwrap_or(words).split(' ').collect();
        let algorithm = |word: &str| word.parse::<Algorithm>().map_err(|_| NoOrder);
        let target = match *words {
            ["on", by] => Target::On(algorithm(by)?),
            ["off"] => Target::Off,
            ["to", by] => Target::To(algorithm(by)?),
            _ => return Err(NoOrder),
        };
        Ok(Self {
            target,
            is_plan: planned.is_some(),
            verify: verified.is_some(),
        })
    }
}

/// What came of orders.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<HashMap<u32, OfUser>>);

/// What came of the orders of one user, the oldest first.
type OfUser = VecDeque<(u64, OsString, Value)>;

impl Told {
    /// What is told of an order to a directory from now on.
    pub(crate) fn tell(&self, uid: u32, (node, order): (u64, &OsStr), what: Value) {
        let mut users = self.0.lock();
        // Whoever asks is told what came last, whoever ordered that.
        users.retain(|_, all| {
            all.retain(|(of, name, _)| *of != node || name != order);
            !all.is_empty()
        });
        let all = users.entry(uid).or_default();
        all.push_back((node, order.to_owned(), what));
        if all.len() > TOLD_MAX {
            all.pop_front();
        }
    }

    /// What is told of an order to a directory.
    pub(crate) fn of(&self, node: u64, order: &OsStr) -> Option<String> {
        let users = self.0.lock();
        let mut all = users.values().flatten();
        let (_, _, what) = all.find(|(of, name, _)| *of == node && name == order)?;
        Some(what.to_string())
    }

    /// Nothing is told of a directory that is gone.
    pub(crate) fn drop(&self, node: u64) {
        self.0.lock().retain(|_, all| {
            all.retain(|(of, _, _)| *of != node);
            !all.is_empty()
        });
    }
}

/// What a conversion would do, as JSON.
#[must_use]
pub fn plan_as_json(plan: &Plan) -> Value {
    let refusals: Vec<_> = plan.refusals.iter().map(ToString::to_string).collect();
    json!({
        "from": plan.from.to_string(),
        "to": plan.to.to_string(),
        "goes_on": plan.goes_on.map(|step| step.to_string()),
        "entries": plan.entries,
        "articles": plan.articles,
        "folders": plan.folders,
        "relative_links": plan.relative_links,
        "new_folders": plan.new_folders,
        "refusals": refusals,
    })
}

/// What a conversion did, as JSON.
#[must_use]
pub fn report_as_json(report: &Report) -> Value {
    let view =
        |view: Fingerprint| json!({"entries": view.entries, "sum": format!("{:x}", view.sum)});
    json!({
        "plan": plan_as_json(&report.plan),
        "renames": report.renames,
        "before": report.verified.map(|(before, _)| view(before)),
        "after": report.verified.map(|(_, after)| view(after)),
    })
}

/// How far a conversion is, as JSON.
pub(crate) fn progress_as_json(progress: Progress) -> Value {
    json!({"state": "running", "step": progress.step.to_string(), "done": progress.done, "total": progress.total})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_words() {
        for text in [
            "on range1024",
            "plan off",
            "to 34/56 verify",
            "plan on yyy verify",
        ] {
            let order: Order = text.parse().unwrap();
            assert_eq!(order.to_string(), text);
        }
        for text in [
            "", "on", "off yyy", "on  yyy", "plan", "on yyy ", "to none", "verify",
        ] {
            assert_eq!(text.parse::<Order>(), Err(NoOrder), "{text:?}");
        }
    }

    #[test]
    fn what_came_of_an_order_is_told_and_not_of_all() {
        let told = Told::default();
        told.tell(0, (5, "other".as_ref()), json!("of another user"));
        for node in 0..200 {
            told.tell(7, (node, "a".as_ref()), json!(1));
            told.tell(7, (node, "a".as_ref()), json!(2));
            told.tell(7, (node, "b".as_ref()), json!(3));
        }
        let of = |node, order: &str| told.of(node, order.as_ref());
        assert_eq!(of(199, "a").as_deref(), Some("2"));
        assert_eq!(of(199, "b").as_deref(), Some("3"));
        assert_eq!(of(100, "a"), None);
        assert!(told.0.lock()[&7].len() <= TOLD_MAX);
        // Others push out nothing.
        assert_eq!(of(5, "other").as_deref(), Some("\"of another user\""));
        told.tell(7, (5, "other".as_ref()), json!("of the last"));
        assert_eq!(of(5, "other").as_deref(), Some("\"of the last\""));
        told.tell(0, (5, "other".as_ref()), json!("of root"));
        assert_eq!(of(5, "other").as_deref(), Some("\"of root\""));
        told.drop(199);
        assert_eq!(of(199, "a"), None);
        told.drop(5);
        assert_eq!(told.0.lock().len(), 1);
    }
}
