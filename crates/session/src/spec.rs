//! What the table of commands says of one command.
//!
//! Rows are data: HELP, CAPABILITIES, argument checks and metrics are made from them, never the other way round.

use newsreel_net::access::Grant;
use newsreel_service::Features;

/// What a command needs of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: always there.
    Nothing,
    /// Articles by message-id, which feeders have too; of who only posts none is told.
    Articles,
    /// Groups, numbers and overview.
    Reader,
    /// What readers need; who may not post is told so by the command itself.
    Posting,
    /// Lists by arrival.
    Newnews,
    /// Taking articles from peers.
    Transit,
}

impl Needs {
    pub(crate) fn met(self, features: Features) -> bool {
        match self {
            Self::Nothing | Self::Articles => true,
            Self::Reader | Self::Posting => features.reader,
            Self::Newnews => features.newnews,
            Self::Transit => features.transit,
        }
    }

    /// Whether who is there may ask for it.
    pub(crate) const fn granted(self, grant: &Grant) -> bool {
        match self {
            Self::Nothing => true,
            Self::Articles => grant.is_for_readers() || grant.feed,
            Self::Reader | Self::Posting => grant.is_for_readers(),
            Self::Newnews => grant.newnews && grant.read.is_some(),
            Self::Transit => grant.feed,
        }
    }

    /// Whether this grant would be a gain for who may not.
    pub(crate) const fn gained(self, grant: &Grant) -> bool {
        match self {
            Self::Posting => grant.post.is_some(),
            Self::Nothing | Self::Articles | Self::Reader | Self::Newnews | Self::Transit => {
                self.granted(grant)
            }
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Spec {
    /// The verb, upper case.
    pub name: &'static str,
    /// Its arguments, as HELP shows them.
    pub usage: &'static str,
    /// The least and the most arguments.
    pub args: (usize, usize),
    /// Without it the command is unknown (500).
    pub needs: Needs,
    /// The line CAPABILITIES has for it, but for arguments that depend on the service.
    pub capability: Option<&'static str>,
    /// Whether it is answered through reply slots (RFC 4644); others wait for the answers before them.
    pub pipelined: bool,
    /// Every code it can answer, but for 400, 403, 480, 500, 501 and 502, which any command can.
    pub codes: &'static [u16],
}

/// The longest verb that fits in a key.
pub(crate) const VERB_OCTETS_MAX: usize = 15;

/// A verb as one number, its letters raised, behind a 1 so that its length counts too.
pub(crate) const fn key(verb: &[u8]) -> u128 {
    let mut key = 1;
    let mut at = 0;
    while at < verb.len() && at < VERB_OCTETS_MAX {
        key = key << 8 | verb[at].to_ascii_uppercase() as u128;
        at += 1;
    }
    key
}
