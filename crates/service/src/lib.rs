//! The one trait behind every session: NewsService, its types, a memory implementation, its conformance suite.
