//! Pure syntax of articles and NNTP: no I/O, no async.
