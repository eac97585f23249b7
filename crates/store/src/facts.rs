//! What there is to know about a buffer, as plain values for people and tools.

use newsreel_host::said_octets;
use newsreel_wire::{Position, Sequence, UnixTime};
use serde::Serialize;

/// One buffer in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct BufferFacts {
    /// Its name, as in the text form of tokens.
    pub name: String,
    /// Its id in the spool.
    pub id: u16,
    /// The storage method.
    pub method: &'static str,
    /// The set it belongs to.
    pub set: u8,
    /// Its file.
    pub path: String,
    /// Size of the file, octets.
    pub octets: u64,
    /// The smaller size that it has once it has come around.
    pub becomes: Option<u64>,
    /// How much comes until then, octets, about.
    pub becomes_after_octets: Option<u64>,
    /// Room for articles, octets; none where each is a file: that is the file system's.
    pub capacity_octets: Option<u64>,
    /// Octets that are free there, if that is what it has for room.
    pub free_octets: Option<u64>,
    /// Articles begin at multiples of this.
    pub block_octets: u64,
    /// The largest article it takes, octets.
    pub article_octets_max: u64,
    /// How often it was begun from the start.
    pub cycle: u32,
    /// Where the next article goes.
    pub free_offset: u64,
    /// Where the data area begins.
    pub data_offset: u64,
    /// Up to where it may be overwritten without asking the log.
    pub reserved_offset: u64,
    /// How much of it is alive, octets; where each article is a file, of what is kept about them.
    pub live_octets: u64,
    /// Why it takes nothing, if so.
    pub suspended: Option<String>,
    /// Whether it is only read.
    pub is_read_only: bool,
    /// Whether it takes nothing new, and what it has goes as the rest of its set is overwritten.
    pub is_retired: bool,
    /// ... and nothing of that is left.
    pub is_drained: bool,
    /// What was wrong when it was opened, if anything.
    pub complaint: Option<String>,
    /// The last sequence in its header.
    pub header_sequence: u64,
    /// When the last article before its header was written arrived, seconds since 1970.
    pub header_arrival: u64,
    /// When the newest article that is known arrived, seconds since 1970; 0: none.
    pub newest_arrival: u64,
}

impl BufferFacts {
    /// `ok`, or what is the matter with it.
    #[must_use]
    pub fn state(&self) -> String {
        match (&self.suspended, &self.complaint) {
            (Some(why), _) => format!("suspended: {why}"),
            _ if self.is_drained => {
                "drained: nothing is left in it; take it out of the configuration".to_owned()
            }
            _ if self.is_retired => {
                "retired: it takes nothing, and drains as the rest of its set is overwritten"
                    .to_owned()
            }
            (None, Some(complaint)) => complaint.clone(),
            (None, None) => self.narrowing().unwrap_or_else(|| "ok".to_owned()),
        }
    }

    /// What it becomes, and when.
    fn narrowing(&self) -> Option<String> {
        let when = match self.becomes_after_octets? {
            0 => "with the next checkpoint".to_owned(),
            octets => format!("after some {} more", said_octets(octets)),
        };
        let octets = said_octets(self.becomes?);
        Some(format!(
            "narrowing: it becomes smaller when it has come around: {octets}, {when}"
        ))
    }
}

/// A cyclic buffer of a configuration, and what there is of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedBuffer {
    /// Its name.
    pub name: String,
    /// The set it belongs to.
    pub set: String,
    /// Its file or device.
    pub path: String,
    /// Its size, octets, everything included.
    pub octets: u64,
    /// It is not written out when it is made.
    pub is_sparse: bool,
    /// It is there: its file is neither missing nor blank.
    pub is_there: bool,
    /// The size that it has, as far as its header tells.
    pub octets_there: Option<u64>,
    /// The smaller size that it is on its way to.
    pub becomes: Option<u64>,
    /// Octets behind the end that it is to have where articles may be.
    pub beyond_octets: u64,
    /// The spool has had a buffer of this name.
    pub was_made: bool,
    /// ... and let it go: the name is not given again.
    pub was_dropped: bool,
    /// Octets that are free where it lies, or will; none for a device, which is all there is.
    pub free_octets: Option<u64>,
}

/// The oldest article that is alive in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oldest {
    /// Where it lies.
    pub position: Position,
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
}
