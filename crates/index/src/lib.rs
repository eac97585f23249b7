//! Names to tokens: history, overview and groups as views of the log.
