//! How a session ends.

/// Why a connection is closed.  Not an error: every one of these happens on a healthy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// QUIT.
    Quit,
    /// The other side closed, and has all its answers.
    PeerClosed,
    /// The connection broke.
    Broken,
    /// Silence between commands.
    Idle,
    /// A command line or an article did not come to its end in time.
    Slow,
    /// The other side stopped taking our replies.
    WriteStalled,
    /// The server is stopping.
    Stopping,
    /// An article could not be kept, and its sender must try again later.
    NotKept,
    /// There is no memory for so many large articles at once.
    NoMemory,
    /// A list that was begun could not be finished.
    CutShort,
    /// MODE READER where there is no reading service.
    NoService,
    /// What came was not meant for a news server: HTTP, or one unknown command after the other.
    NotNntp,
    /// STARTTLS: over TLS another session begins.
    StartTls,
    /// The handshake of TLS failed.
    NoTls,
    /// An article is elsewhere, and cannot be had from there at present.
    Away,
}

impl End {
    /// Every way; `end as usize` is its place.
    pub const ALL: [Self; 15] = [
        Self::Quit,
        Self::PeerClosed,
        Self::Broken,
        Self::Idle,
        Self::Slow,
        Self::WriteStalled,
        Self::Stopping,
        Self::NotKept,
        Self::NoMemory,
        Self::CutShort,
        Self::NoService,
        Self::NotNntp,
        Self::StartTls,
        Self::NoTls,
        Self::Away,
    ];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::PeerClosed => "peer_closed",
            Self::Broken => "broken",
            Self::Idle => "idle",
            Self::Slow => "slow",
            Self::WriteStalled => "write_stalled",
            Self::Stopping => "stopping",
            Self::NotKept => "not_kept",
            Self::NoMemory => "no_memory",
            Self::CutShort => "cut_short",
            Self::NoService => "no_service",
            Self::NotNntp => "not_nntp",
            Self::StartTls => "starttls",
            Self::NoTls => "no_tls",
            Self::Away => "away",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_numbers() {
        assert!(
            End::ALL
                .iter()
                .enumerate()
                .all(|(place, end)| *end as usize == place)
        );
    }
}
