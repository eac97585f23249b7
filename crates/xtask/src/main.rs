//! Tasks cargo lacks.

fn main() {}
