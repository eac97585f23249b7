//! The list of a server's groups, as it was at one moment.
//!
//! Fetched in one round trip: LIST ACTIVE, and where more of groups is wanted LIST NEWSGROUPS and LIST ACTIVE.TIMES.  Lines that
//! are no good are left out, and of a list that is too long what is too much.  A group of which the server does not say when it was made
//! was made when it was first seen, but those of the first list.  Of a server with LIST ACTIVE.MODTIME
//! (docs/active-modtime.md) it is brought up to date by the lines that changed, which do not tell of groups that are gone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::client::{Client, ClientError};
use newsreel_service::GroupStatus;
use newsreel_wire::range::parse_number;
use newsreel_wire::{ArticleNumber, GroupName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// Octets of LIST ACTIVE in one piece.
const PIECE_OCTETS: usize = 64 << 10;

/// The longest description that is kept, octets.
const DESCRIPTION_OCTETS_MAX: usize = 512;

/// Of so many new groups at most it is asked what they are about; where there are more, the whole list is fetched.
const NEW_GROUPS_MAX: usize = 200;

/// The names that one command asks for have so many octets at most: a line of 512 has room for them.
const ARGUMENT_OCTETS_MAX: usize = 480;

/// The longest name of a group's maker that is kept, octets.
const CREATOR_OCTETS_MAX: usize = 256;

/// Octets of LIST ACTIVE that are told at once as they come.
const TOLD_OCTETS: usize = 8 << 10;

/// Takes LIST ACTIVE as it comes.
pub(crate) trait TakeList: Send {
    /// Some lines more, in wire form.
    fn lines(&mut self, lines: &[u8]);

    /// There are no more.
    fn is_whole(&mut self);

    /// Whether something was taken.
    fn has_begun(&self) -> bool;
}

/// What is wanted of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// What LIST ACTIVE says.
    Active,
    /// What groups are about, and when they were made, too.
    All,
}

/// Whether what groups are about, and when they were made, is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Details {
    /// Nobody asked for it.
    Unknown,
    /// As an older list had it.
    Older,
    /// As it is.
    There,
}

#[derive(Debug)]
pub(super) struct Listing {
    /// Shared with the list after it, if nothing has changed.
    pub(super) rows: Arc<BTreeMap<Box<str>, Row>>,
    /// The lines of LIST ACTIVE.
    pub(super) active: Vec<Bytes>,
    /// When it was taken; none: longer ago than the process lives.
    pub(super) taken: Option<Instant>,
    /// When the last one was taken that had been fetched whole.
    whole: Option<Instant>,
    /// From when on changes count, as the server's DATE said it; none: it does not tell them.
    moment: Option<Moment>,
    details: Details,
    /// Groups that it does not have, as it has as many as it may.
    pub(super) left_out: usize,
}

/// A time as DATE says it.
type Moment = [u8; 14];

/// What is listed of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) low: ArticleNumber,
    pub(super) high: ArticleNumber,
    pub(super) status: Box<str>,
    pub(super) created: UnixTime,
    pub(super) creator: Box<str>,
    pub(super) description: Box<str>,
}

impl Row {
    /// The same; what it is about, and when it was made, is as another says.
    fn with_details_of(self, other: &Self) -> Self {
        Self {
            created: other.created,
            creator: other.creator.clone(),
            description: other.description.clone(),
            ..self
        }
    }

    /// Who does not say when it was made lets the time stand for that at which it was first seen.
    const fn is_new(&mut self, now: UnixTime) {
        if self.created.0 == 0 {
            self.created = now;
        }
    }
}

/// What a status field says; one that nobody knows lets nothing be posted.
pub(super) fn status_of(text: &str) -> GroupStatus {
    GroupStatus::parse(text).unwrap_or(GroupStatus::NoPosting)
}

/// A line of LIST ACTIVE: the name, and the row.
pub(super) fn active_line(line: &[u8]) -> Option<(GroupName<'_>, Row)> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let name = GroupName::parse(words.next()?).ok()?;
    let (high, low) = (
        parse_number(words.next()?).ok()?,
        parse_number(words.next()?).ok()?,
    );
    let status = std::str::from_utf8(words.next()?).ok()?;
    let row = Row {
        // A low mark is never more than one above the high one.
        low: ArticleNumber(low.0.clamp(1, high.0 + 1)),
        high,
        status: status.into(),
        created: UnixTime(0),
        creator: "-".into(),
        description: "".into(),
    };
    Some((name, row))
}

