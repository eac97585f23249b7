//! The load generator: corpus, feed and read passes, reports.
