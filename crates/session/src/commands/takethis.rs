//! TAKETHIS: an article comes unasked (RFC 4644 section 2.5).
//!
//! Whatever is wrong with the line, what follows is an article: it is read to its end before anything is answered,
//! so that nothing of it is run as a command.

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use newsreel_wire::MessageId;

use crate::core::{Core, Incoming};
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "TAKETHIS",
    usage: "message-id",
    args: (1, 1),
    needs: Needs::Transit,
    capability: Some("STREAMING"),
    pipelined: true,
    codes: &[239, 400, 439],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let id = MessageId::parse(command.arg(0).unwrap_or_default());
    core.incoming = Some(match id {
        Ok(id) => Incoming::Takethis(id.into()),
        Err(_) => Incoming::Refused("501 Malformed message-id\r\n"),
    });
    Ok(())
}
