//! Limits that are no keys: what they are, and why nobody should have to set them.
//!
//! Each number comes from the constant that is in force, so the reference page cannot say another.

mod caching;
mod stored;

use newsreel_host::LOG_LINES_MAX;
use newsreel_net::access::{
    FAILURES_KEPT_MAX, KNOWN_MAX, KNOWN_OF_ONE_MAX, PROGRAMS_AT_ONCE, TURN_WAIT_MAX,
};
use newsreel_service::posting::{HEADER_LINE_OCTETS_MAX, LIMITED_KEYS_MAX};
use newsreel_wire::nntp::line::COMMAND_OCTETS_MAX;
use newsreel_wire::wildmat::WILDMAT_PATTERNS_MAX;
use newsreel_wire::{
    ArticleNumber, BUFFER_NAME_OCTETS_MAX, GROUP_NAME_OCTETS_MAX, MESSAGE_ID_OCTETS_MAX,
};

use super::FILE_OCTETS_MAX;
use super::units::Unit;
use crate::commands::group::FILE_OCTETS_MAX as IMPORT_OCTETS_MAX;
use crate::control::server::{PROGRESS_LINES_MAX, STALL};
use crate::control::{REPLY_OCTETS_MAX, REQUEST_OCTETS_MAX};
use crate::server::logging::PATIENCE;
use crate::server::metrics::{
    CONNECTIONS_MAX as METRICS_CONNECTIONS_MAX, EXCHANGE, HEAD_OCTETS_MAX,
    LOOKS_MAX as FEED_LOOKS_MAX,
};

/// One limit: of what, how much, and why it is fixed.
pub(super) struct Fixed {
    pub(super) what: &'static str,
    pub(super) most: String,
    pub(super) why: &'static str,
}

/// All of them.
pub(super) fn fixed() -> Vec<Fixed> {
    let mut rows = of_articles_and_groups();
    rows.extend(of_group_changes());
    rows.extend(of_control_messages());
    rows.extend(of_filters());
    rows.extend(of_users());
    rows.extend(of_names_and_passwords());
    rows.extend(of_connections());
    rows.extend(of_the_server());
    rows.extend(of_figures());
    rows.extend(caching::of_the_cache());
    rows.extend(caching::of_the_caches_desk());
    rows.extend(of_feeds());
    rows.extend(stored::of_the_spool());
    rows.extend(stored::of_checks());
    rows.extend(of_mails());
    rows.extend(stored::of_buffers());
    rows.extend(stored::of_articles_in_files());
    rows
}

fn octets(number: u64) -> String {
    match Unit::Octets.print(number) {
        text if text == number.to_string() => format!("{text} octets"),
        text => text,
    }
}

const fn row(what: &'static str, most: String, why: &'static str) -> Fixed {
    Fixed { what, most, why }
}

fn of_articles_and_groups() -> Vec<Fixed> {
    vec![
        row(
            "A command line",
            octets(COMMAND_OCTETS_MAX as u64),
            "RFC 3977 section 3.1; an argument in it is no longer either",
        ),
        row(
            "A message-id",
            octets(MESSAGE_ID_OCTETS_MAX as u64),
            "RFC 3977 section 3.6",
        ),
        row(
            "A group's name",
            octets(GROUP_NAME_OCTETS_MAX as u64),
            "so that a command and a reply line can hold it",
        ),
        row(
            "An article number",
            ArticleNumber::RFC_MAX.0.to_string(),
            "RFC 3977 section 6; `engine.number_overflow` says what comes then",
        ),
        row(
            "Patterns of a wildmat",
            format!("{WILDMAT_PATTERNS_MAX} patterns"),
            "a reader's fits into a command line; this one is for wildmats of this file",
        ),
        row(
            "Path with our entry",
            octets(u16::MAX.into()),
            "the log counts it with 16 bits, and no real Path has a tenth of it",
        ),
        row(
            "A group's description, its creator",
            octets(newsreel_engine::GROUP_TEXT_OCTETS_MAX as u64),
            "a line of LIST stays readable",
        ),
        row(
            "An article",
            octets(newsreel_store::ARTICLE_OCTETS_MAX),
            "no storage method takes a larger one, so `articles.octets_max` goes no further; nor more than a quarter \
             of its buffer, so that making room for one leaves most others alive",
        ),
        row(
            "A line in the header block of a posted article",
            octets(HEADER_LINE_OCTETS_MAX as u64),
            "RFC 5322 section 2.1.1; those of relayed articles may be longer",
        ),
        row(
            "Users and networks whose posts are counted",
            format!("{LIMITED_KEYS_MAX} of them"),
            "so that nobody fills the memory from many addresses; beyond it those who posted longest ago begin anew",
        ),
        row(
            "A buffer's name",
            octets(BUFFER_NAME_OCTETS_MAX as u64),
            "tokens are said with it",
        ),
        row(
            "Sets",
            format!("{} sets", u8::MAX),
            "a token has 8 bits for its set",
        ),
        row(
            "Articles that `store attach` hands on at once",
            octets(newsreel_engine::ATTACHED_AT_ONCE_OCTETS as u64),
            "about as much as one commit holds",
        ),
    ]
}

