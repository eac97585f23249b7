//! Why a key cannot be used, or a signature is none.

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The octets are not what they should be.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// It is well-formed, and of a kind that is not verified here.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The signature was made by another key.
    #[error("another key made it")]
    OtherKey,
    /// The signature does not fit the text.
    #[error("the signature does not fit the text")]
    Wrong,
    /// The key may not be used.
    #[error("{0}")]
    Unusable(&'static str),
}
