//! HELP: the table of commands (RFC 3977 section 7.2).

use newsreel_service::NewsService;
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use super::TABLE;
use crate::core::Core;
use crate::end::End;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "HELP",
    usage: "",
    args: (0, 0),
    needs: Needs::Nothing,
    capability: None,
    pipelined: false,
    codes: &[100],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, _command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.learn(|features| features.newnews).await;
    core.reply("100 Commands\r\n");
    let features = core.features;
    let out = core.out();
    for spec in TABLE.iter().filter(|spec| spec.needs.met(features)) {
        out.extend_from_slice(b"  ");
        out.extend_from_slice(spec.name.as_bytes());
        if !spec.usage.is_empty() {
            out.push(b' ');
            out.extend_from_slice(spec.usage.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    Ok(())
}
