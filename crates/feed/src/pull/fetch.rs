//! What is asked of a server that articles are fetched from: its groups, what is in one, and the articles.
//!
//! What it says is judged: a line that is none is passed over, an article that is too large is read and dropped.

use newsreel_net::client::{Client, ClientError, Fault, Remote, Socket};
use newsreel_wire::range::parse_number;
use newsreel_wire::{UnixTime, Wildmat, date};

/// Articles asked for at once.
pub(crate) const PIPELINED: usize = 32;
/// A larger article is dropped; no storage method takes one.
pub(crate) const ARTICLE_OCTETS_MAX: usize = 64 << 20;
/// No server has more groups.
pub const GROUPS_MAX: usize = 1_000_000;

/// A connection to it.
pub(crate) struct Upstream {
    client: Client<Socket>,
    /// The command that tells what is in a group.
    over: &'static [u8],
}

/// A group there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// What a server says to GROUP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Went {
    /// There it is.
    There(Group),
    /// There is no such group.
    Nowhere,
    /// Its numbers cannot be understood.
    Unclear,
}

/// An article there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) id: String,
}

/// What is in a part of a group.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// By number.
    pub(crate) rows: Vec<Row>,
    /// Lines that say of no article there what its number and its message-id are.
    pub(crate) unclear: u64,
}

/// How an article is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// By its number in the group.
    Number(u64),
    /// By its message-id.
    Id(String),
}

/// Message-ids that one NEWNEWS may list; where a server has more, its groups are looked at.
pub const NEWNEWS_MAX: usize = 200_000;

/// Whether an error is a word about this command alone, after which the connection can be gone on with.
pub(crate) const fn is_about_this(error: &ClientError) -> bool {
    matches!(error.fault, Fault::Refused { code, .. } if code != 400)
}

/// An article that was asked for.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// In wire form.
    Article(Vec<u8>),
    /// It is not there any more.
    Gone,
    /// The server cannot give it now.
    Later,
    /// It is larger than any we take.
    TooLarge,
    /// The connection ended before it came.
    Unasked,
}

impl Upstream {
    pub(crate) async fn connect(remote: &Remote) -> Result<Self, ClientError> {
        let client = Client::connect(remote).await?;
        let capabilities = client.capabilities();
        let is_old = capabilities.is_known() && !capabilities.has("OVER");
        Ok(Self {
            client,
            over: if is_old { b"XOVER" } else { b"OVER" },
        })
    }

    /// The groups there that match.
    pub(crate) async fn groups(&mut self, wildmat: &Wildmat) -> Result<Vec<Group>, ClientError> {
        const DOING: &str = "LIST ACTIVE";
        self.client.command(&[b"LIST", b"ACTIVE"])?;
        let code = self.client.reply(DOING).await?;
        if code != 215 {
            return Err(self.client.refused(DOING, code));
        }
        let mut groups = Vec::new();
        while let Some(line) = self.client.line(DOING).await? {
            if let Some(group) = listed(line)
                && wildmat.matches(&group.name)
                && groups.len() < GROUPS_MAX
            {
                groups.push(group);
            }
        }
        Ok(groups)
    }

    /// Goes to a group.
    pub(crate) async fn group(&mut self, name: &str) -> Result<Went, ClientError> {
        const DOING: &str = "GROUP";
        self.client.command(&[b"GROUP", name.as_bytes()])?;
        let code = self.client.reply(DOING).await?;
        match code {
            211 => {}
            411 => return Ok(Went::Nowhere),
            _ => return Err(self.client.refused(DOING, code)),
        }
        let text = String::from_utf8_lossy(self.client.text());
        let mut numbers = text.split_ascii_whitespace().map(number);
        let (count, low, high) = (numbers.next(), numbers.next(), numbers.next());
        Ok(match (count.flatten(), low.flatten(), high.flatten()) {
            (Some(0), _, _) => Went::There(Group {
                name: name.to_owned(),
                low: high.flatten().map_or(1, |high| high + 1),
                high: high.flatten().unwrap_or(0),
            }),
            (Some(_), Some(low), Some(high)) => Went::There(Group {
                name: name.to_owned(),
                low,
                high,
            }),
            _ => Went::Unclear,
        })
    }

    /// The first number between two that is in the group where we are, or the one behind them; none: the server does not say.
    pub(crate) async fn first_from(
        &mut self,
        group: &str,
        from: u64,
        to: u64,
    ) -> Result<Option<u64>, ClientError> {
        const DOING: &str = "LISTGROUP";
        let range = format!("{from}-{to}");
        self.client
            .command(&[b"LISTGROUP", group.as_bytes(), range.as_bytes()])?;
        let code = self.client.reply(DOING).await?;
        if code != 211 {
            return match self.client.refused(DOING, code) {
                error if is_about_this(&error) => Ok(None),
                error => Err(error),
            };
        }
        let mut first = to + 1;
        while let Some(line) = self.client.line(DOING).await? {
            let number = parse_number(line.trim_ascii()).map(|number| number.0);
            if let Ok(number) = number
                && (from..first).contains(&number)
            {
                first = number;
            }
        }
        Ok(Some(first))
    }

