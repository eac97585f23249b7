//! The engine as sessions use it: feeding, reading, restarting.

mod feeding;
mod world;