/// Appends a line of LIST ACTIVE.
fn write_line(name: &str, row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    let mut digits = itoa::Buffer::new();
    for number in [row.high, row.low] {
        out.push(b' ');
        out.extend_from_slice(digits.format(number.0).as_bytes());
    }
    out.push(b' ');
    out.extend_from_slice(row.status.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn text_of(octets: &[u8], octets_max: usize) -> Box<str> {
    let text = String::from_utf8_lossy(octets);
    let mut ends = (0..=octets_max.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    let end = end.unwrap_or_default();
    text.get(..end).unwrap_or_default().into()
}

/// The name in front of a line, and what follows it and blanks.
fn named(line: &[u8]) -> Option<(&str, &[u8])> {
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    let (name, rest) = line.split_at_checked(end)?;
    Some((std::str::from_utf8(name).ok()?, rest.trim_ascii()))
}

/// Takes what DATE says.
async fn moment_of<Io>(client: &mut Client<Io>) -> Result<Option<Moment>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let code = client.reply("DATE").await?;
    let said = client.text().trim_ascii();
    let said = Some(said).filter(|said| code == 111 && said.iter().all(u8::is_ascii_digit));
    Ok(said.and_then(|said| said.try_into().ok()))
}

/// Whether a server tells which lines of its list have changed.
fn tells_changes<Io>(client: &Client<Io>) -> bool
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    client.capabilities().has_with("LIST", "ACTIVE.MODTIME")
}

/// The arguments that ask for some groups alone, each no longer than a command may have; names that are too long for one are in none.
pub(super) fn together<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names.filter(|name| name.len() <= ARGUMENT_OCTETS_MAX) {
        match all.last_mut() {
            Some(last) if last.len() + 1 + name.len() <= ARGUMENT_OCTETS_MAX => {
                last.push(',');
                last.push_str(name);
            }
            _ => all.push(name.to_owned()),
        }
    }
    all
}

/// Takes the lines of a list, if there is one.
async fn lines_of<Io>(
    client: &mut Client<Io>,
    doing: &'static str,
    mut take: impl FnMut(&[u8]),
) -> Result<Option<u16>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let code = client.reply(doing).await?;
    if code != 215 {
        return Ok(Some(code));
    }
    while let Some(line) = client.line(doing).await? {
        take(line);
    }
    Ok(None)
}

/// Puts the questions in the pipeline what groups are about, and when they were made.
fn ask_details<Io>(client: &mut Client<Io>) -> Result<(), ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    client.command(&[b"LIST", b"NEWSGROUPS"])?;
    client.command(&[b"LIST", b"ACTIVE.TIMES"])
}

/// Takes what groups are about, and when they were made.  A server that has no such lists has told all it can; one that refuses to say what
/// groups are about for another reason may say it later, and that it does not say when they were made hides nothing.
async fn described<Io>(
    client: &mut Client<Io>,
    rows: &mut BTreeMap<Box<str>, Row>,
) -> Result<Option<ClientError>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let describing = lines_of(client, "LIST NEWSGROUPS", |line| {
        if let Some((name, rest)) = named(line)
            && let Some(row) = rows.get_mut(name)
        {
            row.description = text_of(rest, DESCRIPTION_OCTETS_MAX);
        }
    });
    let refused = describing.await?;
    let refused = refused.filter(|code| !matches!(code, 500..=503));
    let refused = refused.map(|code| client.refused("LIST NEWSGROUPS", code));
    let dating = lines_of(client, "LIST ACTIVE.TIMES", |line| {
        if let Some((name, rest)) = named(line)
            && let Some(row) = rows.get_mut(name)
        {
            let end = rest.iter().position(u8::is_ascii_whitespace);
            let (time, creator) = rest.split_at(end.unwrap_or(rest.len()));
            if let Ok(time) = parse_number(time) {
                row.created = UnixTime(time.0);
            }
            let creator = creator.trim_ascii();
            if !creator.is_empty() && !creator.contains(&b' ') {
                row.creator = text_of(creator, CREATOR_OCTETS_MAX);
            }
        }
    });
    dating.await?;
    Ok(refused)
}

