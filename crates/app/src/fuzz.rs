//! Takes any octets for lists of groups, configurations, control requests and what other servers answer: the doors for
//! fuzzers.
//!
//! Must never panic, whatever comes.

use std::io::{BufReader, Cursor};

use newsreel_wire::GroupName;

use crate::active::{self, Named};
use crate::config;
use crate::control::Reply;
use crate::control::request::Request;
use crate::posting;

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

/// Takes `octets` for all that a server says to who posts there; what it said of the article, or why it has none.
///
/// # Errors
/// When the server did not take the article, with what a person is told of it.
pub fn answers(octets: &[u8]) -> Result<String, String> {
    let said = posting::hand_over(BufReader::new(Talker(Cursor::new(octets))), b".\r\n");
    let said = said.map_err(|error| error.to_string());
    if let Err(told) = &said {
        assert!(
            !told.contains(|c: char| c.is_control() && !"\n\t".contains(c)),
            "{told:?}"
        );
    }
    said
}

/// Says what it has to say, whatever it is told.
struct Talker<'o>(Cursor<&'o [u8]>);

impl std::io::Read for Talker<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl std::io::Write for Talker<'_> {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes a file of rules of another system; how many rules are made of it, which the configuration takes, and how many lines
/// are left out.
#[must_use]
pub fn policies(text: &str) -> (usize, usize) {
    let mut made = crate::policies::Made::default();
    made.take("file", text, true);
    let printed = made.printed();
    let read: Result<toml::Table, _> = printed.parse();
    assert!(read.is_ok(), "{printed}");
    (made.rules.len(), made.left.len())
}
