//! How a directory says that it is managed: the set-uid bit, and an extended attribute for the algorithm.
//!
//! The bit decides; without the attribute it means `yyy`, as in 1998.  While a conversion is under way the attribute
//! says so, and then the bit says nothing.  See `docs/formats/managed-directory.md`.

use std::fmt;
use std::io;

use newsreel_host::{Folder, Op};

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::managed::Managed;

/// The extended attribute's name.
pub const ATTRIBUTE: &str = "user.usenetfs";

/// The bit of a managed directory.
pub const SET_UID: u32 = 0o4000;

const VERSION: &str = "1";

/// How a directory is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// As it is seen.
    Flat,
    /// In buckets.
    Managed(Algorithm),
}

/// What a conversion is at.  `S` is the staging directory, `D` the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// From `D`, or the buckets in it, into new buckets in `S`.
    Scatter,
    /// The buckets in `S` go to `D`.
    Raise,
    /// The buckets in `D` go to `S`.
    Lower,
    /// From the buckets in `S` to where it belongs in `D`.
    Spread,
}

/// What a view held before its conversion, in short: the same before and after, or something was lost or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// How many entries.
    pub entries: u64,
    /// The sum over all of them of a hash of name, inode and length.
    pub sum: u64,
}

/// A conversion that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// What the directory was.
    pub from: Layout,
    /// What it will be.
    pub to: Layout,
    /// What is being done.
    pub step: Step,
    /// The view at its beginning, if that is to be compared at its end.
    pub before: Option<Fingerprint>,
}

/// What a directory's mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nothing: it is an ordinary directory.
    None,
    /// It is managed.
    Managed(Algorithm),
    /// It was managed, or was going to be: the attribute is there and the bit is not.  It counts as ordinary.
    WithoutBit(Algorithm),
    /// It is being converted.
    UnderWay(UnderWay),
}

/// A directory by its mark.
#[derive(Debug)]
pub enum Opened {
    /// An ordinary directory.
    Flat(Folder),
    /// A managed one.
    Managed(Managed),
    /// One whose entries are in two places until a conversion is run to its end.
    UnderWay(Folder, UnderWay),
}

impl Opened {
    /// Looks at a directory's mark.
    pub fn new(folder: Folder) -> Result<Self> {
        Ok(match Mark::read(&folder)? {
            Mark::None | Mark::WithoutBit(_) => Self::Flat(folder),
            Mark::Managed(algorithm) => Self::Managed(Managed::new(folder, algorithm)),
            Mark::UnderWay(under_way) => Self::UnderWay(folder, under_way),
        })
    }
}

impl Mark {
    /// Reads a directory's mark.
    pub fn read(folder: &Folder) -> Result<Self> {
        let attribute = folder.attribute(ATTRIBUTE)?;
        Self::of(attribute.as_deref(), folder.facts()?.mode).ok_or_else(|| Error::BadMark {
            path: folder.path().to_path_buf(),
            text: attribute.unwrap_or_default().escape_ascii().to_string(),
        })
    }

    /// What an attribute and the bits of a mode say; `None` where that is not understood.
    #[must_use]
    pub fn of(attribute: Option<&[u8]>, mode: u32) -> Option<Self> {
        let has_bit = mode & SET_UID != 0;
        match (attribute, has_bit) {
            (None, false) => Some(Self::None),
            (None, true) => Some(Self::Managed(Algorithm::YYY)),
            (Some(octets), _) => Some(match Self::decode(octets)? {
                Self::Managed(algorithm) if !has_bit => Self::WithoutBit(algorithm),
                mark => mark,
            }),
        }
    }

