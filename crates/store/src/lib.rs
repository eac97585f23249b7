//! Articles by token: storage methods and storage rules.
