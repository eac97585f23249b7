//! Cancel-Lock and Cancel-Key (RFC 8315): who may take an article back.
//!
//! A lock is the hash of a key.  An article tells its locks, and who wants it gone tells keys: where the hash of one is
//! among the locks, it may be.  Both are reduced to fingerprints of locks here, so that they can be compared, kept and
//! written down without their keys.  SHA-256 and SHA-512 count; SHA-1 and what is not known opens nothing, but an
//! article that has only such locks is locked all the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use newsreel_wire::MessageId;
use sha2::{Digest as _, Sha256, Sha512};
use smallvec::SmallVec;

/// Locks, or keys, of one article that are looked at; real ones have up to four.
pub const ELEMENTS_MAX: usize = 16;

/// Octets of a [`LockPrint`].
pub const PRINT_OCTETS: usize = 32;

/// What a lock and a key that opens it have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockPrint(pub [u8; PRINT_OCTETS]);

/// Some of them; mostly one or two.
pub type LockPrints = SmallVec<[LockPrint; 2]>;

impl LockPrint {
    fn of(scheme: Scheme, lock: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("newsreel 2026-11 cancel-lock print");
        hasher.update(scheme.name().as_bytes()).update(b":");
        Self(*hasher.update(lock).finalize().as_bytes())
    }
}

/// A hash that is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Sha256,
    Sha512,
}

impl Scheme {
    /// By its name in any case; SHA-1 is not among them (RFC 8315 section 6).
    fn parse(name: &[u8]) -> Option<Self> {
        let all = [Self::Sha256, Self::Sha512];
        let mut all = all.into_iter();
        all.find(|scheme| scheme.name().as_bytes().eq_ignore_ascii_case(name))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    const fn hash_octets(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// The lock that this key opens.
    fn lock_of(self, key: &[u8]) -> String {
        match self {
            Self::Sha256 => BASE64.encode(Sha256::digest(key)),
            Self::Sha512 => BASE64.encode(Sha512::digest(key)),
        }
    }
}

/// The locks in the content of a Cancel-Lock field.  There may be none that count; the article is locked then too.
#[must_use]
pub fn locks(content: &[u8]) -> LockPrints {
    let content = without_comments(content);
    let prints = elements(&content).map(|(scheme, lock)| LockPrint::of(scheme, lock));
    prints.collect()
}

/// The locks that the keys in the content of a Cancel-Key field open.
#[must_use]
pub fn opened(content: &[u8]) -> LockPrints {
    let content = without_comments(content);
    let prints = elements(&content)
        .map(|(scheme, key)| LockPrint::of(scheme, scheme.lock_of(key).as_bytes()));
    prints.collect()
}

/// Whether this is what a Cancel-Lock field may hold (RFC 8315 section 2.1): locks of any scheme, in base64.
#[must_use]
pub fn is_lock_list(content: &[u8]) -> bool {
    is_list(content, |lock| {
        let text = lock.iter().rev().skip_while(|octet| **octet == b'=');
        let (mut text, filled) = (text.peekable(), lock.len().is_multiple_of(4));
        let is_base64 = |octet: &u8| octet.is_ascii_alphanumeric() || b"+/".contains(octet);
        let fill = lock.iter().filter(|octet| **octet == b'=').count();
        filled && fill <= 2 && text.peek().is_some() && text.all(is_base64)
    })
}

/// Whether each lock of a scheme that counts is a hash of that scheme: no key opens another.
#[must_use]
pub fn are_hashes(content: &[u8]) -> bool {
    let is_hash = |(scheme, lock): (Scheme, &[u8])| {
        let hash = BASE64.decode(lock);
        hash.is_ok_and(|hash| hash.len() == scheme.hash_octets())
    };
    elements(&without_comments(content)).all(is_hash)
}

/// Whether this is what a Cancel-Key field may hold (RFC 8315 section 2.2): keys of any scheme; older ones are any text.
#[must_use]
pub fn is_key_list(content: &[u8]) -> bool {
    is_list(content, |key| key.iter().all(u8::is_ascii_graphic))
}

/// `scheme:string`, one or more with blanks and comments between them.
fn is_list(content: &[u8], is_string: impl Fn(&[u8]) -> bool) -> bool {
    let content = without_comments(content);
    let words = content.split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    let is_of_scheme = |octet: &u8| octet.is_ascii_alphanumeric() || b"-/".contains(octet);
    let is_element = |word: &[u8]| {
        let at = word.iter().position(|octet| *octet == b':');
        at.is_some_and(|at| {
            let (scheme, string) = word.split_at(at);
            let string = string.get(1..).unwrap_or_default();
            let is_scheme = !scheme.is_empty() && scheme.iter().all(is_of_scheme);
            is_scheme && !string.is_empty() && is_string(string)
        })
    };
    words.peek().is_some() && words.all(is_element)
}

/// The elements with a hash that counts: `scheme:string`.
fn elements(content: &[u8]) -> impl Iterator<Item = (Scheme, &[u8])> {
    let words = content.split(u8::is_ascii_whitespace);
    let words = words.filter(|word| !word.is_empty()).take(ELEMENTS_MAX);
    words.filter_map(|word| {
        let at = word.iter().position(|octet| *octet == b':')?;
        let (name, string) = word.split_at(at);
        Some((Scheme::parse(name)?, string.get(1..)?))
    })
}

/// A field's content with a blank for each comment (RFC 5322 section 3.2.2: they nest, and a backslash quotes).
pub(crate) fn without_comments(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    let (mut depth, mut is_quoted) = (0u32, false);
    for octet in content {
        match octet {
            _ if is_quoted => is_quoted = false,
            b'\\' if depth > 0 => is_quoted = true,
            b'(' => depth += 1,
            b')' if depth > 0 => {
                depth -= 1;
                out.push(b' ');
            }
            _ if depth == 0 => out.push(*octet),
            _ => {}
        }
    }
    out
}

/// Whose an article is, for its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The server's itself: a lock on every article that is posted here.
    Site,
    /// Whoever posts from this machine without a name.
    Machine,
    /// A user that proved who they are.
    User(&'a str),
}

/// Makes locks and keys from a secret: the same for the same owner and article, ever again.
#[derive(Clone)]
pub struct Locksmith {
    secret: [u8; 32],
}

impl std::fmt::Debug for Locksmith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Locksmith(secret)")
    }
}

