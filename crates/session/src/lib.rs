//! The server's side of NNTP: one connection from greeting to QUIT.
