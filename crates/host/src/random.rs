//! Random octets from the kernel, for keys and identities made once and then kept in the log.
//!
//! Never used to decide what a view holds: views are deterministic.

use std::io;
use std::path::Path;

use crate::error::{Error, Op, Result};

/// `N` octets from the kernel's generator.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::from_io(Op::Random, Path::new("the kernel"), io::Error::other(e)))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        let (a, b) = (random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
        assert_ne!(a, b);
        assert_ne!(a, [0; 16]);
    }
}
