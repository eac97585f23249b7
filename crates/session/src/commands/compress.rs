//! COMPRESS: from the next octet on both directions are compressed (RFC 8054).
//!
//! A compressed connection takes some 400 KiB for as long as it is there, so there are only so many, and of what others leave a quarter for one site
//! (an IPv4 address, an IPv6 /48).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use newsreel_wire::site_of;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::dispatch::NOT_PERMITTED;
use crate::end::End;
use crate::spec::{Needs, Spec};

/// What CAPABILITIES says where it may come.
pub(super) const CAPABILITY: &str = "COMPRESS DEFLATE";

pub(super) const SPEC: Spec = Spec {
    name: "COMPRESS",
    usage: "DEFLATE",
    args: (1, 1),
    needs: Needs::Nothing,
    capability: Some(CAPABILITY),
    pipelined: false,
    codes: &[206, 403, 502, 503],
};

/// Whether it may come, and could be done if there were only this connection.
pub(super) fn is_offered<S, Io>(core: &Core<S, Io>) -> bool
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    !core.is_compressed() && core.shared.config.compressed_connections_max > 0
}

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if core.is_compressed() {
        core.reply(NOT_PERMITTED);
    } else if !command.arg_is(0, "DEFLATE") {
        core.reply("503 No such algorithm\r\n");
    } else if core.has_more_come {
        // In front of the reply nobody can say what is compressed (RFC 8054 section 2.2.2).
        core.reply(
            "403 Something came behind COMPRESS; say it once more and wait for the reply\r\n",
        );
    } else if let Ok(place) = core
        .shared
        .compressed
        .take(core.connection.address().map(site_of))
    {
        core.compressing = Some(place);
        core.reply("206 Compressed from here on\r\n");
        core.flush().await?;
        core.link.io.deflate();
    } else {
        core.reply("403 Too many connections are compressed; go on without\r\n");
    }
    Ok(())
}
