//! OpenPGP (RFC 9580) as control messages need it: public keys, and whether one of them made a detached signature.
//!
//! What hierarchies sign with is older than most programs: keys of version 3 beside 4, RSA and DSA, MD5 and SHA-1.  The
//! library `pgp` reads packets and verifies; here is which keys are taken, and what a key must say of itself to be believed.
//! Any octets can be read, none make it panic, and what is not understood is never taken for right.  Does no I/O, reads no
//! clock.
#![deny(missing_docs)]

mod armor;
mod certificate;
mod error;
mod key;
mod packet;
mod signature;

pub use armor::{BLOCK_OCTETS_MAX, signature_block};
pub use certificate::{Certificate, Standing, certificates};
pub use error::Error;
pub use key::{Fingerprint, KeyId};
pub use signature::Signature;
