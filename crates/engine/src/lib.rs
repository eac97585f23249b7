//! The local news database: accept path, sequencer, views, recovery.
