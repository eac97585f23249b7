//! CHECK: shall a peer send an article (RFC 4644 section 2.4).

use newsreel_service::{Defer, NewsService, Offer, Transfer};
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use newsreel_wire::MessageId;

use crate::answers;
use crate::core::Core;
use crate::end::End;
use crate::slots::Answer;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "CHECK",
    usage: "message-id",
    args: (1, 1),
    needs: Needs::Transit,
    capability: Some("STREAMING"),
    pipelined: true,
    codes: &[238, 431, 438],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(id) = MessageId::parse(command.arg(0).unwrap_or_default()) else {
        answers::push(core, Answer::Fixed("501 Malformed message-id\r\n"), b"");
        return Ok(());
    };
    // What came just before, on this connection, the service has not seen yet.
    let is_here = |transfer: &Transfer| transfer.offered.as_bytes() == id.as_bytes();
    let offer = if core.scratch().batch.iter().any(is_here) {
        Offer::Later(Defer::UnderWay)
    } else {
        core.service.offer(id, &core.connection).await
    };
    answers::push(core, Answer::Offered(offer), id.as_bytes());
    Ok(())
}
