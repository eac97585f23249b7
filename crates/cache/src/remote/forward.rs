//! Commands that are none of ours, carried out by a server elsewhere (a feature of NNTPCACHE): those that the configuration names.
//!
//! The answer is passed on as it is; nothing of it is kept, and no more of it is taken than [`FORWARDED_OCTETS_MAX`].  On a connection
//! on which somebody else has selected a group no command goes that has none: it would be answered for that one.

use newsreel_net::client::{Client, ClientError, Connect, Lent};
use newsreel_service::ServiceError;
use newsreel_wire::GroupName;
use tokio::io::{AsyncRead, AsyncWrite};

use super::RServer;
use super::ask::{NO_ANSWER, is_stale};
use super::numbers::marks_of;
use super::one::One;

/// The longest answer to a command that is passed on, octets.
pub const FORWARDED_OCTETS_MAX: usize = 1 << 20;

/// What is said in errors.
const DOING: &str = "a command that is passed on";

/// Answers that are followed by a block (RFC 3977 section 3.2, RFC 2980), but for 211, which LISTGROUP alone has so.
const BLOCKS: [u16; 12] = [100, 101, 215, 218, 220, 221, 222, 224, 225, 230, 231, 282];

/// An answer that is one line whatever the command (RFC 3977 section 6.2.4; XPATH has it); refusals are, too.
const ONE_LINE: u16 = 223;

/// What is said where the group that somebody has selected is there no more.
const NO_SUCH_GROUP: &[u8] = b"411 No such group\r\n";

/// These change the connection, or are followed by data: they are never passed on.
const NEVER: [&str; 5] = ["SLAVE", "XFEATURE", "XBATCH", "XREPLIC", "XZVER"];

/// A command that is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// Its verb, large letters.
    pub verb: Box<str>,
    /// Answers that are followed by a block, beside the usual ones.
    pub blocks: Vec<u16>,
}

impl Forwarded {
    /// From a line of the configuration: the verb, and behind it codes of answers that are followed by a block.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let verb = words.next().unwrap_or_default().to_ascii_uppercase();
        let is_verb = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
        if !(3..=15).contains(&verb.len()) || !verb.bytes().all(is_verb) {
            return Err(format!(
                "{text:?} begins with no command: give its verb, as in \"XPATH\""
            ));
        }
        if NEVER.contains(&&*verb) {
            return Err(format!(
                "{verb} changes the connection, and is not passed on: take it out"
            ));
        }
        let code = |word: &str| word.parse().ok().filter(|code| (100..300).contains(code));
        let blocks: Option<Vec<u16>> = words.map(code).collect();
        let blocks = blocks.ok_or_else(|| {
            format!("{text:?}: behind the verb stand codes of answers that are followed by a block, from 100 to 299, as in \"XTHREAD 288\"")
        })?;
        let verb = verb.into();
        Ok(Self { verb, blocks })
    }

    fn has_block(&self, code: u16) -> bool {
        BLOCKS.contains(&code) || self.blocks.contains(&code)
    }
}

/// Asks it on a connection; appends the whole answer.  Whether another may use the connection: a block may come behind a code
/// that nobody here knows, and would be the answer to whatever is asked next.
async fn answered<Io>(
    client: &mut Client<Io>,
    forwarded: &Forwarded,
    (words, group): (&[&[u8]], Option<GroupName<'_>>),
    out: &mut Vec<u8>,
) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(group) = group {
        client.command(&[b"GROUP", group.as_str().as_bytes()])?;
        // Not in one round trip: where it is gone the command would be answered for what somebody else has selected.
        if marks_of(client).await?.is_none() {
            out.extend_from_slice(NO_SUCH_GROUP);
            return Ok(true);
        }
    }
    client.command(words)?;
    let code = client.reply(DOING).await?;
    // The first two are no answers, a third would have us send something, and the others are between us and that server.
    if matches!(code, 102..=199 | 205 | 300..=400 | 480 | 483) {
        return Err(client.refused(DOING, code));
    }
    let begun = out.len();
    out.extend_from_slice(format!("{code} ").as_bytes());
    out.extend_from_slice(client.text());
    out.extend_from_slice(b"\r\n");
    if forwarded.has_block(code) {
        let octets_max = begun + FORWARDED_OCTETS_MAX;
        client.block(DOING, octets_max, out).await?;
        return Ok(true);
    }
    Ok(code == ONE_LINE || code >= 400)
}

impl<C: Connect> One<C> {
    /// A connection on which no other group is selected.
    async fn lend_for(&self, group: Option<GroupName<'_>>) -> Result<Lent<C>, ServiceError> {
        loop {
            let lent = self.lend().await?;
            if group.is_some() || !lent.has_selected() {
                return Ok(lent);
            }
            // It is closed; a new one has selected nothing.
        }
    }
}

impl<C: Connect> RServer<C> {
    /// Which of the commands that are passed on has this verb.
    pub(super) fn forwarded(&self, verb: &[u8]) -> Option<&Forwarded> {
        let mut all = self.common.settings.forwarded.iter();
        all.find(|it| it.verb.as_bytes().eq_ignore_ascii_case(verb))
    }

    /// Has a command carried out where the numbers of a group come from, or by the first server; appends the answer.
    pub(super) async fn forward_to_one(
        &self,
        words: &[&[u8]],
        group: Option<GroupName<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        let Some(forwarded) = self.forwarded(words.first().copied().unwrap_or_default()) else {
            return Ok(false);
        };
        let one = match group {
            Some(group) => self.numbering(group.as_str()),
            None => self.ones.first(),
        };
        let (one, begun) = (one.ok_or(NO_ANSWER)?, out.len());
        let mut is_again = false;
        loop {
            out.truncate(begun);
            let mut client = one.lend_for(group).await?;
            match answered(&mut client, forwarded, (words, group), out).await {
                Ok(is_free) => {
                    if is_free {
                        client.give_back();
                    }
                    return Ok(true);
                }
                Err(error) if !is_again && is_stale(&error) => is_again = true,
                Err(error) => {
                    out.truncate(begun);
                    return Err(one.failed(&error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_configuration_is_judged() {
        let parse = |text: &str| Forwarded::parse(text).map(|it| (it.verb.to_string(), it.blocks));
        assert_eq!(parse("xpath"), Ok(("XPATH".to_owned(), vec![])));
        assert_eq!(
            parse("XTHREAD 288 289"),
            Ok(("XTHREAD".to_owned(), vec![288, 289]))
        );
        for (bad, why) in [
            ("", "no command"),
            ("X", "no command"),
            ("A\u{e9}BC", "no command"),
            ("XFEATURE", "changes the connection"),
            ("XPATH 9", "from 100 to 299"),
            ("XPATH 340", "from 100 to 299"),
            ("XPATH x", "from 100 to 299"),
        ] {
            assert!(parse(bad).is_err_and(|told| told.contains(why)), "{bad}");
        }
    }
}
