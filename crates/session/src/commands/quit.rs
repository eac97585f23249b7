//! QUIT: ends the session (RFC 3977 section 5.4).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "QUIT",
    usage: "",
    args: (0, 0),
    needs: Needs::Nothing,
    capability: None,
    pipelined: false,
    codes: &[205],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.reply("205 Bye\r\n");
    core.ending = Some(End::Quit);
    Ok(())
}