impl Listing {
    /// Asks for it; `told` takes its lines as they come.
    pub(super) async fn fetch<Io>(
        client: &mut Client<Io>,
        groups_max: usize,
        wants: Wants,
        mut told: Option<&mut dyn TakeList>,
    ) -> Result<Self, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        let tells_changes = tells_changes(client);
        if tells_changes {
            client.command(&[b"DATE"])?;
        }
        client.command(&[b"LIST", b"ACTIVE"])?;
        if wants == Wants::All {
            ask_details(client)?;
        }
        let moment = match tells_changes {
            true => moment_of(client).await?,
            false => None,
        };
        let (mut rows, mut lines, mut left_out) = (Vec::new(), Vec::new(), 0);
        let refused = lines_of(client, "LIST ACTIVE", |line| {
            let Some((name, row)) = active_line(line) else {
                return;
            };
            if rows.len() >= groups_max {
                left_out += 1;
                return;
            }
            if let Some(told) = &mut told {
                write_line(name.as_str(), &row, &mut lines);
                if lines.len() >= TOLD_OCTETS {
                    told.lines(&lines);
                    lines.clear();
                }
            }
            rows.push((Box::from(name.as_str()), row));
        });
        if let Some(code) = refused.await? {
            return Err(client.refused("LIST ACTIVE", code));
        }
        if let Some(told) = told {
            told.lines(&lines);
            told.is_whole();
        }
        let mut rows: BTreeMap<_, _> = rows.into_iter().collect();
        let mut details = Details::Unknown;
        if wants == Wants::All && described(client, &mut rows).await?.is_none() {
            details = Details::There;
        }
        let whole = Some(Instant::now());
        Ok(Self {
            moment,
            whole,
            details,
            left_out,
            ..Self::of(rows, whole)
        })
    }

    /// Asks what its groups are about, and when they were made.
    pub(super) async fn describe<Io>(&self, client: &mut Client<Io>) -> Result<Self, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        ask_details(client)?;
        let mut rows = (*self.rows).clone();
        for row in rows.values_mut() {
            row.description = "".into();
        }
        if let Some(error) = described(client, &mut rows).await? {
            return Err(error);
        }
        Ok(Self {
            rows: Arc::new(rows),
            active: self.active.clone(),
            details: Details::There,
            ..*self
        })
    }

    /// The same, which was fetched whole, behind an older one: what it does not know of groups is as that has it.
    pub(super) fn behind(self, older: &Self, (now, groups_max): (UnixTime, usize)) -> Self {
        let is_known = self.details == Details::There;
        let was_known = older.details != Details::Unknown;
        let tells_new = older.tells_new(groups_max);
        let mut rows = Arc::unwrap_or_clone(self.rows);
        for (name, row) in &mut rows {
            match older.rows.get(name) {
                Some(old) => {
                    if row.created.0 == 0 {
                        (row.created, row.creator) = (old.created, old.creator.clone());
                    }
                    if !is_known && was_known {
                        row.description.clone_from(&old.description);
                    }
                }
                None if tells_new => row.is_new(now),
                None => {}
            }
        }
        let details = match (is_known, was_known) {
            (true, _) => Details::There,
            (false, true) => Details::Older,
            (false, false) => Details::Unknown,
        };
        Self {
            rows: Arc::new(rows),
            details,
            ..self
        }
    }

    /// Whether a group that it does not have was not there: it is neither empty nor as long as it may be.
    fn tells_new(&self, groups_max: usize) -> bool {
        (1..groups_max).contains(&self.rows.len())
    }

    /// Whether all that is wanted is in it.
    pub(super) fn has(&self, wants: Wants) -> bool {
        wants == Wants::Active || self.details == Details::There
    }

    /// ... or was in an older one.
    pub(super) fn had(&self, wants: Wants) -> bool {
        wants == Wants::Active || self.details != Details::Unknown
    }

    /// Asks for what has changed since this one; none: the whole has to be asked for.
    pub(super) async fn fetch_changes<Io>(
        &self,
        client: &mut Client<Io>,
        (now, groups_max): (UnixTime, usize),
    ) -> Result<Option<Self>, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        const DOING: &str = "LIST ACTIVE.MODTIME";
        let Some(since) = self.moment.filter(|_| tells_changes(client)) else {
            return Ok(None);
        };
        client.command(&[b"DATE"])?;
        client.command(&[b"LIST", b"ACTIVE.MODTIME", &since])?;
        let moment = moment_of(client).await?;
        let (mut changed, mut new) = (BTreeMap::new(), BTreeMap::<Box<str>, Row>::new());
        let mut left_out = 0;
        let refused = lines_of(client, DOING, |line| {
            let Some((name, row)) = active_line(line) else {
                return;
            };
            match self.rows.get(name.as_str()) {
                Some(before) => {
                    let row = row.with_details_of(before);
                    if row != *before {
                        changed.insert(name.as_str().into(), row);
                    }
                }
                None if self.rows.len() + new.len() < groups_max => {
                    new.insert(name.as_str().into(), row);
                }
                None => left_out += 1,
            }
        });
        if refused.await?.is_some() || new.len() > NEW_GROUPS_MAX {
            return Ok(None);
        }
        let mut details = self.details;
        let asked = new.keys().filter(|_| self.details == Details::There);
        for names in together(asked.map(|name| &**name)) {
            client.command(&[b"LIST", b"NEWSGROUPS", names.as_bytes()])?;
            client.command(&[b"LIST", b"ACTIVE.TIMES", names.as_bytes()])?;
            if described(client, &mut new).await?.is_some() {
                details = Details::Older;
            }
        }
        if self.tells_new(groups_max) {
            new.values_mut().for_each(|row| row.is_new(now));
        }
        let taken = Some(Instant::now());
        let listing = if changed.is_empty() && new.is_empty() {
            Self {
                rows: Arc::clone(&self.rows),
                active: self.active.clone(),
                ..Self::of(BTreeMap::new(), taken)
            }
        } else {
            let mut rows = (*self.rows).clone();
            rows.extend(changed);
            rows.extend(new);
            Self::of(rows, taken)
        };
        Ok(Some(Self {
            moment,
            whole: self.whole,
            details,
            left_out: left_out.max(self.left_out),
            ..listing
        }))
    }

    fn of(rows: BTreeMap<Box<str>, Row>, taken: Option<Instant>) -> Self {
        Self {
            active: active_of(&rows),
            rows: Arc::new(rows),
            taken,
            whole: None,
            moment: None,
            details: Details::Unknown,
            left_out: 0,
        }
    }

    /// Whether it may be brought up to date, and need not be fetched whole, as that was done not as long ago as this.
    pub(super) fn may_be_updated(&self, age: Duration) -> bool {
        self.moment.is_some() && self.whole.is_some_and(|whole| whole.elapsed() < age)
    }

    /// Whether nothing in it differs from another.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows)
    }

    /// Whether it was taken not as long ago as this.
    pub(super) fn is_younger(&self, age: Duration) -> bool {
        self.taken.is_some_and(|taken| taken.elapsed() < age)
    }

    /// As it is kept over a restart: a line for each group.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = String::new();
        for (name, row) in &*self.rows {
            let Row {
                low,
                high,
                status,
                created,
                creator,
                description,
            } = row;
            // A `String` takes everything.
            let _ = writeln!(
                out,
                "{name} {high} {low} {status} {created} {creator} {description}",
                created = created.0
            );
        }
        out.into_bytes()
    }

    /// From what was kept, as old as can be; none: it is no such thing.
    pub(super) fn decode(octets: &[u8], groups_max: usize) -> Option<Self> {
        let text = std::str::from_utf8(octets).ok()?;
        let mut rows = BTreeMap::new();
        for line in text.lines().take(groups_max) {
            let (name, row) = active_line(line.as_bytes())?;
            let mut rest = line.splitn(7, ' ').skip(4);
            let row = Row {
                created: UnixTime(rest.next()?.parse().ok()?),
                creator: rest.next()?.into(),
                description: rest.next()?.into(),
                ..row
            };
            rows.insert(name.as_str().into(), row);
        }
        // When it was made may be when it was first seen.
        let is_detailed = |row: &Row| &*row.creator != "-" || !row.description.is_empty();
        let details = match rows.values().any(is_detailed) {
            true => Details::Older,
            false => Details::Unknown,
        };
        Some(Self {
            details,
            ..Self::of(rows, None)
        })
    }

    /// The groups of several lists, each from the one that it is taken from.
    pub(super) fn merged<'l>(
        parts: impl Iterator<Item = (&'l Arc<Self>, usize)> + Clone,
        is_taken: impl Fn(usize, &str) -> bool,
        groups_max: usize,
    ) -> Self {
        // Least of all first.
        let all = parts.clone().map(|(part, _)| part.details);
        let details = all.min_by_key(|details| *details as u8);
        let rows = parts.flat_map(|(part, at)| part.rows.iter().map(move |row| (at, row)));
        let rows = rows.filter(|(at, (name, _))| is_taken(*at, name));
        let mut rows = rows.map(|(_, (name, row))| (name.clone(), row.clone()));
        let taken = rows.by_ref().take(groups_max).collect();
        Self {
            details: details.unwrap_or(Details::Unknown),
            left_out: rows.count(),
            ..Self::of(taken, Some(Instant::now()))
        }
    }
}

