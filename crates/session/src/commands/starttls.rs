//! STARTTLS: from the next octet on the connection is over TLS (RFC 4642, RFC 8143).
//!
//! The session ends with it and another begins, without a greeting: so nothing that was said in clear holds any more, and
//! what came behind the command in clear is dropped with it.

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::dispatch::NOT_PERMITTED;
use crate::end::End;
use crate::spec::{Needs, Spec};

/// What CAPABILITIES says where it may come.
pub(super) const CAPABILITY: &str = "STARTTLS";

pub(super) const SPEC: Spec = Spec {
    name: "STARTTLS",
    usage: "",
    args: (0, 0),
    needs: Needs::Nothing,
    capability: Some(CAPABILITY),
    pipelined: false,
    codes: &[382, 502, 580],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if core.may_start_tls() {
        core.reply("382 Begin TLS\r\n");
        core.ending = Some(End::StartTls);
    } else if core.door.tls().is_none() {
        core.reply("580 There is no TLS here\r\n");
    } else {
        core.reply(NOT_PERMITTED);
    }
    Ok(())
}
