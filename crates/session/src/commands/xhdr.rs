//! XHDR: HDR as it was before (RFC 2980 section 2.6).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::header;
use crate::overview::Style;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "XHDR",
    usage: "field [range|message-id]",
    args: (1, 2),
    needs: Needs::Reader,
    capability: None,
    pipelined: false,
    codes: &[221, 412, 420, 430, 503],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    header::header(
        core,
        command.arg(0).unwrap_or_default(),
        command.arg(1),
        Style::Rfc2980,
        None,
    )
    .await
}
