//! A line of the access log: an article that was asked for.
//!
//! `when hit|miss octets dated group message-id`, one blank between them; who asked is not said.  The group is the first that the
//! article names, `-` where it names none; times are seconds since 1970, octets those of the whole article.

use newsreel_wire::range::parse_number;
use newsreel_wire::{GroupName, MessageId};

/// No line is longer, its end included.
pub const ACCESS_LINE_OCTETS_MAX: usize = 1024;

/// An article that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessLine<'l> {
    /// When.
    pub at: u64,
    /// It was kept.
    pub is_hit: bool,
    /// Octets of the whole article.
    pub octets: u64,
    /// Its date; 0: it has none.
    pub dated: u64,
    /// The first of its groups.
    pub group: Option<GroupName<'l>>,
    /// Its message-id.
    pub id: MessageId<'l>,
}

impl<'l> AccessLine<'l> {
    /// Appends it, with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut number = itoa::Buffer::new();
        out.extend_from_slice(number.format(self.at).as_bytes());
        out.extend_from_slice(if self.is_hit { b" hit " } else { b" miss " });
        out.extend_from_slice(number.format(self.octets).as_bytes());
        out.push(b' ');
        out.extend_from_slice(number.format(self.dated).as_bytes());
        out.push(b' ');
        let group = self.group.as_ref().map_or("-", |group| group.as_str());
        out.extend_from_slice(group.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.id.as_bytes());
        out.push(b'\n');
    }

    /// From a line without its end; none: it is no such line.
    #[must_use]
    pub fn parse(line: &'l [u8]) -> Option<Self> {
        let mut fields = line.split(|octet| *octet == b' ');
        let at = number(fields.next()?)?;
        let is_hit = match fields.next()? {
            b"hit" => true,
            b"miss" => false,
            _ => return None,
        };
        let (octets, dated) = (number(fields.next()?)?, number(fields.next()?)?);
        let group = match fields.next()? {
            b"-" => None,
            name => Some(GroupName::parse(name).ok()?),
        };
        let id = MessageId::parse(fields.next()?).ok()?;
        fields.next().is_none().then_some(Self {
            at,
            is_hit,
            octets,
            dated,
            group,
            id,
        })
    }
}

/// A number as it is written here: without anything in front of it.
fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = digits == b"0" || !digits.starts_with(b"0");
    let number = parse_number(digits).ok()?;
    is_plain.then_some(number.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for line in [
            "1767225600 hit 2345 1767220000 misc.test <1@t.example>",
            "0 miss 0 0 - <a@b>",
        ] {
            let parsed = AccessLine::parse(line.as_bytes()).unwrap();
            let mut out = Vec::new();
            parsed.write(&mut out);
            assert_eq!(out, format!("{line}\n").as_bytes());
        }
        for line in [
            "",
            "1 hit 2 3 misc.test",
            "1 hit 2 3 misc.test <1@t.example> more",
            "1 hot 2 3 misc.test <1@t.example>",
            "1 hit 02 3 misc.test <1@t.example>",
            "1 hit +2 3 misc.test <1@t.example>",
            "1 hit 2 3 misc..test <1@t.example>",
            "1 hit 2 3 misc.test 1@t.example",
            "1  hit 2 3 misc.test <1@t.example>",
            "99999999999999999999 hit 2 3 misc.test <1@t.example>",
        ] {
            assert_eq!(AccessLine::parse(line.as_bytes()), None, "{line}");
        }
    }
}
