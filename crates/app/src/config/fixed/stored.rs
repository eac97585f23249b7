//! Fixed limits of what lies on disk: buffers, articles in files, the spool, and what looks through them.

use super::{Fixed, octets, row};

pub(super) fn of_buffers() -> Vec<Fixed> {
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

pub(super) fn of_articles_in_files() -> Vec<Fixed> {
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
            format!("{} articles", newsreel_store::LATER_MAX),
            "the newest has the name, each other one gets a `+` more; even two are rare among millions (a 44-bit hash)",
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

pub(super) fn of_the_spool() -> Vec<Fixed> {
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
pub(super) fn of_checks() -> Vec<Fixed> {
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
