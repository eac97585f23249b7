//! STAT: whether an article is there; every server has it, also a feeder (RFC 3977 section 6.2.4).

use newsreel_service::{NewsService, Part};
use newsreel_wire::nntp::line::Command;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::Core;
use crate::end::End;
use crate::retrieve;
use crate::spec::{Needs, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "STAT",
    usage: "[message-id|number]",
    args: (0, 1),
    needs: Needs::Articles,
    capability: None,
    pipelined: false,
    codes: &[223, 412, 420, 423, 430],
};

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    retrieve::retrieve(core, command.arg(0), Part::Stat).await
}
