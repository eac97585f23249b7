//! MODE: READER and STREAM; neither changes anything, this server always does both (RFC 3977 section 5.3, RFC 4644 section 2.3).

use newsreel_net::access::Grant;
use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "MODE",
    usage: "READER|STREAM",
    args: (1, 1),
    needs: Needs::Nothing,
    capability: None,
    pipelined: false,
    codes: &[200, 201, 203, 502],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if command.arg_is(0, "READER") {
        if core.may_post() {
            core.reply("200 Reading and posting\r\n");
        } else if core.features.reader
            && (core.grant.is_for_readers() || core.not_yet(Grant::is_for_readers).is_some())
        {
            core.reply("201 Reading, no posting\r\n");
        } else {
            core.reply("502 No reading service here\r\n");
            core.ending = Some(End::NoService);
        }
    } else if command.arg_is(0, "STREAM") && core.features.transit {
        let line = match core.grant.feed {
            true => "203 Streaming permitted\r\n",
            false => core.not_permitted(|grant| grant.feed),
        };
        core.reply(line);
    } else {
        core.reply("501 Unknown MODE\r\n");
    }
    Ok(())
}
