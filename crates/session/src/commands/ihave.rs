//! IHAVE: a peer offers an article and sends it when asked to (RFC 3977 section 6.3.2).

use newsreel_service::{NewsService, Offer};
use newsreel_wire::MessageId;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, Incoming};
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "IHAVE",
    usage: "message-id",
    args: (1, 1),
    needs: Needs::Transit,
    capability: Some("IHAVE"),
    pipelined: false,
    codes: &[235, 335, 435, 436, 437],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(id) = MessageId::parse(command.arg(0).unwrap_or_default()) else {
        core.reply("501 Malformed message-id\r\n");
        return Ok(());
    };
    let offer = core.service.offer(id, &core.connection).await;
    core.count_offer(offer);
    match offer {
        Offer::Want => {
            core.reply("335 Send it; end with <CR-LF>.<CR-LF>\r\n");
            core.incoming = Some(Incoming::Ihave(id.into()));
        }
        Offer::Known => core.reply("435 Not wanted\r\n"),
        Offer::Later(why) => core.reply_parts(&[b"436 Try again: ", why.text().as_bytes()]),
    }
    Ok(())
}
