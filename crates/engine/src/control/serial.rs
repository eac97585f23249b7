//! Serial numbers of checkgroups: an older list of a hierarchy's groups does not undo a newer one (RFC 5537 section 5.2.3).
//!
//! Nothing is kept for it: the messages that were heeded stand in the group of control messages, and are read there, so this
//! waits for the disk.  A message that the rules would not let be done keeps no other back.

use std::collections::HashMap;

use newsreel_index::Wait;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{ArticleNumber, GroupId};

use super::heed::{CONTROL_LOOKED_AT_MAX, Found};
use super::rules::Action;
use super::{groups, heed};
use crate::error::Error;
use crate::shared::{Policy, Shared};

/// What a checkgroups says of its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Serial {
    /// None: it has none.
    number: Option<u64>,
    /// The hierarchies that it is about.
    tops: Vec<String>,
}

impl Serial {
    /// That of a message with these arguments, which lists groups of these hierarchies.
    pub(crate) fn read<'a>(
        arguments: &[&str],
        listed: impl Iterator<Item = &'a str>,
    ) -> Result<Self, &'static str> {
        let mut numbers = arguments.iter().filter_map(|word| word.strip_prefix('#'));
        let is_number = |text: &&str| text.bytes().all(|octet| octet.is_ascii_digit());
        let read = |text: &str| {
            let digits = Some(text).filter(is_number)?;
            digits.parse::<u64>().ok()
        };
        let number = match (numbers.next(), numbers.next()) {
            (None, _) => None,
            (Some(text), None) => Some(read(text).ok_or("its serial number is malformed")?),
            (Some(_), Some(_)) => return Err("it has more than one serial number"),
        };
        let named = arguments
            .iter()
            .filter(|word| !word.starts_with(['#', '!']));
        let mut tops: Vec<String> = named.map(|word| (*word).to_owned()).collect();
        if tops.is_empty() {
            tops = listed.map(str::to_owned).collect();
            tops.sort();
            tops.dedup();
        }
        Ok(Self { number, tops })
    }

    /// Whether this must not be heeded behind the other: it is of the same hierarchy, and older or of no age.
    fn is_older_than(&self, other: &Self) -> bool {
        let mut newest = HashMap::new();
        other.note(&mut newest);
        self.is_older_than_any(&newest)
    }

    /// Whether this must not be heeded behind those that were noted.
    pub(super) fn is_older_than_any(&self, newest: &HashMap<String, u64>) -> bool {
        let newest = self.tops.iter().filter_map(|top| newest.get(top));
        newest
            .max()
            .is_some_and(|newest| self.number.is_none_or(|own| own < *newest))
    }

    /// Notes the newest number of each hierarchy.
    pub(super) fn note(&self, newest: &mut HashMap<String, u64>) {
        let Some(number) = self.number else { return };
        for top in &self.tops {
            let newest = newest.entry(top.clone()).or_default();
            *newest = number.max(*newest);
        }
    }
}

/// A message that was heeded and is newer than one with this serial number; none: that is the newest.
///
/// # Errors
/// When the messages cannot be read, or there are more than are looked at.
pub(crate) fn newer(
    shared: &Shared,
    policy: &Policy,
    serial: &Serial,
) -> Result<Option<String>, Error> {
    for name in ["control.checkgroups", "control"] {
        let Some(group) = shared.views.groups().by_name(name) else {
            continue;
        };
        let found = heed::find_newest(shared, group.id(), |number| {
            heeded(shared, policy, (group.id(), number), serial)
        })?;
        match found {
            Found::This(id) => return Ok(Some(id)),
            Found::Nothing => {}
            Found::TooMany => {
                return Err(Error::Request(format!(
                    "{name} has more than the {CONTROL_LOOKED_AT_MAX} articles that are looked at; expire it sooner"
                )));
            }
        }
    }
    Ok(None)
}

/// The message-id of what stands here, if it is such a message.
fn heeded(
    shared: &Shared,
    policy: &Policy,
    (group, number): (GroupId, ArticleNumber),
    serial: &Serial,
) -> Result<Option<String>, Error> {
    let overview = shared.views.overview();
    let column = overview.column(group, number, Wait::Yes, &mut Vec::new())?;
    let Some(token) = column.map(|column| column.token) else {
        return Ok(None);
    };
    let mut memory = Vec::new();
    let Some(stored) = heed::read_about_groups(shared, &token, &mut memory)? else {
        return Ok(None);
    };
    let Ok(headers) = Headers::scan_stored(&memory[stored.octets.clone()]) else {
        return Ok(None);
    };
    let Some(Ok(message)) = groups::read(&headers, shared.views.groups()) else {
        return Ok(None);
    };
    let is_newer = message
        .serial
        .as_ref()
        .is_some_and(|other| serial.is_older_than(other));
    if !is_newer {
        return Ok(None);
    }
    let signed = heed::signer(shared, &headers)?;
    let rules = policy.rules.of(message.verb, &message.sender);
    let is_done = |name: &String| heed::becomes(&rules.action(name), &signed) == Action::Doit;
    let id = headers.content(Known::MessageId).unwrap_or_default();
    let was_heeded = message.about.iter().any(is_done);
    Ok(was_heeded.then(|| String::from_utf8_lossy(id).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serial(arguments: &str, listed: &[&str]) -> Result<Serial, &'static str> {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        Serial::read(&words, listed.iter().copied())
    }

    #[test]
    fn which_is_older() {
        let of = |arguments: &str| serial(arguments, &["de", "fr", "de"]).unwrap();
        for (own, other, is_older) in [
            ("de #1", "de #2", true),
            ("de #2", "de #2", false),
            ("de #10", "de #9", false),
            ("de", "de #2", true),
            ("de #2", "de", false),
            ("de", "de", false),
            ("de #1", "fr #2", false),
            ("de fr #1", "fr #2", true),
            ("#1", "fr #2", true),
            ("#1", "comp #2", false),
            ("de !de.alt #1", "de.alt #2", false),
        ] {
            assert_eq!(
                of(own).is_older_than(&of(other)),
                is_older,
                "{own}, {other}"
            );
        }
    }

    #[test]
    fn what_is_no_number_is_told() {
        for bad in ["#", "#x", "#-1", "#+1", "#1 #2", "#99999999999999999999"] {
            assert!(serial(bad, &["de"]).is_err(), "{bad}");
        }
        assert_eq!(serial("#007", &["b", "a", "b"]).unwrap().tops, ["a", "b"]);
    }
}
