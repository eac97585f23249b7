//! Many large buffers are opened by a server that starts.

use std::fmt::Write as _;

use super::Stand;
use crate::corpus::Size;
use crate::error::Error;
use crate::measure::process::ServerLook;
use crate::rivals::Rival as _;

const BUFFERS: u64 = 20;
const OCTETS: u64 = 1 << 40;
/// No buffer is smaller, however small a part of all is opened.
const OCTETS_MIN: u64 = 64 << 20;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opening {
    /// Buffers.
    pub buffers: u64,
    /// Octets of each, which its file does not take.
    pub octets: u64,
    /// From the start of the program until it answers.
    pub seconds: f64,
    /// The memory that it has then.
    pub memory_octets: u64,
}

impl Stand<'_> {
    pub(super) fn opening(&self, on_line: &mut dyn FnMut(&str)) -> Result<Opening, Error> {
        let octets = self.part_of(OCTETS).max(OCTETS_MIN);
        let mut words = String::new();
        for n in 0..BUFFERS {
            // Writing to a text cannot fail.
            let _ = write!(
                words,
                "[[buffer]]\nname = \"T{n}\"\noctets = {octets}\nsparse = true\n"
            );
        }
        let volume = self.volume(0)?;
        let corpus = self.corpus(0, Size::Text, 1)?;
        let mut server = self.server(volume.at(), &words)?;
        self.start(&mut server, &corpus, volume.at())?;
        server.stop()?;
        volume.cool(self.machine.disk)?;
        // It has its groups.
        let mut server = self.server(volume.at(), &words)?.unprepared();
        let begin = self.machine.clock.monotonic();
        let pid = self.start(&mut server, &corpus, volume.at())?;
        let took = self.machine.clock.monotonic().saturating_sub(begin);
        let memory_octets = ServerLook::take(self.machine.disk, pid).rss_octets();
        server.stop()?;
        let seconds = took.as_secs_f64();
        on_line(&format!(
            "{BUFFERS} buffers of {octets} octets opened in {seconds:.2} s, with {memory_octets} octets of memory"
        ));
        Ok(Opening {
            buffers: BUFFERS,
            octets,
            seconds,
            memory_octets,
        })
    }
}
