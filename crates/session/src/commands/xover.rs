//! XOVER: OVER as it was before (RFC 2980 section 2.8), which had no message-id yet; asking for one does no harm.

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::overview::{self, Style};
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "XOVER",
    usage: "[range|message-id]",
    args: (0, 1),
    needs: Needs::Reader,
    capability: None,
    pipelined: false,
    codes: &[224, 412, 420, 430],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    overview::over(core, command.arg(0), Style::Rfc2980).await
}
