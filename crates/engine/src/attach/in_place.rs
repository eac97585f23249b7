//! Articles that are attached and stay where they lie: in the `file` of a set of method `attached`.
//!
//! All else is as with those that are copied: groups, numbers, what is known, what was withdrawn there.  The file is opened anew for
//! this, so that what came to it since, as another snapshot, is found.

use std::path::{Path, PathBuf};

use newsreel_store::{Alone, Chosen};
use newsreel_wire::SetId;

use crate::engine::Engine;
use crate::error::Error;

/// What no rule chose.
pub(super) const fn chosen(set: SetId) -> Chosen {
    Chosen {
        set,
        format: None,
        rule: 0,
    }
}

impl Engine {
    /// Our own buffer or set in whose file or directory this one lies, but for the set that has it lent.
    fn own(&self, path: &Path, lent_to: Option<SetId>) -> Option<String> {
        let (store, disk) = (&self.shared.store, &self.shared.disk);
        let path = disk.canonical(path).ok()?;
        let mut others = store.facts().into_iter();
        let own = others.find(|own| {
            let place = disk.canonical(Path::new(&own.path));
            Some(SetId(own.set)) != lent_to && place.is_ok_and(|place| path.starts_with(place))
        });
        own.map(|own| own.name)
    }

    /// The file at this path, and the set whose `file` it is.
    pub(super) fn lent(&self, path: &Path) -> Result<(Alone, Option<SetId>), Error> {
        let shared = &self.shared;
        let is_it = |file: &PathBuf| {
            file == path || shared.disk.canonical(file).is_ok_and(|file| file == path)
        };
        let mut sets = (0..=u8::MAX).map(SetId).zip(&shared.config.store.sets);
        let set =
            sets.find_map(|(id, set)| set.file.as_ref().filter(|file| is_it(file)).map(|_| id));
        if let Some(own) = self.own(path, set) {
            return Err(Error::Request(format!(
                "{} is of {own}, which this server has in use itself: its articles are here already. To take in what only a copy of it has, \
                 name the copy and leave --in-place out",
                path.display()
            )));
        }
        let buffers = shared.store.buffers();
        let lender = buffers.iter().find(|buffer| Some(buffer.set()) == set);
        let Some(file) = lender.and_then(|lender| lender.lent()) else {
            return Err(Error::Request(format!(
                "{} is the file of no set, so its articles cannot be served from there: add a [[set]] with method = \"attached\" \
                 and this `file` to the configuration and start the server anew, or leave --in-place out to copy them",
                path.display()
            )));
        };
        Ok((Alone::of(&file?, &shared.disk), set))
    }
}
