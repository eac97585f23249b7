//! Which keys are taken over while the server runs (SIGHUP), and which wait for a start.
//!
//! The server asks here when it reads its configuration again, and the reference page says the same.

/// Keys, or whole sections, that are taken over while the server runs; all others wait for a start.
pub(super) const LIVE: &[&str] = &[
    "access",
    "login",
    "peer",
    "feeds",
    "pull",
    "server.clients",
    "logging.level",
    "logging.articles",
    "listen.connections_max",
    "listen.connections_per_address_max",
    "listen.connections_per_s_per_address_max",
    "listen.loopback_unlimited",
    "articles",
    "cache.policy",
    "filter",
    "lists",
    "posting",
    "control",
    "expire",
    "rule",
    "session",
];

/// Whether a key is taken over while the server runs.
pub(crate) fn is_live(path: &str) -> bool {
    LIVE.iter().any(|live| {
        path.strip_prefix(live)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// When a changed value is in force, for people.
pub(super) fn when(path: &str) -> &'static str {
    match path {
        "buffer.octets" => {
            "in force by `newsreel store resize`, beside a running server or before a start"
        }
        _ if is_live(path) => "taken over by SIGHUP",
        _ => "needs a restart",
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn live_keys_exist() {
        for path in LIVE {
            assert!(
                schema::find(path).is_some() || schema::is_section(path),
                "{path}"
            );
        }
    }
}