    /// Reads the attribute's text.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(octets).ok()?;
        let mut words = text.split(' ');
        if words.next()? != VERSION {
            return None;
        }
        let words: Vec<_> = words.collect();
        match *words.as_slice() {
            [algorithm] => Some(Self::Managed(algorithm.parse().ok()?)),
            ["convert", from, to, step, ref rest @ ..] => {
                let under_way = UnderWay {
                    from: Layout::decode(from)?,
                    to: Layout::decode(to)?,
                    step: Step::decode(step)?,
                    before: match *rest {
                        [] => None,
                        [entries, sum] => Some(Fingerprint {
                            entries: decode_hex(entries)?,
                            sum: decode_hex(sum)?,
                        }),
                        _ => return None,
                    },
                };
                under_way.is_sound().then_some(Self::UnderWay(under_way))
            }
            _ => None,
        }
    }

    /// Marks a directory in which nothing is as managed; this is what `chmod u+s` means.
    pub fn set(folder: &Folder, algorithm: Algorithm) -> Result<()> {
        if folder.entries()?.next().is_some() {
            return Err(not_empty(folder));
        }
        // The bit last, so that there is no moment of `yyy`.
        match folder.set_attribute(ATTRIBUTE, managed_text(algorithm).as_bytes()) {
            Err(e) if is_unsupported(&e) && algorithm == Algorithm::YYY => {}
            other => other?,
        }
        set_bit(folder, true)?;
        Ok(folder.sync()?)
    }

    /// Makes a managed directory whose view is empty an ordinary one; this is what `chmod u-s` means.
    pub fn clear(managed: &Managed) -> Result<()> {
        let folder = managed.folder();
        if !managed.remove_buckets()? {
            return Err(not_empty(folder));
        }
        write_flat(folder)
    }
}

fn not_empty(folder: &Folder) -> Error {
    Error::NotEmpty {
        path: folder.path().to_path_buf(),
    }
}

/// Ends a conversion: the bit first, because until it is replaced the attribute says that the bit says nothing.
pub(crate) fn write_managed(folder: &Folder, algorithm: Algorithm) -> Result<()> {
    set_bit(folder, true)?;
    folder.set_attribute(ATTRIBUTE, managed_text(algorithm).as_bytes())?;
    Ok(folder.sync()?)
}

fn managed_text(algorithm: Algorithm) -> String {
    format!("{VERSION} {algorithm}")
}

fn set_bit(folder: &Folder, on: bool) -> Result<()> {
    let mode = folder.facts()?.mode & !SET_UID;
    Ok(folder.set_mode(if on { mode | SET_UID } else { mode })?)
}

/// Takes every mark off: the bit first, so that there is no moment of `yyy`.
pub(crate) fn write_flat(folder: &Folder) -> Result<()> {
    set_bit(folder, false)?;
    folder.remove_attribute(ATTRIBUTE)?;
    Ok(folder.sync()?)
}

/// Whether the file system keeps no attributes.
pub(crate) fn is_unsupported(error: &newsreel_host::Error) -> bool {
    matches!(
        error,
        newsreel_host::Error::Io { op: Op::SetAttribute, source, .. }
            if source.kind() == io::ErrorKind::Unsupported
    )
}

impl UnderWay {
    /// Writes it as the directory's mark, durably.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        folder.set_attribute(ATTRIBUTE, self.to_string().as_bytes())?;
        Ok(folder.sync()?)
    }

    /// The conversion back to where it came from: whatever lies in which place, the way back finds it there.
    pub(crate) const fn turned(&self) -> Self {
        Self {
            from: self.to,
            to: self.from,
            step: match self.step {
                Step::Scatter => Step::Spread,
                Step::Raise => Step::Lower,
                Step::Lower => Step::Raise,
                Step::Spread => Step::Scatter,
            },
            before: self.before,
        }
    }

    /// Whether the step is one of a conversion between these two.
    fn is_sound(&self) -> bool {
        self.from != self.to
            && match self.step {
                Step::Scatter | Step::Raise => self.to != Layout::Flat,
                Step::Lower | Step::Spread => self.from != Layout::Flat,
            }
    }
}

impl fmt::Display for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{VERSION} convert {} {} {}",
            self.from, self.to, self.step
        )?;
        self.before.map_or(Ok(()), |before| {
            write!(f, " {:x} {:x}", before.entries, before.sum)
        })
    }
}

impl Layout {
    fn decode(text: &str) -> Option<Self> {
        match text {
            "flat" => Some(Self::Flat),
            algorithm => Some(Self::Managed(algorithm.parse().ok()?)),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat => f.write_str("flat"),
            Self::Managed(algorithm) => algorithm.fmt(f),
        }
    }
}