/// The lines of LIST ACTIVE, in pieces.
fn active_of(rows: &BTreeMap<Box<str>, Row>) -> Vec<Bytes> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    for (name, row) in rows {
        write_line(name, row, &mut piece);
        if piece.len() >= PIECE_OCTETS {
            pieces.push(std::mem::take(&mut piece).into());
        }
    }
    pieces.push(piece.into());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_kept_is_the_list() {
        let row = |text: &str| active_line(text.as_bytes()).unwrap().1;
        let described = Row {
            created: UnixTime(77),
            creator: "me@t.example".into(),
            description: "What  is said \u{e9} of it".into(),
            ..row("a 5 2 m")
        };
        let rows = [
            ("a.b".into(), described),
            ("c.d".into(), row("c.d 0 1 =a.b")),
        ];
        let rows = BTreeMap::from(rows);
        let listing = Listing::of(rows, Some(Instant::now()));
        let kept = Listing::decode(&listing.encode(), 9).unwrap();
        assert_eq!((&kept.rows, &kept.active), (&listing.rows, &listing.active));
        assert!(!kept.is_younger(Duration::MAX));
        assert!(
            !kept.may_be_updated(Duration::MAX),
            "nobody knows since when"
        );
        assert_eq!(Listing::decode(&listing.encode(), 1).unwrap().rows.len(), 1);
        for bad in ["a.b 5 2 m 77 me", "a..b 5 2 m 77 me x", "a.b 5 2 m x me x"] {
            assert!(Listing::decode(bad.as_bytes(), 9).is_none(), "{bad}");
        }
    }

    #[test]
    fn groups_that_are_too_many_are_counted() {
        let part = |names: &[&str]| {
            let row = |name: &&str| (Box::from(*name), active_line(b"a 5 2 m").unwrap().1);
            Arc::new(Listing::of(names.iter().map(row).collect(), None))
        };
        let parts = [part(&["a.b", "c.d"]), part(&["e.f", "g.h", "i.j"])];
        for (groups_max, left_out) in [(5, 0), (3, 2)] {
            let merged = Listing::merged(parts.iter().zip(0..), |_, _| true, groups_max);
            assert_eq!((merged.rows.len(), merged.left_out), (groups_max, left_out));
        }
    }

    #[test]
    fn names_are_asked_for_together_as_far_as_a_line_goes() {
        let long = [
            "a".repeat(240),
            "b".repeat(239),
            "c".repeat(481),
            "d".repeat(480),
        ];
        let names = ["x.y", "x.z"]
            .into_iter()
            .chain(long.iter().map(String::as_str));
        let lengths = |names| together(names).iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(together(["x.y", "x.z"].into_iter()), ["x.y,x.z"]);
        assert_eq!(
            lengths(Box::new(names) as Box<dyn Iterator<Item = &str>>),
            [248, 239, 480]
        );
    }

    #[test]
    fn lines_of_the_list_are_judged() {
        let line = |text: &str| {
            let read = active_line(text.as_bytes());
            read.map(|(name, row)| {
                let status = status_of(&row.status);
                format!("{} {} {} {status:?}", name.as_str(), row.high, row.low)
            })
        };
        let ok = |text: &str| Some(text.to_owned());
        assert_eq!(
            line("misc.test 0000000005 0000000002 y"),
            ok("misc.test 5 2 Open")
        );
        assert_eq!(line("misc.test 0 1 m"), ok("misc.test 0 1 Moderated"));
        assert_eq!(line("misc.test 0 0 =a.b"), ok("misc.test 0 1 Alias"));
        assert_eq!(line("misc.test 5 99 ?"), ok("misc.test 5 6 NoPosting"));
        for bad in [
            "",
            "misc.test",
            "misc.test 1 1",
            "misc..test 1 1 y",
            "a.b x 1 y",
        ] {
            assert_eq!(line(bad), None, "{bad}");
        }
        assert_eq!(&*text_of("a\u{e9}".as_bytes(), 2), "a");
    }
}
