//! The engine as sessions use it: feeding, reading, restarting.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod adding;
mod attaching;
mod by_id;
mod cancelling;
mod changing;
mod checking;
mod clock;
mod conformance;
mod control_due;
mod control_groups;
mod control_newer;
mod control_newest;
mod control_order;
mod control_signed;
mod crash;
mod cutting;
mod damage;
mod each;
mod expiring;
mod faults;
mod feeding;
mod files;
mod filtering;
mod limits;
mod looking;
mod misplaced;
mod moving;
mod old_log;
mod outgoing;
mod refusing;
mod reloading;
mod register;
mod room;
mod scale;
mod scrubbing;
mod segments;
mod starting;
mod transit;
mod trouble;
mod volatile;
mod waiting;
mod withdrawing;
mod world;
mod wrapping;
