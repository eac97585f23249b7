//! What holds up everything that comes in: a fault of the log, or no room.
//!
//! While either is set, offers are put off and articles are given back in a way that makes peers keep them.

use newsreel_service::Defer;

/// Why nothing is taken at present.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    /// The log takes nothing.
    pub(crate) fault: Option<String>,
    /// There is no room for more.
    pub(crate) full: Option<String>,
}

impl Holds {
    /// What peers are told, if anything holds them up.
    pub(crate) fn defer(&self) -> Option<Defer> {
        match (&self.fault, &self.full) {
            (Some(_), _) => Some(Defer::Paused),
            (None, Some(_)) => Some(Defer::Full),
            (None, None) => None,
        }
    }

    /// What administrators are told.
    pub(crate) fn why(&self) -> Option<String> {
        self.fault.clone().or_else(|| self.full.clone())
    }
}
