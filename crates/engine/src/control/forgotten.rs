//! What administrators have forgotten of what was heeded: a number or a Date that was wrong keeps back all that comes behind it.
//!
//! Of a list that is about other hierarchies too, what it says of those stays.

use std::sync::Arc;

use newsreel_wire::GroupName;
use serde::Serialize;

use super::heeded::List;
use crate::admin::RECORD_OCTETS;
use crate::engine::Engine;
use crate::error::Error;
use crate::record::{HeededRecord, Said, encode_forgotten, kind};
use crate::requests::Request;
use crate::sequencer::Sequencer;

/// What was heeded of a hierarchy, and is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Forgotten {
    /// The groups of which a newgroup or rmgroup was heeded, by their names.
    pub groups: Vec<String>,
    /// The lists that name the hierarchy, or one in it.
    pub lists: Vec<ForgottenList>,
}

/// A checkgroups that was heeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForgottenList {
    /// The address in From.
    pub sender: String,
    /// The fingerprint of the key that signed it.
    pub key: Option<String>,
    /// The hierarchies of which it says something, as far as they are in the one that is asked about.
    pub hierarchies: Vec<String>,
    /// Others of which it says something, and which stay remembered.
    pub stays: Vec<String>,
    /// Its serial number.
    pub serial: Option<u64>,
    /// Its Date, seconds since 1970.
    pub date: u64,
}

impl Forgotten {
    pub(super) fn add(&mut self, record: &HeededRecord, hierarchy: &str) {
        match &record.said {
            Said::OfGroup(name) => self.groups.push(name.clone()),
            Said::List(list) => self.lists.push(told(list, record, hierarchy)),
        }
    }
}

fn told(list: &List, record: &HeededRecord, hierarchy: &str) -> ForgottenList {
    let rest = list.scope.without(hierarchy).unwrap_or_default();
    let stays: Vec<String> = rest.meant().map(str::to_owned).collect();
    let goes = list
        .scope
        .meant()
        .filter(|name| !stays.iter().any(|it| it == name));
    let hierarchies = goes.map(str::to_owned).collect();
    ForgottenList {
        sender: list.sender.clone(),
        key: list
            .signer
            .as_ref()
            .map(|signer| signer.fingerprint().to_owned()),
        hierarchies,
        stays,
        serial: list.serial,
        date: record.date.0,
    }
}

impl Engine {
    /// Forgets what was heeded of this hierarchy and those in it, so that what is older is heeded again; durable when it returns.
    ///
    /// # Errors
    /// When it is no name of a hierarchy, or the log takes nothing.
    pub fn control_forget(&self, hierarchy: &str, dry_run: bool) -> Result<Forgotten, Error> {
        if let Err(error) = GroupName::parse(hierarchy.as_bytes()) {
            return Err(Error::Request(format!(
                "{hierarchy:?} is no name of a hierarchy: {error}"
            )));
        }
        let forgotten = self.shared.heeded.of_hierarchy(hierarchy);
        if !dry_run && forgotten != Forgotten::default() {
            let hierarchy: Arc<str> = hierarchy.into();
            self.ask_until_it_fits(|| Request::ForgetHeeded(Arc::clone(&hierarchy)))?;
        }
        Ok(forgotten)
    }
}

impl Sequencer {
    /// Puts into the log that what was heeded of a hierarchy is forgotten.
    ///
    /// # Errors
    /// When it has no room in this frame.
    pub(crate) fn forget_heeded(&mut self, hierarchy: &str) -> Result<(), Error> {
        if !self.fits(hierarchy.len() + RECORD_OCTETS) {
            return Err(Error::FrameFull);
        }
        self.keep_heeded();
        encode_forgotten(hierarchy, self.record(kind::FORGOTTEN));
        self.shared.heeded.forget(hierarchy);
        Ok(())
    }
}
