//! OVER: overview lines (RFC 3977 section 8.3).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::overview::{self, Style};
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "OVER",
    usage: "[range|message-id]",
    args: (0, 1),
    needs: Needs::Reader,
    capability: Some("OVER"),
    pipelined: false,
    codes: &[224, 412, 420, 423, 430],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    overview::over(core, command.arg(0), Style::Rfc3977).await
}
