//! Mails that tell an administrator of control messages that wait for approval.
//!
//! What a stranger wrote is never a field of such a mail and never ends one of its lines; nobody can have more of them sent than
//! [`CONTROL_MAILS_PER_HOUR_MAX`].

use std::fmt::Write as _;

use newsreel_host::process::shell_word;
use newsreel_service::posting::{Mail, MailRefused, mail_id};
use newsreel_wire::date::print_rfc5322;
use newsreel_wire::{IdHash, MessageId, UnixTime};
use parking_lot::Mutex;

use super::groups::Message;
use super::meaning::GroupAsked;
use crate::shared::Shared;

/// Mails about control messages in an hour, of all senders together: who reads them reads no more, and strangers cause them.  Those
/// to moderators are not among them.  The last one says so, and the next one how many had none.
pub const CONTROL_MAILS_PER_HOUR_MAX: u32 = 20;

/// Groups that a mail names, the rest is counted: a checkgroups may have thousands.
const GROUPS_TOLD_MAX: usize = 100;

const HOUR_MS: u64 = 3_600_000;

/// The mails of this hour.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Hour>);

#[derive(Debug, Default)]
struct Hour {
    begun_ms: u64,
    /// What each was about, and whether it was kept: what fails is tried again in its own place, so that no more wait than may be made.
    about: Vec<(IdHash, bool)>,
    /// How many had none since the last mail.
    untold: u32,
}

/// Whether there is a mail about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Made(Others),
    /// There was one about it already: it came on several connections at once.
    Again,
    TooMany,
}

/// What a mail has to say of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Others {
    /// So many had no mail before it.
    untold: u32,
    /// There is no more in this hour.
    is_last: bool,
}

impl Told {
    /// Whether one more is made.
    fn take(&self, id: IdHash, now_ms: u64) -> Turn {
        let mut hour = self.0.lock();
        if now_ms.saturating_sub(hour.begun_ms) >= HOUR_MS {
            (hour.begun_ms, hour.about) = (now_ms, Vec::new());
        }
        let known = hour.about.iter().position(|(about, _)| *about == id);
        let at = known.unwrap_or(hour.about.len());
        match hour.about.get_mut(at) {
            Some((_, true)) => return Turn::Again,
            Some((_, is_kept)) => *is_kept = true,
            None if at >= CONTROL_MAILS_PER_HOUR_MAX as usize => {
                hour.untold = hour.untold.saturating_add(1);
                return Turn::TooMany;
            }
            None => hour.about.push((id, true)),
        }
        Turn::Made(Others {
            untold: std::mem::take(&mut hour.untold),
            is_last: at + 1 == CONTROL_MAILS_PER_HOUR_MAX as usize,
        })
    }

    /// The mail about this was not kept, and may be made again.
    fn give_back(&self, id: &IdHash, others: Others) {
        let mut hour = self.0.lock();
        for (_, is_kept) in hour.about.iter_mut().filter(|(about, _)| about == id) {
            *is_kept = false;
        }
        hour.untold = hour.untold.saturating_add(others.untold);
    }
}

/// Mails what a message asks for, and waits for the disk; the message waits for approval all the same.
///
/// # Errors
/// When the mail was not kept, which another time may not be so.
pub(crate) fn tell(
    shared: &Shared,
    id: &str,
    message: &Message,
    waiting: &[GroupAsked],
) -> Result<(), MailRefused> {
    let mail_to = shared.policy.load().control.mail_to.clone();
    let (Some(drop), Ok(offered)) = (shared.posts.notices.get(), MessageId::parse(id.as_bytes()))
    else {
        if let Some(more) = shared.may_say(|lines| &lines.not_mailed) {
            tracing::error!(%id, more, "nobody is told of a control message: no mails can be sent");
        }
        return Ok(());
    };
    let hash = shared.id_hash(offered);
    let others = match shared.posts.told.take(hash, shared.now_ms()) {
        Turn::Made(others) => others,
        Turn::Again => return Ok(()),
        Turn::TooMany => {
            if let Some(more) = shared.may_say(|lines| &lines.not_mailed) {
                tracing::warn!(%id, more, "nobody is told of a control message by mail: there were too many in this hour");
            }
            return Ok(());
        }
    };
    let moderation = &shared.config.moderation;
    let sender = match moderation.sender.as_str() {
        "" => format!("usenet@{}", shared.path_identity),
        sender => sender.to_owned(),
    };
    let now = UnixTime(shared.clock.now().secs);
    let mail = Mail {
        id: offered.into(),
        text: text(
            (&sender, &mail_to),
            now,
            &mail_id(offered.as_bytes(), &mail_to, &shared.path_identity),
            id,
            message,
            (waiting, others),
        )
        .into_bytes(),
        sender,
        to: mail_to,
    };
    match drop.submit(&mail, None) {
        // A crash behind the mail has it made again.
        Ok(()) | Err(MailRefused::Again) => Ok(()),
        Err(why) => {
            shared.posts.told.give_back(&hash, others);
            Err(why)
        }
    }
}

