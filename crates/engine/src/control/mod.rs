//! Control messages: what an article says to the server besides what it says to readers (RFC 5537 section 5).
//!
//! Whoever reads one here decides on the session's thread what comes of it; the sequencer puts that into the log in one
//! frame with the message itself, so that neither is there without the other.  A message that is malformed, forged or
//! not allowed is an article like others and changes nothing.

pub(crate) mod cancel;
pub(crate) mod config;
pub(crate) mod due;
pub(crate) mod forgotten;
pub(crate) mod groups;
pub(crate) mod heed;
pub(crate) mod heeded;
pub(crate) mod judged;
pub(crate) mod keyring;
pub(crate) mod lines;
pub(crate) mod meaning;
pub(crate) mod newer;
pub(crate) mod nocem;
pub(crate) mod pending;
pub(crate) mod rules;
pub(crate) mod shares;
pub(crate) mod shown;
pub(crate) mod signed;
pub(crate) mod told;
pub(crate) mod touched;
pub(crate) mod undropped;
pub(crate) mod waiting;
pub(crate) mod watched;

use newsreel_wire::GroupId;
use newsreel_wire::article::{Control, Headers, RelayFacts};
use smallvec::SmallVec;

use crate::config::Mode;
use crate::shared::{Policy, Shared};
use cancel::Cancel;
use heed::{Heeding, Unproved};
use nocem::Notice;

/// What an article asks of the server.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Another article is to go.
    Cancel(Cancel),
    /// Groups are to be changed, and the rules let it.
    Groups(Heeding),
    /// Groups are to be changed if somebody signed it whom the rules name, a mail is to tell of it, or it may be long: settled, where
    /// waiting is allowed, before the sequencer sees it.
    Signed(Box<Unproved>),
    /// Articles are to go, if somebody signed it whom the rules name; only such ones come before the sequencer.
    Notice(Box<Notice>),
}

/// What an article asks for, as far as anything could come of it.
pub(crate) fn asked(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
) -> Option<Box<Asked>> {
    let asked = match cancel::asked(shared, policy, headers, relay) {
        Some(cancel) => Asked::Cancel(cancel),
        None => match heed::at_once(shared, policy, headers, relay) {
            Some(asked) => asked,
            None => Asked::Notice(Box::new(nocem::asked(shared, policy, headers, relay)?)),
        },
    };
    Some(Box::new(asked))
}

/// Whether an article is a message about groups.
pub(crate) fn is_about_groups(policy: &Policy, wire: &[u8]) -> bool {
    let headers = Headers::scan_within(wire, policy.articles.header_limits());
    headers.is_ok_and(|headers| groups::verb_of(&headers).is_some())
}

/// Whether it is about groups, which need not be here then.
pub(crate) fn is_of_groups(control: &Control<'_>) -> bool {
    groups::Verb::parse(control.verb()).is_some()
}

/// The group that control messages of this verb are filed in: its own, or the one for all; none where neither is there.
/// Never a group that its Newsgroups names: that is for people.
pub(crate) fn filed_in(shared: &Shared, control: &Control<'_>) -> SmallVec<[GroupId; 4]> {
    if shared.config.sequencer.mode == Mode::Transit {
        return SmallVec::new();
    }
    let groups = shared.views.groups();
    let own = format!("control.{}", control.verb().to_ascii_lowercase());
    let group = groups.by_name(&own).or_else(|| groups.by_name("control"));
    group.map(|group| group.id()).into_iter().collect()
}
