//! Transcripts, scripted peers and simulation for the tests of every crate.
