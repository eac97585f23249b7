//! DATE: the server's time in UTC (RFC 3977 section 7.1).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use newsreel_wire::date::print_nntp;

use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "DATE",
    usage: "",
    args: (0, 0),
    needs: Needs::Nothing,
    capability: None,
    pipelined: false,
    codes: &[111],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut text = Vec::new();
    print_nntp(core.service.now(), &mut text);
    core.reply_parts(&[b"111 ", &text]);
    Ok(())
}
