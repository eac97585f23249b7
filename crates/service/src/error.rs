//! What a service could not do.  Protocol outcomes (absent, duplicate, refused) are values, not errors.

use std::sync::Arc;

/// Why an answer could not be given.  A session maps this to 400 or 403 and says no more than this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The service is shutting down: sessions say 400 and close.
    #[error("the server is stopping; please come back later")]
    Stopping,
    /// Something this server depends on failed: 403.  The cause was logged and counted where it happened.
    #[error("internal fault: {0}")]
    Fault(&'static str),
    /// What was asked for is elsewhere, and cannot be had from there at present: 403, or for an article 400 and the end, so that nobody
    /// takes it for gone.
    #[error("the news server elsewhere cannot be asked at present")]
    Away,
    /// The same, as nobody is to be asked.
    #[error("not kept here, and this server is offline; it can be had later")]
    Offline,
    /// Of several servers elsewhere the list of this one is not kept, and it cannot be asked at present: 403, as the groups of the others
    /// would pass for all.
    #[error("the list of groups at {0} is missing, and it cannot be asked at present")]
    ListMissing(Arc<str>),
}
