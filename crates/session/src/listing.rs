//! A multi-line reply that is made step by step.
//!
//! Its status line is written first and taken back as long as nothing follows it: then another reply takes its place.  After
//! that a failure can only cut the list short: what was gathered is sent, and the connection is closed rather than lie.

use newsreel_service::{NewsService, ServiceError};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, SELECTED_GONE};
use crate::end::End;

#[derive(Debug)]
pub(crate) struct Listing {
    status: &'static [u8],
    /// Where the status line begins in what is gathered.
    before: usize,
    begun: bool,
}

impl Listing {
    /// Writes the status line.
    pub(crate) fn begin<S, Io>(core: &mut Core<S, Io>, status: &'static [u8]) -> Self
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let out = core.out();
        let before = out.len();
        out.extend_from_slice(status);
        Self {
            status,
            before,
            begun: false,
        }
    }

    /// The status line stands from now on.
    pub(crate) fn stands<S, Io>(&mut self, core: &Core<S, Io>)
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if !self.begun {
            self.begun = true;
            core.count_reply(self.status);
        }
    }

    /// Whether something was listed.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Between two steps of the list.
    pub(crate) async fn step<S, Io>(&self, core: &mut Core<S, Io>) -> Result<(), End>
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        core.step(self.begun).await
    }

    /// The service could not go on.
    pub(crate) fn failed<S, Io>(
        self,
        core: &mut Core<S, Io>,
        error: &ServiceError,
    ) -> Result<(), End>
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if self.begun {
            return Err(End::CutShort);
        }
        core.out().truncate(self.before);
        core.reply_error(error);
        Ok(())
    }

    /// The end of a list that may be empty.
    pub(crate) fn end<S, Io>(mut self, core: &mut Core<S, Io>)
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        self.stands(core);
        core.out().extend_from_slice(b".\r\n");
    }

    /// The end of a list of the selected group, which may be empty where that is still there.
    pub(crate) async fn end_selected<S, Io>(self, core: &mut Core<S, Io>)
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if !self.begun && core.has_selected_gone().await {
            core.out().truncate(self.before);
            return core.reply(SELECTED_GONE);
        }
        self.end(core);
    }

    /// The same of a list that is never empty: `nothing` is said when there is nothing to list.
    pub(crate) async fn end_selected_or<S, Io>(self, core: &mut Core<S, Io>, nothing: &'static str)
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if self.begun {
            return self.end(core);
        }
        core.out().truncate(self.before);
        core.reply_nothing(nothing).await;
    }
}
