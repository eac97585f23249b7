//! What is newer than a message about groups that an administrator looks at, or approves: who does what is older is told so.

use std::collections::HashMap;

use super::groups::Message;
use super::judged::ASKS_COUNTED_MAX;
use super::meaning::GroupAsked;
use super::rules::{Action, becomes};
use super::shown::{Found, Looked, Looker};
use crate::engine::Engine;
use crate::error::Error;
use crate::record::HeededRecord;
use crate::shared::{Policy, Shared};

/// So many newer messages are told with one that is shown.
pub const NEWER_TOLD_MAX: usize = 10;

/// What is newer than one message, and wants something else of the groups that this one is about.
#[derive(Debug)]
struct Newer<'a> {
    shared: &'a Shared,
    policy: &'a Policy,
    record: &'a HeededRecord,
    asks: HashMap<&'a str, &'a GroupAsked>,
}

impl<'a> Newer<'a> {
    fn new(shared: &'a Shared, policy: &'a Policy, found: &'a Found) -> Option<Self> {
        let (_, judged) = found.read.as_ref()?;
        let asks = judged.asks.iter().map(|it| (it.asked.name(), &it.asked));
        let asks: HashMap<_, _> = asks.collect();
        (!asks.is_empty()).then_some(Self {
            shared,
            policy,
            record: &judged.record,
            asks,
        })
    }

    /// Whether another message is one of those.
    fn is(&self, other: &Found) -> bool {
        let Some((message, judged)) = &other.read else {
            return false;
        };
        let rules = self.policy.rules.of(message.verb(), &message.sender);
        let wants = |name: &str| {
            let asked = self.asks.get(name);
            asked.is_some_and(|asked| {
                self.record.is_older_than(&judged.record, name)
                    && becomes(&rules.action(name), other.signer.as_ref()) != Action::Drop
                    && self.is_otherwise(message, asked)
                    && !self.shared.heeded.is_settled(&judged.record, name, true)
            })
        };
        match message.is_list() {
            false => message.meaning.named().any(wants),
            // Mostly one asks for little, and where it does not it is enough to look at some of it.
            true => self.asks.keys().take(ASKS_COUNTED_MAX).any(|it| wants(it)),
        }
    }

    /// Whether a message wants a group otherwise than this makes it.
    fn is_otherwise(&self, message: &Message, asked: &GroupAsked) -> bool {
        let name = asked.name();
        let group = self.shared.views.groups().by_name(name);
        let there = group.as_ref().map(|it| (it.status(), it.description()));
        let there = match asked {
            GroupAsked::Remove { .. } => None,
            GroupAsked::Make {
                status,
                description,
                ..
            } => Some((&**status, &**description)),
            GroupAsked::Set {
                status,
                description,
                ..
            } => there.map(|(old_status, old_text)| {
                let status = status.as_deref().unwrap_or(old_status);
                (status, description.as_deref().unwrap_or(old_text))
            }),
        };
        message.meaning.asks_of(name, there).is_some()
    }
}

impl Engine {
    /// The message-ids of the first that are newer than this one and want it otherwise.
    pub(super) fn newer(&self, found: &Found, looker: &Looker) -> Result<Vec<String>, Error> {
        let Some(newer) = Newer::new(&self.shared, &looker.policy, found) else {
            return Ok(Vec::new());
        };
        let mut told = Vec::new();
        for one in self.shared.waiting.all() {
            let other = self.control_that_waits(&one.id, looker, Looked::Alone)?;
            if let Some(other) = other
                && newer.is(&other)
            {
                told.push((other.at, other.report.message_id));
            }
        }
        told.sort_unstable();
        told.truncate(NEWER_TOLD_MAX);
        Ok(told.into_iter().map(|(_, id)| id).collect())
    }
}
