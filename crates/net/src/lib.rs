//! Listeners, access and limits: who may connect and what they may do, how many at a time, and how connections end when the
//! server stops; and `client`, connections to servers elsewhere.
//!
//! Nothing a peer does stops the accept loop, and no table here grows without a limit.  To those who come this crate says
//! no NNTP but the one line a refused connection gets, and it knows nothing of articles.
#![deny(missing_docs)]

pub mod access;
mod certificate;
pub mod client;
mod config;
mod deflate;
mod drain;
mod error;
pub mod fuzz;
mod inherited;
mod kept;
mod limits;
mod lines;
mod listener;
mod shut;
mod stream;
mod tls;

pub use certificate::{advice, is_of_an_authority};
pub use config::ListenConfig;
pub use deflate::Deflatable;
pub use drain::{Drain, DrainWatch};
pub use error::Error;
pub use inherited::{Inherited, is_of_internet};
pub use kept::PACES_KEPT_MAX;
pub use limits::{Admission, FLOOD_REFUSALS, Limits, LimitsSnapshot, Refusal};
pub use lines::LineLimit;
pub use listener::Listeners;
pub use newsreel_wire::network_of;
pub use shut::{SHUT_FOR, SHUT_MAX};
pub use stream::Stream;
pub use tls::{Tls, TlsConfig, TlsFile, TlsFiles};
