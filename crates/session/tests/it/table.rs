//! The table of commands and the transcripts agree.

use newsreel_session::commands::TABLE;

use crate::transcripts::tests_folder;

/// Every verb has a transcript of its name, and that one, or one whose name begins with it, shows every code.
#[test]
#[expect(clippy::disallowed_methods, reason = "looks at the source tree")]
fn every_command_has_a_transcript_that_shows_every_code() {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(tests_folder().join("transcripts")).unwrap() {
        let Ok(entries) = std::fs::read_dir(folder.unwrap().path()) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            files.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    for spec in TABLE {
        let verb = spec.name.to_ascii_lowercase();
        assert!(
            files.iter().any(|(name, _)| *name == verb),
            "no transcript {verb}.nntp"
        );
        for code in spec.codes.iter().chain(&[501]) {
            let shown = files.iter().any(|(name, text)| {
                (*name == verb || name.starts_with(&format!("{verb}_")) || name == "transit_mode")
                    && text.lines().any(|line| shows(line, *code))
            });
            assert!(shown, "no transcript {verb}*.nntp shows {code}");
        }
    }
}

fn shows(line: &str, code: u16) -> bool {
    let Some((mark, reply)) = line.split_once(": ") else {
        return false;
    };
    mark.starts_with('S') && reply.split(' ').next() == Some(&code.to_string())
}
