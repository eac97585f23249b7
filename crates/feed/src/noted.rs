//! Files of the spool that say how far something is, as a start finds them.
//!
//! One that is damaged costs work that was done already, and is kept beside what is written in its place.  One that cannot be read, or
//! that a later newsreel wrote, ends the start: nothing is written over it.

use std::io;
use std::path::Path;

use newsreel_host::{Disk, ErrorKind, read_whole, replace_file, sealed};

/// What a file is, in words.
pub(crate) struct Kind {
    /// What it begins with, in front of its version.
    pub(crate) words: &'static str,
    /// The version that is written.
    pub(crate) version: u32,
    /// What it says.
    pub(crate) says: &'static str,
    /// What follows where there is none.
    pub(crate) without: &'static str,
    /// What follows where it is damaged.
    pub(crate) damaged: &'static str,
}

/// A larger one is not read.
pub(crate) const OCTETS_MAX: usize = 256 << 20;

/// What is behind the name of one that was damaged.
const DAMAGED: &str = ".damaged";

/// What was found.
pub(crate) enum Found<T> {
    Nothing,
    Noted(T),
    /// It says nothing; its octets.
    Damaged(Vec<u8>),
}

impl Kind {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or a later newsreel wrote it.
    pub(crate) fn find<T>(
        &self,
        disk: &dyn Disk,
        file: &Path,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> io::Result<Found<T>> {
        let (name, says) = (file.display(), self.says);
        let octets = match read_whole(disk, file, OCTETS_MAX) {
            Ok(octets) => octets,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => {
                return Err(io::Error::other(format!(
                    "{name}, which says {says}, cannot be read: {error}; see to that, or move it away: {}",
                    self.without
                )));
            }
        };
        match sealed::version_of(&octets, self.words) {
            Some(version) if version > self.version => {
                return Err(io::Error::other(format!(
                    "{name}, which says {says}, was written by a later newsreel (it is of version {version}): run that one, or move it away: {}",
                    self.without
                )));
            }
            _ => {}
        }
        match parse(&octets) {
            Ok(noted) => Ok(Found::Noted(noted)),
            Err(why) => {
                tracing::error!("{name} does not say {says}: {why}; {}", self.damaged);
                Ok(Found::Damaged(octets))
            }
        }
    }
}

/// Writes a file; what was damaged in its place is kept beside it first.
pub(crate) fn write(
    disk: &dyn Disk,
    file: &Path,
    text: &str,
    damaged: &mut Option<Vec<u8>>,
) -> Result<(), newsreel_host::Error> {
    if let Some(octets) = damaged {
        let mut beside = file.as_os_str().to_owned();
        beside.push(DAMAGED);
        replace_file(disk, Path::new(&beside), octets)?;
        *damaged = None;
    }
    replace_file(disk, file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use newsreel_host::{Effect, Fault, FaultyDisk, MemoryDisk, Op};
    use std::sync::Arc;

    use super::*;

    const KIND: Kind = Kind {
        words: "newsreel things ",
        version: 2,
        says: "how many there are",
        without: "all are counted",
        damaged: "all are counted again",
    };

    /// What a later newsreel had written, or could not be read for a moment, was taken for damaged, and written over at once.
    #[test]
    fn nothing_is_written_over_what_is_not_understood() {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let file = Path::new("/things");
        let find = || {
            KIND.find(&disk, file, |octets| {
                let read = sealed::unseal(octets, &["newsreel things 2 "], "it is another");
                read.map(|(_, lines)| lines.len()).map_err(str::to_owned)
            })
        };
        assert!(matches!(find(), Ok(Found::Nothing)));
        let put = |octets: &[u8]| replace_file(&memory, file, octets).unwrap();
        put(&sealed::seal("newsreel things 3 ", b"7\n"));
        let why = find().err().unwrap().to_string();
        assert!(why.contains("later newsreel (it is of version 3)"), "{why}");
        put(&sealed::seal("newsreel things 2 ", b"7\n"));
        assert!(matches!(find(), Ok(Found::Noted(2))));
        disk.add(Fault::new(Op::Read, "/things", Effect::Denied).forever());
        let why = find().err().unwrap().to_string();
        assert!(why.contains("cannot be read"), "{why}");
        disk.clear();
        put(b"newsreel things 3 00000000\n7\n");
        let Ok(Found::Damaged(octets)) = find() else {
            panic!("it is damaged");
        };
        let mut damaged = Some(octets);
        write(&disk, file, "new", &mut damaged).unwrap();
        let kept = read_whole(&memory, Path::new("/things.damaged"), 99).unwrap();
        assert_eq!(
            (damaged, kept),
            (None, b"newsreel things 3 00000000\n7\n".to_vec())
        );
        assert_eq!(read_whole(&memory, file, 99).unwrap(), b"new");
    }
}