    /// What is in the group between two numbers, by number.
    pub(crate) async fn over(&mut self, from: u64, to: u64) -> Result<Rows, ClientError> {
        const DOING: &str = "OVER";
        let range = format!("{from}-{to}");
        let mut code = self.ask_over(&range).await?;
        if matches!(code, 500 | 501 | 503) && self.over == b"OVER" {
            self.over = b"XOVER";
            code = self.ask_over(&range).await?;
        }
        match code {
            224 => {}
            420 | 423 => return Ok(Rows::default()),
            _ => return Err(self.client.refused(DOING, code)),
        }
        let (mut rows, mut unclear) = (Vec::new(), 0);
        while let Some(line) = self.client.line(DOING).await? {
            match row(line).filter(|row| (from..=to).contains(&row.number)) {
                Some(row) => rows.push(row),
                None => unclear += 1,
            }
        }
        rows.sort_by_key(|row| row.number);
        rows.dedup_by_key(|row| row.number);
        Ok(Rows { rows, unclear })
    }

    async fn ask_over(&mut self, range: &str) -> Result<u16, ClientError> {
        self.client.command(&[self.over, range.as_bytes()])?;
        self.client.reply("OVER").await
    }

    /// Asks for articles of the group, at most [`PIPELINED`]; each is answered by [`Upstream::article`], in this order.
    pub(crate) async fn ask(&mut self, articles: &[Which]) -> Result<(), ClientError> {
        for which in articles {
            match which {
                Which::Number(number) => self
                    .client
                    .command(&[b"ARTICLE", number.to_string().as_bytes()])?,
                Which::Id(id) => self.client.command(&[b"ARTICLE", id.as_bytes()])?,
            }
        }
        self.client.send().await
    }

    /// The server's clock, as DATE says it; none: it does not say.
    pub(crate) async fn date(&mut self) -> Result<Option<UnixTime>, ClientError> {
        self.client.command(&[b"DATE"])?;
        let code = self.client.reply("DATE").await?;
        if code != 111 {
            return Ok(None);
        }
        let text = self.client.text().trim_ascii();
        let (day, time) = text.split_at_checked(8).unwrap_or_default();
        // Four digits of the year are there: the clock here decides nothing.
        Ok(date::parse_nntp(day, time, UnixTime(0)).ok())
    }

    /// The message-ids of what came to these groups since then; none: the server does not say, or there are too many.
    pub(crate) async fn newnews(
        &mut self,
        groups: &str,
        since: UnixTime,
    ) -> Result<Option<Vec<String>>, ClientError> {
        const DOING: &str = "NEWNEWS";
        let mut digits = Vec::new();
        date::print_nntp(since, &mut digits);
        let (day, time) = digits.split_at_checked(8).unwrap_or_default();
        self.client
            .command(&[b"NEWNEWS", groups.as_bytes(), day, time, b"GMT"])?;
        let code = self.client.reply(DOING).await?;
        if code != 230 {
            return match self.client.refused(DOING, code) {
                error if is_about_this(&error) => Ok(None),
                error => Err(error),
            };
        }
        let (mut ids, mut too_many) = (Vec::new(), false);
        while let Some(line) = self.client.line(DOING).await? {
            too_many |= ids.len() >= NEWNEWS_MAX;
            if let Ok(id) = std::str::from_utf8(line.trim_ascii())
                && !too_many
            {
                ids.push(id.to_owned());
            }
        }
        Ok((!too_many).then_some(ids))
    }

    /// The next article that was asked for.
    pub(crate) async fn article(&mut self) -> Result<Fetched, ClientError> {
        const DOING: &str = "ARTICLE";
        let code = self.client.reply(DOING).await?;
        match code {
            220 => {}
            420 | 423 | 430 => return Ok(Fetched::Gone),
            // One that is damaged there, or may not be had, keeps nobody from the others.
            _ => {
                let error = self.client.refused(DOING, code);
                return match is_about_this(&error) {
                    true => Ok(Fetched::Later),
                    false => Err(error),
                };
            }
        }
        let (mut wire, mut is_dropped) = (Vec::new(), false);
        loop {
            let piece = self.client.piece(DOING).await?;
            is_dropped |= wire.len() + piece.octets.len() > ARTICLE_OCTETS_MAX;
            match is_dropped {
                true => wire = Vec::new(),
                false => wire.extend_from_slice(piece.octets),
            }
            if piece.is_last {
                return Ok(match is_dropped {
                    true => Fetched::TooLarge,
                    false => Fetched::Article(wire),
                });
            }
        }
    }

    pub(crate) async fn quit(self) {
        self.client.quit().await;
    }
}

/// A number as servers may have it: one more is a number still.
fn number(word: &str) -> Option<u64> {
    parse_number(word.as_bytes()).ok().map(|number| number.0)
}

/// `name high low flag`.
fn listed(line: &[u8]) -> Option<Group> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let name = words.next()?.to_owned();
    let high = number(words.next()?)?;
    let low = number(words.next()?)?;
    Some(Group { name, low, high })
}

/// Number and message-id of an overview line.
fn row(line: &[u8]) -> Option<Row> {
    let mut fields = line.split(|octet| *octet == b'\t');
    let number = parse_number(fields.next()?).ok()?.0;
    let id = std::str::from_utf8(fields.nth(3)?).ok()?.to_owned();
    Some(Row { number, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let line = b"7\tsubject\tfrom\tdate\t<7@x>\t\t100\t1";
        let id = "<7@x>".to_owned();
        assert_eq!(row(line), Some(Row { number: 7, id }));
        for line in [
            &b""[..],
            b"x\ta\tb\tc\t<1@x>",
            b"7\ta\tb",
            b"7\ta\tb\tc\t\xff",
        ] {
            assert_eq!(row(line), None, "{line:?}");
        }
        let group = listed(b"misc.test 0000012 0000003 y").unwrap();
        assert_eq!((group.low, group.high), (3, 12));
        assert_eq!(listed(b"misc.test x y"), None);
    }
}
