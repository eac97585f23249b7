//! NNTP's own syntax: command lines and multi-line blocks.
//!
//! One place owns each hard rule of RFC 3977 section 3.1: only CRLF ends a line (`line`), only CRLF "." CRLF ends a block
//! (`framing`, and `block` for one that is passed on while it comes).  Nothing here reads a socket or keeps a session's state.

pub mod block;
pub mod framing;
pub mod line;
