//! What newsreel takes from the machine: disk, clock, randomness.