fn of_group_changes() -> Vec<Fixed> {
    vec![row(
        "What is noted of when groups changed, from a stop to the next start",
        octets(newsreel_engine::CHANGES_OCTETS_MAX as u64),
        "a million groups and more; beyond it all count as changed when the server is started again",
    )]
}

fn of_control_messages() -> Vec<Fixed> {
    vec![
        row(
            "Locks in a Cancel-Lock, keys in a Cancel-Key",
            format!("{} of them", newsreel_service::cancel_lock::ELEMENTS_MAX),
            "real ones have up to four, and each key costs a hash; those behind are not looked at",
        ),
        row(
            "Lines of a checkgroups message",
            format!("{} lines", newsreel_engine::CHECKGROUPS_LINES_MAX),
            "no hierarchy has a tenth of it; one that has more asks for nothing",
        ),
        row(
            "What is remembered of control messages that were heeded",
            octets(newsreel_engine::HEEDED_OCTETS_MAX),
            "at most a sixteenth of `log.segment_octets`; some 6,000 groups, beside lists; it is told to the log again at each checkpoint, and beyond it what was heeded first of who has most is forgotten",
        ),
        row(
            "Lists of groups (checkgroups) that are remembered of them",
            format!(
                "{} lists, {} of one sender",
                newsreel_engine::HEEDED_LISTS_MAX,
                newsreel_engine::HEEDED_LISTS_OF_ONE_MAX
            ),
            "one for each sender and each choice of hierarchies; each message is held against them",
        ),
        row(
            "What is remembered of one list of groups",
            octets(newsreel_engine::HEEDED_RECORD_OCTETS_MAX as u64),
            "its hierarchies, its sender, and the rules for him; one that names more waits for approval, and can be approved up to 64 KiB and a thirty-second of `log.segment_octets`",
        ),
        row(
            "What `control list` names of a message that waits",
            format!("{} changes", newsreel_engine::ASKS_LISTED_MAX),
            "the rest is counted, up to 100 or `control.checkgroups_changes_max`, so that no flood fills memory or takes long; `control show` says all",
        ),
        row(
            "What `control show` and `control approve` name that is newer",
            format!("{} messages", newsreel_engine::NEWER_TOLD_MAX),
            "the oldest of them; `control list` lists the others when this one is done",
        ),
        row(
            "Mails about control messages in an hour",
            format!("{} mails", newsreel_engine::CONTROL_MAILS_PER_HOUR_MAX),
            "strangers cause them; what has no mail is in the log, and waits all the same: the last one says so, and the next how many there were",
        ),
        row(
            "Fields that a control message's signature is of",
            format!("{} fields", newsreel_engine::SIGNED_FIELDS_MAX),
            "real ones have six or seven; one with more counts as not signed",
        ),
        row(
            "The keyring of control messages, or a file of keys to import",
            octets(newsreel_engine::KEYRING_OCTETS_MAX as u64),
            "some thousand keys; it is read for each message that is verified",
        ),
        row(
            "Keys of the cancels of one target that a peer sent, and that wait for it",
            format!("{} keys", newsreel_engine::PENDING_KEYS_MAX),
            "so that nobody fills the table under one message-id; later ones are not looked at",
        ),
    ]
}

fn of_filters() -> Vec<Fixed> {
    vec![
        row(
            "Bodies, and senders, that an entry of `[[filter]]` remembers",
            format!("{} of them", newsreel_filter::REMEMBERED_MAX),
            "some 5 MiB; beyond it those that were not seen for longest are forgotten",
        ),
        row(
            "The shortest body that is counted as a copy",
            octets(newsreel_filter::BODY_OCTETS_MIN as u64),
            "without its blanks; many people write the same few words",
        ),
        row(
            "Articles that wait for a filter's program",
            format!("{} of them", newsreel_filter::WAITING_MAX),
            "a program that is so far behind judges them too late; what finds no room is not judged",
        ),
        row(
            "A line that a filter says",
            octets(newsreel_filter::ANSWER_OCTETS_MAX as u64),
            "a verdict and its text; a program that says more is started again",
        ),
        row(
            "The text of a filter's refusal, or of an upstream server's",
            octets(newsreel_service::TEXT_OCTETS_MAX as u64),
            "with code and message-id it fits a reply; what is longer is cut",
        ),
        row(
            "Different texts and classes that filters say, and different refusals of upstream servers",
            format!("{} of either", newsreel_service::TEXTS_MAX),
            "they are kept for the life of the server; beyond it refusals have a text of ours, and classes are not heeded",
        ),
    ]
}

