//! Takes any octets for lists of groups, configurations and control requests: the doors for fuzzers.
//!
//! Must never panic, whatever comes.

use newsreel_wire::GroupName;

use crate::active::{self, Named};
use crate::config;
use crate::control::Reply;
use crate::control::request::Request;

/// Takes `octets` for a list of groups and, behind the first NUL, one of descriptions; good and bad lines.
#[must_use]
pub fn import(octets: &[u8]) -> (usize, usize) {
    let mut files = octets.splitn(2, |octet| *octet == 0);
    let file = |name, octets| Named { name, octets };
    let groups = file("groups", files.next().unwrap_or_default());
    let descriptions = files.next().map(|octets| file("descriptions", octets));
    let listed = active::read(groups, descriptions);
    for group in &listed.groups {
        assert!(GroupName::parse(group.name.as_bytes()).is_ok(), "{group:?}");
        assert!(active::status(group.status.as_bytes()).is_ok(), "{group:?}");
    }
    (listed.groups.len(), listed.bad.len())
}

/// Takes `text` for a configuration file; says whether it is sound.  What is in force is read back the same.
#[must_use]
pub fn configuration(text: &str) -> bool {
    match config::parse(text, "fuzz") {
        Ok(found) => {
            let shown = found.values().ok();
            let shown = shown.and_then(|values| toml::to_string(&values).ok());
            let again = shown.as_deref().map(|shown| config::parse(shown, "shown"));
            assert_eq!(again, Some(Ok(found)), "{shown:?}");
            true
        }
        Err(problems) => {
            let lines = text.lines().count() + 1;
            assert!(!problems.list.is_empty(), "a refusal says why");
            assert!(
                problems.list.iter().all(|one| one.line <= lines),
                "{problems}"
            );
            false
        }
    }
}

/// Takes a line for a request and for an answer of the control socket; says whether it is a request.
#[must_use]
pub fn control(line: &[u8]) -> bool {
    let _ = serde_json::from_slice::<Reply>(line);
    let Ok(request) = serde_json::from_slice::<Request>(line) else {
        return false;
    };
    let summary = request.summary();
    assert!(!summary.contains(char::is_control), "{summary:?}");
    let again = serde_json::to_vec(&request).ok();
    let again = again.and_then(|line| serde_json::from_slice::<Request>(&line).ok());
    assert_eq!(again, Some(request));
    true
}
