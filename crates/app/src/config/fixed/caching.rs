//! Fixed limits of a server that caches.

use super::{Fixed, octets, row};
use crate::commands::cache::REQUESTS_MAX;

/// What upstream servers said that they do not have.
fn of_what_is_missing() -> [Fixed; 2] {
    [
        row(
            "Message-ids that an upstream server does not have and a caching server remembers",
            format!(
                "{} of them for each server",
                newsreel_cache::MISSING_IDS_MAX
            ),
            "at most 250 octets each; those used least go, and are asked for again",
        ),
        row(
            "Groups that an upstream server does not have and a caching server remembers",
            format!(
                "{} of them for each server",
                newsreel_cache::MISSING_GROUPS_MAX
            ),
            "whoever names more than that has them asked for again, in the place of those used least",
        ),
    ]
}

/// Posts that wait.
fn of_posts() -> [Fixed; 2] {
    [
        row(
            "Posts that wait in a caching server",
            format!("{} posts", newsreel_cache::queue::QUEUED_POSTS_MAX),
            "beside `cache.posts_octets`; nobody would look through more, and each look at them takes them all",
        ),
        row(
            "Servers that a post in a caching server waits for",
            format!("{} servers", newsreel_cache::queue::TARGETS_MAX),
            "a post for more is refused; so no more upstream servers may have `upstream.posting`",
        ),
    ]
}

pub(super) fn of_the_cache() -> Vec<Fixed> {
    let rest = [
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
            "All lines of an upstream server's answer: a list, or the overview of a range",
            octets(newsreel_net::client::LINES_OCTETS_MAX as u64),
            "some ten times the longest list of groups; of a longer one the connection is closed, and the answer is that the server cannot be asked",
        ),
        row(
            "Commands that wait for an upstream server's answers on one connection",
            format!("{} commands", newsreel_net::client::PIPELINED_MAX),
            "they fit into what any system buffers, so that sending them waits for nothing",
        ),
    ];
    let posts = of_posts();
    of_what_is_missing()
        .into_iter()
        .chain(posts)
        .chain(rest)
        .collect()
}

pub(super) fn of_the_caches_desk() -> Vec<Fixed> {
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
