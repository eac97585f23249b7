//! The least and the most that every number of the configuration may be.
//!
//! A number that is not listed here cannot be set: a test demands a row for each.

use std::ops::RangeInclusive;

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
const TIB: i64 = 1 << 40;
/// No storage method takes a larger article, and ours has Path and Xref besides.
const ARTICLE_OCTETS_MAX: i64 = newsreel_store::ARTICLE_OCTETS_MAX as i64 - MIB;
const DAY_S: i64 = 86_400;
const YEAR_S: i64 = 365 * DAY_S;

/// Keys with their limits.
pub(super) const LIMITS: &[(&str, RangeInclusive<i64>)] = &[
    ("server.threads", 0..=1024),
    ("server.waiting_threads_max", 1..=4096),
    ("server.control_connections_max", 1..=1024),
    ("listen.connections_max", 1..=1_000_000),
    ("listen.connections_per_address_max", 1..=1_000_000),
    ("listen.backlog", 1..=65_535),
    ("listen.keepalive_s", 1..=DAY_S),
    ("listen.drain_s", 0..=3600),
    ("tls.handshake_s", 1..=3600),
    ("session.idle_s", 1..=7 * DAY_S),
    ("session.command_s", 1..=DAY_S),
    ("session.article_stall_s", 1..=DAY_S),
    ("session.article_s", 1..=7 * DAY_S),
    ("session.write_stall_s", 1..=DAY_S),
    ("session.bad_commands_max", 1..=1_000_000),
    ("session.article_bytes_max", KIB..=ARTICLE_OCTETS_MAX),
    ("session.pipeline_replies_max", 1..=1 << 20),
    ("session.pipeline_bytes_max", 64 * KIB..=16 * GIB),
    ("session.large_articles_bytes_max", MIB..=TIB),
    ("session.compressed_connections_max", 0..=1 << 20),
    ("session.input_chunk_bytes", 4 * KIB..=16 * MIB),
    ("session.reply_chunk_bytes", KIB..=MIB),
    ("access.octets_per_s_max", 0..=TIB),
    ("access.commands_per_s_max", 0..=1_000_000),
    ("access.octets_per_s_per_address_max", 0..=TIB),
    ("access.commands_per_s_per_address_max", 0..=1_000_000),
    ("access.octets_per_s_per_user_max", 0..=TIB),
    ("access.commands_per_s_per_user_max", 0..=1_000_000),
    ("access.connections_max", 0..=1_000_000),
    ("access.connections_per_address_max", 0..=1_000_000),
    ("access.connections_per_user_max", 0..=1_000_000),
    ("login.failures_max", 0..=1_000_000),
    ("login.ban_s", 1..=30 * DAY_S),
    ("login.program_s_max", 1..=600),
    ("filter.copies_max", 0..=1_000_000),
    ("filter.copies_s", 1..=30 * DAY_S),
    ("filter.sender_articles_max", 0..=1_000_000),
    ("filter.sender_s", 1..=30 * DAY_S),
    ("filter.instances", 1..=64),
    ("filter.late_ms", 1..=600_000),
    ("filter.hung_s", 1..=DAY_S),
    ("articles.octets_max", KIB..=ARTICLE_OCTETS_MAX),
    ("articles.header_octets_max", KIB..=MIB),
    ("articles.header_fields_max", 16..=10_000),
    ("articles.age_s_max", 0..=100 * YEAR_S),
    ("articles.future_s_max", 0..=YEAR_S),
    ("articles.groups_max", 1..=10_000),
    ("posting.groups_max", 1..=10_000),
    ("posting.followups_max", 1..=10_000),
    ("posting.age_s_max", 0..=100 * YEAR_S),
    ("posting.future_s_max", 0..=YEAR_S),
    ("posting.quoted_percent_max", 1..=100),
    ("posting.articles_per_minute_max", 0..=60_000),
    ("posting.backoff_s_max", 0..=DAY_S),
    ("posting.articles_per_day_max", 0..=1_000_000_000),
    ("moderation.queue_mails_max", 1..=1_000_000),
    ("moderation.retry_s_min", 1..=DAY_S),
    ("moderation.retry_s_max", 1..=30 * DAY_S),
    ("moderation.attempt_s_max", 1..=3600),
    ("control.checkgroups_changes_max", 0..=1_000_000),
    ("buffer.octets", MIB..=16 * TIB - MIB),
    ("buffer.block_octets", 64..=4096),
    ("set.recent_octets", 0..=64 * GIB),
    ("set.segment_octets", MIB..=16 * TIB - MIB),
    ("set.keep_s", 60..=100 * YEAR_S),
    ("set.keep_octets", 2 * MIB..=1024 * 1024 * TIB),
    ("set.free_octets_min", 0..=1024 * TIB),
    ("rule.larger_than", 0..=ARTICLE_OCTETS_MAX),
    ("rule.octets_max", 0..=ARTICLE_OCTETS_MAX),
    ("rule.groups_min", 0..=10_000),
    ("rule.expires_s_min", 0..=100 * YEAR_S),
    ("rule.expires_s_max", 0..=100 * YEAR_S),
    ("engine.queue_octets_max", MIB..=4 * GIB - 1),
    ("engine.commit_octets_max", 64 * KIB..=GIB),
    // More could outrun what durability `none` keeps in reserve.
    ("engine.commit_articles_max", 1..=16_384),
    // As many ids as the index has room for.
    ("engine.groups_max", 1..=newsreel_index::GROUPS_MAX as i64),
    ("engine.offers_max", 1_000..=100_000_000),
    ("engine.offers_per_connection_max", 1..=10_000_000),
    ("engine.offer_wait_ms", 100..=3_600_000),
    ("engine.checkpoint_log_octets", MIB..=TIB),
    ("engine.checkpoint_s_max", 1..=DAY_S),
    ("engine.log_keep_octets", 0..=100 * TIB),
    ("scrub.octets_per_s", 0..=TIB),
    ("scrub.every_s", 3600..=100 * YEAR_S),
    ("expire.keep_s", 60..=100 * YEAR_S),
    ("expire.keep_s_min", 0..=100 * YEAR_S),
    ("expire.keep_s_max", 60..=100 * YEAR_S),
    ("expire.articles_max", 1..=1 << 40),
    ("expire.octets_max", KIB..=1024 * 1024 * TIB),
    ("expiry.rows_per_s", 0..=1_000_000_000),
    ("expiry.articles_per_s", 1..=10_000_000),
    ("expiry.every_s", 1..=YEAR_S),
    ("expiry.withdrawn_max", 1000..=1 << 40),
    ("log.segment_octets", 64 * KIB..=2 * GIB),
    ("index.tail_bytes_max", 64 * KIB..=GIB),
    ("index.history_rows_max", 1024..=1 << 30),
    ("index.cache_bytes_max", 64 * KIB..=TIB),
    ("index.history_cache_bytes_max", 64 * KIB..=TIB),
    ("index.facts_groups_max", 64..=1 << 24),
    ("index.runs_max", 2..=1024),
    ("index.merge_runs_max", 2..=64),
    ("index.bucket_rows_max", 1024..=1 << 30),
    ("index.pack_bytes_max", 64 * KIB..=2 * GIB),
    ("index.dead_percent_max", 1..=90),
    ("index.block_rows_max", 1..=4096),
    ("index.block_text_bytes_max", KIB..=MIB),
    ("index.compress_rows_min", 0..=1 << 40),
    ("index.compression_level", -50..=19),
    ("index.step_bytes", 4 * KIB..=GIB),
    ("index.remember_s", 0..=100 * YEAR_S),
];

/// The limits of one key.
pub(super) fn of(path: &str) -> Option<RangeInclusive<i64>> {
    LIMITS
        .iter()
        .find(|(key, _)| *key == path)
        .map(|(_, limits)| limits.clone())
}
