//! NEWGROUPS: groups made since a moment (RFC 3977 section 7.3).

use newsreel_service::{GroupSelect, NewsService};
use newsreel_wire::UnixTime;
use newsreel_wire::date::{is_gmt, parse_nntp};
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use super::list;
use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "NEWGROUPS",
    usage: "date time [GMT]",
    args: (2, 3),
    needs: Needs::Reader,
    capability: Some("READER"),
    pipelined: false,
    codes: &[231],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if list::is_refused(core, list::ACTIVE) {
        return Ok(());
    }
    let Some(since) = since(core, command, 0) else {
        return Ok(());
    };
    let select = GroupSelect {
        created_since: Some(since),
        ..GroupSelect::default()
    };
    list::groups(
        core,
        b"231 List of new newsgroups follows\r\n",
        select,
        list::write_active,
    )
    .await
}

/// The moment that the arguments from `first` on name, or 501.  The server's time is UTC, with GMT or without.
pub(super) fn since<S, Io>(
    core: &mut Core<S, Io>,
    command: &Command<'_>,
    first: usize,
) -> Option<UnixTime>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let date = command.arg(first).unwrap_or_default();
    let time = command.arg(first + 1).unwrap_or_default();
    let zone_is_known = command.arg(first + 2).is_none_or(is_gmt);
    match parse_nntp(date, time, core.service.now()) {
        Ok(since) if zone_is_known => Some(since),
        _ => {
            core.reply("501 Malformed date or time: yyyymmdd hhmmss [GMT]\r\n");
            None
        }
    }
}