fn of_users() -> Vec<Fixed> {
    vec![
        row(
            "Networks whose failed logins are counted",
            format!("{FAILURES_KEPT_MAX} of them"),
            "so that nobody fills the memory from many addresses; beyond it those that failed longest ago begin anew",
        ),
        row(
            "Addresses and users that have gone whose paces are kept",
            format!("{} of them", newsreel_net::PACES_KEPT_MAX),
            "until they are paid for, so that nobody is faster on a new connection; beyond it those that went first begin anew",
        ),
        row(
            "Networks that flood with connections and are shut out",
            format!(
                "{} of them for {} s, each after {} refusals in a second",
                newsreel_net::SHUT_MAX,
                newsreel_net::SHUT_FOR.as_secs(),
                newsreel_net::FLOOD_REFUSALS
            ),
            "the kernel drops what they begin, so that nobody else waits behind it; what is open stays",
        ),
        row(
            "How long a login waits while others of its network fail",
            format!("{} s", TURN_WAIT_MAX.as_secs()),
            "one of a network is judged at a time then, its pause included; who waits longer is refused, 400. As long again for \
             those of all networks; then 403",
        ),
        row(
            "Networks where somebody has logged in that are remembered",
            format!("{KNOWN_MAX} of them, {KNOWN_OF_ONE_MAX} of one user"),
            "logins from there go first where many wait; as many names with a print of their last password, in memory only; the oldest go",
        ),
        row(
            "Passwords compared at the same time",
            "one less than there are cores, but one".to_owned(),
            "each takes a core and 19 MiB for a moment, behind all else that the machine has to do; others wait, and each \
             connection waits for one",
        ),
        row(
            "Programs that know users (`login.program`) asked at the same time",
            format!("{PROGRAMS_AT_ONCE} of them"),
            "two of them for who has logged in before. Each takes a thread and what it is; others wait, also until a failed login may be answered, so that how long they wait tells \
             nothing of a name",
        ),
        row(
            "What a program that knows users may say",
            octets(crate::server::login_program::SAID_OCTETS_MAX as u64),
            "a name and its groups; one that says more lets nobody in",
        ),
    ]
}

fn of_names_and_passwords() -> Vec<Fixed> {
    vec![
        row(
            "Users of the built-in store",
            format!(
                "{} of a file",
                octets(newsreel_users::FILE_OCTETS_MAX as u64)
            ),
            "some 100,000; the file is read whole when it was changed, and kept in memory",
        ),
        row(
            "The name of a user",
            octets(newsreel_users::NAME_OCTETS_MAX as u64),
            "it stands in logs and configurations",
        ),
        row(
            "A password",
            octets(newsreel_users::PASSWORD_OCTETS_MAX as u64),
            "a command line can hold it",
        ),
        row(
            "A line in an exchange of AUTHINFO SASL",
            octets(newsreel_session::RESPONSE_OCTETS_MAX as u64),
            "twice what the longest name and password take in base64",
        ),
    ]
}

fn of_figures() -> Vec<Fixed> {
    vec![
        row(
            "Connections at the same time to the figures for Prometheus (`server.metrics`)",
            format!(
                "{METRICS_CONNECTIONS_MAX} connections, {} seconds each",
                EXCHANGE.as_secs()
            ),
            "others wait in the kernel; one program or two ask every few seconds",
        ),
        row(
            "The head of a request for them",
            octets(HEAD_OCTETS_MAX),
            "what is longer is cut off",
        ),
        row(
            "Articles of the log that are looked at for such a page, to say since when something waits for feeds",
            format!("{FEED_LOOKS_MAX} articles"),
            "each once for each feed; if none of them goes out, the first of them is told",
        ),
    ]
}

fn of_connections() -> Vec<Fixed> {
    vec![
        row(
            "What is still read from a connection that the server ends",
            format!(
                "{} in 2s",
                octets(newsreel_session::LINGER_OCTETS_MAX as u64)
            ),
            "it is thrown away; the time alone would be enough",
        ),
        row(
            "What is thrown away of a line that is too long or an article that is too large",
            format!(
                "64KiB in {}ms, of all connections from one address together",
                newsreel_session::DROPPING_PAUSE.as_millis()
            ),
            "who sends such things takes little of the processor from others",
        ),
    ]
}

