//! NEWNEWS: message-ids of articles that arrived since a moment (RFC 3977 section 7.4).

use newsreel_service::NewsService;
use newsreel_wire::Wildmat;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use super::newgroups;
use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::listing::Listing;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "NEWNEWS",
    usage: "wildmat date time [GMT]",
    args: (3, 4),
    needs: Needs::Newnews,
    capability: Some("NEWNEWS"),
    pipelined: false,
    codes: &[230],
};

const STATUS: &[u8] = b"230 List of new articles follows\r\n";

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(wildmat) = Wildmat::parse_argument(command.arg(0).unwrap_or_default()) else {
        core.reply("501 Malformed wildmat\r\n");
        return Ok(());
    };
    let Some(since) = newgroups::since(core, command, 1) else {
        return Ok(());
    };
    let wildmat = match &core.grant.read {
        Some(read) => wildmat.within(read),
        None => wildmat,
    };
    let mut listing = Listing::begin(core, STATUS);
    let mut cursor = S::NewnewsCursor::default();
    let chunk = core.shared.config.reply_chunk_bytes;
    loop {
        let scratch = scratch_of(&mut core.scratch);
        let listed = core
            .service
            .newnews(&wildmat, since, &mut cursor, chunk, &mut scratch.out)
            .await;
        let more = match listed {
            Ok(more) => more,
            Err(error) => return listing.failed(core, &error),
        };
        listing.stands(core);
        listing.step(core).await?;
        if !more {
            break;
        }
    }
    listing.end(core);
    Ok(())
}