fn text(
    (sender, mail_to): (&str, &str),
    now: UnixTime,
    mail_id: &str,
    id: &str,
    message: &Message,
    (waiting, others): (&[GroupAsked], Others),
) -> String {
    let verb = message.verb().name();
    let mut date = Vec::new();
    print_rfc5322(now, &mut date);
    let mut text = format!(
        "From: {sender}\r\nTo: {mail_to}\r\nSubject: a {verb} waits for approval\r\nDate: {}\r\nMessage-ID: {mail_id}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
         A {verb} waits for approval. Its sender, which anybody can write, is\r\n\r\n    {}\r\n\r\n\
         and it asks for this:\r\n\r\n",
        String::from_utf8_lossy(&date),
        plain(&message.sender)
    );
    for asked in waiting.iter().take(GROUPS_TOLD_MAX) {
        let line = match asked {
            GroupAsked::Make {
                name,
                status,
                description,
            } => format!("make {name} {status} {description}"),
            GroupAsked::Set {
                name,
                status,
                description,
            } => {
                let change = [status, description].map(|it| it.as_deref().unwrap_or_default());
                format!("change {name} {}", change.join(" "))
            }
            GroupAsked::Remove { name } => format!("remove {name}"),
        };
        let _ = write!(text, "    {}\r\n", plain(&line).trim_end());
    }
    let more = waiting.len().saturating_sub(GROUPS_TOLD_MAX);
    if more > 0 {
        let _ = write!(text, "    and {more} more\r\n");
    }
    // A stranger chose it, and who reads this gives it to a shell.
    let id = shell_word(id);
    let _ = write!(
        text,
        "\r\n    newsreel control show {id}\r\n\r\nsays whose signature it has, if any, and\r\n\r\n    \
         newsreel control approve {id}\r\n\r\ndoes it.\r\n"
    );
    others.say(&mut text);
    text
}

impl Others {
    /// So that nobody who reads these mails takes them for all that there is.
    fn say(self, text: &mut String) {
        if self.untold > 0 {
            let _ = write!(
                text,
                "\r\nBefore it {} came of which no mail tells: there were too many in an hour.\r\n",
                self.untold
            );
        }
        if self.is_last {
            text.push_str(
                "\r\nIt is the last such mail for up to an hour, whatever else comes.\r\n",
            );
        }
        if self != Self::default() {
            text.push_str("\r\n    newsreel control list\r\n\r\nhas all that waits.\r\n");
        }
    }
}

