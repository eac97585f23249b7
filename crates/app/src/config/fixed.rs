//! Limits that are no keys: what they are, and why nobody should have to set them.
//!
//! Each number comes from the constant that is in force, so the reference page cannot say another.

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
use crate::commands::cache::REQUESTS_MAX;
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
    rows.extend(of_the_cache());
    rows.extend(of_the_caches_desk());
    rows.extend(of_feeds());
    rows.extend(of_the_spool());
    rows.extend(of_checks());
    rows.extend(of_mails());
    rows.extend(of_buffers());
    rows.extend(of_articles_in_files());
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

fn of_the_caches_desk() -> Vec<Fixed> {
    vec![
        row(
            "Groups whose articles a caching server counts apart",
            format!("{} of them", newsreel_cache::GROUPS_COUNTED_MAX),
            "those of others are counted together; at most a megabyte or two of memory",
        ),
        row(
            "Wildmats that are pinned in a caching server",
            format!("{} of them", newsreel_cache::keep::PINS_MAX),
            "each is compared with each article of a segment that goes",
        ),
        row(
            "Numbers that are compared where `upstream.same_numbers_as` says that they are the same",
            format!(
                "{} of {} groups",
                newsreel_cache::SAMPLED_NUMBERS_MAX,
                newsreel_cache::SAMPLED_GROUPS_MAX
            ),
            "each is a round trip at the start; servers that number apart differ at once",
        ),
        row(
            "Lines of a caching server's access log that wait to be written",
            octets(newsreel_cache::ACCESS_WAITING_OCTETS_MAX as u64),
            "they are written every five seconds; of more it is told how many are lost",
        ),
        row(
            "Requests of a trace that `cache simulate` goes through",
            format!("{REQUESTS_MAX} requests"),
            "each takes 40 octets of memory",
        ),
    ]
}

