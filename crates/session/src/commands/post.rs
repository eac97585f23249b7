//! POST: an article by somebody who is here (RFC 3977 section 6.3.1), injected by RFC 5537 section 3.5.
//!
//! Whoever may not post is told so before anything is sent.  What comes after 340 is an article up to its CRLF.CRLF,
//! whatever is in it.

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, Incoming};
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "POST",
    usage: "",
    args: (0, 0),
    needs: Needs::Posting,
    capability: Some("POST"),
    pipelined: false,
    codes: &[240, 340, 440, 441],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if !core.may_post() {
        // Where nobody posts no login helps.
        let line = core.not_yet(|grant| core.features.posting && grant.post.is_some());
        core.reply(line.unwrap_or("440 Posting not permitted\r\n"));
        return Ok(());
    }
    let made = core.service.new_message_id();
    core.reply_parts(&[b"340 Send it; recommended message-id ", made.as_bytes()]);
    core.incoming = Some(Incoming::Post(made));
    Ok(())
}
