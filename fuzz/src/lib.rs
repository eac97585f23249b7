//! What the fuzz targets do with their inputs, one module per kind of input.
//!
//! The functions are here and not in the targets so that ordinary tests can replay the committed corpora through
//! them with a stable compiler.

pub mod app;
pub mod spool;
pub mod wire;
