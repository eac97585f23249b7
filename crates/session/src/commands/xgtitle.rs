//! XGTITLE: descriptions of groups, as LIST NEWSGROUPS gives them (RFC 2980 section 2.5).

use newsreel_service::{GroupSelect, NewsService};
use newsreel_wire::Wildmat;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use super::list;
use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "XGTITLE",
    usage: "[wildmat]",
    args: (0, 1),
    needs: Needs::Reader,
    capability: None,
    pipelined: false,
    codes: &[282, 412],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if list::is_refused(core, list::NEWSGROUPS) {
        return Ok(());
    }
    let wildmat = match command.arg(0) {
        Some(wildmat) => Wildmat::parse_argument(wildmat),
        None => {
            if core.selected_or_412().is_none() {
                return Ok(());
            }
            Wildmat::parse_text_pattern(core.group_name.as_bytes())
        }
    };
    let Ok(wildmat) = wildmat else {
        core.reply("501 Malformed wildmat\r\n");
        return Ok(());
    };
    let select = GroupSelect {
        wildmat: Some(&wildmat),
        described: true,
        ..GroupSelect::default()
    };
    list::groups(
        core,
        b"282 List of groups and descriptions follows\r\n",
        select,
        list::write_description,
    )
    .await
}
