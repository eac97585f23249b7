//! The names of links to the program, as which it is another one.

use std::ffi::OsString;
use std::path::Path;

/// The verbs that links to the program may be called after.
const CALLED: [&str; 2] = ["inews", "rnews"];

/// The arguments as the command line is read: called by the name of such a verb, it is this verb that is meant.
pub(crate) fn arguments(mut words: Vec<OsString>) -> Vec<OsString> {
    let called = words.first().map(Path::new).and_then(Path::file_name);
    if let Some(verb) = CALLED
        .iter()
        .find(|verb| called.is_some_and(|called| called == **verb))
    {
        words.splice(..1, ["newsreel", verb].map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_called_after_verbs() {
        let read = |words: &[&str]| arguments(words.iter().map(OsString::from).collect());
        assert_eq!(read(&["/usr/bin/inews", "-h"]), ["newsreel", "inews", "-h"]);
        assert_eq!(read(&["rnews"]), ["newsreel", "rnews"]);
        assert_eq!(read(&["newsreel", "status"]), ["newsreel", "status"]);
    }
}