fn of_the_server() -> Vec<Fixed> {
    vec![
        row(
            "A request to the control socket",
            octets(REQUEST_OCTETS_MAX),
            "only the server's own user and root may send one, and `group import` sends many small ones",
        ),
        row(
            "Lines of the log that wait for who reads it",
            format!("{LOG_LINES_MAX}"),
            "the server goes on, however slowly they are read: more lines are lost, and counted in `newsreel status`",
        ),
        row(
            "The time that a server which ends waits for who reads its log",
            format!("{} s", PATIENCE.as_secs()),
            "what is not taken then is lost",
        ),
        row(
            "The time until a request to the control socket is there, or a line of its answer taken",
            format!("{}s", STALL.as_secs()),
            "commands send theirs at once; an idle one gives its place (`server.control_connections_max`) back",
        ),
        row(
            "An answer of the control socket",
            octets(REPLY_OCTETS_MAX),
            "a list of a million groups; a command refuses more, whoever sits on the socket",
        ),
        row(
            "Progress of a request that waits for a slow client",
            format!("{PROGRESS_LINES_MAX} lines"),
            "a slow client misses some of the progress, never the answer",
        ),
        row(
            "A file that `group import` reads, a list that `article cancel -` does",
            octets(IMPORT_OCTETS_MAX as u64),
            "a list of all groups there are is below 10 MiB",
        ),
        row(
            "What LIST ACTIVE keeps for readers that take it slowly",
            "one list a connection".to_owned(),
            "parts that have not changed are shared by all; `session.write_stall_s` ends who takes nothing",
        ),
        row(
            "An article that `newsreel post`, `inews` and `rnews` read",
            octets(crate::posting::ARTICLE_OCTETS_MAX as u64),
            "beyond what people post; `newsreel bench feed --from` offers larger ones",
        ),
        row(
            "Problems that `check` lists",
            format!("{} problems", newsreel_engine::PROBLEMS_MAX),
            "the others are counted",
        ),
        row(
            "This file",
            octets(FILE_OCTETS_MAX as u64),
            "it is read before anything is known",
        ),
    ]
}

fn of_feeds() -> Vec<Fixed> {
    vec![
        row(
            "Articles kept in memory for several outgoing feeds",
            octets(newsreel_feed::KEPT_OCTETS_MAX as u64),
            "some seconds of a full feed; a feed that is further behind reads them from the store again",
        ),
        row(
            "Articles that a feed names because they were gone before they could be sent",
            format!("{} articles", newsreel_feed::GONE_NAMED_MAX),
            "the newest; the others are counted",
        ),
        row(
            "Connections that end at one article while others go through",
            format!("{} connections", newsreel_feed::BLAMED_MAX),
            "it is put off longer each time, twenty minutes in all; then it is counted as rejected, and the log names it. Fewer would \
             lose articles to a bad line",
        ),
        row(
            "Articles whose last word a feed remembers",
            format!("{} articles", newsreel_feed::REMEMBERED_MAX),
            "the newest, for `newsreel peer explain`: 40 octets each, and what the peer said where it rejected",
        ),
        row(
            "The part of the log that is searched for an article, to say where it stands with feeds",
            format!("{} sequences", newsreel_feed::SEARCHED_MAX),
            "some hundred thousand of the newest articles, in a second or less",
        ),
        row(
            "Articles of the log that are looked at to say how many wait for feeds",
            format!("{} articles", newsreel_feed::LOOKS_MAX),
            "each once for each feed, in a second or two; of more it is said that there are more",
        ),
        row(
            "Places that are kept of feeds that were taken out of the configuration",
            format!("{} feeds", newsreel_feed::KEPT_MAX),
            "more than any site has; of more the oldest are forgotten, and the log says what waited for them",
        ),
        row(
            "Groups of a server that articles are fetched from",
            format!("{} groups", newsreel_feed::GROUPS_MAX),
            "more than any server has; those beyond are not fetched",
        ),
        row(
            "Articles that one NEWNEWS to such a server may list",
            format!("{} articles", newsreel_feed::NEWNEWS_MAX),
            "a day of a large text feed; where there are more, its groups are looked at one by one",
        ),
        row(
            "A file of certificates, a key or a password for a peer or an upstream server",
            octets(newsreel_feed::SECRET_OCTETS_MAX.max(newsreel_cache::SECRET_OCTETS_MAX) as u64),
            "whole bundles of authorities are a quarter of it",
        ),
    ]
}

fn of_mails() -> Vec<Fixed> {
    vec![
        row(
            "Mails to moderators of which it is known that they were sent",
            format!("{} mails", newsreel_mail::SENT_KEPT_MAX),
            "a post that is one of them is refused as known; an older one is mailed again",
        ),
        row(
            "What a mail server says about one mail",
            octets(newsreel_mail::ANSWERS_OCTETS_MAX as u64),
            "a server that says more is left, and the mail is tried again",
        ),
    ]
}
