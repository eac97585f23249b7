//! Passwords and their hashes: argon2id, in the PHC string form.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier as _};
use argon2::{Algorithm, Argon2};

use crate::error::Error;

/// The longest password, octets: more has no place in a command line.
pub const PASSWORD_OCTETS_MAX: usize = 256;

const PASSWORD_OCTETS_MIN: usize = 8;

/// The most memory a hash in the file may ask for, KiB.
const MEMORY_KIB_MAX: u32 = 256 << 10;

/// A hash of no password that anybody has, by the same parameters: what is compared where there is no user, so that it takes
/// as long.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bmV3c3JlZWwtbm9ib2R5$bmV3c3JlZWwtbm9ib2R5LW5ld3NyZWVsLW5vYm9keS0";

/// The hash of a new password.
pub(crate) fn hash(password: &str, salt: &[u8; 16]) -> Result<String, Error> {
    if password.len() < PASSWORD_OCTETS_MIN {
        return Err(Error::BadPassword("too short"));
    }
    if password.len() > PASSWORD_OCTETS_MAX {
        return Err(Error::BadPassword("too long"));
    }
    if password
        .chars()
        .any(|c| c.is_whitespace() || c.is_control())
    {
        return Err(Error::BadPassword("not one word"));
    }
    let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), salt);
    hashed
        .map(|hash: PasswordHash| hash.to_string())
        .map_err(|why| Error::Hash(why.to_string()))
}

/// Whether a text is a hash that this program can compare with, at a bounded cost.
pub(crate) fn is_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| {
        let memory = hash.params.get_decimal("m");
        hash.algorithm == Algorithm::Argon2id.ident()
            && hash.hash.is_some()
            && memory.is_some_and(|kib| kib <= MEMORY_KIB_MAX)
    })
}

/// Whether a password belongs to a hash; without one the same work is done.
pub(crate) fn matches(hash: Option<&str>, password: &str) -> bool {
    let is_right = PasswordHash::new(hash.unwrap_or(NOBODY)).is_ok_and(|hash| {
        let password = password.as_bytes();
        Argon2::default().verify_password(password, &hash).is_ok()
    });
    is_right && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_belongs_to_its_hash_only() {
        let hashed = hash("correct-horse", &[7; 16]).unwrap();
        assert!(is_hash(&hashed) && is_hash(NOBODY));
        assert!(matches(Some(&hashed), "correct-horse"));
        assert!(!matches(Some(&hashed), "correct-hors") && !matches(None, "correct-horse"));
        assert_ne!(hashed, hash("correct-horse", &[8; 16]).unwrap());
    }

    /// Else an unknown name would be told by the time it takes.
    #[test]
    fn nobody_costs_as_much_as_somebody() {
        let parameters = |hash: &str| hash.rsplitn(3, '$').nth(2).unwrap().to_owned();
        assert_eq!(
            parameters(&hash("correct-horse", &[7; 16]).unwrap()),
            parameters(NOBODY)
        );
    }

    #[test]
    fn what_is_refused() {
        for bad in [
            "",
            "short12",
            "two words",
            "tab\there-and",
            &"x".repeat(257),
        ] {
            assert!(
                matches!(hash(bad, &[0; 16]), Err(Error::BadPassword(_))),
                "{bad}"
            );
        }
        for bad in [
            "",
            "plain",
            "$argon2id$v=19$m=19456,t=2,p=1$bmV3c3JlZWwtbm9ib2R5",
            "$argon2id$v=19$m=4294967295,t=2,p=1$bmV3c3JlZWwtbm9ib2R5$bmV3c3JlZWwtbm9ib2R5LW5ld3NyZWVsLW5vYm9keS0",
            "$2y$10$abc",
        ] {
            assert!(!is_hash(bad), "{bad}");
        }
    }
}
