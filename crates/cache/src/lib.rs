//! News from servers elsewhere, as a [`NewsService`](newsreel_service::NewsService) like any other, after *NewsCache*
//! (Gschwind and Hauswirth 1999).
//!
//! [`RServer`] is the paper's: it asks one server for everything and keeps no article.  Numbers are the server's, so what a
//! reader has seen under one stays what it was.  [`CServer`] is the cache in front of it, and [`keep`] what that keeps.  This
//! crate speaks as a client only; whoever serves readers puts the rules of access in front.
#![deny(missing_docs)]

mod cached;
pub mod fuzz;
pub mod keep;
mod remote;

pub use cached::{CServer, CacheSettings, MISSING_IDS_MAX};
pub use remote::{RServer, RemoteNewnews, RemoteSettings};
