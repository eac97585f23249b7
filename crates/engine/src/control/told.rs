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
/// to moderators are not among them.
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
    /// What each was about.
    about: Vec<IdHash>,
}

/// Whether there is a mail about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Made,
    /// There was one about it already: it came on several connections at once.
    Again,
    TooMany,
}

impl Told {
    /// Whether one more is made.
    fn take(&self, id: IdHash, now_ms: u64) -> Turn {
        let mut hour = self.0.lock();
        if now_ms.saturating_sub(hour.begun_ms) >= HOUR_MS {
            *hour = Hour {
                begun_ms: now_ms,
                about: Vec::new(),
            };
        }
        if hour.about.contains(&id) {
            return Turn::Again;
        }
        if hour.about.len() >= CONTROL_MAILS_PER_HOUR_MAX as usize {
            return Turn::TooMany;
        }
        hour.about.push(id);
        Turn::Made
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
    match shared
        .posts
        .told
        .take(shared.id_hash(offered), shared.now_ms())
    {
        Turn::Made => {}
        Turn::Again => return Ok(()),
        Turn::TooMany => {
            if let Some(more) = shared.may_say(|lines| &lines.not_mailed) {
                tracing::warn!(%id, more, "nobody is told of a control message by mail: there were too many in this hour");
            }
            return Ok(());
        }
    }
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
            waiting,
        )
        .into_bytes(),
        sender,
        to: mail_to,
    };
    drop.submit(&mail)
}

fn text(
    (sender, mail_to): (&str, &str),
    now: UnixTime,
    mail_id: &str,
    id: &str,
    message: &Message,
    waiting: &[GroupAsked],
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
    text
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
            turns.filter(|turn| *turn == Turn::Made).count()
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
        assert_eq!(told.take(id, HOUR_MS), Turn::Made);
        assert_eq!(told.take(id, HOUR_MS), Turn::Again);
        assert_eq!(told.take(IdHash([2; 16]), HOUR_MS), Turn::Made);
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
                waiting,
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