impl Locksmith {
    /// With a secret that follows from the spool's key, and from which that key cannot be told.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        let secret = blake3::derive_key("newsreel 2026-11 cancel-lock secret", key);
        Self { secret }
    }

    /// The element of Cancel-Key by which this owner takes the article back.
    #[must_use]
    pub fn key(&self, owner: Owner<'_>, id: MessageId<'_>) -> String {
        format!("sha256:{}", key_string(&self.secret, owner, id))
    }

    /// The element of Cancel-Lock which that key opens.
    #[must_use]
    pub fn lock(&self, owner: Owner<'_>, id: MessageId<'_>) -> String {
        let key = key_string(&self.secret, owner, id);
        format!("sha256:{}", Scheme::Sha256.lock_of(key.as_bytes()))
    }
}

/// RFC 8315 section 4: an HMAC of owner and message-id under the secret.
fn key_string(secret: &[u8], owner: Owner<'_>, id: MessageId<'_>) -> String {
    let owner = match owner {
        Owner::Site => "",
        // No user has a name with a NUL in it.
        Owner::Machine => "\0this machine",
        Owner::User(name) => name,
    };
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length will do");
    mac.update(owner.as_bytes());
    mac.update(id.as_bytes());
    BASE64.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> MessageId<'_> {
        MessageId::parse(text.as_bytes()).unwrap()
    }

    /// RFC 8315 section 5: secret, user, message-id, and what must come of them.
    #[test]
    fn the_examples_of_rfc_8315() {
        for (secret, owner, key, lock) in [
            (
                "ExampleSecret",
                Owner::Site,
                "qv1VXHYiCGjkX/N1nhfYKcAeUn8bCVhrWhoKuBSnpMA=",
                "s/pmK/3grrz++29ce2/mQydzJuc7iqHn1nqcJiQTPMc=",
            ),
            (
                "AnotherSecret",
                Owner::User("JaneDoe"),
                "yM0ep490Fzt83CLYYAytm3S2HasHhYG4LAeAlmuSEys=",
                "NSBTz7BfcQFTCen+U4lQ0VS8VIlZao2b8mxD/xJaaeE=",
            ),
        ] {
            let made = key_string(secret.as_bytes(), owner, id("<12345@mid.example>"));
            assert_eq!(made, key);
            assert_eq!(Scheme::Sha256.lock_of(made.as_bytes()), lock);
            let opens = opened(format!("sha256:{key}").as_bytes());
            assert_eq!(opens, locks(format!("sha256:{lock}").as_bytes()));
        }
    }

    /// Whether one of the keys opens one of the locks.
    fn opens(lock: &str, key: &str) -> bool {
        let locks = locks(lock.as_bytes());
        opened(key.as_bytes()).iter().any(|it| locks.contains(it))
    }

    #[test]
    fn fields_as_they_are_written() {
        let key = "sha256:qv1VXHYiCGjkX/N1nhfYKcAeUn8bCVhrWhoKuBSnpMA=";
        let lock = "sha256:s/pmK/3grrz++29ce2/mQydzJuc7iqHn1nqcJiQTPMc=";
        assert!(opens(lock, key));
        assert!(opens(&format!("sha256:AAAA\r\n\t{lock}"), key));
        assert!(opens(&lock.replace("sha256", "SHA256"), key));
        assert!(opens(&format!("(a (b\\) c) d){lock}(e)"), key));
        assert!(!opens(&format!("({lock})"), key), "a comment");
        assert!(!opens(&lock.replace("s/pm", "S/pm"), key), "case counts");
        assert!(!opens(&lock.replace("sha256", "sha512"), key), "same hash");
        assert!(!opens(lock, lock), "a lock is no key");
        assert!(!opens("", ""));
        let many = format!("{} {lock}", "sha256:x ".repeat(ELEMENTS_MAX));
        assert!(!opens(&many, key), "beyond the limit");
    }

    #[test]
    fn sha512_counts_and_sha1_does_not() {
        let (lock, key) = (
            "sha512:s9AvfWnNNzbBZDLEf/W5JJZMB/wnE+CmEFg8APUM\
             HFQpOHay+CLJ5TYark1/sXrLKDO9NHg2AuZ1XMFxh8lZmQ==",
            "sha512:aaaBBBcccDDDeeeFFF",
        );
        assert!(opens(lock, key));
        // RFC 8315 section 5, and INN's tests: a lock by SHA-1 and its key.
        let (lock, key) = (
            "sha1:JD+QmQh5LH6lLLToKLcDl+Aemg0=",
            "sha1:8HzrY7F4N+5SXkGQah1mcyW+01g=",
        );
        assert!(!opens(lock, key));
        assert_eq!(locks(lock.as_bytes()).len(), 0);
    }

    proptest! {
        #[test]
        fn prop_no_input_panics(content in proptest::collection::vec(any::<u8>(), 0..200), text in "[(:)\\\\ sha256=]{0,80}") {
            for content in [&content[..], text.as_bytes()] {
                prop_assert!(locks(content).len() <= ELEMENTS_MAX);
                prop_assert!(opened(content).len() <= ELEMENTS_MAX);
            }
        }
    }

    #[test]
    fn every_owner_and_article_has_its_own() {
        let smith = Locksmith::new(&[7; 32]);
        let one = id("<1@a.example>");
        let all = [
            smith.lock(Owner::Site, one),
            smith.lock(Owner::Machine, one),
            smith.lock(Owner::User("ada"), one),
            smith.lock(Owner::User("bob"), one),
            smith.lock(Owner::Site, id("<2@a.example>")),
            Locksmith::new(&[8; 32]).lock(Owner::Site, one),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        for owner in [Owner::Site, Owner::Machine, Owner::User("ada")] {
            let again = Locksmith::new(&[7; 32]);
            assert!(opens(&smith.lock(owner, one), &again.key(owner, one)));
        }
        assert!(!opens(&all[2], &smith.key(Owner::User("bob"), one)));
        assert_eq!(format!("{smith:?}"), "Locksmith(secret)");
    }
}
