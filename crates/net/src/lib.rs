//! Listeners, limits and the NNTP client connection.
