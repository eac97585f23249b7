//! What a connection is going to send: text of its own and bodies lent by the corpus, in order.
//!
//! Invariant: octets leave in the order they were put, each once; bodies are never copied. What is
//! queued is bounded by the caller, who asks [`Outgoing::waiting`] before putting more.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

/// Parts handed to the kernel in one call.
const PARTS_PER_WRITE: usize = 128;
/// Bodies shorter than this are cheaper to copy than to describe.
const LENT_OCTETS_MIN: usize = 512;
const TEXT_OCTETS_KEPT: usize = 256 * 1024;

#[derive(Debug)]
enum Part<'c> {
    /// So many octets of `text`.
    Text(usize),
    Lent(&'c [u8]),
}

#[derive(Debug, Default)]
pub(crate) struct Outgoing<'c> {
    text: Vec<u8>,
    /// How much of `text` is sent.
    text_sent: usize,
    /// How much of `text` the parts describe; the rest is being put.
    text_described: usize,
    parts: VecDeque<Part<'c>>,
    waiting: usize,
}

impl<'c> Outgoing<'c> {
    /// Text to append to; it counts once the next part is lent or [`Outgoing::end`] is called.
    pub(crate) const fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Appends octets that live as long as the corpus.
    pub(crate) fn lend(&mut self, octets: &'c [u8]) {
        if octets.len() < LENT_OCTETS_MIN {
            self.text.extend_from_slice(octets);
            return;
        }
        self.end();
        self.waiting += octets.len();
        self.parts.push_back(Part::Lent(octets));
    }

    /// Marks the text put so far as ready to go.
    pub(crate) fn end(&mut self) {
        let len = self.text.len() - self.text_described;
        if len == 0 {
            return;
        }
        self.text_described = self.text.len();
        self.waiting += len;
        if let Some(Part::Text(last)) = self.parts.back_mut() {
            *last += len;
        } else {
            self.parts.push_back(Part::Text(len));
        }
    }

    /// Octets that are put but not sent.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Sends as much as the socket takes. `Ok(false)`: it takes no more for now.
    pub(crate) fn write(&mut self, to: &mut impl Write) -> io::Result<bool> {
        self.end();
        while self.waiting > 0 {
            let sent = {
                let mut slices = [IoSlice::new(&[]); PARTS_PER_WRITE];
                let described = self.describe(&mut slices);
                match to.write_vectored(slices.get(..described).unwrap_or_default()) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(sent) => sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                }
            };
            self.sent(sent);
        }
        Ok(true)
    }

    fn describe<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut text = self.text_sent;
        let mut described = 0;
        for (part, slice) in self.parts.iter().zip(slices) {
            *slice = IoSlice::new(match part {
                Part::Lent(octets) => octets,
                Part::Text(len) => {
                    text += len;
                    self.text.get(text - len..text).unwrap_or_default()
                }
            });
            described += 1;
        }
        described
    }

    fn sent(&mut self, mut octets: usize) {
        self.waiting -= octets;
        while octets > 0 {
            let Some(part) = self.parts.front_mut() else {
                break;
            };
            let (len, whole) = match part {
                Part::Text(len) => {
                    let now = octets.min(*len);
                    *len -= now;
                    self.text_sent += now;
                    (now, *len == 0)
                }
                Part::Lent(lent) => {
                    let now = octets.min(lent.len());
                    *lent = lent.get(now..).unwrap_or_default();
                    (now, lent.is_empty())
                }
            };
            octets -= len;
            if whole {
                self.parts.pop_front();
            }
        }
        if self.text_sent == self.text.len() || self.text_sent > TEXT_OCTETS_KEPT {
            self.text.drain(..self.text_sent);
            self.text_described -= self.text_sent;
            self.text_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes at most so many octets a call, and would block after every fifth.
    struct Narrow {
        got: Vec<u8>,
        room: usize,
        calls: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(5) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let len = buf.len().min(self.room);
            self.got.extend_from_slice(&buf[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn prop_octets_leave_in_order(
            puts in proptest::collection::vec((0usize..300, 0usize..3000, any::<bool>()), 1..40),
            room in 1usize..5000,
        ) {
            let body: Vec<u8> = (0..3000u32).map(|n| (n % 251) as u8).collect();
            let mut outgoing = Outgoing::default();
            let mut to = Narrow { got: Vec::new(), room, calls: 0 };
            let mut expected = Vec::new();
            for (text, lent, write) in puts {
                outgoing.text().extend((0..text).map(|n| n as u8));
                expected.extend((0..text).map(|n| n as u8));
                outgoing.lend(&body[..lent]);
                expected.extend_from_slice(&body[..lent]);
                if write {
                    outgoing.write(&mut to).unwrap();
                }
            }
            while !outgoing.write(&mut to).unwrap() {}
            prop_assert_eq!(outgoing.waiting(), 0);
            prop_assert_eq!(to.got, expected);
        }
    }
}
