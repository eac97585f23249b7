//! POST: not permitted, and said so in the greeting (RFC 3977 section 6.3.1).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "POST",
    usage: "",
    args: (0, 0),
    needs: Needs::Reader,
    capability: None,
    pipelined: false,
    codes: &[440],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.reply("440 Posting not permitted\r\n");
    Ok(())
}