fn of_the_cache() -> Vec<Fixed> {
    vec![
        row(
            "Message-ids that an upstream server does not have and a caching server remembers",
            format!(
                "{} of them for each server",
                newsreel_cache::MISSING_IDS_MAX
            ),
            "at most 250 octets each; those used least go, and are asked for again",
        ),
        row(
            "Posts that wait in a caching server",
            format!("{} posts", newsreel_cache::queue::QUEUED_POSTS_MAX),
            "beside `cache.posts_octets`; nobody would look through more, and each look at them takes them all",
        ),
        row(
            "Readers of one group that a caching server reads ahead for",
            format!("{} at different places", newsreel_cache::RUNS_MAX),
            "of more, those that read longest ago begin anew",
        ),
        row(
            "Overview lines that a caching server asks for in one round trip",
            format!("of {} numbers", newsreel_cache::LINES_AT_ONCE_MAX),
            "in windows that are told as they come; of a reader who has gone meanwhile no more is fetched",
        ),
        row(
            "Before a caching server connects upstream, where the last one was killed",
            format!("{} s", newsreel_cache::AFTER_A_KILL.as_secs()),
            "until upstream servers have seen that its connections are gone, these count towards what an account may have",
        ),
        row(
            "Segments of a caching server's articles",
            format!(
                "{}, and an eighth of `cache.octets`",
                octets(newsreel_cache::keep::SEGMENT_OCTETS_MAX)
            ),
            "the oldest goes whole, and that should not be much of all; no larger article is kept",
        ),
        row(
            "What a caching server's policy wants to stay",
            "half of `cache.octets`, and half of a segment that goes".to_owned(),
            "so that no more is written again than comes (decision 0026)",
        ),
        row(
            "Uses of articles that a caching server notes in its table at once",
            format!("those of {} articles", newsreel_cache::keep::USES_NOTED_MAX),
            "they are noted every five seconds; of more only the policy in memory knows",
        ),
        row(
            "An answer to a command that a caching server passes on",
            octets(newsreel_cache::FORWARDED_OCTETS_MAX as u64),
            "it is in memory as a whole; with a longer one the command fails",
        ),
        row(
            "Threads of a group whose older articles are fetched before anybody asks",
            format!("{} of them each time", newsreel_cache::THREADS_MAX),
            "at most 250 octets each while a group is looked at; of more the older articles do not come",
        ),
        row(
            "A line of an upstream server's overview or lists",
            octets(newsreel_net::client::BLOCK_LINE_OCTETS_MAX as u64),
            "no real one has a tenth of it; longer ones are left out",
        ),
        row(
            "Commands that wait for an upstream server's answers on one connection",
            format!("{} commands", newsreel_net::client::PIPELINED_MAX),
            "they fit into what any system buffers, so that sending them waits for nothing",
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

fn of_articles_in_files() -> Vec<Fixed> {
    vec![
        row(
            "Articles that `newsreel expire` lists one by one",
            format!("{} articles", newsreel_engine::EXPIRED_LISTED_MAX),
            "the others are counted, by rule",
        ),
        row(
            "Cards in one file of a catalogue (`md5spool`, `timehash`)",
            octets(newsreel_store::CATALOGUE_OCTETS),
            "some thousand articles; another file is made when it is full",
        ),
        row(
            "Articles whose files want the same name",
            format!("{} articles", newsreel_store::COLLISIONS_MAX),
            "each gets a `+` more; even two are rare among millions (a 44-bit hash)",
        ),
        row(
            "Files of withdrawn articles that cannot be removed and are tried again every minute, of one set",
            format!("{} files", newsreel_store::REFUSED_MAX),
            "the scrub meets the others, and all of them behind a restart",
        ),
        row(
            "Files without cards that a scrub keeps in mind to look at them again",
            format!("{} files", newsreel_engine::STRAYS_AT_ONCE),
            "behind so many it waits for the commit under way, looks again, and goes on",
        ),
        row(
            "Files with nothing in them that a scrub holds against all cards at once",
            format!("{} files", newsreel_engine::EMPTY_AT_ONCE),
            "of more that lie together the next scrub removes the others",
        ),
        row(
            "Symbolic links to directories that a scrub follows in one set",
            format!("{} links", newsreel_store::FOLLOWED_MAX),
            "a hierarchy or a layout has few; what lies behind others is not looked at",
        ),
        row(
            "Places of a catalogue in which no card can be read and that one scrub closes",
            format!("{} places", newsreel_store::HOLES_MAX),
            "the next scrub goes on behind them",
        ),
        row(
            "Places by which a scrub tells the sequences of lost cards",
            format!(
                "{} of the cards that are there, and of the log",
                newsreel_engine::CARDS_BESIDE_MAX
            ),
            "a megabyte each; of more some are left out, and the log is read again between two of them",
        ),
        row(
            "Files of a catalogue whose fronts a start looks at",
            format!("the {} newest", newsreel_store::FRONTS_MAX),
            "so that a start is short; what is wrong in older ones the scrub meets",
        ),
        row(
            "The name of an article's file",
            octets(newsreel_store::NAME_OCTETS_MAX as u64),
            "the system's longest path is 4096 octets, the directory of the set included",
        ),
    ]
}

fn of_buffers() -> Vec<Fixed> {
    vec![
        row(
            "Articles that `store attach` remembers",
            format!("{} of them", newsreel_engine::THOUGHT_OF_MAX),
            "so that its dry run tells copies among what is attached as known; some 100 MB, and copies of later ones count as taken",
        ),
        row(
            "Files without cards that `store attach` brings into the order of their numbers at once",
            format!("{} files", newsreel_store::ORDERED_AT_ONCE),
            "some tens of MB; before that they are in the order in which they were written",
        ),
        row(
            "Files without cards of which `store attach` knows the times at once",
            format!("{} files", newsreel_store::SORTED_AT_ONCE),
            "some 100 MB; a directory that has more is looked through once for each so many",
        ),
        row(
            "Symbolic links to directories behind which files without cards are looked for",
            format!("{} of them", newsreel_store::LINKS_MAX),
            "each place once, however many links lead there; those beyond it are not followed",
        ),
        row(
            "Message-ids that `store list` looks at to count articles",
            format!("{} of them", newsreel_index::CENSUS_ROWS_MAX),
            "6 MB of the history at most, whatever its size; of a larger one such a part is a fair sample, and the counts are estimates",
        ),
        row(
            "Articles that `store move` moves at once",
            octets(newsreel_engine::MOVED_AT_ONCE_OCTETS),
            "so much lies in both sets meanwhile; for each such piece a file of the overview is written anew",
        ),
        row(
            "Records of a buffer that the bitmap learns of at a checkpoint",
            format!("{} records", newsreel_store::STARTS_MAX),
            "the bitmap is a hint for tools; those beyond get no bit",
        ),
        row(
            "The register of buffers",
            octets(newsreel_store::REGISTER_OCTETS_MAX as u64),
            "a line for each of the 65536 ids there are",
        ),
        row(
            "Buffers that a running server gets by SIGHUP",
            format!("{} buffers", newsreel_store::StoreReader::ADDED_MAX),
            "their places are there from the start on, so that readers take no lock; the next start has as many again",
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

fn of_the_spool() -> Vec<Fixed> {
    vec![
        row(
            "A jump of the clock",
            format!("{}h", newsreel_engine::JUMP_S_MAX / 3600),
            "beyond it nothing is judged by age until `newsreel clock confirm`",
        ),
        row(
            "Articles that are cancelled and not overwritten yet",
            "as many as the buffers hold".to_owned(),
            "some 100 octets of memory each, until its buffer gets there; `control.cancels` says whose cancels are heeded",
        ),
        row(
            "What the views keep in memory while no checkpoint succeeds",
            format!(
                "{} times `index.history_rows_max` and `index.tail_bytes_max`",
                newsreel_engine::MEMORY_TIMES_MAX
            ),
            "beyond it articles are put off; half of it once a checkpoint has failed",
        ),
        row(
            "Files of a set of segments that are kept open",
            format!("{} files", newsreel_store::OPEN_SEGMENTS_MAX),
            "those used longest ago are closed, and opened again when they are read",
        ),
        row(
            "Files of a set of segments that a start compares with their names",
            format!("the {} newest", newsreel_store::SEGMENTS_COMPARED_MAX),
            "a page or two is read of each; every file is compared before it is removed",
        ),
        row(
            "A mail to a moderator that waits",
            octets(newsreel_mail::FILE_OCTETS_MAX as u64),
            "the largest article and its envelope; `moderation.queue_mails_max` bounds how many",
        ),
        row(
            "Articles put in order while views are rebuilt from the buffers",
            format!("{} articles", newsreel_engine::HELD_MAX),
            "more than commits that are under way have",
        ),
    ]
}

/// What is looked for in the log and the store, and how much of it at once.
fn of_checks() -> Vec<Fixed> {
    vec![
        row(
            "Gaps of the log that `check` keeps apart",
            format!("{} gaps", newsreel_engine::GAPS_MAX),
            "more become one",
        ),
        row(
            "Articles that moved from places that were overwritten, as `check` compares them",
            format!("{} articles", newsreel_engine::MOVED_MAX),
            "more are counted as not compared",
        ),
        row(
            "Damaged stretches of the log that are listed at a start",
            format!("{} stretches", newsreel_journal::DAMAGE_LISTED_MAX),
            "the others are counted",
        ),
        row(
            "Damaged places that a scrub keeps in mind and `store scrub` lists; as many empty ones, and stretches that buffers lack",
            format!("{} places", newsreel_engine::DAMAGED_KNOWN_MAX),
            "where there are more the disk is to be replaced; `store scrub` counts the others",
        ),
        row(
            "Places of articles that a scrub or a check compares a buffer with at once",
            format!("{} places", newsreel_engine::PLACES_AT_ONCE),
            "8 octets each; where a buffer has more articles the history is read once more",
        ),
        row(
            "The manifest of the views",
            octets(newsreel_index::MANIFEST_OCTETS_MAX as u64),
            "`index.runs_max` keeps the files it lists far below",
        ),
    ]
}