/// Without what could end a line.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::meaning::Meaning;

    #[test]
    fn an_hour_has_so_many() {
        let told = Told::default();
        let most = CONTROL_MAILS_PER_HOUR_MAX as usize;
        let id = |n: usize| IdHash([n as u8; 16]);
        let taken = |from: usize, now_ms: u64| {
            let turns = (from..from + most + 5).map(|n| told.take(id(n), now_ms));
            turns.filter(|turn| matches!(turn, Turn::Made(_))).count()
        };
        assert_eq!(taken(0, 5 * HOUR_MS), most);
        assert_eq!(taken(50, 6 * HOUR_MS - 1), 0);
        assert_eq!(taken(50, 6 * HOUR_MS), most);
        // A clock that was set back begins no hour anew.
        assert_eq!(taken(100, 0), 0);
    }

    /// One that came on six connections at once was told of in six mails.
    #[test]
    fn each_is_told_of_once() {
        let told = Told::default();
        let id = IdHash([1; 16]);
        let made = Turn::Made(Others::default());
        assert_eq!(told.take(id, HOUR_MS), made);
        assert_eq!(told.take(id, HOUR_MS), Turn::Again);
        assert_eq!(told.take(IdHash([2; 16]), HOUR_MS), made);
    }

    /// A flood of one sender used up the mails of an hour, and whoever read them did not know that there was more.
    #[test]
    fn the_last_mail_and_the_next_say_that_there_is_more() {
        let told = Told::default();
        let id = |n: u32| IdHash([n as u8; 16]);
        let most = CONTROL_MAILS_PER_HOUR_MAX;
        let others = |untold, is_last| Others { untold, is_last };
        for n in 1..=most {
            let turn = told.take(id(n), HOUR_MS);
            assert_eq!(turn, Turn::Made(others(0, n == most)), "{n}");
        }
        assert_eq!(told.take(id(100), HOUR_MS), Turn::TooMany);
        assert_eq!(told.take(id(101), HOUR_MS), Turn::TooMany);
        // One that was not kept is made again, and says the same.
        let next = || told.take(id(102), 2 * HOUR_MS);
        assert_eq!(next(), Turn::Made(others(2, false)));
        told.give_back(&id(102), others(2, false));
        assert_eq!(next(), Turn::Made(others(2, false)));
        assert_eq!(
            told.take(id(103), 2 * HOUR_MS),
            Turn::Made(Others::default())
        );
        let said = |others: Others| {
            let mut text = String::new();
            others.say(&mut text);
            text
        };
        assert_eq!(said(Others::default()), "");
        for others in [others(2, false), others(0, true)] {
            assert!(said(others).contains("    newsreel control list\r\n"));
        }
        assert!(said(others(2, true)).contains("Before it 2 came"));
    }

    #[test]
    fn what_a_stranger_wrote_ends_no_line() {
        let name = "alt.new".to_owned();
        let message = Message {
            sender: "a@b.example\r\nBcc: x@y.example".to_owned(),
            date: None,
            serial: None,
            meaning: Meaning::Rmgroup(name.clone()),
        };
        let asked = GroupAsked::Make {
            name,
            status: "y".to_owned(),
            description: "New.\r\n.\r\n".to_owned(),
        };
        let waiting = vec![asked; GROUPS_TOLD_MAX + 7];
        let now = UnixTime(1_700_000_000);
        let of = |id: &str, waiting: &[GroupAsked]| {
            text(
                ("usenet@n.example", "me@n.example"),
                now,
                &mail_id(id.as_bytes(), "me@n.example", "n.example"),
                id,
                &message,
                (waiting, Others::default()),
            )
        };
        // Whoever copied the command ran what a message-id said.
        assert!(of("<'$(id)'@a>", &[]).contains(r"control approve '<'\''$(id)'\''@a>'"));
        let text = of("<1@a>", &waiting);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .split("\r\n")
            .filter_map(|line| line.split(':').next())
            .collect();
        let expected = [
            "From",
            "To",
            "Subject",
            "Date",
            "Message-ID",
            "MIME-Version",
            "Content-Type",
            "Content-Transfer-Encoding",
        ];
        assert_eq!(names, expected);
        assert!(
            body.contains("\r\n    a@b.example  Bcc: x@y.example\r\n"),
            "{body}"
        );
        assert_eq!(
            body.matches("    make alt.new y New.  .\r\n").count(),
            GROUPS_TOLD_MAX
        );
        assert!(body.contains("    and 7 more\r\n"), "{body}");
        assert!(
            body.contains("newsreel control approve '<1@a>'\r\n"),
            "{body}"
        );
        assert!(!body.contains("\r\n.\r\n"));
    }
}