const STEPS: [(Step, &str); 4] = [
    (Step::Scatter, "scatter"),
    (Step::Raise, "raise"),
    (Step::Lower, "lower"),
    (Step::Spread, "spread"),
];

impl Step {
    fn decode(text: &str) -> Option<Self> {
        let row = STEPS.iter().find(|(_, name)| *name == text);
        row.map(|(step, _)| *step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = STEPS.iter().find(|(step, _)| step == self);
        f.write_str(row.map_or("", |(_, name)| name))
    }
}

/// A number in hexadecimal, written in the one way we write it.
fn decode_hex(text: &str) -> Option<u64> {
    let number = u64::from_str_radix(text, 16).ok()?;
    (format!("{number:x}") == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let mark = Mark::decode(text.as_bytes());
        assert_eq!(
            mark.map(|mark| format!("{mark:?}")).as_deref(),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn marks_as_they_are_on_disk() {
        check("1 yyy", Some("Managed(Algorithm(yyy))"));
        check("1 34/56", Some("Managed(Algorithm(34/56))"));
        check(
            "1 convert flat range1024 scatter",
            Some(
                "UnderWay(UnderWay { from: Flat, to: Managed(Algorithm(range1024)), step: Scatter, before: None })",
            ),
        );
        check(
            "1 convert yyy flat spread 10 ff",
            Some(
                "UnderWay(UnderWay { from: Managed(Algorithm(yyy)), to: Flat, step: Spread, \
                 before: Some(Fingerprint { entries: 16, sum: 255 }) })",
            ),
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "1",
            "2 yyy",
            "yyy",
            "1  yyy",
            "1 yyy ",
            "1 yyy\n",
            "1 flat",
            "1 convert",
            "1 convert flat yyy",
            "1 convert flat yyy spread",
            "1 convert yyy flat scatter",
            "1 convert yyy flat raise",
            "1 convert flat flat scatter",
            "1 convert flat yyy lower",
            "1 convert yyy yyy lower",
            "1 convert flat yyy scatter 1",
            "1 convert flat yyy scatter 1 2 3",
            "1 convert flat yyy scatter 01 2",
            "1 convert flat yyy scatter +1 2",
            "1 convert flat yyy scatter F 2",
            "1 convert flat yyy scatter 11111111111111111 2",
        ] {
            check(text, None);
        }
        assert_eq!(Mark::decode(b"1 yyy\xff"), None);
    }

    #[test]
    fn a_file_system_without_attributes_is_told_apart() {
        let error = |op, number| newsreel_host::Error::Io {
            op,
            path: "/spool".into(),
            source: io::Error::from_raw_os_error(number),
        };
        // EOPNOTSUPP and EIO.
        assert!(is_unsupported(&error(Op::SetAttribute, 95)));
        assert!(!is_unsupported(&error(Op::SetAttribute, 5)));
        assert!(!is_unsupported(&error(Op::Rename, 95)));
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        (0..=Algorithm::ALL.len()).prop_map(|at| {
            Algorithm::ALL
                .get(at)
                .map_or(Layout::Flat, |a| Layout::Managed(*a))
        })
    }

    proptest! {
        /// What is written is read back, or was never written.
        #[test]
        fn prop_conversions_round_trip(
            from in layouts(),
            to in layouts(),
            step in 0..4_usize,
            before in proptest::option::of((any::<u64>(), any::<u64>())),
        ) {
            let before = before.map(|(entries, sum)| Fingerprint { entries, sum });
            let under_way = UnderWay { from, to, step: STEPS[step].0, before };
            let decoded = Mark::decode(under_way.to_string().as_bytes());
            prop_assert_eq!(decoded, under_way.is_sound().then_some(Mark::UnderWay(under_way)));
        }

        /// No text is a panic, and what is understood is written the same way.
        #[test]
        fn prop_any_text_is_input(text in "1? ?1 (yyy|456|34/56|range0?[0-9]{1,8}|[a-z0-9/]{0,9}) ?[ 1a-z]{0,3}") {
            if let Some(Mark::Managed(algorithm)) = Mark::decode(text.as_bytes()) {
                prop_assert_eq!(format!("1 {algorithm}"), text);
            }
        }
    }
}
